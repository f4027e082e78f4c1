//! A strict reader of the zip container.
//!
//! A zip file has its metadata twice: in the central directory and in the local header of each record. Tools that read
//! different copies see different files in the same bytes, which is used to deceive scanners. This reader takes the
//! central directory as the authority and rejects archives with inconsistencies:
//!
//! * the end record ends the file: no comment, no bytes after it, no undeclared bytes before the archive;
//! * the directory has as many entries as the end record states, and extends up to it;
//! * local headers have the same name, method, flags, sizes and checksum, unless sizes and checksum are in a data
//!   descriptor, which then must match too;
//! * no two records have the same name or overlap, and no record overlaps the directory;
//! * names are relative UTF-8 paths without `.` and `..`, all below one top folder, which is stripped; only
//!   [`ZipReader::open_flat_or_rooted`] accepts containers without a top folder.
//!
//! Opening reads only headers. A record is inflated and its checksum verified when it is read, within the budget of
//! [`ArchiveLimits::inflated_bytes`] for the whole archive. A record that is not read costs nothing, whatever size it
//! declares.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::{Decompress, FlushDecompress, Status};
use rawzip::{CompressionMethod, ZipFileHeaderRecord, ZipSliceArchive, ZipSliceEntry};

use crate::error::quoted;
use crate::{ArchiveCode, ArchiveError, ArchiveLimits};

const END_RECORD: usize = 22;
const END_SIGNATURE: &[u8; 4] = b"PK\x05\x06";
/// The record by which exported programs of PyTorch 2.6 and 2.7 are recognized.
const FLAT_PROGRAM: &str = "serialized_exported_program.json";
const FLAG_ENCRYPTED: u16 = 1 | 1 << 6 | 1 << 13;
const FLAG_PATCH: u16 = 1 << 5;

/// Storage method of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Uncompressed.
    Stored,
    /// A raw deflate stream.
    Deflated,
}

/// One record of the container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    name: String,
    method: Method,
    crc: u32,
    data: Range<usize>,
    size: u64,
}

impl Record {
    /// Returns the name without the top folder, such as `data/0`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the storage method.
    pub fn method(&self) -> Method {
        self.method
    }

    /// Returns the CRC-32 of the inflated bytes according to the directory.
    pub fn crc(&self) -> u32 {
        self.crc
    }

    /// Returns the byte range of the (possibly deflated) data in the file.
    pub fn data_range(&self) -> Range<usize> {
        self.data.clone()
    }

    /// Returns the inflated size in bytes according to the directory.
    pub fn size(&self) -> u64 {
        self.size
    }
}

/// The records of a container whose headers have been checked, and the bytes of the file.
#[derive(Debug)]
pub struct ZipReader<'a> {
    bytes: &'a [u8],
    top: String,
    /// In the order of the central directory.
    records: Vec<Record>,
    /// Indices of `records` sorted by name, for binary search. A hash table with attacker-chosen keys would be open to
    /// collision attacks.
    by_name: Vec<u32>,
    limits: ArchiveLimits,
    inflated: AtomicU64,
}

impl<'a> ZipReader<'a> {
    /// Checks the headers of the container in `bytes`.
    ///
    /// # Errors
    ///
    /// Returns `A0001` to `A0008` if the container is invalid or unsupported, and `A0090` if `limits` are exceeded.
    pub fn open(bytes: &'a [u8], limits: &ArchiveLimits) -> Result<Self, ArchiveError> {
        Self::open_rooted(bytes, None, limits)
    }

    /// As [`ZipReader::open`], except that a container with a record `flat` beside all folders has no top folder: the names
    /// of its records are kept whole.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`ZipReader::open`].
    pub fn open_flat_or_rooted(
        bytes: &'a [u8],
        flat: &str,
        limits: &ArchiveLimits,
    ) -> Result<Self, ArchiveError> {
        Self::open_rooted(bytes, Some(flat), limits)
    }

    fn open_rooted(
        bytes: &'a [u8],
        flat: Option<&str>,
        limits: &ArchiveLimits,
    ) -> Result<Self, ArchiveError> {
        let archive = locate(bytes)?;
        let directory = archive.directory_offset();
        let mut raw = Vec::new();
        let mut spans = Vec::new();
        let mut count: u64 = 0;
        let mut entries = archive.entries();
        while let Some(header) = entries.next_entry().map_err(|e| broken_directory(&e, directory))? {
            count += 1;
            if raw.len() >= limits.records {
                return Err(limit(format!("more than {} records", limits.records)));
            }
            let (full, record, span) = check_entry(&archive, &header, directory, limits)?;
            spans.push((span, raw.len()));
            raw.push((full, record));
        }
        if count != archive.entries_hint() {
            let declared = archive.entries_hint();
            let message = format!("the end record counts {declared} records, the directory has {count}");
            return Err(ArchiveError::new(ArchiveCode::Directory, message));
        }
        check_overlaps(&mut spans, &raw)?;
        let (top, records) = strip_top_folder(raw, flat)?;
        let by_name = sort_names(&records)?;
        Ok(ZipReader { bytes, top, records, by_name, limits: limits.clone(), inflated: AtomicU64::new(0) })
    }

    /// Returns the top folder of all records, which is the name of the archive; empty if there is none.
    pub fn top_folder(&self) -> &str {
        &self.top
    }

    /// Returns all records, in the order of the central directory.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// Returns the record `name` (without the top folder), if there is one.
    pub fn find(&self, name: &str) -> Option<&Record> {
        let found =
            self.by_name.binary_search_by(|&i| self.records[i as usize].name.as_str().cmp(name)).ok()?;
        Some(&self.records[self.by_name[found] as usize])
    }

    /// Returns the record `name` (without the top folder).
    ///
    /// # Errors
    ///
    /// Returns `A0011` if there is no such record.
    pub fn require(&self, name: &str) -> Result<&Record, ArchiveError> {
        self.find(name).ok_or_else(|| {
            ArchiveError::new(ArchiveCode::Missing, "the archive has no such record").in_record(name)
        })
    }

    /// Returns the inflated bytes of a record of this archive; stored records are borrowed.
    ///
    /// # Errors
    ///
    /// Returns `A0009` if the record does not inflate, `A0010` if the checksum differs, and `A0090` if the ratio or
    /// total size limit is exceeded.
    pub fn read(&self, record: &Record) -> Result<Cow<'a, [u8]>, ArchiveError> {
        if record.method == Method::Deflated {
            let before = self.inflated.fetch_add(record.size, Ordering::Relaxed);
            let allowed = self.limits.inflated_of(self.bytes.len());
            if before.saturating_add(record.size) > allowed {
                let message = format!("inflated records take more than {allowed} bytes");
                return Err(limit(message).in_record(&record.name));
            }
        }
        unpack(record, self.raw(record), &self.limits)
    }

    /// Returns the limits for an archive that is a record of this one: what both inflate together counts as inflated by this
    /// archive, once [`ZipReader::charge`] was called with the inner one.
    pub fn inner_limits(&self) -> ArchiveLimits {
        let allowed = self.limits.inflated_of(self.bytes.len());
        let left = allowed.saturating_sub(self.inflated.load(Ordering::Relaxed));
        ArchiveLimits { inflated_bytes: left, inflated_per_byte: 0, ..self.limits.clone() }
    }

    /// Counts what an archive within this one has inflated.
    pub fn charge(&self, inner: &ZipReader<'_>) {
        self.inflated.fetch_add(inner.inflated.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Copies a record as it is in the file, to be read after the archive is dropped. Its inflated size does not count
    /// towards the limit of the archive.
    pub fn detach(&self, record: &Record) -> DetachedRecord {
        let raw = self.raw(record).to_vec();
        DetachedRecord { record: record.clone(), raw, limits: self.limits.clone() }
    }

    /// Returns the bytes of a record as they are in the file, possibly deflated, without verifying the checksum.
    ///
    /// # Panics
    /// Panics if the record is of another archive and beyond the end of this one.
    pub fn raw(&self, record: &Record) -> &'a [u8] {
        self.bytes.get(record.data.clone()).expect("invariant: ranges of records were checked when opened")
    }
}

/// A record copied out of its archive.
#[derive(Debug)]
pub struct DetachedRecord {
    record: Record,
    raw: Vec<u8>,
    limits: ArchiveLimits,
}

impl DetachedRecord {
    /// Returns name, sizes and checksum.
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// Returns the inflated bytes.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`ZipReader::read`], except for the total size limit.
    pub fn read(&self) -> Result<Cow<'_, [u8]>, ArchiveError> {
        unpack(&self.record, &self.raw, &self.limits)
    }
}

/// Inflates the bytes of a record if necessary and verifies the checksum.
fn unpack<'b>(record: &Record, raw: &'b [u8], limits: &ArchiveLimits) -> Result<Cow<'b, [u8]>, ArchiveError> {
    let bytes = match record.method {
        Method::Stored => Cow::Borrowed(raw),
        Method::Deflated => Cow::Owned(inflate(record, raw, limits).map_err(|e| e.in_record(&record.name))?),
    };
    let crc = crc32fast::hash(&bytes);
    if crc != record.crc {
        let message = format!("checksum {crc:08x} differs from the recorded {:08x}", record.crc);
        return Err(ArchiveError::new(ArchiveCode::Checksum, message).in_record(&record.name));
    }
    Ok(bytes)
}

fn inflate(record: &Record, raw: &[u8], limits: &ArchiveLimits) -> Result<Vec<u8>, ArchiveError> {
    if record.size > limits.ratio_free_bytes && record.size > limits.ratio.saturating_mul(raw.len() as u64) {
        let (from, to) = (raw.len(), record.size);
        return Err(limit(format!(
            "the header declares {to} inflated bytes for {from} bytes, more than {} to one",
            limits.ratio
        )));
    }
    let wrong = |what: &str| ArchiveError::new(ArchiveCode::Inflate, what);
    let size =
        usize::try_from(record.size).map_err(|_| limit("the record does not fit into memory".into()))?;
    // The ratio has been checked, so the allocation is proportional to bytes that are present. The extra byte makes a
    // stream that is too long detectable.
    let mut out = Vec::new();
    out.try_reserve_exact(size + 1).map_err(|_| limit(format!("no memory for {size} bytes")))?;
    let mut machine = Decompress::new(false);
    let status = machine
        .decompress_vec(raw, &mut out, FlushDecompress::Finish)
        .map_err(|e| wrong("the deflate stream is damaged").at(e.needs_dictionary().map_or(0, u64::from)))?;
    if out.len() != size {
        return Err(wrong(&format!(
            "inflates to {}{} bytes instead of {size}",
            out.len(),
            match status {
                Status::StreamEnd => "",
                _ => " or more",
            }
        )));
    }
    if status != Status::StreamEnd || machine.total_in() != raw.len() as u64 {
        return Err(wrong("the deflate stream does not end where the record ends"));
    }
    Ok(out)
}

/// Locates the end record, which must end the file, and the directory before it.
fn locate(bytes: &[u8]) -> Result<ZipSliceArchive<&[u8]>, ArchiveError> {
    let not_zip = |message: &str| ArchiveError::new(ArchiveCode::NotZip, message);
    let Some(end) = bytes.len().checked_sub(END_RECORD) else {
        return Err(not_zip("too short for a zip file"));
    };
    if &bytes[end..end + 4] != END_SIGNATURE {
        let has_one = bytes.windows(4).rev().take(1 << 16).any(|w| w == END_SIGNATURE);
        return Err(not_zip(match has_one {
            true => "the file is truncated, the end record is damaged, or bytes follow it",
            false => "there is no end record: not a zip file, or truncated",
        }));
    }
    let archive = rawzip::ZipArchive::with_max_search_space(END_RECORD as u64)
        .locate_in_slice(bytes)
        .map_err(|(_, e)| not_zip(&format!("the end record is damaged: {e}")).at(end as u64))?;
    if archive.end_offset() != bytes.len() as u64 || archive.eocd_offset() != end as u64 {
        return Err(not_zip("the end record has a comment").at(end as u64));
    }
    let field = |at: usize| u16::from_le_bytes([bytes[end + at], bytes[end + at + 1]]);
    if field(4) != 0 || field(6) != 0 {
        return Err(
            ArchiveError::new(ArchiveCode::Directory, "the archive is one of several volumes").at(end as u64)
        );
    }
    let declared = u64::from(field(16)) | u64::from(field(18)) << 16;
    if declared != u64::from(u32::MAX) && declared != archive.directory_offset() {
        let at = archive.directory_offset();
        let message = format!("the directory is at byte {at}, but the end record states {declared}");
        return Err(ArchiveError::new(ArchiveCode::Directory, message).at(end as u64));
    }
    Ok(archive)
}

type Checked = (String, Record, Range<u64>);

/// Checks a directory entry against its local header and data descriptor.
fn check_entry(
    archive: &ZipSliceArchive<&[u8]>,
    header: &ZipFileHeaderRecord<'_>,
    directory: u64,
    limits: &ArchiveLimits,
) -> Result<Checked, ArchiveError> {
    let path = header.file_path();
    let name = check_name(path.as_ref(), limits).map_err(|e| e.at(header.central_directory_offset()))?;
    let place = |e: ArchiveError| e.in_record(&name);
    let flags = header.flags().bits();
    if flags & FLAG_ENCRYPTED != 0 {
        return Err(place(ArchiveError::new(ArchiveCode::Encrypted, "the record is encrypted")));
    }
    if flags & FLAG_PATCH != 0 {
        return Err(place(ArchiveError::new(
            ArchiveCode::Compression,
            "compressed patched data (flag bit 5) is not supported",
        )));
    }
    let method = match header.compression_method() {
        CompressionMethod::STORE => Method::Stored,
        CompressionMethod::DEFLATE => Method::Deflated,
        other => {
            let message = format!("compression method {}", other.as_u16());
            return Err(place(ArchiveError::new(ArchiveCode::Compression, message)));
        }
    };
    if method == Method::Stored && header.compressed_size_hint() != header.uncompressed_size_hint() {
        return Err(place(ArchiveError::new(
            ArchiveCode::Directory,
            "a stored record has two different sizes",
        )));
    }
    let start = header.local_header_offset();
    let entry = archive.get_entry(header.wayfinder()).map_err(|e| {
        place(
            ArchiveError::new(ArchiveCode::LocalHeader, format!("no record at the directory's offset: {e}"))
                .at(start),
        )
    })?;
    check_local(header, &entry).map_err(|e| place(e).at(start))?;
    let (from, to) = entry.compressed_data_range();
    if to > directory {
        return Err(place(
            ArchiveError::new(ArchiveCode::Overlap, "the record overlaps the central directory").at(start),
        ));
    }
    let data = from as usize..to as usize;
    let record = Record {
        name: String::new(),
        method,
        crc: header.crc32(),
        data,
        size: header.uncompressed_size_hint(),
    };
    Ok((name, record, start..to))
}

fn check_local(header: &ZipFileHeaderRecord<'_>, entry: &ZipSliceEntry<'_>) -> Result<(), ArchiveError> {
    let local = entry.local_header();
    let differs = |what: &str| {
        let message = format!("local header and directory disagree about the {what}");
        Err(ArchiveError::new(ArchiveCode::LocalHeader, message))
    };
    if local.file_path().as_ref() != header.file_path().as_ref() {
        return differs("name");
    }
    if local.compression_method() != header.compression_method() {
        return differs("compression method");
    }
    if local.flags().bits() != header.flags().bits() {
        return differs("flags");
    }
    let sizes = (header.compressed_size_hint(), header.uncompressed_size_hint());
    let local_sizes = (local.compressed_size_hint(), local.uncompressed_size_hint());
    let descriptor = entry.data_descriptor().map_err(|e| {
        ArchiveError::new(ArchiveCode::LocalHeader, format!("the data descriptor is damaged: {e}"))
    })?;
    let Some(descriptor) = descriptor else {
        return match () {
            () if local_sizes != sizes => differs("size"),
            () if local.crc32() != header.crc32() => differs("checksum"),
            () => Ok(()),
        };
    };
    if local_sizes != (0, 0) && local_sizes != sizes {
        return differs("size");
    }
    if local.crc32() != 0 && local.crc32() != header.crc32() {
        return differs("checksum");
    }
    let found = (descriptor.compressed_size(), descriptor.uncompressed_size());
    // Some writers use eight-byte sizes in the descriptor of a small record beyond the fourth gigabyte. Read as
    // four-byte sizes, these are the low and high half of the first size.
    let wide = (sizes.0 & 0xffff_ffff, sizes.0 >> 32);
    if descriptor.crc32() != header.crc32() || (found != sizes && found != wide) {
        let message = "the data descriptor disagrees with the directory";
        return Err(ArchiveError::new(ArchiveCode::LocalHeader, message));
    }
    Ok(())
}

/// Returns the full name of a record as text, if it is a relative path that stays inside the archive.
fn check_name(raw: &[u8], limits: &ArchiveLimits) -> Result<String, ArchiveError> {
    if raw.len() > limits.name_bytes {
        return Err(limit(format!("a record's name is longer than {} bytes", limits.name_bytes)));
    }
    let shown = || quoted(&String::from_utf8_lossy(raw));
    let refuse =
        |why: &str| ArchiveError::new(ArchiveCode::RecordName, format!("the record name {} {why}", shown()));
    let name = std::str::from_utf8(raw).map_err(|_| refuse("is not UTF-8"))?;
    if name.starts_with('/') {
        return Err(refuse("is absolute"));
    }
    if name.contains(|c: char| c.is_control() || c == '\\') {
        return Err(refuse("has a control character or a backslash"));
    }
    let parts = name.strip_suffix('/').unwrap_or(name);
    match parts.split('/').find(|p| matches!(*p, "" | "." | "..")) {
        Some("") => Err(refuse("has an empty part")),
        Some(_) => Err(refuse("has a `.` or `..` part")),
        None => Ok(name.to_owned()),
    }
}

fn check_overlaps(spans: &mut [(Range<u64>, usize)], raw: &[(String, Record)]) -> Result<(), ArchiveError> {
    spans.sort_by_key(|(span, _)| (span.start, span.end));
    for pair in spans.windows(2) {
        let [(before, _), (span, index)] = pair else { continue };
        if span.start < before.end {
            let error = ArchiveError::new(ArchiveCode::Overlap, "the record overlaps another record");
            return Err(error.in_record(&raw[*index].0).at(span.start));
        }
    }
    Ok(())
}

/// Strips the top folder of the first record from all names, unless one of them is `flat`. Drops entries of empty folders.
fn strip_top_folder(
    raw: Vec<(String, Record)>,
    flat: Option<&str>,
) -> Result<(String, Vec<Record>), ArchiveError> {
    let outside = |name: &str| {
        ArchiveError::new(
            ArchiveCode::RecordName,
            format!("the record {} is outside of the archive's folder", quoted(name)),
        )
    };
    let Some((first, _)) = raw.first() else {
        return Err(ArchiveError::new(ArchiveCode::Directory, "the archive has no records"));
    };
    if flat.is_none() && raw.iter().any(|(name, _)| name == FLAT_PROGRAM) {
        return Err(exported_program());
    }
    let top = match flat {
        Some(flat) if raw.iter().any(|(name, _)| name == flat) => String::new(),
        _ => first.split_once('/').ok_or_else(|| outside(first))?.0.to_owned(),
    };
    let mut records = Vec::with_capacity(raw.len());
    for (full, mut record) in raw {
        let inside = match top.is_empty() {
            true => Some(full.as_str()),
            false => full.strip_prefix(&top).and_then(|r| r.strip_prefix('/')),
        };
        let inside = inside.ok_or_else(|| outside(&full))?;
        if inside.is_empty() || inside.ends_with('/') {
            if record.size != 0 {
                let message = format!("the folder {} has content", quoted(&full));
                return Err(ArchiveError::new(ArchiveCode::RecordName, message));
            }
            continue;
        }
        record.name = inside.to_owned();
        records.push(record);
    }
    Ok((top, records))
}

/// Returns the error for an exported program where another kind of archive is expected.
pub(crate) fn exported_program() -> ArchiveError {
    ArchiveError::new(
        ArchiveCode::Value,
        "this is an exported program (`torch.export.save`), not a module or weights; `flambeau convert FILE.pt2 FILE.pt` makes a module of it",
    )
}

fn sort_names(records: &[Record]) -> Result<Vec<u32>, ArchiveError> {
    let count = u32::try_from(records.len()).map_err(|_| limit("more than 2^32 records".into()))?;
    let mut order: Vec<u32> = (0..count).collect();
    order.sort_by(|&a, &b| records[a as usize].name.cmp(&records[b as usize].name));
    for pair in order.windows(2) {
        let (a, b) = (&records[pair[0] as usize], &records[pair[1] as usize]);
        if a.name == b.name {
            return Err(
                ArchiveError::new(ArchiveCode::Duplicate, "two records have this name").in_record(&a.name)
            );
        }
    }
    Ok(order)
}

fn broken_directory(error: &rawzip::Error, directory: u64) -> ArchiveError {
    ArchiveError::new(ArchiveCode::Directory, format!("the central directory is damaged: {error}"))
        .at(directory)
}

fn limit(message: String) -> ArchiveError {
    ArchiveError::new(ArchiveCode::Limit, message)
}

//! A writer of the zip container whose output is byte for byte that of PyTorch.
//!
//! The data of each record is aligned to 64 bytes, so that a mapped file can be used in place: the local header has an
//! extra field `FB` filled with `Z` as padding. Checksum and sizes are in a data descriptor after the data and are zero
//! in the local header. Timestamps are zero, so the output is deterministic. Records and archives beyond 4 GiB, or with
//! more than 65,534 records, get zip64 fields.

use std::io::{self, Write};

use flate2::{Compress, Compression, FlushCompress, Status};

use crate::{ArchiveCode, ArchiveError};

const ALIGNMENT: u64 = 64;
const LOCAL_HEADER: u64 = 30;
/// Bit 3: a data descriptor follows the data. Bit 11: names are UTF-8.
const FLAGS: u16 = 0x0808;
const STORED: u16 = 0;
const DEFLATED: u16 = 8;
/// Maximum size in bytes of a record that `deflate` stores without compression.
const MAX_STORED: usize = 200;

struct Entry {
    name: String,
    method: u16,
    crc: u32,
    packed: u64,
    size: u64,
    at: u64,
}

/// Writes records in sequence; [`ZipWriter::finish`] writes the directory.
pub struct ZipWriter<W: Write> {
    out: W,
    at: u64,
    /// The top folder with a slash, or nothing.
    prefix: String,
    entries: Vec<Entry>,
}

impl<W: Write> ZipWriter<W> {
    /// Creates an archive with top folder `top`, written to `out` from its current position, which counts as offset 0.
    pub fn new(out: W, top: &str) -> Self {
        ZipWriter { out, at: 0, prefix: format!("{top}/"), entries: Vec::new() }
    }

    /// Creates an archive without a top folder.
    pub fn flat(out: W) -> Self {
        ZipWriter { out, at: 0, prefix: String::new(), entries: Vec::new() }
    }

    /// Adds an uncompressed record.
    ///
    /// # Errors
    ///
    /// Returns `A0091` if `out` fails, `A0004` if the name is too long for the format.
    pub fn store(&mut self, name: &str, bytes: &[u8]) -> Result<(), ArchiveError> {
        self.record(name, STORED, bytes, crc32fast::hash(bytes), bytes.len() as u64)
    }

    /// Adds a record; deflates it if it has more than 200 bytes.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`ZipWriter::store`].
    pub fn deflate(&mut self, name: &str, bytes: &[u8]) -> Result<(), ArchiveError> {
        if bytes.len() <= MAX_STORED {
            return self.store(name, bytes);
        }
        let packed = deflated(bytes);
        self.record(name, DEFLATED, &packed, crc32fast::hash(bytes), bytes.len() as u64)
    }

    /// Returns the names and checksums of the records so far, in order.
    pub fn written(&self) -> impl Iterator<Item = (&str, u32)> {
        self.entries.iter().map(|e| (e.name.as_str(), e.crc))
    }

    /// Writes the directory and returns the underlying writer.
    ///
    /// # Errors
    ///
    /// Returns `A0091` if the underlying writer fails.
    pub fn finish(mut self) -> Result<W, ArchiveError> {
        let start = self.at;
        let mut directory = Vec::new();
        for entry in &self.entries {
            central_header(&mut directory, &self.prefix, entry);
        }
        let (count, size) = (self.entries.len() as u64, directory.len() as u64);
        let wide =
            count >= u64::from(u16::MAX) || start >= u64::from(u32::MAX) || size >= u64::from(u32::MAX);
        if wide {
            zip64_end(&mut directory, count, size, start);
        }
        let short = if wide { u16::MAX } else { count as u16 };
        directory.extend_from_slice(b"PK\x05\x06\0\0\0\0");
        directory.extend_from_slice(&short.to_le_bytes());
        directory.extend_from_slice(&short.to_le_bytes());
        directory.extend_from_slice(&(if wide { u32::MAX } else { size as u32 }).to_le_bytes());
        directory.extend_from_slice(&(if wide { u32::MAX } else { start as u32 }).to_le_bytes());
        directory.extend_from_slice(&[0, 0]);
        self.put(&directory)?;
        self.out.flush().map_err(io_failed)?;
        Ok(self.out)
    }

    fn record(
        &mut self,
        name: &str,
        method: u16,
        data: &[u8],
        crc: u32,
        size: u64,
    ) -> Result<(), ArchiveError> {
        let at = self.at;
        let packed = data.len() as u64;
        let name_len = self.prefix.len() + name.len();
        let name_len = u16::try_from(name_len).map_err(|_| {
            ArchiveError::new(ArchiveCode::RecordName, "a record's name is too long for the format")
        })?;
        let mut head = Vec::with_capacity(256);
        head.extend_from_slice(b"PK\x03\x04");
        head.extend_from_slice(&version_needed(method).to_le_bytes());
        head.extend_from_slice(&FLAGS.to_le_bytes());
        head.extend_from_slice(&method.to_le_bytes());
        head.extend_from_slice(&[0; 16]);
        head.extend_from_slice(&name_len.to_le_bytes());
        let wide = is_wide(packed, size);
        let mut extra = Vec::new();
        if wide {
            extra.extend_from_slice(&[1, 0, 16, 0]);
            extra.extend_from_slice(&[0; 16]);
        }
        let data_at = at + LOCAL_HEADER + u64::from(name_len) + extra.len() as u64 + 4;
        let padding = data_at.next_multiple_of(ALIGNMENT) - data_at;
        extra.extend_from_slice(b"FB");
        extra.extend_from_slice(&(padding as u16).to_le_bytes());
        extra.resize(extra.len() + padding as usize, b'Z');
        head.extend_from_slice(&(extra.len() as u16).to_le_bytes());
        head.extend_from_slice(self.prefix.as_bytes());
        head.extend_from_slice(name.as_bytes());
        head.extend_from_slice(&extra);
        self.put(&head)?;
        self.put(data)?;
        let mut tail = Vec::with_capacity(24);
        tail.extend_from_slice(b"PK\x07\x08");
        tail.extend_from_slice(&crc.to_le_bytes());
        if wide {
            tail.extend_from_slice(&packed.to_le_bytes());
            tail.extend_from_slice(&size.to_le_bytes());
        } else {
            tail.extend_from_slice(&(packed as u32).to_le_bytes());
            tail.extend_from_slice(&(size as u32).to_le_bytes());
        }
        self.put(&tail)?;
        self.entries.push(Entry { name: name.to_owned(), method, crc, packed, size, at });
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), ArchiveError> {
        self.out.write_all(bytes).map_err(io_failed)?;
        self.at += bytes.len() as u64;
        Ok(())
    }
}

fn version_needed(method: u16) -> u16 {
    if method == DEFLATED { 20 } else { 0 }
}

/// Returns true if the sizes of a record need the zip64 fields.
fn is_wide(packed: u64, size: u64) -> bool {
    packed.max(size) >= u64::from(u32::MAX)
}

fn central_header(out: &mut Vec<u8>, prefix: &str, entry: &Entry) {
    let wide = is_wide(entry.packed, entry.size);
    let far = entry.at >= u64::from(u32::MAX);
    let mut extra = Vec::new();
    if wide {
        extra.extend_from_slice(&entry.size.to_le_bytes());
        extra.extend_from_slice(&entry.packed.to_le_bytes());
    }
    if far {
        extra.extend_from_slice(&entry.at.to_le_bytes());
    }
    let short = |wide: bool, value: u64| if wide { u32::MAX } else { value as u32 };
    out.extend_from_slice(b"PK\x01\x02\0\0");
    out.extend_from_slice(&version_needed(entry.method).to_le_bytes());
    out.extend_from_slice(&FLAGS.to_le_bytes());
    out.extend_from_slice(&entry.method.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&entry.crc.to_le_bytes());
    out.extend_from_slice(&short(wide, entry.packed).to_le_bytes());
    out.extend_from_slice(&short(wide, entry.size).to_le_bytes());
    out.extend_from_slice(&((prefix.len() + entry.name.len()) as u16).to_le_bytes());
    let extra_len = if extra.is_empty() { 0 } else { extra.len() + 4 };
    out.extend_from_slice(&(extra_len as u16).to_le_bytes());
    out.extend_from_slice(&[0; 10]);
    out.extend_from_slice(&short(far, entry.at).to_le_bytes());
    out.extend_from_slice(prefix.as_bytes());
    out.extend_from_slice(entry.name.as_bytes());
    if !extra.is_empty() {
        out.extend_from_slice(&[1, 0]);
        out.extend_from_slice(&(extra.len() as u16).to_le_bytes());
        out.extend_from_slice(&extra);
    }
}

fn zip64_end(out: &mut Vec<u8>, count: u64, size: u64, start: u64) {
    let record_at = start + size;
    out.extend_from_slice(b"PK\x06\x06");
    out.extend_from_slice(&44_u64.to_le_bytes());
    out.extend_from_slice(&[45, 0, 45, 0]);
    out.extend_from_slice(&[0; 8]);
    for field in [count, count, size, start] {
        out.extend_from_slice(&field.to_le_bytes());
    }
    out.extend_from_slice(b"PK\x06\x07\0\0\0\0");
    out.extend_from_slice(&record_at.to_le_bytes());
    out.extend_from_slice(&1_u32.to_le_bytes());
}

fn deflated(bytes: &[u8]) -> Vec<u8> {
    let mut machine = Compress::new(Compression::best(), false);
    let mut out = Vec::with_capacity(bytes.len() / 3 + 64);
    loop {
        let used = machine.total_in() as usize;
        let status = machine
            .compress_vec(&bytes[used..], &mut out, FlushCompress::Finish)
            .expect("invariant: a fresh compressor accepts any input");
        if status == Status::StreamEnd {
            return out;
        }
        out.reserve(out.capacity().max(64));
    }
}

fn io_failed(error: io::Error) -> ArchiveError {
    ArchiveError::new(ArchiveCode::Io, format!("cannot write: {error}"))
}

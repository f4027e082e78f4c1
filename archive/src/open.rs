//! An opened archive: its container, format version and byte order.

use crate::pickle::{Pickle, read_pickle};
use crate::zip::{ZipReader, exported_program};
use crate::{ArchiveCode, ArchiveError, ArchiveLimits, ByteOrder};

/// The supported format versions.
pub const VERSIONS: std::ops::RangeInclusive<u64> = 1..=10;

/// An archive whose container, version and byte order are valid.
#[derive(Debug)]
pub struct Archive<'a> {
    zip: ZipReader<'a>,
    version: u64,
    byte_order: ByteOrder,
    limits: ArchiveLimits,
}

impl<'a> Archive<'a> {
    /// Opens the archive in `bytes`. Reads no records except for `version` and `byteorder`.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`ZipReader::open`], `A0011` to `A0013` if version or byte order are missing or
    /// invalid, and `A0044` if this is an exported program.
    pub fn open(bytes: &'a [u8], limits: &ArchiveLimits) -> Result<Self, ArchiveError> {
        let zip = ZipReader::open(bytes, limits)?;
        if zip.find("archive_format").is_some() {
            return Err(exported_program());
        }
        let version = read_version(&zip)?;
        let byte_order = read_byte_order(&zip)?;
        Ok(Archive { zip, version, byte_order, limits: limits.clone() })
    }

    /// Returns the container.
    pub fn zip(&self) -> &ZipReader<'a> {
        &self.zip
    }

    /// Returns the format version, which determines the semantics of operators.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Returns the byte order of the storages.
    pub fn byte_order(&self) -> ByteOrder {
        self.byte_order
    }

    /// Returns the limits that the archive was opened with.
    pub fn limits(&self) -> &ArchiveLimits {
        &self.limits
    }

    /// Reads the pickle in the record `name`.
    ///
    /// # Errors
    ///
    /// Returns `A0011` if there is no such record, and the errors of [`ZipReader::read`] and [`read_pickle`].
    pub fn pickle(&self, name: &str) -> Result<Pickle, ArchiveError> {
        let bytes = self.zip.read(self.zip.require(name)?)?;
        read_pickle(&bytes, &self.limits).map_err(|e| e.in_record(name))
    }
}

/// Reads the number in `version`, or in `.data/version` of newer archives.
fn read_version(zip: &ZipReader<'_>) -> Result<u64, ArchiveError> {
    let (new, old) = (zip.find(".data/version"), zip.find("version"));
    if let (Some(new), Some(_)) = (new, old) {
        return Err(ArchiveError::new(
            ArchiveCode::Version,
            "the archive has both `version` and `.data/version`",
        )
        .in_record(new.name()));
    }
    let record = match new.or(old) {
        Some(record) => record,
        None => zip.require("version")?,
    };
    let bytes = zip.read(record)?;
    let bad = |message: String| ArchiveError::new(ArchiveCode::Version, message).in_record(record.name());
    let text = std::str::from_utf8(&bytes).ok().map(str::trim_ascii);
    let number = text.filter(|t| t.bytes().all(|b| b.is_ascii_digit())).and_then(|t| t.parse().ok());
    let number = number.ok_or_else(|| bad("the format version is not a number".into()))?;
    if !VERSIONS.contains(&number) {
        let (low, high) = (VERSIONS.start(), VERSIONS.end());
        return Err(bad(format!("format version {number} is not supported; versions {low} to {high} are")));
    }
    Ok(number)
}

/// Reads the byte order. Archives without the record predate it and were written on little-endian machines.
fn read_byte_order(zip: &ZipReader<'_>) -> Result<ByteOrder, ArchiveError> {
    let Some(record) = zip.find("byteorder") else { return Ok(ByteOrder::Little) };
    match &*zip.read(record)? {
        b"little" => Ok(ByteOrder::Little),
        b"big" => Ok(ByteOrder::Big),
        _ => Err(ArchiveError::new(ArchiveCode::Text, "the byte order is neither `little` nor `big`")
            .in_record("byteorder")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::zip::ZipWriter;

    fn open(records: &[(&str, &[u8])]) -> Result<(u64, ByteOrder), ArchiveError> {
        let mut out = ZipWriter::new(Vec::new(), "x");
        for (name, bytes) in records {
            out.store(name, bytes).expect("the memory suffices");
        }
        let bytes = out.finish().expect("the memory suffices");
        Archive::open(&bytes, &ArchiveLimits::default()).map(|a| (a.version(), a.byte_order()))
    }

    #[test]
    fn version_and_byte_order() {
        assert_eq!(open(&[("version", b"3\n")]), Ok((3, ByteOrder::Little)));
        assert_eq!(open(&[(".data/version", b"10\n"), ("byteorder", b"big")]), Ok((10, ByteOrder::Big)));
        for (records, code) in [
            (&[("version", &b"-3\n"[..])][..], ArchiveCode::Version),
            (&[("version", b"")], ArchiveCode::Version),
            (&[("version", b"0\n")], ArchiveCode::Version),
            (&[("version", b"11\n")], ArchiveCode::Version),
            (&[("version", b"99999999999999999999")], ArchiveCode::Version),
            (&[("version", b"3"), (".data/version", b"3")], ArchiveCode::Version),
            (&[("data.pkl", b"N.")], ArchiveCode::Missing),
            (&[("version", b"3\n"), ("byteorder", b"middle")], ArchiveCode::Text),
        ] {
            assert_eq!(open(records).expect_err("refused").code(), code, "{records:?}");
        }
    }
}

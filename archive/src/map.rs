//! Memory-mapped files, for tensors that are not copied.
//!
//! The operating system reads the pages of a mapped file on first access and shares them between processes. If the file
//! is modified or truncated while it is mapped, tensors change or the process is killed (`SIGBUS`). Files are
//! therefore mapped only on request, and the documentation of each such option states this condition. The command-line
//! tool maps by default, because its process is short-lived and runs one command. This crate never modifies a file in place: it
//! replaces files.
#![allow(
    unsafe_code,
    reason = "a mapped file can change while it is borrowed, which the compiler cannot check"
)]

use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use flambeau_tensor::ForeignBytes;
use memmap2::Mmap;

use crate::{ArchiveCode, ArchiveError};

/// A read-only mapping of a file, or of a part of it.
#[derive(Debug)]
pub struct Mapping {
    map: Arc<Mmap>,
    range: Range<usize>,
}

impl Mapping {
    /// Maps the file at `path`. The file must not be modified or truncated, by any process, as long as the mapping, or
    /// a tensor created from it, exists.
    ///
    /// # Errors
    ///
    /// Returns `A0091` if the file cannot be opened or mapped.
    pub fn open(path: &Path) -> Result<Arc<Mapping>, ArchiveError> {
        let failed = |e: std::io::Error| {
            ArchiveError::new(ArchiveCode::Io, format!("cannot map {}: {e}", path.display()))
        };
        let file = File::open(path).map_err(failed)?;
        if file.metadata().is_ok_and(|metadata| metadata.is_dir()) {
            return Err(failed(std::io::ErrorKind::IsADirectory.into()));
        }
        // SAFETY: the mapping is read-only and shared (`MAP_SHARED`), and its length is that of the file at this moment. So
        // another process that writes the file changes the mapped bytes, and one that truncates it makes them inaccessible.
        // The caller guarantees that the file is neither modified nor truncated while it is mapped; the condition is
        // documented above and at each option that maps.
        let map = unsafe { Mmap::map(&file) }.map_err(failed)?;
        let range = 0..map.len();
        Ok(Arc::new(Mapping { map: Arc::new(map), range }))
    }

    /// Returns the number of mappings and tensors that keep the file mapped.
    #[cfg(test)]
    pub(crate) fn users(&self) -> usize {
        Arc::strong_count(&self.map)
    }

    /// Returns the bytes of the mapped file or part.
    pub fn bytes(&self) -> &[u8] {
        &self.map[self.range.clone()]
    }

    /// Returns the part at a byte range of this mapping, for an archive that is a record of another one, or `None` if the
    /// range is not within this mapping.
    pub fn part(&self, range: Range<usize>) -> Option<Arc<Mapping>> {
        self.bytes().get(range.clone())?;
        let range = self.range.start + range.start..self.range.start + range.end;
        Some(Arc::new(Mapping { map: self.map.clone(), range }))
    }

    /// Returns a byte range of this mapping that keeps the file mapped, or `None` if the range is not within it.
    pub fn share(&self, range: Range<usize>) -> Option<ForeignBytes> {
        self.part(range).map(|part| part as ForeignBytes)
    }
}

impl AsRef<[u8]> for Mapping {
    fn as_ref(&self) -> &[u8] {
        self.bytes()
    }
}

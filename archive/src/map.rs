//! Files as memory, for tensors that are not to be copied.
//!
//! The operating system shows the file's pages as bytes; they are read when touched and shared between processes.
//! What it cannot promise is that the bytes stay: if someone writes to or cuts the file while it is mapped, tensors
//! change under the program or its process is killed. So the library maps only where it is asked to, and the documents
//! of the option hand this condition to whoever asks; the command, which ends with what it was asked for and has nobody
//! else's work to lose, maps unless told otherwise. Files that this crate writes are replaced, never written into.
#![allow(unsafe_code, reason = "memory that a file stands behind is outside what the language can promise")]

use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use flambeau_tensor::ForeignBytes;
use memmap2::Mmap;

use crate::{ArchiveError, Code};

/// A read-only mapping of a whole file.
#[derive(Debug)]
pub struct Mapping(Mmap);

impl Mapping {
    /// Maps the file at `path`. Nobody may change the file as long as the mapping, or a tensor made from it, lives.
    ///
    /// # Errors
    /// `A0091` if the file cannot be opened or mapped.
    pub fn open(path: &Path) -> Result<Arc<Mapping>, ArchiveError> {
        let failed =
            |e: std::io::Error| ArchiveError::new(Code::Io, format!("cannot map {}: {e}", path.display()));
        let file = File::open(path).map_err(failed)?;
        // SAFETY: the mapping is private and read-only, and its length is the file's. That the file stays as it is
        // while it is mapped is the caller's promise, named above and where the option is documented.
        let map = unsafe { Mmap::map(&file) }.map_err(failed)?;
        Ok(Arc::new(Mapping(map)))
    }

    /// All bytes of the file.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Some bytes of the file, which keep the mapping alive. `None` if the file is shorter.
    pub fn share(self: &Arc<Self>, range: Range<usize>) -> Option<ForeignBytes> {
        self.0.get(range.clone())?;
        Some(Arc::new(Part { map: self.clone(), range }))
    }
}

struct Part {
    map: Arc<Mapping>,
    range: Range<usize>,
}

impl AsRef<[u8]> for Part {
    fn as_ref(&self) -> &[u8] {
        &self.map.0[self.range.clone()]
    }
}

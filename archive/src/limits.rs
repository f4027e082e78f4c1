//! Resource limits of reading an archive.
//!
//! Archives are untrusted input. The sizes, counts and depths that an archive declares do not make this crate allocate
//! or loop beyond these limits and the number of bytes present. The defaults are generous for real archives and safe
//! for a service that opens untrusted files. [`ArchiveLimits::trusted`] lifts them for files of known origin.

/// Limits on the content of an archive. Exceeding one is an error of fault [`Fault::Limit`](crate::Fault::Limit).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ArchiveLimits {
    /// Number of records (zip entries) of an archive.
    pub records: usize,
    /// Length of a record name in bytes, including the top folder.
    pub name_bytes: usize,
    /// Total bytes of all inflated records of an archive, independent of its size.
    pub inflated_bytes: u64,
    /// Additional inflated bytes per byte of the archive, so that large models load.
    pub inflated_per_byte: u64,
    /// Inflated bytes per deflated byte of a record; checked only above [`ArchiveLimits::ratio_free_bytes`]. 0 allows none.
    pub ratio: u64,
    /// Inflated size in bytes up to which the ratio of a record is not checked, because short text compresses well.
    pub ratio_free_bytes: u64,
    /// Size of a pickle in bytes.
    pub pickle_bytes: usize,
    /// Number of opcodes of a pickle.
    pub pickle_ops: u64,
    /// Number of memo entries of a pickle.
    pub memo_entries: usize,
    /// Length of a string in a pickle, in bytes.
    pub text_bytes: usize,
    /// Nesting depth of the values of a pickle.
    pub depth: usize,
    /// Size of a source file in bytes.
    pub source_bytes: usize,
    /// Number of dimensions of a tensor.
    pub tensor_rank: usize,
    /// Total bytes of storages shared with a mapped file whose checksums are verified, in the order in which they are
    /// loaded. Further mapped storages are not verified, so that opening a file of gigabytes does not read all of it.
    /// This is safe: every byte pattern is a valid element, and checksums detect corruption, not tampering. Copied
    /// storages are always verified.
    pub mapped_checks: u64,
}

impl Default for ArchiveLimits {
    fn default() -> Self {
        ArchiveLimits {
            records: 65_536,
            name_bytes: 4096,
            inflated_bytes: 1 << 30,
            inflated_per_byte: 4,
            ratio: 200,
            ratio_free_bytes: 1 << 20,
            pickle_bytes: 256 << 20,
            pickle_ops: 64_000_000,
            memo_entries: 16_000_000,
            text_bytes: 64 << 20,
            depth: 1000,
            source_bytes: 64 << 20,
            tensor_rank: 64,
            mapped_checks: 16 << 20,
        }
    }
}

impl ArchiveLimits {
    /// Returns limits for trusted files: only those of the formats themselves (such as 32-bit ids within a pickle).
    /// Mapped storages are not verified.
    pub fn trusted() -> Self {
        ArchiveLimits {
            records: usize::MAX,
            name_bytes: usize::MAX,
            inflated_bytes: u64::MAX,
            inflated_per_byte: 0,
            ratio: u64::MAX,
            ratio_free_bytes: u64::MAX,
            pickle_bytes: usize::MAX,
            pickle_ops: u64::MAX,
            memo_entries: usize::MAX,
            text_bytes: usize::MAX,
            depth: usize::MAX,
            source_bytes: usize::MAX,
            tensor_rank: usize::MAX,
            mapped_checks: 0,
        }
    }

    /// Returns the total number of bytes that the inflated records of an archive of `bytes` bytes may have.
    pub(crate) fn inflated_of(&self, bytes: usize) -> u64 {
        self.inflated_bytes.saturating_add(self.inflated_per_byte.saturating_mul(bytes as u64))
    }
}

//! Every bound that reading an archive respects, in one place.
//!
//! An archive is input from a stranger. Nothing that it says about itself (a size, a count, a depth) makes this
//! crate allocate or loop beyond what these limits and the number of bytes really present allow. The defaults are
//! generous for the archives people have and harmless for a service that opens anything; [`Limits::trusted`] lifts
//! them for files whose origin is known.

/// Bounds on what an archive may ask for. Breaking one is an error of fault [`Fault::Limit`](crate::Fault::Limit).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Records (zip entries) in one archive.
    pub records: usize,
    /// Bytes in a record's name, its top folder included.
    pub name_bytes: usize,
    /// Bytes that all inflated records of one archive may take together, whatever its size.
    pub inflated_bytes: u64,
    /// Bytes that they may take beyond that for each byte of the archive, so that large models load.
    pub inflated_per_byte: u64,
    /// Inflated bytes per deflated byte of one record; looked at only above [`Limits::ratio_free_bytes`].
    pub ratio: u64,
    /// Inflated size up to which a record's ratio is not looked at: short text repeats itself.
    pub ratio_free_bytes: u64,
    /// Bytes of one pickle.
    pub pickle_bytes: usize,
    /// Operations of one pickle.
    pub pickle_ops: u64,
    /// Entries of a pickle's memo.
    pub memo_entries: usize,
    /// Bytes of one string in a pickle.
    pub text_bytes: usize,
    /// Nesting of the values that a pickle describes.
    pub depth: usize,
    /// Bytes of one source file.
    pub source_bytes: usize,
    /// Dimensions of one tensor.
    pub tensor_rank: usize,
    /// Bytes of storages shared with a mapped file that are read at once to compare their checksums, together. Those
    /// behind are taken as they are: a gigabyte opens in the time of reading this much, every byte pattern is a valid
    /// element, and checksums guard against decay, not against strangers. Copied storages are always checked.
    pub mapped_checks: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
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

impl Limits {
    /// No bounds but those of the formats themselves (32-bit ids inside one pickle, for instance); nothing that is mapped
    /// is checked.
    pub fn trusted() -> Self {
        Limits {
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

    /// Bytes that all inflated records of an archive of `bytes` may take together.
    pub(crate) fn inflated_of(&self, bytes: usize) -> u64 {
        self.inflated_bytes.saturating_add(self.inflated_per_byte.saturating_mul(bytes as u64))
    }
}

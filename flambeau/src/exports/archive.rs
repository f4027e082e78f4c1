//! Archives and weight files: options, bounds, errors.

pub use flambeau_archive::{
    ArchiveCode, ArchiveError, ArchiveInfo, ArchiveLimits, LoadError, LoadOptions, RecordInfo, Weights,
    has_code_file, info, replace_file, save_safetensors, save_state_dict,
};

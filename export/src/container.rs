//! Containers of exported programs: finds the records of a file in each layout.
//!
//! All layouts are zip files, read by the strict reader of the archive crate:
//!
//! | [`FileLayout`] | PyTorch | program | tensors |
//! |---|---|---|---|
//! | `Flat` | 2.6, 2.7 | `serialized_exported_program.json`, no top folder | two files of `torch.save` |
//! | `Pickled` | 2.8 | `models/NAME.json` | two files of `torch.save` per program |
//! | `Raw` | 2.9 and later | `models/NAME.json` | one record per storage, and a table in JSON |
//!
//! A file with the record `archive_format` has one of the newer layouts, and `Pickled` if it has the record
//! `data/weights/NAME.pt`. Example inputs are never read, since they may name classes of the user. Nothing is executed: a pickle
//! that names a function is an error.

mod weights;

use std::borrow::Cow;
use std::sync::Arc;

use flambeau_archive::Mapping;
use flambeau_archive::zip::ZipReader;

use crate::error::quoted;
use crate::json::Res;
use crate::model::{Constant, Map, Weight};
use crate::read::ReadOptions;
use crate::{ExportCode, ExportError};

const FLAT_PROGRAM: &str = "serialized_exported_program.json";
const FLAT_WEIGHTS: &str = "serialized_state_dict.pt";
const FLAT_CONSTANTS: &str = "serialized_constants.pt";
const FLAT_EXAMPLES: &str = "serialized_example_inputs.pt";
const MODELS: &str = "models/";
const DEFAULT_MODEL: &str = "model";

/// Limits on an exported program, in addition to those on its container, pickles and tensors. Exceeding one is an error of fault [`Fault::Limit`](crate::error::Fault::Limit).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Size in bytes of the JSON text of a program. Its model takes about four times as much memory.
    pub json_bytes: u64,
    /// Nesting depth of arrays and objects in JSON. A subgraph within a subgraph adds 7.
    pub depth: usize,
    /// Total bytes of weights that a file describes without having their elements: an empty record stands for zeros.
    pub zero_bytes: u64,
    /// Total bytes of additional files.
    pub extra_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { json_bytes: 256 << 20, depth: 256, zero_bytes: 256 << 20, extra_bytes: 256 << 20 }
    }
}

impl Limits {
    /// Returns limits for files of known origin: only those of the formats, and the depth, which bounds the stack.
    pub fn trusted() -> Self {
        Limits {
            json_bytes: u64::MAX,
            depth: Limits::default().depth,
            zero_bytes: u64::MAX,
            extra_bytes: u64::MAX,
        }
    }
}

/// The layout of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileLayout {
    /// PyTorch 2.6 and 2.7.
    Flat,
    /// PyTorch 2.8.
    Pickled,
    /// PyTorch 2.9 and later.
    Raw,
}

impl FileLayout {
    /// Returns a name for messages.
    pub fn name(self) -> &'static str {
        match self {
            FileLayout::Flat => "flat (2.6)",
            FileLayout::Pickled => "archive with pickled weights (2.8)",
            FileLayout::Raw => "archive with raw weights (2.9)",
        }
    }
}

/// An opened file: its records are found, and none of them is read.
#[derive(Debug)]
pub struct Container<'a> {
    zip: ZipReader<'a>,
    mapping: Option<Arc<Mapping>>,
    archive_limits: flambeau_archive::ArchiveLimits,
    limits: Limits,
    layout: FileLayout,
    /// Name of the program in an archive of several.
    model: String,
}

impl<'a> Container<'a> {
    /// Returns true if `bytes` are a zip file with the records of an exported program. Reads headers only.
    pub fn recognizes(bytes: &[u8], limits: &flambeau_archive::ArchiveLimits) -> bool {
        ZipReader::open_flat_or_rooted(bytes, FLAT_PROGRAM, limits)
            .is_ok_and(|zip| zip.find(FLAT_PROGRAM).is_some() || zip.find("archive_format").is_some())
    }

    /// Opens the container in `bytes`. If `mapping` is given, which must be of the same bytes, weights are shared with it.
    /// Without [`ReadOptions::model`] the program called `model` is taken, or the only one.
    ///
    /// # Errors
    ///
    /// Returns the errors of the container, `E000` if this is not an exported program or has no such model, and `E005` if
    /// the version of the archive is not supported.
    pub fn open(bytes: &'a [u8], mapping: Option<Arc<Mapping>>, options: &ReadOptions) -> Res<Self> {
        let zip = ZipReader::open_flat_or_rooted(bytes, FLAT_PROGRAM, &options.archive)?;
        let mut out = Container {
            zip,
            mapping,
            archive_limits: options.archive.clone(),
            limits: options.limits.clone(),
            layout: FileLayout::Flat,
            model: DEFAULT_MODEL.to_owned(),
        };
        if out.zip.find("archive_format").is_some() {
            out.check_format()?;
            out.select(options.model.as_deref())?;
            let pickled = out.zip.find(&out.pickled("weights")).is_some();
            out.layout = if pickled { FileLayout::Pickled } else { FileLayout::Raw };
        } else if out.zip.find(FLAT_PROGRAM).is_none() {
            let message = "this archive is not an exported program (`torch.export.save`)";
            return Err(ExportError::new(ExportCode::Layout, message));
        }
        Ok(out)
    }

    /// Checks the records that name format and version of the archive.
    fn check_format(&self) -> Res<()> {
        for (name, what, wanted, code) in [
            ("archive_format", "format", "pt2", ExportCode::Layout),
            ("archive_version", "version", "0", ExportCode::Schema),
        ] {
            let found = self.text(name, 1 << 10)?;
            if found.trim_ascii() != wanted {
                let (found, wanted) = (quoted(&found), quoted(wanted));
                let message = format!("the {what} of the archive is {found}; only {wanted} is supported");
                return Err(ExportError::new(code, message).in_record(name));
            }
        }
        Ok(())
    }

    /// Selects one of the programs of an archive.
    fn select(&mut self, wanted: Option<&str>) -> Res<()> {
        let names = self.models();
        let chosen = match wanted {
            Some(wanted) => names.iter().find(|n| **n == wanted),
            None => names.iter().find(|n| **n == DEFAULT_MODEL).or(match &names[..] {
                [only] => Some(only),
                _ => None,
            }),
        };
        let Some(&chosen) = chosen else {
            let wanted = wanted.unwrap_or(DEFAULT_MODEL);
            if names.is_empty() {
                let record = quoted(&format!("{MODELS}{wanted}.json"));
                let message = format!(
                    "the archive is incomplete: it has no record {record}, which PyTorch omits if it cannot save the program"
                );
                return Err(ExportError::new(ExportCode::Layout, message));
            }
            let wanted = quoted(wanted);
            let known: Vec<_> = names.iter().take(8).map(|n| quoted(n)).collect();
            let known = known.join(", ");
            let message = format!("the archive has no program {wanted}; its programs: {known}");
            return Err(ExportError::new(ExportCode::Layout, message));
        };
        self.model = chosen.to_owned();
        Ok(())
    }

    /// Returns the names of the programs in the file.
    pub fn models(&self) -> Vec<&str> {
        if self.zip.find(FLAT_PROGRAM).is_some() && self.zip.find("archive_format").is_none() {
            return vec![DEFAULT_MODEL];
        }
        let names =
            self.zip.records().iter().filter_map(|r| r.name().strip_prefix(MODELS)?.strip_suffix(".json"));
        names.filter(|n| !n.is_empty() && !n.contains('/')).collect()
    }

    /// Returns the layout.
    pub fn layout(&self) -> FileLayout {
        self.layout
    }

    /// Returns the limits.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Returns the zip file.
    pub fn zip(&self) -> &ZipReader<'a> {
        &self.zip
    }

    /// Returns the name of the record with the program.
    pub fn program_record(&self) -> String {
        match self.layout {
            FileLayout::Flat => FLAT_PROGRAM.to_owned(),
            _ => format!("{MODELS}{}.json", self.model),
        }
    }

    /// Reads the JSON text of the program.
    ///
    /// # Errors
    ///
    /// Returns the errors of the record, and `E009` if it is larger than the limit.
    pub fn program(&self) -> Res<Cow<'a, str>> {
        self.text(&self.program_record(), self.limits.json_bytes)
    }

    /// Reads the tensors of the state dict.
    ///
    /// # Errors
    ///
    /// Returns the errors of the records, `E008` if a tensor disagrees with its record, and `E009` for exceeded limits.
    pub fn state_dict(&self) -> Res<Map<Weight>> {
        match self.layout {
            FileLayout::Flat => weights::saved_weights(self, FLAT_WEIGHTS),
            FileLayout::Pickled => weights::saved_weights(self, &self.pickled("weights")),
            FileLayout::Raw => weights::raw_weights(self, &self.table("weights")),
        }
    }

    /// Reads the constants.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`Container::state_dict`].
    pub fn constants(&self) -> Res<Map<Constant>> {
        match self.layout {
            FileLayout::Flat => weights::saved_constants(self, FLAT_CONSTANTS),
            FileLayout::Pickled => weights::saved_constants(self, &self.pickled("constants")),
            FileLayout::Raw => weights::raw_constants(self, &self.table("constants")),
        }
    }

    /// Returns whether the file has example inputs.
    pub fn has_example_inputs(&self) -> bool {
        match self.layout {
            FileLayout::Flat => self.zip.find(FLAT_EXAMPLES).is_some(),
            _ => self.zip.find(&self.pickled("sample_inputs")).is_some(),
        }
    }

    /// Reads the additional files.
    ///
    /// # Errors
    ///
    /// Returns the errors of the records, and `E009` if they are larger than the limit.
    pub fn extra_files(&self) -> Res<Map<Vec<u8>>> {
        let folder = if self.layout == FileLayout::Flat { "extra_files/" } else { "extra/" };
        let mut out = Map::default();
        let mut left = self.limits.extra_bytes;
        for record in self.zip.records() {
            let Some(name) = record.name().strip_prefix(folder) else { continue };
            left = left.checked_sub(record.size()).ok_or_else(|| {
                let message = format!("additional files take more than {} bytes", self.limits.extra_bytes);
                ExportError::new(ExportCode::Limit, message).in_record(record.name())
            })?;
            out.insert(name.to_owned(), self.zip.read(record)?.into_owned());
        }
        Ok(out)
    }

    /// Returns the record of `torch.save` in a folder of the data.
    fn pickled(&self, folder: &str) -> String {
        format!("data/{folder}/{}.pt", self.model)
    }

    /// Returns the record with the table of raw tensors in a folder of the data.
    fn table(&self, folder: &str) -> String {
        format!("data/{folder}/{}_{folder}_config.json", self.model)
    }

    /// Reads a record as text of at most `limit` bytes.
    fn text(&self, name: &str, limit: u64) -> Res<Cow<'a, str>> {
        let record = self.zip.require(name)?;
        if record.size() > limit {
            let message = format!("{} bytes exceed the limit of {limit}", record.size());
            return Err(ExportError::new(ExportCode::Limit, message).in_record(name));
        }
        let not_utf8 =
            |at: usize| ExportError::new(ExportCode::Json, "the record is not UTF-8").in_record(name).at(at);
        match self.zip.read(record)? {
            Cow::Borrowed(bytes) => {
                std::str::from_utf8(bytes).map(Cow::Borrowed).map_err(|e| not_utf8(e.valid_up_to()))
            }
            Cow::Owned(bytes) => {
                String::from_utf8(bytes).map(Cow::Owned).map_err(|e| not_utf8(e.utf8_error().valid_up_to()))
            }
        }
    }
}

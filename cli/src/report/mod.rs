//! The report of `info` about a file: gathered as data, shown as text or as JSON.

mod exported;
mod gather;
mod show;

pub(crate) use exported::ExportedReport;
pub(crate) use gather::report;
pub(crate) use show::counted;

use flambeau::Tensor;
use serde_json::Value;

/// All data about a file.
pub(crate) struct FileReport {
    /// The file's name.
    pub(crate) file: String,
    /// Format of the file, with properties of the whole file.
    pub(crate) kind: String,
    /// Size of the file in bytes.
    pub(crate) bytes: u64,
    /// Modules, parents first.
    pub(crate) modules: Vec<ModuleRow>,
    /// Tensors of a file without modules.
    pub(crate) tensors: Vec<TensorRow>,
    /// Entries with their signatures.
    pub(crate) methods: Vec<String>,
    /// Operators in all functions, the missing ones first.
    pub(crate) operators: Vec<OperatorRow>,
    /// Names of operators that functions call and the session does not have, sorted.
    pub(crate) unregistered: Vec<String>,
    /// Functions that could not be compiled.
    pub(crate) missing: Vec<MissingRow>,
    /// Extra files of the archive.
    pub(crate) extra_files: Vec<(String, usize)>,
}

/// A module.
pub(crate) struct ModuleRow {
    /// Dotted; empty for the root.
    pub(crate) path: String,
    pub(crate) class: String,
    /// Number of elements in all parameters of this module and its submodules.
    pub(crate) parameters: usize,
    /// Number of elements in all buffers of this module and its submodules.
    pub(crate) buffers: usize,
    /// Its own tensors.
    pub(crate) tensors: Vec<TensorRow>,
    /// Its other attributes and constants, by name, type and short value.
    pub(crate) attributes: Vec<(String, String, String)>,
    /// Names of its methods.
    pub(crate) methods: Vec<String>,
}

/// A tensor.
pub(crate) struct TensorRow {
    pub(crate) name: String,
    pub(crate) dtype: &'static str,
    pub(crate) sizes: Vec<i64>,
    pub(crate) role: &'static str,
}

impl TensorRow {
    fn new(name: String, tensor: &Tensor, role: &'static str) -> TensorRow {
        TensorRow { name, dtype: tensor.dtype().name(), sizes: tensor.sizes().to_vec(), role }
    }
}

/// An operator that the program uses.
pub(crate) struct OperatorRow {
    pub(crate) name: String,
    pub(crate) uses: usize,
    /// Position of the first use, if the operator cannot be run.
    pub(crate) missing_at: Option<String>,
    /// Paths of the modules that use it, if it cannot be run.
    pub(crate) modules: Vec<String>,
}

/// A function that could not be compiled.
pub(crate) struct MissingRow {
    pub(crate) function: String,
    /// The error, in full, with positions.
    pub(crate) problem: String,
}

impl FileReport {
    /// Returns whether the program uses an operator or function that cannot be run.
    pub(crate) fn has_missing(&self) -> bool {
        !self.missing.is_empty() || self.operators.iter().any(|o| o.missing_at.is_some())
    }

    /// Returns the report as JSON.
    pub(crate) fn json(&self) -> Value {
        show::json(self)
    }

    /// Returns the report as text: complete if `all`, else a summary.
    pub(crate) fn text(&self, all: bool) -> String {
        show::text(self, all)
    }
}

//! What `info` says about a file, as data: gathered once, shown as text or as JSON.

mod gather;
mod show;

pub(crate) use gather::report;

use flambeau::Tensor;
use serde_json::Value;

/// All that is said about a file.
pub(crate) struct Report {
    /// The file's name.
    pub(crate) file: String,
    /// What kind of file it is, with what is known of the whole.
    pub(crate) kind: String,
    /// Bytes of the file.
    pub(crate) bytes: u64,
    /// Modules, parents first.
    pub(crate) modules: Vec<ModuleRow>,
    /// Tensors of a file without modules.
    pub(crate) tensors: Vec<TensorRow>,
    /// Entries with their signatures.
    pub(crate) methods: Vec<String>,
    /// Operators in all functions, the missing ones first.
    pub(crate) operators: Vec<OperatorRow>,
    /// Functions that could not be compiled.
    pub(crate) missing: Vec<MissingRow>,
    /// Files beside the module.
    pub(crate) extra_files: Vec<(String, usize)>,
}

/// A module.
pub(crate) struct ModuleRow {
    /// Dotted; empty for the root.
    pub(crate) path: String,
    pub(crate) class: String,
    /// Numbers in all parameters at and below it.
    pub(crate) parameters: usize,
    /// Numbers in all buffers at and below it.
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
    /// Where it is first used, if it cannot be run.
    pub(crate) missing_at: Option<String>,
    /// Paths of the modules that use it, if it cannot be run.
    pub(crate) modules: Vec<String>,
}

/// A function that could not be compiled.
pub(crate) struct MissingRow {
    pub(crate) function: String,
    /// Why, in full, with places.
    pub(crate) problem: String,
}

impl Report {
    /// Whether something the program uses cannot be run.
    pub(crate) fn lacks_something(&self) -> bool {
        !self.missing.is_empty() || self.operators.iter().any(|o| o.missing_at.is_some())
    }

    /// As JSON.
    pub(crate) fn json(&self) -> Value {
        show::json(self)
    }

    /// As text, all of it if `all`, else what fits a look.
    pub(crate) fn text(&self, all: bool) -> String {
        show::text(self, all)
    }
}

//! Files of exported programs: recorded ones of PyTorch, the same programs in other layouts, and damaged ones.

mod hostile;
mod layouts;
mod texts;

use std::sync::Arc;

use flambeau_archive::zip::{ZipReader, ZipWriter};
use flambeau_export::ExportError;
use flambeau_export::ProgramModel;
use flambeau_export::read::{ReadOptions, read};
use flambeau_ir::{Registry, RegistryBuilder};

/// A program recorded by `tests/oracle/programs.py`.
struct Recorded {
    name: &'static str,
    bytes: &'static [u8],
    /// `str(ep.graph)`.
    graph: &'static str,
    /// `str(ep)`.
    program: &'static str,
}

const RECORDED: [Recorded; 7] = [
    Recorded {
        name: "layers",
        bytes: include_bytes!("../data/layers.pt2"),
        graph: include_str!("../data/layers.graph.txt"),
        program: include_str!("../data/layers.program.txt"),
    },
    Recorded {
        name: "layers_core",
        bytes: include_bytes!("../data/layers_core.pt2"),
        graph: include_str!("../data/layers_core.graph.txt"),
        program: include_str!("../data/layers_core.program.txt"),
    },
    Recorded {
        name: "modules",
        bytes: include_bytes!("../data/modules.pt2"),
        graph: include_str!("../data/modules.graph.txt"),
        program: include_str!("../data/modules.program.txt"),
    },
    Recorded {
        name: "modules_kept",
        bytes: include_bytes!("../data/modules_kept.pt2"),
        graph: include_str!("../data/modules_kept.graph.txt"),
        program: include_str!("../data/modules_kept.program.txt"),
    },
    Recorded {
        name: "modules_renamed",
        bytes: include_bytes!("../data/modules_renamed.pt2"),
        graph: include_str!("../data/modules_renamed.graph.txt"),
        program: include_str!("../data/modules_renamed.program.txt"),
    },
    Recorded {
        name: "values",
        bytes: include_bytes!("../data/values.pt2"),
        graph: include_str!("../data/values.graph.txt"),
        program: include_str!("../data/values.program.txt"),
    },
    Recorded {
        name: "branches",
        bytes: include_bytes!("../data/branches.pt2"),
        graph: include_str!("../data/branches.graph.txt"),
        program: include_str!("../data/branches.program.txt"),
    },
];

/// The record of the program in recorded files.
const PROGRAM: &str = "serialized_exported_program.json";

/// The operators of the recorded programs.
const SCHEMAS: &str = "\
aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)
aten::addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor
aten::batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, float momentum, float eps, bool cudnn_enabled) -> Tensor
aten::contiguous(Tensor(a) self, *, MemoryFormat memory_format=contiguous_format) -> Tensor(a)
aten::dropout(Tensor input, float p, bool train) -> Tensor
aten::gelu(Tensor self, *, str approximate=\"none\") -> Tensor
aten::gt.Scalar(Tensor self, Scalar other) -> Tensor
aten::linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor
aten::masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor
aten::max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)
aten::mul.Tensor(Tensor self, Tensor other) -> Tensor
aten::permute(Tensor(a) self, int[] dims) -> Tensor(a)
aten::relu(Tensor self) -> Tensor
aten::select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)
aten::split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]
aten::sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
aten::sum(Tensor self, *, ScalarType? dtype=None) -> Tensor
aten::sym_size.int(Tensor self, int dim) -> SymInt
aten::to.dtype(Tensor(a) self, ScalarType dtype, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)
aten::unsqueeze(Tensor(a) self, int dim) -> Tensor(a)
aten::upsample_nearest2d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor
aten::where.ScalarOther(Tensor condition, Tensor self, Scalar other) -> Tensor
";

fn registry() -> Arc<Registry> {
    let mut builder = RegistryBuilder::new();
    builder.declare(SCHEMAS);
    builder.build().unwrap_or_else(|e| panic!("{e:?}"))
}

fn recorded(name: &str) -> &'static Recorded {
    RECORDED.iter().find(|r| r.name == name).expect("a recorded program")
}

fn open(bytes: &[u8]) -> Result<ProgramModel, ExportError> {
    read(bytes, &ReadOptions::default())
}

/// Returns the records of a flat file.
fn records(bytes: &[u8]) -> Vec<(String, Vec<u8>)> {
    let zip =
        ZipReader::open_flat_or_rooted(bytes, PROGRAM, &ReadOptions::default().archive).expect("a container");
    let record =
        |r: &flambeau_archive::zip::Record| (r.name().to_owned(), zip.read(r).expect("whole").into_owned());
    zip.records().iter().map(record).collect()
}

/// Returns the record `name` of a flat file as text.
fn text_of(bytes: &[u8], name: &str) -> String {
    let found = records(bytes).into_iter().find(|(n, _)| n == name).expect("a record");
    String::from_utf8(found.1).expect("text")
}

/// Returns a container with these records, below a top folder unless it is empty.
fn container<'r>(top: &str, records: impl IntoIterator<Item = (&'r str, &'r [u8])>) -> Vec<u8> {
    let mut zip = if top.is_empty() { ZipWriter::flat(Vec::new()) } else { ZipWriter::new(Vec::new(), top) };
    for (name, bytes) in records {
        zip.store(name, bytes).expect("the memory suffices");
    }
    zip.finish().expect("the memory suffices")
}

/// Returns a recorded file whose program is changed by a function on its JSON text.
fn edited(name: &str, change: impl Fn(String) -> String) -> Vec<u8> {
    let mut all = records(recorded(name).bytes);
    for (record, bytes) in &mut all {
        if record == PROGRAM {
            *bytes = change(String::from_utf8(std::mem::take(bytes)).expect("text")).into_bytes();
        }
    }
    container("", all.iter().map(|(n, b)| (n.as_str(), b.as_slice())))
}

/// Replaces a part of a text that must occur.
fn replaced(text: &str, old: &str, new: &str) -> String {
    assert!(text.contains(old), "{old:?} is not in the text");
    text.replacen(old, new, 1)
}

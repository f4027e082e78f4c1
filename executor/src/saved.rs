//! Profiles as plain data, so that they can be saved and used by another process.
//!
//! A saved profile describes what runs observed, not code: the process that loads it compiles the plans again. Its numbers of
//! profiling nodes are those of the profiled graph, so the profile is of use only for the same program and the same
//! passes. A profile of another program costs time and never changes results, because every type in it becomes a
//! precondition or a guard.

use crate::record::{BlockRuns, Observed, ObservedSize, ObservedTensors, ProfilingRecord};
use crate::spec::ArgumentSpec;
use crate::specialize::ProfileIndices;
use flambeau_ir::Type;
use flambeau_tensor::{DType, Device, MAX_RANK};

/// A size of a tensor in several runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SavedSize {
    /// The same in all runs.
    Known(i64),
    /// Different; sizes of one class are equal in every run.
    Class(u32),
    /// Different within one run.
    Varying,
}

/// The observations of one value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SavedValue {
    /// No run reached the profiling node.
    Unobserved,
    /// Only `None`.
    OnlyNone,
    /// Only numbers, or only strings, of this type.
    Atoms(Type),
    /// Only lists of this length.
    Lists(usize),
    /// Only values that are neither `None` nor a tensor, of another type or of several.
    Present,
    /// Values of different kinds.
    Mixed,
    /// Only tensors. A property that differs is `None`.
    Tensor {
        /// The element type.
        dtype: Option<DType>,
        /// Whether gradients are required.
        requires_grad: Option<bool>,
        /// The sizes; `None` for different ranks.
        sizes: Option<Vec<SavedSize>>,
        /// The strides, in elements.
        strides: Option<Vec<i64>>,
    },
}

/// The profile of one spec of arguments. See the [module](self).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedProfile {
    /// The words of the spec of the arguments; see [`ArgumentSpec`].
    pub kinds: Vec<u64>,
    /// Number of runs.
    pub runs: u32,
    /// The arguments.
    pub inputs: Vec<SavedValue>,
    /// The values at profiling nodes, by number.
    pub values: Vec<SavedValue>,
    /// The runs of counted blocks, in program order.
    pub blocks: Vec<BlockRuns>,
    /// Numbers of profiling nodes whose guards failed too often, in ascending order.
    pub disabled_guards: Vec<usize>,
}

impl SavedProfile {
    pub(crate) fn new(
        kinds: &ArgumentSpec,
        record: &ProfilingRecord,
        disabled: &ProfileIndices,
        count: usize,
    ) -> SavedProfile {
        let save = |all: &[Observed]| all.iter().map(save).collect();
        let mut disabled_guards: Vec<usize> =
            disabled.iter().copied().filter(|&index| index < count).collect();
        disabled_guards.sort_unstable();
        SavedProfile {
            kinds: kinds.words().to_vec(),
            runs: record.runs(),
            inputs: save(record.inputs()),
            values: save(record.nodes()),
            blocks: record.blocks().to_vec(),
            disabled_guards,
        }
    }

    /// Whether the profile can be one of a graph with these numbers of inputs, profiling nodes and counted blocks.
    pub(crate) fn fits(&self, inputs: usize, nodes: usize, blocks: usize) -> bool {
        self.runs > 0
            && self.inputs.len() == inputs
            && self.values.len() == nodes
            && self.blocks.len() == blocks
            && self.disabled_guards.iter().all(|&index| index < nodes)
            && self.inputs.iter().chain(&self.values).all(is_possible)
    }

    pub(crate) fn into_parts(self) -> (ArgumentSpec, ProfilingRecord, ProfileIndices) {
        let restore = |all: Vec<SavedValue>| all.into_iter().map(restore).collect();
        let record =
            ProfilingRecord::restored(self.runs, restore(self.inputs), restore(self.values), self.blocks);
        (ArgumentSpec::of_words(&self.kinds), record, self.disabled_guards.into_iter().collect())
    }
}

/// Whether a tensor with the observed properties can exist.
fn is_possible(value: &SavedValue) -> bool {
    let SavedValue::Tensor { sizes, strides, .. } = value else { return true };
    let known = |size: &SavedSize| match size {
        SavedSize::Known(n) => *n,
        _ => 1,
    };
    let sizes_fit = sizes.as_ref().is_none_or(|sizes| {
        let sizes: Vec<i64> = sizes.iter().map(known).collect();
        sizes.len() <= MAX_RANK && flambeau_tensor::numel_of(&sizes).is_ok()
    });
    let rank = sizes.as_ref().map(Vec::len);
    sizes_fit
        && strides
            .as_ref()
            .is_none_or(|strides| Some(strides.len()) == rank && strides.iter().all(|&n| n >= 0))
}

fn save(value: &Observed) -> SavedValue {
    match value {
        Observed::Unobserved => SavedValue::Unobserved,
        Observed::OnlyNone => SavedValue::OnlyNone,
        Observed::Atoms(ty) => SavedValue::Atoms(*ty),
        Observed::Lists(length) => SavedValue::Lists(*length),
        Observed::Present => SavedValue::Present,
        Observed::Mixed => SavedValue::Mixed,
        Observed::Tensors(seen) => {
            let size = |size: &ObservedSize| match *size {
                ObservedSize::Known(n) => SavedSize::Known(n),
                ObservedSize::Class(class) => SavedSize::Class(class),
                ObservedSize::Varying => SavedSize::Varying,
            };
            SavedValue::Tensor {
                dtype: seen.dtype,
                requires_grad: seen.requires_grad,
                sizes: seen.sizes.as_ref().map(|sizes| sizes.iter().map(size).collect()),
                strides: seen.strides.as_ref().map(|strides| strides.to_vec()),
            }
        }
    }
}

fn restore(value: SavedValue) -> Observed {
    match value {
        SavedValue::Unobserved => Observed::Unobserved,
        SavedValue::OnlyNone => Observed::OnlyNone,
        SavedValue::Atoms(ty) => Observed::Atoms(ty),
        SavedValue::Lists(length) => Observed::Lists(length),
        SavedValue::Present => Observed::Present,
        SavedValue::Mixed => Observed::Mixed,
        SavedValue::Tensor { dtype, requires_grad, sizes, strides } => {
            let size = |size: SavedSize| match size {
                SavedSize::Known(n) => ObservedSize::Known(n),
                SavedSize::Class(class) => ObservedSize::Class(class),
                SavedSize::Varying => ObservedSize::Varying,
            };
            Observed::Tensors(ObservedTensors {
                dtype,
                device: Some(Device::CPU),
                sizes: sizes.map(|sizes| sizes.into_iter().map(size).collect()),
                strides: strides.map(|strides| strides.into_iter().collect()),
                requires_grad,
            })
        }
    }
}

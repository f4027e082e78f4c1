//! Profiles: what several runs of a function observed, merged.
//!
//! A [`RunProfile`] collects the values of one run: the arguments, and what passes through the profiling nodes, once per
//! loop iteration. A [`ProfilingRecord`] merges runs. A property that all runs share is kept. A size that differs
//! between runs becomes a symbol, and two sizes have the same symbol exactly if they were equal in every run. A size
//! that differs within one run is unknown.
//!
//! Of a counted block ([`BlockRuns`]) a record keeps how often one execution of its surroundings executed it: for the body
//! of a loop, the trip count.
//!
//! Sizes are partitioned by refinement: a size that was `n` in the first run and `m` in the second is in the class
//! (`n`, `m`), and so on. Equal sequences of sizes are in the same class, whatever the number of runs.

use flambeau_ir::types::{Dim, NoClasses, TensorType, is_subtype};
use flambeau_ir::{IValue, Type};
use flambeau_tensor::{DType, Device, Tensor};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use smallvec::SmallVec;

/// A size of a tensor in several runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ObservedSize {
    /// The same in all runs.
    Known(i64),
    /// The class of sizes that were equal in each run.
    Class(u32),
    /// Different within one run.
    Varying,
}

/// The tensors observed by one profiling node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ObservedTensors {
    pub(crate) dtype: Option<DType>,
    pub(crate) device: Option<Device>,
    /// `None` if the ranks differ.
    pub(crate) sizes: Option<SmallVec<[ObservedSize; 4]>>,
    /// `None` if any stride differs.
    pub(crate) strides: Option<SmallVec<[i64; 4]>>,
    pub(crate) requires_grad: Option<bool>,
}

/// The values observed by one profiling node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Observed {
    /// None yet.
    #[default]
    Unobserved,
    /// Only `None`.
    OnlyNone,
    /// Only tensors.
    Tensors(ObservedTensors),
    /// Only numbers, or only strings, of this type.
    Atoms(Type),
    /// Only lists of this length.
    Lists(usize),
    /// Only values that are neither `None` nor a tensor, of another type or of several.
    Present,
    /// Values of different kinds.
    Mixed,
}

impl ObservedTensors {
    fn of(t: &Tensor) -> ObservedTensors {
        ObservedTensors {
            dtype: Some(t.dtype()),
            device: Some(t.device()),
            sizes: Some(t.sizes().iter().map(|&n| ObservedSize::Known(n)).collect()),
            strides: Some(t.strides().iter().copied().collect()),
            requires_grad: Some(t.requires_grad()),
        }
    }

    fn merge(
        &mut self,
        other: &ObservedTensors,
        mut size: impl FnMut(ObservedSize, ObservedSize) -> ObservedSize,
    ) {
        fn keep<T: PartialEq>(a: &mut Option<T>, b: &Option<T>) {
            if a != b {
                *a = None;
            }
        }
        keep(&mut self.dtype, &other.dtype);
        keep(&mut self.device, &other.device);
        keep(&mut self.requires_grad, &other.requires_grad);
        keep(&mut self.strides, &other.strides);
        match (&mut self.sizes, &other.sizes) {
            (Some(a), Some(b)) if a.len() == b.len() => {
                a.iter_mut().zip(b).for_each(|(a, &b)| *a = size(*a, b));
            }
            (own, _) => *own = None,
        }
    }
}

impl Observed {
    pub(crate) fn of(value: &IValue) -> Observed {
        match value {
            IValue::None => Observed::OnlyNone,
            IValue::Tensor(t) => Observed::Tensors(ObservedTensors::of(t)),
            IValue::Bool(_) => Observed::Atoms(Type::BOOL),
            IValue::Int(_) => Observed::Atoms(Type::INT),
            IValue::Float(_) => Observed::Atoms(Type::FLOAT),
            IValue::Complex(_) => Observed::Atoms(Type::COMPLEX),
            IValue::Str(_) => Observed::Atoms(Type::STR),
            IValue::List(list) => Observed::Lists(list.len()),
            _ => Observed::Present,
        }
    }

    fn merge(&mut self, other: &Observed, size: impl FnMut(ObservedSize, ObservedSize) -> ObservedSize) {
        match (&mut *self, other) {
            (_, Observed::Unobserved) => {}
            (Observed::Unobserved, _) => *self = other.clone(),
            (Observed::Tensors(a), Observed::Tensors(b)) => a.merge(b, size),
            (a, b) if a == b => {}
            (a, b) if a.is_other() && b.is_other() => *self = Observed::Present,
            _ => *self = Observed::Mixed,
        }
    }

    /// Whether the values are known to be neither `None` nor tensors.
    fn is_other(&self) -> bool {
        matches!(self, Observed::Atoms(_) | Observed::Lists(_) | Observed::Present)
    }

    /// Returns the length of the observed values, if they are lists of one length.
    pub(crate) fn length(&self) -> Option<usize> {
        match self {
            Observed::Lists(length) => Some(*length),
            _ => None,
        }
    }

    /// Returns the type that the observed values have among those of a declared type: for an optional the type of the
    /// value if it was always present, and `NoneType` if it never was; for a type that has numbers, strings or tensors
    /// among others, such as `Any`, a union or `number`, the one that occurred.
    fn refine(&self, declared: Type) -> Type {
        let inner = declared.unwrap_optional();
        match self {
            Observed::OnlyNone if declared.optional_elem().is_some() => Type::NONE,
            &Observed::Atoms(ty) if is_subtype(ty, inner, &NoClasses) => ty,
            seen if seen.is_other() => inner,
            Observed::Tensors(seen) if inner.is_tensor() => {
                let (stated, seen) = (inner.as_tensor(), seen.to_type());
                stated.and_then(|stated| stated.meet(&seen)).map_or(declared, Type::tensor)
            }
            Observed::Tensors(seen) if is_subtype(Type::TENSOR, inner, &NoClasses) => {
                // Without any property the type would also admit absent tensors.
                Some(Type::tensor(seen.to_type())).filter(|&ty| ty != Type::TENSOR).unwrap_or(declared)
            }
            _ => declared,
        }
    }

    /// Returns the type of the observed values, as far as it is known.
    pub(crate) fn own_type(&self) -> Type {
        match self {
            Observed::Tensors(seen) => Type::tensor(seen.to_type()),
            Observed::OnlyNone => Type::NONE,
            Observed::Atoms(ty) => *ty,
            _ => Type::ANY,
        }
    }

    /// Adds a value of the same run.
    fn add(&mut self, value: &IValue) {
        match (&mut *self, value) {
            (Observed::Unobserved, _) => *self = Observed::of(value),
            (Observed::Tensors(seen), IValue::Tensor(t)) => {
                // In loops most values repeat.
                let again = seen.dtype == Some(t.dtype())
                    && seen.requires_grad == Some(t.requires_grad())
                    && seen.strides.as_deref() == Some(t.strides())
                    && seen.sizes.as_ref().is_some_and(|sizes| {
                        sizes.iter().copied().eq(t.sizes().iter().map(|&n| ObservedSize::Known(n)))
                    });
                if !again {
                    seen.merge(
                        &ObservedTensors::of(t),
                        |a, b| if a == b { a } else { ObservedSize::Varying },
                    );
                }
            }
            _ => self.merge(&Observed::of(value), |a, b| if a == b { a } else { ObservedSize::Varying }),
        }
    }
}

/// How often a block of a branch or a loop is executed, per execution of the block around its node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockRuns {
    /// Whether any run executed the block.
    pub executed: bool,
    /// The number of executions, if all runs that reached the node have the same; an average within a run.
    pub each: Option<u64>,
    /// Whether any run reached the node.
    pub reached: bool,
}

impl BlockRuns {
    /// Returns the runs of a block that was executed `count` times, `around` times the block around its node.
    #[must_use]
    pub fn of(count: u64, around: u64) -> BlockRuns {
        let each = (around > 0 && count.is_multiple_of(around)).then(|| count / around);
        BlockRuns { executed: count > 0, each, reached: around > 0 }
    }

    fn merge(&mut self, other: BlockRuns) {
        if self.reached && other.reached && self.each != other.each {
            self.each = None;
        } else if !self.reached {
            self.each = other.each;
        }
        self.executed |= other.executed;
        self.reached |= other.reached;
    }
}

/// The values that one run observed.
#[derive(Clone, Debug)]
pub struct RunProfile {
    inputs: Vec<Observed>,
    nodes: Vec<Observed>,
    blocks: Vec<BlockRuns>,
}

impl RunProfile {
    /// Begins a run on arguments of a function with `count` profiling nodes.
    #[must_use]
    pub fn new(args: &[IValue], count: usize) -> RunProfile {
        RunProfile {
            inputs: args.iter().map(Observed::of).collect(),
            nodes: vec![Observed::Unobserved; count],
            blocks: Vec::new(),
        }
    }

    /// Sets the runs of the counted blocks, in program order.
    pub fn set_blocks(&mut self, blocks: Vec<BlockRuns>) {
        self.blocks = blocks;
    }

    /// Adds a value that passed through profiling node number `index`.
    pub fn observe(&mut self, index: usize, value: &IValue) {
        if let Some(seen) = self.nodes.get_mut(index) {
            seen.add(value);
        }
    }
}

/// The values that several runs observed. See the [module](self).
#[derive(Clone, Debug, Default)]
pub struct ProfilingRecord {
    runs: u32,
    inputs: Vec<Observed>,
    nodes: Vec<Observed>,
    blocks: Vec<BlockRuns>,
    /// Classes of sizes, by the class or size before the last run and the size in it.
    classes: HashMap<(ObservedSize, i64), u32, FxBuildHasher>,
}

impl ProfilingRecord {
    /// Creates a record without runs.
    #[must_use]
    pub fn new() -> ProfilingRecord {
        ProfilingRecord::default()
    }

    /// Returns a record with these observations.
    pub(crate) fn restored(
        runs: u32,
        inputs: Vec<Observed>,
        nodes: Vec<Observed>,
        blocks: Vec<BlockRuns>,
    ) -> ProfilingRecord {
        ProfilingRecord { runs, inputs, nodes, blocks, classes: HashMap::default() }
    }

    pub(crate) fn inputs(&self) -> &[Observed] {
        &self.inputs
    }

    /// Returns the runs of the counted blocks, in program order.
    #[must_use]
    pub fn blocks(&self) -> &[BlockRuns] {
        &self.blocks
    }

    pub(crate) fn nodes(&self) -> &[Observed] {
        &self.nodes
    }

    /// Returns the number of runs.
    #[must_use]
    pub fn runs(&self) -> u32 {
        self.runs
    }

    /// Adds a run of the same function.
    pub fn add(&mut self, run: &RunProfile) {
        self.runs += 1;
        if self.runs == 1 {
            (self.inputs, self.nodes) = (run.inputs.clone(), run.nodes.clone());
            self.blocks.clone_from(&run.blocks);
            return;
        }
        let before = std::mem::take(&mut self.classes);
        let mut classes = HashMap::with_capacity_and_hasher(before.len(), FxBuildHasher);
        let mut next = 0;
        let mut size = |a: ObservedSize, b: ObservedSize| match (a, b) {
            (ObservedSize::Known(x), ObservedSize::Known(y)) if x == y => a,
            (ObservedSize::Varying, _) | (_, ObservedSize::Varying | ObservedSize::Class(_)) => {
                ObservedSize::Varying
            }
            (_, ObservedSize::Known(y)) => ObservedSize::Class(*classes.entry((a, y)).or_insert_with(|| {
                next += 1;
                next - 1
            })),
        };
        let pairs = self.inputs.iter_mut().zip(&run.inputs).chain(self.nodes.iter_mut().zip(&run.nodes));
        for (own, other) in pairs {
            own.merge(other, &mut size);
        }
        self.classes = classes;
        self.blocks.iter_mut().zip(&run.blocks).for_each(|(own, &other)| own.merge(other));
    }

    /// Returns the type that input `index` had in all runs: `declared`, refined by what occurred.
    #[must_use]
    pub fn input_type(&self, index: usize, declared: Type) -> Type {
        let declared = without_symbols(declared);
        self.inputs.get(index).map_or(declared, |seen| seen.refine(declared))
    }

    /// Returns the type that all values at profiling node number `index` had, of the declared type `declared`; `None` if
    /// there were none, or if their type is no more than the declared one.
    #[must_use]
    pub fn observed_type(&self, index: usize, declared: Type) -> Option<Type> {
        match self.nodes.get(index)? {
            Observed::Tensors(seen) if declared.is_tensor() => Some(Type::tensor(seen.to_type())),
            seen => Some(seen.refine(declared)).filter(|&ty| ty != declared),
        }
    }

    /// Returns the length that all values at profiling node number `index` had, if they were lists of one length.
    #[must_use]
    pub fn observed_length(&self, index: usize) -> Option<usize> {
        self.nodes.get(index)?.length()
    }
}

/// Returns a declared type without symbols: those of observed types are numbered independently.
fn without_symbols(ty: Type) -> Type {
    let Some(facts) = ty.as_tensor() else { return ty };
    let is_symbol = |dim: &Dim| matches!(dim, Dim::Sym(_));
    if !facts.sizes.iter().flatten().any(is_symbol) {
        return ty;
    }
    let known = |dim: &Dim| if is_symbol(dim) { Dim::Unknown } else { *dim };
    let sizes = facts.sizes.as_ref().map(|sizes| sizes.iter().map(known).collect());
    Type::tensor(TensorType { sizes, ..facts.clone() })
}

impl ObservedTensors {
    fn to_type(&self) -> TensorType {
        let sizes = self.sizes.as_ref().map(|sizes| {
            let dim = |&size: &ObservedSize| match size {
                ObservedSize::Known(n) => Dim::Known(n),
                // Symbols of types are negative, as PyTorch's.
                ObservedSize::Class(class) => Dim::Sym(-2 - i64::from(class)),
                ObservedSize::Varying => Dim::Unknown,
            };
            sizes.iter().map(dim).collect()
        });
        TensorType {
            dtype: self.dtype,
            device: self.device,
            sizes,
            strides: self.strides.as_ref().map(|strides| strides.iter().map(|&n| Some(n)).collect()),
            requires_grad: self.requires_grad,
            undefined: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(sizes: &[i64]) -> IValue {
        let n = sizes.iter().product::<i64>() as usize;
        IValue::Tensor(Tensor::from_vec(vec![0.0f32; n], sizes).unwrap())
    }

    /// The sizes of every input after runs on contiguous tensors of the given sizes.
    fn sizes(runs: &[&[&[i64]]]) -> Vec<Vec<Dim>> {
        let mut record = ProfilingRecord::new();
        for run in runs {
            let args: Vec<IValue> = run.iter().map(|s| tensor(s)).collect();
            record.add(&RunProfile::new(&args, 0));
        }
        let input =
            |i| record.input_type(i, Type::TENSOR).as_tensor().unwrap().sizes.clone().unwrap().to_vec();
        (0..runs[0].len()).map(input).collect()
    }

    #[test]
    fn a_size_becomes_a_symbol_at_its_second_value() {
        assert_eq!(sizes(&[&[&[2, 3]], &[&[2, 3]]]), [[Dim::Known(2), Dim::Known(3)]]);
        assert_eq!(sizes(&[&[&[2, 3]], &[&[4, 3]]]), [[Dim::Sym(-2), Dim::Known(3)]]);
    }

    #[test]
    fn sizes_that_are_always_equal_share_a_symbol() {
        let merged = sizes(&[&[&[2, 3, 2], &[2]], &[&[4, 5, 4], &[4]]]);
        assert_eq!(merged[0], [Dim::Sym(-2), Dim::Sym(-3), Dim::Sym(-2)]);
        assert_eq!(merged[1], [Dim::Sym(-2)]);
    }

    #[test]
    fn a_symbol_splits_when_a_run_distinguishes() {
        let merged = sizes(&[&[&[2, 2, 2]], &[&[4, 4, 4]], &[&[5, 6, 5]]]);
        assert_eq!(merged[0], [Dim::Sym(-2), Dim::Sym(-3), Dim::Sym(-2)]);
        // Equal in the last two runs, but not in the first.
        let merged = sizes(&[&[&[2, 3]], &[&[4, 4]], &[&[5, 5]]]);
        assert_eq!(merged[0], [Dim::Sym(-2), Dim::Sym(-3)]);
    }

    #[test]
    fn a_size_that_varies_within_a_run_is_unknown() {
        let mut record = ProfilingRecord::new();
        for other in [3, 4] {
            let mut run = RunProfile::new(&[], 1);
            run.observe(0, &tensor(&[2, 5]));
            run.observe(0, &tensor(&[other, 5]));
            record.add(&run);
        }
        let ty = record.observed_type(0, Type::TENSOR).unwrap();
        assert_eq!(ty.as_tensor().unwrap().sizes.as_deref(), Some(&[Dim::Unknown, Dim::Known(5)][..]));
    }

    #[test]
    fn only_common_properties_are_kept() {
        let mut record = ProfilingRecord::new();
        let long = IValue::Tensor(Tensor::from_vec(vec![0i64; 6], &[6]).unwrap());
        for arg in [tensor(&[2, 3]), long] {
            record.add(&RunProfile::new(&[arg], 0));
        }
        let ty = record.input_type(0, Type::TENSOR);
        let facts = ty.as_tensor().unwrap();
        assert_eq!((facts.dtype, &facts.sizes, &facts.strides), (None, &None, &None));
        assert_eq!(facts.device, Some(Device::CPU));
    }

    #[test]
    fn blocks_keep_what_all_runs_share() {
        let merged = |runs: &[(u64, u64)]| {
            let mut record = ProfilingRecord::new();
            for &(count, around) in runs {
                let mut run = RunProfile::new(&[], 0);
                run.set_blocks(vec![BlockRuns::of(count, around)]);
                record.add(&run);
            }
            let block = record.blocks()[0];
            (block.executed, block.each)
        };
        assert_eq!(merged(&[(6, 2), (9, 3)]), (true, Some(3)));
        assert_eq!(merged(&[(6, 2), (8, 2)]), (true, None));
        assert_eq!(
            merged(&[(0, 0), (4, 1)]),
            (true, Some(4)),
            "a run that does not reach the node does not change the record"
        );
        assert_eq!(merged(&[(4, 1), (0, 0)]), (true, Some(4)));
        assert_eq!(merged(&[(5, 2), (4, 2)]), (true, None));
        assert_eq!(merged(&[(0, 3), (0, 1)]), (false, Some(0)));
    }

    #[test]
    fn values_at_nodes_have_types_and_lengths() {
        let of = |values: &[IValue], declared: Type| {
            let mut record = ProfilingRecord::new();
            for value in values {
                let mut run = RunProfile::new(&[], 1);
                run.observe(0, value);
                record.add(&run);
            }
            (record.observed_type(0, declared), record.observed_length(0))
        };
        let list = |n: i64| IValue::ints((0..n).collect());
        let int = Type::optional(Type::INT);
        assert_eq!(of(&[IValue::Int(1), IValue::Int(2)], int), (Some(Type::INT), None));
        assert_eq!(of(&[IValue::None, IValue::None], int), (Some(Type::NONE), None));
        assert_eq!(of(&[IValue::None, IValue::Int(2)], int), (None, None));
        let ints = Type::list(Type::INT);
        assert_eq!(of(&[list(3), list(3)], ints), (None, Some(3)));
        assert_eq!(of(&[list(3), list(4)], ints), (None, None));
        assert_eq!(of(&[list(3), list(4)], Type::optional(ints)), (Some(ints), None));
        assert_eq!(of(&[list(3), IValue::Int(3)], Type::ANY), (None, None));
    }

    #[test]
    fn optionals_are_refined_by_presence() {
        let of = |values: &[IValue], ty: Type| {
            let mut record = ProfilingRecord::new();
            values.iter().for_each(|v| record.add(&RunProfile::new(std::slice::from_ref(v), 0)));
            record.input_type(0, ty)
        };
        let (int, tensor_type) = (Type::optional(Type::INT), Type::optional(Type::TENSOR));
        assert_eq!(of(&[IValue::None], int), Type::NONE);
        assert_eq!(of(&[IValue::Int(1)], int), Type::INT);
        assert_eq!(of(&[IValue::Int(1), IValue::None], int), int);
        assert!(of(&[tensor(&[1])], tensor_type).is_tensor());
        assert_eq!(of(&[tensor(&[1]), IValue::None], tensor_type), tensor_type);
        assert_eq!(of(&[IValue::None], Type::TENSOR), Type::TENSOR, "undefined tensors are not assumed");
    }
}

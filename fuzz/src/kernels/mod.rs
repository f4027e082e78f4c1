//! A fuzzer of kernels: single operators at boundary sizes, with several strides, dtypes, instruction sets and numbers
//! of threads.
//!
//! A case is an operator of the registry with arguments, drawn from a seed and a number. Sizes are around the
//! thresholds that the kernels state (`flambeau_tensor::thresholds`). An operator's [`Sample`] provides the arguments,
//! so every operator with a sample takes part; where a sample chooses shapes itself, templates also draw large ones.
//! The results are compared:
//!
//! - with a reference implementation (`naive`), if there is one; with the operator on single elements, if samples
//!   show that it is elementwise;
//! - with two threads, and with a second call on the same arguments (which may use prepacked weights): bitwise equal;
//! - with another instruction set: bitwise equal if elementwise, else equal up to the order of summation;
//! - with other strides of the same elements: equal up to the order of summation.
//!
//! In guarded memory (`FLAMBEAU_GUARD`) an out-of-bounds access ends the process; the command (`bin/kernels.rs`) runs
//! cases in a separate process and reports such a case.

mod elementwise;
mod layouts;
mod naive;
mod run;
mod sizes;
mod templates;

use elementwise::Elementwise;
use flambeau_exec::{Gen, Kernel, Sample};
use flambeau_ir::value::IValue;
use flambeau_ir::{OpId, Registry};
use flambeau_tensor::{DType, Tensor};
use layouts::InputLayout;
use run::{KernelOutcome, Near, Way};
use sizes::Sizes;
use std::sync::Arc;
use templates::{Draw, TEMPLATES};

/// Dtypes of templates; those with the most kernels occur most often.
const DTYPES: &[DType] = &[
    DType::F32,
    DType::F32,
    DType::F32,
    DType::F32,
    DType::F64,
    DType::F64,
    DType::F16,
    DType::BF16,
    DType::I64,
    DType::I32,
    DType::U8,
    DType::I8,
    DType::C64,
];

/// Returns whether an operator's results depend on the layout of its arguments, or contain uninitialized elements.
fn depends_on_layout(name: &str) -> bool {
    let base = name.split('.').next().unwrap_or(name);
    let words = ["stride", "as_strided", "contiguous", "storage", "empty", "resize", "data_ptr", "set_"];
    base.starts_with("prim::") || words.iter().any(|word| base.contains(word))
}

/// Operators that are not compared under other strides, with reasons.
const LAYOUT_DEPENDENT: &[(&str, &str)] = &[
    ("aten::view", "refuses strides that it cannot express"),
    ("aten::view_as", "as `view`"),
    ("aten::_unsafe_view", "as `view`"),
    ("aten::view_as_complex", "as `view`"),
    ("aten::view_as_complex_copy", "as `view`"),
    ("aten::view_copy", "as `view`"),
    ("aten::_debug_has_internal_overlap", "returns a property of the strides"),
];

/// Outcome of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaseVerdict {
    /// All comparisons agree.
    Checked {
        /// Whether one of them was with a reference, or with single elements.
        reference: bool,
    },
    /// The operator refuses the arguments.
    Refused,
    /// A comparison found a difference.
    Failed(String),
}

/// A source of cases.
pub struct KernelFuzzer {
    registry: Arc<Registry>,
    /// Operators with a kernel and a sample, except those that draw random numbers.
    sampled: Vec<OpId>,
    elementwise: Elementwise,
    /// Sizes of most cases.
    small: Sizes,
    /// Sizes of one case in [`LARGE`]: those that reach the thresholds of large work.
    large: Sizes,
    seed: u64,
    /// Only operators whose names contain this text are tested.
    only: String,
    isas: Vec<flambeau_tensor::simd::Isa>,
}

/// One case in this number may take all the work. A large case takes as long as a dozen small ones, so that most of the
/// time goes to small cases, which reach all thresholds of lengths.
const LARGE: usize = 16;

/// Maximum number of elements or multiplications of the other cases.
const SMALL: usize = 1 << 13;

/// A call to test.
struct Case {
    op: OpId,
    args: Vec<IValue>,
    /// Whether elements are small integers.
    whole: bool,
}

impl KernelFuzzer {
    /// Creates a fuzzer with cases of at most `work` elements or multiplications, most of them much smaller; equal seeds
    /// give equal cases.
    pub fn new(registry: &Arc<Registry>, seed: u64, work: usize) -> KernelFuzzer {
        let (kernels, samples) = (registry.column::<Kernel>(), registry.column::<Sample>());
        let sampled = registry
            .ids()
            .filter(|&id| kernels.get(id).is_some() && samples.get(id).is_some())
            .filter(|&id| !registry.effects(id).is_nondeterministic())
            .collect();
        KernelFuzzer {
            registry: Arc::clone(registry),
            sampled,
            elementwise: Elementwise::default(),
            small: Sizes::new(work.min(SMALL)),
            large: Sizes::new(work),
            seed,
            only: String::new(),
            isas: run::instruction_sets(),
        }
    }

    /// Restricts the fuzzer to operators whose names contain this text.
    #[must_use]
    pub fn only(mut self, part: &str) -> KernelFuzzer {
        self.only = part.to_owned();
        let names = |id: &OpId| self.registry.schema(*id).full_name().contains(part);
        self.sampled.retain(names);
        self
    }

    /// Returns how many operators take part by their samples.
    pub fn operators(&self) -> usize {
        self.sampled.len()
    }

    fn gen_of(&self, number: u64) -> Gen<'static> {
        Gen::from_seed(
            self.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ number.wrapping_mul(0xD1B5_4A32_D192_ED03),
        )
    }

    /// Draws a case; `None` if the drawn operator has no arguments.
    fn draw(&self, g: &mut Gen<'_>) -> Option<Case> {
        if !self.sampled.is_empty() && (g.flag() || !self.only.is_empty() && g.flag()) {
            return self.by_sample(g);
        }
        self.by_template(g)
    }

    fn by_template(&self, g: &mut Gen<'_>) -> Option<Case> {
        let template = if self.only.is_empty() {
            g.pick(TEMPLATES)
        } else {
            let fitting: Vec<_> =
                TEMPLATES.iter().filter(|t| t.ops.iter().any(|op| op.contains(&self.only))).collect();
            *fitting.get(g.below(fitting.len()))?
        };
        let name = *g.pick(template.ops);
        if !name.contains(&self.only) {
            return None;
        }
        let op = self.registry.lookup(name)?;
        let sizes = if g.one_in(LARGE) { &self.large } else { &self.small };
        let (dtype, whole) = (*g.pick(DTYPES), g.flag());
        let mut args = (template.make)(&mut Draw { g, sizes, dtype, whole }, name);
        let schema = self.registry.schema(op);
        for arg in schema.args.get(args.len()..)? {
            args.push(arg.default.as_ref()?.deep_copied().ok()?);
        }
        Some(Case { op, args, whole })
    }

    fn by_sample(&self, g: &mut Gen<'_>) -> Option<Case> {
        let op = *g.pick(&self.sampled);
        let (schema, sample) = (self.registry.schema(op), self.registry.facet::<Sample>(op)?);
        let sizes = &self.small;
        let mut shape = |g: &mut Gen<'_>, rank: usize| -> Vec<i64> {
            let (mut left, mut all) = (sizes.work, Vec::new());
            for _ in 0..rank {
                let n = sizes.length(g, left);
                left = (left / n.max(1)).max(1);
                all.push(n as i64);
            }
            all
        };
        let sized = if g.one_in(4) { None } else { sample.make_sized(schema, g, &mut shape) };
        let args = sized.unwrap_or_else(|| sample.make(schema, g));
        (args.len() == schema.args.len()).then_some(Case { op, args, whole: false })
    }

    /// Checks case number `number`.
    pub fn check(&mut self, number: u64) -> CaseVerdict {
        let mut g = self.gen_of(number);
        let Some(case) = self.draw(&mut g) else { return CaseVerdict::Refused };
        let verdict = self.check_case(case, &mut g);
        flambeau_tensor::simd::limit_isa(self.isas[0]);
        verdict
    }

    /// Returns the operator and arguments of a case as text.
    pub fn describe(&self, number: u64) -> String {
        let Some(case) = self.draw(&mut self.gen_of(number)) else { return "no call".to_owned() };
        let shown: Vec<String> = case.args.iter().map(shown).collect();
        format!("{}({})", self.registry.schema(case.op).full_name(), shown.join(", "))
    }

    fn check_case(&mut self, mut case: Case, g: &mut Gen<'_>) -> CaseVerdict {
        let registry = Arc::clone(&self.registry);
        if g.one_in(4) {
            repeat_slices(&registry, &mut case, g);
        }
        let Case { op, args, whole } = &case;
        let name = registry.schema(*op).full_name();
        let base = Way { layout: InputLayout::RowMajor, isa: self.isas[0], threads: 1, twice: false };
        let fail = |what: &str, how: String| CaseVerdict::Failed(format!("{what}: {how}"));
        let want = match run::call(&registry, *op, args, base, g) {
            KernelOutcome::Results(results) => results,
            KernelOutcome::Refused(_) => return CaseVerdict::Refused,
            KernelOutcome::Defect(text) => return fail("contiguous arguments", text),
        };
        let reference = match self.against_reference(&name, &case, &want, g) {
            Ok(reference) => reference,
            Err(text) => return fail("reference", text),
        };
        let (args, whole) = (&case.args, *whole);
        let writes = !run::written(&registry, *op, args).is_empty();
        let shows = depends_on_layout(&name)
            || LAYOUT_DEPENDENT.iter().any(|(op, _)| name.split('.').next() == Some(op));
        let mut ways = vec![
            ("two threads", Way { threads: 2, ..base }, Near::Exact),
            ("a second call", Way { twice: !writes, ..base }, Near::Exact),
        ];
        // The order in which sums are rounded may depend on strides and, for products, on the instruction set.
        let exact = whole && reference && reference_is_exact(&name) && !args.iter().any(is_half);
        let near = if exact { Near::Exact } else { Near::Sums };
        let elementwise = self.elementwise.is_elementwise(&registry, case.op, args);
        let by_isa = if elementwise { Near::Exact } else { near };
        for &isa in &self.isas[1..] {
            let what = if isa == flambeau_tensor::simd::Isa::Avx2 { "AVX2" } else { "baseline" };
            ways.push((what, Way { isa, ..base }, by_isa));
        }
        for repeated in [false, true] {
            ways.push(("other strides", Way { layout: InputLayout::Drawn { repeated }, ..base }, near));
        }
        for (what, way, near) in ways {
            let got = match run::call(&registry, case.op, args, way, g) {
                KernelOutcome::Results(results) => results,
                KernelOutcome::Refused(text) if way.layout == InputLayout::RowMajor => {
                    return fail(what, format!("refuses arguments that it accepted before: {text}"));
                }
                KernelOutcome::Refused(_) if shows || registry.schema(*op).is_mutable() => continue,
                KernelOutcome::Refused(text) => {
                    return fail(what, format!("refuses arguments that it accepted before: {text}"));
                }
                KernelOutcome::Defect(text) => return fail(what, text),
            };
            if shows {
                continue;
            }
            if let Some(how) = run::difference(&got, &want, near) {
                return fail(what, how);
            }
        }
        CaseVerdict::Checked { reference }
    }

    /// Compares results with a reference implementation, or with the operator on single elements. Returns whether there
    /// was one.
    fn against_reference(
        &mut self,
        name: &str,
        case: &Case,
        want: &[IValue],
        g: &mut Gen<'_>,
    ) -> Result<bool, String> {
        if let Some(reference) = naive::reference(name)
            && case.args.iter().all(is_finite)
            && let Some(arrays) = (reference.run)(naive::Args(&case.args))
        {
            for (array, value) in arrays.iter().zip(want) {
                let Some(tensor) = value.as_tensor() else { return Err("no tensor".to_owned()) };
                let exact = reference.exact && case.whole;
                if let Some(how) = naive::difference(tensor, array, exact) {
                    return Err(how);
                }
            }
            return Ok(true);
        }
        self.elementwise.check(&self.registry, case.op, &case.args, want, g)
    }
}

/// Returns whether results of small integers are exact in any order of summation.
fn reference_is_exact(name: &str) -> bool {
    naive::reference(name).is_some_and(|reference| reference.exact)
}

fn is_half(value: &IValue) -> bool {
    value.as_tensor().is_some_and(|t| matches!(t.dtype(), DType::F16 | DType::BF16))
}

/// Returns whether no element is infinite or NaN: references do not define results for those.
fn is_finite(value: &IValue) -> bool {
    match value {
        IValue::Tensor(t) => t.to_scalars().is_ok_and(|all| all.iter().all(|v| v.to_complex().is_finite())),
        IValue::List(list) => list.to_vec().iter().all(is_finite),
        _ => true,
    }
}

/// Makes all slices of an argument along one dimension equal, so that the dimension can have stride 0.
fn repeat_slices(registry: &Registry, case: &mut Case, g: &mut Gen<'_>) {
    let written = run::written(registry, case.op, &case.args);
    for (i, arg) in case.args.iter_mut().enumerate() {
        let floats = |t: &Tensor| t.dtype().is_floating();
        if let IValue::Tensor(t) = arg
            && floats(t)
            && !written.contains(&i)
            && g.flag()
            && let Ok(made) = layouts::with_equal_slices(t, g)
        {
            *arg = IValue::Tensor(made);
        }
    }
}

/// Returns a short description of a value; for a tensor, its dtype and sizes.
fn shown(value: &IValue) -> String {
    match value {
        IValue::Tensor(t) => format!("{}{:?}", t.dtype().ir_name(), t.sizes()),
        IValue::List(list) => {
            format!("[{}]", list.to_vec().iter().map(shown).collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

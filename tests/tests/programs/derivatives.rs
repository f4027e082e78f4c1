//! Comparison of every operator's derivative formula with finite differences of its kernel, on the operator's samples.
//!
//! A derivative is tested along a random direction of all inputs at once, in f64 and in complex numbers. As in PyTorch, the
//! gradient of a complex number is the direction of steepest ascent: the real part of its scalar product with a direction
//! is the derivative along that direction. Second derivatives, which come from
//! recorded walks, are compared with differences of first ones. At points where a function is not
//! differentiable the two may differ, so a derivative counts as wrong if it differs more often than it agrees.

use flambeau::exec::tape::BackwardOptions;
use flambeau::exec::{Gen, Host, Kernel, Sample};
use flambeau::ir::schema::Argument;
use flambeau::ir::value::List;
use flambeau::ir::{FunctionSchema, OpId, Registry};
use flambeau::rewrite::autodiff::{GradientEntry, GradientTable};
use flambeau::tensor::DType;
use flambeau::{Fault, Graph, IValue, Session, Tensor, Type};
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Samples per operator.
const TRIALS: u64 = 6;

/// Operators whose derivative formula is intentionally not the derivative of the kernel, with the reason.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("aten::polar", "the derivative is that of a magnitude that is not negative, as in PyTorch"),
    ("aten::ctc_loss", "PyTorch's derivative is with respect to unnormalized scores"),
    ("aten::as_strided_scatter", "PyTorch's derivative also covers the elements that the source replaces"),
    ("aten::scatter", "several source elements with one target all get its gradient, as in PyTorch"),
    ("aten::cholesky", "reads one triangle; the derivative is that of symmetric matrices"),
    ("aten::linalg_cholesky", "reads one triangle; the derivative is that of symmetric matrices"),
    ("aten::linalg_cholesky_ex", "reads one triangle; the derivative is that of symmetric matrices"),
    ("aten::linalg_eigh", "reads one triangle; the derivative is that of symmetric matrices"),
    ("aten::linalg_eigvalsh", "reads one triangle; the derivative is that of symmetric matrices"),
    ("aten::cholesky_inverse", "reads one triangle; PyTorch's derivative is that of a full matrix"),
    ("aten::cholesky_solve", "reads one triangle; PyTorch's derivative is that of a full matrix"),
    ("aten::_linalg_eigh", "reads one triangle; the derivative is that of symmetric matrices"),
    ("aten::normal", "PyTorch's derivative of random numbers is zero"),
    ("aten::binomial", "PyTorch's derivative of random numbers is zero"),
    (
        "aten::_standard_gamma",
        "the derivative is that of the distribution's quantile, not of the rejection method",
    ),
    ("aten::linalg_svd", "vectors without a singular value have no derivative"),
    (
        "aten::native_layer_norm_backward",
        "mean and inverse deviation depend on the input, as in PyTorch; those of samples are arbitrary",
    ),
    (
        "aten::native_group_norm_backward",
        "mean and inverse deviation depend on the input, as in PyTorch; those of samples are arbitrary",
    ),
];

/// Results without a derivative, with the reason. They get weight zero.
const WITHOUT_DERIVATIVE: &[(&str, &[usize], &str)] = &[
    ("aten::_weight_norm_interface", &[1], "the norms are constants, as in PyTorch"),
    ("aten::_linalg_det", &[1], "factors for the backward pass"),
    ("aten::_linalg_slogdet", &[2], "factors for the backward pass"),
    ("aten::_linalg_solve_ex", &[1], "factors for the backward pass"),
    ("aten::_thnn_fused_lstm_cell", &[2], "a workspace for the backward pass"),
    ("aten::log_sigmoid_forward", &[1], "a buffer for the backward pass"),
    ("aten::native_layer_norm", &[1, 2], "mean and inverse deviation have no derivative in PyTorch"),
    ("aten::_native_batch_norm_legit", &[1, 2], "mean and inverse deviation have no derivative in PyTorch"),
    ("aten::native_group_norm", &[1, 2], "mean and inverse deviation have no derivative in PyTorch"),
];

/// Parts of the messages with which PyTorch refuses derivatives of complex numbers.
const REFUSED: [&str; 2] = [
    "does not support automatic differentiation for outputs with complex dtype",
    "in the complex case are specified up to multiplication by e^{i phi}",
];

/// Operators for which no sample can be tested, with the reason.
const UNTESTABLE: &[(&[&str], &str)] = &[
    (
        &["aten::_fft_c2c", "aten::_fft_c2r", "aten::istft", "aten::linalg_eig"],
        "the arguments or results are complex",
    ),
    (&["aten::acosh", "aten::arccosh"], "the samples are outside of the domain"),
    (&["aten::_ctc_loss", "aten::_ctc_loss.Tensor"], "impossible states have infinite values"),
    (
        &[
            "aten::_unsafe_index.Tensor_hacked_twin",
            "aten::_unsafe_index_put.hacked_twin",
            "aten::index.Tensor_hacked_twin",
            "aten::index_put.hacked_twin",
        ],
        "samples are lists of optional tensors",
    ),
];

/// Returns the value with `f` applied to every floating-point or complex tensor in it.
pub(super) fn mapped(value: &IValue, f: &mut dyn FnMut(&Tensor) -> Tensor) -> IValue {
    match value {
        IValue::Tensor(t) if t.dtype().is_floating() || t.dtype().is_complex() => IValue::Tensor(f(t)),
        IValue::List(list) => {
            let items = list.to_vec().iter().map(|item| mapped(item, f)).collect();
            IValue::List(List::from_values(list.elem_type(), items))
        }
        other => other.clone(),
    }
}

/// Returns the f64 and complex tensors in values.
fn f64_tensors<'a>(values: impl IntoIterator<Item = &'a IValue>) -> Vec<Tensor> {
    let mut found = Vec::new();
    for value in values {
        mapped(value, &mut |t| {
            found.push(t.clone());
            t.clone()
        });
    }
    found.retain(|t| matches!(t.dtype(), DType::F64 | DType::C128));
    found
}

/// Returns the elements, of complex numbers both parts.
fn elements(t: &Tensor) -> Vec<f64> {
    if t.dtype().is_complex() { t.view_as_real().unwrap() } else { t.clone() }.to_vec::<f64>().unwrap()
}

/// Returns a tensor of the dtype and sizes of another.
fn of_elements(values: &[f64], like: &Tensor) -> Tensor {
    if like.dtype().is_complex() {
        let sizes: Vec<i64> = like.sizes().iter().copied().chain([2]).collect();
        return Tensor::from_slice(values, &sizes).unwrap().view_as_complex().unwrap();
    }
    Tensor::from_slice(values, like.sizes()).unwrap()
}

fn drawn_like(t: &Tensor, g: &mut Gen<'_>) -> Tensor {
    let values: Vec<f64> = elements(t).iter().map(|_| g.float(-1.0, 1.0)).collect();
    of_elements(&values, t)
}

/// Returns complex numbers: those of the tensor, or its elements with random imaginary parts.
fn with_imaginary_parts(t: &Tensor, g: &mut Gen<'_>) -> Tensor {
    if t.dtype().is_complex() {
        return t.to_dtype(DType::C128).unwrap();
    }
    let pairs: Vec<f64> = elements(t).iter().flat_map(|x| [*x, g.float(-1.0, 1.0)]).collect();
    of_elements(&pairs, &t.to_dtype(DType::C128).unwrap())
}

/// Returns the real part of the scalar product.
fn dot(a: &Tensor, b: &Tensor) -> f64 {
    elements(a).iter().zip(elements(b)).map(|(x, y)| x * y).sum()
}

/// Runs the kernel; returns `None` if the kernel is missing or rejects the arguments.
pub(super) fn run(registry: &Registry, op: OpId, args: &[IValue]) -> Option<Vec<IValue>> {
    let kernel = registry.facet::<Kernel>(op)?;
    let mut args = args.iter().map(IValue::deep_copied).collect::<Result<Vec<_>, _>>().ok()?;
    let call = || kernel.call_on(registry.schema(op), &mut args, &mut Host::quiet());
    catch_unwind(AssertUnwindSafe(call)).ok()?.ok()
}

/// Creates a graph of one node with such arguments. Vararg arguments have their own types.
pub(super) fn call_of(registry: &Arc<Registry>, op: OpId, args: &[IValue]) -> Graph {
    let schema = registry.schema(op);
    let mut graph = Graph::new(Arc::clone(registry));
    let mut editor = graph.edit();
    let declared = schema.args.iter().map(|arg| arg.ty);
    let further = args.iter().skip(schema.args.len()).map(IValue::type_of);
    let inputs: Vec<_> = declared.chain(further).map(|ty| editor.add_input(ty)).collect();
    let types: Vec<Type> = schema.returns.iter().map(|r| r.ty).collect();
    let node = editor.node(op, &inputs, &types);
    let results: Vec<_> = editor.graph().results(node).collect();
    for result in results {
        editor.add_output(result);
    }
    graph
}

/// How a trial ended.
enum Outcome {
    Agrees,
    Differs(String),
    /// The sample cannot be differentiated, or there is no derivative formula.
    Skipped,
}

/// Returns for each of `count` arguments whether a derivative is defined. Vararg arguments have no names, so only a
/// body defines their derivative.
fn moving(schema: &FunctionSchema, entry: &GradientEntry, count: usize) -> Vec<bool> {
    let stated = |arg: Option<&Argument>| match entry {
        GradientEntry::Formulas(formulas) => {
            let names = |arg: &Argument| {
                formulas.iter().any(|f| f.text.is_some() && f.args.contains(&arg.name.as_str()))
            };
            arg.is_some_and(names)
        }
        _ => true,
    };
    (0..count).map(|i| stated(schema.args.get(i))).collect()
}

/// Converts the arguments of a sample to f64, including integers for which a derivative is defined.
fn in_f64(entry: &GradientEntry, moves: &[bool], args: Vec<IValue>) -> Vec<IValue> {
    let formulas = matches!(entry, GradientEntry::Formulas(_));
    let whole = |i: usize, t: &Tensor| formulas && moves[i] && t.dtype().is_integral(false);
    let converted = |(i, value): (usize, IValue)| match value {
        IValue::Tensor(t) if whole(i, &t) => IValue::Tensor(t.to_dtype(DType::F64).unwrap()),
        other => mapped(&other, &mut |t| match t.dtype().is_complex() {
            true => t.clone(),
            false => t.to_dtype(DType::F64).unwrap(),
        }),
    };
    args.into_iter().enumerate().map(converted).collect()
}

/// Returns the arguments with `f` applied to the floating-point and complex tensors of those selected by `moves`.
fn moved(args: &[IValue], moves: &[bool], f: &mut dyn FnMut(&Tensor) -> Tensor) -> Vec<IValue> {
    args.iter().zip(moves).map(|(arg, moves)| if *moves { mapped(arg, f) } else { arg.clone() }).collect()
}

/// Returns the f64 and complex tensors of the arguments selected by `moves`.
fn leaves_of(args: &[IValue], moves: &[bool]) -> Vec<Tensor> {
    f64_tensors(args.iter().zip(moves).filter(|(_, moves)| **moves).map(|(arg, _)| arg))
}

/// A sample of an operator in f64 or complex numbers.
struct Trial<'s> {
    session: &'s Session,
    op: OpId,
    args: Vec<IValue>,
    /// Whether a derivative is defined, for each argument.
    moves: Vec<bool>,
    /// The tensors of the arguments with a derivative.
    leaves: Vec<Tensor>,
    /// A weight for each element of the results.
    weights: Vec<Tensor>,
    /// Random directions, one tensor for each leaf.
    directions: Vec<Tensor>,
}

/// The step of differences.
const STEP: f64 = 1e-6;

fn attempt(
    session: &Session,
    op: OpId,
    entry: &GradientEntry,
    order: Order,
    numbers: Numbers,
    g: &mut Gen<'_>,
) -> Outcome {
    let Some(trial) = Trial::draw(session, op, entry, numbers, g) else {
        return Outcome::Skipped;
    };
    let compared = match order {
        Order::First => trial.first(),
        Order::Second => trial.second(g),
    };
    match compared {
        Ok(Some((measured, stated, scale))) => {
            if !measured.is_finite() || (measured - stated).abs() <= 2e-4 * scale {
                return Outcome::Agrees;
            }
            Outcome::Differs(format!("{stated} is stated, {measured} is measured"))
        }
        Ok(None) => Outcome::Skipped,
        // Missing features, and samples that only match other overloads.
        Err(error) if matches!(error.fault, Fault::Unsupported | Fault::Misuse) => Outcome::Skipped,
        // Refused as in PyTorch: derivatives that it does not have, and those that are not unique.
        Err(error) if REFUSED.iter().any(|text| error.message.contains(text)) => Outcome::Skipped,
        Err(error) => Outcome::Differs(error.message),
    }
}

/// The numbers for which derivatives are compared.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Numbers {
    Real,
    Complex,
}

/// Which derivatives are compared.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    First,
    Second,
}

/// A measured and a stated derivative, and the scale of their tolerance; `None` if the sample cannot be measured.
type Compared = Result<Option<(f64, f64, f64)>, flambeau::Error>;

impl<'s> Trial<'s> {
    fn draw(
        session: &'s Session,
        op: OpId,
        entry: &GradientEntry,
        numbers: Numbers,
        g: &mut Gen<'_>,
    ) -> Option<Trial<'s>> {
        let registry = session.registry();
        let schema = registry.schema(op);
        let sample = registry.facet::<Sample>(op).unwrap();
        let args = sample.make(schema, g);
        let moves = moving(schema, entry, args.len());
        let mut args = in_f64(entry, &moves, args);
        if numbers == Numbers::Complex {
            args = args.iter().map(|arg| mapped(arg, &mut |t| with_imaginary_parts(t, g))).collect();
        }
        let leaves = leaves_of(&args, &moves);
        let (first, again) = (run(registry, op, &args)?, run(registry, op, &args)?);
        let values =
            |results: &[IValue]| -> Vec<Vec<f64>> { f64_tensors(results).iter().map(elements).collect() };
        let finite = values(&first).iter().flatten().all(|x| x.is_finite());
        if leaves.iter().all(|t| t.numel() == 0) || values(&first) != values(&again) || !finite {
            return None;
        }
        let constant_results = WITHOUT_DERIVATIVE
            .iter()
            .find(|(name, ..)| *name == schema.name.as_str())
            .map_or(&[][..], |row| row.1);
        let mut weight = |i: usize, t: &Tensor| {
            let drawn = drawn_like(t, g);
            if constant_results.contains(&i) { Tensor::zeros(t.sizes(), t.dtype()).unwrap() } else { drawn }
        };
        let results = first.iter().enumerate();
        let weights: Vec<Tensor> = results
            .flat_map(|(i, result)| f64_tensors([result]).iter().map(|t| weight(i, t)).collect::<Vec<_>>())
            .collect();
        let directions: Vec<Tensor> = leaves.iter().map(|t| drawn_like(t, g)).collect();
        Some(Trial { session, op, args, moves, leaves, weights, directions })
    }

    /// Returns the arguments moved by a step along the directions.
    fn moved(&self, step: f64) -> Vec<IValue> {
        let mut directions = self.directions.iter();
        moved(&self.args, &self.moves, &mut |t| {
            let direction = elements(directions.next().unwrap());
            let sum: Vec<f64> = elements(t).iter().zip(direction).map(|(x, w)| x + step * w).collect();
            of_elements(&sum, t)
        })
    }

    /// Returns the weighted sum of all results at the moved arguments.
    fn level(&self, step: f64) -> Option<f64> {
        let results = f64_tensors(&run(self.session.registry(), self.op, &self.moved(step))?);
        let same = results.iter().map(Tensor::sizes).eq(self.weights.iter().map(Tensor::sizes));
        same.then(|| results.iter().zip(&self.weights).map(|(r, w)| dot(r, w)).sum())
    }

    fn first(&self) -> Compared {
        let (Some(ahead), Some(behind)) = (self.level(STEP), self.level(-STEP)) else { return Ok(None) };
        let measured = (ahead - behind) / (2.0 * STEP);
        let (stated, _) = self.slope(&self.args, &self.directions, Order::First)?;
        Ok(Some((measured, stated, 1.0 + measured.abs() + ahead.abs() * 1e-3)))
    }

    fn second(&self, g: &mut Gen<'_>) -> Compared {
        let vectors: Vec<Tensor> = self.leaves.iter().map(|t| drawn_like(t, g)).collect();
        let at =
            |step: f64| Ok::<_, flambeau::Error>(self.slope(&self.moved(step), &vectors, Order::First)?.0);
        let (ahead, behind) = (at(STEP)?, at(-STEP)?);
        let measured = (ahead - behind) / (2.0 * STEP);
        let (_, stated) = self.slope(&self.args, &vectors, Order::Second)?;
        Ok(Some((measured, stated, 1.0 + measured.abs() + ahead.abs() * 1e-2)))
    }

    /// Returns the scalar product of the gradients at `args` with `vectors`, and for the second order its derivative
    /// along the directions, by the formulas.
    fn slope(
        &self,
        args: &[IValue],
        vectors: &[Tensor],
        order: Order,
    ) -> Result<(f64, f64), flambeau::Error> {
        let session = self.session;
        let leaf = |t: &Tensor| {
            let own = t.clone_data().unwrap();
            own.set_requires_grad(true);
            own
        };
        let args = moved(args, &self.moves, &mut |t| leaf(t));
        let leaves = leaves_of(&args, &self.moves);
        let entry = session.program_of(call_of(session.registry(), self.op, &args))?.entry("forward")?;
        let mut host = session.host();
        let result = entry.call_on(&args, &[], &mut host)?;
        let results = match &result {
            IValue::Tuple(tuple) => f64_tensors(tuple.items()),
            other => f64_tensors([other]),
        };
        let outputs = results.into_iter().zip(self.weights.iter().cloned());
        let outputs: Vec<(Tensor, Tensor)> = outputs.filter(|(t, _)| t.requires_grad()).collect();
        let mode = BackwardOptions { retain_graph: true, create_graph: order == Order::Second };
        let found = session.gradients_with(&outputs, &leaves, mode, &mut host)?;
        let products = found.iter().zip(vectors);
        let product = products.filter_map(|(grad, vector)| Some(dot(grad.as_ref()?, vector))).sum();
        if order == Order::First {
            return Ok((product, 0.0));
        }
        let outputs = found.into_iter().zip(vectors).filter_map(|(grad, v)| Some((grad?, v.clone())));
        let outputs: Vec<(Tensor, Tensor)> = outputs.filter(|(t, _)| t.requires_grad()).collect();
        let found = session.gradients(&outputs, &leaves, &mut host)?;
        let along = found.iter().zip(&self.directions);
        Ok((product, along.filter_map(|(grad, d)| Some(dot(grad.as_ref()?, d))).sum()))
    }
}

/// Returns the number of samples that agree, and the differences of the others.
fn trials(
    session: &Session,
    op: OpId,
    entry: &GradientEntry,
    order: Order,
    numbers: Numbers,
) -> (usize, Vec<String>) {
    let (mut agreed, mut differed) = (0, Vec::new());
    for seed in 0..TRIALS {
        match attempt(session, op, entry, order, numbers, &mut Gen::from_seed(seed * 7919 + 3)) {
            Outcome::Agrees => agreed += 1,
            Outcome::Differs(why) => differed.push(why),
            Outcome::Skipped => {}
        }
    }
    (agreed, differed)
}

/// The comparisons of all operators.
#[derive(Default)]
struct Survey {
    /// Number of operators with samples that agree.
    tried: usize,
    /// What is wrong, exceptions that are not needed among it.
    wrong: Vec<String>,
    /// Operators of which no sample could be compared.
    untried: BTreeSet<String>,
}

impl Survey {
    fn of(order: Order, numbers: Numbers, exceptions: &[(&str, &str)]) -> Survey {
        let session = Session::standard().unwrap();
        let registry = session.registry();
        let table = GradientTable::from_registry(registry).unwrap();
        let (mut survey, mut excused) = (Survey::default(), BTreeSet::new());
        for op in registry.ids() {
            let schema = registry.schema(op);
            let entry = table
                .of(registry, op)
                .filter(|e| matches!(e, GradientEntry::Formulas(_) | GradientEntry::Body(_)));
            let writes = schema.args.iter().any(Argument::is_write);
            let Some(entry) = entry.filter(|_| !writes && registry.facet::<Sample>(op).is_some()) else {
                continue;
            };
            let (agreed, differed) = trials(&session, op, &entry, order, numbers);
            survey.tried += usize::from(agreed > 0);
            let mut moving =
                schema.args.iter().zip(moving(schema, &entry, schema.args.len())).filter(|(_, moves)| *moves);
            if agreed == 0 && differed.is_empty() && moving.any(|(arg, _)| arg.ty == Type::TENSOR) {
                survey.untried.insert(schema.full_name());
            }
            if differed.len() <= agreed {
                continue;
            }
            match exceptions.iter().find(|(name, _)| *name == schema.name.as_str()) {
                Some((name, _)) => drop(excused.insert(name)),
                None => {
                    let full_name = schema.full_name();
                    survey.wrong.push(format!("{full_name} ({agreed} agree): {}", differed.join("; ")));
                }
            }
        }
        let needless = exceptions.iter().filter(|(name, _)| !excused.contains(name));
        survey.wrong.extend(needless.map(|(name, _)| format!("{name} needs no exception")));
        survey
    }

    /// Asserts that nothing is wrong, and that enough operators were compared.
    #[track_caller]
    fn check(&self, least: usize) {
        assert!(self.wrong.is_empty(), "{}", self.wrong.join("\n"));
        assert!(self.tried > least, "only {} operators could be tried", self.tried);
    }
}

#[test]
fn stated_derivatives_agree_with_finite_differences() {
    let mut survey = Survey::of(Order::First, Numbers::Real, EXCEPTIONS);
    let expected = |name: &String| UNTESTABLE.iter().any(|(names, _)| names.contains(&name.as_str()));
    let surprising = survey.untried.iter().filter(|name| !expected(name));
    survey.wrong.extend(surprising.map(|name| format!("{name} was never tried")));
    let names =
        UNTESTABLE.iter().flat_map(|(names, _)| *names).filter(|name| !survey.untried.contains(**name));
    survey.wrong.extend(names.map(|name| format!("{name} is tried, though not expected to be")));
    survey.check(650);
}

/// Operators whose second derivative is intentionally not the derivative of the first one, with the reason.
const SECOND_EXCEPTIONS: &[(&str, &str)] = &[
    ("aten::polar", "the derivative is that of a magnitude that is not negative, as in PyTorch"),
    ("aten::cholesky", "reads one triangle; the derivative is that of symmetric matrices"),
    ("aten::linalg_cholesky", "reads one triangle; the derivative is that of symmetric matrices"),
    ("aten::linalg_cholesky_ex", "reads one triangle; the derivative is that of symmetric matrices"),
    ("aten::linalg_eigh", "reads one triangle; the derivative is that of symmetric matrices"),
    ("aten::linalg_eigvalsh", "reads one triangle; the derivative is that of symmetric matrices"),
    ("aten::_linalg_eigh", "reads one triangle; the derivative is that of symmetric matrices"),
    ("aten::cholesky_inverse", "reads one triangle; PyTorch's derivative is that of a full matrix"),
    ("aten::cholesky_solve", "reads one triangle; PyTorch's derivative is that of a full matrix"),
    ("aten::native_layer_norm_backward", "mean and inverse deviation of samples are not those of the input"),
    ("aten::native_group_norm_backward", "mean and inverse deviation of samples are not those of the input"),
];

#[test]
fn second_derivatives_agree_with_differences_of_first_ones() {
    Survey::of(Order::Second, Numbers::Real, SECOND_EXCEPTIONS).check(640);
}

/// Operators that read one triangle of a complex matrix: their derivative, of any order, is intentionally not that of the kernel.
const COMPLEX_TRIANGLES: &[(&str, &str)] = &[
    ("aten::cholesky", "the derivative is that of Hermitian matrices"),
    ("aten::linalg_cholesky", "the derivative is that of Hermitian matrices"),
    ("aten::linalg_cholesky_ex", "the derivative is that of Hermitian matrices"),
    ("aten::linalg_eigvalsh", "the derivative is that of Hermitian matrices"),
    ("aten::cholesky_inverse", "PyTorch's derivative is that of a full matrix"),
    ("aten::cholesky_solve", "PyTorch's derivative is that of a full matrix"),
];

/// Other operators whose first derivative of complex numbers is intentionally not that of the kernel, with the reason.
const COMPLEX_EXCEPTIONS: &[(&str, &str)] = &[
    ("aten::as_strided_scatter", "PyTorch's derivative also covers the elements that the source replaces"),
    ("aten::scatter", "several source elements with one target all get its gradient, as in PyTorch"),
];

#[test]
fn complex_derivatives_agree_with_finite_differences() {
    Survey::of(Order::First, Numbers::Complex, &[COMPLEX_TRIANGLES, COMPLEX_EXCEPTIONS].concat()).check(200);
}

#[test]
fn second_complex_derivatives_agree_with_differences_of_first_ones() {
    Survey::of(Order::Second, Numbers::Complex, COMPLEX_TRIANGLES).check(190);
}

//! The matrix of operators and facts: what must be stated of every operator with a kernel, and whether it is true.

use super::partial::Forecast;
use flambeau_analysis::shape::{Fact, Operand, ShapeCx, Symbols, infer};
use flambeau_analysis::{Dtype, Shape};
use flambeau_exec::tape::{NoDerivatives, Tape};
use flambeau_exec::{Gen, Host, Kernel, KernelError, Rets, Sample};
use flambeau_ir::schema::{AliasInfo, AliasSet, Argument, FunctionSchema};
use flambeau_ir::types::{Dim, TypeKind};
use flambeau_ir::value::IValue;
use flambeau_ir::{Doc, Effects, OpId, Registry, Symbol, Type};
use flambeau_tensor::{Fault, Storage, Tensor, compare};
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Samples per operator.
const TRIALS: u64 = 12;

/// Parts of what there is to know of a sample that rules are tried on.
const PARTS: usize = 4;

/// What is not asked of an operator.
pub(crate) struct Exception {
    pub(crate) op: &'static str,
    /// The check.
    pub(crate) check: &'static str,
    /// Why it would fail.
    pub(crate) why: &'static str,
    /// What it would take to ask it.
    pub(crate) needed: &'static str,
}

/// What is not asked of some operators. None at present.
pub(crate) const EXCEPTIONS: &[Exception] = &[];

fn exception(op: &str, check: &str) -> Option<usize> {
    EXCEPTIONS.iter().position(|exception| exception.op == op && exception.check == check)
}

/// Takes a result: a tensor, or a list of them.
fn is_output(arg: &Argument) -> bool {
    arg.is_out() || (arg.kwarg_only && arg.name.as_str() == "out")
}

/// The name of the functional operator that an in-place one follows from: `add` of `add_`, `__and__` of `__iand__`.
fn functional_name(name: &str) -> Option<String> {
    match name.split_once("::__i").filter(|(_, rest)| rest.ends_with("__")) {
        Some((namespace, rest)) => Some(format!("{namespace}::__{rest}")),
        None => name.strip_suffix('_').map(str::to_owned),
    }
}

/// In-place and `out=` variants follow from a functional operator, whose samples they are tried on.
fn is_variant(schema: &FunctionSchema) -> bool {
    schema.args.iter().any(is_output)
        || (functional_name(schema.name.as_str()).is_some()
            && schema.args.first().is_some_and(Argument::is_write))
}

/// The operator a variant follows from, and where the variant's arguments (those of the output left out) are among its: of
/// the same names and types, or the first ones, of the same types. It may have more, which say what the output is like.
fn functional(registry: &Registry, schema: &FunctionSchema) -> Option<(OpId, Vec<usize>)> {
    let name = schema.name.as_str();
    let out = schema.args.iter().any(is_output);
    let names = [out.then(|| name.to_owned()), functional_name(name)];
    let asked: Vec<&Argument> = schema.args.iter().filter(|a| !is_output(a)).collect();
    let places = |id: OpId| {
        let args = &registry.schema(id).args;
        let named = |a: &&Argument| args.iter().position(|b| (a.name, a.ty) == (b.name, b.ty));
        let first = || {
            let fits = asked.len() <= args.len() && asked.iter().zip(args).all(|(a, b)| a.ty == b.ty);
            fits.then(|| (0..asked.len()).collect())
        };
        let places: Vec<usize> = asked.iter().map(named).collect::<Option<_>>().or_else(first)?;
        let rest = (0..args.len()).filter(|i| !places.contains(i)).all(|i| args[i].default.is_some());
        (rest && registry.facet::<Sample>(id).is_some()).then_some((id, places))
    };
    let fitting = names.iter().flatten().flat_map(|name| registry.overloads(Symbol::new(name)));
    // Of several that fit, the one with the fewest others.
    fitting.filter_map(|id| places(*id)).min_by_key(|(id, _)| registry.schema(*id).args.len())
}

/// Arguments to try an operator on; `None` if a variant has nothing to follow from or its base cannot be run.
pub(crate) fn arguments(registry: &Registry, id: OpId, g: &mut Gen<'_>) -> Option<Vec<IValue>> {
    let schema = registry.schema(id);
    if let Some(sample) = registry.facet::<Sample>(id) {
        return Some(sample.make(schema, g));
    }
    let (base, places) = functional(registry, schema)?;
    let base_schema = registry.schema(base);
    let drawn = registry.facet::<Sample>(base)?.make(base_schema, g);
    if drawn.len() != base_schema.args.len() {
        return None;
    }
    let mut args: Vec<IValue> = places.iter().map(|i| drawn[*i].clone()).collect();
    let copies = || drawn.iter().map(IValue::deep_copied).collect::<Result<Vec<_>, _>>().ok();
    if schema.args.iter().any(is_output) {
        args.extend(run(registry, base, copies()?)?.ok()?);
    } else if let Some(Ok(results)) = run(registry, base, copies()?)
        && let (Some(IValue::Tensor(own)), [IValue::Tensor(result)]) = (args.first(), &results[..])
        && (own.sizes() != result.sizes() || own.dtype() != result.dtype())
    {
        // What is written has to be as large as what is computed.
        args[0] = IValue::Tensor(result.clone_data().ok()?);
    }
    (args.len() == schema.args.len()).then_some(args)
}

/// Runs a kernel; `None` if it panics.
fn run(registry: &Registry, id: OpId, mut args: Vec<IValue>) -> Option<Result<Rets, KernelError>> {
    let kernel = registry.facet::<Kernel>(id)?;
    let schema = registry.schema(id);
    // It is recorded, for those that ask for gradients; leaves are all that is asked about.
    let mut host = Host::quiet();
    host.set_tape(Some(Tape::new(Arc::new(NoDerivatives))));
    catch_unwind(AssertUnwindSafe(|| kernel.call_on(schema, &mut args, &mut host))).ok()
}

/// Whether a value may stand where a type with type variables is expected.
fn fits(value: &IValue, ty: Type) -> bool {
    match ty.kind() {
        TypeKind::Var(_) => true,
        TypeKind::Optional(inner) => value.is_none() || fits(value, *inner),
        TypeKind::List(elem) => match value {
            IValue::List(l) => l.to_vec().iter().all(|v| fits(v, *elem)),
            _ => false,
        },
        TypeKind::Tuple(t) => match value {
            IValue::Tuple(v) => {
                v.items().len() == t.elems.len()
                    && v.items().iter().zip(&t.elems[..]).all(|(v, t)| fits(v, *t))
            }
            _ => false,
        },
        TypeKind::Dict(..) => value.is_dict(),
        TypeKind::Future(_) => value.is_future(),
        TypeKind::Number => value.as_scalar().is_some(),
        _ => value.fits(ty),
    }
}

/// Whether a value is as a fact says.
pub(crate) fn admits(fact: &Fact, value: &IValue) -> bool {
    match (fact, value) {
        (Fact::Unknown, _) => true,
        (Fact::None, v) => v.is_none(),
        (Fact::Bool(b), v) => v.as_bool() == Some(*b),
        (Fact::Int(Dim::Known(n)), v) => v.as_int() == Some(*n),
        (Fact::Int(_), v) => v.is_int(),
        (Fact::Tensor(fact), IValue::Tensor(t)) => fact.admits(t),
        (Fact::List(facts), IValue::List(l)) => {
            facts.len() == l.len() && facts.iter().zip(l.to_vec()).all(|(f, v)| admits(f, &v))
        }
        (Fact::ListOf(fact), IValue::List(l)) => l.to_vec().iter().all(|v| admits(fact, v)),
        (Fact::Tuple(facts), IValue::Tuple(t)) => {
            facts.len() == t.items().len() && facts.iter().zip(t.items()).all(|(f, v)| admits(f, v))
        }
        _ => false,
    }
}

/// The sets an annotation names, of the value and its elements.
fn sets(alias: Option<&AliasInfo>) -> Vec<AliasSet> {
    let mut all = Vec::new();
    let mut todo: Vec<&AliasInfo> = alias.into_iter().collect();
    while let Some(info) = todo.pop() {
        all.extend(info.before.iter().chain(&info.after).copied());
        todo.extend(&info.contained);
    }
    all
}

/// Whether the schema allows that a result shares memory with an argument: it is of a set that the argument is of, or of
/// one that an argument leaves for any.
fn may_share(schema: &FunctionSchema, ret: &Argument, arg: &Argument) -> bool {
    let own = sets(ret.alias.as_ref());
    let meets = |other: &Argument| sets(other.alias.as_ref()).iter().any(|set| own.contains(set));
    let leaves = |other: &Argument| sets(other.alias.as_ref()).contains(&AliasSet::Wildcard);
    own.contains(&AliasSet::Wildcard)
        || meets(arg)
        || schema.args.iter().any(|other| meets(other) && leaves(other))
}

/// Tensors that a value is or, as a list, has.
fn tensors(value: &IValue) -> Vec<Tensor> {
    match value {
        IValue::Tensor(t) => vec![t.clone()],
        IValue::List(l) => l.to_tensors().unwrap_or_default(),
        _ => Vec::new(),
    }
}

/// Whether two values are, or have, the same mutable memory. Elements of a fresh list may be those of an argument that
/// is a list.
fn share(ret: &IValue, arg: &IValue) -> bool {
    if ret.is_list() && arg.is_list() || ret.is_dict() && arg.is_dict() {
        return ret.identity() == arg.identity();
    }
    let pair = |a: &Tensor, b: &Tensor| a.numel() > 0 && a.storage().ptr_eq(b.storage());
    tensors(ret).iter().any(|a| tensors(arg).iter().any(|b| pair(a, b)))
}

/// An argument's tensors before the call: what they showed, where, in which version.
struct Before(Vec<Shown>);

struct Shown {
    tensor: Tensor,
    copy: Tensor,
    storage: Storage,
    version: u64,
    strides: Vec<i64>,
}

impl Before {
    fn of(value: &IValue) -> Before {
        let shown = |tensor: Tensor| {
            let (copy, storage) = (tensor.clone_data().ok()?, tensor.storage().clone());
            let (version, strides) = (tensor.version(), tensor.strides().to_vec());
            Some(Shown { tensor, copy, storage, version, strides })
        };
        Before(tensors(value).into_iter().filter_map(shown).collect())
    }
}

struct Trial<'a> {
    registry: &'a Registry,
    id: OpId,
    name: String,
    wrong: Vec<String>,
    /// The exceptions that were made.
    excused: BTreeSet<usize>,
}

impl Trial<'_> {
    fn fail(&mut self, check: &str, what: String) {
        match exception(&self.name, check) {
            Some(made) => drop(self.excused.insert(made)),
            None => self.wrong.push(format!("{}: {check}: {what}", self.name)),
        }
    }

    /// Runs the operator on one sample; whether it succeeded.
    fn once(&mut self, seed: u64) -> bool {
        let Some(args) = arguments(self.registry, self.id, &mut Gen::from_seed(seed)) else { return false };
        let schema = self.registry.schema(self.id);
        let before: Vec<Before> = args.iter().map(Before::of).collect();
        let facts = self.facts(&args);
        let told = &mut Gen::from_seed(seed);
        let forecasts: Vec<Forecast> =
            (0..PARTS).map(|_| Forecast::of(self.registry, self.id, &args, told)).collect();
        let Some(result) = run(self.registry, self.id, args.clone()) else {
            self.fail("panic", format!("on {args:?}"));
            return false;
        };
        let rets = match result {
            Ok(rets) => rets,
            Err(error) => {
                if matches!(error.fault(), Fault::Internal | Fault::Misuse) {
                    self.fail("error", error.to_string());
                }
                return false;
            }
        };
        if rets.len() != schema.returns.len() && !schema.varret {
            self.fail("results", format!("{} instead of {}", rets.len(), schema.returns.len()));
            return true;
        }
        // Where the schema cannot tell, the effect says that anything is possible.
        let effects = self.registry.effects(self.id);
        let anything = effects.contains(Effects::CONSERVATIVE);
        for (i, (ret, declared)) in rets.iter().zip(&schema.returns).enumerate() {
            if !fits(ret, declared.ty) {
                self.fail("type", format!("result {i} is {ret:?}, declared {}", declared.ty));
            }
            if !admits(&facts[i], ret) {
                self.fail("shape", format!("result {i} is {ret:?}, predicted {:?}, on {args:?}", facts[i]));
            }
            for (arg, value) in schema.args.iter().zip(&args) {
                if !anything && share(ret, value) && !may_share(schema, declared, arg) {
                    self.fail("alias", format!("result {i} shares memory with `{}`", arg.name));
                }
            }
        }
        if let Some(wrong) = forecasts.iter().find_map(|forecast| forecast.wrong(&rets)) {
            self.fail("shape", wrong);
        }
        self.writes(schema, &args, &before);
        true
    }

    /// What the rules predict of the results.
    fn facts(&self, args: &[IValue]) -> Vec<Fact> {
        let schema = self.registry.schema(self.id);
        let (shape, dtype) = (self.registry.facet::<Shape>(self.id), self.registry.facet::<Dtype>(self.id));
        let mut symbols = Symbols::default();
        let mut cx =
            ShapeCx::new(Some(schema), args.iter().map(|v| -> Operand<'_> { Operand::of(v) }), &mut symbols);
        (0..schema.returns.len()).map(|i| infer(shape, dtype, i, &mut cx)).collect()
    }

    /// Only marked arguments are written, and a write is a new version.
    fn writes(&mut self, schema: &FunctionSchema, args: &[IValue], before: &[Before]) {
        let written = |t: &Tensor| {
            let marked = schema
                .args
                .iter()
                .zip(args)
                .filter(|(a, _)| a.is_write() || !sets(a.alias.as_ref()).is_empty());
            marked.flat_map(|(_, v)| tensors(v)).any(|w| w.storage().ptr_eq(t.storage()))
        };
        for Shown { tensor, copy, storage, version, strides } in before.iter().flat_map(|b| &b.0) {
            let changed = (tensor.sizes(), tensor.strides()) == (copy.sizes(), &strides[..])
                && !compare::bitwise_equal(tensor, copy).unwrap_or(true);
            // One that shows other memory now has the versions of that.
            let left = !tensor.storage().ptr_eq(storage);
            let newer = tensor.version() != *version;
            if changed && !left && !newer {
                self.fail("version", "an argument was written without a new version".to_owned());
            }
            if (changed || left || newer) && !written(tensor) {
                self.fail("write", "an argument that is not marked was written".to_owned());
            }
        }
    }
}

/// What has to be stated of an operator.
fn is_stated(trial: &mut Trial<'_>) {
    let (registry, id) = (trial.registry, trial.id);
    let tensors = registry.schema(id).returns.iter().any(|r| r.ty == Type::TENSOR);
    let variant = is_variant(registry.schema(id));
    for (fact, asked, stated, what) in [
        ("sizes", tensors, registry.facet::<Shape>(id).is_some(), "no rule says what they are"),
        ("dtype", tensors, registry.facet::<Dtype>(id).is_some(), "no rule says what it is"),
        ("doc", true, registry.facet::<Doc>(id).is_some(), "is missing"),
        ("sample", !variant, registry.facet::<Sample>(id).is_some(), "is missing"),
    ] {
        if asked && !stated {
            trial.fail(fact, what.to_owned());
        }
    }
}

#[test]
fn every_operator_with_a_kernel_is_complete() {
    let registry = flambeau_ops::registry();
    let (mut wrong, mut kernels, mut excused) = (Vec::new(), 0, BTreeSet::new());
    for (id, _) in registry.column::<Kernel>().iter() {
        kernels += 1;
        let name = registry.schema(id).full_name();
        let mut trial =
            Trial { registry: &registry, id, name, wrong: Vec::new(), excused: std::mem::take(&mut excused) };
        is_stated(&mut trial);
        if (0..TRIALS).filter(|&seed| trial.once(seed)).count() == 0 {
            trial.fail("success", "no sample succeeds".to_owned());
        }
        trial.wrong.dedup();
        trial.wrong.truncate(2);
        wrong.append(&mut trial.wrong);
        excused = trial.excused;
    }
    for (at, exception) in EXCEPTIONS.iter().enumerate() {
        if !excused.contains(&at) {
            wrong.push(format!("{}: {}: needs no exception", exception.op, exception.check));
        }
    }
    assert!(kernels > 2600, "only {kernels} kernels");
    assert!(wrong.is_empty(), "{} wrong of {kernels}:\n{}", wrong.len(), wrong.join("\n"));
}

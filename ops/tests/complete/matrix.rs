//! The matrix of operators and facts: what must be stated of every operator with a kernel, and whether it is true.

use super::partial::Forecast;
use flambeau_analysis::shape::{Fact, Operand, ShapeCx, Symbols, infer};
use flambeau_analysis::{Dtype, Shape};
use flambeau_exec::{Gen, Host, Kernel, KernelError, Rets, Sample};
use flambeau_ir::schema::{AliasInfo, AliasSet, Argument, FunctionSchema};
use flambeau_ir::types::{Dim, TypeKind};
use flambeau_ir::value::IValue;
use flambeau_ir::{Doc, Effects, OpId, Registry, Symbol, Type};
use flambeau_tensor::{Fault, Tensor, compare};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Samples per operator.
const TRIALS: u64 = 12;

/// Parts of what there is to know of a sample that rules are tried on.
const PARTS: usize = 4;

/// What is not asked of some operators: the operator, the check, why.
pub(crate) const EXCEPTIONS: &[(&str, &str, &str)] = &[
    ("prim::grad", "type", "a gradient that is not there is no tensor"),
    ("prim::grad", "sizes", "of a gradient that is not there nothing is known, and it may not be"),
    ("prim::grad", "dtype", "of a gradient that is not there nothing is known, and it may not be"),
    (
        "aten::backward",
        "success",
        "it runs where a program is recorded, as in `tests/cases/run/gradients.py`",
    ),
    (
        "aten::backward.TensorList",
        "success",
        "it runs where a program is recorded, as in `tests/cases/run/gradients.py`",
    ),
    ("aten::grad", "success", "it runs where a program is recorded, as in `tests/cases/run/gradients.py`"),
];

fn excepted(op: &str, check: &str) -> bool {
    EXCEPTIONS.iter().any(|(name, what, _)| *name == op && *what == check)
}

/// Takes a result: a tensor, or a list of them.
fn is_output(arg: &Argument) -> bool {
    arg.is_out() || (arg.kwarg_only && arg.name.as_str() == "out")
}

/// In-place and `out=` variants follow from a functional operator, whose samples they are tried on.
fn is_variant(schema: &FunctionSchema) -> bool {
    schema.args.iter().any(is_output)
        || (schema.name.as_str().ends_with('_') && schema.args.first().is_some_and(Argument::is_write))
}

/// The operator a variant follows from: of the same name (without the `_` of in-place variants) and with the same
/// arguments, those of the output left out.
fn functional(registry: &Registry, schema: &FunctionSchema) -> Option<OpId> {
    let name = schema.name.as_str();
    let out = schema.args.iter().any(is_output);
    let base = if out { name } else { name.strip_suffix('_')? };
    let kept: Vec<&Argument> = schema.args.iter().filter(|a| !is_output(a)).collect();
    let fits = |id: &OpId| {
        let args = &registry.schema(*id).args;
        registry.facet::<Sample>(*id).is_some()
            && args.iter().map(|a| (a.name, a.ty)).eq(kept.iter().map(|a| (a.name, a.ty)))
    };
    registry.overloads(Symbol::new(base)).iter().copied().find(fits)
}

/// Arguments to try an operator on; `None` if a variant has nothing to follow from or its base cannot be run.
pub(crate) fn arguments(registry: &Registry, id: OpId, g: &mut Gen<'_>) -> Option<Vec<IValue>> {
    let schema = registry.schema(id);
    if let Some(sample) = registry.facet::<Sample>(id) {
        return Some(sample.make(schema, g));
    }
    let base = functional(registry, schema)?;
    let base_schema = registry.schema(base);
    let mut args = registry.facet::<Sample>(base)?.make(base_schema, g);
    let outs = schema.args.iter().filter(|a| is_output(a)).count();
    if args.len() + outs != schema.args.len() {
        return None;
    }
    if outs > 0 {
        let copies = args.iter().map(IValue::deep_copied).collect::<Result<Vec<_>, _>>().ok()?;
        args.extend(run(registry, base, copies)?.ok()?);
    }
    (args.len() == schema.args.len()).then_some(args)
}

/// Runs a kernel; `None` if it panics.
fn run(registry: &Registry, id: OpId, mut args: Vec<IValue>) -> Option<Result<Rets, KernelError>> {
    let kernel = registry.facet::<Kernel>(id)?;
    let schema = registry.schema(id);
    catch_unwind(AssertUnwindSafe(|| kernel.call_on(schema, &mut args, &mut Host::quiet()))).ok()
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

/// Whether the schema allows that a result shares memory with an argument.
fn may_share(ret: &Argument, arg: &Argument) -> bool {
    let (a, b) = (sets(ret.alias.as_ref()), sets(arg.alias.as_ref()));
    a.contains(&AliasSet::Wildcard) || a.iter().any(|set| b.contains(set))
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

/// An argument's tensors before the call: a copy of the data, and the version.
struct Before(Vec<(Tensor, Tensor, u64, Vec<i64>)>);

impl Before {
    fn of(value: &IValue) -> Before {
        let kept = |t: Tensor| Some((t.clone(), t.clone_data().ok()?, t.version(), t.strides().to_vec()));
        Before(tensors(value).into_iter().filter_map(kept).collect())
    }
}

struct Trial<'a> {
    registry: &'a Registry,
    id: OpId,
    name: String,
    wrong: Vec<String>,
}

impl Trial<'_> {
    fn fail(&mut self, check: &str, what: String) {
        if !excepted(&self.name, check) {
            self.wrong.push(format!("{}: {check}: {what}", self.name));
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
                if !anything && share(ret, value) && !may_share(declared, arg) {
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
        for Before(kept) in before {
            for (tensor, copy, version, strides) in kept {
                let changed = (tensor.sizes(), tensor.strides()) == (copy.sizes(), &strides[..])
                    && !compare::bitwise_equal(tensor, copy).unwrap_or(true);
                if changed && tensor.version() == *version {
                    self.fail("version", "an argument was written without a new version".to_owned());
                }
                if (changed || tensor.version() != *version) && !written(tensor) {
                    self.fail("write", "an argument that is not marked was written".to_owned());
                }
            }
        }
    }
}

#[test]
fn every_operator_with_a_kernel_is_complete() {
    let registry = flambeau_ops::registry();
    let (mut wrong, mut kernels, mut tried) = (Vec::new(), 0, 0);
    for (id, _) in registry.column::<Kernel>().iter() {
        let schema = registry.schema(id);
        let name = schema.full_name();
        kernels += 1;
        let mut trial = Trial { registry: &registry, id, name, wrong: Vec::new() };
        let tensors = schema.returns.iter().any(|r| r.ty == Type::TENSOR);
        for (fact, stated) in [
            ("sizes", registry.facet::<Shape>(id).is_some()),
            ("dtype", registry.facet::<Dtype>(id).is_some()),
        ] {
            if tensors && !stated {
                trial.fail(fact, "no rule says what they are".to_owned());
            }
        }
        if registry.facet::<Doc>(id).is_none() {
            trial.fail("doc", "is missing".to_owned());
        }
        let variant = is_variant(schema) && registry.facet::<Sample>(id).is_none();
        if registry.facet::<Sample>(id).is_none() && !variant {
            trial.fail("sample", "is missing".to_owned());
        }
        let succeeded = (0..TRIALS).filter(|&seed| trial.once(seed)).count();
        if succeeded > 0 {
            tried += 1;
        } else if !variant && registry.facet::<Sample>(id).is_some() {
            trial.fail("success", "no sample succeeds".to_owned());
        }
        trial.wrong.dedup();
        trial.wrong.truncate(2);
        wrong.append(&mut trial.wrong);
    }
    println!("{kernels} kernels, {tried} of them run on samples");
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(tried * 10 >= kernels * 9, "only {tried} of {kernels} kernels run on some sample");
    for (name, _, _) in EXCEPTIONS {
        assert!(registry.lookup(name).is_some(), "exception for `{name}`, which is not declared");
    }
}

//! The matrix of operators and facts: facts that every operator with a kernel must have, and checks that they are true.

use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::soundness::{is_variant, sample};
use flambeau_exec::tape::{NoDerivatives, Tape};
use flambeau_exec::{Gen, Host, Kernel, KernelError, Rets, Sample};
use flambeau_ir::schema::{AliasInfo, AliasSet, Argument, FunctionSchema};
use flambeau_ir::types::TypeKind;
use flambeau_ir::value::{Generator, IValue};
use flambeau_ir::{Doc, Effects, OpDef, OpId, Registry, RegistryBuilder, Type};
use flambeau_rewrite::AlwaysView;
use flambeau_tensor::random::Engine;
use flambeau_tensor::{DType, Device, Fault, Scalar, Storage, Tensor, compare};
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Samples per operator.
const TRIALS: u64 = 12;

/// A check that an operator is exempt from.
pub(crate) struct Exception {
    pub(crate) op: &'static str,
    /// The name of the check.
    pub(crate) check: &'static str,
    /// The reason for the failure.
    pub(crate) why: &'static str,
    /// The work that removes the exception.
    pub(crate) needed: &'static str,
}

/// Exceptions. None at present.
pub(crate) const EXCEPTIONS: &[Exception] = &[];

fn exception(op: &str, check: &str) -> Option<usize> {
    EXCEPTIONS.iter().position(|exception| exception.op == op && exception.check == check)
}

/// Runs a kernel; `None` if it panics.
fn run(registry: &Registry, id: OpId, args: Vec<IValue>) -> Option<Result<Rets, KernelError>> {
    run_on(registry, id, args, &mut Host::quiet())
}

fn run_on(
    registry: &Registry,
    id: OpId,
    mut args: Vec<IValue>,
    host: &mut Host,
) -> Option<Result<Rets, KernelError>> {
    let kernel = registry.facet::<Kernel>(id)?;
    let schema = registry.schema(id);
    // Recorded with a tape without derivatives, for operators that compute gradients; samples contain only leaves.
    host.set_tape(Some(Tape::new(Arc::new(NoDerivatives))));
    catch_unwind(AssertUnwindSafe(|| kernel.call_on(schema, &mut args, host))).ok()
}

/// Whether a value fits a type with type variables.
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

/// Returns the alias sets of an annotation, including those of elements.
fn sets(alias: Option<&AliasInfo>) -> Vec<AliasSet> {
    let mut all = Vec::new();
    let mut todo: Vec<&AliasInfo> = alias.into_iter().collect();
    while let Some(info) = todo.pop() {
        all.extend(info.before.iter().chain(&info.after).copied());
        todo.extend(&info.contained);
    }
    all
}

/// Whether the schema permits a result to share memory with an argument: both are in one alias set, or the argument
/// escapes into the wildcard set.
fn may_share(schema: &FunctionSchema, ret: &Argument, arg: &Argument) -> bool {
    let own = sets(ret.alias.as_ref());
    let meets = |other: &Argument| sets(other.alias.as_ref()).iter().any(|set| own.contains(set));
    let leaves = |other: &Argument| sets(other.alias.as_ref()).contains(&AliasSet::Wildcard);
    own.contains(&AliasSet::Wildcard)
        || meets(arg)
        || schema.args.iter().any(|other| meets(other) && leaves(other))
}

/// Returns the tensors of a value: the value itself, or the elements of a list.
fn tensors(value: &IValue) -> Vec<Tensor> {
    match value {
        IValue::Tensor(t) => vec![t.clone()],
        IValue::List(l) => l.to_tensors().unwrap_or_default(),
        _ => Vec::new(),
    }
}

/// Whether two values share mutable memory. Elements of a new list may be those of an argument list.
fn share(ret: &IValue, arg: &IValue) -> bool {
    if ret.is_list() && arg.is_list() || ret.is_dict() && arg.is_dict() {
        return ret.identity() == arg.identity();
    }
    let pair = |a: &Tensor, b: &Tensor| a.numel() > 0 && a.storage().ptr_eq(b.storage());
    tensors(ret).iter().any(|a| tensors(arg).iter().any(|b| pair(a, b)))
}

/// Snapshot of an argument's tensors before the call: contents, storage, version.
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
    /// Exceptions that were used.
    excused: BTreeSet<usize>,
}

impl Trial<'_> {
    fn fail(&mut self, check: &str, what: String) {
        match exception(&self.name, check) {
            Some(index) => drop(self.excused.insert(index)),
            None => self.wrong.push(format!("{}: {check}: {what}", self.name)),
        }
    }

    /// Runs the operator on one sample; returns whether it succeeded.
    fn once(&mut self, seed: u64) -> bool {
        let Some(args) = sample(self.registry, self.id, &mut Gen::from_seed(seed)) else { return false };
        let schema = self.registry.schema(self.id);
        let before: Vec<Before> = args.iter().map(Before::of).collect();
        let Some(result) = run(self.registry, self.id, args.clone()) else {
            self.fail("panic", format!("on {args:?}"));
            return false;
        };
        let rets = match result {
            Ok(rets) => rets,
            Err(error) => {
                if error.fault() == Fault::Input && !self.effects().contains(Effects::RAISES) {
                    self.fail("raises", format!("is not stated, but: {error}"));
                }
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
        // With conservative effects the schema's alias annotations are not binding.
        let effects = self.effects();
        let anything = effects.contains(Effects::CONSERVATIVE);
        for (i, (ret, declared)) in rets.iter().zip(&schema.returns).enumerate() {
            if !fits(ret, declared.ty) {
                self.fail("type", format!("result {i} is {ret:?}, declared {}", declared.ty));
            }
            for (arg, value) in schema.args.iter().zip(&args) {
                if !anything && share(ret, value) && !may_share(schema, declared, arg) {
                    self.fail("alias", format!("result {i} shares memory with `{}`", arg.name));
                }
            }
        }
        self.is_view(schema, &args, &rets);
        self.writes(schema, &args, &before);
        self.effects_hold(seed);
        true
    }

    /// Checks the facet [`AlwaysView`]: the result is a new tensor over the memory of an annotated operand.
    fn is_view(&mut self, schema: &FunctionSchema, args: &[IValue], rets: &[IValue]) {
        let Some(IValue::Tensor(result)) = rets.first() else { return };
        if self.registry.facet::<AlwaysView>(self.id).is_none() {
            return;
        }
        let annotated = schema.args.iter().zip(args).filter(|(a, _)| a.alias.is_some());
        let viewed: Vec<Tensor> = annotated.flat_map(|(_, value)| tensors(value)).collect();
        if !viewed.iter().any(|t| result.shares_storage(t)) {
            self.fail("view", "is stated, but the result is a copy".to_owned());
        }
        if viewed.iter().any(|t| result.ptr_eq(t)) {
            self.fail("view", "is stated, but the result is the operand itself".to_owned());
        }
    }

    fn effects(&self) -> Effects {
        self.registry.effects(self.id)
    }

    /// Runs the operator with two seeds: different results require the random effect, output requires the I/O effect.
    fn effects_hold(&mut self, seed: u64) {
        let watched = |random: u64| {
            let heard = Arc::new(AtomicBool::new(false));
            let args = sample(self.registry, self.id, &mut Gen::from_seed(seed))?;
            let mut host = Host::new();
            host.set_stdout(Listener(Arc::clone(&heard))).set_rng(Generator::new(Device::CPU, random));
            let rets = run_on(self.registry, self.id, args.clone(), &mut host)?.ok()?;
            Some((args, rets, heard.load(Ordering::Relaxed)))
        };
        let (Some(first), Some(second)) = (watched(1), watched(2)) else { return };
        if (first.2 || second.2) && !self.effects().contains(Effects::IO) {
            self.fail("io", "is not stated, but it prints".to_owned());
        }
        let same = |a: &IValue, b: &IValue| {
            let (a, b) = (tensors(a), tensors(b));
            let equal = |(a, b): (&Tensor, &Tensor)| {
                a.sizes() == b.sizes() && compare::bitwise_equal(a, b).unwrap_or(true)
            };
            a.len() == b.len() && a.iter().zip(&b).all(equal)
        };
        let all = |a: &[IValue], b: &[IValue]| a.iter().zip(b).all(|(a, b)| same(a, b));
        let settled = all(&first.0, &second.0) && all(&first.1, &second.1);
        if !settled && !self.effects().contains(Effects::RANDOM) {
            self.fail("random", "is not stated, but two seeds give different values".to_owned());
        }
    }

    /// Checks that only annotated arguments are written, and that a write increments the version.
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
            // A tensor that now has another storage has that storage's version.
            let left = !tensor.storage().ptr_eq(storage);
            let newer = tensor.version() != *version;
            if changed && !left && !newer {
                self.fail("version", "an argument was written without a new version".to_owned());
            }
            if (changed || left || newer) && !self.effects().may_write() {
                self.fail("write", "is not among the effects, but an argument was written".to_owned());
            }
            if (changed || left || newer) && !written(tensor) {
                self.fail("write", "an argument that is not marked was written".to_owned());
            }
        }
    }
}

/// A sink that records only whether it was written to.
struct Listener(Arc<AtomicBool>);

impl std::io::Write for Listener {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.store(true, Ordering::Relaxed);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Operators whose facets are incomplete, each with the check that must detect it.
fn liars() -> Vec<(OpDef, &'static str)> {
    let tensor = |name: &str| {
        OpDef::new(name).with(Doc("Lies.")).with(ResultShapes::same_as(0)).with(Dtype::same_as(0))
    };
    let sample = || Sample::tensors(1).floats();
    let draws = Kernel::new(|cx| {
        let value =
            Scalar::Int(i64::from(cx.host().rng().with_engine(Engine::new, |engine| engine.bits32())));
        cx.ret(Tensor::from_scalars(&[value], &[1], DType::I64)?);
        Ok(())
    });
    let prints = Kernel::new(|cx| {
        let x = cx.tensor(0)?.clone();
        cx.host().print(b"psst")?;
        cx.ret(x.clone_data()?);
        Ok(())
    });
    let refuses = Kernel::new(|cx| {
        let n = cx.int(0)?;
        if n != 0 {
            return Err(KernelError::input("not zero"));
        }
        cx.ret(n);
        Ok(())
    });
    let copies = Kernel::new(|cx| {
        let copy = cx.tensor(0)?.clone_data()?;
        cx.ret(copy);
        Ok(())
    });
    let returns = Kernel::new(|cx| {
        let own = cx.take(0);
        cx.ret(own);
        Ok(())
    });
    let numbers = Sample::args(|g| vec![IValue::Int(g.int(0, 2))]);
    vec![
        (tensor("liar::draws(Tensor x) -> Tensor").with(draws).with(sample()), "random"),
        (tensor("liar::prints(Tensor x) -> Tensor").with(prints).with(sample()), "io"),
        (
            tensor("liar::copies(Tensor(a) x) -> Tensor(a)").with(AlwaysView).with(copies).with(sample()),
            "view",
        ),
        (
            tensor("liar::returns(Tensor(a) x) -> Tensor(a)").with(AlwaysView).with(returns).with(sample()),
            "view",
        ),
        (OpDef::new("liar::refuses(int n) -> int").with(Effects::PURE).with(refuses).with(numbers), "raises"),
    ]
}

#[test]
fn unstated_effects_are_detected() {
    for (def, check) in liars() {
        let mut builder = RegistryBuilder::new();
        builder.add([def]);
        let registry = builder.build().unwrap();
        let (id, _) = registry.column::<Kernel>().iter().next().unwrap();
        let name = registry.schema(id).full_name();
        let mut trial = Trial { registry: &registry, id, name, wrong: Vec::new(), excused: BTreeSet::new() };
        for seed in 0..TRIALS {
            trial.once(seed);
        }
        let noticed = trial.wrong.iter().any(|wrong| wrong.contains(&format!(": {check}: ")));
        assert!(noticed, "{check}: {:?}", trial.wrong);
    }
}

/// Checks that the required facts of an operator exist.
fn is_stated(trial: &mut Trial<'_>) {
    let (registry, id) = (trial.registry, trial.id);
    let tensors = registry.schema(id).returns.iter().any(|r| r.ty == Type::TENSOR);
    let variant = is_variant(registry, id);
    for (fact, asked, stated, what) in [
        ("sizes", tensors, registry.facet::<ResultShapes>(id).is_some(), "no rule says what they are"),
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

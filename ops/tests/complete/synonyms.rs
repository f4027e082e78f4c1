//! Synonyms: an operator under another name gives the results and the errors of the canonical one.

use flambeau_exec::soundness::{hostile, sample};
use flambeau_exec::{Gen, Host, Kernel, KernelError};
use flambeau_ir::value::IValue;
use flambeau_ir::{OpId, Registry, Symbol, Type};
use flambeau_tensor::{DType, MemoryBudget, Tensor, compare};

/// The overload of `target` with the argument types of a row.
fn counterpart(registry: &Registry, target: Symbol, id: OpId) -> Option<OpId> {
    let types = |id: OpId| {
        registry.schema(id).args.iter().map(|a| (a.ty, a.is_write())).collect::<Vec<(Type, bool)>>()
    };
    let same = |other: &OpId| types(*other) == types(id);
    registry.overloads(target).iter().copied().find(same)
}

/// The results and the arguments after a call.
fn outcome(registry: &Registry, id: OpId, mut args: Vec<IValue>) -> Result<Vec<IValue>, KernelError> {
    let kernel = registry.facet::<Kernel>(id).expect("both have kernels");
    let call = || kernel.call_on(registry.schema(id), &mut args, &mut Host::quiet());
    let given = MemoryBudget::new(64 << 20).run(call)?;
    Ok(given.into_iter().collect())
}

fn same(a: &IValue, b: &IValue) -> bool {
    match (a, b) {
        (IValue::Tensor(a), IValue::Tensor(b)) => {
            a.strides() == b.strides() && compare::bitwise_equal(a, b).unwrap()
        }
        _ => format!("{a:?}") == format!("{b:?}"),
    }
}

/// Argument lists for a row: samples with all tensors of one dtype, samples whose tensors are the first one, and hostile
/// ones. `None` if the seed gives none. Equal seeds give equal lists.
fn arguments(registry: &Registry, id: OpId, seed: u64) -> Option<Vec<IValue>> {
    const DTYPES: [DType; 6] = [DType::Bool, DType::U8, DType::I64, DType::F16, DType::F32, DType::C64];
    let g = &mut Gen::from_seed(seed ^ ((id.index() as u64) << 32));
    let cast = |t: &Tensor, dtype| t.cast_copy(dtype).unwrap();
    match seed % 8 {
        kind @ 0..6 => {
            let mut args = sample(registry, id, g)?;
            for arg in &mut args {
                if let IValue::Tensor(t) = arg {
                    *arg = cast(t, DTYPES[kind as usize]).into();
                }
            }
            Some(args)
        }
        6 => {
            let mut args = sample(registry, id, g)?;
            let first = args.iter().find_map(IValue::as_tensor).cloned()?;
            args.iter_mut().filter(|arg| arg.is_tensor()).for_each(|arg| *arg = first.clone().into());
            Some(args)
        }
        _ => Some(hostile(registry, id, g)),
    }
}

#[test]
fn synonyms_behave_as_their_canonical_operators() {
    let registry = flambeau_ops::registry();
    let (mut pairs, mut calls, mut wrong) = (0, 0, Vec::new());
    for (id, _) in registry.column::<Kernel>().iter() {
        let Some(canonical) = registry.canonical(registry.name(id.into())) else { continue };
        let Some(other) = counterpart(&registry, canonical, id) else { continue };
        if registry.facet::<Kernel>(other).is_none() {
            wrong.push(format!("{} has no kernel", registry.schema(other).full_name()));
            continue;
        }
        pairs += 1;
        for seed in 0..32 {
            // The operators may write their arguments, so each gets its own.
            let both = [id, other].map(|op| Some(outcome(&registry, op, arguments(&registry, id, seed)?)));
            let [Some(here), Some(there)] = both else { continue };
            calls += 1;
            let agree = match (&here, &there) {
                (Ok(a), Ok(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
                (Err(a), Err(b)) => a.fault() == b.fault(),
                _ => false,
            };
            if !agree {
                let name = registry.schema(id).full_name();
                let args = arguments(&registry, id, seed);
                wrong.push(format!("{name} on {args:?}:\n  {here:?}\n  {there:?}"));
                break;
            }
        }
    }
    assert!(pairs > 100 && calls > 20 * pairs, "only {calls} calls of {pairs} pairs");
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

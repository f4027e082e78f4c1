//! Comparison with PyTorch's derivatives: operators must be differentiable with respect to the same arguments, or be
//! listed as exceptions.

use crate::matrix::Exception;
use flambeau_exec::Kernel;
use flambeau_ir::{FunctionSchema, OpId, Registry};
use flambeau_rewrite::autodiff::{GradientEntry, GradientTable};

/// Recorded by `tests/oracle/differentiable.py`: an operator, then its differentiable arguments, or `*`.
const DIFFERENTIABLE: &str = include_str!("../../../tests/oracle/differentiable.txt");

/// Operators without a derivative, with reasons. None at present.
pub(crate) const WITHOUT: &[Exception] = &[];

/// Whether an operator is a view, whose gradient follows from its layout.
fn is_view(schema: &FunctionSchema) -> bool {
    schema.returns.iter().any(|ret| ret.alias.is_some()) && !schema.is_mutable()
}

/// Describes what is wrong with the derivative of an operator whose arguments `args` have gradients.
fn wrong(registry: &Registry, table: &GradientTable, op: OpId, args: &[&str]) -> Option<String> {
    let schema = registry.schema(op);
    let name = schema.full_name();
    let Some(entry) = table.of(registry, op) else {
        return (!is_view(schema)).then(|| format!("{name} has no derivative"));
    };
    let composed = args == ["*"];
    match entry {
        GradientEntry::Body(_) | GradientEntry::Layout | GradientEntry::View(_) => None,
        GradientEntry::Constant => (!composed).then(|| format!("{name} is constant")),
        GradientEntry::Formulas(formulas) => {
            let stated = |arg: &&str| formulas.iter().any(|f| f.text.is_some() && f.args.contains(arg));
            match composed {
                true => formulas.is_empty().then(|| format!("{name} has no gradients")),
                false => {
                    args.iter().find(|arg| !stated(arg)).map(|arg| format!("{name}: `{arg}` has no gradient"))
                }
            }
        }
    }
}

/// Returns the recorded operators that have kernels, with their differentiable arguments.
fn recorded(registry: &Registry) -> Vec<(OpId, Vec<&'static str>)> {
    let runs = |line: &'static str| {
        let mut words = line.split(' ');
        let id = registry.lookup(&format!("aten::{}", words.next()?))?;
        registry.facet::<Kernel>(id).map(|_| (id, words.collect()))
    };
    DIFFERENTIABLE.lines().filter_map(runs).collect()
}

#[test]
fn operators_differentiable_in_pytorch_are_differentiable() {
    let registry = flambeau_ops::registry();
    let table = GradientTable::from_registry(&registry).expect("derivatives can be read");
    let all = recorded(&registry);
    assert!(all.len() > 800, "only {} operators that PyTorch differentiates run here", all.len());
    assert!(all.iter().all(|(_, args)| !args.is_empty()), "an operator without arguments was recorded");
    let found: Vec<(String, String)> = all
        .iter()
        .filter_map(|&(op, ref args)| {
            Some((registry.schema(op).full_name(), wrong(&registry, &table, op, args)?))
        })
        .collect();
    let excused = |op: &str| WITHOUT.iter().any(|exception| exception.op == op);
    let mut problems: Vec<&str> =
        found.iter().filter(|(op, _)| !excused(op)).map(|(_, what)| what.as_str()).collect();
    let needless = WITHOUT.iter().filter(|exception| found.iter().all(|(op, _)| op != exception.op));
    let needless: Vec<String> = needless.map(|e| format!("{} needs no excuse", e.op)).collect();
    problems.extend(needless.iter().map(String::as_str));
    assert!(problems.is_empty(), "{} wrong:\n{}", problems.len(), problems.join("\n"));
}

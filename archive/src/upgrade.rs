//! Operators that changed their meaning, in archives from before.
//!
//! The format version says what operators meant when an archive was written. Integer `div` truncated before version 4,
//! and `full` without a dtype was of floats before version 5: nodes of these operators are replaced by what they meant
//! then, written in TorchScript below. `linspace` and `logspace` had a default number of steps before versions 8 and 9:
//! a call that leaves it out fits no operator of today, and finds an overload below. Calls that mean the same now are
//! left.

use std::sync::Arc;

use flambeau_frontend::{NativeResolver, Session};
use flambeau_ir::module::{CompilationUnit, Function};
use flambeau_ir::{At, Diagnostic, Fault, Graph, NodeId, Registry, Source, Symbol};

use crate::import::LoadError;

/// An overload, the version from which it means what it means now, and the function below that has its old meaning.
struct Upgrade {
    overload: &'static str,
    since: u64,
    function: &'static str,
}

const UPGRADES: &[Upgrade] = &[
    Upgrade { overload: "aten::div.Tensor", since: 4, function: "div_tensor" },
    Upgrade { overload: "aten::div.Scalar", since: 4, function: "div_scalar" },
    Upgrade { overload: "aten::div.out", since: 4, function: "div_out" },
    Upgrade { overload: "aten::div_.Tensor", since: 4, function: "div_tensor_" },
    Upgrade { overload: "aten::div_.Scalar", since: 4, function: "div_scalar_" },
    Upgrade { overload: "aten::full", since: 5, function: "full" },
];

const SOURCE: &str = r#"
def div_tensor(a: Tensor, b: Tensor) -> Tensor:
    if a.is_floating_point() or b.is_floating_point():
        return torch.div(a, b)
    return torch.div(a, b, rounding_mode="trunc")

def div_scalar(a: Tensor, b: number) -> Tensor:
    if a.is_floating_point() or isinstance(b, float):
        return torch.div(a, b)
    return torch.div(a, b, rounding_mode="trunc")

def div_out(a: Tensor, b: Tensor, out: Tensor) -> Tensor:
    if a.is_floating_point() or b.is_floating_point() or out.is_floating_point():
        return torch.div(a, b, out=out)
    return torch.div(a, b, rounding_mode="trunc", out=out)

def div_tensor_(a: Tensor, b: Tensor) -> Tensor:
    if a.is_floating_point() or b.is_floating_point():
        return a.div_(b)
    return a.div_(b, rounding_mode="trunc")

def div_scalar_(a: Tensor, b: number) -> Tensor:
    if a.is_floating_point() or isinstance(b, float):
        return a.div_(b)
    return a.div_(b, rounding_mode="trunc")

def full(size: List[int], value: number, dtype: Optional[int], layout: Optional[int], device: Optional[Device],
         pin: Optional[bool]) -> Tensor:
    if dtype is None:
        return torch.full(size, float(value), layout=layout, device=device, pin_memory=pin)
    return torch.full(size, value, dtype=dtype, layout=layout, device=device, pin_memory=pin)
"#;

/// Gives the nodes of changed operators the meaning they had in archives of `version`.
///
/// # Errors
/// The diagnostic of an old meaning that cannot be compiled with the operators of `registry`.
pub(crate) fn upgrade(
    unit: &mut CompilationUnit,
    registry: &Arc<Registry>,
    version: u64,
) -> Result<(), LoadError> {
    if UPGRADES.iter().all(|u| u.since <= version) {
        return Ok(());
    }
    let session = Session::new(Arc::clone(registry), &NativeResolver, flambeau_frontend::Limits::default());
    let file = flambeau_frontend::SourceFile::new(Source::new("<upgrades>", SOURCE), &Default::default());
    if let Err(problems) = session.declare_source(&file) {
        let first = problems.into_iter().next();
        return Err(LoadError::Code(Box::new(first.unwrap_or_else(unreadable))));
    }
    let functions: Vec<Arc<Function>> = unit.functions().cloned().collect();
    for function in functions {
        let changed = changed_nodes(&function.graph, version);
        if changed.is_empty() {
            continue;
        }
        let mut graph = (*function.graph).clone();
        for (node, upgrade) in changed {
            let meaning = session.compile(Symbol::new(upgrade.function))?;
            replace(&mut graph, node, &meaning).ok_or_else(|| LoadError::Code(Box::new(unreadable())))?;
        }
        unit.define_function(Function { graph: Arc::new(graph), ..(*function).clone() });
    }
    Ok(())
}

fn unreadable() -> Diagnostic {
    Diagnostic::new(Fault::Internal, "F0100", "an old meaning of an operator cannot be put in its place")
}

fn changed_nodes(graph: &Graph, version: u64) -> Vec<(NodeId, &'static Upgrade)> {
    let wanted = |node: &NodeId| {
        let name = graph.registry().schema_of(graph.op(*node))?.full_name();
        let upgrade = UPGRADES.iter().find(|u| u.overload == name && u.since > version)?;
        Some((*node, upgrade))
    };
    graph.nodes_deep().filter_map(|node| wanted(&node)).collect()
}

fn replace(graph: &mut Graph, node: NodeId, meaning: &Function) -> Option<()> {
    let operands: Vec<_> = graph.operands(node).collect();
    let old = graph.result(node, 0);
    let (loc, ty) = (graph.loc(node), graph.ty(old));
    let mut editor = graph.edit();
    editor.at(At::before(node)).loc(loc);
    let outputs = editor.inline_graph(&meaning.graph, &operands, Some((loc, meaning.name))).ok()?;
    let &[new] = outputs.as_slice() else { return None };
    editor.set_type(new, ty);
    editor.replace_all_uses(old, new);
    editor.erase(node);
    Some(())
}

/// An operator that took calls which it takes no more, the version from which it doesn't, and what they mean: further
/// overloads that a call is held against after those of today.
struct Former {
    name: &'static str,
    since: u64,
    overloads: &'static [&'static str],
}

const FORMER: &[Former] = &[
    Former {
        name: "aten::linspace",
        since: 8,
        overloads: &[
            "def linspace(start: number, end: number, steps: Optional[int]=None, *, dtype: Optional[int]=None, \
             layout: Optional[int]=None, device: Optional[Device]=None, pin_memory: Optional[bool]=None) -> Tensor:\n    \
             return torch.linspace(start, end, 100 if steps is None else steps, dtype=dtype, layout=layout, \
             device=device, pin_memory=pin_memory)\n",
            "def linspace(start: number, end: number, steps: Optional[int]=None, *, out: Tensor) -> Tensor:\n    \
             return torch.linspace(start, end, 100 if steps is None else steps, out=out)\n",
        ],
    },
    Former {
        name: "aten::logspace",
        since: 9,
        overloads: &[
            "def logspace(start: number, end: number, steps: Optional[int]=None, base: float=10.0, *, \
             dtype: Optional[int]=None, layout: Optional[int]=None, device: Optional[Device]=None, \
             pin_memory: Optional[bool]=None) -> Tensor:\n    \
             return torch.logspace(start, end, 100 if steps is None else steps, base, dtype=dtype, layout=layout, \
             device=device, pin_memory=pin_memory)\n",
            "def logspace(start: number, end: number, steps: Optional[int]=None, base: float=10.0, *, out: Tensor) \
             -> Tensor:\n    \
             return torch.logspace(start, end, 100 if steps is None else steps, base, out=out)\n",
        ],
    },
];

/// The overloads that `name` had in archives of `version` and has no more.
pub(crate) fn former_overloads(name: Symbol, version: u64) -> &'static [&'static str] {
    let found = FORMER.iter().find(|former| former.since > version && name == former.name);
    found.map_or(&[], |former| former.overloads)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn former_overloads_are_those_of_old_versions() {
        let count = |name, version| former_overloads(Symbol::new(name), version).len();
        assert_eq!((count("aten::linspace", 7), count("aten::linspace", 8)), (2, 0));
        assert_eq!((count("aten::logspace", 8), count("aten::logspace", 9)), (2, 0));
        assert_eq!(count("aten::add", 1), 0);
    }

    #[test]
    fn old_divisions_truncate() {
        let mut builder = flambeau_ir::RegistryBuilder::new();
        builder.declare(
            "aten::div.Tensor(Tensor self, Tensor other) -> Tensor\n\
             aten::div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor\n\
             aten::is_floating_point(Tensor self) -> bool\n",
        );
        let registry = builder.build().unwrap_or_else(|e| panic!("{e:?}"));
        let compile = || {
            let session = Session::new(Arc::clone(&registry), &NativeResolver, Default::default());
            let text = "def f(x: Tensor, y: Tensor) -> Tensor:\n  return torch.div(x, y)\n";
            let file = flambeau_frontend::SourceFile::new(Source::new("f.py", text), &Default::default());
            session.declare_source(&file).expect("a function");
            session.finish().expect("it compiles");
            session.into_unit()
        };
        let nodes = |unit: &CompilationUnit| {
            let function = unit.function(Symbol::new("f")).expect("compiled");
            flambeau_ir::verify::verify(&function.graph).expect("a graph");
            function.graph.nodes_deep().filter(|&n| function.graph.op_name(n) == "aten::div").count()
        };
        let mut unit = compile();
        upgrade(&mut unit, &registry, 4).expect("nothing to do");
        assert_eq!(nodes(&unit), 1);
        upgrade(&mut unit, &registry, 3).expect("replaced");
        assert_eq!(nodes(&unit), 2);
    }
}

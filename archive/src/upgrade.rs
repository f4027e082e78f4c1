//! Operators that changed their meaning, in archives from before.
//!
//! The format version says what operators meant when an archive was written. Integer `div` truncated before version 4,
//! and `full` without a dtype was of floats before version 5: nodes of these operators are replaced by what they meant
//! then, written in TorchScript below. `linspace` and `logspace` had a default number of steps before versions 8 and 9;
//! a call that leaves it out does not compile any more and is refused before. Calls that mean the same now are left.

use std::sync::Arc;

use flambeau_frontend::{Ast, Kind, NativeResolver, Session, TreeId, view};
use flambeau_ir::module::{CompilationUnit, Function};
use flambeau_ir::{At, Diagnostic, Fault, Graph, NodeId, Registry, Source, Symbol};

use crate::code::SourceFile;
use crate::import::LoadError;
use crate::{ArchiveError, Code};

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

/// An operator, the version from which it means what it means now, and which calls meant the same before.
struct Change {
    name: &'static str,
    since: u64,
    same: fn(&Ast, view::Apply<'_>) -> bool,
}

const CHANGES: &[Change] = &[
    Change { name: "linspace", since: 8, same: has_steps },
    Change { name: "logspace", since: 9, same: has_steps },
];

/// Refuses the function `def` if it calls an operator that meant something else in archives of `version`.
pub(crate) fn check_meaning(file: &SourceFile, def: TreeId, version: u64) -> Result<(), ArchiveError> {
    if CHANGES.iter().all(|change| change.since <= version) {
        return Ok(());
    }
    let ast = file.ast();
    let mut stack = vec![def];
    while let Some(id) = stack.pop() {
        stack.extend(ast.children(id).iter().rev());
        let Some(call) = view::Apply::of(ast, id) else { continue };
        let Some(change) = changed(ast, call.callee(), version).filter(|change| !(change.same)(ast, call))
        else {
            continue;
        };
        let Change { name, since, .. } = change;
        let message =
            format!("`torch.{name}` meant something else before format version {since}; this is {version}");
        let at = u64::from(ast.span(id).start);
        return Err(ArchiveError::new(Code::Upgrade, message).in_record(file.record()).at(at));
    }
    Ok(())
}

fn changed(ast: &Ast, callee: TreeId, version: u64) -> Option<&'static Change> {
    let select = view::Select::of(ast, callee)?;
    let of = view::Var::of(ast, select.value())?;
    let found = CHANGES.iter().find(|change| change.name == select.name() && change.since > version)?;
    (of.name() == "torch").then_some(found)
}

fn is_given(ast: &Ast, call: view::Apply<'_>, name: &str, position: usize) -> bool {
    let named =
        call.attributes().iter().filter_map(|&a| view::Attribute::of(ast, a)).find(|a| a.name() == name);
    let value = named.map(|a| a.value()).or_else(|| call.inputs().get(position).copied());
    value.is_some_and(|v| ast.kind(v) != Kind::None)
}

fn has_steps(ast: &Ast, call: view::Apply<'_>) -> bool {
    is_given(ast, call, "steps", 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(call: &str, version: u64) -> Result<(), ArchiveError> {
        let text = format!("def f(x):\n  return {call}\n");
        let file = flambeau_frontend::SourceFile::new(Source::new("code/a.py", text), &Default::default());
        let def = file.parsed.ast.children(file.parsed.root)[0];
        check_meaning(&SourceFile::whole(file), def, version)
    }

    #[test]
    fn only_calls_that_changed_are_refused() {
        for (call, version) in [
            ("torch.relu(torch.linspace(0, x))", 1),
            ("torch.linspace(0, 1)", 7),
            ("torch.logspace(0, 1, None)", 8),
        ] {
            assert_eq!(check(call, version).expect_err("refused").code(), Code::Upgrade, "{call}");
        }
        for (call, version) in [
            ("torch.linspace(0, 1)", 8),
            ("x.linspace(0, 1)", 1),
            ("torch.linspace(0, 1, 5)", 7),
            ("torch.logspace(0, 1, steps=5)", 8),
        ] {
            assert!(check(call, version).is_ok(), "{call}");
        }
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

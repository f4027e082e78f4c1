//! Calls of every registered operator, printed as source: the text compiles to a call of the same overload, or the
//! printer refuses the call.

use flambeau::ir::module::Function;
use flambeau::ir::verify::verify;
use flambeau::ir::{At, CompilationUnit, Graph, OpId, Registry, Symbol, Type};
use flambeau_frontend::{FrontendLimits, print};
use std::sync::Arc;

/// Overloads without a source form: calls by name select an earlier overload, or never this one.
const WITHOUT_FORM: [&str; 13] = [
    "aten::all.all_out",
    "aten::any.all_out",
    "aten::len.any",
    "aten::mH.a",
    "aten::mT.a",
    "aten::matrix_H.a",
    "aten::max.unary_out",
    "aten::min.unary_out",
    "aten::numpy_T.a",
    "aten::pow.int_to_int",
    "aten::range",
    "aten::range.out_",
    "aten::view.dtype",
];

/// Operators of which the text does not compile to a call of the same overload: a constant, a call without results, a
/// conversion for which the compiler selects an overload of the same meaning, and a difference in reversed order.
const REPLACED: [&str; 4] =
    ["aten::Float.int", "aten::is_scripting", "aten::rsub.Tensor", "static_runtime::fused_equally_split"];

/// Returns a function of one call, whose parameters are those of the overload. The result is `None` if the overload has
/// type variables or other parameters that a function cannot have.
fn caller(registry: &Arc<Registry>, id: OpId) -> Option<Function> {
    let schema = registry.schema(id);
    let is_parameter = |ty: Type| {
        let text = ty.annotation_str();
        !ty.has_vars() && !text.contains("AnyEnumType") && !text.contains("AnyClassType")
    };
    if schema.vararg || !schema.args.iter().chain(&schema.returns).all(|arg| is_parameter(arg.ty)) {
        return None;
    }
    let mut graph = Graph::new(Arc::clone(registry));
    let root = graph.root();
    let mut e = graph.edit();
    let operands: Vec<_> = schema.args.iter().map(|arg| e.add_input(arg.ty)).collect();
    let types: Vec<Type> = schema.returns.iter().map(|arg| arg.ty).collect();
    let node = e.at(At::end(root)).node(id, &operands, &types);
    let results: Vec<_> = e.graph().results(node).collect();
    results.into_iter().for_each(|result| e.add_output(result));
    verify(&graph).is_ok().then(|| Function::of_graph(Symbol::new("f"), Arc::new(graph)))
}

/// Returns the operators of the function that the printed function compiles to, or `None` if it has no source form.
fn operators_again(registry: &Arc<Registry>, function: &Function) -> Option<Result<Vec<OpId>, String>> {
    let unit = CompilationUnit::new();
    let printed = print::code(&unit, function, print::ReceiverForm::Typed).ok()?;
    let again = printed.compile(&unit, registry, &FrontendLimits::default());
    Some(match again {
        Ok(again) => Ok(again.graph.nodes_deep().filter_map(|n| again.graph.op(n).row()).collect()),
        Err(problems) => Err(format!("{}\n{}", problems[0].message, printed.text)),
    })
}

/// Returns whether `id` is a synonym of the operator `canonical`, by which the compiler replaces it: with the parameters of
/// the same overload, whatever the name of the overload.
fn is_synonym(registry: &Registry, id: OpId, canonical: OpId) -> bool {
    let (own, other) = (registry.schema(id), registry.schema(canonical));
    let types = |args: &[flambeau::ir::schema::Argument]| args.iter().map(|arg| arg.ty).collect::<Vec<_>>();
    registry.canonical(own.name) == Some(other.name) && types(&own.args) == types(&other.args)
}

#[test]
fn printed_calls_compile_to_the_same_overload() {
    let registry = flambeau_ops::registry();
    let (mut checked, mut without_form, mut replaced) = (0, Vec::new(), Vec::new());
    for id in registry.ids() {
        let schema = registry.schema(id);
        let Some(function) = caller(&registry, id) else { continue };
        match operators_again(&registry, &function) {
            None => without_form.push(schema.full_name()),
            Some(Ok(found)) if found.iter().any(|&f| f == id || is_synonym(&registry, id, f)) => checked += 1,
            Some(Ok(_)) => replaced.push(schema.full_name()),
            Some(Err(why)) => panic!("{}: {why}", schema.full_name()),
        }
    }
    assert!(checked > 4000, "{checked} overloads are checked");
    assert_eq!(without_form, WITHOUT_FORM);
    assert_eq!(replaced, REPLACED);
}

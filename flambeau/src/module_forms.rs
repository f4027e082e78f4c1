//! Operators that modules of TorchScript cannot have, in the graph of an exported program that becomes a module.
//!
//! PyTorch's JIT removes calls of operators without results, so the assertions of a program would be lost; and source cannot call
//! overloads that earlier ones hide. `ops/src/decompositions/module_forms.py` has a function for each such operator. A call becomes
//! the body of the function, in which constant arguments are folded: an assertion becomes a branch that raises.

use crate::error::Error;
use crate::exported_module::{inserted, unsupported};
use crate::exporter::DecompositionTable;
use crate::scalar_operands::bool_of;
use crate::session::Session;
use flambeau_ir::{At, CompilationUnit, FunctionSchema, Graph, IValue, NodeId, Prim, Symbol, Type, ValueId};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

/// The passes that fold constant arguments of a function.
const FOLD: &str = "loop_unrolling{constant},constant_propagation,peephole,dce";

/// The replaced nodes by the nodes in their place.
pub(crate) type Replaced = HashMap<NodeId, NodeId, FxBuildHasher>;

/// Replaces calls of operators that modules cannot have. Other nodes keep their ids.
///
/// # Errors
/// `E015` for an operand that the function of its operator does not accept.
pub(crate) fn replace_operators(graph: &mut Graph, session: &Session) -> Result<Replaced, Error> {
    let table = DecompositionTable::module_forms(session)?;
    let mut replaced = Replaced::default();
    let nodes: Vec<NodeId> = graph.nodes_deep().collect();
    for node in nodes {
        let Some(op) = graph.op(node).row() else { continue };
        let Some(function) = table.inlined(session, op)? else { continue };
        let schema = graph.registry().schema(op).clone();
        let operands = accepted(graph, node, &schema, &function)?;
        let form = folded(session, &function, graph, &operands)?;
        let first = graph.prev(node);
        let loc = graph.loc(node);
        let mut edit = graph.edit();
        edit.at(At::before(node)).loc(loc);
        let results = edit.inline_graph(&form, &operands, None);
        let results = results.map_err(|e| unsupported(format!("`{}`: {e}", schema.full_name())))?;
        let mut at = first.and_then(|first| graph.next(first));
        while let Some(new) = at.filter(|&new| new != node) {
            replaced.insert(new, node);
            at = graph.next(new);
        }
        let old: Vec<ValueId> = graph.operands(node).collect();
        let count = graph.result_count(node);
        graph.edit().replace_node(node, &results[..count.min(results.len())]);
        for operand in old {
            let cast = graph.def(operand);
            if graph.is_prim(cast, Prim::UncheckedCast) && graph.use_count(operand) == 0 {
                graph.edit().erase(cast);
            }
        }
    }
    Ok(replaced)
}

/// Returns the operands of a call as values of the types that the function takes.
fn accepted(
    graph: &mut Graph,
    node: NodeId,
    schema: &FunctionSchema,
    function: &Graph,
) -> Result<Vec<ValueId>, Error> {
    let mut operands: Vec<ValueId> = graph.operands(node).collect();
    let wanted: Vec<Type> = function.inputs().map(|input| function.ty(input)).collect();
    for (i, operand) in operands.iter_mut().enumerate() {
        let (own, wanted) = (graph.ty(*operand), wanted.get(i).copied().unwrap_or(Type::ANY));
        if wanted == Type::BOOL && own != Type::BOOL {
            *operand = match bool_of(graph, *operand) {
                Some(source) => source,
                None => {
                    let mut edit = graph.edit();
                    edit.at(At::before(node));
                    let zero = IValue::Int(0);
                    edit.call("aten::ne", &[(*operand).into(), zero.into()]).map_err(inserted)?
                }
            };
        } else if wanted == Type::INT && own != Type::INT {
            let parameter = schema.args.get(i).map_or(Symbol::EMPTY, |arg| arg.name);
            let name = schema.full_name();
            return Err(unsupported(format!(
                "a value of type {own} for the parameter `{parameter}` of `{name}`"
            )));
        }
    }
    Ok(operands)
}

/// Returns the function with the constants among the operands folded into it.
fn folded(session: &Session, function: &Graph, graph: &Graph, operands: &[ValueId]) -> Result<Graph, Error> {
    let mut form = function.clone();
    let root = form.root();
    let inputs: Vec<ValueId> = form.inputs().collect();
    for (input, &operand) in inputs.into_iter().zip(operands) {
        let Some(value) = graph.constant(operand) else { continue };
        let mut edit = form.edit();
        let constant = edit.at(At::start(root)).constant_of(value, graph.ty(operand));
        edit.replace_all_uses(input, constant);
    }
    session.apply_text(&form, &CompilationUnit::new(), FOLD)
}

//! Phase 5: operands and results of registry operators match the operator's schema.

use super::{Findings, VerifyError};
use crate::graph::{Graph, WalkStep};
use crate::id::NodeId;
use crate::op::{OpId, OpKind};
use crate::schema::{Argument, FunctionSchema, accepts_types};
use crate::types::{ClassEnv, Type, may_share_values};
use hashbrown::HashSet;
use rustc_hash::FxBuildHasher;
use smallvec::SmallVec;

/// Cache of operators with types of operands and results (and the number of operands) that match. Programs repeat the
/// same combinations.
type Memo = HashSet<(OpId, usize, SmallVec<[Type; 8]>), FxBuildHasher>;

pub(super) fn check(g: &Graph, classes: &dyn ClassEnv, findings: &mut Findings) {
    let mut memo = Memo::default();
    for step in g.walk(g.root()) {
        if let WalkStep::Node(node) = step {
            match g.op(node).kind() {
                OpKind::Row(id) => row(g, node, id, classes, &mut memo, findings),
                OpKind::Unknown(name) if !g.registry().overloads(name).is_empty() => {
                    let types: Vec<String> = g.operands(node).map(|v| g.ty(v).to_string()).collect();
                    let message = format!("no overload of {name} accepts ({})", types.join(", "));
                    findings.push(VerifyError::new("V041", node, message));
                }
                OpKind::Unknown(_) | OpKind::Prim(_) => {}
            }
        }
    }
}

fn row(g: &Graph, node: NodeId, id: OpId, classes: &dyn ClassEnv, memo: &mut Memo, findings: &mut Findings) {
    let operands = g.operand_count(node);
    let mut types: SmallVec<[Type; 8]> = g.operands(node).map(|v| g.ty(v)).collect();
    // The declared type of a result without uses is not checked.
    types.extend(g.results(node).map(|v| if g.use_count(v) > 0 { g.ty(v) } else { Type::ANY }));
    let key = (id, operands, types);
    if memo.contains(&key) {
        return;
    }
    match find_mismatch(g.registry().schema(id), &key.2[..operands], &key.2[operands..], classes) {
        None => _ = memo.insert(key),
        Some((code, message)) => findings.push(VerifyError::new(code, node, message)),
    }
}

/// Returns code and message if operands and results of these types do not match the schema.
fn find_mismatch(
    schema: &FunctionSchema,
    operands: &[Type],
    results: &[Type],
    classes: &dyn ClassEnv,
) -> Option<(&'static str, String)> {
    if !accepts_types(schema, operands, classes) {
        let shown: Vec<String> = operands.iter().map(Type::to_string).collect();
        return Some(("V040", format!("({}) does not match {schema}", shown.join(", "))));
    }
    if results.len() != schema.returns.len() && !schema.varret {
        let message = format!("{} results, the schema has {}: {schema}", results.len(), schema.returns.len());
        return Some(("V042", message));
    }
    // Result types with variables are not checked: PyTorch writes graphs in which the variable was bound differently.
    let wrong =
        |(ret, ty): &(&Argument, &Type)| !ret.ty.has_vars() && !may_share_values(**ty, ret.ty, classes);
    let (_, ty) = schema.returns.iter().zip(results).find(wrong)?;
    Some(("V043", format!("a result of type {ty}, which is not a type of the schema's result: {schema}")))
}

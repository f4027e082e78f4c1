//! Phase 5: operands and results of registry operators fit the schema.

use super::{Findings, VerifyError};
use crate::graph::{Graph, Step};
use crate::id::NodeId;
use crate::op::{OpId, OpKind};
use crate::schema::{FunctionSchema, accepts_types};
use crate::types::{ClassEnv, Type};
use hashbrown::HashSet;
use rustc_hash::FxBuildHasher;
use smallvec::SmallVec;

/// Operators with the operand types already found to fit: programs repeat themselves.
type Memo = HashSet<(OpId, SmallVec<[Type; 6]>), FxBuildHasher>;

pub(super) fn check(g: &Graph, _classes: &dyn ClassEnv, findings: &mut Findings) {
    let mut memo = Memo::default();
    for step in g.walk(g.root()) {
        if let Step::Node(node) = step {
            match g.op(node).kind() {
                OpKind::Row(id) => row(g, node, id, &mut memo, findings),
                OpKind::Unknown(name) if !g.registry().overloads(name).is_empty() => {
                    let types: Vec<String> = g.operands(node).map(|v| g.ty(v).to_string()).collect();
                    let message = format!("no overload of {name} takes ({})", types.join(", "));
                    findings.push(VerifyError::new("V041", node, message));
                }
                OpKind::Unknown(_) | OpKind::Prim(_) => {}
            }
        }
    }
}

fn row(g: &Graph, node: NodeId, id: OpId, memo: &mut Memo, findings: &mut Findings) {
    let schema = g.registry().schema(id);
    let types: SmallVec<[Type; 6]> = g.operands(node).map(|v| g.ty(v)).collect();
    if memo.contains(&(id, types.clone())) {
        return results(g, node, schema, findings);
    }
    if accepts_types(schema, &types) {
        memo.insert((id, types));
    } else {
        let shown: Vec<String> = types.iter().map(Type::to_string).collect();
        let message = format!("({}) does not fit {schema}", shown.join(", "));
        findings.push(VerifyError::new("V040", node, message));
    }
    results(g, node, schema, findings);
}

fn results(g: &Graph, node: NodeId, schema: &FunctionSchema, findings: &mut Findings) {
    let found = g.result_count(node);
    if found != schema.returns.len() && !schema.varret {
        let message = format!("{found} results, the schema has {}: {schema}", schema.returns.len());
        findings.push(VerifyError::new("V042", node, message));
    }
}

//! Phase 2: the numbers of blocks, operands and results of structural operators.

use super::{Findings, VerifyError};
use crate::attr::{Attr, names};
use crate::graph::{Graph, WalkStep};
use crate::id::NodeId;
use crate::op::Prim;

pub(super) fn check(g: &Graph, findings: &mut Findings) {
    for step in g.walk(g.root()) {
        match step {
            WalkStep::Node(node) => {
                if let Some(prim) = g.prim(node) {
                    node_shape(g, node, prim, findings);
                }
            }
            WalkStep::Enter(_) | WalkStep::Leave(_) | WalkStep::Done(_) => {}
        }
    }
}

fn node_shape(g: &Graph, node: NodeId, prim: Prim, findings: &mut Findings) {
    let (operands, results, blocks) = (g.operand_count(node), g.result_count(node), g.block_count(node));
    let mut wrong =
        |code: &'static str, message: String| findings.push(VerifyError::new(code, node, message));
    match prim {
        Prim::Param | Prim::Return => wrong("V010", format!("{} in the middle of a block", prim.name())),
        Prim::If => {
            if operands != 1 || blocks != 2 {
                wrong("V011", format!("prim::If has {operands} operands and {blocks} blocks, needs 1 and 2"));
            }
            for b in g.blocks(node) {
                let (ins, outs) = (g.block_inputs(b).len(), g.block_outputs(b).len());
                if ins != 0 || outs != results {
                    wrong(
                        "V012",
                        format!(
                            "a block of prim::If has {ins} inputs and {outs} outputs, needs 0 and {results}"
                        ),
                    );
                }
            }
        }
        Prim::Loop => {
            if operands < 2 || blocks != 1 {
                wrong(
                    "V013",
                    format!("prim::Loop has {operands} operands and {blocks} blocks, needs 2 or more and 1"),
                );
                return;
            }
            let carried = operands - 2;
            let body = g.block(node, 0);
            let (ins, outs) = (g.block_inputs(body).len(), g.block_outputs(body).len());
            if ins != carried + 1 || outs != carried + 1 || results != carried {
                wrong(
                    "V014",
                    format!(
                        "prim::Loop carries {carried} values but its body has {ins} inputs and {outs} outputs \
                         and it has {results} results"
                    ),
                );
            }
        }
        Prim::Constant => {
            if operands != 0 || results != 1 {
                wrong(
                    "V015",
                    format!("prim::Constant has {operands} operands and {results} results, needs 0 and 1"),
                );
            }
        }
        Prim::TupleConstruct | Prim::ListConstruct | Prim::DictConstruct => {
            if results != 1 || (prim == Prim::DictConstruct && operands % 2 == 1) {
                wrong("V015", format!("{} has {operands} operands and {results} results", prim.name()));
            }
        }
        Prim::Isinstance
        | Prim::HasAttr
        | Prim::UncheckedCast
        | Prim::UncheckedUnwrapOptional
        | Prim::Annotate => {
            if operands != 1 || results != 1 {
                wrong("V015", format!("{} has {operands} operands and {results} results", prim.name()));
            }
        }
        Prim::TupleUnpack | Prim::ListUnpack => {
            if operands != 1 {
                wrong("V015", format!("{} has {operands} operands, needs 1", prim.name()));
            }
        }
        Prim::GetAttr | Prim::SetAttr | Prim::CallMethod => {
            if operands == 0 || g.attr(node, names::name()).and_then(Attr::as_str).is_none() {
                wrong("V016", format!("{} needs an object and an attribute `name`", prim.name()));
            }
            let least = usize::from(prim == Prim::SetAttr) + 1;
            if operands < least {
                wrong("V015", format!("{} has {operands} operands, needs {least}", prim.name()));
            }
        }
        _ if prim.has_subgraph() => subgraph(g, node, prim, findings),
        _ => {}
    }
}

/// Compares the inputs and outputs of a subgraph with the operands and results of its node. The subgraph itself is
/// verified separately.
fn subgraph(g: &Graph, node: NodeId, prim: Prim, findings: &mut Findings) {
    let Some(Attr::Graph(inner)) = g.attr(node, names::subgraph()) else {
        // Templates and fallbacks parsed from text may lack the subgraph; running them is an error of its own.
        return;
    };
    let bordered = matches!(prim, Prim::FusionGroup | Prim::DifferentiableGraph | Prim::FunctionalGraph);
    if bordered
        && (inner.inputs().len() != g.operand_count(node) || inner.outputs().len() != g.result_count(node))
    {
        let message = format!(
            "{} has {} operands and {} results, its subgraph {} inputs and {} outputs",
            prim.name(),
            g.operand_count(node),
            g.result_count(node),
            inner.inputs().len(),
            inner.outputs().len()
        );
        findings.push(VerifyError::new("V017", node, message));
    }
}

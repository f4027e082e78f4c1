//! Phase 2: the numbers of blocks, operands and results of structural operators, and the ranges of sizes.

use super::{Findings, VerifyError};
use crate::attr::{Attr, names};
use crate::graph::{Graph, SizeRange, WalkStep};
use crate::id::NodeId;
use crate::op::Prim;
use std::ops::RangeInclusive;

pub(super) fn check(g: &Graph, findings: &mut Findings) {
    for range in g.size_ranges().filter(|range| range.is_empty()) {
        let SizeRange { symbol, min, max } = range;
        let message = format!("no size is in the range [{min}, {max}] of SS({symbol})");
        findings.push(VerifyError::new("V018", g.param(g.root()), message));
    }
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
    let arity = prim.arity();
    for (count, range, what) in [(operands, arity.operands, "operand"), (results, arity.results, "result")] {
        if !range.contains(&count) {
            let (needed, found) = (in_words(&range, what), counted(count, what));
            wrong("V015", format!("{} needs {needed}; it has {found}", prim.name()));
        }
    }
    match prim {
        Prim::Param | Prim::Return => wrong("V010", format!("{} in the middle of a block", prim.name())),
        Prim::If | Prim::GradOf => {
            let needed = if prim == Prim::If { 2 } else { 1 };
            if prim == Prim::If && (operands, blocks) != (1, needed) {
                let (operands, blocks) = (counted(operands, "operand"), counted(blocks, "block"));
                wrong(
                    "V011",
                    format!("prim::If needs 1 operand and 2 blocks; it has {operands} and {blocks}"),
                );
            } else if blocks != needed {
                let blocks = counted(blocks, "block");
                wrong("V011", format!("prim::GradOf needs 1 block; it has {blocks}"));
            }
            for b in g.blocks(node) {
                let (ins, outs) = (g.block_inputs(b).len(), g.block_outputs(b).len());
                if ins != 0 || outs != results {
                    wrong(
                        "V012",
                        format!(
                            "a block of {} has {ins} inputs and {outs} outputs, needs 0 and {results}",
                            prim.name()
                        ),
                    );
                }
            }
        }
        Prim::Loop => {
            if operands < 2 || blocks != 1 {
                let (operands, blocks) = (counted(operands, "operand"), counted(blocks, "block"));
                let found = format!("it has {operands} and {blocks}");
                wrong("V013", format!("prim::Loop needs 2 or more operands and 1 block; {found}"));
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
        Prim::DictConstruct if operands % 2 == 1 => {
            let found = counted(operands, "operand");
            wrong("V015", format!("prim::DictConstruct needs an even number of operands; it has {found}"));
        }
        Prim::GetAttr | Prim::SetAttr | Prim::CallMethod => {
            if operands == 0 || g.attr(node, names::name()).and_then(Attr::as_str).is_none() {
                wrong("V016", format!("{} needs an object and an attribute `name`", prim.name()));
            }
        }
        _ if prim.has_subgraph() => subgraph(g, node, prim, findings),
        _ => {}
    }
}

/// Returns a count with its noun in the right number.
fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Returns a range of counts as text, with the noun in the right number.
fn in_words(range: &RangeInclusive<usize>, noun: &str) -> String {
    match (*range.start(), *range.end()) {
        (least, usize::MAX) => format!("{least} or more {noun}s"),
        (least, most) if least == most => counted(least, noun),
        (least, most) => format!("{least} to {most} {noun}s"),
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

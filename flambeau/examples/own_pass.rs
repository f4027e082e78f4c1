//! A custom pass: replaces `x + x` by `x * 2` and runs with checks, followed by the default pipeline.
//!
//! Run: `cargo run --release -p flambeau --example own_pass`

use flambeau::ir::{At, NodeId};
use flambeau::rewrite::{Checks, Manager, Pass, PassCx, PassEntry, PassError};
use flambeau::{Graph, Session};

/// The pass. Pipelines, logs and `FLAMBEAU_OPT_LIMIT` use its name.
#[derive(Clone, Copy, Debug, Default)]
struct Double;

/// Returns whether a node adds a tensor to itself.
fn is_double(graph: &Graph, node: NodeId) -> bool {
    graph.op_name(node).as_str() == "aten::add"
        && graph.operand_count(node) == 3
        && graph.operand(node, 0) == graph.operand(node, 1)
        && graph.ty(graph.operand(node, 0)).is_tensor()
        && graph.constant(graph.operand(node, 2)).and_then(|c| c.as_int()) == Some(1)
}

impl Pass for Double {
    const NAME: &'static str = "double";
    const DOC: &'static str = "replaces `x + x` by `x * 2`";

    fn run(&self, cx: &mut PassCx<'_>) -> Result<(), PassError> {
        // First decide on shared borrows, then edit.
        let nodes: Vec<NodeId> = cx.graph().nodes_deep().filter(|&n| is_double(cx.graph(), n)).collect();
        for node in nodes {
            if !cx.fuel("double", node) {
                break;
            }
            let x = cx.graph().operand(node, 0);
            let mut editor = cx.edit();
            editor.at(At::before(node));
            let product = editor.call("aten::mul", &[x.into(), 2.into()])?;
            editor.replace_node(node, &[product]);
        }
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let session = Session::builder()
        .standard()
        .pass(PassEntry::of::<Double>())
        .pipeline("mine", "double,default")
        .build()?;
    let program = session.compile_source("def f(x: Tensor):\n    return torch.relu(x + x)\n", "f.py")?;
    let mut graph = (**program.entry("f")?.graph()).clone();
    println!("{graph}");

    // Every edit is verified, and the report counts the rewrites by name.
    let report = Manager::new().checks(Checks::EveryEdit).run(&mut graph, &session.pipeline("mine")?)?;
    println!("{graph}\n{report}");
    Ok(())
}

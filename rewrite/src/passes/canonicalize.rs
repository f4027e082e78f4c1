//! Canonicalizes the order and names of values: results of `prim::If` and `prim::Loop` are sorted by first use (unused
//! ones last, in their original order), and unnamed values are numbered in program order.

use crate::pass::{Pass, PassCx, PassError};
use crate::pipeline::{Configure, PassOptions};
use flambeau_ir::{Editor, Graph, NodeId, NodeMap, Prim, WalkStep};

/// See the module documentation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Canonicalize {
    /// Replace debug names by numbers too.
    pub drop_names: bool,
}

impl Pass for Canonicalize {
    const NAME: &'static str = "canonicalize";
    const DOC: &'static str = "Orders results of branches and loops by first use and renumbers values.";

    fn run(&self, cx: &mut PassCx<'_>) -> Result<(), PassError> {
        let orders = plan(cx.graph());
        {
            let (mut editor, mut fuel) = cx.edit_fuelled();
            for (node, order) in &orders {
                if !fuel.take("order-results", editor.graph(), *node) {
                    break;
                }
                permute(&mut editor, *node, order);
            }
        }
        cx.edit().renumber(self.drop_names);
        Ok(())
    }
}

impl Configure for Canonicalize {
    const OPTIONS: &'static [&'static str] = &["drop_names"];

    fn configure(options: &PassOptions) -> Result<Self, String> {
        Ok(Canonicalize { drop_names: options.flag("drop_names") })
    }
}

/// The nodes whose results are out of order, with the new order.
fn plan(graph: &Graph) -> Vec<(NodeId, Vec<u32>)> {
    // Position of every node in program order; a block's `Return` follows the block's nodes.
    let mut position = NodeMap::for_nodes(graph, 0u32);
    let mut structural = Vec::new();
    let mut next = 1;
    for step in graph.walk(graph.root()) {
        let node = match step {
            WalkStep::Node(n) => n,
            WalkStep::Leave(b) => graph.ret(b),
            WalkStep::Enter(_) | WalkStep::Done(_) => continue,
        };
        position[node] = next;
        next += 1;
        if matches!(graph.prim(node), Some(Prim::If | Prim::Loop)) && graph.result_count(node) > 1 {
            structural.push(node);
        }
    }
    let mut orders = Vec::new();
    for node in structural {
        let first_use: Vec<(u32, u32)> = graph
            .results(node)
            .map(|v| graph.uses(v).map(|u| (position[u.user], u.index)).min().unwrap_or((u32::MAX, 0)))
            .collect();
        let mut order: Vec<u32> = (0..first_use.len() as u32).collect();
        order.sort_by_key(|&i| first_use[i as usize]);
        if order.iter().enumerate().any(|(i, &o)| i as u32 != o) {
            orders.push((node, order));
        }
    }
    orders
}

fn permute(editor: &mut Editor<'_>, node: NodeId, order: &[u32]) {
    let is_loop = editor.graph().is_prim(node, Prim::Loop);
    // The carried values of a loop follow the trip count and condition among operands, and the condition among block
    // outputs.
    let blocks: Vec<_> = editor.graph().blocks(node).collect();
    for &block in &blocks {
        let ret = editor.graph().ret(block);
        permute_operands(editor, ret, usize::from(is_loop), order);
    }
    if is_loop {
        permute_operands(editor, node, 2, order);
        let param = editor.graph().param(blocks[0]);
        let with_trip: Vec<u32> = std::iter::once(0).chain(order.iter().map(|o| o + 1)).collect();
        editor.permute_results(param, &with_trip);
    }
    editor.permute_results(node, order);
}

fn permute_operands(editor: &mut Editor<'_>, node: NodeId, base: usize, order: &[u32]) {
    let old: Vec<_> = editor.graph().operands(node).skip(base).collect();
    for (i, &o) in order.iter().enumerate() {
        editor.set_operand(node, base + i, old[o as usize]);
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{assert_passes, toy};

    #[test]
    fn results_follow_their_uses() {
        assert_passes(
            &toy(),
            "canonicalize{drop_names}",
            "graph(%c : bool, %x : Tensor):
  %a : Tensor, %b : Tensor = prim::If(%c)
    block0():
      %p : Tensor = toy::relu(%x)
      -> (%p, %x)
    block1():
      -> (%x, %x)
  %s : Tensor = toy::mul(%b, %a)
  return (%s)
",
            "graph(%0 : bool,
      %1 : Tensor):
  %2 : Tensor, %3 : Tensor = prim::If(%0)
    block0():
      %4 : Tensor = toy::relu(%1)
      -> (%1, %4)
    block1():
      -> (%1, %1)
  %5 : Tensor = toy::mul(%2, %3)
  return (%5)
",
        );
    }
}

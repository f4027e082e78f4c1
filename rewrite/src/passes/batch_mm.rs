//! Batches matrix products: sums of products (`a b + c d + ...`) become `prim::MMTreeReduce`, and products that share
//! an operand become `prim::MMBatchSide`.
//!
//! Both pay off from `LEAST` products on. The products of a sum move down to the sum, and products that share an
//! operand move up to the first of them. They pass neither a write of memory that they read ([`WriteOrder`]) nor an event
//! that their errors must not pass ([`ErrorOrder`]). A partial sum with another use is not part of a batch. Results may
//! differ by rounding.

use crate::facets::OpRole;
use crate::pass::{Pass, PassCx, PassError};
use crate::rules::Exactness;
use flambeau_analysis::{AliasDb, Dominance, ErrorOrder, WriteOrder};
use flambeau_ir::attr::names;
use flambeau_ir::{At, Attr, BlockId, Column, Graph, NodeId, Prim, Type, ValueId, WalkStep};
use hashbrown::{HashMap, HashSet};
use rustc_hash::FxBuildHasher;

/// Minimum number of products in a batch.
const LEAST: usize = 4;

/// See the module documentation.
#[derive(Clone, Copy, Debug, Default)]
pub struct BatchMm;

impl Pass for BatchMm {
    const NAME: &'static str = "batch_mm";
    const DOC: &'static str = "Batches matrix products that are summed or share an operand.";

    fn exactness(&self) -> Exactness {
        Exactness::Rounding
    }

    fn run(&self, cx: &mut PassCx<'_>) -> Result<(), PassError> {
        sums(cx);
        sides(cx);
        Ok(())
    }
}

/// The graph and the analyses that the search reads.
struct Search<'g> {
    graph: &'g Graph,
    roles: Column<'g, OpRole>,
    db: &'g AliasDb,
    dominance: &'g Dominance,
    writes: WriteOrder,
    errors: ErrorOrder,
}

impl Search<'_> {
    fn has_role(&self, node: NodeId, role: OpRole) -> bool {
        self.roles.of(self.graph.op(node)) == Some(&role)
    }

    /// Whether a node computes the same, and raises after the same observable events, if it runs directly before `at`, a
    /// node of the same block.
    fn may_run_at(&self, node: NodeId, at: NodeId) -> bool {
        let span = self.writes.around(self.graph, self.db, self.dominance, node);
        span.intersection(self.errors.nearest_events(self.dominance, node)).allows(self.dominance.order(at))
    }

    fn blocks(&self) -> Vec<BlockId> {
        let steps = self.graph.walk(self.graph.root());
        steps.filter_map(|s| if let WalkStep::Enter(b) = s { Some(b) } else { None }).collect()
    }

    /// `x + 1 * y`.
    fn is_sum(&self, node: NodeId) -> bool {
        let once = |v| self.graph.constant(v).is_some_and(|c| c.as_int() == Some(1));
        self.has_role(node, OpRole::ScaledSum) && self.graph.operands(node).nth(2).is_some_and(once)
    }
}

/// The results of `in_block` for each block of the graph.
fn find<T>(cx: &mut PassCx<'_>, in_block: fn(&Search<'_>, BlockId) -> Vec<T>) -> Vec<T> {
    let registry = cx.registry();
    let (graph, (db, dominance)) = cx.with::<(AliasDb, Dominance)>();
    let (writes, errors) = (WriteOrder::new(graph, db, dominance), ErrorOrder::new(graph, db, dominance));
    let search = Search { graph, roles: registry.column::<OpRole>(), db, dominance, writes, errors };
    search.blocks().into_iter().flat_map(|b| in_block(&search, b)).collect()
}

/// A sum of products: its last addition, and the products in order.
struct Sum {
    root: NodeId,
    products: Vec<NodeId>,
}

fn sums(cx: &mut PassCx<'_>) {
    let found = find(cx, sums_in);
    let (mut editor, mut fuel) = cx.edit_fuelled();
    for sum in found {
        if !fuel.take("sum", editor.graph(), sum.root) {
            return;
        }
        let g = editor.graph();
        let side = |i: usize| sum.products.iter().map(move |&n| g.operand(n, i));
        let operands: Vec<ValueId> = side(0).chain(side(1)).collect();
        let (loc, ty) = (g.loc(sum.root), g.ty(g.result(sum.root, 0)));
        let value = editor.at(At::before(sum.root)).loc(loc).value(Prim::MMTreeReduce, &operands, ty);
        editor.replace_node(sum.root, &[value]);
        // The products and the partial sums are unused now.
        erase_unused(&mut editor, sum.products);
    }
}

/// Erases products and the partial sums that have become unused.
fn erase_unused(editor: &mut flambeau_ir::Editor<'_>, products: Vec<NodeId>) {
    let mut ready: Vec<NodeId> = Vec::new();
    for product in products {
        // The chain from the product to the sums, each of which has one user; erased from the end.
        let mut chain = vec![product];
        while let Some(user) = {
            let g = editor.graph();
            let last = chain[chain.len() - 1];
            g.uses(g.result(last, 0)).map(|u| u.user).next()
        } {
            chain.push(user);
        }
        ready.extend(chain.into_iter().rev());
        for node in ready.drain(..) {
            editor.erase(node);
        }
    }
}

fn sums_in(search: &Search<'_>, block: BlockId) -> Vec<Sum> {
    let g = search.graph;
    // For each product or sum of products that is not yet part of a larger sum: its number of products.
    let mut parts: HashMap<ValueId, usize, FxBuildHasher> = HashMap::default();
    let mut roots = Vec::new();
    for node in g.nodes(block) {
        if search.has_role(node, OpRole::MatrixProduct) {
            parts.insert(g.result(node, 0), 1);
        } else if search.is_sum(node) {
            let (a, b) = (g.operand(node, 0), g.operand(node, 1));
            let alone = |v| parts.get(&v).copied().filter(|_| g.use_count(v) == 1);
            let (Some(left), Some(right)) = (alone(a), alone(b)) else { continue };
            parts.remove(&a);
            parts.remove(&b);
            parts.insert(g.result(node, 0), left + right);
            roots.push(node);
        }
    }
    roots.retain(|&root| parts.get(&g.result(root, 0)).is_some_and(|&count| count >= LEAST));
    let sums = roots.into_iter().map(|root| Sum { root, products: products_of(search, root) });
    sums.filter(|sum| sum.products.iter().all(|&product| search.may_run_at(product, sum.root))).collect()
}

/// The products of a sum, in order.
fn products_of(search: &Search<'_>, root: NodeId) -> Vec<NodeId> {
    let g = search.graph;
    let mut products = Vec::new();
    let mut open = vec![root];
    while let Some(node) = open.pop() {
        if search.has_role(node, OpRole::MatrixProduct) {
            products.push(node);
        } else {
            open.extend([1, 0].map(|i| g.def(g.operand(node, i))));
        }
    }
    products
}

/// Products that share an operand. They are computed at the position of the first product.
struct Side {
    shared: ValueId,
    side: usize,
    products: Vec<NodeId>,
}

fn sides(cx: &mut PassCx<'_>) {
    let found = find(cx, sides_in);
    let (mut editor, mut fuel) = cx.edit_fuelled();
    for Side { shared, side, products } in found {
        let first = products[0];
        if !fuel.take("side", editor.graph(), first) {
            return;
        }
        let g = editor.graph();
        let others = products.iter().map(|&n| g.operand(n, 1 - side));
        let operands: Vec<ValueId> = std::iter::once(shared).chain(others).collect();
        let types: Vec<Type> = products.iter().map(|&n| g.ty(g.result(n, 0))).collect();
        let loc = g.loc(first);
        let attrs = editor.attrs(vec![(names::side(), Attr::int(side as i64))]);
        let batch = editor.at(At::before(first)).loc(loc).insert(Prim::MMBatchSide, &operands, attrs, &types);
        for (i, product) in products.into_iter().enumerate() {
            let value = editor.graph().result(batch, i);
            editor.replace_node(product, &[value]);
        }
    }
}

fn sides_in(search: &Search<'_>, block: BlockId) -> Vec<Side> {
    let g = search.graph;
    // The results become parts of one product, so none of them may be written.
    let is_product =
        |&n: &NodeId| search.has_role(n, OpRole::MatrixProduct) && !search.db.has_output_writers(g, n);
    let products: Vec<NodeId> = g.nodes(block).filter(is_product).collect();
    let mut taken: HashSet<NodeId, FxBuildHasher> = HashSet::default();
    let mut found = Vec::new();
    for side in [0, 1] {
        let mut by_value: HashMap<ValueId, usize, FxBuildHasher> = HashMap::default();
        let mut groups: Vec<Side> = Vec::new();
        for &node in products.iter().filter(|n| !taken.contains(*n)) {
            let shared = g.operand(node, side);
            let at = *by_value.entry(shared).or_insert_with(|| {
                groups.push(Side { shared, side, products: Vec::new() });
                groups.len() - 1
            });
            let group = &mut groups[at].products;
            let other = g.def(g.operand(node, 1 - side));
            // The other operand must be defined before the first product and hold the same elements there.
            let fits = |&first: &NodeId| {
                (g.parent(other) != block || g.is_before(other, first)) && search.may_run_at(node, first)
            };
            if group.first().is_none_or(fits) {
                group.push(node);
            }
        }
        for group in groups.into_iter().filter(|s| s.products.len() >= LEAST) {
            for &n in &group.products {
                taken.insert(n);
            }
            found.push(group);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use crate::testing::{assert_passes, toy};

    #[test]
    fn sums_of_products_are_one() {
        assert_passes(
            &toy(),
            "batch_mm",
            "graph(%a : Tensor, %b : Tensor, %c : Tensor, %d : Tensor):
  %1 : int = prim::Constant[value=1]()
  %p : Tensor = toy::mm(%a, %b)
  %q : Tensor = toy::mm(%c, %d)
  %r : Tensor = toy::mm(%b, %c)
  %s : Tensor = toy::mm(%d, %a)
  %pq : Tensor = toy::plus(%p, %q, %1)
  %rs : Tensor = toy::plus(%r, %s, %1)
  %z : Tensor = toy::plus(%pq, %rs, %1)
  return (%z)
",
            "graph(%a : Tensor, %b : Tensor, %c : Tensor, %d : Tensor):
  %1 : int = prim::Constant[value=1]()
  %z : Tensor = prim::MMTreeReduce(%a, %c, %b, %d, %b, %d, %c, %a)
  return (%z)
",
        );
    }

    #[test]
    fn a_sum_that_is_used_elsewhere_stays() {
        let text = "graph(%a : Tensor, %b : Tensor, %c : Tensor, %d : Tensor):
  %1 : int = prim::Constant[value=1]()
  %p : Tensor = toy::mm(%a, %b)
  %q : Tensor = toy::mm(%c, %d)
  %r : Tensor = toy::mm(%b, %c)
  %s : Tensor = toy::mm(%d, %a)
  %pq : Tensor = toy::plus(%p, %q, %1)
  %rs : Tensor = toy::plus(%r, %s, %1)
  %z : Tensor = toy::plus(%pq, %rs, %1)
  return (%z, %rs)
";
        assert_passes(&toy(), "batch_mm", text, text);
    }

    #[test]
    fn products_that_share_a_side_are_one() {
        assert_passes(
            &toy(),
            "batch_mm",
            "graph(%a : Tensor, %b : Tensor, %c : Tensor, %d : Tensor):
  %p : Tensor = toy::mm(%a, %b)
  %q : Tensor = toy::mm(%a, %c)
  %x : Tensor = toy::relu(%q)
  %late : Tensor = toy::mm(%a, %x)
  %r : Tensor = toy::mm(%a, %d)
  %s : Tensor = toy::mm(%a, %a)
  return (%p, %q, %late, %r, %s)
",
            "graph(%a : Tensor, %b : Tensor, %c : Tensor, %d : Tensor):
  %p : Tensor, %q : Tensor, %r : Tensor, %s : Tensor = prim::MMBatchSide[side=0](%a, %b, %c, %d, %a)
  %x : Tensor = toy::relu(%q)
  %late : Tensor = toy::mm(%a, %x)
  return (%p, %q, %late, %r, %s)
",
        );
        let written = "graph(%a : Tensor, %b : Tensor):
  %p : Tensor = toy::mm(%a, %b)
  %q : Tensor = toy::mm(%a, %b)
  %w : Tensor = toy::relu_(%a)
  %r : Tensor = toy::mm(%a, %b)
  %s : Tensor = toy::mm(%a, %b)
  return (%p, %q, %r, %s)
";
        assert_passes(&toy(), "batch_mm", written, written);
    }

    /// Writes before the first product and after the last one do not prevent batching.
    #[test]
    fn writes_beside_the_products_are_no_matter() {
        assert_passes(
            &toy(),
            "batch_mm",
            "graph(%x : Tensor, %b : Tensor, %c : Tensor, %d : Tensor):
  %1 : int = prim::Constant[value=1]()
  %a : Tensor = toy::relu(%x)
  %v : Tensor = toy::relu_(%a)
  %p : Tensor = toy::mm(%a, %b)
  %q : Tensor = toy::mm(%a, %c)
  %r : Tensor = toy::mm(%a, %d)
  %s : Tensor = toy::mm(%a, %a)
  %w : Tensor = toy::relu_(%a)
  %k : Tensor = toy::mm(%b, %a)
  %l : Tensor = toy::mm(%c, %a)
  %kl : Tensor = toy::plus(%k, %l, %1)
  %u : Tensor = toy::relu_(%a)
  %m : Tensor = toy::mm(%b, %a)
  %n : Tensor = toy::mm(%c, %a)
  %mn : Tensor = toy::plus(%m, %n, %1)
  %z : Tensor = toy::plus(%kl, %mn, %1)
  return (%p, %q, %r, %s, %z)
",
            "graph(%x : Tensor, %b : Tensor, %c : Tensor, %d : Tensor):
  %1 : int = prim::Constant[value=1]()
  %a : Tensor = toy::relu(%x)
  %v : Tensor = toy::relu_(%a)
  %p : Tensor, %q : Tensor, %r : Tensor, %s : Tensor = prim::MMBatchSide[side=0](%a, %b, %c, %d, %a)
  %w : Tensor = toy::relu_(%a)
  %k : Tensor = toy::mm(%b, %a)
  %l : Tensor = toy::mm(%c, %a)
  %kl : Tensor = toy::plus(%k, %l, %1)
  %u : Tensor = toy::relu_(%a)
  %m : Tensor = toy::mm(%b, %a)
  %n : Tensor = toy::mm(%c, %a)
  %mn : Tensor = toy::plus(%m, %n, %1)
  %z : Tensor = toy::plus(%kl, %mn, %1)
  return (%p, %q, %r, %s, %z)
",
        );
    }
}

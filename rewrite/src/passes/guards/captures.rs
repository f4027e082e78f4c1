//! Test of the captures of bail-outs on random programs: they are exactly the values that are live after the guard, and
//! the counters of the interrupted loops.
//!
//! Liveness is defined here by uses: a value is live after a guard if a use of it may run after the guard. That is a later
//! use in program order that is not in another branch of the same `prim::If`, or any use in a loop around both, if the
//! value is defined outside of that loop.

use crate::testing::{read, run, toy};
use flambeau_exec::Gen;
use flambeau_ir::attr::names;
use flambeau_ir::{Graph, NodeId, Prim, Use, ValueId};
use std::collections::BTreeSet;

/// Number of random programs.
const PROGRAMS: u64 = 300;

/// Writes a random program with nested branches and loops and a guard after every third node.
struct Writer {
    choices: Gen<'static>,
    text: String,
    next: usize,
    guards: usize,
}

impl Writer {
    fn name(&mut self) -> String {
        self.next += 1;
        format!("v{}", self.next)
    }

    fn pick(&mut self, values: &[String]) -> String {
        values[self.choices.below(values.len())].clone()
    }

    fn line(&mut self, depth: usize, text: &str) {
        self.text += &format!("{}{text}\n", "  ".repeat(depth));
    }

    /// Writes the nodes of a block, with `budget` levels of blocks below it. Returns the value that the block computes.
    fn block(&mut self, depth: usize, budget: usize, visible: &[String]) -> String {
        let mut values = visible.to_vec();
        for _ in 0..2 + self.choices.below(3) {
            let (a, b, result) = (self.pick(&values), self.pick(&values), self.name());
            match self.choices.below(if budget > 0 { 8 } else { 5 }) {
                0..=2 => self.line(depth, &format!("%{result} : Tensor = toy::mul(%{a}, %{b})")),
                3 | 4 => {
                    let index = self.guards;
                    self.guards += 1;
                    let guard = format!("%{result} : Float(2) = prim::Guard[index={index}](%{a})");
                    self.line(depth, &guard);
                }
                5 | 6 => {
                    self.line(depth, &format!("%{result} : Tensor = prim::If(%c)"));
                    for i in 0..2 {
                        self.line(depth + 1, &format!("block{i}():"));
                        let out = self.block(depth + 2, budget - 1, &values);
                        self.line(depth + 2, &format!("-> (%{out})"));
                    }
                }
                _ => {
                    let (number, carried) = (self.name(), self.name());
                    self.line(depth, &format!("%{result} : Tensor = prim::Loop(%n, %t, %{a})"));
                    self.line(depth + 1, &format!("block0(%{number} : int, %{carried} : Tensor):"));
                    let mut inner = values.clone();
                    inner.push(carried);
                    let out = self.block(depth + 2, budget - 1, &inner);
                    self.line(depth + 2, &format!("-> (%t, %{out})"));
                }
            }
            values.push(result);
        }
        self.pick(&values)
    }
}

fn program(seed: u64) -> String {
    let mut writer = Writer { choices: Gen::from_seed(seed), text: String::new(), next: 0, guards: 0 };
    writer.line(0, "graph(%x : Tensor, %y : Tensor, %c : bool, %n : int):");
    writer.line(1, "%t : bool = prim::Constant[value=1]()");
    let out = writer.block(1, 2, &["x".to_owned(), "y".to_owned()]);
    writer.line(1, &format!("return (%{out})"));
    writer.text
}

/// The nodes around a node, from the inside out, each with the index of the block that contains the node.
fn around(g: &Graph, node: NodeId) -> Vec<(NodeId, usize)> {
    let mut found = Vec::new();
    let mut block = g.parent(node);
    while let Some(owner) = g.owner(block) {
        let index = g.blocks(owner).position(|b| b == block).expect("a block of its owner");
        found.push((owner, index));
        block = g.parent(owner);
    }
    found
}

/// Whether a use of a value may run after a guard.
fn may_run_after(g: &Graph, guard: NodeId, value: ValueId, user: NodeId) -> bool {
    let (outer, other) = (around(g, guard), around(g, user));
    let repeats = outer.iter().any(|&(owner, _)| {
        g.is_prim(owner, Prim::Loop)
            && other.iter().any(|&(o, _)| o == owner)
            && !around(g, g.def(value)).iter().any(|&(o, _)| o == owner)
    });
    let apart = outer.iter().any(|&(owner, block)| other.iter().any(|&(o, b)| o == owner && b != block));
    // A `prim::Return` follows all nodes of its block.
    let order: Vec<NodeId> = g
        .walk(g.root())
        .filter_map(|step| match step {
            flambeau_ir::WalkStep::Node(n) => Some(n),
            flambeau_ir::WalkStep::Leave(b) => Some(g.ret(b)),
            _ => None,
        })
        .collect();
    let place = |n: NodeId| order.iter().position(|&o| o == n).expect("a node of the graph");
    repeats || !apart && place(user) > place(guard)
}

/// Whether a use reads the value in the rest of the program after `guard`. A guard does not, unless its result is read;
/// neither does the end of a branch that the program is in, unless the result of the branch is read.
fn is_read(g: &Graph, guard: NodeId, value: ValueId, first: Use) -> bool {
    // The branch is run again by a loop around it.
    let repeats = |branch: NodeId| {
        let defined = around(g, g.def(value));
        around(g, branch)
            .iter()
            .any(|&(o, _)| g.is_prim(o, Prim::Loop) && !defined.iter().any(|&(d, _)| d == o))
    };
    let mut pending = vec![first];
    while let Some(Use { user, index }) = pending.pop() {
        let owner = g.owner(g.parent(user)).filter(|_| g.is_prim(user, Prim::Return));
        let left = owner.filter(|&o| {
            g.is_prim(o, Prim::If) && around(g, guard).iter().any(|&(a, _)| a == o) && !repeats(o)
        });
        match left {
            Some(branch) => pending.extend(g.uses(g.result(branch, index as usize))),
            None if g.is_prim(user, Prim::Guard) => pending.extend(g.uses(g.result(user, 0))),
            None => return true,
        }
    }
    false
}

/// The values that the rest of the program after a guard needs.
fn expected(g: &Graph, guard: NodeId) -> BTreeSet<String> {
    let mut live = BTreeSet::new();
    let (guarded, result) = (g.operand(guard, 0), g.result(guard, 0));
    for v in g.values_in_order() {
        let is_visible = g.is_nested_in(g.parent(guard), g.parent(g.def(v))) && g.is_before(g.def(v), guard)
            || g.is_prim(g.def(v), Prim::Param) && g.is_nested_in(g.parent(guard), g.parent(g.def(v)));
        if !is_visible || g.is_prim(g.def(v), Prim::Constant) {
            continue;
        }
        let of_result = v == guarded && g.uses(result).any(|u| is_read(g, guard, v, u));
        if of_result || g.uses(v).any(|u| is_read(g, guard, v, u) && may_run_after(g, guard, v, u.user)) {
            live.insert(g.name(v).to_string());
        }
    }
    for (owner, _) in around(g, guard) {
        if let Some(view) = g.as_loop(owner) {
            live.insert(g.name(view.max_trip_count(g)).to_string());
            live.insert(g.name(view.iteration(g)).to_string());
        }
    }
    live
}

#[test]
fn captures_are_exactly_the_live_values() {
    let mut checked = 0;
    for seed in 0..PROGRAMS {
        let text = program(seed);
        let before = read(&toy(), &text);
        let after = run(&toy(), "insert_bailouts", &text);
        let index = |g: &Graph, n: NodeId| g.attr(n, names::index()).and_then(|a| a.as_int());
        for bailout in after.nodes_deep().filter(|&n| after.is_prim(n, Prim::BailOut)) {
            let guard = before
                .nodes_deep()
                .find(|&n| before.is_prim(n, Prim::Guard) && index(&before, n) == index(&after, bailout))
                .expect("a bail-out was a guard");
            let captures: BTreeSet<String> =
                after.operands(bailout).skip(1).map(|v| after.name(v).to_string()).collect();
            let wanted = expected(&before, guard);
            assert_eq!(
                captures,
                wanted,
                "of %{} in program {seed}:\n{text}",
                before.name(before.result(guard, 0))
            );
            checked += 1;
        }
    }
    assert!(checked > 300, "only {checked} bail-outs");
}

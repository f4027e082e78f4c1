//! Explanations of may-alias answers as text: the paths through the memory graph that meet, or, if none
//! meet, the memory that each value may refer to.

use super::dag::{ElementId, NONE};
use super::{AliasDb, Flags};
use flambeau_ir::{Graph, ValueId};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use std::collections::VecDeque;
use std::fmt::Write;

/// Maximum number of paths printed per value.
const MAX_PATHS: usize = 8;

/// The elements reachable from a value that own memory, nearest first; `from` maps each element to its predecessor.
struct ReachableElements {
    from: HashMap<ElementId, Option<ElementId>, FxBuildHasher>,
    owners: Vec<ElementId>,
}

impl AliasDb {
    /// Explains the answer of [`AliasDb::may_alias`].
    ///
    /// ```text
    /// %r may alias %a: both may be *input Tensor
    ///   %r -> *input Tensor
    ///   %a -> *input Tensor
    ///   written by aten::add_
    /// ```
    #[must_use]
    pub fn why(&self, graph: &Graph, a: ValueId, b: ValueId) -> String {
        let name = |v: ValueId| format!("%{}", graph.name(v));
        if a == b {
            return format!("{0} may alias {0}: a value always aliases itself\n", name(a));
        }
        if let Some(&v) = [a, b].iter().find(|&&v| !graph.ty(v).is_mutable()) {
            let ty = graph.ty(v);
            return format!(
                "{} cannot alias {}: {} has the immutable type {ty}\n",
                name(a),
                name(b),
                name(v)
            );
        }
        let mut text = String::new();
        let (from_a, from_b) = (self.reach(a), self.reach(b));
        if !self.may_alias(a, b) {
            let _ = writeln!(text, "{} cannot alias {}: they have no memory in common", name(a), name(b));
            for (v, reach) in [(a, &from_a), (b, &from_b)] {
                self.describe_owners(graph, v, reach, &mut text);
            }
            return text;
        }
        let find = |e: ElementId| self.dag.locations.find(self.dag.elements[e].location);
        let met = from_a.owners.iter().find_map(|&x| {
            let y = *from_b.owners.iter().find(|&&y| find(y) == find(x))?;
            Some((x, y))
        });
        let Some((x, y)) = met else {
            let _ =
                writeln!(text, "{} may alias {}: memory was merged to bound the analysis", name(a), name(b));
            return text;
        };
        let place = self.owner_name(graph, x);
        let _ = writeln!(text, "{} may alias {}: both may be {place}", name(a), name(b));
        self.describe_path(graph, a, &from_a, x, &mut text);
        self.describe_path(graph, b, &from_b, y, &mut text);
        if x != y {
            let other = self.owner_name(graph, y);
            let _ = writeln!(text, "  {place} and {other} may be one: both are reachable from outside");
        }
        self.describe_writers(graph, find(x), &mut text);
        text
    }

    fn reach(&self, value: ValueId) -> ReachableElements {
        let mut reach = ReachableElements { from: HashMap::default(), owners: Vec::new() };
        let Some(start) = self.element(value) else { return reach };
        reach.from.insert(start, None);
        let mut queue = VecDeque::from([start]);
        while let Some(e) = queue.pop_front() {
            if self.dag.elements[e].location != NONE {
                reach.owners.push(e);
            }
            for target in self.dag.points_to(e) {
                if !reach.from.contains_key(&target) {
                    reach.from.insert(target, Some(e));
                    queue.push_back(target);
                }
            }
        }
        reach
    }

    /// An element that owns memory, by the name of its value if it represents one, else by its kind.
    fn owner_name(&self, graph: &Graph, e: ElementId) -> String {
        let name = self.element_name(graph, e);
        if self.dag.locations.flags(self.dag.elements[e].location).has(Flags::WILDCARD)
            && name.starts_with('%')
        {
            return format!("{name}, which is reachable from outside");
        }
        name
    }

    fn describe_path(
        &self,
        graph: &Graph,
        value: ValueId,
        reach: &ReachableElements,
        to: ElementId,
        text: &mut String,
    ) {
        let mut path = vec![to];
        while let Some(Some(from)) = reach.from.get(&path[path.len() - 1]) {
            path.push(*from);
        }
        let mut names: Vec<String> = path.iter().rev().map(|&e| self.element_name(graph, e)).collect();
        let own = format!("%{}", graph.name(value));
        // A value that has a single possible target shares the target's element.
        if names.first() != Some(&own) {
            names.insert(0, own);
        }
        let _ = writeln!(text, "  {}", names.join(" -> "));
    }

    fn describe_owners(&self, graph: &Graph, value: ValueId, reach: &ReachableElements, text: &mut String) {
        let mut names: Vec<String> = Vec::new();
        for &e in &reach.owners {
            let name = self.owner_name(graph, e);
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let more = names.len().saturating_sub(MAX_PATHS);
        names.truncate(MAX_PATHS);
        if more > 0 {
            names.push(format!("{more} more"));
        }
        let own = format!("%{}", graph.name(value));
        let alone = names.iter().all(|name| *name == own);
        let memory = if alone { "its own memory".to_owned() } else { names.join(", ") };
        let _ = writeln!(text, "  {own} is {memory}");
    }

    /// Appends the nodes that write a location.
    fn describe_writers(&self, graph: &Graph, location: u32, text: &mut String) {
        let mut names: Vec<&'static str> = Vec::new();
        for node in graph.nodes_deep().filter(|&n| self.writes_itself(n)) {
            let hits = self.writes.of(node).any(|w| {
                let set = self.set_of(w.element, w.deep);
                self.solution.sets.iter(set).any(|loc| self.dag.locations.find(loc) == location)
            });
            let name = graph.op_name(node).as_str();
            if hits && !names.contains(&name) && names.len() < MAX_PATHS {
                names.push(name);
            }
        }
        if !names.is_empty() {
            let _ = writeln!(text, "  written by {}", names.join(", "));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{graph, value};

    #[test]
    fn explanations_of_two_branches() {
        let g = graph(
            "graph(%a : Tensor, %b : Tensor, %c0 : bool):
  %one : int = prim::Constant[value=1]()
  %c : Tensor = aten::mul(%a, %b)
  %r : Tensor = prim::If(%c0)
    block0():
      -> (%a)
    block1():
      -> (%b)
  %w : Tensor = aten::add_(%r, %c, %one)
  return (%r, %c)",
        );
        let db = AliasDb::new(&g);
        let why = |a: &str, b: &str| db.why(&g, value(&g, a), value(&g, b));
        assert_eq!(
            why("r", "a"),
            "%r may alias %a: both may be *input Tensor\n  %r -> *input Tensor\n  %a -> *input Tensor\n  written by aten::add_\n"
        );
        assert!(
            why("r", "c").starts_with("%r cannot alias %c: they have no memory in common\n"),
            "{}",
            why("r", "c")
        );
        assert_eq!(why("one", "a"), "%one cannot alias %a: %one has the immutable type int\n");
        // Explanations agree with the answers for all pairs.
        for a in g.values_in_order() {
            for b in g.values_in_order() {
                let explanation = db.why(&g, a, b);
                assert_eq!(explanation.contains(" may alias %"), db.may_alias(a, b), "{explanation}");
            }
        }
    }
}

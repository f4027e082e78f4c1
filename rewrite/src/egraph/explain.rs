//! Explanations of extracted terms: the rules that transform a value's original term into the chosen one, in order.

use super::language::{ENode, NodeHead};
use super::window::EGraphWindow;
use super::{Inputs, SaturationLimits, extract::Choice};
use crate::rules::RuleSet;
use egg::{Id, RecExpr, TreeTerm};
use flambeau_analysis::{AliasDb, Analyses, Shapes};
use flambeau_ir::{Graph, IValue, ValueId};
use hashbrown::{HashMap, HashSet};
use rustc_hash::FxBuildHasher;
use std::fmt;
use std::rc::Rc;

/// One application of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleStep {
    /// The rule.
    pub rule: String,
    /// Whether the rule was applied from right to left.
    pub backwards: bool,
    /// The operator at the root of the rewritten subterm.
    pub at: String,
}

/// The proof that a value's term in the program equals the term chosen for the value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The original term, as an expression.
    pub before: String,
    /// The chosen term.
    pub after: String,
    /// The rule applications between the two terms, in order of the proof.
    pub steps: Vec<RuleStep>,
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.before)?;
        for s in &self.steps {
            writeln!(f, "  {} {} at {}", if s.backwards { "<-" } else { "->" }, s.rule, s.at)?;
        }
        write!(f, "{}", self.after)
    }
}

/// Largest expression that is explained, in nodes.
const MAX_TERM: usize = 400;

/// Explains the term that saturation chooses for a value. Returns `None` if the value is unchanged or not in a searched
/// window.
pub fn explain(
    graph: &Graph,
    analyses: &mut Analyses,
    rules: &RuleSet,
    limits: &SaturationLimits,
    value: ValueId,
) -> Option<Explanation> {
    let (graph, (db, shapes)) = analyses.with::<(AliasDb, Shapes)>(graph);
    let inputs = Inputs::new(graph, db, shapes, limits);
    let node = graph.def(value);
    let (_, nodes) = inputs.windows().into_iter().find(|(_, w)| w.contains(&node))?;
    let mut counts = vec![0; rules.rules().len()];
    let (mut window, choice, _) = inputs.search(&nodes, rules, false, &mut counts, true).ok()?;
    prove(&mut window, &choice, graph, value)
}

/// The proof that a value's chosen term equals its original one. Returns `None` if they are the same or a term has more
/// than [`MAX_TERM`] nodes. The window must have been built with explanations enabled.
pub(crate) fn prove(
    window: &mut EGraphWindow,
    choice: &Choice,
    graph: &Graph,
    value: ValueId,
) -> Option<Explanation> {
    let before = original(window, graph, value)?;
    let after = chosen(window, choice, value)?;
    if before == after {
        return None;
    }
    let proof = window.egraph.explain_equivalence(&before, &after);
    let printer = ENodePrinter { graph, window };
    Some(Explanation {
        before: printer.print(&before),
        after: printer.print(&after),
        steps: printer.steps(&proof.explanation_trees),
    })
}

/// Printer for e-nodes: leaves are printed by value name, constants by value.
struct ENodePrinter<'r> {
    graph: &'r Graph,
    window: &'r EGraphWindow,
}

impl ENodePrinter<'_> {
    fn label(&self, node: &ENode) -> String {
        match node.head {
            NodeHead::Leaf(n) => format!("%{}", self.graph.name(self.window.leaves[n as usize].value)),
            NodeHead::Constant(n) => match &self.window.egraph.analysis.constants[n as usize].0 {
                IValue::Tensor(_) => "a tensor".to_owned(),
                other => other.to_string(),
            },
            NodeHead::List(_) => "list".to_owned(),
            NodeHead::Op(id) => self.graph.registry().schema(id).full_name(),
        }
    }

    /// The rule applications of a proof, in order. Proofs are DAGs; each shared part is visited once.
    fn steps(&self, trees: &[Rc<TreeTerm<ENode>>]) -> Vec<RuleStep> {
        let mut steps = Vec::new();
        let mut seen: HashSet<*const TreeTerm<ENode>, FxBuildHasher> = HashSet::default();
        let mut stack: Vec<&Rc<TreeTerm<ENode>>> = trees.iter().rev().collect();
        while let Some(tree) = stack.pop() {
            if !seen.insert(Rc::as_ptr(tree)) {
                continue;
            }
            for (rule, backwards) in [(tree.backward_rule, true), (tree.forward_rule, false)] {
                if let Some(rule) = rule {
                    steps.push(RuleStep { rule: rule.to_string(), backwards, at: self.label(&tree.node) });
                }
            }
            for proof in tree.child_proofs.iter().rev() {
                stack.extend(proof.iter().rev());
            }
        }
        steps
    }

    /// Prints a term as text. Shared subterms are printed at each use, up to a total length.
    fn print(&self, expr: &RecExpr<ENode>) -> String {
        const MAX_EXPLANATION: usize = 2_000;
        enum Piece {
            Node(Id),
            Text(&'static str),
        }
        let mut out = String::new();
        let mut stack = vec![Piece::Node(expr.root())];
        while let Some(piece) = stack.pop() {
            if out.len() > MAX_EXPLANATION {
                out.push('…');
                break;
            }
            match piece {
                Piece::Text(text) => out.push_str(text),
                Piece::Node(id) => {
                    let node = &expr[id];
                    out.push_str(&self.label(node));
                    if node.children.is_empty() {
                        continue;
                    }
                    out.push('(');
                    stack.push(Piece::Text(")"));
                    for (i, &child) in node.children.iter().enumerate().rev() {
                        stack.push(Piece::Node(child));
                        if i > 0 {
                            stack.push(Piece::Text(", "));
                        }
                    }
                }
            }
        }
        out
    }
}

/// Builds a term from its root; `part` returns the node and operands of each key. Shared subterms are built once.
fn term<K: Copy + Eq + std::hash::Hash>(
    root: K,
    mut part: impl FnMut(K) -> Option<(ENode, Vec<K>)>,
) -> Option<RecExpr<ENode>> {
    let mut expr = RecExpr::default();
    let mut done: HashMap<K, Id, FxBuildHasher> = HashMap::default();
    let mut stack = vec![(root, false)];
    while let Some((key, ready)) = stack.pop() {
        if done.contains_key(&key) {
            continue;
        }
        let (mut node, parts) = part(key)?;
        if !ready {
            stack.push((key, true));
            stack.extend(parts.into_iter().rev().map(|p| (p, false)));
            continue;
        }
        if expr.len() >= MAX_TERM {
            return None;
        }
        node.children = parts.iter().map(|p| done[p]).collect();
        done.insert(key, expr.add(node));
    }
    Some(expr)
}

fn original(window: &EGraphWindow, graph: &Graph, value: ValueId) -> Option<RecExpr<ENode>> {
    let members: HashMap<ValueId, usize, FxBuildHasher> =
        window.members.iter().enumerate().map(|(i, m)| (m.value, i)).collect();
    term(value, |v| match members.get(&v) {
        Some(&i) => {
            let head = window.heads[i];
            Some((ENode::leaf(head), graph.operands(window.members[i].node).collect()))
        }
        None => Some((window.egraph.id_to_node(*window.ids.get(&v)?).clone(), Vec::new())),
    })
}

fn chosen(window: &EGraphWindow, choice: &Choice, value: ValueId) -> Option<RecExpr<ENode>> {
    let root = window.egraph.find(*window.ids.get(&value)?);
    term(root, |class| {
        let node = choice.node(class)?;
        Some((node.clone(), node.children.to_vec()))
    })
}

//! Saturation: applies rules until no rule adds anything or a bound is reached. Bounds are counts that are checked
//! before every application, never wall-clock time: the same input yields the same e-graph on any machine. The pass
//! compares the time limit of its run between windows; exceeding it is an error.

use super::facts::{ClassFacts, Contradiction, Knowledge};
use super::language::{ENode, ListType, NodeHead};
use crate::rules::rule::{Instance, Pat, RuleSet, fits, literal_for, literal_matches, right_side};
use egg::{EGraph, ENodeOrVar, Id, Language, Pattern, RecExpr, Searcher, Subst, Var};
use flambeau_ir::{IValue, Type};
use smallvec::SmallVec;
use std::sync::{Arc, OnceLock};

/// Bounds of one saturation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SaturationLimits {
    /// Maximum number of e-nodes.
    pub nodes: usize,
    /// Maximum number of rounds over all rules.
    pub iterations: usize,
    /// Maximum number of matches of one rule per round.
    pub matches_per_rule: usize,
    /// Maximum length of a window, in nodes of the program.
    pub window: usize,
}

impl Default for SaturationLimits {
    fn default() -> Self {
        SaturationLimits { nodes: 4_000, iterations: 8, matches_per_rule: 1_000, window: 400 }
    }
}

/// The reason why a saturation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StopReason {
    /// No rule adds anything new.
    Saturated,
    /// The maximum number of rounds is reached.
    Iterations,
    /// The maximum number of e-nodes is reached.
    Nodes,
}

/// The left sides of a rule set, compiled at first use. Each set has its own.
#[derive(Clone, Debug, Default)]
pub(crate) struct Matchers(OnceLock<Arc<[RuleMatcher]>>);

impl Matchers {
    /// The matchers of all instances of the set, in order.
    fn of(&self, instances: &[Instance]) -> &[RuleMatcher] {
        self.0.get_or_init(|| instances.iter().map(matcher).collect())
    }
}

/// A rule's left side as an egg pattern, with the checks that egg patterns cannot express.
#[derive(Clone, Debug)]
struct RuleMatcher {
    pattern: Pattern<ENode>,
    /// Pattern variables that stand for literals.
    literals: Vec<(Var, IValue)>,
    /// The pattern variable of each rule variable that occurs in the left side.
    vars: Vec<(u16, Var)>,
}

fn matcher(instance: &Instance) -> RuleMatcher {
    let mut ast: RecExpr<ENodeOrVar<ENode>> = RecExpr::default();
    let (mut literals, mut vars) = (Vec::new(), Vec::new());
    // Operands precede their users; subexpressions of the right side follow the root of the left side.
    let mut ids: Vec<Id> = Vec::new();
    let literal_base = instance.var_types.len() as u32;
    for pat in &instance.pats[..=usize::from(instance.left)] {
        let id = match pat {
            Pat::Var(v) => {
                let var = Var::from_u32(u32::from(*v));
                if !vars.contains(&(*v, var)) {
                    vars.push((*v, var));
                }
                ast.add(ENodeOrVar::Var(var))
            }
            Pat::Literal(value, _) => {
                let var = Var::from_u32(literal_base + literals.len() as u32);
                literals.push((var, value.clone()));
                ast.add(ENodeOrVar::Var(var))
            }
            Pat::Op(op, args) => {
                let children = args.iter().map(|&a| ids[usize::from(a)]).collect();
                ast.add(ENodeOrVar::ENode(ENode { head: NodeHead::Op(*op), children }))
            }
            Pat::List(elem, items) => {
                let children = items.iter().map(|&a| ids[usize::from(a)]).collect();
                let head = NodeHead::List(ListType(Type::list(*elem)));
                ast.add(ENodeOrVar::ENode(ENode { head, children }))
            }
            Pat::Compute(..) => unreachable!("invariant: computed constants occur on the right side only"),
        };
        ids.push(id);
    }
    RuleMatcher { pattern: Pattern::new(ast), literals, vars }
}

/// Applies rules to an e-graph. Adds the number of applications of each rule to `counts`.
///
/// # Errors
/// Returns the first contradiction between facts of one class. The e-graph must not be used afterwards.
pub(crate) fn saturate(
    egraph: &mut EGraph<ENode, Knowledge>,
    rules: &RuleSet,
    limits: &SaturationLimits,
    ignore_conditions: bool,
    counts: &mut [u64],
) -> Result<StopReason, Contradiction> {
    let matchers = rules.matchers.of(rules.instances());
    take_contradiction(egraph)?;
    for _ in 0..limits.iterations {
        let mut found: Vec<(usize, Id, Subst)> = Vec::new();
        for (i, m) in matchers.iter().enumerate() {
            for matches in m.pattern.search_with_limit(egraph, limits.matches_per_rule) {
                found.extend(matches.substs.into_iter().map(|s| (i, matches.eclass, s)));
            }
        }
        let mut changed = false;
        for (i, class, subst) in found {
            if egraph.total_number_of_nodes() >= limits.nodes {
                egraph.analysis.rule = None;
                egraph.rebuild();
                return take_contradiction(egraph).map(|()| StopReason::Nodes);
            }
            let (m, instance) = (&matchers[i], &rules.instances()[i]);
            let rule = instance.rule;
            egraph.analysis.rule = Some(rule);
            if apply(egraph, rules, (instance, m), class, &subst, ignore_conditions) {
                counts[rule] += 1;
                changed = true;
            }
            take_contradiction(egraph)?;
        }
        egraph.analysis.rule = None;
        egraph.rebuild();
        take_contradiction(egraph)?;
        if !changed {
            return Ok(StopReason::Saturated);
        }
    }
    Ok(StopReason::Iterations)
}

fn take_contradiction(egraph: &mut EGraph<ENode, Knowledge>) -> Result<(), Contradiction> {
    egraph.analysis.contradiction.take().map_or(Ok(()), Err)
}

fn apply(
    egraph: &mut EGraph<ENode, Knowledge>,
    rules: &RuleSet,
    (instance, m): (&Instance, &RuleMatcher),
    class: Id,
    subst: &Subst,
    ignore_conditions: bool,
) -> bool {
    let rule = &rules.rules()[instance.rule];
    let bound = |var: Var| -> &ClassFacts { &egraph[subst[var]].data };
    for (var, literal) in &m.literals {
        let constant = bound(*var).constant.map(|c| &egraph.analysis.constants[c as usize].0);
        if !constant.is_some_and(|c| literal_matches(literal, c)) {
            return false;
        }
    }
    if m.vars.iter().any(|&(v, var)| !fits(bound(var).ty, instance.var_types[usize::from(v)])) {
        return false;
    }
    let fact = |v: u16| egraph.analysis.fact(bound(Var::from_u32(u32::from(v))));
    if !ignore_conditions && !rule.holds(fact, egraph.analysis.fact(&egraph[class].data)) {
        return false;
    }
    let Some(right) = instantiate(egraph, rules, instance, subst) else { return false };
    egraph.union_trusted(class, right, rule.name.as_str())
}

/// Adds the right side. Returns `None` if a computed constant has no value.
fn instantiate(
    egraph: &mut EGraph<ENode, Knowledge>,
    rules: &RuleSet,
    instance: &Instance,
    subst: &Subst,
) -> Option<Id> {
    let rule = &rules.rules()[instance.rule];
    let mut ids: Vec<Option<Id>> = vec![None; instance.pats.len()];
    for at in right_side(instance, |_| false) {
        let made = |ids: &[Option<Id>], args: &[u16]| -> SmallVec<[Id; 4]> {
            args.iter()
                .map(|&a| ids[usize::from(a)].expect("invariant: operands stand before their users"))
                .collect()
        };
        let id = match &instance.pats[usize::from(at)] {
            Pat::Var(v) => subst[Var::from_u32(u32::from(*v))],
            Pat::Literal(value, ty) => add_constant(egraph, value, *ty),
            Pat::Op(op, args) => {
                let children = made(&ids, args);
                egraph.add(ENode { head: NodeHead::Op(*op), children })
            }
            Pat::List(elem, items) => {
                let children = made(&ids, items);
                egraph.add(ENode { head: NodeHead::List(ListType(Type::list(*elem))), children })
            }
            Pat::Compute(function, args, ty) => {
                let children = made(&ids, args);
                let value = {
                    let facts: SmallVec<[_; 4]> =
                        children.iter().map(|&k| egraph.analysis.fact(&egraph[k].data)).collect();
                    rule.compute(*function, &facts)?
                };
                let value = literal_for(&value, *ty)?;
                add_constant(egraph, &value, *ty)
            }
        };
        ids[usize::from(at)] = Some(id);
    }
    ids[usize::from(instance.right)]
}

/// Adds a constant as an argument of type `formal`. List constants become list e-nodes, because lists are constructed
/// at each use and not shared.
pub(crate) fn add_constant(egraph: &mut EGraph<ENode, Knowledge>, value: &IValue, formal: Type) -> Id {
    if let (IValue::List(list), Some(elem)) = (value, formal.unwrap_optional().list_elem()) {
        let children = list.to_vec().iter().map(|v| add_constant(egraph, v, elem)).collect();
        return egraph.add(ENode { head: NodeHead::List(ListType(Type::list(elem))), children });
    }
    let number = egraph.analysis.constant(value, value.type_of());
    egraph.add(ENode::leaf(NodeHead::Constant(number)))
}

/// The e-node with canonical operand classes.
pub(crate) fn canonical(egraph: &EGraph<ENode, Knowledge>, node: &ENode) -> ENode {
    node.clone().map_children(|k| egraph.find(k))
}

//! Greedy rule application: the pass `rewrite`, for large graphs and linear chains.
//!
//! A sweep walks the graph in program order and matches every node against the rules rooted at its operator; the first
//! match is applied. The rewrites of a sweep form one patch. Sweeps repeat until no rule matches or a bound is reached,
//! so analyses are built once per sweep, not per rewrite. After the first sweep only nodes that the changes of the last
//! one may concern are matched again ([`concerned`]). Within a sweep, checks of memory sharing resolve a rewritten
//! value to its replacement.
//!
//! A term that occurs on both sides of a rule is not computed again: in `relu(relu(%x)) => relu(%x)` the right side is
//! the inner node that was matched.

use super::concerned;
use super::eligible::Eligible;
use super::parse::Exactness;
use super::rule::{Instance, Pat, RuleSet, fits, literal_matches, right_side, same_constant};
use super::select::{CompiledRules, RuleLibrary, Selection};
use super::sharing::Sharing;
use super::vocabulary::TermFact;
use crate::control::InjectedBug;
use crate::pass::{Pass, PassCx, PassError};
use crate::patch::{Patch, Planned};
use crate::pipeline::{PassEntry, PassOptions};
use flambeau_analysis::{AliasDb, Shapes};
use flambeau_ir::{At, Graph, IValue, LocId, NodeId, Op, Prim, Revision, Type, ValueId};
use smallvec::SmallVec;
use std::sync::Arc;

/// The pass `rewrite`. See the module documentation.
pub struct Rewrite {
    /// The selected rules.
    pub select: Selection,
    /// Maximum number of sweeps.
    pub sweeps: usize,
}

impl Default for Rewrite {
    fn default() -> Self {
        Rewrite { select: Selection::default(), sweeps: 16 }
    }
}

/// The options of passes that apply rules greedily.
pub(crate) const OPTIONS: &[&str] = &["accept", "only", "sweeps"];

impl Rewrite {
    /// The pass entry, with the rules of a library.
    pub(crate) fn entry(library: Arc<RuleLibrary>) -> PassEntry {
        PassEntry::made(OPTIONS, move |options| Rewrite::configure(options, &library))
    }

    pub(crate) fn configure(options: &PassOptions, library: &Arc<RuleLibrary>) -> Result<Self, String> {
        let sweeps = options.number("sweeps")?.map_or(16, |n| usize::try_from(n).unwrap_or(usize::MAX));
        Ok(Rewrite { select: Selection::configure(options, library)?, sweeps })
    }
}

impl Pass for Rewrite {
    const NAME: &'static str = "rewrite";
    const DOC: &'static str = "Applies rewrite rules to a fixed point.";

    fn exactness(&self) -> Exactness {
        self.select.accept
    }

    fn run(&self, cx: &mut PassCx<'_>) -> Result<(), PassError> {
        self.apply(cx)
    }
}

impl Rewrite {
    /// Applies the rules in sweeps over the graph, on behalf of the running pass.
    pub(crate) fn apply(&self, cx: &mut PassCx<'_>) -> Result<(), PassError> {
        let registry = cx.registry();
        let rules = self.select.rules(&registry)?;
        let mut changed = None;
        for _ in 0..self.sweeps {
            cx.deadline().check()?;
            let before = cx.graph().journal().revision();
            if !sweep(cx, &rules, changed)? {
                break;
            }
            changed = Some(before);
        }
        Ok(())
    }
}

/// Runs one sweep over the nodes that changes since a revision may concern, or over all. Returns whether another sweep
/// may find more.
fn sweep(cx: &mut PassCx<'_>, rules: &CompiledRules, since: Option<Revision>) -> Result<bool, PassError> {
    let CompiledRules { rules, by_root } = rules;
    let graph = cx.graph();
    let concerned = since.and_then(|since| concerned::by_changes(graph, since));
    let is_rooted = |n: NodeId| graph.op(n).row().is_some_and(|id| by_root.contains_key(&id));
    let is_concerned = |n: NodeId| concerned.as_ref().is_none_or(|set| set.contains(n));
    let work: Vec<NodeId> = graph.nodes_deep().filter(|&n| is_rooted(n) && is_concerned(n)).collect();
    if work.is_empty() {
        return Ok(false);
    }
    let (ignore_conditions, deadline) =
        (cx.injected_bug() == InjectedBug::RulesWithoutConditions, cx.deadline());
    let (graph, (db, shapes)) = cx.with::<(AliasDb, Shapes)>();
    let mut sweep = Sweep::new(graph, db, shapes, rules);
    sweep.ignore_conditions = ignore_conditions;
    for node in work {
        deadline.check()?;
        let op = graph.op(node).row().expect("invariant: rooted nodes are rows");
        sweep.try_node(node, &by_root[&op]);
    }
    let Sweep { mut patch, done, .. } = sweep;
    let (mut steps, mut enough) = (0, true);
    for (node, rule, upto) in done {
        let name = &rules.rules()[rule].name;
        enough = cx.fuel(name, node);
        if !enough {
            patch.truncate(steps);
            break;
        }
        cx.count(name, 1);
        steps = upto;
    }
    let more = enough && !patch.is_empty();
    if !patch.is_empty() {
        cx.apply(patch)?;
    }
    Ok(more)
}

struct Sweep<'a> {
    graph: &'a Graph,
    shapes: &'a Shapes,
    eligible: Eligible<'a>,
    rules: &'a RuleSet,
    ignore_conditions: bool,
    patch: Patch,
    /// Rewritten nodes, each with the rule and the length of the patch after the rewrite.
    done: Vec<(NodeId, usize, usize)>,
    sharing: Sharing<'a>,
}

/// A match of a rule's left side.
struct Match {
    /// The values that the variables are bound to.
    vars: SmallVec<[Option<ValueId>; 8]>,
    /// The values that the operators and lists of the left side match.
    terms: SmallVec<[(u16, ValueId); 4]>,
}

impl Match {
    /// The value of a term of the right side that the left side computes, too.
    fn value_of(&self, instance: &Instance, term: u16) -> Option<ValueId> {
        let known = |t: &&(u16, ValueId)| t.0 != instance.left && instance.is_same_term(t.0, term);
        self.terms.iter().find(known).map(|t| t.1)
    }
}

impl<'a> Sweep<'a> {
    fn new(graph: &'a Graph, db: &'a AliasDb, shapes: &'a Shapes, rules: &'a RuleSet) -> Self {
        let writes = graph.all_effects().may_write();
        Sweep {
            graph,
            shapes,
            eligible: Eligible { graph, db, writes },
            rules,
            ignore_conditions: false,
            patch: Patch::new(graph),
            done: Vec::new(),
            sharing: Sharing::new(graph, db),
        }
    }

    fn try_node(&mut self, node: NodeId, instances: &[usize]) {
        if self.graph.results(node).all(|v| self.graph.use_count(v) == 0) {
            return;
        }
        let is_member = self.eligible.is_member(node);
        if !is_member && !self.eligible.is_query(node) {
            return;
        }
        let rules = self.rules;
        for &i in instances {
            let instance = &rules.instances()[i];
            if !is_member && !instance.answers_from_facts() {
                continue;
            }
            let Some(found) = self.matches(instance, node) else { continue };
            if self.apply(instance, node, &found) {
                self.done.push((node, instance.rule, self.patch.len()));
                return;
            }
        }
    }

    /// Matches the left side at a node, which is eligible. The parser bounds the depth of a rule.
    fn matches(&self, instance: &Instance, node: NodeId) -> Option<Match> {
        let vars = SmallVec::from_elem(None, instance.var_types.len());
        let mut found = Match { vars, terms: SmallVec::new() };
        let mut stack: SmallVec<[(u16, ValueId); 8]> = SmallVec::new();
        stack.push((instance.left, self.graph.result(node, 0)));
        while let Some((pat, value)) = stack.pop() {
            match &instance.pats[usize::from(pat)] {
                Pat::Var(v) => {
                    let slot = &mut found.vars[usize::from(*v)];
                    match *slot {
                        Some(bound) if bound != value && !self.same_constant(bound, value) => return None,
                        Some(_) => {}
                        None if fits(self.graph.ty(value), instance.var_types[usize::from(*v)]) => {
                            *slot = Some(value)
                        }
                        None => return None,
                    }
                }
                Pat::Literal(literal, _) => {
                    if !literal_matches(literal, &self.constant(value)?) {
                        return None;
                    }
                }
                Pat::Op(op, args) => {
                    let def = self.graph.def(value);
                    let fits =
                        self.graph.op(def).row() == Some(*op) && self.graph.operand_count(def) == args.len();
                    if !fits || pat != instance.left && !self.eligible.is_member(def) {
                        return None;
                    }
                    found.terms.push((pat, value));
                    stack.extend(args.iter().copied().zip(self.graph.operands(def)));
                }
                Pat::List(_, items) => {
                    let def = self.graph.def(value);
                    let fits = self.graph.is_prim(def, Prim::ListConstruct)
                        && self.graph.operand_count(def) == items.len();
                    if !fits || !self.eligible.is_member(def) {
                        return None;
                    }
                    found.terms.push((pat, value));
                    stack.extend(items.iter().copied().zip(self.graph.operands(def)));
                }
                Pat::Compute(..) => return None,
            }
        }
        Some(found)
    }

    fn same_constant(&self, a: ValueId, b: ValueId) -> bool {
        matches!((self.constant(a), self.constant(b)), (Some(x), Some(y)) if same_constant(&x, &y))
    }

    /// The constant of a value: a `prim::Constant`, or a list of constants without writers.
    fn constant(&self, value: ValueId) -> Option<IValue> {
        if let Some(constant) = self.graph.constant(value) {
            return Some(constant);
        }
        let def = self.graph.def(value);
        let elem = self.graph.ty(value).list_elem()?;
        if !self.graph.is_prim(def, Prim::ListConstruct) || elem.is_mutable() || !self.eligible.is_member(def)
        {
            return None;
        }
        let items: Option<Vec<IValue>> = self.graph.operands(def).map(|v| self.graph.constant(v)).collect();
        Some(IValue::list(elem, items?))
    }

    fn apply(&mut self, instance: &Instance, node: NodeId, found: &Match) -> bool {
        let rule = &self.rules.rules()[instance.rule];
        let root = self.graph.result(node, 0);
        let constants: SmallVec<[Option<IValue>; 8]> =
            found.vars.iter().map(|b| b.and_then(|v| self.constant(v))).collect();
        let fact = |v: u16| {
            let i = usize::from(v);
            let ty = found.vars[i].map_or(Type::ANY, |b| self.shapes.refined_type(self.graph, b));
            TermFact::Value { ty, constant: constants[i].as_ref() }
        };
        let root_fact = TermFact::Value { ty: self.shapes.refined_type(self.graph, root), constant: None };
        if !self.ignore_conditions && !rule.holds(fact, root_fact) {
            return false;
        }
        let before = self.patch.len();
        let Some(term) = self.build(instance, node, found, &fact) else {
            self.patch.truncate(before);
            return false;
        };
        if !self.sharing.replace_if_unobservable(root, term) {
            self.patch.truncate(before);
            return false;
        }
        self.patch.replace_all_uses(root, term);
        true
    }

    /// Plans the right side, except for terms that the left side computes, too. Returns its value.
    fn build<'f>(
        &mut self,
        instance: &Instance,
        node: NodeId,
        found: &Match,
        fact: &impl Fn(u16) -> TermFact<'f>,
    ) -> Option<Planned> {
        let rule = &self.rules.rules()[instance.rule];
        let (at, loc) = (At::before(node), self.graph.loc(node));
        let mut terms: Vec<Option<Planned>> = vec![None; instance.pats.len()];
        let known = |pat| found.value_of(instance, pat);
        for pat in right_side(instance, |pat| known(pat).is_some()) {
            if let Some(value) = known(pat) {
                terms[usize::from(pat)] = Some(self.sharing.resolve(value));
                continue;
            }
            let of = |terms: &[Option<Planned>], args: &[u16]| -> SmallVec<[Planned; 4]> {
                args.iter().filter_map(|&a| terms[usize::from(a)]).collect()
            };
            let term = match &instance.pats[usize::from(pat)] {
                Pat::Var(v) => self.sharing.resolve(found.vars[usize::from(*v)]?),
                Pat::Literal(value, ty) => self.plan_constant(at, loc, value, *ty),
                Pat::Compute(function, args, ty) => {
                    let facts: Option<SmallVec<[TermFact<'_>; 4]>> = args
                        .iter()
                        .map(|&a| match &instance.pats[usize::from(a)] {
                            Pat::Var(v) => Some(fact(*v)),
                            Pat::Literal(value, _) => Some(TermFact::Literal(value)),
                            _ => None,
                        })
                        .collect();
                    let value = rule.compute(*function, &facts?)?;
                    let value = super::rule::literal_for(&value, *ty)?;
                    self.plan_constant(at, loc, &value, *ty)
                }
                Pat::List(elem, items) => {
                    let children = of(&terms, items);
                    self.insert(at, Prim::ListConstruct.into(), &children, Type::list(*elem), loc)
                }
                Pat::Op(op, args) => {
                    let children = of(&terms, args);
                    let root = pat == instance.right;
                    let declared =
                        self.graph.registry().schema(*op).returns.first().map_or(Type::ANY, |r| r.ty);
                    let ty = if root { self.graph.ty(self.graph.result(node, 0)) } else { declared };
                    self.insert(at, (*op).into(), &children, ty, loc)
                }
            };
            terms[usize::from(pat)] = Some(term);
        }
        terms[usize::from(instance.right)].take()
    }

    /// Plans a node of the right side.
    fn insert(&mut self, at: At, op: Op, children: &[Planned], ty: Type, loc: LocId) -> Planned {
        let planned = self.patch.insert(at, op, children, Vec::new(), ty, loc);
        self.sharing.plan(planned, op, children, ty);
        planned
    }

    fn plan_constant(&mut self, at: At, loc: LocId, value: &IValue, formal: Type) -> Planned {
        if let (IValue::List(list), Some(elem)) = (value, formal.unwrap_optional().list_elem()) {
            let children: Vec<Planned> =
                list.to_vec().iter().map(|v| self.plan_constant(at, loc, v, elem)).collect();
            return self.insert(at, Prim::ListConstruct.into(), &children, Type::list(elem), loc);
        }
        let planned = self.patch.constant(at, value.clone(), value.type_of(), loc);
        self.sharing.plan(planned, Prim::Constant.into(), &[], value.type_of());
        planned
    }
}

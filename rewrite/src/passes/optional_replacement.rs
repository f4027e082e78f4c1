//! Scalar replacement of optional numbers: a branch result or loop-carried value of type `int?`, `float?` or `bool?` becomes two
//! bools (whether it is `None`, and whether it is not) and a number.
//!
//! The machine keeps optional numbers as boxed values, and tests them at run time. After the replacement they are words, and a
//! test whose outcome a branch knows is a jump. Results of branches, values that loops carry and the inputs of the bodies of
//! loops are the *merges*. A merge is replaced if each of its sources is `None`, a number, or a merge that is replaced, and each
//! of its users is a comparison with `None`, a cast to the number, or a merge that is replaced. Where it is `None`, its number is
//! uninitialized: casts are reached only where it is not.
//!
//! The merges that stay are found with a worklist: O(merges + their sources and users). The replaced merges remain in the graph
//! without users; `dce` removes them, and what is not used of the new values.

use crate::pass::{Pass, PassCx, PassError};
use flambeau_exec::Intrinsic;
use flambeau_ir::types::TypeKind;
use flambeau_ir::{At, Editor, Graph, IValue, NodeId, Prim, Type, Use, ValueId};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

/// See the module documentation.
#[derive(Clone, Copy, Debug, Default)]
pub struct OptionalReplacement;

impl Pass for OptionalReplacement {
    const NAME: &'static str = "optional_replacement";
    const DOC: &'static str =
        "Replaces optional numbers that branches return and loops carry by bools and numbers.";

    fn run(&self, cx: &mut PassCx<'_>) -> Result<(), PassError> {
        let registry = cx.registry();
        let intrinsics = registry.column::<Intrinsic>();
        let test = |graph: &Graph, node: NodeId| match intrinsics.of(graph.op(node)) {
            Some(Intrinsic::Is) => Some(Test::IsNone),
            Some(Intrinsic::IsNot) => Some(Test::IsNumber),
            _ => None,
        };
        let Some(mut plan) = Plan::new(cx.graph(), &test) else { return Ok(()) };
        let (mut editor, mut fuel) = cx.edit_fuelled();
        for merge in 0..plan.merges.len() {
            if plan.is_replaced(merge) && !fuel.take("replace", editor.graph(), plan.merges[merge].node) {
                plan.keep(editor.graph(), merge);
            }
        }
        plan.apply(&mut editor);
        Ok(())
    }
}

/// A comparison with `None`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Test {
    IsNone,
    IsNumber,
}

/// A result of a branch, or a value that a loop carries, by the index of the result.
struct Merge {
    node: NodeId,
    index: usize,
    /// The type of the number.
    number: Type,
    stays: bool,
    /// Whether a test or cast reads it, or a merge that one reads.
    is_read: bool,
}

impl Merge {
    /// Returns the values that are it: the result, and for a loop the input of the body.
    fn values(&self, g: &Graph) -> impl Iterator<Item = ValueId> {
        let body = g.blocks(self.node).next().filter(|_| g.is_prim(self.node, Prim::Loop));
        let input = body.and_then(|body| g.block_inputs(body).nth(self.index + 1));
        [Some(g.result(self.node, self.index)), input].into_iter().flatten()
    }

    /// Returns the values that it may be, each with the node before which it is available.
    fn sources(&self, g: &Graph) -> Vec<(ValueId, NodeId)> {
        let is_loop = g.is_prim(self.node, Prim::Loop);
        let output = self.index + usize::from(is_loop);
        let ends = g.blocks(self.node).map(|block| (g.operand(g.ret(block), output), g.ret(block)));
        let start = is_loop.then(|| (g.operand(self.node, self.index + 2), self.node));
        start.into_iter().chain(ends).collect()
    }
}

/// The user of a merge.
enum User {
    Test(NodeId, Test),
    Cast(NodeId),
    Merge(usize),
    Other,
}

/// The source of a merge.
enum Source {
    None,
    Number,
    Merge(usize),
    Other,
}

/// What replaces a value: whether it is `None`, whether it is a number, and the number.
type Parts = [ValueId; 3];

struct Plan<'t> {
    merges: Vec<Merge>,
    /// The merge of each of its values.
    merge_of: HashMap<ValueId, usize, FxBuildHasher>,
    test: &'t dyn Fn(&Graph, NodeId) -> Option<Test>,
}

impl<'t> Plan<'t> {
    /// Finds the merges; `None` if there are none that can be replaced.
    fn new(graph: &Graph, test: &'t dyn Fn(&Graph, NodeId) -> Option<Test>) -> Option<Plan<'t>> {
        let mut plan = Plan { merges: Vec::new(), merge_of: HashMap::default(), test };
        for node in graph.nodes_deep().filter(|&n| matches!(graph.prim(n), Some(Prim::If | Prim::Loop))) {
            for (index, result) in graph.results(node).enumerate() {
                let Some(number) = number_of(graph.ty(result)) else { continue };
                let merge = Merge { node, index, number, stays: false, is_read: false };
                for value in merge.values(graph) {
                    plan.merge_of.insert(value, plan.merges.len());
                }
                plan.merges.push(merge);
            }
        }
        for merge in 0..plan.merges.len() {
            if !plan.can_be_replaced(graph, merge) {
                plan.keep(graph, merge);
            }
        }
        plan.mark_read(graph);
        (0..plan.merges.len()).any(|merge| plan.is_replaced(merge)).then_some(plan)
    }

    fn is_replaced(&self, merge: usize) -> bool {
        !self.merges[merge].stays && self.merges[merge].is_read
    }

    /// Whether the sources and users of a merge permit its replacement, apart from those that are merges.
    fn can_be_replaced(&self, g: &Graph, merge: usize) -> bool {
        let merge = &self.merges[merge];
        merge.values(g).all(|value| {
            number_of(g.ty(value)) == Some(merge.number)
                && g.uses(value).all(|u| !matches!(self.user(g, u, merge.number), User::Other))
        }) && merge.sources(g).iter().all(|&(source, _)| match self.source(g, source, merge.number) {
            Source::Merge(other) => self.merges[other].number == merge.number,
            Source::Other => false,
            Source::None | Source::Number => true,
        })
    }

    /// Marks a merge, and those that it depends on or that depend on it, as one that stays.
    fn keep(&mut self, g: &Graph, merge: usize) {
        let mut open = vec![merge];
        while let Some(merge) = open.pop() {
            if std::mem::replace(&mut self.merges[merge].stays, true) {
                continue;
            }
            let merge = &self.merges[merge];
            open.extend(merge.sources(g).iter().filter_map(|(source, _)| self.merge_of.get(source)));
            for u in merge.values(g).flat_map(|value| g.uses(value)) {
                if let User::Merge(user) = self.user(g, u, merge.number) {
                    open.push(user);
                }
            }
        }
    }

    /// Marks the merges that tests and casts read, and the merges that are sources of these.
    fn mark_read(&mut self, g: &Graph) {
        let is_read = |merge: &Merge| {
            let mut users = merge.values(g).flat_map(|value| g.uses(value));
            users.any(|u| matches!(self.user(g, u, merge.number), User::Test(..) | User::Cast(_)))
        };
        let mut open: Vec<usize> = (0..self.merges.len()).filter(|&i| is_read(&self.merges[i])).collect();
        while let Some(merge) = open.pop() {
            if !std::mem::replace(&mut self.merges[merge].is_read, true) {
                let sources = self.merges[merge].sources(g);
                open.extend(sources.iter().filter_map(|(source, _)| self.merge_of.get(source)));
            }
        }
    }

    fn source(&self, g: &Graph, value: ValueId, number: Type) -> Source {
        if let Some(&merge) = self.merge_of.get(&value) {
            return Source::Merge(merge);
        }
        if g.ty(value) == number {
            return Source::Number;
        }
        let is_none =
            matches!(g.constant(value), Some(IValue::None)) || g.is_prim(g.def(value), Prim::Uninitialized);
        if is_none { Source::None } else { Source::Other }
    }

    fn user(&self, g: &Graph, u: Use, number: Type) -> User {
        let merge = |node: NodeId, index: Option<usize>| {
            let result = index.filter(|&i| i < g.result_count(node)).map(|i| g.result(node, i));
            result
                .and_then(|result| self.merge_of.get(&result))
                .map_or(User::Other, |&merge| User::Merge(merge))
        };
        let index = u.index as usize;
        match g.prim(u.user) {
            Some(Prim::UncheckedCast | Prim::UncheckedUnwrapOptional)
                if g.ty(g.result(u.user, 0)) == number =>
            {
                User::Cast(u.user)
            }
            Some(Prim::Loop) => merge(u.user, index.checked_sub(2)),
            Some(Prim::Return) => match g.owner(g.parent(u.user)) {
                Some(owner) if g.is_prim(owner, Prim::If) => merge(owner, Some(index)),
                Some(owner) if g.is_prim(owner, Prim::Loop) => merge(owner, index.checked_sub(1)),
                _ => User::Other,
            },
            Some(_) => User::Other,
            None => match (self.test)(g, u.user) {
                Some(test)
                    if index == 0 && matches!(g.constant(g.operand(u.user, 1)), Some(IValue::None)) =>
                {
                    User::Test(u.user, test)
                }
                _ => User::Other,
            },
        }
    }

    /// Replaces the merges that do not stay.
    fn apply(&self, editor: &mut Editor<'_>) {
        let replaced: Vec<usize> = (0..self.merges.len()).filter(|&merge| self.is_replaced(merge)).collect();
        let mut parts: HashMap<ValueId, Parts, FxBuildHasher> = HashMap::default();
        for merge in replaced.iter().map(|&merge| &self.merges[merge]) {
            let types = [Type::BOOL, Type::BOOL, merge.number];
            let values: Vec<ValueId> = merge.values(editor.graph()).collect();
            parts.insert(values[0], types.map(|ty| editor.add_result(merge.node, ty)));
            let body = editor.graph().blocks(merge.node).next();
            if let (Some(&input), Some(body)) = (values.get(1), body) {
                parts.insert(input, types.map(|ty| editor.add_block_input(body, ty)));
            }
        }
        for merge in replaced.iter().map(|&merge| &self.merges[merge]) {
            for (source, before) in merge.sources(editor.graph()) {
                let split = self.split(editor, (source, before), merge.number, &parts);
                let g = editor.graph();
                let end_of = g.is_prim(before, Prim::Return).then(|| g.parent(before));
                for part in split {
                    match end_of {
                        Some(block) => editor.add_block_output(block, part),
                        None => editor.push_operand(before, part),
                    }
                }
            }
        }
        for merge in replaced.iter().map(|&merge| &self.merges[merge]) {
            for value in merge.values(editor.graph()).collect::<Vec<_>>() {
                let [none, some, number] = parts[&value];
                for u in editor.graph().uses(value).collect::<Vec<_>>() {
                    match self.user(editor.graph(), u, merge.number) {
                        User::Test(node, Test::IsNone) => editor.replace_node(node, &[none]),
                        User::Test(node, Test::IsNumber) => editor.replace_node(node, &[some]),
                        User::Cast(node) => editor.replace_node(node, &[number]),
                        User::Merge(_) | User::Other => {}
                    }
                }
            }
        }
    }

    /// Returns the parts of a source, which are available before a node.
    fn split(
        &self,
        editor: &mut Editor<'_>,
        (source, before): (ValueId, NodeId),
        number: Type,
        parts: &HashMap<ValueId, Parts, FxBuildHasher>,
    ) -> Parts {
        if let Some(&known) = parts.get(&source) {
            return known;
        }
        let is_number = matches!(self.source(editor.graph(), source, number), Source::Number);
        let loc = editor.graph().loc(before);
        let at = editor.at(At::before(before));
        at.loc(loc);
        let [none, some] = [!is_number, is_number].map(|known| at.constant(IValue::Bool(known)));
        let number = if is_number { source } else { at.value(Prim::Uninitialized, &[], number) };
        [none, some, number]
    }
}

/// Returns the type of the number if a type is that of an optional number.
fn number_of(ty: Type) -> Option<Type> {
    match ty.kind() {
        TypeKind::Optional(inner) if matches!(*inner, Type::INT | Type::FLOAT | Type::BOOL) => Some(*inner),
        _ => None,
    }
}

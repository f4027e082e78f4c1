//! Decoding: turns the extracted e-nodes back into nodes of the graph, as one atomic patch.
//!
//! Only terms with uses outside the window are built, in program order. A new term is inserted directly before the node
//! that the term replaces. If a node of the program already computes the chosen e-node, that node is reused; if its
//! result does not alias, its operands are replaced by cheaper ones. A value stays as it is if the new term would
//! change which values it shares memory with and the change could be observed.

use super::extract::Choice;
use super::language::{ENode, NodeHead};
use super::saturate::canonical;
use super::window::EGraphWindow;
use crate::patch::{Patch, Planned};
use crate::rules::sharing::Sharing;
use egg::Id;
use flambeau_ir::{At, Graph, NodeId, Op, Prim, Type, ValueId};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use smallvec::SmallVec;

pub(crate) struct Decoder<'d, 'a> {
    graph: &'a Graph,
    sharing: &'d mut Sharing<'a>,
    window: &'d EGraphWindow,
    choice: &'d Choice,
    /// The first member that computes each canonical e-node.
    original: HashMap<ENode, u32, FxBuildHasher>,
    /// Terms already built: the member position from which each is usable, and its value.
    built: HashMap<Id, (u32, Planned), FxBuildHasher>,
    log: Vec<Id>,
}

enum Task {
    Visit(Id, u32),
    Build(Id, u32),
}

impl<'d, 'a> Decoder<'d, 'a> {
    pub(crate) fn new(
        graph: &'a Graph,
        sharing: &'d mut Sharing<'a>,
        window: &'d EGraphWindow,
        choice: &'d Choice,
    ) -> Self {
        let mut original = HashMap::default();
        for i in 0..window.members.len() {
            let node = member_node(window, graph, i);
            original.entry(node).or_insert(i as u32);
        }
        Decoder { graph, sharing, window, choice, original, built: HashMap::default(), log: Vec::new() }
    }

    /// Plans all changes. Returns the nodes whose values are replaced, each with the length of the patch after its
    /// edits.
    pub(crate) fn run(mut self, patch: &mut Patch) -> Vec<(NodeId, usize)> {
        let mut rewrites = Vec::new();
        for root in self.window.roots(self.graph) {
            let member = self.window.members[root as usize];
            let class = self.window.egraph.find(member.id);
            let before = patch.len();
            self.log.clear();
            let Some(term) = self.term(class, root, patch) else {
                self.undo(patch, before);
                continue;
            };
            let same = term == Planned::Value(member.value);
            if !same && !self.sharing.replace_if_unobservable(member.value, term) {
                self.undo(patch, before);
                continue;
            }
            if !same {
                patch.replace_all_uses(member.value, term);
            }
            if patch.len() > before {
                rewrites.push((member.node, patch.len()));
            }
        }
        rewrites
    }

    fn undo(&mut self, patch: &mut Patch, len: usize) {
        patch.truncate(len);
        for class in std::mem::take(&mut self.log) {
            if let Some((_, term @ Planned::New(..))) = self.built.remove(&class) {
                self.sharing.forget(term);
            }
        }
    }

    /// Plans the chosen term of a class so that member `at` can use it. Returns `None` if a leaf of the term is defined
    /// after `at`.
    fn term(&mut self, class: Id, at: u32, patch: &mut Patch) -> Option<Planned> {
        if self.choice.available_from(class) > at {
            return None;
        }
        let mut stack = vec![Task::Visit(class, at)];
        while let Some(task) = stack.pop() {
            match task {
                Task::Visit(class, at) => {
                    if self.built.get(&class).is_some_and(|b| b.0 <= at) {
                        continue;
                    }
                    let node = self.choice.node(class)?;
                    // If a member computes this e-node, that member is reused; its operands must be available at the
                    // member's own position.
                    let place = self.original.get(node).copied().filter(|&g| g <= at).unwrap_or(at);
                    stack.push(Task::Build(class, at));
                    for &child in node.children.iter().rev() {
                        if self.choice.available_from(child) <= place {
                            stack.push(Task::Visit(child, place));
                        }
                    }
                }
                Task::Build(class, at) => self.build(class, at, patch)?,
            }
        }
        self.built.get(&class).map(|b| b.1)
    }

    fn build(&mut self, class: Id, at: u32, patch: &mut Patch) -> Option<()> {
        if self.built.get(&class).is_some_and(|b| b.0 <= at) {
            return Some(());
        }
        let node = self.choice.node(class)?.clone();
        let child = |built: &HashMap<Id, (u32, Planned), FxBuildHasher>, k: Id, place: u32| {
            built.get(&k).filter(|b| b.0 <= place).map(|b| b.1)
        };
        if let Some(original) = self.original.get(&node).copied().filter(|&g| g <= at) {
            let member = self.window.members[original as usize];
            let wanted: SmallVec<[Option<Planned>; 4]> =
                node.children.iter().map(|&k| child(&self.built, k, original)).collect();
            let operands: SmallVec<[ValueId; 4]> = self.graph.operands(member.node).collect();
            let same = operands.iter().zip(&wanted).all(|(&o, w)| w.is_none_or(|w| w == Planned::Value(o)));
            // Changing the operands of a view or of a list would change the memory that all users of the result share.
            if same || !self.sharing.depends_on_operands(member.node) {
                for (i, w) in wanted.iter().enumerate() {
                    if let Some(w) = w.filter(|&w| w != Planned::Value(operands[i])) {
                        patch.set_operand(member.node, i, w);
                    }
                }
                return self.choose(class, original, Planned::Value(member.value));
            }
        }
        let anchor = self.window.members[at as usize].node;
        let (place, loc) = (At::before(anchor), self.graph.loc(self.like(class, &node).unwrap_or(anchor)));
        let planned = match node.head {
            NodeHead::Leaf(n) => {
                let leaf = self.window.leaves[n as usize];
                return self.choose(class, leaf.available_from, self.sharing.resolve(leaf.value));
            }
            NodeHead::Constant(n) => {
                let (value, ty) = self.window.egraph.analysis.constants[n as usize].clone();
                let planned = patch.constant(place, value, ty, loc);
                self.sharing.plan(planned, Prim::Constant.into(), &[], ty);
                planned
            }
            NodeHead::List(_) | NodeHead::Op(_) => {
                let children: Option<SmallVec<[Planned; 4]>> =
                    node.children.iter().map(|&k| child(&self.built, k, at)).collect();
                let children = children?;
                if self.changes_read_strides(class, &node, &children) {
                    return None;
                }
                let (op, ty): (Op, Type) = match node.head {
                    NodeHead::Op(id) => (id.into(), self.result_type(class, id)),
                    NodeHead::List(ty) => (Prim::ListConstruct.into(), ty.0),
                    NodeHead::Leaf(_) | NodeHead::Constant(_) => return None,
                };
                let planned = patch.insert(place, op, &children, Vec::new(), ty, loc);
                self.sharing.plan(planned, op, &children, ty);
                planned
            }
        };
        self.note(class, at, planned);
        Some(())
    }

    /// Returns the node whose location a new node of a class has: the member that the term is, or one that computes the same.
    fn like(&self, class: Id, node: &ENode) -> Option<NodeId> {
        let members = &self.window.members;
        let same = self.original.get(node).map(|&member| &members[member as usize]);
        same.or_else(|| members.iter().find(|m| self.window.egraph.find(m.id) == class))
            .map(|member| member.node)
    }

    /// Whether a term of several tensors computes a member of its class that is another term, and a use of the member reads its strides:
    /// they depend on the order of the tensors, as in `y + x` or `x - y` instead of `x + y` or `-y + x`.
    fn changes_read_strides(&self, class: Id, node: &ENode, operands: &[Planned]) -> bool {
        let is_tensor = |operand: &&Planned| match operand {
            Planned::Value(value) => self.graph.ty(*value).is_tensor(),
            Planned::New(..) => true,
        };
        let is_read = |member: u32| {
            let member = &self.window.members[member as usize];
            self.window.egraph.find(member.id) == class && self.sharing.strides_are_read(member.value)
        };
        operands.iter().filter(is_tensor).nth(1).is_some()
            && self.original.iter().any(|(other, &member)| other != node && is_read(member))
    }

    /// Notes an existing value as the term of a class. Returns `None` if another member of the class is new memory, of which a
    /// use reads the strides, and the value is not.
    fn choose(&mut self, class: Id, available_from: u32, term: Planned) -> Option<()> {
        let changes = |value: ValueId| {
            self.sharing.may_change_strides(value, term) && self.sharing.strides_are_read(value)
        };
        let mut members = self.window.members.iter();
        if members.any(|m| self.window.egraph.find(m.id) == class && changes(m.value)) {
            return None;
        }
        self.note(class, available_from, term);
        Some(())
    }

    fn note(&mut self, class: Id, available_from: u32, term: Planned) {
        self.built.insert(class, (available_from, term));
        self.log.push(class);
    }

    /// The type of a new node: that of a member of the same class if there is one, else the operator's declared type.
    fn result_type(&self, class: Id, id: flambeau_ir::OpId) -> Type {
        let declared = self.graph.registry().schema(id).returns.first().map_or(Type::ANY, |r| r.ty);
        let member = self.window.members.iter().find(|m| self.window.egraph.find(m.id) == class);
        member.map_or(declared, |m| self.graph.ty(m.value))
    }
}

/// Member `index` as a canonical node of the e-graph.
pub(crate) fn member_node(window: &EGraphWindow, graph: &Graph, index: usize) -> ENode {
    let member = window.members[index];
    let head = window.heads[index];
    let children = graph.operands(member.node).map(|v| window.ids[&v]).collect();
    canonical(&window.egraph, &ENode { head, children })
}

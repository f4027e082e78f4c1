//! Scalar replacement of objects: attributes of an object that does not escape become values.
//!
//! An object does not escape if the graph creates it and only reads and sets its attributes. Then no other code can reach it,
//! and an attribute is a local variable: the pass converts these variables to SSA form. An attribute that a branch or
//! loop sets becomes a result of the branch, or a value that the loop carries.
//!
//! An object stays if an attribute may be read before it is set, which is an error at run time, if the values of an
//! attribute have different types, or if it is used below a node with blocks that is neither a branch nor a loop.
//!
//! All objects of a graph are replaced in one walk: O(nodes), plus the nesting depth of every node that sets an
//! attribute.

use crate::pass::{Pass, PassCx, PassError};
use flambeau_ir::attr::names;
use flambeau_ir::{BlockId, Editor, Graph, NodeId, Prim, Symbol, Type, ValueId, WalkStep};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

/// See the module documentation.
#[derive(Clone, Copy, Debug, Default)]
pub struct ScalarReplacement;

impl Pass for ScalarReplacement {
    const NAME: &'static str = "scalar_replacement";
    const DOC: &'static str = "Replaces the attributes of objects that do not escape by values.";

    fn run(&self, cx: &mut PassCx<'_>) -> Result<(), PassError> {
        let mut plan = ReplacementPlan::new(cx.graph());
        if plan.objects.is_empty() {
            return Ok(());
        }
        plan.check(cx.graph());
        let (mut editor, mut fuel) = cx.edit_fuelled();
        for object in &mut plan.objects {
            object.remains_object =
                object.remains_object || !fuel.take("replace", editor.graph(), object.node);
        }
        plan.apply(&mut editor);
        Ok(())
    }
}

/// An object that does not escape.
struct Object {
    node: NodeId,
    remains_object: bool,
}

/// An attribute of an object.
struct Variable {
    object: usize,
    ty: Type,
}

/// A node that reads or sets a variable.
#[derive(Clone, Copy)]
enum Access {
    Get(usize),
    Set(usize),
}

type ByNode<T> = HashMap<NodeId, T, FxBuildHasher>;

struct ReplacementPlan {
    objects: Vec<Object>,
    variables: Vec<Variable>,
    accesses: ByNode<Access>,
    /// For branches and loops: the variables that they set, ascending.
    sets: ByNode<Vec<usize>>,
    /// The nodes and blocks that matter, in the order of the walk.
    steps: Vec<WalkStep>,
}

impl ReplacementPlan {
    /// Finds the objects that do not escape, and their attributes.
    fn new(graph: &Graph) -> ReplacementPlan {
        let mut plan = ReplacementPlan {
            objects: Vec::new(),
            variables: Vec::new(),
            accesses: HashMap::default(),
            sets: HashMap::default(),
            steps: Vec::new(),
        };
        for node in graph.nodes_deep() {
            if graph.is_prim(node, Prim::CreateObject) && is_local(graph, graph.result(node, 0)) {
                plan.add(graph, node);
            }
        }
        if !plan.objects.is_empty() {
            plan.steps =
                graph.walk(graph.root()).filter(|step| plan.concerns_variable(graph, *step)).collect();
        }
        plan
    }

    /// Adds an object with its variables.
    fn add(&mut self, graph: &Graph, node: NodeId) {
        let (object, object_block) = (self.objects.len(), graph.parent(node));
        let mut known: HashMap<Symbol, usize, FxBuildHasher> = HashMap::default();
        let mut remains_object = false;
        for access in graph.uses(graph.result(node, 0)).map(|u| u.user) {
            let is_get = graph.is_prim(access, Prim::GetAttr);
            let value = if is_get { graph.result(access, 0) } else { graph.operand(access, 1) };
            let ty = graph.ty(value).erase_shapes();
            let Some(name) = graph.attr(access, names::name()).and_then(|a| a.as_str()).map(Symbol::new)
            else {
                remains_object = true;
                continue;
            };
            let variable = *known.entry(name).or_insert_with(|| {
                self.variables.push(Variable { object, ty });
                self.variables.len() - 1
            });
            remains_object |= self.variables[variable].ty != ty;
            self.accesses.insert(access, if is_get { Access::Get(variable) } else { Access::Set(variable) });
            // The constructs between the object and the access.
            let mut at = access;
            while graph.parent(at) != object_block {
                let Some(outer) = graph.enclosing(at) else { break };
                remains_object |= !matches!(graph.prim(outer), Some(Prim::If | Prim::Loop));
                if !is_get {
                    let sets = self.sets.entry(outer).or_default();
                    if sets.contains(&variable) {
                        break;
                    }
                    sets.push(variable);
                }
                at = outer;
            }
        }
        self.objects.push(Object { node, remains_object });
    }

    /// Whether a step of the walk reads, sets, or merges a variable.
    fn concerns_variable(&self, graph: &Graph, step: WalkStep) -> bool {
        match step {
            WalkStep::Node(node) | WalkStep::Done(node) => {
                self.accesses.contains_key(&node) || self.sets.contains_key(&node)
            }
            WalkStep::Enter(block) | WalkStep::Leave(block) => {
                graph.owner(block).is_some_and(|node| self.sets.contains_key(&node))
            }
        }
    }

    /// Keeps the objects that have an attribute that may be read before it is set.
    fn check(&mut self, graph: &Graph) {
        let mut walk = Walk { is_set: vec![false; self.variables.len()], merges: Vec::new() };
        for &step in &self.steps {
            match step {
                WalkStep::Node(node) => match self.accesses.get(&node) {
                    Some(&Access::Get(variable)) if !walk.is_set[variable] => {
                        self.objects[self.variables[variable].object].remains_object = true;
                    }
                    Some(&Access::Get(_)) => {}
                    Some(&Access::Set(variable)) => walk.is_set[variable] = true,
                    None => {
                        let before = self.sets[&node].iter().map(|&v| walk.is_set[v]).collect();
                        walk.merges.push((before, Vec::new()));
                    }
                },
                WalkStep::Enter(_) => {}
                WalkStep::Leave(block) => {
                    let Some(sets) = graph.owner(block).and_then(|node| self.sets.get(&node)) else {
                        continue;
                    };
                    let Some((before, ends)) = walk.merges.last_mut() else { continue };
                    ends.push(sets.iter().map(|&v| walk.is_set[v]).collect());
                    sets.iter().zip(before.iter()).for_each(|(&v, &was)| walk.is_set[v] = was);
                }
                WalkStep::Done(node) => {
                    let (Some(sets), Some((before, ends))) = (self.sets.get(&node), walk.merges.pop()) else {
                        continue;
                    };
                    let is_if = graph.is_prim(node, Prim::If);
                    for (i, &v) in sets.iter().enumerate() {
                        walk.is_set[v] = if is_if { ends.iter().all(|end| end[i]) } else { before[i] };
                    }
                }
            }
        }
    }

    /// Replaces the attributes of all objects that do not stay.
    fn apply(&self, editor: &mut Editor<'_>) {
        let mut values = Values { plan: self, current: vec![None; self.variables.len()], merges: Vec::new() };
        for &step in &self.steps {
            match step {
                WalkStep::Node(node) => match self.accesses.get(&node) {
                    Some(&access) => values.access(editor, node, access),
                    None => values.begin(editor, node),
                },
                WalkStep::Enter(block) => values.enter(editor, block),
                WalkStep::Leave(block) => values.leave(editor, block),
                WalkStep::Done(node) if self.sets.contains_key(&node) => values.end(editor, node),
                WalkStep::Done(_) => {}
            }
        }
        for object in self.objects.iter().filter(|object| !object.remains_object) {
            editor.erase(object.node);
        }
    }
}

/// Whether all uses of an object read or set its attributes.
fn is_local(graph: &Graph, object: ValueId) -> bool {
    graph
        .uses(object)
        .all(|u| u.index == 0 && matches!(graph.prim(u.user), Some(Prim::GetAttr | Prim::SetAttr)))
}

/// State of the check: the variables that are certainly set, and of each open construct the state before it and at the
/// end of each block.
struct Walk {
    is_set: Vec<bool>,
    merges: Vec<(Vec<bool>, Vec<Vec<bool>>)>,
}

/// State of the replacement: the value of each variable that is set, and the open constructs.
struct Values<'p> {
    plan: &'p ReplacementPlan,
    current: Vec<Option<ValueId>>,
    merges: Vec<Merge>,
}

/// An open construct.
struct Merge {
    /// The variables that it sets, with their values before it.
    before: Vec<(usize, Option<ValueId>)>,
    /// Per block, their values at its end.
    ends: Vec<Vec<Option<ValueId>>>,
}

impl Values<'_> {
    fn remains_object(&self, variable: usize) -> bool {
        self.plan.objects[self.plan.variables[variable].object].remains_object
    }

    fn access(&mut self, editor: &mut Editor<'_>, node: NodeId, access: Access) {
        match access {
            Access::Get(variable) | Access::Set(variable) if self.remains_object(variable) => {}
            Access::Get(variable) => {
                let value = self.current[variable].expect("invariant: checked to be set");
                editor.replace_node(node, &[value]);
            }
            Access::Set(variable) => {
                self.current[variable] = Some(editor.graph().operand(node, 1));
                editor.erase(node);
            }
        }
    }

    /// Begins a branch or loop. A loop carries the variables that have a value.
    fn begin(&mut self, editor: &mut Editor<'_>, node: NodeId) {
        let sets = self.plan.sets[&node].iter().copied().filter(|&v| !self.remains_object(v));
        let before: Vec<_> = sets.map(|v| (v, self.current[v])).collect();
        if editor.graph().is_prim(node, Prim::Loop) {
            for value in before.iter().filter_map(|&(_, value)| value) {
                editor.push_operand(node, value);
            }
        }
        self.merges.push(Merge { before, ends: Vec::new() });
    }

    fn enter(&mut self, editor: &mut Editor<'_>, block: BlockId) {
        let owner = editor.graph().owner(block);
        let is_loop = owner.is_some_and(|node| editor.graph().is_prim(node, Prim::Loop));
        let Some(merge) = self.merges.last() else { return };
        for &(variable, before) in &merge.before {
            self.current[variable] = match before {
                Some(_) if is_loop => Some(editor.add_block_input(block, self.plan.variables[variable].ty)),
                before => before,
            };
        }
    }

    fn leave(&mut self, editor: &mut Editor<'_>, block: BlockId) {
        let owner = editor.graph().owner(block);
        let is_loop = owner.is_some_and(|node| editor.graph().is_prim(node, Prim::Loop));
        let Some(merge) = self.merges.last_mut() else { return };
        let end: Vec<_> = merge.before.iter().map(|&(variable, _)| self.current[variable]).collect();
        if is_loop {
            for (value, (_, before)) in end.iter().zip(&merge.before) {
                if let (Some(value), Some(_)) = (value, before) {
                    editor.add_block_output(block, *value);
                }
            }
        }
        merge.ends.push(end);
    }

    /// Ends a branch or loop: its results are the values of the variables. A variable without a value on some way is not
    /// read before it is set again.
    fn end(&mut self, editor: &mut Editor<'_>, node: NodeId) {
        let Some(Merge { before, ends }) = self.merges.pop() else { return };
        let is_loop = editor.graph().is_prim(node, Prim::Loop);
        let blocks: Vec<BlockId> = editor.graph().blocks(node).collect();
        for (i, (variable, before)) in before.into_iter().enumerate() {
            let ty = self.plan.variables[variable].ty;
            self.current[variable] = if is_loop {
                before.map(|_| editor.add_result(node, ty))
            } else {
                let values: Option<Vec<ValueId>> = ends.iter().map(|end| end[i]).collect();
                values.map(|values| {
                    for (&block, &value) in blocks.iter().zip(&values) {
                        editor.add_block_output(block, value);
                    }
                    editor.add_result(node, ty)
                })
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{assert_passes, toy};

    #[test]
    fn attributes_become_carried_values_and_results_of_branches() {
        assert_passes(
            &toy(),
            "scalar_replacement",
            "graph(%n : int, %a : Tensor, %b : Tensor, %c : bool):
  %t : bool = prim::Constant[value=1]()
  %o : __torch__.C = prim::CreateObject()
   = prim::SetAttr[name=\"x\"](%o, %a)
   = prim::Loop(%n, %t)
    block0(%i : int):
      %x : Tensor = prim::GetAttr[name=\"x\"](%o)
       = prim::If(%c)
        block0():
          %y : Tensor = toy::relu(%x)
           = prim::SetAttr[name=\"x\"](%o, %y)
           = prim::SetAttr[name=\"late\"](%o, %n)
          -> ()
        block1():
          -> ()
      -> (%t)
  %z : Tensor = prim::GetAttr[name=\"x\"](%o)
  return (%z)
",
            "graph(%n : int, %a : Tensor, %b : Tensor, %c : bool):
  %t : bool = prim::Constant[value=1]()
  %13 : Tensor = prim::Loop(%n, %t, %a)
    block0(%i : int, %11 : Tensor):
      %12 : Tensor = prim::If(%c)
        block0():
          %y : Tensor = toy::relu(%11)
          -> (%y)
        block1():
          -> (%11)
      -> (%t, %12)
  return (%13)
",
        );
    }

    #[test]
    fn objects_that_escape_or_may_lack_an_attribute_stay() {
        for (line, end) in [
            (" = prim::SetAttr[name=\"self\"](%o, %o)", "%n"),
            ("%x : int = prim::GetAttr[name=\"unset\"](%o)", "%x"),
            (" = prim::SetAttr[name=\"x\"](%o, %c)", "%n"),
            ("%p : bool = prim::Constant[value=1]()", "%o"),
        ] {
            let text = format!(
                "graph(%n : int, %c : bool):
  %o : __torch__.C = prim::CreateObject()
   = prim::SetAttr[name=\"x\"](%o, %n)
  {line}
  return ({end})
"
            );
            assert_passes(&toy(), "scalar_replacement", &text, &text);
        }
    }
}

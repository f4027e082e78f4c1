//! Scopes: the graphs that are being built, and the names of tensors in them.
//!
//! The root graph is the outermost scope; each subgraph of a higher-order operator is built in a scope of its own. A tensor
//! of an outer scope that a subgraph uses becomes an input of the subgraph, of every scope in between, and an operand of the
//! node that runs it.
//!
//! A subgraph must not write to its inputs. A write to a tensor of an outer scope gives the tensor another name in the
//! subgraph, whose value becomes a further result of the node. The memory of the run is written, too, so a scope keeps the
//! former content ([`Written`]), which is restored at the end of the scope: the other block of a branch starts from it.
//!
//! Invariant: the name of a tensor in the innermost scope that has one and is not [`Scope::outdated`] before has the
//! tensor's current content.

use super::record::{CONSTANT, Recorder};
use super::{Res, copied, refused};
use flambeau_exec::KernelError;
use flambeau_export::build::GraphBuilder;
use flambeau_export::model::{Argument, NamedArgument, NodeMetadata, TensorMeta};
use flambeau_ir::IValue;
use flambeau_tensor::Tensor;
use hashbrown::{HashMap, HashSet};
use rustc_hash::FxBuildHasher;

type Table<V> = HashMap<usize, V, FxBuildHasher>;
type IdSet = HashSet<usize, FxBuildHasher>;

/// Maximum nesting of subgraphs.
const MAX_DEPTH: usize = 24;

/// A graph that is being built.
#[derive(Default)]
pub(super) struct Scope {
    pub(super) builder: GraphBuilder,
    /// Names of tensors by identity.
    pub(super) names: Table<String>,
    /// Names of symbolic numbers of outer scopes, which nodes of this scope read from captured tensors.
    pub(super) numbers: HashMap<String, String, FxBuildHasher>,
    /// Tensors that carry symbolic numbers of this scope into subgraphs.
    pub(super) carriers: HashMap<String, Tensor, FxBuildHasher>,
    /// Names of the nodes that compute sizes, by tensor and dimension.
    pub(super) sizes: HashMap<(usize, Option<usize>), String, FxBuildHasher>,
    /// The tensors of outer scopes that are inputs of this one, in the order of their first use.
    pub(super) captured: Vec<Tensor>,
    /// Names of the inputs by the identity of their tensors, and all of these names.
    inputs: Table<String>,
    input_names: HashSet<String, FxBuildHasher>,
    /// Tensors whose names in outer scopes have an outdated content, because this scope wrote to their memory.
    pub(super) outdated: IdSet,
    /// The tensors of outer scopes to whose memory this scope wrote.
    pub(super) written: Vec<Written>,
    /// Addresses of storages that are other ones in each iteration of a loop, and must not be written.
    placeholders: IdSet,
    /// Counters at the begin of the scope.
    marks: Marks,
    /// Placeholders of the constants that were made in this scope.
    lifted: Vec<String>,
    /// Identities of containers and tensors that were made in this scope. Other containers must not be changed.
    made: IdSet,
}

/// The numbers of names that a recorder has given.
#[derive(Clone, Copy, Default)]
pub(super) struct Marks {
    pub(super) unbacked: usize,
    pub(super) lifted: usize,
    pub(super) subgraphs: usize,
}

/// A tensor of an outer scope to whose memory a subgraph writes. The tensor is the base of its storage.
pub(super) struct Written {
    pub(super) root: Tensor,
    /// The content before the scope.
    pub(super) before: Tensor,
}

impl Scope {
    /// Whether a tensor has memory of a tensor of an outer scope, or of an input that each iteration passes.
    pub(super) fn has_outer_memory(&self, tensor: &Tensor) -> bool {
        self.captured.iter().any(|own| own.shares_storage(tensor))
            || self.placeholders.contains(&tensor.storage().address())
    }

    /// Makes the inputs of a subgraph those that the node passes, in their order.
    pub(super) fn arrange(&mut self, operands: &[(Tensor, TensorMeta)]) {
        let mut inputs = Vec::with_capacity(operands.len());
        for (tensor, meta) in operands {
            let name = match self.inputs.get(&tensor.id()) {
                Some(name) => name.clone(),
                None => {
                    let name = self.builder.input_name("unused");
                    self.builder.define(&name, meta.clone());
                    name
                }
            };
            inputs.push(Argument::Tensor(name));
        }
        self.builder.graph.inputs = inputs;
    }

    /// Forgets captured tensors that neither a node nor an output uses.
    pub(super) fn forget_unused_inputs(&mut self) {
        let mut used = HashSet::<String, FxBuildHasher>::default();
        let graph = &self.builder.graph;
        let operands = graph.nodes.iter().flat_map(|node| &node.inputs).map(|input| &input.arg);
        for arg in operands.chain(&graph.outputs) {
            arg.for_each_name(&mut |name| used.extend([name.to_owned()]));
        }
        for tensor in std::mem::take(&mut self.captured) {
            match self.inputs.get(&tensor.id()) {
                Some(name) if used.contains(name) => self.captured.push(tensor),
                Some(name) => drop(self.builder.graph.tensor_values.shift_remove(name)),
                None => {}
            }
        }
    }
}

impl Recorder {
    /// Opens the scope of a subgraph.
    pub(super) fn open_scope(&mut self) -> Res<()> {
        if self.scopes.len() > MAX_DEPTH {
            return Err(refused(format!(
                "branches and loops on values that are only known at run time are nested more than {MAX_DEPTH} deep"
            )));
        }
        self.scopes.push(Scope { marks: self.marks, ..Scope::default() });
        Ok(())
    }

    /// Ends the innermost scope, which must not be the root.
    pub(super) fn close_scope(&mut self) -> Scope {
        let mut scope = self.scopes.pop().expect("invariant: a subgraph has a scope");
        self.scope().lifted.append(&mut scope.lifted);
        scope
    }

    /// Discards the innermost scope, its graph, and the symbols and constants that were made for it.
    pub(super) fn discard_scope(&mut self) {
        let scope = self.scopes.pop().expect("invariant: a subgraph has a scope");
        let count = self.discard_constants(&scope.lifted);
        // A constant that was made outside keeps its number.
        let lifted = if self.marks.lifted - scope.marks.lifted == count {
            scope.marks.lifted
        } else {
            self.marks.lifted
        };
        self.sizes.forget_unbacked(scope.marks.unbacked, self.marks.unbacked);
        self.marks = Marks { lifted, ..scope.marks };
    }

    /// Runs a function with a closed scope as the innermost one.
    pub(super) fn within<T>(&mut self, scope: &mut Scope, run: impl FnOnce(&mut Self) -> Res<T>) -> Res<T> {
        self.scopes.push(std::mem::take(scope));
        let result = run(self);
        *scope = self.close_scope();
        result
    }

    /// Returns the innermost scope, up to a depth, that has a name for the current content of a tensor.
    fn naming_scope(&self, id: usize, depth: usize) -> Option<usize> {
        for at in (0..=depth).rev() {
            let scope = &self.scopes[at];
            if scope.names.contains_key(&id) {
                return Some(at);
            }
            if scope.outdated.contains(&id) {
                return None;
            }
        }
        None
    }

    /// Returns whether the current content of a tensor has a name in any open scope.
    pub(super) fn is_named(&self, tensor: &Tensor) -> bool {
        self.naming_scope(tensor.id(), self.scopes.len() - 1).is_some()
    }

    /// Returns the name of a tensor in the innermost scope. A view whose content is outdated must be regenerated before,
    /// unless only its sizes are used.
    pub(super) fn name_of(&mut self, tensor: &Tensor) -> Res<String> {
        self.name_at(tensor, self.scopes.len() - 1)
    }

    fn name_at(&mut self, tensor: &Tensor, depth: usize) -> Res<String> {
        let id = tensor.id();
        let known = self.naming_scope(id, depth);
        let known = known.or_else(|| (0..=depth).rev().find(|&at| self.scopes[at].names.contains_key(&id)));
        let mut at = match known {
            Some(at) => at,
            None => self.lift(tensor, depth)?,
        };
        while at < depth {
            at += 1;
            let outer = self.scopes[at - 1].names[&id].clone();
            let meta = self.meta(tensor)?;
            let scope = &mut self.scopes[at];
            let name = scope.builder.input_name(&outer);
            scope.builder.define(&name, meta);
            scope.names.insert(id, name.clone());
            scope.inputs.insert(id, name.clone());
            scope.input_names.insert(name);
            scope.captured.push(tensor.clone());
        }
        Ok(self.scopes[depth].names[&id].clone())
    }

    /// Returns whether a name of the innermost scope is an input of the subgraph.
    pub(super) fn is_input_name(&self, name: &str) -> bool {
        self.scopes.last().is_some_and(|scope| scope.input_names.contains(name))
    }

    /// Makes a constant an input of the root graph, with its contents at this time. Returns the scope in which the tensor has
    /// a name.
    fn lift(&mut self, tensor: &Tensor, depth: usize) -> Res<usize> {
        let (target, is_fixed) = self.constant_name(tensor);
        let contents = copied(tensor)?;
        if is_fixed {
            let name = self.placeholder(CONSTANT, &target, tensor)?;
            self.lifted_constant(name, target, contents);
            return Ok(0);
        }
        // A tensor that the program made: each call, and each iteration, has its own, which the program may write.
        let id = tensor.id();
        let at = (0..=depth).rev().find(|&at| self.scopes[at].made.contains(&id)).unwrap_or(0);
        let name = self.placeholder(CONSTANT, &target, &contents)?;
        self.scopes[at].lifted.push(name.clone());
        self.lifted_constant(name, target, contents.clone());
        let input = self.name_at(&contents, at)?;
        let copy = self.registry().lookup("aten::lift_fresh_copy");
        let copy = copy.ok_or_else(|| refused("`aten::lift_fresh_copy` is not registered"))?;
        let target = flambeau_export::build::target_of(self.registry().schema(copy));
        let meta = self.meta(tensor)?;
        let scope = &mut self.scopes[at];
        let copied = scope.builder.node_name("lift_fresh_copy");
        scope.builder.define(&copied, meta);
        let own = NamedArgument { name: "self".to_owned(), arg: Argument::Tensor(input), kind: None };
        let output = vec![Argument::Tensor(copied.clone())];
        scope.builder.node(Some(copied.clone()), &target, vec![own], output, NodeMetadata::default());
        scope.names.insert(id, copied);
        self.keep(&[IValue::Tensor(tensor.clone())]);
        Ok(at)
    }

    /// Makes a tensor an input of the innermost scope under a name.
    pub(super) fn subgraph_input(&mut self, tensor: &Tensor, candidate: &str) -> Res<()> {
        let name = self.scope().builder.input_name(candidate);
        self.define(&name, tensor)?;
        let scope = self.scope();
        scope.inputs.insert(tensor.id(), name.clone());
        scope.input_names.insert(name);
        Ok(())
    }

    /// Makes a tensor an input of the innermost scope that each iteration of a loop passes: a copy with the same content.
    pub(super) fn iteration_input(&mut self, tensor: &Tensor, number: usize) -> Res<Tensor> {
        let own = copied(tensor)?;
        let dims = self.sizes.of(tensor).map(<[flambeau_analysis::shape::Dim]>::to_vec);
        if let Some(dims) = dims {
            self.sizes.set(&own, dims, &[]);
        }
        self.subgraph_input(&own, &format!("arg{number}_1"))?;
        self.mark_varying(&own);
        self.scope().placeholders.insert(own.storage().address());
        Ok(own)
    }

    /// Makes the memory of a tensor an input of the innermost scope whose content each iteration of a loop passes.
    pub(super) fn iteration_memory(&mut self, root: &Tensor) -> Res<()> {
        self.mark_varying(root);
        self.name_of(root)?;
        let views = self.aliases.sharing(root);
        let scope = self.scope();
        scope.outdated.extend(views.into_iter().filter(|&id| id != root.id()));
        Ok(())
    }

    /// Checks that a tensor may be written: it is not a constant and no value that each iteration of a loop passes.
    pub(super) fn check_write(&self, operator: &str, written: &Tensor) -> Res<()> {
        if self.is_constant(written) {
            return Err(refused(format!(
                "`{operator}` writes to a tensor that is a constant of the program"
            )));
        }
        let address = written.storage().address();
        if self.scopes.iter().any(|scope| scope.placeholders.contains(&address)) {
            return Err(refused(format!(
                "`{operator}` in a loop whose number of iterations is only known at run time writes to a tensor that \
                 another one replaces in each iteration"
            )));
        }
        if self.scopes.len() > 1 && !self.is_functional {
            return Err(refused(format!(
                "`{operator}` writes to a tensor in a branch or loop on a value that is only known at run time, in a program whose operators write"
            )));
        }
        Ok(())
    }

    /// Keeps the content of the base of a storage before the innermost scope writes to it, if it is of an outer scope.
    pub(super) fn before_write(&mut self, root: &Tensor) -> Res<()> {
        if self.scopes.len() == 1 {
            return Ok(());
        }
        let id = root.id();
        let scope = self.scope();
        let is_own = scope.names.contains_key(&id) && !scope.inputs.contains_key(&id);
        if is_own || scope.written.iter().any(|written| written.root.id() == id) {
            return Ok(());
        }
        let before = copied(root)?;
        self.scope().written.push(Written { root: root.clone(), before });
        Ok(())
    }

    /// Records new contents of the root of a storage and of the tensor that was written.
    pub(super) fn written(&mut self, root: &Tensor, content: String, target: &Tensor, value: String) {
        let sharing = self.aliases.write(root);
        let is_nested = self.scopes.len() > 1;
        let scope = self.scope();
        for id in sharing {
            scope.names.remove(&id);
            if is_nested {
                scope.outdated.insert(id);
            }
        }
        scope.names.insert(root.id(), content);
        scope.names.insert(target.id(), value);
        scope.sizes.clear();
        self.keep(&[IValue::Tensor(root.clone()), IValue::Tensor(target.clone())]);
    }

    /// Gives the memory that the innermost scope wrote its former content. Returns the content before.
    pub(super) fn undo_writes(&mut self) -> Res<Vec<Tensor>> {
        let mut contents = Vec::new();
        for Written { root, before } in &self.scope().written {
            contents.push(copied(root)?);
            root.copy_(before).map_err(KernelError::from)?;
        }
        Ok(contents)
    }

    /// Notes values that a node has made. Only subgraphs distinguish them from others.
    pub(super) fn made(&mut self, values: &[IValue]) {
        if self.scopes.len() == 1 {
            return;
        }
        for value in values {
            if let Some(id) = super::record::container_id(value).or(value.as_tensor().map(Tensor::id)) {
                self.keep(std::slice::from_ref(value));
                self.scope().made.insert(id);
            }
        }
    }

    /// Checks that a container may be changed: in a subgraph, only those that it made. An error describes it as `what`.
    pub(super) fn check_change(&self, operator: &str, what: &str, value: &IValue) -> Res<()> {
        let Some(id) = super::record::container_id(value).filter(|_| self.scopes.len() > 1) else {
            return Ok(());
        };
        if self.scopes.last().is_some_and(|scope| scope.made.contains(&id)) {
            return Ok(());
        }
        Err(refused(format!(
            "`{operator}` in a branch or loop on a value that is only known at run time changes {what} from outside"
        )))
    }
}

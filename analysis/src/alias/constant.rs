//! Memory of constants: one element per storage, shared by all constants with that storage.
//!
//! A `prim::Constant` node holds a value, not memory of its own. Two nodes can hold one tensor, views of one storage,
//! or containers with one tensor inside, and a write through one is visible through the others. So the element of a
//! tensor constant is keyed by the address of its storage. Tuples are immutable and are tracked. Every other container
//! may be modified and stored by other code, so it escapes with all storages in it.
//!
//! Addresses are only looked up, never enumerated: no order and no output depends on them. A later constant may reuse
//! the address of a freed storage; it is then treated as an alias of the old one.

use super::build::Builder;
use super::dag::{ElementId, ElementSubject, MemoryDag, NONE, contents_type, owns_location};
use super::locations::Flags;
use crate::analysis::ConstantOwner;
use flambeau_ir::{IValue, Type, ValueId};
use flambeau_tensor::Tensor;
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

/// The memory of constants: elements of storages by address, and locations of containers.
#[derive(Clone, Default)]
pub(crate) struct ConstantMemory {
    by_address: HashMap<usize, ElementId, FxBuildHasher>,
    /// The location of each container, by identity.
    containers: HashMap<usize, u32, FxBuildHasher>,
    owner: ConstantOwner,
}

impl ConstantMemory {
    pub(crate) fn of_owner(owner: ConstantOwner) -> Self {
        ConstantMemory { owner, ..ConstantMemory::default() }
    }

    /// The element of a tensor's storage, if an earlier constant has that storage.
    pub(crate) fn known(&self, tensor: &Tensor) -> Option<ElementId> {
        self.by_address.get(&tensor.storage().address()).copied()
    }

    /// Records the element of a storage and marks its location as a constant.
    pub(crate) fn record(&mut self, dag: &mut MemoryDag, tensor: &Tensor, e: ElementId) {
        let address = tensor.storage().address();
        let shared = if self.owner.owns(address) { Flags::NONE } else { Flags::SHARED_TENSOR };
        dag.locations.mark(dag.elements[e].location, Flags(Flags::CONSTANT_TENSOR.0 | shared.0));
        self.by_address.insert(address, e);
    }

    /// Marks a location as a constant container. Merges it with those of other constants that are the same container.
    fn container(&mut self, dag: &mut MemoryDag, value: &IValue, location: u32) {
        let identity = value.identity();
        let shared = if identity.is_some_and(|id| self.owner.owns(id)) {
            Flags::NONE
        } else {
            Flags::SHARED_CONTAINER
        };
        dag.locations.mark(location, Flags(Flags::CONSTANT_CONTAINER.0 | shared.0));
        if let Some(identity) = identity {
            let first = *self.containers.entry(identity).or_insert(location);
            dag.locations.merge(first, location);
        }
    }

    fn of(&mut self, dag: &mut MemoryDag, tensor: &Tensor, of: ElementSubject) -> ElementId {
        self.known(tensor).unwrap_or_else(|| {
            let e = dag.add(of, Type::TENSOR, true);
            self.record(dag, tensor, e);
            e
        })
    }
}

impl Builder<'_> {
    /// Sets the element of a constant's value. The memory of a constant persists from run to run.
    pub(crate) fn constant(&mut self, v: ValueId) {
        if !self.is_mutable(v) {
            return;
        }
        let value = self.g.constant(v).unwrap_or_default();
        let e = self.constant_memory(&value, self.g.ty(v), ElementSubject::Value(v));
        self.set(v, e);
    }

    /// The element of a constant of a mutable type. Types have bounded depth, which bounds the recursion over tuples.
    fn constant_memory(&mut self, value: &IValue, ty: Type, of: ElementSubject) -> ElementId {
        match (value, ty.unwrap_optional().as_tuple()) {
            (IValue::Tensor(tensor), _) => self.constants.of(&mut self.dag, tensor, of),
            (IValue::Tuple(tuple), Some(types)) if types.elems.len() == tuple.items().len() => {
                let e = self.dag.add_exact(of, ty, false);
                for (item, &ty) in tuple.items().iter().zip(&types.elems) {
                    if ty.is_mutable() {
                        let inside = self.constant_memory(item, ty, ElementSubject::Helper);
                        self.dag.put(e, inside);
                    }
                }
                e
            }
            _ => self.constant_container(value, ty, of),
        }
    }

    /// A constant that untracked code may modify and store, or whose type is imprecise.
    fn constant_container(&mut self, value: &IValue, ty: Type, of: ElementSubject) -> ElementId {
        let e = self.dag.add(of, ty, owns_location(ty));
        match self.dag.elements[e].location {
            NONE => {
                let wildcard = self.dag.wildcard(ty);
                self.dag.point(e, wildcard);
            }
            location => self.constants.container(&mut self.dag, value, location),
        }
        if contents_type(ty).is_some() {
            let inside = self.dag.contents(e);
            let mut tensors = Vec::new();
            value.visit_tensors(|tensor| tensors.push(tensor.clone()));
            for tensor in tensors {
                let storage = self.constants.of(&mut self.dag, &tensor, ElementSubject::Helper);
                self.dag.point(inside, storage);
            }
            self.dag.escape(e);
        }
        e
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::Analyses;
    use crate::testing::registry;
    use crate::{AliasDb, ConstantOwner};
    use flambeau_ir::{Graph, Prim};

    fn tensor() -> Tensor {
        Tensor::from_slice(&[1.0_f32], &[1]).unwrap()
    }

    /// Whether constants are written: `shared`, `owned` and `returned` (also owned), in a graph with a node that waits,
    /// a write to an input and an owned list of numbers.
    fn written(owner: impl Fn(&Tensor) -> ConstantOwner) -> [bool; 4] {
        let registry = registry();
        let op = |name: &str| registry.lookup(name).unwrap();
        let mut g = Graph::new(registry.clone());
        let mut e = g.edit();
        let (x, future) = (e.add_input(Type::TENSOR), e.add_input(Type::future(Type::TENSOR)));
        let (one, shared) = (e.constant(IValue::Int(1)), tensor());
        let list = IValue::list(Type::INT, vec![IValue::Int(1)]);
        let constants = [
            e.constant(IValue::Tensor(shared.clone())),
            e.constant(IValue::Tensor(tensor())),
            e.constant(IValue::Tensor(tensor())),
            e.constant(list),
        ];
        e.value(op("aten::add_.Tensor"), &[x, x, one], Type::TENSOR);
        e.value(op("aten::wait"), &[future], Type::TENSOR);
        e.add_output(constants[2]);
        let mut analyses = Analyses::new();
        analyses.set_constant_owner(owner(&shared));
        let db = analyses.get::<AliasDb>(&g);
        constants.map(|c| db.has_writers(c))
    }

    #[test]
    fn only_nodes_write_constants_owned_by_the_graph() {
        assert_eq!(written(|_| ConstantOwner::default()), [true; 4]);
        let but_one = |shared: &Tensor| ConstantOwner::all_but([shared.storage().address()]);
        assert_eq!(written(but_one), [true, false, true, false]);
        assert_eq!(written(|_| ConstantOwner::all_but([])), [false, false, true, false]);
    }

    /// Escaped memory that was created during the run is not a constant.
    #[test]
    fn writing_escaped_new_memory_writes_no_constant() {
        for fresh in [true, false] {
            let registry = registry();
            let op = |name: &str| registry.lookup(name).unwrap();
            let mut g = Graph::new(registry.clone());
            let mut e = g.edit();
            let (x, one) = (e.add_input(Type::TENSOR), e.constant(IValue::Int(1)));
            let constant = e.constant(IValue::Tensor(tensor()));
            let y = if fresh { e.value(op("aten::relu"), &[x], Type::TENSOR) } else { x };
            let list = e.value(Prim::ListConstruct, &[], Type::list(Type::TENSOR));
            e.value(op("aten::append.t"), &[list, y], Type::list(Type::TENSOR));
            e.value(op("aten::add_.Tensor"), &[y, y, one], Type::TENSOR);
            assert_eq!(AliasDb::new(&g).has_writers(constant), !fresh, "{g}");
        }
    }
}

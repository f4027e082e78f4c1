//! Determines which constants of a frozen program have memory that only its graphs can reach.
//!
//! No remaining code writes the attributes that freezing turns into constants: the freezer has checked every body.
//! Alias analysis of a single graph cannot derive that, and would count each `aten::wait` and each write to a kept
//! attribute as a write to any constant. A constant still counts as reachable if it shares memory with one of these:
//! - constants of the code, which functions may write;
//! - attributes that are kept, and the values in them;
//! - attributes that escape from some body: by a return, a store or a task.
//!
//! Arguments are assumed not to share memory with the weights: a frozen program has the values that the weights had
//! when it was frozen.

use super::bodies::tasks;
use super::{Freezer, constant};
use crate::module::Module;
use flambeau_analysis::{AliasDb, Analyses, ConstantOwner};
use flambeau_ir::module::CompilationUnit;
use flambeau_ir::{Graph, IValue, Prim};
use std::collections::BTreeSet;
use std::ops::ControlFlow::{self, Continue};

/// Adds the memory of a value: storages and containers, with their contents.
fn add(memory: &mut BTreeSet<usize>, value: &IValue) {
    let _: ControlFlow<()> = value.visit(|part| {
        memory.extend(part.identity());
        Continue(())
    });
    value.visit_tensors(|tensor| {
        memory.insert(tensor.storage().address());
    });
}

/// Returns the memory of constants in the code of a unit, including tasks.
pub(super) fn memory_of_code(unit: &CompilationUnit) -> BTreeSet<usize> {
    let mut memory = BTreeSet::new();
    let mut graphs: Vec<&Graph> = unit.functions().map(|function| &*function.graph).collect();
    while let Some(graph) = graphs.pop() {
        graphs.extend(tasks(graph).map(|(_, task)| &**task));
        for node in graph.nodes_deep().filter(|&node| graph.is_prim(node, Prim::Constant)) {
            if let Some(value) = graph.constant(graph.result(node, 0)) {
                add(&mut memory, &value);
            }
        }
    }
    memory
}

impl Freezer<'_> {
    /// Returns the memory shared by constants that replaced attributes. Call this after the kept attributes are
    /// determined.
    pub(super) fn constant_owner(&self, root: &Module) -> ConstantOwner {
        let mut shared = self.of_code.clone();
        for (_, module) in root.named_modules() {
            let object = module.object();
            for (slot, value) in object.read().iter().enumerate() {
                let stays = self.kept.contains(&(object.id(), slot)) || constant(value).is_none();
                if stays && !self.is_module(value) {
                    add(&mut shared, value);
                }
            }
        }
        for body in &self.bodies {
            let (graph, known) = (&body.graph, self.known(body));
            let (separated, substitutes) = self.separate_storages(graph, &known);
            let mut analyses = Analyses::new();
            let aliases = analyses.get::<AliasDb>(&separated);
            for node in graph.nodes_deep().filter(|&node| graph.is_prim(node, Prim::GetAttr)) {
                let Some((object, slot)) = self.place(graph, node, &known) else { continue };
                let value = graph.result(node, 0);
                if !known.contains_key(&value)
                    && aliases.escapes_scope(&[substitutes.get(&value).copied().unwrap_or(value)])
                {
                    add(&mut shared, &object.get(slot));
                }
            }
        }
        ConstantOwner::all_but(shared)
    }

    fn is_module(&self, value: &IValue) -> bool {
        let object = value.as_object();
        object.is_some_and(|object| self.unit.class(object.class()).is_some_and(|class| class.is_module))
    }
}

//! Programs and arguments from a source of choices.
//!
//! Operators are drawn from the registry: every operator that has a kernel and a sample and whose parameters can be
//! filled from available values, constants, or defaults. A program grows by steps: operators on available values,
//! operators on their own samples, fragments that passes match ([`snippets`]), branches, loops, containers, calls,
//! tasks, prints. A step after which the program fails is reverted; one program in eight ends with steps that are kept
//! even if they fail.
//!
//! [`inputs`] draws arguments: ranks, sizes, element types, special values, strides and shared memory vary by case.

mod inputs;
mod maker;
mod operators;
mod snippets;
mod structure;

use crate::case::Case;
use crate::seeded::Seeded;
use flambeau_exec::{Gen, Intrinsic, Kernel, Sample};
use flambeau_ir::types::TypeKind;
use flambeau_ir::{Effects, OpId, Registry, Type};
use std::sync::Arc;

/// Size of the dimensions created by the fuzzer's own operators.
pub(crate) const DIM_SIZE: i64 = 3;

/// The operators and fragments that a generator draws from.
#[derive(Clone)]
pub struct OperatorPool {
    registry: Arc<Registry>,
    rows: Vec<OpId>,
    /// Operators from which every fourth draw is taken, if there are any.
    favoured: Vec<OpId>,
    /// Those that write an operand.
    writers: Vec<OpId>,
    snippets: Arc<[snippets::SourceFragment]>,
}

impl OperatorPool {
    /// Creates a pool of all operators of a registry that can be drawn.
    pub fn new(registry: &Arc<Registry>) -> OperatorPool {
        let rows: Vec<OpId> = registry.ids().filter(|&id| is_drawable(registry, id)).collect();
        let is_writer = |id: &&OpId| registry.schema(**id).is_mutable();
        let writers = rows.iter().filter(is_writer).copied().collect();
        let snippets = snippets::of(registry).into();
        OperatorPool { registry: Arc::clone(registry), rows, favoured: Vec::new(), writers, snippets }
    }

    /// Draws every fourth operator from these, given as `ns::name` or `ns::name.overload`.
    ///
    /// # Errors
    /// The first name that is not a drawable operator.
    pub fn favouring<S: AsRef<str>>(
        mut self,
        operators: impl IntoIterator<Item = S>,
    ) -> Result<OperatorPool, String> {
        for name in operators {
            let name = name.as_ref();
            let schema = |id: OpId| self.registry.schema(id);
            let is_meant = |&&id: &&OpId| schema(id).name.as_str() == name || schema(id).full_name() == name;
            let found: Vec<OpId> = self.rows.iter().filter(is_meant).copied().collect();
            if found.is_empty() {
                return Err(format!("no operator of generated programs is named `{name}`"));
            }
            self.favoured.extend(found);
        }
        Ok(self)
    }

    /// Draws the operators with seed-dependent results much more often than others.
    #[must_use]
    pub fn favouring_random(mut self) -> OperatorPool {
        let seeded = self.registry.column::<Seeded>();
        self.favoured.extend(self.rows.iter().filter(|&&id| seeded.get(id).is_some()));
        self
    }

    /// Draws the operators on strings, lists and dictionaries of other values than tensors much more often than others.
    #[must_use]
    pub fn favouring_containers(mut self) -> OperatorPool {
        let is_scalar = |ty: Type| {
            matches!(
                ty.kind(),
                TypeKind::Int | TypeKind::Float | TypeKind::Bool | TypeKind::Str | TypeKind::Var(_)
            )
        };
        let is_container = |ty: Type| match ty.kind() {
            TypeKind::Str => true,
            TypeKind::List(e) => is_scalar(*e),
            TypeKind::Dict(_, v) => is_scalar(*v),
            _ => false,
        };
        let of_containers = |id: OpId| {
            let schema = self.registry.schema(id);
            schema.args.first().is_some_and(|a| is_container(a.ty))
                && !schema.args.iter().any(|a| a.ty.is_tensor())
        };
        self.favoured.extend(self.rows.iter().copied().filter(|&id| of_containers(id)));
        self
    }

    /// Returns the registry.
    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// Returns the number of operators.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns whether there are no operators.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Makes a case from bytes, for fuzzers that mutate bytes.
    pub fn case(&self, bytes: &[u8]) -> Case {
        self.draw(Gen::from_bytes(bytes))
    }

    /// Makes a case from a source of choices.
    pub fn draw(&self, choices: Gen<'_>) -> Case {
        maker::make(self, choices, None)
    }

    /// Makes the case like [`OperatorPool::draw`] up to step `last`, which is kept without a trial. If the trial of a
    /// program ends the process, this returns that program.
    pub fn draw_until(&self, choices: Gen<'_>, last: usize) -> Case {
        maker::make(self, choices, Some(last))
    }
}

fn is_drawable(registry: &Registry, id: OpId) -> bool {
    let schema = registry.schema(id);
    let random = registry.facet::<Effects>(id).is_some_and(|e| e.is_nondeterministic());
    registry.facet::<Kernel>(id).is_some()
        && (registry.facet::<Sample>(id).is_some() || schema.is_mutable())
        && (!random || registry.facet::<Seeded>(id).is_some())
        && !compares_objects(registry, id)
        && !schema.vararg
        && !schema.varret
        && schema.args.iter().all(|a| can_be_filled(a.ty, a.default.is_some()))
        && !schema.args.iter().any(flambeau_ir::schema::Argument::is_out)
        && schema.returns.iter().all(|r| can_be_kept(r.ty))
}

/// Whether an operator compares tensors by identity. Merging equal computations changes the result, here as in PyTorch.
/// Templates of programs compare with `None`.
fn compares_objects(registry: &Registry, id: OpId) -> bool {
    matches!(registry.facet::<Intrinsic>(id), Some(Intrinsic::Is | Intrinsic::IsNot))
}

fn can_be_filled(ty: Type, has_default: bool) -> bool {
    match ty.kind() {
        TypeKind::Tensor(_)
        | TypeKind::Int
        | TypeKind::Float
        | TypeKind::Bool
        | TypeKind::Number
        | TypeKind::Str
        | TypeKind::Optional(_) => true,
        TypeKind::Var(_) => true,
        TypeKind::List(e) => is_element(*e),
        TypeKind::Dict(k, v) => (*k == Type::STR || *k == Type::INT) && is_element(*v),
        _ => has_default,
    }
}

fn can_be_kept(ty: Type) -> bool {
    match ty.kind() {
        TypeKind::List(e) => is_element(*e),
        TypeKind::Optional(e) => is_element(*e),
        TypeKind::Dict(_, _) => can_be_filled(ty, false),
        _ => is_element(ty),
    }
}

/// Returns whether lists and dictionaries of generated programs may contain a type.
fn is_element(ty: Type) -> bool {
    matches!(
        ty.kind(),
        TypeKind::Tensor(_)
            | TypeKind::Int
            | TypeKind::Float
            | TypeKind::Bool
            | TypeKind::Number
            | TypeKind::Str
            | TypeKind::Var(_)
    )
}

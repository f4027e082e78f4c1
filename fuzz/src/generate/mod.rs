//! Programs and arguments from a source of choices.
//!
//! Operators are drawn from the registry: every row that has a kernel and a sample and whose parameters can be filled
//! from values at hand, constants, or defaults, so that an operator takes part the day it gets both. A program grows
//! by steps: operators on values at hand, operators on their own samples, fragments that passes look for ([`snippets`]),
//! branches, loops, containers, calls, tasks, prints. A step after which the program fails is taken back; one program
//! in eight ends with steps that are kept whether they fail or not.
//!
//! [`inputs`] draws arguments: ranks, sizes, element types, special values, strides and shared memory vary by case.

mod inputs;
mod maker;
mod operators;
mod snippets;
mod structure;

use crate::case::Case;
use crate::seeded::Seeded;
use flambeau_exec::{Gen, Kernel, Sample};
use flambeau_ir::types::TypeKind;
use flambeau_ir::{Effects, OpId, Registry, Type};
use std::sync::Arc;

/// Size of the dimensions that operators of the fuzzer make.
pub(crate) const SIDE: i64 = 3;

/// The operators and fragments that a generator draws from.
#[derive(Clone)]
pub struct OperatorPool {
    registry: Arc<Registry>,
    rows: Vec<OpId>,
    /// Those that every fourth draw is from, if there are any.
    favoured: Vec<OpId>,
    /// Those that write an operand.
    writers: Vec<OpId>,
    snippets: Arc<[snippets::Snippet]>,
}

impl OperatorPool {
    /// All operators of a registry that can be drawn.
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
    /// The first name that no drawable operator has.
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
                return Err(format!("no operator that programs can be made of is called `{name}`"));
            }
            self.favoured.extend(found);
        }
        Ok(self)
    }

    /// Draws the operators whose results the run's seed decides far more often than their number would have it.
    #[must_use]
    pub fn favouring_random(mut self) -> OperatorPool {
        let seeded = self.registry.column::<Seeded>();
        self.favoured.extend(self.rows.iter().filter(|&&id| seeded.get(id).is_some()));
        self
    }

    /// The registry.
    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// How many operators there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
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

    /// Makes the case as [`OperatorPool::draw`] does up to step `last`, which is kept without trying the program: where the
    /// trial of a program ends the process, this is the program.
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
        && !schema.vararg
        && !schema.varret
        && schema.args.iter().all(|a| can_be_filled(a.ty, a.default.is_some()))
        && !schema.args.iter().any(flambeau_ir::schema::Argument::is_out)
        && schema.returns.iter().all(|r| can_be_kept(r.ty))
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

/// Types of values that lists and dictionaries of generated programs hold.
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

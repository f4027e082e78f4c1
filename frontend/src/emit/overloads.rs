//! Overload resolution of operators, with a cache.
//!
//! The choice depends only on the name of the operator and on the argument types, so it is cached by these: of the
//! calls with the same types only the first is matched. Calls with class types are not cached, because subtyping
//! between classes can change during a compilation.

use std::rc::Rc;
use std::sync::Arc;

use flambeau_ir::module::Function;
use flambeau_ir::schema::{ArgInfo, CallError, FunctionSchema, MatchedSchema, SchemaCall, match_call};
use flambeau_ir::types::Mutability;
use flambeau_ir::{Diagnostic, OpId, Prim, Registry, Symbol};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use smallvec::SmallVec;

use super::fun::Res;
use super::session::{CompileSession, Overload};

/// The parts of a call that overload resolution depends on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CallShape {
    pub(crate) receiver: Option<ArgInfo>,
    pub(crate) args: SmallVec<[ArgInfo; 4]>,
    pub(crate) kwargs: SmallVec<[(Symbol, ArgInfo); 2]>,
}

impl CallShape {
    pub(crate) fn call(&self) -> SchemaCall<'_> {
        SchemaCall { receiver: self.receiver, args: &self.args, kwargs: &self.kwargs }
    }

    /// Returns true if the resolution of this shape cannot change during the compilation.
    fn is_cacheable(&self) -> bool {
        let named = self.kwargs.iter().map(|(_, arg)| arg);
        let mut all = self.receiver.iter().chain(&self.args).chain(named);
        all.all(|arg| arg.ty.reachable() != Mutability::ALL)
    }
}

/// A candidate for a call of an operator.
#[derive(Clone)]
pub(crate) enum Candidate {
    /// A registered overload.
    Row(OpId),
    /// A function whose graph replaces the call.
    Written(Arc<Function>),
    Structural(Prim, Rc<FunctionSchema>),
}

impl Candidate {
    pub(crate) fn schema<'t>(&'t self, registry: &'t Registry) -> &'t FunctionSchema {
        match self {
            Candidate::Row(id) => registry.schema(*id),
            Candidate::Written(function) => &function.schema,
            Candidate::Structural(_, schema) => schema,
        }
    }
}

/// All candidates of an operator name, in matching order: registered overloads or their replacements, then further
/// overloads written in TorchScript, then structural operators.
pub(crate) struct Candidates {
    targets: Vec<Candidate>,
    /// The canonical operator, if the name is a synonym.
    canonical: Option<Symbol>,
    /// False while the overloads written in TorchScript are being compiled and are missing here.
    complete: bool,
}

impl Candidates {
    fn of(session: &CompileSession<'_>, name: Symbol) -> Res<Self> {
        let registry = session.registry();
        let canonical = registry.canonical(name);
        // A synonym without overloads of its own is resolved as its canonical operator.
        let name = canonical.filter(|_| registry.overloads(name).is_empty()).unwrap_or(name);
        let written = session.script_builtins(name)?;
        let complete = written.is_some();
        let written = written.unwrap_or_default();
        let function = |o: &Overload| Candidate::Written(Arc::clone(&o.function));
        let row = |id: OpId| {
            let overload = registry.schema(id).overload;
            let instead = written.iter().find(|o| o.replaces == Some(overload));
            instead.map_or(Candidate::Row(id), function)
        };
        let mut targets: Vec<Candidate> = callable_overloads(registry, name).map(row).collect();
        targets.extend(written.iter().filter(|o| o.replaces.is_none()).map(function));
        let structural = super::names::structural(name);
        targets.extend(structural.map(|(prim, schema)| Candidate::Structural(prim, Rc::new(schema))));
        Ok(Candidates { targets, canonical, complete })
    }

    pub(crate) fn schemas<'c>(&'c self, registry: &'c Registry) -> impl Iterator<Item = &'c FunctionSchema> {
        self.targets.iter().map(|target| target.schema(registry))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    fn choose(&self, shape: &CallShape, session: &CompileSession<'_>) -> Result<ChosenOverload, CallError> {
        let registry = session.registry();
        let schemas: SmallVec<[&FunctionSchema; 16]> =
            self.targets.iter().map(|t| t.schema(registry)).collect();
        let matched = match_call(&schemas, shape.call(), session)?;
        let target = self.targets[matched.schema].clone();
        let row = match target {
            Candidate::Row(id) => {
                let first =
                    self.canonical.and_then(|name| same_overload(registry, name, registry.schema(id)));
                Some(first.unwrap_or(id))
            }
            _ => None,
        };
        Ok(ChosenOverload { target, row, matched })
    }
}

/// The overload chosen for a call, and the mapping of the arguments to its schema.
pub(crate) struct ChosenOverload {
    pub(crate) target: Candidate,
    /// The overload to emit, if it is a registered one. For a synonym it is the overload of the canonical operator.
    pub(crate) row: Option<OpId>,
    pub(crate) matched: MatchedSchema,
}

/// Caches of candidates and of resolved calls.
#[derive(Default)]
pub(crate) struct Overloads {
    candidates: HashMap<Symbol, Rc<Candidates>, FxBuildHasher>,
    chosen: HashMap<(Symbol, CallShape), Rc<ChosenOverload>, FxBuildHasher>,
}

/// Reasons why no overload was chosen.
pub(crate) enum NoTarget {
    /// There is no operator of this name.
    Unknown,
    /// No overload accepts the arguments.
    Mismatch(CallError),
    /// The overloads of the program's operator version cannot be provided.
    Lost(Box<Diagnostic>),
}

impl CompileSession<'_> {
    /// Returns all candidates for an operator name.
    pub(crate) fn candidates(&self, name: Symbol) -> Res<Rc<Candidates>> {
        if let Some(known) = self.overloads.borrow().candidates.get(&name) {
            return Ok(Rc::clone(known));
        }
        let found = Rc::new(Candidates::of(self, name)?);
        if found.complete {
            self.overloads.borrow_mut().candidates.insert(name, Rc::clone(&found));
        }
        Ok(found)
    }

    /// Resolves a call to an overload.
    pub(crate) fn choose(&self, name: Symbol, shape: CallShape) -> Result<Rc<ChosenOverload>, NoTarget> {
        let key = (name, shape);
        if let Some(known) = self.overloads.borrow().chosen.get(&key) {
            return Ok(Rc::clone(known));
        }
        let candidates = self.candidates(name).map_err(NoTarget::Lost)?;
        if candidates.is_empty() {
            return Err(NoTarget::Unknown);
        }
        let chosen = candidates.choose(&key.1, self).map_err(NoTarget::Mismatch)?;
        let chosen = Rc::new(chosen);
        if candidates.complete && key.1.is_cacheable() {
            self.overloads.borrow_mut().chosen.insert(key, Rc::clone(&chosen));
        }
        Ok(chosen)
    }
}

/// Returns the registered overloads of an operator name that calls can select, in matching order.
pub(crate) fn callable_overloads(registry: &Registry, name: Symbol) -> impl Iterator<Item = OpId> + '_ {
    registry.overloads(name).iter().copied().filter(|&id| !is_blocked(registry.schema(id)))
}

/// Returns true for overloads that PyTorch never selects in programs.
fn is_blocked(schema: &FunctionSchema) -> bool {
    let name = (schema.name.as_str(), schema.overload.as_str());
    matches!(name, ("aten::view", "dtype") | ("aten::max" | "aten::min", "unary_out"))
}

/// Returns the overload of `target` with the same argument types and number of results as `schema`: the one of the same
/// name, else the first.
fn same_overload(registry: &Registry, target: Symbol, schema: &FunctionSchema) -> Option<OpId> {
    let same = |id: &OpId| {
        let other = registry.schema(*id);
        let args = other.args.iter().map(|a| a.ty).eq(schema.args.iter().map(|a| a.ty));
        args && other.returns.len() == schema.returns.len()
    };
    let first = || registry.overloads(target).iter().copied().find(same);
    registry.find(target, schema.overload).filter(same).or_else(first)
}

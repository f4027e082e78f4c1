//! Tables of decompositions: functions in TorchScript that compute the result of an operator with other operators.
//!
//! A table is a text of functions, each with comments that state its use:
//!
//! ```text
//! # replaces aten::silu
//! def silu(x: Tensor) -> Tensor:
//!     return x * torch.sigmoid(x)
//! ```
//!
//! `replaces` names operators whose calls become calls of the function. `inverts` names operators that return a view: the
//! function returns the new content of the viewed tensor for its old content, the new content of the view, the other
//! operands, and the position of the view among several results. `copies` names operators that return a view of the operand if
//! strides permit, and else a copy: the function replaces them where they copy, and `views` names them with the function for
//! the other case. Helpers have no comment. A function takes all operands of its operator by position. The line
//! `# renames A to B` makes calls of one operator those of another with the same schema.

use crate::error::Error;
use crate::session::Session;
use flambeau_ir::{CompilationUnit, Graph, OpId, Registry, Symbol};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use std::sync::Arc;

/// A set of decompositions of operators.
#[derive(Clone, Debug)]
pub struct DecompositionTable {
    unit: Arc<CompilationUnit>,
    functions: HashMap<(Use, OpId), (Symbol, Arc<Graph>), FxBuildHasher>,
    /// The operator that replaces one with the same schema: the canonical one of each that has a second name, such as
    /// `aten::negative`, and those that the table renames.
    canonical: HashMap<OpId, OpId, FxBuildHasher>,
}

/// The use of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Use {
    /// In place of the operator.
    Replaces,
    /// In place of the operator, if its result is a view.
    Views,
    /// In place of the operator, if its result is a copy.
    Copies,
    /// For the content of the viewed tensor.
    Inverts,
}

const USES: [(&str, Use); 4] = [
    ("# replaces ", Use::Replaces),
    ("# views ", Use::Views),
    ("# copies ", Use::Copies),
    ("# inverts ", Use::Inverts),
];

/// The beginning of a line that renames an operator.
const RENAMES: &str = "# renames ";

impl DecompositionTable {
    /// Returns the table without decompositions: operators that write are replaced by those that do not, all others are
    /// kept.
    ///
    /// # Errors
    /// As [`DecompositionTable::from_source`].
    pub fn functional(session: &Session) -> Result<DecompositionTable, Error> {
        DecompositionTable::compile(session, flambeau_ops::decompositions::FUNCTIONAL)
    }

    /// Returns the table of PyTorch's `core_aten_decompositions`: after it mostly operators of the core ATen opset remain.
    ///
    /// # Errors
    /// As [`DecompositionTable::from_source`].
    pub fn core_aten(session: &Session) -> Result<DecompositionTable, Error> {
        DecompositionTable::from_source(session, flambeau_ops::decompositions::CORE_ATEN)
    }

    /// Returns the table of functions in place of operators that modules of TorchScript cannot have.
    pub(crate) fn module_forms(session: &Session) -> Result<DecompositionTable, Error> {
        DecompositionTable::compile(session, flambeau_ops::decompositions::MODULE_FORMS)
    }

    /// Compiles a table; the text is described at the top of the file that defines the table of core ATen,
    /// `ops/src/decompositions/core_aten.py`.
    ///
    /// # Errors
    /// `X0003` for an unknown operator or a function that is missing, and those of [`Session::compile_source`].
    pub fn from_source(session: &Session, text: &str) -> Result<DecompositionTable, Error> {
        let text = format!("{}\n{text}", flambeau_ops::decompositions::FUNCTIONAL);
        let mut table = DecompositionTable::compile(session, &text)?;
        let renamed = std::mem::take(&mut table.canonical);
        table.canonical = canonical_operators(session.registry());
        table.canonical.extend(renamed);
        Ok(table)
    }

    fn compile(session: &Session, text: &str) -> Result<DecompositionTable, Error> {
        let program = session.compile_source(text, "decompositions.py")?;
        let mut functions = HashMap::default();
        let mut canonical = HashMap::default();
        let mut open: Vec<(Use, OpId)> = Vec::new();
        for line in text.lines() {
            if let Some((from, to)) = line.strip_prefix(RENAMES).and_then(|rest| rest.split_once(" to ")) {
                canonical.insert(operator(session.registry(), from)?, operator(session.registry(), to)?);
            } else if let Some((prefix, use_)) = USES.iter().find(|(prefix, _)| line.starts_with(prefix)) {
                for name in line[prefix.len()..].split(',').map(str::trim) {
                    open.push((*use_, operator(session.registry(), name)?));
                }
            } else if let Some(rest) = line.strip_prefix("def ") {
                let name = rest.split('(').next().unwrap_or(rest);
                let entry = program.entry(name)?;
                for key in open.drain(..) {
                    functions.insert(key, (entry.schema().name, Arc::clone(entry.graph())));
                }
            }
        }
        Ok(DecompositionTable { unit: Arc::clone(program.unit()), functions, canonical })
    }

    /// Removes the decomposition of an operator, such as `aten::linear`, so that its calls are kept.
    ///
    /// # Errors
    /// `X0003` if no such operator is registered.
    pub fn without(mut self, session: &Session, name: &str) -> Result<DecompositionTable, Error> {
        let op = operator(session.registry(), name)?;
        for use_ in [Use::Replaces, Use::Views, Use::Copies] {
            self.functions.remove(&(use_, op));
        }
        Ok(self)
    }

    /// Returns the operators that the table replaces, in the order of the registry.
    #[must_use]
    pub fn operators(&self) -> Vec<OpId> {
        let replaced = self.functions.keys().filter(|(use_, _)| *use_ != Use::Inverts);
        let mut all: Vec<OpId> = replaced.map(|(_, op)| *op).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Returns the function for an operator.
    pub(super) fn function(&self, use_: Use, op: OpId) -> Option<&(Symbol, Arc<Graph>)> {
        self.functions.get(&(use_, op))
    }

    /// Returns the function in place of an operator, with its calls inlined.
    pub(crate) fn inlined(&self, session: &Session, op: OpId) -> Result<Option<Arc<Graph>>, Error> {
        let Some((_, graph)) = self.function(Use::Replaces, op) else { return Ok(None) };
        Ok(Some(Arc::new(session.apply_text(graph, &self.unit, "inline")?)))
    }

    /// Returns the operator under its canonical name.
    pub(super) fn canonical(&self, op: OpId) -> OpId {
        self.canonical.get(&op).copied().unwrap_or(op)
    }

    /// Returns the functions that the functions of the table call.
    pub(super) fn unit(&self) -> &CompilationUnit {
        &self.unit
    }
}

/// Returns the overload of the canonical operator for each overload of a synonym.
fn canonical_operators(registry: &Registry) -> HashMap<OpId, OpId, FxBuildHasher> {
    let mut found = HashMap::default();
    for op in registry.ids() {
        let schema = registry.schema(op);
        let Some(name) = registry.canonical(schema.name) else { continue };
        let is_same = |other: OpId| {
            let args = &registry.schema(other).args;
            args.len() == schema.args.len() && args.iter().zip(&schema.args).all(|(a, b)| a.ty == b.ty)
        };
        if let Some(&other) = registry.overloads(name).iter().find(|&&other| is_same(other)) {
            found.insert(op, other);
        }
    }
    found
}

fn operator(registry: &Registry, name: &str) -> Result<OpId, Error> {
    registry.lookup(name).ok_or_else(|| Error::misuse(format!("no operator `{name}` is registered")))
}

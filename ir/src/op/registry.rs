//! The registry: rows are operator overloads, columns are facets. Built once, then shared and never changed.

use super::facet::Cells;
use super::{AliasRule, Column, Converter, Effects, Facet, Op, OpId, OpKind, Prim};
use crate::schema::{AliasInfo, Argument, FunctionSchema, SchemaParseError};
use crate::symbol::Symbol;
use hashbrown::{HashMap, HashSet};
use rustc_hash::FxBuildHasher;
use smallvec::SmallVec;
use std::any::{Any, TypeId};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, OnceLock};

/// In the word that keeps an operator's effects: they have been derived.
const DERIVED: u16 = 1 << 15;
/// In the same word: it writes only where [`AliasRule::written`] says so of the node.
const CONDITIONAL: u16 = 1 << 14;

type Put = Box<dyn FnOnce(&mut Columns, usize) + Send>;

/// Facts that most definitions state no more of: room for them is made at once, since all are made when a process
/// starts.
const USUAL_FACTS: usize = 8;

/// The definition of one operator overload: its schema and the facts stated about it.
pub struct OpDef {
    head: Head,
    /// Facts by the type of the facet.
    puts: Vec<(TypeId, Put)>,
    optional: bool,
}

enum Head {
    /// The schema is given.
    Schema(Box<Given>),
    /// The schema is the declared one of this name and overload.
    Named(Symbol, Symbol),
}

/// A schema given as text, and what became of it.
struct Given {
    text: String,
    schema: Result<FunctionSchema, SchemaParseError>,
}

impl OpDef {
    /// An operator with this schema. An error in the schema is reported when the registry is built.
    pub fn new(schema: &str) -> Self {
        let given = Given { text: schema.to_owned(), schema: FunctionSchema::parse(schema) };
        let head = Head::Schema(Box::new(given));
        OpDef { head, puts: Vec::new(), optional: false }
    }

    /// Facts about an operator whose schema is declared ([`RegistryBuilder::declare`]): `aten::add.Tensor`.
    pub fn named(full: &str) -> Self {
        let (name, overload) = split_overload(full);
        Self::overload(name, overload)
    }

    /// [`OpDef::named`] with name and overload apart: `("aten::add", "Tensor")`.
    pub fn overload(name: &str, overload: &str) -> Self {
        let overload = if overload.is_empty() { Symbol::EMPTY } else { Symbol::new(overload) };
        let head = Head::Named(Symbol::new(name), overload);
        OpDef { head, puts: Vec::with_capacity(USUAL_FACTS), optional: false }
    }

    /// Drops this definition if no declaration has its name: for variants derived by a scheme that not all operators
    /// follow.
    pub fn if_declared(mut self) -> Self {
        self.optional = true;
        self
    }

    /// States a fact.
    pub fn with<F: Facet>(mut self, facet: F) -> Self {
        self.puts.push((TypeId::of::<F>(), Box::new(move |columns, row| columns.put(row, facet))));
        self
    }

    /// Changes a fact that this definition states, if it states one of that kind.
    pub fn map<F: Facet + Clone>(mut self, change: impl Fn(F) -> F + Send + Clone + 'static) -> Self {
        for (facet, put) in &mut self.puts {
            if *facet != TypeId::of::<F>() {
                continue;
            }
            let (stated, change) = (std::mem::replace(put, Box::new(|_, _| ())), change.clone());
            *put = Box::new(move |columns, row| {
                stated(columns, row);
                columns.map(row, change);
            });
        }
        self
    }

    /// Leaves out the facts of other kinds: for variants of which something is as it is of the operator they follow.
    pub fn only<F: Facet>(mut self) -> Self {
        self.puts.retain(|(facet, _)| *facet == TypeId::of::<F>());
        self
    }
}

/// One operator overload. A declared schema is parsed when it is first asked for: most are never needed.
struct OpRow {
    text: &'static str,
    schema: OnceLock<Box<FunctionSchema>>,
    /// The effects with [`DERIVED`] and [`CONDITIONAL`], derived when first asked for; 0 before.
    effects: AtomicU16,
}

impl OpRow {
    fn new(text: &'static str, schema: OnceLock<Box<FunctionSchema>>) -> OpRow {
        OpRow { text, schema, effects: AtomicU16::new(0) }
    }

    fn schema(&self) -> &FunctionSchema {
        self.schema.get_or_init(|| {
            Box::new(FunctionSchema::parse(self.text).expect("invariant: declared schemas parse (tested)"))
        })
    }
}

trait AnyColumn: Any + Send + Sync {
    fn facet_name(&self) -> &'static str;
    fn states(&self, row: usize) -> bool;
    fn as_any(&self) -> &dyn Any;
    fn as_any_mut(&mut self) -> &mut dyn Any;
}

impl<F: Facet> AnyColumn for Cells<F> {
    fn facet_name(&self) -> &'static str {
        F::NAME
    }

    fn states(&self, row: usize) -> bool {
        self.get(row).is_some()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

#[derive(Default)]
struct Columns {
    by_type: HashMap<TypeId, Box<dyn AnyColumn>, FxBuildHasher>,
    order: Vec<TypeId>,
}

impl Columns {
    fn put<F: Facet>(&mut self, row: usize, facet: F) {
        let id = TypeId::of::<F>();
        let column = self.by_type.entry(id).or_insert_with(|| {
            self.order.push(id);
            Box::new(Cells::<F>::new())
        });
        let cells =
            column.as_any_mut().downcast_mut::<Cells<F>>().expect("invariant: a column holds its own facet");
        cells.put(row, facet);
    }

    fn map<F: Facet + Clone>(&mut self, row: usize, change: impl Fn(F) -> F) {
        let column = self.by_type.get(&TypeId::of::<F>());
        let fact = column.and_then(|column| column.as_any().downcast_ref::<Cells<F>>()?.get(row));
        if let Some(fact) = fact.cloned() {
            self.put(row, change(fact));
        }
    }
}

/// Why a registry could not be built.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RegistryError {
    /// A schema does not parse.
    #[error("operator schema `{text}`: {error}")]
    Schema {
        /// The schema's text.
        text: String,
        /// What is wrong with it.
        error: SchemaParseError,
    },
    /// Two rows have the same name and overload.
    #[error("operator `{0}` is defined twice")]
    Duplicate(String),
    /// A structural operator cannot be redefined.
    #[error("`{0}` is a structural operator")]
    Structural(String),
    /// Facts were stated about an operator that no declaration names.
    #[error("no operator `{0}` is declared")]
    Undeclared(String),
    /// A fact was stated about an operator that is not there.
    #[error("facet `{facet}` is stated about `{op}`, which is not defined")]
    NoSuchOperator {
        /// The facet.
        facet: &'static str,
        /// The operator, `ns::name` or `ns::name.overload`.
        op: String,
    },
}

type LateFacet = (String, &'static str, Put);

/// Collects operators and facts, then makes a [`Registry`].
#[derive(Default)]
pub struct RegistryBuilder {
    declared: Vec<&'static str>,
    /// As they were added: lists are kept as they come.
    defs: Vec<Vec<OpDef>>,
    late: Vec<LateFacet>,
}

impl RegistryBuilder {
    /// An empty collection.
    pub fn new() -> Self {
        Self::default()
    }

    /// Declares operators by their schemas, one a line. A declared operator without facts can be named in programs,
    /// matched, analysed and printed, but not run. Declarations fix the order in which calls try overloads; a later one
    /// of the same name and overload takes the place of the earlier.
    pub fn declare(&mut self, schemas: &'static str) -> &mut Self {
        self.declared.push(schemas);
        self
    }

    /// Adds operators, in order; those not declared come behind the declared overloads of their name.
    pub fn add(&mut self, defs: impl IntoIterator<Item = OpDef>) -> &mut Self {
        self.defs.push(defs.into_iter().collect());
        self
    }

    /// States a fact about an operator defined elsewhere, named `ns::name.overload` or `ns::name`.
    pub fn facet<F: Facet>(&mut self, op: &str, facet: F) -> &mut Self {
        self.late.push((op.to_owned(), F::NAME, Box::new(move |columns, row| columns.put(row, facet))));
        self
    }

    /// Makes the registry, or says everything that is wrong.
    pub fn build(self) -> Result<Arc<Registry>, Vec<RegistryError>> {
        let mut making = Making::default();
        // A schema has a hundred bytes, or some fewer.
        let rows = self.declared.iter().map(|text| text.len() / 90).sum();
        making.registry.reserve(rows);
        making.defined.reserve(rows);
        for line in self.declared.iter().flat_map(|text| text.lines()) {
            making.declare(line);
        }
        for def in self.defs.into_iter().flatten() {
            making.define(def);
        }
        let Making { mut registry, mut errors, .. } = making;
        for (op, facet, put) in self.late {
            match registry.lookup(&op) {
                Some(id) => put(&mut registry.columns, id.index()),
                None => errors.push(RegistryError::NoSuchOperator { facet, op }),
            }
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        let converters: Vec<_> =
            registry.column::<Converter>().iter().map(|(id, &c)| (c as usize, id)).collect();
        for (converter, id) in converters {
            registry.converters[converter] = Some(id);
        }
        Ok(Arc::new(registry))
    }
}

#[derive(Default)]
struct Making {
    registry: Registry,
    /// Rows that a definition has already stated facts about.
    defined: HashSet<OpId, FxBuildHasher>,
    /// The name that was declared last, and whether it is a structural operator's: overloads of a name stand together.
    last: Option<(&'static str, Symbol, bool)>,
    errors: Vec<RegistryError>,
}

impl Making {
    fn declare(&mut self, text: &'static str) {
        let end = text.bytes().position(|b| b == b'(').unwrap_or(text.len());
        let full = &text[..end];
        let (base, overload) = split_overload(full);
        let (name, is_structural) = match self.last {
            Some((last, name, is_structural)) if last == base => (name, is_structural),
            _ => {
                let name = Symbol::new(base);
                let is_structural = full.is_empty() || Prim::from_symbol(name).is_some();
                self.last = Some((base, name, is_structural));
                (name, is_structural)
            }
        };
        if is_structural {
            return;
        }
        let overload = if overload.is_empty() { Symbol::EMPTY } else { Symbol::new(overload) };
        let row = OpRow::new(text, OnceLock::new());
        match self.registry.find(name, overload) {
            Some(id) => self.registry.rows[id.index()] = row,
            None => {
                self.push(name, overload, row);
            }
        }
    }

    fn push(&mut self, name: Symbol, overload: Symbol, row: OpRow) -> OpId {
        let id = OpId(self.registry.rows.len() as u32);
        self.registry.by_full.insert((name, overload), id);
        self.registry.by_name.entry(name).or_default().push(id);
        self.registry.names.push(name);
        self.registry.rows.push(row);
        id
    }

    fn define(&mut self, def: OpDef) {
        let id = match def.head {
            Head::Named(name, overload) => match self.registry.find(name, overload) {
                Some(id) => id,
                None if def.optional => return,
                None => return self.errors.push(RegistryError::Undeclared(format!("{name}.{overload}"))),
            },
            Head::Schema(given) => {
                let Given { text, schema } = *given;
                let schema = match schema {
                    Ok(schema) => Box::new(schema),
                    Err(error) => return self.errors.push(RegistryError::Schema { text, error }),
                };
                if Prim::from_symbol(schema.name).is_some() {
                    return self.errors.push(RegistryError::Structural(text));
                }
                let (name, overload) = (schema.name, schema.overload);
                let row = OpRow::new("", OnceLock::from(schema));
                match self.registry.find(name, overload) {
                    Some(id) => {
                        self.registry.rows[id.index()] = row;
                        id
                    }
                    None => self.push(name, overload, row),
                }
            }
        };
        if !self.defined.insert(id) {
            let name = self.registry.schema(id).full_name();
            return self.errors.push(RegistryError::Duplicate(name));
        }
        for (_, put) in def.puts {
            put(&mut self.registry.columns, id.index());
        }
    }
}

fn split_overload(op: &str) -> (&str, &str) {
    let base = crate::symbol::namespace_end(op).map_or(0, |i| i + 2);
    match op[base..].find('.') {
        Some(dot) => (&op[..base + dot], &op[base + dot + 1..]),
        None => (op, ""),
    }
}

/// The operators a session knows, with all facts about them.
#[derive(Default)]
pub struct Registry {
    rows: Vec<OpRow>,
    names: Vec<Symbol>,
    by_name: HashMap<Symbol, SmallVec<[OpId; 2]>, FxBuildHasher>,
    by_full: HashMap<(Symbol, Symbol), OpId, FxBuildHasher>,
    columns: Columns,
    /// By [`Converter`]: the row that states it.
    converters: [Option<OpId>; Converter::COUNT],
}

impl Registry {
    /// A registry without operators.
    pub fn empty() -> Arc<Registry> {
        RegistryBuilder::new().build().expect("invariant: nothing can be wrong with nothing")
    }

    /// Makes room for rows, so that no table grows step by step when a process starts.
    fn reserve(&mut self, rows: usize) {
        self.rows.reserve(rows);
        self.names.reserve(rows);
        self.by_full.reserve(rows);
        // Most names have an overload or two.
        self.by_name.reserve(rows / 2);
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// All rows in order of registration.
    pub fn ids(&self) -> impl Iterator<Item = OpId> + use<> {
        (0..self.rows.len() as u32).map(OpId)
    }

    /// The schema of a row.
    pub fn schema(&self, id: OpId) -> &FunctionSchema {
        self.rows[id.index()].schema()
    }

    /// The schema of a node's operator, if it has a row.
    pub fn schema_of(&self, op: Op) -> Option<&FunctionSchema> {
        Some(self.schema(op.row()?))
    }

    /// The overloads of a name, in order of registration.
    pub fn overloads(&self, name: Symbol) -> &[OpId] {
        self.by_name.get(&name).map_or(&[], |v| v.as_slice())
    }

    /// One overload by name and overload name (`""` for the default one).
    pub fn find(&self, name: Symbol, overload: Symbol) -> Option<OpId> {
        self.by_full.get(&(name, overload)).copied()
    }

    /// One overload by text: `ns::name` or `ns::name.overload`.
    pub fn lookup(&self, op: &str) -> Option<OpId> {
        let (name, overload) = split_overload(op);
        self.find(Symbol::new(name), Symbol::new(overload))
    }

    /// The operator that performs an implicit conversion: the row whose facet says so, else an unknown operator named
    /// after the conversion, which the verifier reports.
    pub fn converter(&self, converter: Converter) -> Op {
        match self.converters[converter as usize] {
            Some(id) => id.into(),
            None => Op::unknown(Symbol::new(&format!("convert::{converter:?}"))),
        }
    }

    /// The qualified name of an operator, without overload.
    pub fn name(&self, op: Op) -> Symbol {
        match op.kind() {
            OpKind::Prim(prim) => prim.symbol(),
            OpKind::Row(id) => self.names[id.index()],
            OpKind::Unknown(name) => name,
        }
    }

    /// All facts of one kind.
    pub fn column<F: Facet>(&self) -> Column<'_, F> {
        let cells = self.columns.by_type.get(&TypeId::of::<F>()).map(|column| {
            column.as_any().downcast_ref::<Cells<F>>().expect("invariant: a column holds its own facet")
        });
        Column { cells }
    }

    /// One fact about one row.
    pub fn facet<F: Facet>(&self, id: OpId) -> Option<&F> {
        self.column::<F>().get(id)
    }

    /// What running an operator does: what the facets [`Effects`] and [`AliasRule`] state, and what its schema says.
    ///
    /// Without the facet `Effects`, an operator may raise; one on tensors always may. One that gives nothing and writes nothing must be there for
    /// something that no operand shows, so it counts as I/O.
    #[inline]
    pub fn effects(&self, id: OpId) -> Effects {
        self.stated_effects(id).0
    }

    /// What running an operator of any kind does; blocks and subgraphs left out.
    pub fn effects_of(&self, op: Op) -> Effects {
        match op.kind() {
            OpKind::Prim(prim) => prim.effects(),
            OpKind::Row(id) => self.effects(id),
            OpKind::Unknown(_) => Effects::UNKNOWN,
        }
    }

    /// The effects of an operator, and whether it writes only under a condition on its operands
    /// ([`AliasRule::WritesWhen`]).
    #[inline]
    pub(crate) fn stated_effects(&self, id: OpId) -> (Effects, bool) {
        let cell = &self.rows[id.index()].effects;
        // The value follows from the registry alone, so a race writes the same twice.
        let mut word = cell.load(Ordering::Relaxed);
        if word == 0 {
            word = self.derive_effects(id);
            cell.store(word, Ordering::Relaxed);
        }
        (Effects::from_bits(word), word & CONDITIONAL != 0)
    }

    /// The effects of an operator as one word, with [`CONDITIONAL`] and [`DERIVED`].
    #[cold]
    fn derive_effects(&self, id: OpId) -> u16 {
        let schema = self.schema(id);
        let writes = schema.is_mutable();
        let stores = schema.args.iter().filter_map(|a| a.alias.as_ref()).any(AliasInfo::escapes);
        let is_for_nothing = schema.returns.is_empty() && !schema.varret && !writes;
        // An operator on tensors can refuse every one: for its dtype, its size, or for want of memory.
        let takes_tensors = schema.args.iter().chain(&schema.returns).any(|a| a.ty.contains_tensor());
        let mut effects = match self.facet::<Effects>(id) {
            Some(&stated) if takes_tensors => stated | Effects::RAISES,
            Some(&stated) => stated,
            None if is_for_nothing => Effects::IO | Effects::RAISES,
            None => Effects::RAISES,
        };
        let reaches_memory = |a: &Argument| a.ty.is_mutable() || a.ty.has_vars();
        let rule = self.facet::<AliasRule>(id).copied();
        let says = [
            (Effects::READS, schema.args.iter().any(reaches_memory)),
            (Effects::WRITES, writes || stores),
            (Effects::ALIASES, schema.returns.iter().any(|r| r.alias.is_some())),
        ];
        says.iter().filter(|(_, yes)| *yes).for_each(|(effect, _)| effects |= *effect);
        let mut word = DERIVED;
        match rule {
            Some(AliasRule::Waits) => {
                effects |= Effects::WAITS | Effects::RAISES;
                effects |= Effects::READS | Effects::WRITES | Effects::ALIASES;
            }
            Some(AliasRule::WritesWhen { .. }) => {
                word |= if effects.may_write() { 0 } else { CONDITIONAL };
                effects |= Effects::WRITES;
            }
            Some(AliasRule::Fresh) | None => {}
        }
        if effects.contains(Effects::CONSERVATIVE) {
            effects |= Effects::UNKNOWN;
        }
        word | effects.bits()
    }

    /// Names of the kinds of fact stated about a row, in order of first registration.
    pub fn facets_of(&self, id: OpId) -> impl Iterator<Item = &'static str> + '_ {
        self.columns.order.iter().filter_map(move |t| {
            let column = &self.columns.by_type[t];
            column.states(id.index()).then(|| column.facet_name())
        })
    }
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Registry({} operators)", self.rows.len())
    }
}

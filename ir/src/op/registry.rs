//! The operator registry: rows are operator overloads, columns are facets. Immutable after construction, and shared.

use super::facet::Cells;
use super::{
    AliasRule, Column, Effects, Facet, ImplicitConversion, InplaceOf, Op, OpId, OpKind, Prim, inplace_of,
};
use crate::schema::{AliasInfo, Argument, FunctionSchema, SchemaParseError};
use crate::symbol::Symbol;
use hashbrown::hash_map::Entry;
use hashbrown::{HashMap, HashSet};
use rustc_hash::FxBuildHasher;
use smallvec::SmallVec;
use std::any::{Any, TypeId};
use std::borrow::Cow;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, OnceLock};

/// Flag of a row's effects word: the effects have been derived.
const DERIVED: u16 = 1 << 15;
/// Flag of the same word: the operator writes only where [`AliasRule::written`] returns operands for the node.
const CONDITIONAL: u16 = 1 << 14;

type Put = Box<dyn FnOnce(&mut Columns, usize) + Send>;

/// Initial capacity for the facts of a definition. Few definitions exceed it, and all are created at process start.
const USUAL_FACTS: usize = 8;

/// The definition of an operator overload: its schema and the facts about it.
pub struct OpDef {
    head: Head,
    /// Facts with the type of their facet.
    puts: Vec<(TypeId, Put)>,
    optional: bool,
}

enum Head {
    /// The schema is part of the definition.
    Schema(Box<DeclaredSchema>),
    /// The schema is the declared one with this name and overload.
    Named(Symbol, Symbol),
}

/// The text of a schema and the result of parsing it.
struct DeclaredSchema {
    text: String,
    schema: Result<FunctionSchema, SchemaParseError>,
}

impl OpDef {
    /// Creates a definition with this schema. [`RegistryBuilder::build`] reports errors in the schema.
    pub fn new(schema: &str) -> Self {
        let given = DeclaredSchema { text: schema.to_owned(), schema: FunctionSchema::parse(schema) };
        let head = Head::Schema(Box::new(given));
        OpDef { head, puts: Vec::new(), optional: false }
    }

    /// Creates a definition of facts about an operator whose schema is declared ([`RegistryBuilder::declare`]):
    /// `aten::add.Tensor`.
    pub fn named(full: &str) -> Self {
        let (name, overload) = split_overload(full);
        Self::overload(name, overload)
    }

    /// As [`OpDef::named`], with name and overload as separate arguments: `("aten::add", "Tensor")`.
    pub fn overload(name: &str, overload: &str) -> Self {
        let overload = if overload.is_empty() { Symbol::EMPTY } else { Symbol::new(overload) };
        let head = Head::Named(Symbol::new(name), overload);
        OpDef { head, puts: Vec::with_capacity(USUAL_FACTS), optional: false }
    }

    /// Ignores this definition if no declaration has its name. For variants derived by a naming scheme that not all
    /// operators follow.
    pub fn if_declared(mut self) -> Self {
        self.optional = true;
        self
    }

    /// States a fact.
    pub fn with<F: Facet>(mut self, facet: F) -> Self {
        self.puts.push((TypeId::of::<F>(), Box::new(move |columns, row| columns.put(row, facet))));
        self
    }

    /// Changes the fact of kind `F` if this definition states one.
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

    /// Removes all facts except those of kind `F`. For variants that share only those facts with the operator they are
    /// derived from.
    pub fn only<F: Facet>(mut self) -> Self {
        self.puts.retain(|(facet, _)| *facet == TypeId::of::<F>());
        self
    }
}

/// An operator overload. A declared schema is parsed on first use, since most are never used.
struct OpRow {
    text: &'static str,
    schema: OnceLock<Box<FunctionSchema>>,
    /// The effects with [`DERIVED`] and [`CONDITIONAL`], derived on first use; 0 before.
    effects: AtomicU16,
}

impl OpRow {
    /// Whether both rows are the same operator. The text of a schema that an extension states may have another form.
    fn is_same(&self, other: &OpRow) -> bool {
        self.text == other.text || self.schema().to_string() == other.schema().to_string()
    }

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

/// A reason why a registry could not be built.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RegistryError {
    /// A schema does not parse.
    #[error("operator schema `{text}`: {error}")]
    Schema {
        /// The schema's text.
        text: String,
        /// The fault.
        error: SchemaParseError,
    },
    /// Two rows have the same name and overload.
    #[error("operator `{0}` is defined twice")]
    Duplicate(String),
    /// The definition redefines a structural operator.
    #[error("`{0}` is a structural operator and cannot be redefined")]
    Structural(String),
    /// A definition names an operator that is not declared.
    #[error("no operator `{0}` is declared")]
    Undeclared(String),
    /// A fact was stated about an operator that does not exist.
    #[error("facet `{facet}` is stated about `{op}`, which is not defined")]
    NoSuchOperator {
        /// The facet.
        facet: &'static str,
        /// The operator, `ns::name` or `ns::name.overload`.
        op: String,
    },
}

type LateFacet = (String, &'static str, Put);

/// Operators that were added together.
enum Definitions {
    Made(Vec<OpDef>),
    /// A function that makes them.
    Family(fn() -> Vec<OpDef>),
}

/// Collects operators and facts and builds a [`Registry`].
#[derive(Default)]
pub struct RegistryBuilder {
    declared: Vec<&'static str>,
    /// In the order they were added.
    defs: Vec<Definitions>,
    late: Vec<LateFacet>,
    synonyms: HashMap<Symbol, Symbol, FxBuildHasher>,
}

impl RegistryBuilder {
    /// Creates an empty builder.
    pub fn new() -> Self {
        Self::default()
    }

    /// Declares operators by their schemas, one per line. A declared operator without facts can be named in programs,
    /// matched, analysed and printed, but not run. The order of declarations is the order in which calls try overloads.
    /// A later declaration of the same name and overload replaces the earlier one.
    pub fn declare(&mut self, schemas: &'static str) -> &mut Self {
        self.declared.push(schemas);
        self
    }

    /// Adds operators, in order. Operators that are not declared follow the declared overloads of their name.
    pub fn add(&mut self, defs: impl IntoIterator<Item = OpDef>) -> &mut Self {
        self.defs.push(Definitions::Made(defs.into_iter().collect()));
        self
    }

    /// Adds the operators that `family` returns. [`RegistryBuilder::build`] calls it, one family at a time: the definitions
    /// of a family are freed before the next one allocates its own, so that process start touches a third of the memory, and
    /// a builder that is never built costs nothing.
    pub fn family(&mut self, family: fn() -> Vec<OpDef>) -> &mut Self {
        self.defs.push(Definitions::Family(family));
        self
    }

    /// States a fact about an operator defined elsewhere, named `ns::name.overload` or `ns::name`.
    pub fn facet<F: Facet>(&mut self, op: &str, facet: F) -> &mut Self {
        self.late.push((op.to_owned(), F::NAME, Box::new(move |columns, row| columns.put(row, facet))));
        self
    }

    /// States that all overloads of an operator are those of another operator under a second name, which is not itself
    /// a synonym: `("aten::absolute", "aten::abs")`. Frontends emit the operator that is named second.
    pub fn synonym(&mut self, name: &str, canonical: &str) -> &mut Self {
        self.synonyms.insert(Symbol::new(name), Symbol::new(canonical));
        self
    }

    /// Builds the registry.
    ///
    /// # Errors
    /// Returns all errors that were found: see [`RegistryError`].
    pub fn build(self) -> Result<Arc<Registry>, Vec<RegistryError>> {
        let mut making = Making::default();
        // Schemas have about a hundred bytes; 90 gives spare capacity.
        let rows = self.declared.iter().map(|text| text.len() / 90).sum();
        making.registry.reserve(rows);
        making.defined.reserve(rows);
        for line in self.declared.iter().flat_map(|text| text.lines()) {
            making.declare(line);
        }
        for defs in self.defs {
            let defs = match defs {
                Definitions::Made(defs) => defs,
                Definitions::Family(family) => family(),
            };
            defs.into_iter().for_each(|def| making.define(def));
        }
        let Making { mut registry, mut errors, .. } = making;
        registry.synonyms = self.synonyms;
        for (op, facet, put) in self.late {
            match registry.lookup(&op) {
                Some(id) => put(&mut registry.columns, id.index()),
                None => errors.push(RegistryError::NoSuchOperator { facet, op }),
            }
        }
        for (id, fact) in inplace_of::derived(&registry) {
            registry.columns.put(id.index(), fact);
        }
        errors.extend(registry.missing_variants());
        if !errors.is_empty() {
            return Err(errors);
        }
        let converters: Vec<_> =
            registry.column::<ImplicitConversion>().iter().map(|(id, &c)| (c as usize, id)).collect();
        for (converter, id) in converters {
            registry.converters[converter] = Some(id);
        }
        Ok(Arc::new(registry))
    }
}

#[derive(Default)]
struct Making {
    registry: Registry,
    /// Rows that have a definition.
    defined: HashSet<OpId, FxBuildHasher>,
    /// The name of the last declaration, its symbol, and whether the operator is structural. A cache, since overloads
    /// of a name are declared consecutively.
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
        self.put(name, overload, OpRow::new(text, OnceLock::new()));
    }

    /// Adds a row, or replaces the one with this name and overload.
    fn put(&mut self, name: Symbol, overload: Symbol, row: OpRow) -> OpId {
        let registry = &mut self.registry;
        let id = OpId(registry.rows.len() as u32);
        match registry.by_full.entry((name, overload)) {
            Entry::Occupied(known) => {
                let id = *known.get();
                registry.rows[id.index()] = row;
                return id;
            }
            Entry::Vacant(free) => drop(free.insert(id)),
        }
        registry.by_name.entry(name).or_default().push(id);
        registry.names.push(name);
        registry.rows.push(row);
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
                let DeclaredSchema { text, schema } = *given;
                let schema = match schema {
                    Ok(schema) => Box::new(schema),
                    Err(error) => return self.errors.push(RegistryError::Schema { text, error }),
                };
                if Prim::from_symbol(schema.name).is_some() {
                    return self.errors.push(RegistryError::Structural(text));
                }
                let (name, overload) = (schema.name, schema.overload);
                self.put(name, overload, OpRow::new("", OnceLock::from(schema)))
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

pub(super) fn split_overload(op: &str) -> (&str, &str) {
    let base = crate::symbol::namespace_end(op).map_or(0, |i| i + 2);
    match op[base..].find('.') {
        Some(dot) => (&op[..base + dot], &op[base + dot + 1..]),
        None => (op, ""),
    }
}

/// All operators and the facts about them.
#[derive(Default)]
pub struct Registry {
    rows: Vec<OpRow>,
    names: Vec<Symbol>,
    by_name: HashMap<Symbol, SmallVec<[OpId; 2]>, FxBuildHasher>,
    by_full: HashMap<(Symbol, Symbol), OpId, FxBuildHasher>,
    columns: Columns,
    /// By [`ImplicitConversion`]: the row that performs the conversion.
    converters: [Option<OpId>; ImplicitConversion::COUNT],
    /// The canonical operator of each name that is a synonym.
    synonyms: HashMap<Symbol, Symbol, FxBuildHasher>,
    /// The in-place variant of each operator that has one, derived on first use from [`InplaceOf`].
    in_place: OnceLock<HashMap<OpId, OpId, FxBuildHasher>>,
}

impl Registry {
    /// Returns a registry without operators.
    #[expect(clippy::missing_panics_doc, reason = "an empty registry has no errors")]
    pub fn empty() -> Arc<Registry> {
        RegistryBuilder::new().build().expect("invariant: an empty registry has no errors")
    }

    /// Reserves capacity for rows, so that no table is reallocated repeatedly at process start.
    fn reserve(&mut self, rows: usize) {
        self.rows.reserve(rows);
        self.names.reserve(rows);
        self.by_full.reserve(rows);
        // Most names have one or two overloads.
        self.by_name.reserve(rows / 2);
    }

    /// Returns whether this registry starts with the rows of another, so that every id of the other denotes the same operator
    /// here. Sessions that add operators to those of another session have such registries. The time is linear in the number
    /// of rows unless both are one registry.
    pub fn extends(&self, other: &Registry) -> bool {
        std::ptr::eq(self, other)
            || self.rows.len() >= other.rows.len()
                && self.rows.iter().zip(&other.rows).all(|(own, row)| own.is_same(row))
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns the canonical operator if a name is a synonym ([`RegistryBuilder::synonym`]).
    pub fn canonical(&self, name: Symbol) -> Option<Symbol> {
        self.synonyms.get(&name).copied()
    }

    /// Returns all rows in order of registration.
    pub fn ids(&self) -> impl Iterator<Item = OpId> + use<> {
        (0..self.rows.len() as u32).map(OpId)
    }

    /// Returns the schema of a row.
    pub fn schema(&self, id: OpId) -> &FunctionSchema {
        self.rows[id.index()].schema()
    }

    /// Returns the schema of a node's operator, if the operator is a row.
    pub fn schema_of(&self, op: Op) -> Option<&FunctionSchema> {
        Some(self.schema(op.row()?))
    }

    /// Returns the overloads of a name, in order of registration.
    pub fn overloads(&self, name: Symbol) -> &[OpId] {
        self.by_name.get(&name).map_or(&[], |v| v.as_slice())
    }

    /// Returns the overload with a name and an overload name (empty for the default overload).
    pub fn find(&self, name: Symbol, overload: Symbol) -> Option<OpId> {
        self.by_full.get(&(name, overload)).copied()
    }

    /// Returns the overload with a text name: `ns::name` or `ns::name.overload`.
    pub fn lookup(&self, op: &str) -> Option<OpId> {
        let (name, overload) = split_overload(op);
        self.find(Symbol::new(name), Symbol::new(overload))
    }

    /// Returns the operator that performs an implicit conversion: the row with that facet. Without such a row, returns
    /// an unknown operator named after the conversion, which the verifier reports.
    pub fn converter(&self, converter: ImplicitConversion) -> Op {
        match self.converters[converter as usize] {
            Some(id) => id.into(),
            None => Op::unknown(Symbol::new(&format!("convert::{converter:?}"))),
        }
    }

    /// Returns the qualified name of an operator without overload.
    pub fn name(&self, op: Op) -> Symbol {
        match op.kind() {
            OpKind::Prim(prim) => prim.symbol(),
            OpKind::Row(id) => self.names[id.index()],
            OpKind::Unknown(name) => name,
        }
    }

    /// Returns the functional variant of an in-place operator ([`InplaceOf`]).
    pub fn functional_variant(&self, id: OpId) -> Option<OpId> {
        match *self.facet::<InplaceOf>(id)? {
            InplaceOf::Function(name, overload) => self.find(name, overload),
            InplaceOf::NoVariant => None,
        }
    }

    /// Returns the in-place variant of an operator: of several, the one that was registered first.
    pub fn in_place_variant(&self, id: OpId) -> Option<OpId> {
        let variants = self.in_place.get_or_init(|| {
            let mut variants: HashMap<OpId, OpId, FxBuildHasher> = HashMap::default();
            for (writer, _) in self.column::<InplaceOf>().iter() {
                if let Some(function) = self.functional_variant(writer) {
                    variants.entry(function).or_insert(writer);
                }
            }
            variants
        });
        variants.get(&id).copied()
    }

    /// The facts that name a functional variant which does not exist.
    fn missing_variants(&self) -> Vec<RegistryError> {
        let missing = |fact: &InplaceOf| match *fact {
            InplaceOf::Function(name, overload) if self.find(name, overload).is_none() => {
                let dot = if overload == Symbol::EMPTY { "" } else { "." };
                let op = format!("{name}{dot}{overload}");
                Some(RegistryError::NoSuchOperator { facet: InplaceOf::NAME, op })
            }
            InplaceOf::Function(..) | InplaceOf::NoVariant => None,
        };
        self.column::<InplaceOf>().iter().filter_map(|(_, fact)| missing(fact)).collect()
    }

    /// Returns the name of a row's overload, without parsing its schema.
    pub(super) fn overload_name(&self, id: OpId) -> Symbol {
        let row = &self.rows[id.index()];
        match row.schema.get() {
            Some(schema) => schema.overload,
            None => {
                let full = &row.text[..row.text.find('(').unwrap_or(row.text.len())];
                match split_overload(full).1 {
                    "" => Symbol::EMPTY,
                    overload => Symbol::new(overload),
                }
            }
        }
    }

    /// Returns the text of a row's schema: as declared, or printed.
    pub(super) fn schema_text(&self, id: OpId) -> Cow<'_, str> {
        let row = &self.rows[id.index()];
        if row.text.is_empty() { row.schema().to_string().into() } else { row.text.into() }
    }

    /// Returns all facts of one kind.
    #[expect(clippy::missing_panics_doc, reason = "a column is stored under its own type")]
    pub fn column<F: Facet>(&self) -> Column<'_, F> {
        let cells = self.columns.by_type.get(&TypeId::of::<F>()).map(|column| {
            column.as_any().downcast_ref::<Cells<F>>().expect("invariant: a column holds its own facet")
        });
        Column { cells }
    }

    /// Returns the fact of one kind about a row.
    pub fn facet<F: Facet>(&self, id: OpId) -> Option<&F> {
        self.column::<F>().get(id)
    }

    /// Returns the effects of an operator: those of the facets [`Effects`] and [`AliasRule`], and those of its schema.
    ///
    /// Without the facet [`Effects`], an operator may raise. An operator on tensors may always raise. An operator
    /// without the facet that returns nothing and writes nothing counts as I/O, since its purpose must be an effect
    /// that its operands do not show.
    #[inline]
    pub fn effects(&self, id: OpId) -> Effects {
        self.stated_effects(id).0
    }

    /// Returns the effects of an operator of any kind, without those of blocks and subgraphs.
    pub fn effects_of(&self, op: Op) -> Effects {
        match op.kind() {
            OpKind::Prim(prim) => prim.effects(),
            OpKind::Row(id) => self.effects(id),
            OpKind::Unknown(_) => Effects::UNKNOWN,
        }
    }

    /// Returns the effects of an operator, and whether it writes only under a condition on its operands
    /// ([`AliasRule::WritesWhen`]).
    #[inline]
    pub(crate) fn stated_effects(&self, id: OpId) -> (Effects, bool) {
        let cell = &self.rows[id.index()].effects;
        // The value depends only on the registry, so racing threads store the same value.
        let mut word = cell.load(Ordering::Relaxed);
        if word == 0 {
            word = self.derive_effects(id);
            cell.store(word, Ordering::Relaxed);
        }
        (Effects::from_bits(word), word & CONDITIONAL != 0)
    }

    /// Derives the effects of an operator, with the flags [`CONDITIONAL`] and [`DERIVED`].
    #[cold]
    fn derive_effects(&self, id: OpId) -> u16 {
        let schema = self.schema(id);
        let writes = schema.is_mutable();
        let stores = schema.args.iter().filter_map(|a| a.alias.as_ref()).any(AliasInfo::escapes);
        let is_for_nothing = schema.returns.is_empty() && !schema.varret && !writes;
        // An operator on tensors can reject any of them for its dtype or size, or run out of memory.
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

    /// Returns the names of the kinds of facts stated about a row, in order of first registration.
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

//! The registry: rows are operator overloads, columns are facets. Built once, then shared and never changed.

use super::{Column, Facet, Op, OpId, OpKind, Prim};
use crate::schema::{FunctionSchema, SchemaParseError};
use crate::symbol::Symbol;
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use smallvec::SmallVec;
use std::any::{Any, TypeId};
use std::sync::Arc;

type Put = Box<dyn FnOnce(&mut Columns, usize) + Send>;

/// The definition of one operator overload: its schema and the facts stated about it.
pub struct OpDef {
    schema: Result<FunctionSchema, SchemaParseError>,
    text: String,
    puts: Vec<Put>,
}

impl OpDef {
    /// An operator with this schema. An error in the schema is reported when the registry is built.
    pub fn new(schema: &str) -> Self {
        OpDef { schema: FunctionSchema::parse(schema), text: schema.to_owned(), puts: Vec::new() }
    }

    /// States a fact.
    pub fn with<F: Facet>(mut self, facet: F) -> Self {
        self.puts.push(Box::new(move |columns, row| columns.put(row, facet)));
        self
    }

    /// The schema, if it parsed.
    pub fn schema(&self) -> Option<&FunctionSchema> {
        self.schema.as_ref().ok()
    }
}

/// One operator overload.
pub struct OpRow {
    /// The schema.
    pub schema: FunctionSchema,
}

trait AnyColumn: Any + Send + Sync {
    fn facet_name(&self) -> &'static str;
    fn states(&self, row: usize) -> bool;
    fn as_any(&self) -> &dyn Any;
    fn as_any_mut(&mut self) -> &mut dyn Any;
    fn pad(&mut self, rows: usize);
}

struct Cells<F>(Vec<Option<F>>);

impl<F: Facet> AnyColumn for Cells<F> {
    fn facet_name(&self) -> &'static str {
        F::NAME
    }

    fn states(&self, row: usize) -> bool {
        self.0.get(row).is_some_and(Option::is_some)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn pad(&mut self, rows: usize) {
        self.0.resize_with(rows, || None);
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
            Box::new(Cells::<F>(Vec::new()))
        });
        let cells =
            column.as_any_mut().downcast_mut::<Cells<F>>().expect("invariant: a column holds its own facet");
        if cells.0.len() <= row {
            cells.0.resize_with(row + 1, || None);
        }
        cells.0[row] = Some(facet);
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
    defs: Vec<OpDef>,
    late: Vec<LateFacet>,
}

impl RegistryBuilder {
    /// An empty collection.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds operators, in order: the order of overloads is the order in which calls try them.
    pub fn add(&mut self, defs: impl IntoIterator<Item = OpDef>) -> &mut Self {
        self.defs.extend(defs);
        self
    }

    /// States a fact about an operator defined elsewhere, named `ns::name.overload` or `ns::name`.
    pub fn facet<F: Facet>(&mut self, op: &str, facet: F) -> &mut Self {
        self.late.push((op.to_owned(), F::NAME, Box::new(move |columns, row| columns.put(row, facet))));
        self
    }

    /// Makes the registry, or says everything that is wrong.
    pub fn build(self) -> Result<Arc<Registry>, Vec<RegistryError>> {
        let mut errors = Vec::new();
        let mut columns = Columns::default();
        let mut rows: Vec<OpRow> = Vec::with_capacity(self.defs.len());
        let mut by_name: HashMap<Symbol, SmallVec<[OpId; 2]>, FxBuildHasher> = HashMap::default();
        let mut by_full: HashMap<(Symbol, Symbol), OpId, FxBuildHasher> = HashMap::default();
        for def in self.defs {
            let schema = match def.schema {
                Ok(schema) => schema,
                Err(error) => {
                    errors.push(RegistryError::Schema { text: def.text, error });
                    continue;
                }
            };
            if Prim::from_symbol(schema.name).is_some() {
                errors.push(RegistryError::Structural(def.text));
                continue;
            }
            let id = OpId(rows.len() as u32);
            if by_full.insert((schema.name, schema.overload), id).is_some() {
                errors.push(RegistryError::Duplicate(schema.full_name()));
                continue;
            }
            by_name.entry(schema.name).or_default().push(id);
            for put in def.puts {
                put(&mut columns, rows.len());
            }
            rows.push(OpRow { schema });
        }
        for (op, facet, put) in self.late {
            let (name, overload) = split_overload(&op);
            match by_full.get(&(Symbol::new(name), Symbol::new(overload))) {
                Some(id) => put(&mut columns, id.index()),
                None => errors.push(RegistryError::NoSuchOperator { facet, op }),
            }
        }
        for id in &columns.order {
            columns.by_type.get_mut(id).expect("invariant: ordered columns exist").pad(rows.len());
        }
        if errors.is_empty() {
            Ok(Arc::new(Registry { rows, by_name, by_full, columns }))
        } else {
            Err(errors)
        }
    }
}

fn split_overload(op: &str) -> (&str, &str) {
    let base = op.find("::").map_or(0, |i| i + 2);
    match op[base..].find('.') {
        Some(dot) => (&op[..base + dot], &op[base + dot + 1..]),
        None => (op, ""),
    }
}

/// The operators a session knows, with all facts about them.
pub struct Registry {
    rows: Vec<OpRow>,
    by_name: HashMap<Symbol, SmallVec<[OpId; 2]>, FxBuildHasher>,
    by_full: HashMap<(Symbol, Symbol), OpId, FxBuildHasher>,
    columns: Columns,
}

impl Registry {
    /// A registry without operators.
    pub fn empty() -> Arc<Registry> {
        RegistryBuilder::new().build().expect("invariant: nothing can be wrong with nothing")
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
        &self.rows[id.index()].schema
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

    /// The qualified name of an operator, without overload.
    pub fn name(&self, op: Op) -> Symbol {
        match op.kind() {
            OpKind::Prim(prim) => prim.symbol(),
            OpKind::Row(id) => self.schema(id).name,
            OpKind::Unknown(name) => name,
        }
    }

    /// All facts of one kind.
    pub fn column<F: Facet>(&self) -> Column<'_, F> {
        let cells = self.columns.by_type.get(&TypeId::of::<F>()).map_or(&[] as &[Option<F>], |column| {
            &column.as_any().downcast_ref::<Cells<F>>().expect("invariant: a column holds its own facet").0
        });
        Column { cells }
    }

    /// One fact about one row.
    pub fn facet<F: Facet>(&self, id: OpId) -> Option<&F> {
        self.column::<F>().get(id)
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

//! Types of values as rules see them: what the graph declares, refined forward by the operators' `Shape` and `Dtype`
//! rules. Block inputs have their declared types, so nothing is assumed about loops; neither is anything about what is
//! written anywhere, since sizes and list elements may then change.

use flambeau_analysis::shape::{Dtype, Fact, Operand, Shape, ShapeCx, Symbols, infer};
use flambeau_analysis::{AliasDb, Analysis, AnalysisCx};
use flambeau_ir::types::Dim;
use flambeau_ir::{Graph, IValue, NodeId, Prim, Type, ValueId, ValueMap};
use std::borrow::Cow;

/// See the module's head.
pub struct ValueTypes {
    /// Refined types; values without an entry have their declared ones.
    types: ValueMap<Option<Type>>,
    symbols: Symbols,
}

impl ValueTypes {
    /// The refined type of a value.
    pub fn type_of(&self, graph: &Graph, value: ValueId) -> Type {
        self.types[value].unwrap_or_else(|| graph.ty(value))
    }

    /// The symbols in these types.
    pub fn symbols(&self) -> &Symbols {
        &self.symbols
    }

    fn operand(&self, graph: &Graph, db: &AliasDb, value: ValueId) -> Operand<'static> {
        let written = graph.ty(value).is_mutable() && db.has_writers(value);
        let ty = if written { graph.ty(value) } else { self.type_of(graph, value) };
        let constant = if written { None } else { constant(graph, value) };
        let fact = constant.as_ref().map_or_else(|| Fact::of_type(ty), Fact::of);
        Operand { fact: Cow::Owned(fact), ty, constant }
    }

    fn infer(&mut self, graph: &Graph, db: &AliasDb, node: NodeId) {
        let Some(id) = graph.op(node).row() else { return };
        let registry = graph.registry();
        let (shape, dtype) = (registry.facet::<Shape>(id), registry.facet::<Dtype>(id));
        if shape.is_none() && dtype.is_none() {
            return;
        }
        let operands: Vec<Operand<'static>> =
            graph.operands(node).map(|v| self.operand(graph, db, v)).collect();
        for (i, v) in graph.results(node).enumerate() {
            let mut cx = ShapeCx::new(Some(registry.schema(id)), operands.iter().cloned(), &mut self.symbols);
            let refined = infer(shape, dtype, i, &mut cx).refine(graph.ty(v));
            if refined != graph.ty(v) {
                self.types[v] = Some(refined);
            }
        }
    }
}

/// The constant a value is: of a `prim::Constant`, or a list made of such.
fn constant(graph: &Graph, value: ValueId) -> Option<IValue> {
    let def = graph.def(value);
    match graph.prim(def)? {
        Prim::Constant => graph.constant(value),
        Prim::ListConstruct => {
            let elem = graph.ty(value).list_elem().filter(|e| !e.is_mutable())?;
            let items: Option<Vec<IValue>> = graph.operands(def).map(|v| graph.constant(v)).collect();
            Some(IValue::list(elem, items?))
        }
        _ => None,
    }
}

impl Analysis for ValueTypes {
    const NAME: &'static str = "value-types";

    fn build(cx: &AnalysisCx<'_>) -> Self {
        let graph = cx.graph();
        let db = cx.get::<AliasDb>();
        let mut symbols = Symbols::new();
        for v in graph.values_in_order() {
            let dims = graph.ty(v).as_tensor().and_then(|t| t.sizes.as_deref()).unwrap_or_default();
            for dim in dims {
                if let Dim::Sym(s) = dim {
                    symbols.note(*s);
                }
            }
        }
        let mut types = ValueTypes { types: ValueMap::for_values(graph, None), symbols };
        for node in graph.nodes_deep() {
            types.infer(graph, &db, node);
        }
        types
    }
}

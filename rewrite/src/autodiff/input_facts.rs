//! Facts about the inputs of a formula, which is simplified for them before it is inlined.
//!
//! A formula conjugates, reverses broadcasting and restores dtypes for every kind of operand. For operands of known dtypes and
//! sizes few of its nodes remain, and they are found once for all nodes with such operands, not in the backward graph at each.

use flambeau_analysis::AliasDb;
use flambeau_analysis::shape::{Dim, Fact, Shapes, TensorFact};
use flambeau_ir::types::{TensorType, TypeKind};
use flambeau_ir::value::Str;
use flambeau_ir::{At, Graph, IValue, Type, ValueId, ValueMap};

/// What is known of an input of a formula.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum InputFact {
    /// It has this type.
    Typed(Type),
    /// It is this integer.
    Int(i64),
    /// It is the float with these bits.
    Float(u64),
    /// It is this condition.
    Bool(bool),
    /// It is this text.
    Str(Box<[u8]>),
    /// It is `None`.
    Absent,
}

impl InputFact {
    fn of_constant(value: &IValue) -> Option<InputFact> {
        match value {
            IValue::Int(n) => Some(InputFact::Int(*n)),
            IValue::Float(x) => Some(InputFact::Float(x.to_bits())),
            IValue::Bool(b) => Some(InputFact::Bool(*b)),
            IValue::Str(text) => Some(InputFact::Str(text.as_bytes().into())),
            IValue::None => Some(InputFact::Absent),
            _ => None,
        }
    }

    fn constant(&self) -> Option<IValue> {
        match self {
            InputFact::Typed(_) => None,
            InputFact::Int(n) => Some(IValue::Int(*n)),
            InputFact::Float(bits) => Some(IValue::Float(f64::from_bits(*bits))),
            InputFact::Bool(b) => Some(IValue::Bool(*b)),
            InputFact::Str(text) => Some(IValue::Str(Str::from(&**text))),
            InputFact::Absent => Some(IValue::None),
        }
    }

    /// Returns a graph whose inputs are as stated: constants replace the uses of inputs, which remain.
    pub fn assume(graph: &Graph, facts: &[InputFact]) -> Graph {
        let mut graph = graph.clone();
        let inputs: Vec<ValueId> = graph.inputs().collect();
        let root = graph.root();
        let mut editor = graph.edit();
        editor.at(At::start(root));
        for (&input, fact) in inputs.iter().zip(facts) {
            match (fact, fact.constant()) {
                (_, Some(value)) => {
                    let constant = editor.constant(value);
                    editor.replace_all_uses(input, constant);
                }
                (InputFact::Typed(ty), None) if editor.graph().ty(input).is_tensor() => {
                    editor.set_type(input, *ty)
                }
                _ => {}
            }
        }
        graph
    }
}

/// The dtypes and sizes of the tensors of a graph that is differentiated, and of their gradients.
pub(super) struct KnownTypes {
    of_value: ValueMap<Option<Type>>,
}

impl KnownTypes {
    /// Finds the types of all values, which follow from those of the inputs.
    pub(super) fn of(graph: &Graph) -> KnownTypes {
        let shapes = Shapes::new(graph, &AliasDb::new(graph));
        let mut of_value = ValueMap::for_values(graph, None);
        for value in graph.values_in_order().filter(|v| graph.ty(*v).is_tensor()) {
            of_value[value] = Some(tensor_type(shapes.fact(value)));
        }
        KnownTypes { of_value }
    }

    /// Returns the type of a value of the graph, or of one that was appended to it.
    pub(super) fn type_of(&self, graph: &Graph, value: ValueId) -> Type {
        self.of_value[value].unwrap_or_else(|| graph.ty(value))
    }

    /// Returns what is known of the inputs of a formula; `None` if nothing is.
    pub(super) fn facts(&self, graph: &Graph, inputs: &[ValueId]) -> Option<Vec<InputFact>> {
        let fact = |v: &ValueId| {
            let constant = graph.constant(*v).as_ref().and_then(InputFact::of_constant);
            constant.unwrap_or_else(|| InputFact::Typed(self.type_of(graph, *v)))
        };
        let facts: Vec<InputFact> = inputs.iter().map(fact).collect();
        let says = |fact: &InputFact| match fact {
            InputFact::Typed(ty) => ty.is_tensor() && *ty != Type::TENSOR,
            _ => true,
        };
        facts.iter().any(says).then_some(facts)
    }
}

/// Returns the type with the dtype and the known sizes of a tensor: layouts of gradients and captures may differ.
pub(super) fn tensor_type(fact: &Fact) -> Type {
    let Fact::Tensor(fact @ TensorFact { undefined: false, .. }) = fact else { return Type::TENSOR };
    concrete_tensor(&fact.to_type())
}

/// Returns the type that a value of a graph of formulas has as an input of another graph: dtypes and known sizes. Equal symbols
/// state equal sizes of inputs, but those of two formulas, or of two iterations of an unrolled loop, are not related.
pub(super) fn input_type(ty: Type) -> Type {
    match ty.kind() {
        TypeKind::Tensor(tensor) => concrete_tensor(tensor),
        TypeKind::Optional(inner) => Type::optional(input_type(*inner)),
        _ => ty,
    }
}

fn concrete_tensor(ty: &TensorType) -> Type {
    let is_known = |dim: &Dim| matches!(dim, Dim::Known(_));
    let sizes = ty.sizes.clone().filter(|sizes| sizes.iter().all(is_known));
    Type::tensor(TensorType { dtype: ty.dtype, sizes, ..TensorType::default() })
}

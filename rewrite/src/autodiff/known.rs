//! Transfers the facts of shape analysis from a forward graph to its backward graph: numbers and sizes become constants instead
//! of captures, and captured tensors have dtypes and sizes.

use super::Gradient;
use super::input_facts::tensor_type;
use flambeau_analysis::AliasDb;
use flambeau_analysis::shape::{Dim, Fact, Shapes};
use flambeau_ir::{At, Editor, Graph, IValue, Prim, Type, ValueId};

impl Gradient {
    /// Returns the gradient with the facts about the forward graph in the backward graph. They follow from the types of the forward graph's
    /// inputs, so the backward graph is that of calls with arguments of these types.
    #[must_use]
    pub fn specialized(mut self) -> Gradient {
        let shapes = Shapes::new(&self.forward, &AliasDb::new(&self.forward));
        let results: Vec<ValueId> = self.forward.outputs().collect();
        let first = results.len() - self.captures;
        let root = self.backward.root();
        let inputs: Vec<ValueId> = self.backward.inputs().collect();
        let mut editor = self.backward.edit();
        editor.at(At::start(root));
        // For each capture, whether it differs between calls.
        let mut keep = vec![true; self.captures];
        for (i, value) in results[first..].iter().enumerate() {
            let input = inputs[self.outputs.len() + i];
            match constant(&self.forward, shapes.fact(*value), *value) {
                Some(known) => {
                    let constant = known.insert(&mut editor);
                    editor.replace_all_uses(input, constant);
                    keep[i] = false;
                }
                None if editor.graph().ty(input).is_tensor() => {
                    editor.set_type(input, tensor_type(shapes.fact(*value)));
                }
                None => {}
            }
        }
        let seeds = self.outputs.len();
        editor.retain_block_inputs(root, |i| i < seeds || keep[i - seeds]);
        let root = self.forward.root();
        self.forward.edit().retain_block_outputs(root, |i| i < first || keep[i - first]);
        self.captures = keep.iter().filter(|keep| **keep).count();
        self
    }
}

/// A value that is the same in every call.
enum Known {
    Scalar(IValue),
    Sizes(Vec<i64>),
}

impl Known {
    fn insert(self, editor: &mut Editor<'_>) -> ValueId {
        match self {
            Known::Scalar(value) => editor.constant(value),
            Known::Sizes(sizes) => {
                let sizes: Vec<ValueId> =
                    sizes.into_iter().map(|n| editor.constant(IValue::Int(n))).collect();
                let list = editor.node(Prim::ListConstruct, &sizes, &[Type::list(Type::INT)]);
                editor.graph().result(list, 0)
            }
        }
    }
}

fn constant(graph: &Graph, fact: &Fact, value: ValueId) -> Option<Known> {
    let ty = graph.ty(value);
    match fact {
        Fact::Int(Dim::Known(n)) if ty == Type::INT => Some(Known::Scalar(IValue::Int(*n))),
        Fact::Bool(b) if ty == Type::BOOL => Some(Known::Scalar(IValue::Bool(*b))),
        Fact::List(items) if ty == Type::list(Type::INT) => {
            let known = |item: &Fact| match item {
                Fact::Int(Dim::Known(n)) => Some(*n),
                _ => None,
            };
            items.iter().map(known).collect::<Option<_>>().map(Known::Sizes)
        }
        _ => graph.constant(value).filter(|_| !ty.is_mutable()).map(Known::Scalar),
    }
}

//! Results of branches and loops on values that are only known at run time.
//!
//! A subgraph returns tensors only, so a result of a block is taken apart into *leaves*: tuples into their elements. A leaf
//! that is the same value in each block needs no output. Another leaf is an output of the subgraphs: a tensor, or a number
//! as a tensor without dimensions, from which the program reads it again. A variable that a block leaves uninitialized is not
//! read on that path, so its output is any tensor of the right sizes: zeros.

use super::branch::Results;
use super::record::Recorder;
use super::symbolic::Symbolic;
use super::{Res, Stop, copied, refused};
use flambeau_exec::KernelError;
use flambeau_export::model::Argument;
use flambeau_ir::value::Tuple;
use flambeau_ir::{IValue, Type};
use flambeau_tensor::{DType, Scalar, Tensor};

/// A value without elements, and its symbol if it is a symbolic number.
#[derive(Clone)]
pub(super) struct Leaf {
    pub(super) value: IValue,
    pub(super) symbol: Option<Symbolic>,
}

/// The tuples around leaves.
#[derive(Clone, PartialEq)]
enum Structure {
    Leaf,
    /// A tuple, with its type if it is a named one.
    Tuple(Vec<Structure>, Option<Type>),
}

/// A value as its leaves.
#[derive(Clone)]
pub(super) struct Leaves {
    structure: Structure,
    pub(super) items: Vec<Leaf>,
}

impl Leaf {
    /// Returns whether two blocks have the same value, so that it needs no output.
    pub(super) fn is_same(&self, other: &Leaf) -> bool {
        let key = |leaf: &Leaf| leaf.symbol.as_ref().map(Symbolic::key);
        let is_equal = match (&self.value, &other.value) {
            (IValue::Str(a), IValue::Str(b)) => a == b,
            (a, b) => a.is_same(b),
        };
        is_equal && key(self) == key(other)
    }

    /// Returns the tensor that is the leaf.
    pub(super) fn tensor(&self) -> Option<&Tensor> {
        self.value.as_tensor()
    }

    fn is_initialized(&self) -> bool {
        !matches!(self.value, IValue::Uninitialized)
    }

    /// Returns the leaf of two that is initialized, the first one if both are; an error if they cannot be one output.
    pub(super) fn joined<'l>(&'l self, other: &'l Leaf, place: &str) -> Res<&'l Leaf> {
        let fits = match (&self.value, &other.value) {
            (IValue::Tensor(a), IValue::Tensor(b)) => {
                if a.sizes() != b.sizes() || a.dtype() != b.dtype() {
                    return Err(refused(format!(
                        "{place} on a value that is only known at run time has tensors of different sizes or dtypes, \
                         {} {:?} and {} {:?}",
                        a.dtype().name(),
                        a.sizes(),
                        b.dtype().name(),
                        b.sizes()
                    )));
                }
                true
            }
            (IValue::Uninitialized, value) | (value, IValue::Uninitialized) => {
                value.is_tensor() || number_dtype(value).is_some()
            }
            (a, b) => number_dtype(a).is_some() && number_dtype(a) == number_dtype(b),
        };
        if !fits {
            return Err(refused(format!(
                "{place} on a value that is only known at run time yields a {} and a {}; both must be tensors, or numbers of one \
                 type",
                self.value.tag(),
                other.value.tag()
            )));
        }
        Ok(if self.is_initialized() { self } else { other })
    }
}

impl Leaves {
    /// Expands an uninitialized value to the structure of another one; `None` if the structures differ.
    pub(super) fn expanded(&self, other: &Leaves) -> Option<Leaves> {
        if self.structure == other.structure {
            return Some(self.clone());
        }
        match &self.items[..] {
            [only] if self.structure == Structure::Leaf && !only.is_initialized() => {
                let items = vec![only.clone(); other.items.len()];
                Some(Leaves { structure: other.structure.clone(), items })
            }
            _ => None,
        }
    }

    /// Expands two values to one structure.
    pub(super) fn aligned(a: &Leaves, b: &Leaves, place: &str) -> Res<(Leaves, Leaves)> {
        let first = a.expanded(b).unwrap_or_else(|| a.clone());
        let second = b.expanded(&first).ok_or_else(|| {
            refused(format!(
                "{place} on a value that is only known at run time has values of different structures"
            ))
        })?;
        Ok((first, second))
    }
}

impl Recorder {
    /// Takes a value apart.
    pub(super) fn leaves(&self, value: &IValue, symbol: Option<&Symbolic>) -> Leaves {
        let mut items = Vec::new();
        let structure = self.take_apart(value, symbol, &mut items);
        Leaves { structure, items }
    }

    /// The types of the program bound the depth of tuples.
    fn take_apart(&self, value: &IValue, symbol: Option<&Symbolic>, items: &mut Vec<Leaf>) -> Structure {
        let IValue::Tuple(tuple) = value else {
            items.push(Leaf { value: value.clone(), symbol: symbol.cloned() });
            return Structure::Leaf;
        };
        let symbols = self.symbols_of(value);
        let inner = tuple.items().iter().enumerate().map(|(i, item)| {
            let symbol = symbols.and_then(|symbols| symbols.get(i)).and_then(Option::as_ref);
            self.take_apart(item, symbol, items)
        });
        Structure::Tuple(inner.collect(), tuple.named_type())
    }

    /// Puts a value together. A leaf with a tensor has the element of that tensor as its value, if it is a number.
    pub(super) fn rebuilt(
        &mut self,
        leaves: &Leaves,
        tensors: &[Option<Tensor>],
    ) -> Res<(IValue, Option<Symbolic>)> {
        let mut items = Vec::with_capacity(leaves.items.len());
        for (leaf, tensor) in leaves.items.iter().zip(tensors) {
            items.push(match tensor {
                None => leaf.clone(),
                Some(tensor) if leaf.value.is_tensor() => {
                    Leaf { value: IValue::Tensor(tensor.clone()), symbol: None }
                }
                Some(tensor) => {
                    let symbol = self.item(tensor, &leaf.value)?;
                    Leaf { value: leaf.value.clone(), symbol: Some(symbol) }
                }
            });
        }
        let whole = self.put_together(&leaves.structure, &mut items.into_iter());
        let whole = whole.ok_or_else(|| KernelError::internal("a structure has no leaves"))?;
        Ok((whole.value, whole.symbol))
    }

    fn put_together(
        &mut self,
        structure: &Structure,
        items: &mut impl Iterator<Item = Leaf>,
    ) -> Option<Leaf> {
        let Structure::Tuple(inner, named) = structure else { return items.next() };
        let elements: Option<Vec<Leaf>> = inner.iter().map(|one| self.put_together(one, items)).collect();
        let (values, symbols): (Vec<IValue>, Vec<Option<Symbolic>>) =
            elements?.into_iter().map(|leaf| (leaf.value, leaf.symbol)).unzip();
        let value = IValue::Tuple(match named {
            Some(ty) => Tuple::named(*ty, values),
            None => Tuple::new(values),
        });
        self.made(std::slice::from_ref(&value));
        if symbols.iter().any(Option::is_some) {
            self.set_symbols(&value, symbols);
        }
        Some(Leaf { value, symbol: None })
    }

    /// Returns a leaf as an output of the innermost scope. `like` is the leaf of the same output in another block.
    pub(super) fn leaf_output(&mut self, leaf: &Leaf, like: &Leaf) -> Res<Argument> {
        let tensor = match (leaf.is_initialized(), leaf.tensor()) {
            (false, _) => self.zeros(like)?,
            (true, Some(tensor)) => tensor.clone(),
            (true, None) => self.number_tensor(&leaf.value, leaf.symbol.as_ref())?,
        };
        self.owned(&tensor)
    }

    /// Records zeros with the sizes and dtype of a leaf.
    pub(super) fn zeros(&mut self, like: &Leaf) -> Res<Tensor> {
        let zero = |dtype: DType| match dtype {
            DType::Bool => (Scalar::Bool(false), Argument::Bool(false)),
            _ => (Scalar::Int(0), Argument::Int(0)),
        };
        let (sizes, dtype) = match like.tensor() {
            Some(tensor) if self.sizes.of(tensor).is_some() => {
                return Err(refused(
                    "a variable that only some paths set is a tensor whose sizes are only known at run time",
                ));
            }
            Some(tensor) => (tensor.sizes().to_vec(), tensor.dtype()),
            None => (Vec::new(), number_dtype(&like.value).unwrap_or(DType::I64)),
        };
        let (number, arg) = zero(dtype);
        let made = Tensor::full(&sizes, number, dtype).map_err(KernelError::from)?;
        self.full(&made, arg)?;
        Ok(made)
    }

    /// Returns a tensor with the value of a leaf that has no name yet.
    pub(super) fn leaf_tensor(&mut self, leaf: &Leaf) -> Res<Tensor> {
        if let Some(tensor) = leaf.tensor() {
            let made = copied(tensor)?;
            self.give_sizes(tensor, &made);
            return Ok(made);
        }
        let scalar = leaf.value.as_scalar().ok_or_else(|| not_a_number(&leaf.value))?;
        let dtype = number_dtype(&leaf.value).ok_or_else(|| not_a_number(&leaf.value))?;
        Ok(Tensor::full(&[], scalar, dtype).map_err(KernelError::from)?)
    }

    /// Gives a tensor the symbolic sizes of another one with the same sizes.
    pub(super) fn give_sizes(&mut self, from: &Tensor, to: &Tensor) {
        let dims = self.sizes.of(from).map(<[_]>::to_vec);
        if let Some(dims) = dims {
            self.sizes.set(to, dims, &[]);
        }
    }
}

impl Results {
    /// Adds a result.
    pub(super) fn push(&mut self, (value, symbol): (IValue, Option<Symbolic>)) {
        self.values.push(value);
        self.symbols.push(symbol);
    }
}

/// Returns the dtype of the tensor that carries a number.
pub(super) fn number_dtype(value: &IValue) -> Option<DType> {
    match value {
        IValue::Int(_) => Some(DType::I64),
        IValue::Float(_) => Some(DType::F64),
        IValue::Bool(_) => Some(DType::Bool),
        _ => None,
    }
}

pub(super) fn not_a_number(value: &IValue) -> Stop {
    refused(format!(
        "a {} cannot be an output of a subgraph; only tensors, ints, floats and bools can",
        value.tag()
    ))
}

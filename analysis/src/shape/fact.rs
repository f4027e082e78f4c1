//! Facts about values: dtype, device, sizes, strides and gradient of a tensor; symbolic values of integers and lists of
//! integers; facts about the elements of tuples and lists.
//!
//! Facts form a lattice: [`Fact::join`] holds for either of two values (where branches meet), [`Fact::meet`] combines
//! two facts about one value. Facts are bounded in size, so that storing one per value is linear.

use super::{Range, Symbols};
use flambeau_ir::types::{Dim, TensorType, Type, TypeKind};
use flambeau_ir::value::{IValue, ListItems};
use flambeau_tensor::{DType, Device, Tensor};
use smallvec::SmallVec;

/// The sizes of a tensor.
pub type Dims = SmallVec<[Dim; 4]>;

/// Facts about the strides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Strides {
    /// Nothing is known.
    #[default]
    Unknown,
    /// The tensor is contiguous.
    Contiguous,
}

/// Facts about a tensor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct TensorFact {
    /// The element type.
    pub dtype: Option<DType>,
    /// The device.
    pub device: Option<Device>,
    /// The sizes, if the rank is known.
    pub dims: Option<Dims>,
    /// The strides.
    pub strides: Strides,
    /// Whether the tensor requires a gradient.
    pub requires_grad: Option<bool>,
    /// Whether the tensor is known to be an undefined gradient.
    pub undefined: bool,
}

/// Facts about a value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Fact {
    /// Nothing is known.
    #[default]
    Unknown,
    /// The value is `None`.
    None,
    /// The value is this bool.
    Bool(bool),
    /// The value is this integer.
    Int(Dim),
    /// The value has type `Tensor`: a tensor, or the undefined tensor, which the interpreter represents as `None`,
    /// unless the facts exclude it ([`TensorFact::admits_undefined`]). An undefined tensor differs from the `None` of
    /// an optional.
    Tensor(TensorFact),
    /// The value is a list with exactly these elements.
    List(Vec<Fact>),
    /// The value is a list; the fact holds for each element.
    ListOf(Box<Fact>),
    /// The value is a tuple of these elements.
    Tuple(Vec<Fact>),
}

/// Returns the dimension, unknown if it is negative: no tensor has such a size, but a type or an operator that fails may
/// state it, and rules divide by sizes.
fn possible(dim: Dim) -> Dim {
    match dim {
        Dim::Known(n) if n < 0 => Dim::Unknown,
        dim => dim,
    }
}

/// Maximum number of facts nested in a fact; a larger one is made less precise.
pub(super) const MAX_WEIGHT: usize = 256;

impl TensorFact {
    /// A tensor with these sizes.
    #[must_use]
    pub fn of_dims(dims: impl IntoIterator<Item = Dim>) -> Self {
        TensorFact { dims: Some(dims.into_iter().collect()), ..Self::default() }
    }

    /// A contiguous tensor with these sizes.
    #[must_use]
    pub fn contiguous(dims: impl IntoIterator<Item = Dim>) -> Self {
        TensorFact { strides: Strides::Contiguous, ..Self::of_dims(dims) }
    }

    /// Returns the fact with another dtype.
    #[must_use]
    pub fn with_dtype(mut self, dtype: Option<DType>) -> Self {
        self.dtype = dtype;
        self
    }

    /// Returns the facts about an actual tensor: dtype, device, sizes, and whether it is contiguous. Whether it requires a
    /// gradient remains unknown.
    #[must_use]
    pub fn of(tensor: &Tensor) -> Self {
        TensorFact {
            dtype: Some(tensor.dtype()),
            device: Some(tensor.device()),
            dims: Some(tensor.sizes().iter().map(|&n| Dim::Known(n)).collect()),
            strides: if tensor.is_contiguous() { Strides::Contiguous } else { Strides::Unknown },
            requires_grad: None,
            undefined: false,
        }
    }

    /// Returns the facts that a type states.
    #[must_use]
    pub fn of_type(ty: &TensorType) -> Self {
        let dims: Option<Dims> = ty.sizes.as_ref().map(|sizes| sizes.iter().map(|&d| possible(d)).collect());
        let contiguous = match (&dims, &ty.strides) {
            (Some(dims), Some(strides)) => is_contiguous(dims, strides),
            _ => false,
        };
        TensorFact {
            dtype: ty.dtype,
            device: ty.device,
            dims,
            strides: if contiguous { Strides::Contiguous } else { Strides::Unknown },
            requires_grad: ty.requires_grad,
            undefined: ty.undefined,
        }
    }

    /// Returns the type that states these facts. Strides are included only if every size but the outermost is known.
    #[must_use]
    pub fn to_type(&self) -> TensorType {
        let sizes: Option<Box<[Dim]>> = self.dims.as_ref().map(|dims| dims.iter().copied().collect());
        let strides = match (&self.dims, self.strides) {
            (Some(dims), Strides::Contiguous) => contiguous_strides(dims),
            _ => None,
        };
        TensorType {
            dtype: self.dtype,
            device: self.device,
            sizes,
            strides,
            requires_grad: self.requires_grad,
            undefined: self.undefined,
        }
    }

    /// Whether the undefined tensor satisfies the facts: none of them implies a defined tensor.
    #[must_use]
    pub fn admits_undefined(&self) -> bool {
        self.undefined || *self == TensorFact::default()
    }

    /// Returns the number of dimensions, if known.
    #[must_use]
    pub fn rank(&self) -> Option<usize> {
        self.dims.as_ref().map(SmallVec::len)
    }

    /// Returns the least upper bound: the facts about a tensor for which `self` or `other` holds. Differing sizes become new
    /// symbols.
    #[must_use]
    pub fn join(&self, other: &Self, symbols: &mut Symbols) -> Self {
        self.join_by(other, &mut |a, b, kind| symbol_for(symbols, a, b, kind))
    }

    fn join_by(&self, other: &Self, differ: &mut Differ<'_>) -> Self {
        fn both<T: PartialEq + Copy>(a: Option<T>, b: Option<T>) -> Option<T> {
            a.filter(|_| a == b)
        }
        let dims = match (&self.dims, &other.dims) {
            (Some(a), Some(b)) if a.len() == b.len() => {
                Some(a.iter().zip(b).map(|(&x, &y)| join_numbers(x, y, IntegerKind::Size, differ)).collect())
            }
            _ => None,
        };
        TensorFact {
            dtype: both(self.dtype, other.dtype),
            device: both(self.device, other.device),
            dims,
            strides: if self.strides == other.strides { self.strides } else { Strides::Unknown },
            requires_grad: both(self.requires_grad, other.requires_grad),
            undefined: self.undefined && other.undefined,
        }
    }

    /// Returns the greatest lower bound: the facts about a tensor for which `self` and `other` hold. Contradictions are
    /// resolved in favor of `self`.
    #[must_use]
    pub fn meet(&self, other: &Self) -> Self {
        let dims = match (&self.dims, &other.dims) {
            (Some(a), Some(b)) if a.len() == b.len() => {
                Some(a.iter().zip(b).map(|(&x, &y)| meet_dims(x, y)).collect())
            }
            (None, Some(b)) => Some(b.clone()),
            (a, _) => a.clone(),
        };
        TensorFact {
            dtype: self.dtype.or(other.dtype),
            device: self.device.or(other.device),
            dims,
            strides: if self.strides == Strides::Unknown { other.strides } else { self.strides },
            requires_grad: self.requires_grad.or(other.requires_grad),
            undefined: self.undefined || other.undefined,
        }
    }
}

/// The meaning of an integer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum IntegerKind {
    Size,
    Number,
}

/// Computes the join of two numbers that differ.
type Differ<'a> = dyn FnMut(Dim, Dim, IntegerKind) -> Dim + 'a;

fn symbol_for(symbols: &mut Symbols, a: Dim, b: Dim, kind: IntegerKind) -> Dim {
    let range = match kind {
        IntegerKind::Size => symbols.size_range(a).join(symbols.size_range(b)),
        IntegerKind::Number => symbols.range(a).join(symbols.range(b)),
    };
    symbols.fresh(range)
}

fn join_numbers(a: Dim, b: Dim, kind: IntegerKind, differ: &mut Differ<'_>) -> Dim {
    if a == b && a != Dim::Unknown { a } else { differ(a, b, kind) }
}

fn meet_dims(a: Dim, b: Dim) -> Dim {
    match (a, b) {
        (Dim::Known(_), _) => a,
        (_, Dim::Known(_)) => b,
        (Dim::Unknown, _) => b,
        _ => a,
    }
}

/// Whether strides are those of a contiguous tensor. The outermost size may be unknown.
fn is_contiguous(dims: &[Dim], strides: &[Option<i64>]) -> bool {
    let mut step = Some(1_i64);
    dims.len() == strides.len()
        && dims.iter().zip(strides).rev().all(|(&size, &stride)| {
            let fits = size == Dim::Known(1) || (step.is_some() && stride == step);
            step = step.zip(size.known()).and_then(|(step, n)| step.checked_mul(n.max(1)));
            fits
        })
}

fn contiguous_strides(dims: &[Dim]) -> Option<Box<[Option<i64>]>> {
    let mut step = Some(1_i64);
    let mut strides: Vec<Option<i64>> = Vec::with_capacity(dims.len());
    for dim in dims.iter().rev() {
        strides.push(Some(step?));
        step = step.zip(dim.known()).and_then(|(step, n)| step.checked_mul(n.max(1)));
    }
    strides.reverse();
    Some(strides.into())
}

impl From<TensorFact> for Fact {
    fn from(fact: TensorFact) -> Fact {
        Fact::Tensor(fact)
    }
}

impl Fact {
    /// Forgets negative sizes of tensors.
    pub(super) fn forget_impossible_sizes(&mut self) {
        match self {
            Fact::Tensor(t) => {
                let dims = t.dims.iter_mut().flatten();
                for dim in dims.filter(|dim| possible(**dim) != **dim) {
                    *dim = Dim::Unknown;
                    t.strides = Strides::Unknown;
                }
            }
            Fact::List(parts) | Fact::Tuple(parts) => {
                parts.iter_mut().for_each(Fact::forget_impossible_sizes)
            }
            Fact::ListOf(part) => part.forget_impossible_sizes(),
            Fact::Unknown | Fact::None | Fact::Bool(_) | Fact::Int(_) => {}
        }
    }

    /// A tensor without further facts.
    #[must_use]
    pub fn any_tensor() -> Fact {
        Fact::Tensor(TensorFact::default())
    }

    /// Returns the fact of a list with these elements. If it would have more than 256 nested facts, it is that of a list of
    /// unknown length, whose elements have the facts that are common to these.
    #[must_use]
    pub fn list(elems: Vec<Fact>) -> Fact {
        if weight(&elems) <= MAX_WEIGHT {
            return Fact::List(elems);
        }
        match Fact::List(elems).element() {
            Some(all) if all.weight() <= MAX_WEIGHT => Fact::ListOf(Box::new(all)),
            _ => Fact::Unknown,
        }
    }

    /// Returns the fact of a tuple with these elements; unknown if it would have more than 256 nested facts.
    #[must_use]
    pub fn tuple(elems: Vec<Fact>) -> Fact {
        if weight(&elems) <= MAX_WEIGHT { Fact::Tuple(elems) } else { Fact::Unknown }
    }

    /// Returns the facts that a type states. For list elements these are only their kind: operators replace elements
    /// without a check of other properties in the element type.
    #[must_use]
    pub fn of_type(ty: Type) -> Fact {
        if ty.weight() as usize > MAX_WEIGHT {
            return Fact::Unknown;
        }
        match ty.kind() {
            TypeKind::Tensor(t) => Fact::Tensor(TensorFact::of_type(t)),
            TypeKind::None => Fact::None,
            TypeKind::List(elem) => match Fact::of_type(elem.erase_shapes()) {
                Fact::Unknown => Fact::Unknown,
                elem => Fact::ListOf(Box::new(elem)),
            },
            TypeKind::Tuple(t) => Fact::tuple(t.elems.iter().map(|&e| Fact::of_type(e)).collect()),
            _ => Fact::Unknown,
        }
    }

    /// Returns the facts about an actual value. Contents below a depth of 8 are unknown, and so are tuples and lists of more
    /// than 256 elements or nested facts.
    #[must_use]
    pub fn of(value: &IValue) -> Fact {
        Self::of_bounded(value, 8)
    }

    fn of_bounded(value: &IValue, depth: u32) -> Fact {
        let inner = |v: &IValue| Self::of_bounded(v, depth.saturating_sub(1));
        match value {
            IValue::None => Fact::None,
            IValue::Bool(b) => Fact::Bool(*b),
            IValue::Int(n) => Fact::Int(Dim::Known(*n)),
            IValue::Tensor(t) => Fact::Tensor(TensorFact::of(t)),
            IValue::Tuple(t) if depth > 0 && t.items().len() <= MAX_WEIGHT => {
                Fact::tuple(t.items().iter().map(inner).collect())
            }
            IValue::List(list) if depth > 0 && list.len() <= MAX_WEIGHT => match &*list.read() {
                ListItems::Ints(v) => Fact::List(v.iter().map(|&n| Fact::Int(Dim::Known(n))).collect()),
                ListItems::Bools(v) => Fact::List(v.iter().map(|&b| Fact::Bool(b)).collect()),
                ListItems::Floats(v) => Fact::List(vec![Fact::Unknown; v.len()]),
                ListItems::Tensors(v) => {
                    Fact::List(v.iter().map(|t| Fact::Tensor(TensorFact::of(t))).collect())
                }
                ListItems::Values(v) => {
                    let elems: Vec<Fact> = v.iter().map(inner).collect();
                    if weight(&elems) <= MAX_WEIGHT { Fact::List(elems) } else { Fact::Unknown }
                }
            },
            _ => Fact::Unknown,
        }
    }

    /// Returns the number of nested facts, including this one.
    #[must_use]
    pub fn weight(&self) -> usize {
        match self {
            Fact::List(elems) | Fact::Tuple(elems) => 1 + weight(elems),
            Fact::ListOf(elem) => 1 + elem.weight(),
            _ => 1,
        }
    }

    /// Returns the facts about a tensor, if the value is one.
    #[must_use]
    pub fn as_tensor(&self) -> Option<&TensorFact> {
        match self {
            Fact::Tensor(t) => Some(t),
            _ => None,
        }
    }

    /// Returns the least upper bound: the fact about a value for which `self` or `other` holds. Differing numbers become new
    /// symbols.
    #[must_use]
    pub fn join(&self, other: &Self, symbols: &mut Symbols) -> Fact {
        self.join_by(other, &mut |a, b, kind| symbol_for(symbols, a, b, kind))
    }

    /// Like [`Fact::join`], where the symbols in `own` may take any value: the facts about loop-carried values after
    /// one more iteration. New symbols are added to `own`.
    pub(crate) fn widen(&self, next: &Self, own: &mut Vec<i64>, symbols: &mut Symbols) -> Fact {
        self.join_by(next, &mut |a, _, kind| match a {
            Dim::Sym(s) if own.contains(&s) => a,
            _ => {
                let fresh = symbols.fresh(if kind == IntegerKind::Size { Range::SIZE } else { Range::ALL });
                if let Dim::Sym(s) = fresh {
                    own.push(s);
                }
                fresh
            }
        })
    }

    /// Returns the fact that holds for each of several values, such as the elements of a list: as [`Fact::join`], but
    /// differing numbers become unknown, since one symbol would state that they are equal in all of the values.
    #[must_use]
    pub fn common(&self, other: &Self) -> Fact {
        self.join_by(other, &mut |_, _, _| Dim::Unknown)
    }

    fn join_by(&self, other: &Self, differ: &mut Differ<'_>) -> Fact {
        match (self, other) {
            (Fact::Int(a), Fact::Int(b)) => Fact::Int(join_numbers(*a, *b, IntegerKind::Number, differ)),
            (Fact::Tensor(a), Fact::Tensor(b)) => Fact::Tensor(a.join_by(b, differ)),
            (Fact::Tuple(a), Fact::Tuple(b)) if a.len() == b.len() => {
                Fact::Tuple(a.iter().zip(b).map(|(x, y)| x.join_by(y, differ)).collect())
            }
            (Fact::List(a), Fact::List(b)) if a.len() == b.len() => {
                Fact::List(a.iter().zip(b).map(|(x, y)| x.join_by(y, differ)).collect())
            }
            (Fact::List(_) | Fact::ListOf(_), Fact::List(_) | Fact::ListOf(_)) => {
                let all = match (self.element(), other.element()) {
                    (Some(a), Some(b)) => a.common(&b),
                    // An empty list has no element fact.
                    (a, b) => a.or(b).unwrap_or_default(),
                };
                Fact::ListOf(Box::new(all))
            }
            (a, b) if a == b => a.clone(),
            _ => Fact::Unknown,
        }
    }

    /// Returns the fact that holds for every element of a list; `None` if the list is empty or the value is not known
    /// to be a list.
    #[must_use]
    pub fn element(&self) -> Option<Fact> {
        match self {
            Fact::ListOf(e) => Some((**e).clone()),
            Fact::List(elems) => {
                let (first, rest) = elems.split_first()?;
                Some(rest.iter().fold(first.clone(), |all, e| if all == *e { all } else { all.common(e) }))
            }
            _ => None,
        }
    }

    /// Returns the greatest lower bound: the fact about a value for which `self` and `other` hold. Contradictions are
    /// resolved in favor of `self`.
    #[must_use]
    pub fn meet(&self, other: &Self) -> Fact {
        match (self, other) {
            (Fact::Unknown, b) => b.clone(),
            (Fact::Int(a), Fact::Int(b)) => Fact::Int(meet_dims(*a, *b)),
            (Fact::Tensor(a), Fact::Tensor(b)) => Fact::Tensor(a.meet(b)),
            (Fact::Tuple(a), Fact::Tuple(b)) if a.len() == b.len() => {
                Fact::Tuple(a.iter().zip(b).map(|(x, y)| x.meet(y)).collect())
            }
            (Fact::List(a), Fact::List(b)) if a.len() == b.len() => {
                Fact::List(a.iter().zip(b).map(|(x, y)| x.meet(y)).collect())
            }
            (Fact::List(a), Fact::ListOf(e)) => Fact::List(a.iter().map(|x| x.meet(e)).collect()),
            (Fact::ListOf(e), Fact::List(b)) => Fact::List(b.iter().map(|y| e.meet(y)).collect()),
            (Fact::ListOf(a), Fact::ListOf(b)) => Fact::ListOf(Box::new(a.meet(b))),
            (a, _) => a.clone(),
        }
    }

    /// Returns `ty` refined by the facts about its tensors.
    #[must_use]
    pub fn refine(&self, ty: Type) -> Type {
        match (self, ty.kind()) {
            (Fact::Tensor(fact), TypeKind::Tensor(t)) => {
                Type::tensor(fact.meet(&TensorFact::of_type(t)).to_type())
            }
            (Fact::Tensor(_), TypeKind::Optional(inner)) => self.refine(*inner),
            (Fact::None, TypeKind::Optional(_)) => Type::NONE,
            (Fact::Tuple(facts), TypeKind::Tuple(t)) if facts.len() == t.elems.len() => {
                let mut facts = facts.iter();
                ty.map_contained(|e| facts.next().map_or(e, |f| f.refine(e)))
            }
            _ => ty,
        }
    }

    /// Returns `ty` without the properties of tensors that the fact does not imply. Strides remain only if they are
    /// contiguous. Element types of lists and dictionaries remain as they are.
    #[must_use]
    pub fn erase_unimplied(&self, ty: Type) -> Type {
        match (ty.kind(), self) {
            (TypeKind::Tensor(t), _) => {
                self.common(&Fact::Tensor(TensorFact::of_type(t))).refine(Type::TENSOR)
            }
            (TypeKind::Optional(_), _) => ty.map_contained(|e| self.erase_unimplied(e)),
            (TypeKind::Tuple(t), Fact::Tuple(facts)) if facts.len() == t.elems.len() => {
                let mut facts = facts.iter();
                ty.map_contained(|e| facts.next().map_or(e, |f| f.erase_unimplied(e)))
            }
            (TypeKind::Tuple(_), _) => ty.map_contained(|e| Fact::Unknown.erase_unimplied(e)),
            _ => ty,
        }
    }

    /// Returns the range of an integer.
    #[must_use]
    pub fn int_range(&self, symbols: &Symbols) -> Range {
        match self {
            Fact::Int(d) => symbols.range(*d),
            _ => Range::ALL,
        }
    }
}

fn weight(elems: &[Fact]) -> usize {
    elems.iter().map(Fact::weight).sum()
}

//! Statically known properties of tensors.

use flambeau_tensor::{DType, Device, Tensor};

/// One size of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dim {
    /// A known size.
    Known(i64),
    /// An unknown size with a symbol; equal symbols of one graph denote equal sizes.
    Sym(i64),
    /// An unknown size.
    Unknown,
}

impl Dim {
    /// Returns the size if it is known.
    #[must_use]
    pub fn known(self) -> Option<i64> {
        match self {
            Self::Known(n) => Some(n),
            _ => None,
        }
    }

    /// Returns the dimension that describes both: itself if equal, else unknown.
    #[must_use]
    pub fn merge(self, other: Self) -> Self {
        if self == other { self } else { Self::Unknown }
    }
}

/// Statically known properties of a tensor. With no properties it is the plain `Tensor`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct TensorType {
    /// Element type.
    pub dtype: Option<DType>,
    /// Device.
    pub device: Option<Device>,
    /// One entry per dimension; `None` if the rank is unknown.
    pub sizes: Option<Box<[Dim]>>,
    /// One entry per dimension, each possibly unknown.
    pub strides: Option<Box<[Option<i64>]>>,
    /// Whether the tensor requires a gradient.
    pub requires_grad: Option<bool>,
    /// Whether the tensor is known to be undefined (a gradient that stands for zero).
    pub undefined: bool,
}

impl TensorType {
    /// Creates the properties of a contiguous tensor with this element type and these sizes.
    #[must_use]
    pub fn contiguous(dtype: DType, sizes: &[i64]) -> Self {
        let mut strides: Vec<Option<i64>> = vec![Some(1); sizes.len()];
        let mut step: i64 = 1;
        for (stride, &size) in strides.iter_mut().zip(sizes).rev() {
            *stride = Some(step);
            step = step.saturating_mul(size.max(1));
        }
        Self {
            dtype: Some(dtype),
            sizes: Some(sizes.iter().map(|&n| Dim::Known(n)).collect()),
            strides: Some(strides.into()),
            ..Self::default()
        }
    }

    /// Returns all properties of an existing tensor.
    #[must_use]
    pub fn of(tensor: &Tensor) -> Self {
        Self {
            dtype: Some(tensor.dtype()),
            device: Some(tensor.device()),
            sizes: Some(tensor.sizes().iter().map(|&n| Dim::Known(n)).collect()),
            strides: Some(tensor.strides().iter().map(|&n| Some(n)).collect()),
            requires_grad: Some(tensor.requires_grad()),
            undefined: false,
        }
    }

    /// Returns the number of dimensions if it is known.
    #[must_use]
    pub fn rank(&self) -> Option<usize> {
        self.sizes.as_ref().map(|s| s.len())
    }

    /// Returns the sizes if all are known.
    #[must_use]
    pub fn concrete_sizes(&self) -> Option<Vec<i64>> {
        self.sizes.as_ref()?.iter().map(|d| d.known()).collect()
    }

    /// Returns the strides if all are known and their number is the rank.
    #[must_use]
    pub fn concrete_strides(&self) -> Option<Vec<i64>> {
        let strides = self.strides.as_ref().filter(|s| Some(s.len()) == self.rank())?;
        strides.iter().copied().collect()
    }

    /// Returns the properties that both have.
    #[must_use]
    pub fn merge(&self, other: &Self) -> Self {
        fn both<T: PartialEq + Copy>(a: Option<T>, b: Option<T>) -> Option<T> {
            a.filter(|_| a == b)
        }
        let sizes = match (&self.sizes, &other.sizes) {
            (Some(a), Some(b)) if a.len() == b.len() => {
                Some(a.iter().zip(b).map(|(x, y)| x.merge(*y)).collect())
            }
            _ => None,
        };
        let strides: Option<Box<[Option<i64>]>> = match (&self.strides, &other.strides) {
            (Some(a), Some(b)) if a.len() == b.len() => {
                Some(a.iter().zip(b).map(|(x, y)| both(*x, *y)).collect())
            }
            _ => None,
        };
        let strides = strides.filter(|s| s.iter().any(Option::is_some));
        Self {
            dtype: both(self.dtype, other.dtype),
            device: both(self.device, other.device),
            sizes,
            strides,
            requires_grad: both(self.requires_grad, other.requires_grad),
            undefined: self.undefined && other.undefined,
        }
    }

    /// Returns the union of the properties; `None` if they contradict each other. If one of two sizes is symbolic and the
    /// other is known, the known size is used.
    #[must_use]
    pub fn meet(&self, other: &Self) -> Option<Self> {
        fn either<T: PartialEq + Clone>(a: &Option<T>, b: &Option<T>) -> Option<Option<T>> {
            match (a, b) {
                (Some(x), Some(y)) if x != y => None,
                _ => Some(a.clone().or_else(|| b.clone())),
            }
        }
        fn lists<T: Clone>(
            a: &Option<Box<[T]>>,
            b: &Option<Box<[T]>>,
            meet: impl Fn(&T, &T) -> Option<T>,
        ) -> Option<Option<Box<[T]>>> {
            match (a, b) {
                (Some(a), Some(b)) if a.len() != b.len() => None,
                (Some(a), Some(b)) => {
                    a.iter().zip(b).map(|(x, y)| meet(x, y)).collect::<Option<_>>().map(Some)
                }
                _ => Some(a.clone().or_else(|| b.clone())),
            }
        }
        let size = |a: &Dim, b: &Dim| match (a, b) {
            (Dim::Known(x), Dim::Known(y)) if x != y => None,
            (_, Dim::Known(_)) | (Dim::Unknown, _) => Some(*b),
            _ => Some(*a),
        };
        Some(Self {
            dtype: either(&self.dtype, &other.dtype)?,
            device: either(&self.device, &other.device)?,
            sizes: lists(&self.sizes, &other.sizes, size)?,
            strides: lists(&self.strides, &other.strides, either)?,
            requires_grad: either(&self.requires_grad, &other.requires_grad)?,
            undefined: self.undefined || other.undefined,
        })
    }

    /// Returns whether every property of `other` also holds here. A symbolic size of `other` matches any size, because
    /// symbols have no meaning outside their graph.
    #[must_use]
    pub fn implies(&self, other: &Self) -> bool {
        fn implied<T: PartialEq>(a: &Option<T>, b: &Option<T>) -> bool {
            b.is_none() || a == b
        }
        let sizes = match (&self.sizes, &other.sizes) {
            (_, None) => true,
            (Some(a), Some(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(x, y)| y.known().is_none() || x == y)
            }
            (None, Some(_)) => false,
        };
        let strides = match (&self.strides, &other.strides) {
            (_, None) => true,
            (Some(a), Some(b)) => a.len() == b.len() && a.iter().zip(b).all(|(x, y)| y.is_none() || x == y),
            (None, Some(_)) => false,
        };
        sizes
            && strides
            && implied(&self.dtype, &other.dtype)
            && implied(&self.device, &other.device)
            && implied(&self.requires_grad, &other.requires_grad)
            && (self.undefined || !other.undefined)
    }
}

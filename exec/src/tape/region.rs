//! Gradients that follow from layouts alone: a view reads a region of its base, a write through a view replaces that
//! region.

use crate::error::KernelError;
use flambeau_tensor::Layout;
use flambeau_tensor::{DType, Scalar, Tensor, reduce};

use crate::structural::sum_gradients;

/// Layout of a tensor in its storage, and its dtype.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Geometry {
    layout: Layout,
    dtype: DType,
}

impl Geometry {
    pub(super) fn of(tensor: &Tensor) -> Geometry {
        Geometry { layout: tensor.layout().clone(), dtype: tensor.dtype() }
    }

    /// Whether elements may share memory.
    pub(super) fn overlaps(&self) -> bool {
        !is_non_overlapping(&self.layout)
    }

    /// Returns the geometry of a tensor of the same sizes in memory of its own, without gaps.
    pub(super) fn contiguous(&self) -> Result<Geometry, KernelError> {
        Ok(Geometry { layout: Layout::contiguous(self.layout.sizes())?, dtype: self.dtype })
    }

    /// Returns a tensor of this geometry in zeroed memory that also covers `other`.
    pub(super) fn example(&self, other: &Geometry) -> Result<Tensor, KernelError> {
        self.on(&memory(other, self)?)
    }

    /// Returns zeros of these sizes and this dtype.
    pub(super) fn zeros(&self) -> Result<Tensor, KernelError> {
        Ok(Tensor::zeros(self.layout.sizes(), self.dtype)?)
    }

    fn on(&self, memory: &Tensor) -> Result<Tensor, KernelError> {
        Ok(Tensor::from_storage(memory.storage().clone(), self.dtype, self.layout.clone())?)
    }

    /// Returns the extent in the storage, in bytes.
    fn extent(&self) -> usize {
        self.layout.storage_end() * self.dtype.size()
    }

    /// Whether a gradient has these sizes and this dtype.
    pub(super) fn fits(&self, grad: &Tensor) -> bool {
        grad.sizes() == self.layout.sizes() && grad.dtype() == self.dtype
    }

    /// Whether gradients propagate to tensors of this dtype.
    pub(super) fn is_differentiable(&self) -> bool {
        self.dtype.is_floating() || self.dtype.is_complex()
    }

    /// Expands a tensor to these sizes and converts it to this dtype.
    pub(super) fn widen(&self, tensor: &Tensor) -> Result<Tensor, KernelError> {
        let real = tensor.dtype().is_complex() && !self.dtype.is_complex();
        let tensor = if real { tensor.view_as_real()?.select(-1, 0)? } else { tensor.clone() };
        Ok(tensor.expand(self.layout.sizes())?.to_dtype(self.dtype)?)
    }

    /// Converts a gradient to this dtype and sums it over broadcast dimensions to these sizes.
    pub(super) fn fit(&self, grad: Tensor) -> Result<Tensor, KernelError> {
        let mut grad = grad;
        if grad.dtype().is_complex() && !self.dtype.is_complex() {
            grad = grad.view_as_real()?.select(-1, 0)?;
        }
        let sizes = self.layout.sizes();
        if grad.sizes() != sizes {
            let lead = grad.rank().checked_sub(sizes.len()).ok_or_else(|| self.size_mismatch(&grad))?;
            let spread = |d: &usize| *d < lead || (sizes[*d - lead] == 1 && grad.sizes()[*d] != 1);
            let dims: Vec<i64> = (0..grad.rank()).filter(spread).map(|d| d as i64).collect();
            if !dims.is_empty() {
                grad = reduce::sum(&grad, Some(&dims), true, None)?;
            }
            grad = grad.reshape(sizes).map_err(|_| self.size_mismatch(&grad))?;
        }
        Ok(grad.to_dtype(self.dtype)?)
    }

    fn size_mismatch(&self, grad: &Tensor) -> KernelError {
        KernelError::input(format!(
            "a formula returned a gradient of sizes {:?}; expected sizes that broadcast to {:?}",
            grad.sizes(),
            self.layout.sizes()
        ))
    }
}

/// Allocates zeroed memory that covers both geometries.
fn memory(base: &Geometry, view: &Geometry) -> Result<Tensor, KernelError> {
    let elements = base.extent().max(view.extent()).div_ceil(base.dtype.size());
    Ok(Tensor::zeros(&[elements as i64], base.dtype)?)
}

/// Whether the gradient of elements reinterpreted as another type is the reinterpreted gradient: true for complex
/// numbers and their real and imaginary parts.
pub(super) fn reads_as(base: DType, view: DType) -> bool {
    let number = |dtype: DType| dtype.is_floating() || dtype.is_complex();
    base == view || (number(base) && number(view) && base.to_real() == view.to_real())
}

fn check_types(base: &Geometry, view: &Geometry) -> Result<(), KernelError> {
    if reads_as(base.dtype, view.dtype) {
        return Ok(());
    }
    let (base, view) = (base.dtype, view.dtype);
    Err(KernelError::unsupported(format!("gradients through a view of {base} elements as {view}")))
}

/// Places a tensor of geometry `from` in zeroed memory and reads the memory as geometry `to`. Where elements of geometry
/// `shared` share a memory location, each of them gets an equal part of its value.
pub(super) fn transfer(
    tensor: &Tensor,
    from: &Geometry,
    to: &Geometry,
    shared: Option<&Geometry>,
) -> Result<Tensor, KernelError> {
    check_types(from, to)?;
    let memory = memory(from, to)?;
    add_to(&from.on(&memory)?, tensor)?;
    let read = to.on(&memory)?.clone_contiguous()?;
    let Some(shared) = shared else { return Ok(read) };
    let counts = Tensor::zeros(memory.sizes(), memory.dtype())?;
    let ones = Tensor::full(&[], Scalar::Int(1), memory.dtype())?.expand(shared.layout.sizes())?;
    add_to(&shared.on(&counts)?, &ones)?;
    let counts = to.on(&counts)?.clone_contiguous()?;
    divided(&read, &counts)
}

/// Returns a copy of a tensor with the geometry of `base` in which the elements of the view are zero.
pub(super) fn erase(tensor: &Tensor, base: &Geometry, view: &Geometry) -> Result<Tensor, KernelError> {
    check_types(base, view)?;
    let memory = memory(base, view)?;
    let whole = base.on(&memory)?;
    whole.copy_(tensor)?;
    view.on(&memory)?.copy_(&Tensor::zeros(&[], view.dtype)?.expand(view.layout.sizes())?)?;
    Ok(whole.clone_contiguous()?)
}

/// Adds `grad` to `target`, whose elements may overlap in memory.
fn add_to(target: &Tensor, grad: &Tensor) -> Result<(), KernelError> {
    let mut open = vec![(target.clone(), grad.clone())];
    while let Some((target, grad)) = open.pop() {
        let repeats = |d: &usize| target.strides()[*d] == 0 && target.sizes()[*d] > 1;
        if let Some(dim) = (0..target.rank()).find(repeats) {
            let dim = dim as i64;
            open.push((target.select(dim, 0)?, reduce::sum(&grad, Some(&[dim]), false, None)?));
        } else if is_non_overlapping(target.layout()) {
            target.copy_(&sum_gradients(&target.clone_contiguous()?, &grad)?)?;
        } else {
            // Elements overlap along some dimension: add slice by slice.
            for i in 0..target.sizes()[0] {
                open.push((target.select(0, i)?, grad.select(0, i)?));
            }
        }
    }
    Ok(())
}

/// Whether no two elements share memory: each stride exceeds the extent of all dimensions with smaller strides.
fn is_non_overlapping(layout: &Layout) -> bool {
    let mut dims: Vec<(i64, i64)> = layout
        .strides()
        .iter()
        .copied()
        .zip(layout.sizes().iter().copied())
        .filter(|(_, n)| *n > 1)
        .collect();
    dims.sort_unstable();
    let mut covered = 0;
    dims.iter().all(|(stride, size)| {
        let apart = *stride > covered;
        covered += stride * (size - 1);
        apart
    })
}

/// Divides a gradient among elements that share memory; elements outside of the memory have no gradient.
fn divided(grad: &Tensor, counts: &Tensor) -> Result<Tensor, KernelError> {
    use flambeau_tensor::{Complex, loops};
    fn each<T: Copy + Default + PartialEq + std::ops::Div<Output = T>>(x: T, n: T) -> T {
        if n == T::default() { x } else { x / n }
    }
    Ok(match grad.dtype() {
        DType::F64 => loops::binary::<f64, f64, f64>(grad, counts, each)?,
        DType::F32 => loops::binary::<f32, f32, f32>(grad, counts, each)?,
        DType::C128 => loops::binary::<Complex<f64>, Complex<f64>, Complex<f64>>(grad, counts, each)?,
        DType::C64 => loops::binary::<Complex<f32>, Complex<f32>, Complex<f32>>(grad, counts, each)?,
        other => return Err(KernelError::unsupported(format!("gradients of repeated {other} elements"))),
    })
}

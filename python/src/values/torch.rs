//! Tensors of PyTorch, by the functions of its libraries or by DLPack.

use flambeau::tensor::Tensor;
use pyo3::exceptions::PyBufferError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyInt, PyString, PyType};

use super::aten::Aten;
use super::imported;
use crate::dlpack::{self, Access, Exchange};
use crate::errors::misuse;
use crate::lent::Loans;
use crate::tensor::PyTensor;

/// The functions of PyTorch that exchange tensors.
pub(super) struct Torch {
    pub(super) tensor: Py<PyType>,
    to_dlpack: Py<PyAny>,
    from_dlpack: Py<PyAny>,
    pub(super) device: Py<PyAny>,
    is_grad_enabled: Py<PyAny>,
    /// The variables of `torch.autograd.forward_ad`.
    forward_ad: Py<PyDict>,
    /// The level of forward-mode differentiation outside of its contexts: -1.
    no_level: Py<PyInt>,
    /// Returns false only if the thread is in no context of `torch.autocast` for the CPU.
    is_autocast: Py<PyAny>,
    /// The class `Generator`.
    pub(super) generator: Py<PyAny>,
    pub(super) check_modes: Py<PyAny>,
    aten: Option<Aten>,
    exchange: Option<Exchange>,
}

impl Torch {
    /// Takes the memory of a tensor of PyTorch.
    pub(super) fn take<'py>(&self, object: &Bound<'py, PyAny>, loans: &mut Loans) -> PyResult<Tensor> {
        let py = object.py();
        let known = self.aten.as_ref().map_or(Ok(None), |aten| aten.tensor(object))?;
        let requires_grad = match &known {
            Some(known) => known.requires_grad(),
            None => object.getattr(intern!(py, "requires_grad"))?.is_truthy()?,
        };
        if requires_grad && self.is_grad_enabled(py)? {
            return Err(PyErr::from_type(
                gradient_required(py)?.clone(),
                "the tensor requires a gradient; pass `tensor.detach()`",
            ));
        }
        if let Some(tensor) = known.map_or(Ok(None), |known| known.take(loans))? {
            return Ok(tensor);
        }
        // What DLPack refers to is a tensor in some versions of PyTorch, and not its memory, which the object may give up.
        self.take_by_dlpack(&object.call_method0(intern!(py, "detach"))?, loans)
    }

    /// Takes the memory of a tensor that requires no gradient and keeps its memory.
    fn take_by_dlpack<'py>(&self, object: &Bound<'py, PyAny>, loans: &mut Loans) -> PyResult<Tensor> {
        let py = object.py();
        let take = |object: &Bound<'py, PyAny>, loans: &mut Loans, access| match &self.exchange {
            Some(exchange) => exchange.take(object, loans, access),
            None => dlpack::import(&self.to_dlpack.bind(py).call1((object,))?, loans, access),
        };
        let is = |question: &Bound<'py, PyString>| object.call_method0(question)?.is_truthy();
        let tensor = take(object, loans, Access::AsLent)?;
        // The bits are not part of DLPack. What they mean is a copy, and a write of it would be lost.
        if is(intern!(py, "is_neg"))? || tensor.dtype().is_complex() && is(intern!(py, "is_conj"))? {
            let resolved = object.call_method0("resolve_conj")?.call_method0("resolve_neg")?;
            return take(&resolved, loans, Access::ReadOnly);
        }
        Ok(tensor)
    }

    /// Whether gradients are recorded on this thread.
    pub(super) fn is_grad_enabled(&self, py: Python<'_>) -> PyResult<bool> {
        match &self.aten {
            Some(aten) => Ok(aten.is_grad_enabled()),
            None => self.is_grad_enabled.bind(py).call0()?.is_truthy(),
        }
    }

    /// Whether this thread may be in a context of forward-mode differentiation, or of `torch.autocast`.
    pub(super) fn has_modes(&self, py: Python<'_>) -> PyResult<bool> {
        // Read as an object: Python has one object for -1.
        let level = self.forward_ad.bind(py).get_item(intern!(py, "_current_level"))?;
        let is_forward = level.is_some_and(|level| !level.is(&self.no_level));
        let is_autocast = || match &self.aten {
            Some(aten) => Ok(aten.is_autocast()),
            None => self.is_autocast.bind(py).call0()?.is_truthy(),
        };
        Ok(is_forward || is_autocast()?)
    }

    /// Returns a tensor of PyTorch over the memory of a tensor, or over a copy if PyTorch cannot have the memory.
    pub(super) fn tensor<'py>(&self, py: Python<'py>, tensor: &Tensor) -> PyResult<Bound<'py, PyAny>> {
        let give = |tensor: &Tensor| match &self.exchange {
            Some(exchange) => exchange.give(py, tensor),
            // PyTorch 2.6 takes legacy capsules only, which cannot state that memory is read-only.
            None => self.from_dlpack.bind(py).call1((dlpack::export(py, tensor, false)?,)),
        };
        match give(tensor) {
            Err(error) if error.is_instance_of::<PyBufferError>(py) => {
                give(&dlpack::or_raise(py, tensor.clone_data())?)
            }
            result => result,
        }
    }
}

/// Returns the exception of a tensor of PyTorch that requires a gradient where none is recorded.
pub(crate) fn gradient_required(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static REQUIRED: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    REQUIRED.import(py, "flambeau.jit", "GradientRequired")
}

/// Returns PyTorch if the program imported it.
pub(super) fn torch(py: Python<'_>) -> PyResult<Option<&'static Torch>> {
    static TORCH: PyOnceLock<Torch> = PyOnceLock::new();
    if let Some(torch) = TORCH.get(py) {
        return Ok(Some(torch));
    }
    let Some(module) = imported(intern!(py, "torch"))? else { return Ok(None) };
    let Ok(tensor) = module.getattr("Tensor") else { return Ok(None) };
    let (native, exchange) = (module.getattr("_C")?, module.getattr("utils")?.getattr("dlpack")?);
    // Functions of `_C` are faster than those of Python that call them. A version of PyTorch may not have them.
    let native = |name, otherwise: &Bound<'_, PyAny>, other| match native.getattr_opt(name)? {
        Some(function) => Ok(function.unbind()),
        None => otherwise.getattr(other).map(Bound::unbind),
    };
    let ours = py.import("flambeau._torch_autograd")?.into_any();
    let torch = Torch {
        aten: Aten::of(&module)?,
        exchange: Exchange::of(&tensor),
        tensor: tensor.cast_into::<PyType>()?.unbind(),
        to_dlpack: exchange.getattr("to_dlpack")?.unbind(),
        from_dlpack: native("_from_dlpack", &exchange, "from_dlpack")?,
        device: module.getattr("device")?.unbind(),
        is_grad_enabled: module.getattr("is_grad_enabled")?.unbind(),
        forward_ad: module
            .getattr("autograd")?
            .getattr("forward_ad")?
            .cast_into::<PyModule>()?
            .dict()
            .unbind(),
        no_level: PyInt::new(py, -1).unbind(),
        is_autocast: native("_is_any_autocast_enabled", &ours, "is_autocast")?,
        generator: module.getattr("Generator")?.unbind(),
        check_modes: ours.getattr("check_modes")?.unbind(),
    };
    Ok(Some(TORCH.get_or_init(py, || torch)))
}

/// Returns whether the program imported PyTorch.
pub(crate) fn is_torch_imported(py: Python<'_>) -> PyResult<bool> {
    torch(py).map(|torch| torch.is_some())
}

/// Returns a tensor of PyTorch over the memory of a tensor, or over a copy if PyTorch cannot have the memory.
#[pyfunction]
pub(crate) fn to_torch<'py>(tensor: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyAny>> {
    let py = tensor.py();
    let torch = torch(py)?.ok_or_else(|| misuse(py, "PyTorch is not imported".to_owned()))?;
    torch.tensor(py, &tensor.get().0)
}

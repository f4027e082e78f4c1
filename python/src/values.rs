//! Conversion of values between Python and programs.
//!
//! Arguments are converted under the type of their parameter: a list of Python becomes a `List[int]` or a `List[float]` as the
//! parameter says. Under `Any` the type follows from the value. Tensors of PyTorch and NumPy are taken without a copy, and
//! [`Call`] records the library of the first tensor, in which results are returned. A result that is an argument itself is
//! returned as the same Python object.
//!
//! Conversion recurses on the types of parameters, which have a depth limit, and otherwise on values up to [`MAX_DEPTH`].

use flambeau::exec::tape;
use flambeau::ir::schema::Argument;
use flambeau::ir::types::TypeKind;
use flambeau::ir::value::{Dict, EnumValue, HostObject, HostValue, List, Object, Str, Tuple};
use flambeau::ir::{Symbol, Type};
use flambeau::tensor::{Complex, Device, Layout, Tensor};
use flambeau::{Error, IValue};
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyBytes, PyComplex, PyDict, PyFloat, PyInt, PyList, PyRange, PyString, PyTuple};
use smallvec::SmallVec;

use crate::containers::Container;
use crate::dlpack::{self, Access};
use crate::errors::{misuse, raise};
use crate::host::Hosted;
use crate::lent::Loans;
use crate::program::ScriptObject;
use crate::rng;
use crate::tensor::PyTensor;
use numpy::Numpy;
use torch::torch;
pub(crate) use torch::{gradient_required, is_torch_imported, to_torch};

mod aten;
mod numpy;
mod torch;

/// Bound of the length of a list that one number stands for.
const MAX_REPEATED: u32 = 1 << 16;

/// Bound of the nesting of values whose type does not bound it.
const MAX_DEPTH: usize = 200;

/// The library whose tensors a call takes and returns.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Library {
    Own,
    Torch,
    Numpy,
}

/// The state of one call: the memory that its arguments lend.
pub(crate) struct Call<'a, 'py> {
    py: Python<'py>,
    /// The program whose classes the values are of.
    program: Option<&'a Hosted>,
    /// Objects that were made for instances of Python classes, with the instances.
    objects: Vec<(Object, Bound<'py, PyAny>)>,
    generators: rng::Generators<'py>,
    loans: Loans,
    tensors: SmallVec<[Taken<'py>; 4]>,
    library: Option<Library>,
}

/// A tensor of another library.
struct Taken<'py> {
    tensor: Tensor,
    /// The object that it was made from.
    object: Bound<'py, PyAny>,
    /// Its layout and version when it was taken. A tensor keeps its layouts, and has the first one again if a program gives it equal
    /// sizes, strides and memory: the address identifies them.
    layout: *const Layout,
    version: u64,
}

impl Taken<'_> {
    /// Whether a program changed its sizes, strides or memory.
    fn is_moved(&self) -> bool {
        !std::ptr::eq(self.tensor.layout(), self.layout)
    }
}

/// Why a value was not converted.
pub(crate) enum Failure {
    /// It is not of the type.
    Type,
    /// An exception was raised.
    Raised(PyErr),
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Failure {
        Failure::Raised(error)
    }
}

type Converted = Result<IValue, Failure>;

/// An object of Python as a value of programs.
#[derive(Debug)]
pub(crate) struct PyHost(pub(crate) Py<PyAny>);

impl HostObject for PyHost {
    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

/// Returns the name of the type of an object for messages, with the fields of a named tuple.
fn shown_type(object: &Bound<'_, PyAny>) -> String {
    let name = object.get_type().name().map_or_else(|_| "?".to_owned(), |name| name.to_string());
    let fields = object.is_instance_of::<PyTuple>().then(|| object.getattr(intern!(object.py(), "_fields")));
    match fields.and_then(Result::ok).and_then(|fields| fields.extract::<Vec<String>>().ok()) {
        Some(fields) => format!("{name} (aka NamedTuple({}))", fields.join(", ")),
        None => name,
    }
}

impl<'a, 'py> Call<'a, 'py> {
    /// Returns the state of a call of no program: its arguments and results have no classes of a program.
    pub(crate) fn new(py: Python<'py>) -> Call<'a, 'py> {
        Call::with(py, None)
    }

    // Inlined, because the space for tensors makes the state expensive to move.
    #[inline(always)]
    fn with(py: Python<'py>, program: Option<&'a Hosted>) -> Call<'a, 'py> {
        Call {
            py,
            program,
            objects: Vec::new(),
            generators: rng::Generators::default(),
            loans: Loans::default(),
            tensors: SmallVec::new(),
            library: None,
        }
    }

    /// Returns the state of a call of a program.
    #[inline(always)]
    pub(crate) fn of(py: Python<'py>, program: &'a Hosted) -> Call<'a, 'py> {
        Call::with(py, Some(program))
    }

    /// Makes results tensors of this package.
    pub(crate) fn in_own_tensors(self) -> Call<'a, 'py> {
        self.in_library(Some(Library::Own))
    }

    /// Makes results tensors of a library.
    pub(crate) fn in_library(mut self, library: Option<Library>) -> Call<'a, 'py> {
        self.library = library;
        self
    }

    /// Copies arguments of few bytes: the function neither writes them nor returns a view of them.
    pub(crate) fn copy_few(&mut self) {
        self.loans.copy_few();
    }

    /// Returns the library of the first tensor among the arguments.
    pub(crate) fn library(&self) -> Option<Library> {
        self.library
    }

    /// Converts an argument under the type of its parameter.
    ///
    /// # Errors
    /// Returns an exception that names the parameter.
    pub(crate) fn argument(&mut self, object: &Bound<'py, PyAny>, param: &Argument) -> PyResult<IValue> {
        self.argument_or(object, param, |found| {
            format!("argument `{}` must be of type {} but is of type {found}", param.name, param.ty)
        })
    }

    /// Converts an argument; `text` makes the message from the name of the type of an object that does not fit.
    ///
    /// # Errors
    /// Returns an exception with the message.
    pub(crate) fn argument_or(
        &mut self,
        object: &Bound<'py, PyAny>,
        param: &Argument,
        text: impl FnOnce(&str) -> String,
    ) -> PyResult<IValue> {
        let number = || object.is_instance_of::<PyInt>() || object.is_instance_of::<PyFloat>();
        let elem = || param.ty.optional_elem().unwrap_or(param.ty).list_elem();
        let repeated = param.n.filter(|n| *n <= MAX_REPEATED && number());
        let converted = match repeated.and_then(|n| Some((n, elem()?))) {
            // One number for all elements of a list of fixed length.
            Some((n, elem)) => self
                .value(object, elem, 0)
                .map(|value| IValue::List(List::from_values(elem, vec![value; n as usize]))),
            None => self.value(object, param.ty, 0),
        };
        converted.map_err(|failure| match failure {
            Failure::Raised(error) => error,
            Failure::Type => misuse(self.py, text(&shown_type(object))),
        })
    }

    /// Converts a value under a type.
    ///
    /// # Errors
    /// Returns [`Failure::Type`] if the value is not of the type.
    pub(crate) fn value(&mut self, object: &Bound<'py, PyAny>, ty: Type, depth: usize) -> Converted {
        if depth > MAX_DEPTH {
            return Err(self.too_deep());
        }
        match ty.kind() {
            TypeKind::Tensor(_) => Ok(IValue::Tensor(self.tensor(object)?)),
            TypeKind::None => {
                if object.is_none() {
                    Ok(IValue::None)
                } else {
                    Err(Failure::Type)
                }
            }
            TypeKind::Bool => match object.cast::<PyBool>() {
                Ok(b) => Ok(IValue::Bool(b.is_true())),
                Err(_) if object.is_instance_of::<PyInt>() => Ok(IValue::Bool(object.is_truthy()?)),
                Err(_) => object.extract().map(IValue::Bool).map_err(|_| Failure::Type),
            },
            TypeKind::Int => self.int(object),
            TypeKind::Float => match object.cast::<PyFloat>() {
                Ok(x) => Ok(IValue::Float(x.value())),
                Err(_) if object.is_instance_of::<PyComplex>() => Err(Failure::Type),
                Err(_) => object.extract().map(IValue::Float).map_err(|_| Failure::Type),
            },
            TypeKind::Complex => self.complex(object),
            TypeKind::Number => self.number(object),
            TypeKind::Str => self.text(object),
            TypeKind::Device => {
                let text = object.str()?;
                Device::parse(&text.to_string_lossy()).map(IValue::Device).map_err(|_| Failure::Type)
            }
            TypeKind::Generator => self.generator(object),
            TypeKind::Optional(_) if object.is_none() => Ok(IValue::None),
            TypeKind::Optional(inner) => self.value(object, *inner, depth + 1),
            TypeKind::List(_) | TypeKind::Dict(..) if let Some(shared) = shared(object)? => {
                if shared.fits(ty) { Ok(shared) } else { Err(Failure::Type) }
            }
            TypeKind::List(elem) => {
                let items = self.items(object, |_| *elem, depth)?;
                Ok(IValue::List(List::from_values(*elem, items)))
            }
            TypeKind::Tuple(tuple) => {
                let exact = object.cast::<PyTuple>().is_ok_and(|t| t.len() == tuple.elems.len());
                if !exact {
                    return Err(Failure::Type);
                }
                let items = self.items(object, |i| tuple.elems[i], depth)?;
                Ok(IValue::Tuple(if tuple.named.is_some() {
                    Tuple::named(ty, items)
                } else {
                    Tuple::new(items)
                }))
            }
            TypeKind::Dict(key, value) => self.dict(object, *key, *value, depth),
            TypeKind::Union(options) => {
                match self.inferred(object, depth) {
                    Ok(value) if options.iter().any(|&option| value.fits(option)) => return Ok(value),
                    Err(Failure::Raised(error)) => return Err(Failure::Raised(error)),
                    _ => {}
                }
                // As in PyTorch no scalar is converted to a type that is not its own.
                let is_container = |ty: &&Type| {
                    use TypeKind::{Bool, Complex, Float, Int, Number, Str};
                    !matches!(ty.kind(), Bool | Int | Float | Complex | Number | Str)
                };
                let mut tries =
                    options.iter().filter(is_container).map(|&option| self.value(object, option, depth + 1));
                tries.find(|tried| !matches!(tried, Err(Failure::Type))).unwrap_or(Err(Failure::Type))
            }
            TypeKind::Class(_) | TypeKind::Interface(_) | TypeKind::AnyClass => {
                self.object(object, depth)?.map(IValue::Object).ok_or(Failure::Type)
            }
            TypeKind::Enum(_, of) => {
                let name: String =
                    object.getattr("name").and_then(|n| n.extract()).map_err(|_| Failure::Type)?;
                let value = self.value(&object.getattr("value")?, *of, depth + 1)?;
                Ok(IValue::Enum(EnumValue::new(ty, Symbol::new(&name), value)))
            }
            TypeKind::PyObject => Ok(IValue::Host(HostValue::new(PyHost(object.clone().unbind())))),
            TypeKind::Any | TypeKind::AnyList | TypeKind::AnyTuple => {
                let value = self.inferred(object, depth)?;
                if value.fits(ty) { Ok(value) } else { Err(Failure::Type) }
            }
            _ => Err(Failure::Type),
        }
    }

    /// Converts a generator of PyTorch.
    fn generator(&mut self, object: &Bound<'py, PyAny>) -> Converted {
        let is_generator = match torch(self.py)? {
            Some(torch) => object.is_instance(torch.generator.bind(self.py))?,
            None => false,
        };
        let own = is_generator.then(|| self.generators.of_object(object)).transpose()?;
        own.map(IValue::Generator).ok_or(Failure::Type)
    }

    /// Moves the states of generators among the arguments back to PyTorch.
    ///
    /// # Errors
    /// The exception of PyTorch.
    pub(crate) fn give_back_generators(&self) -> PyResult<()> {
        self.generators.give_back(self.py)
    }

    fn too_deep(&self) -> Failure {
        Failure::Raised(misuse(self.py, format!("the value is nested more than {MAX_DEPTH} levels deep")))
    }

    fn int(&self, object: &Bound<'py, PyAny>) -> Converted {
        if let Ok(number) = object.extract::<i64>() {
            return Ok(IValue::Int(number));
        }
        if object.is_instance_of::<PyInt>() {
            return Err(Failure::Raised(misuse(self.py, format!("{object} does not fit into 64 bits"))));
        }
        // As dtypes, layouts and memory formats are.
        static CODE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let code = CODE.import(self.py, "flambeau._dtypes", "code_of")?.call1((object,))?;
        if let Ok(code) = code.extract() {
            return Ok(IValue::Int(code));
        }
        // A tensor with one element of any dtype, as in PyTorch.
        let is_tensor = object.is_instance_of::<PyTensor>()
            || torch(self.py)?.is_some_and(|t| object.is_instance(t.tensor.bind(self.py)).unwrap_or(false));
        let number = is_tensor.then(|| object.call_method0(intern!(self.py, "__int__")));
        number.and_then(Result::ok).and_then(|n| n.extract().ok()).map(IValue::Int).ok_or(Failure::Type)
    }

    /// Converts an object of a program, or an instance of a Python class that the program has compiled: its attributes are
    /// copied. An instance that occurs twice becomes one object.
    fn object(&mut self, object: &Bound<'py, PyAny>, depth: usize) -> Result<Option<Object>, Failure> {
        if let Ok(own) = object.cast::<ScriptObject>() {
            return Ok(Some(own.get().object().clone()));
        }
        let Some(program) = self.program else { return Ok(None) };
        if let Some(ty) = program.compiled_class(object) {
            if let Some((known, _)) = self.objects.iter().find(|(_, instance)| instance.is(object)) {
                return Ok(Some(known.clone()));
            }
            let Some(class) = program.unit().class(ty) else { return Ok(None) };
            let made = Object::new(ty, vec![IValue::Uninitialized; class.attributes.len()]);
            self.objects.push((made.clone(), object.clone()));
            for (slot, attribute) in class.attributes.iter().enumerate() {
                let value = object.getattr(attribute.name.as_str())?;
                let converted = self.value(&value, attribute.ty, depth + 1).map_err(|failure| match failure {
                    Failure::Type => Failure::Raised(misuse(
                        self.py,
                        format!(
                            "Could not cast attribute '{}' to type {}: it is of type {} in an object of {}",
                            attribute.name,
                            attribute.ty.annotation(),
                            shown_type(&value),
                            ty.annotation()
                        ),
                    )),
                    raised => raised,
                })?;
                made.set(slot, converted);
            }
            return Ok(Some(made));
        }
        match wrapped(object)? {
            Some(native) => Ok(native.cast::<ScriptObject>().ok().map(|own| own.get().object().clone())),
            None => Ok(None),
        }
    }

    fn complex(&self, object: &Bound<'py, PyAny>) -> Converted {
        if let Ok(z) = object.cast::<PyComplex>() {
            return Ok(IValue::complex(Complex::new(z.real(), z.imag())));
        }
        let real: f64 = object.extract().map_err(|_| Failure::Type)?;
        Ok(IValue::complex(Complex::new(real, 0.0)))
    }

    fn number(&self, object: &Bound<'py, PyAny>) -> Converted {
        if let Ok(b) = object.cast::<PyBool>() {
            return Ok(IValue::Bool(b.is_true()));
        }
        if object.is_instance_of::<PyComplex>() {
            return self.complex(object);
        }
        match object.cast::<PyFloat>() {
            Ok(x) => Ok(IValue::Float(x.value())),
            Err(_) => self.int(object),
        }
    }

    fn text(&self, object: &Bound<'py, PyAny>) -> Converted {
        if let Ok(bytes) = object.cast::<PyBytes>() {
            return Ok(IValue::Str(Str::concat(bytes.as_bytes(), &[])));
        }
        let text = object.cast::<PyString>().map_err(|_| Failure::Type)?;
        Ok(IValue::str(text.to_str().map_err(Failure::Raised)?))
    }

    /// Converts the elements of a list or tuple.
    fn items(
        &mut self,
        object: &Bound<'py, PyAny>,
        ty: impl Fn(usize) -> Type,
        depth: usize,
    ) -> Result<Vec<IValue>, Failure> {
        if let Ok(list) = object.cast::<PyList>() {
            return list.iter().enumerate().map(|(i, item)| self.value(&item, ty(i), depth + 1)).collect();
        }
        if let Ok(tuple) = object.cast::<PyTuple>() {
            return tuple.iter().enumerate().map(|(i, item)| self.value(&item, ty(i), depth + 1)).collect();
        }
        let range = object.cast::<PyRange>().map_err(|_| Failure::Type)?;
        let items = range.try_iter()?.enumerate();
        items.map(|(i, item)| self.value(&item?, ty(i), depth + 1)).collect()
    }

    fn dict(&mut self, object: &Bound<'py, PyAny>, key: Type, value: Type, depth: usize) -> Converted {
        let source = object.cast::<PyDict>().map_err(|_| Failure::Type)?;
        let dict = Dict::new(key, value);
        for (k, v) in source.iter() {
            let (k, v) = (self.value(&k, key, depth + 1)?, self.value(&v, value, depth + 1)?);
            dict.insert(k, v).map_err(|e| misuse(self.py, e.to_string()))?;
        }
        Ok(IValue::Dict(dict))
    }

    /// Converts a value whose type is not known.
    fn inferred(&mut self, object: &Bound<'py, PyAny>, depth: usize) -> Converted {
        if depth > MAX_DEPTH {
            return Err(self.too_deep());
        }
        if object.is_none() {
            return Ok(IValue::None);
        }
        let number = object.is_instance_of::<PyInt>()
            || object.is_instance_of::<PyFloat>()
            || object.is_instance_of::<PyComplex>();
        if number {
            return self.number(object);
        }
        if object.is_instance_of::<PyString>() {
            return self.text(object);
        }
        if let Some(object) = self.object(object, depth)? {
            return Ok(IValue::Object(object));
        }
        if let Some(ty) = self.program.and_then(|program| program.compiled_enumeration(object)) {
            return self.value(object, ty, depth);
        }
        if let Some(shared) = shared(object)? {
            return Ok(shared);
        }
        if let Ok(tuple) = object.cast::<PyTuple>() {
            let items: Result<Vec<_>, _> = tuple.iter().map(|item| self.inferred(&item, depth + 1)).collect();
            return Ok(IValue::Tuple(Tuple::new(items?)));
        }
        if let Ok(list) = object.cast::<PyList>() {
            let items: Result<Vec<_>, _> = list.iter().map(|item| self.inferred(&item, depth + 1)).collect();
            let items = items?;
            return Ok(IValue::List(List::from_values(common(&items), items)));
        }
        if let Ok(source) = object.cast::<PyDict>() {
            let mut pairs = Vec::new();
            for (k, v) in source.iter() {
                pairs.push((self.inferred(&k, depth + 1)?, self.inferred(&v, depth + 1)?));
            }
            let (keys, values): (Vec<_>, Vec<_>) = pairs.iter().cloned().unzip();
            let dict = Dict::new(common(&keys), common(&values));
            for (k, v) in pairs {
                dict.insert(k, v).map_err(|e| misuse(self.py, e.to_string()))?;
            }
            return Ok(IValue::Dict(dict));
        }
        match self.tensor(object) {
            Err(Failure::Type) => self.device_or_dtype(object),
            tensor => tensor.map(IValue::Tensor),
        }
    }

    /// Converts a device, or a dtype, layout or memory format, which are integers in programs.
    fn device_or_dtype(&mut self, object: &Bound<'py, PyAny>) -> Converted {
        if object.get_type().name()? == "device" {
            return self.value(object, Type::DEVICE, 0);
        }
        self.int(object)
    }

    /// Takes a tensor of any library.
    ///
    /// # Errors
    /// Returns [`Failure::Type`] for other objects.
    pub(crate) fn tensor(&mut self, object: &Bound<'py, PyAny>) -> Result<Tensor, Failure> {
        if let Ok(tensor) = object.cast::<PyTensor>() {
            self.library.get_or_insert(Library::Own);
            return Ok(tensor.get().0.clone());
        }
        if let Some(known) = self.tensors.iter().find(|known| known.object.is(object)) {
            return Ok(known.tensor.clone());
        }
        // NumPy is first because PyTorch's type tests objects of other types in a method.
        let numpy = Numpy::imported(self.py)?;
        if let Some(tensor) = numpy.map_or(Ok(None), |numpy| numpy.take(object, &mut self.loans))? {
            return Ok(self.taken(tensor, object, Library::Numpy));
        }
        if let Some(torch) = torch(self.py)?
            && object.is_instance(torch.tensor.bind(self.py))?
        {
            let tensor = torch.take(object, &mut self.loans)?;
            return Ok(self.taken(tensor, object, Library::Torch));
        }
        let method = object.getattr(intern!(self.py, "__dlpack__")).map_err(|_| Failure::Type)?;
        let tensor = dlpack::import(&capsule_of(&method)?, &mut self.loans, Access::AsLent)?;
        let is_array = numpy.is_some_and(|numpy| numpy.is_array(object));
        Ok(self.taken(tensor, object, if is_array { Library::Numpy } else { Library::Own }))
    }

    /// Keeps the object that a tensor was made from.
    fn taken(&mut self, tensor: Tensor, object: &Bound<'py, PyAny>, library: Library) -> Tensor {
        self.library.get_or_insert(library);
        let (layout, version) = (std::ptr::from_ref(tensor.layout()), tensor.version());
        self.tensors.push(Taken { tensor: tensor.clone(), object: object.clone(), layout, version });
        tensor
    }

    /// Whether all arguments must be converted again, because their memory overlaps. What was taken so far is given back then.
    pub(crate) fn restart(&mut self) -> bool {
        let is_outdated = self.loans.is_outdated();
        if is_outdated {
            self.objects.clear();
            self.tensors.clear();
            self.loans.restart();
        }
        is_outdated
    }

    /// Refuses tensors of forward-mode differentiation, and warns of mixed precision, if arguments are tensors of PyTorch.
    ///
    /// # Errors
    /// The exception of `flambeau._torch_autograd.check_modes`.
    pub(crate) fn check_modes(&self) -> PyResult<()> {
        let py = self.py;
        if self.tensors.is_empty() || self.library != Some(Library::Torch) {
            return Ok(());
        }
        let Some(torch) = torch(py)? else { return Ok(()) };
        if torch.has_modes(py)? {
            let objects = PyTuple::new(py, self.tensors.iter().map(|taken| &taken.object))?;
            torch.check_modes.bind(py).call1((objects, PyDict::new(py)))?;
        }
        Ok(())
    }

    /// Tells PyTorch what a run did to its tensors: that their memory was written, their new sizes and strides, and that they
    /// require gradients.
    ///
    /// # Errors
    /// The exception of PyTorch.
    pub(crate) fn tell_torch(&self) -> PyResult<()> {
        if self.tensors.is_empty() || self.library != Some(Library::Torch) {
            return Ok(());
        }
        let Some(torch) = torch(self.py)? else { return Ok(()) };
        for taken in &self.tensors {
            let is_torch = || taken.object.is_instance(torch.tensor.bind(self.py));
            if (taken.tensor.version() != taken.version || taken.is_moved()) && is_torch()? {
                let result = taken.is_moved().then(|| torch.tensor(self.py, &taken.tensor)).transpose()?;
                helper(self.py, "after_write")?.call1((&taken.object, result))?;
            }
            if taken.tensor.requires_grad() && is_torch()? {
                taken.object.call_method0(intern!(self.py, "requires_grad_"))?;
            }
        }
        Ok(())
    }

    /// Converts a result.
    ///
    /// # Errors
    /// Returns an exception for values that Python has no form for.
    pub(crate) fn result(
        &self,
        value: &IValue,
        program: &Hosted,
        depth: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = self.py;
        if depth > MAX_DEPTH {
            return Err(misuse(py, format!("the result is nested more than {MAX_DEPTH} levels deep")));
        }
        let next = |value: &IValue| self.result(value, program, depth + 1);
        Ok(match value {
            IValue::None | IValue::Uninitialized => py.None().into_bound(py),
            IValue::Bool(b) => PyBool::new(py, *b).to_owned().into_any(),
            IValue::Int(i) => PyInt::new(py, *i).into_any(),
            IValue::Float(x) => PyFloat::new(py, *x).into_any(),
            IValue::Complex(z) => PyComplex::from_doubles(py, z.re, z.im).into_any(),
            IValue::Str(text) => match text.to_str() {
                Some(text) => PyString::new(py, text).into_any(),
                None => PyBytes::new(py, text.as_bytes()).into_any(),
            },
            IValue::Tensor(tensor) => self.tensor_result(tensor)?,
            IValue::List(list) => {
                let items: PyResult<Vec<_>> = list.to_vec().iter().map(next).collect();
                PyList::new(py, items?)?.into_any()
            }
            IValue::Dict(dict) => {
                let out = PyDict::new(py);
                for (key, value) in dict.to_vec() {
                    out.set_item(next(&key)?, next(&value)?)?;
                }
                out.into_any()
            }
            IValue::Tuple(tuple) => {
                let items: PyResult<Vec<_>> = tuple.items().iter().map(next).collect();
                let items = PyTuple::new(py, items?)?;
                let class = tuple.named_type().and_then(|ty| program.python_class(py, ty));
                if let Some(class) = class {
                    return class.call_method1("_make", (items,));
                }
                match tuple.named_type().and_then(Type::as_tuple).and_then(|t| t.named.as_ref()) {
                    Some(named) => {
                        let fields: Vec<&str> = named.fields.iter().map(|f| f.name.as_str()).collect();
                        helper(py, "named_tuple")?.call1((named.name.as_str(), fields, items))?
                    }
                    None => items.into_any(),
                }
            }
            IValue::Object(object) => match program.python_class(py, object.class()) {
                Some(class) => self.instance(object, class, program, depth)?,
                None => Bound::new(py, ScriptObject::new(program.clone(), object.clone()))?.into_any(),
            },
            IValue::Enum(member) => {
                if let Some(class) = program.python_class(py, member.ty()) {
                    return class.get_item(member.name().as_str());
                }
                let name = member.ty().annotation_str();
                helper(py, "enum_member")?.call1((name, member.name().as_str(), next(member.value())?))?
            }
            IValue::Device(device) => match torch(py)?.filter(|_| self.is_of_torch()) {
                Some(torch) => torch.device.bind(py).call1((device.to_string(),))?,
                None => helper(py, "device")?.call1((device.to_string(),))?,
            },
            IValue::Host(host) => match host.downcast::<PyHost>() {
                Some(object) => object.0.bind(py).clone(),
                None => return Err(PyTypeError::new_err("the result is an object of another host")),
            },
            IValue::Future(future) => match future.result() {
                Some(Ok(value)) => next(&value)?,
                _ => return Err(PyTypeError::new_err("the result is a future that is not done")),
            },
            IValue::Function(name) => PyString::new(py, name.as_str()).into_any(),
            IValue::Generator(_) => self.generators.object_of(value).ok_or_else(|| {
                PyTypeError::new_err("a generator that a program makes cannot be returned to Python")
            })?,
        })
    }

    /// Makes an instance of the Python class of an object, without its constructor. As in PyTorch an argument that is returned
    /// becomes an instance with the attributes that the program gave it, and stays as it was itself.
    fn instance(
        &self,
        object: &Object,
        class: Bound<'py, PyAny>,
        program: &Hosted,
        depth: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        let made = class.call_method1("__new__", (&class,))?;
        let attributes = program.unit().class(object.class()).map(|class| &class.attributes);
        let values = object.read().clone();
        for (attribute, value) in attributes.into_iter().flatten().zip(&values) {
            made.setattr(attribute.name.as_str(), self.result(value, program, depth + 1)?)?;
        }
        Ok(made)
    }

    /// Whether the call is one of PyTorch: with its tensors, or without tensors and of its program.
    fn is_of_torch(&self) -> bool {
        match self.library {
            Some(library) => library == Library::Torch,
            None => self.program.is_some_and(|program| program.of_torch),
        }
    }

    /// Whether PyTorch records no gradients on this thread, and the call is one of PyTorch.
    ///
    /// # Errors
    /// The exception of PyTorch.
    pub(crate) fn is_under_no_grad(&self) -> PyResult<bool> {
        // Whether PyTorch is imported is a look-up in a dictionary.
        let torch = if self.is_of_torch() { torch(self.py)? } else { None };
        torch.map_or(Ok(false), |torch| Ok(!torch.is_grad_enabled(self.py)?))
    }

    /// Marks tensors of PyTorch that require gradients, in a call that records none: the program may ask.
    ///
    /// # Errors
    /// The exception of PyTorch.
    pub(crate) fn mark_required(&self) -> PyResult<()> {
        let Some(torch) = torch(self.py)? else { return Ok(()) };
        for taken in &self.tensors {
            if taken.object.is_instance(torch.tensor.bind(self.py))?
                && taken.object.getattr(intern!(self.py, "requires_grad"))?.is_truthy()?
            {
                taken.tensor.set_requires_grad(true);
            }
        }
        Ok(())
    }

    fn tensor_result(&self, tensor: &Tensor) -> PyResult<Bound<'py, PyAny>> {
        let py = self.py;
        if let Some(known) = self.tensors.iter().find(|known| known.tensor.ptr_eq(tensor)) {
            // The shape of an array cannot always be changed.
            if !known.is_moved() || self.library == Some(Library::Torch) {
                return Ok(known.object.clone());
            }
        }
        let own = |tensor: &Tensor| Ok(Bound::new(py, PyTensor(tensor.clone()))?.into_any());
        match self.library.or_else(|| self.is_of_torch().then_some(Library::Torch)) {
            Some(Library::Torch) => match torch(py)? {
                Some(torch) => {
                    let made = torch.tensor(py, tensor)?;
                    // A leaf of the program is a leaf of PyTorch too.
                    if tensor.requires_grad() && tape::is_leaf(tensor) {
                        made.call_method0(intern!(py, "requires_grad_"))?;
                    }
                    Ok(made)
                }
                None => own(tensor),
            },
            Some(Library::Numpy) => {
                let given = Numpy::imported(py)?.map_or(Ok(None), |numpy| numpy.give(py, tensor))?;
                given.map_or_else(|| helper(py, "to_numpy")?.call1((own(tensor)?,)), Ok)
            }
            _ => own(tensor),
        }
    }
}

/// Returns the list or dictionary that an object of `flambeau.jit` shares with programs.
fn shared(object: &Bound<'_, PyAny>) -> PyResult<Option<IValue>> {
    if object.is_exact_instance_of::<PyList>() || object.is_exact_instance_of::<PyDict>() {
        return Ok(None);
    }
    let native = wrapped(object)?;
    Ok(native.and_then(|native| native.cast::<Container>().ok().map(|own| own.get().value())))
}

/// Returns the object of a program that an object of `flambeau.jit` stands for.
fn wrapped<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let ty = object.get_type();
    if ty.hasattr(intern!(object.py(), "_wraps_native"))? {
        return object.getattr(intern!(object.py(), "_native")).map(Some);
    }
    Ok(None)
}

/// Returns the type of elements: theirs if it is the same for all, otherwise `Any`.
fn common(items: &[IValue]) -> Type {
    let mut types = items.iter().map(IValue::type_of);
    let Some(first) = types.next() else { return Type::TENSOR };
    let same = |ty: Type| ty == first || ty.is_tensor() && first.is_tensor();
    match types.all(same) {
        true if first.is_tensor() => Type::TENSOR,
        true => first,
        false => Type::ANY,
    }
}

/// Returns a function of `flambeau._values`.
pub(crate) fn helper<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    static HELPERS: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let module =
        HELPERS.get_or_try_init(py, || PyModule::import(py, "flambeau._values").map(Bound::unbind))?;
    module.bind(py).getattr(name)
}

/// Calls a method `__dlpack__`: for a versioned capsule if the library knows them.
fn capsule_of<'py>(method: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    static OPTIONS: PyOnceLock<Py<PyDict>> = PyOnceLock::new();
    let py = method.py();
    let options = OPTIONS.get_or_try_init(py, || {
        let options = PyDict::new(py);
        options.set_item("max_version", (1, 0)).map(|()| options.unbind())
    })?;
    match method.call((), Some(options.bind(py))) {
        Err(error) if error.is_instance_of::<PyTypeError>(py) => method.call0(),
        other => other,
    }
}

/// Returns a module if the program imported it.
fn imported<'py>(name: &Bound<'py, PyString>) -> PyResult<Option<Bound<'py, PyAny>>> {
    static MODULES: PyOnceLock<Py<PyDict>> = PyOnceLock::new();
    let py = name.py();
    let modules = MODULES.get_or_try_init(py, || {
        py.import("sys")?.getattr("modules")?.cast_into::<PyDict>().map(Bound::unbind).map_err(PyErr::from)
    })?;
    modules.bind(py).get_item(name)
}

/// Raises an error of the compiler in Python.
pub(crate) fn or_raise<T>(py: Python<'_>, result: Result<T, Error>) -> PyResult<T> {
    result.map_err(|error| raise(py, &error))
}

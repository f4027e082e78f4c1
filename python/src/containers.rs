//! Lists and dictionaries that Python and programs share.
//!
//! A call copies a list of Python into a list of the program. A [`Container`] is a list or dictionary of programs itself: a call
//! takes it as it is, and both sides see changes. The methods here convert elements under the container's types; the classes
//! `ScriptList` and `ScriptDict` (`flambeau/_containers.py`) have the interface of Python's over them.

use flambeau::ir::value::{Dict, List};
use flambeau::{IValue, Type};
use pyo3::exceptions::{PyIndexError, PyKeyError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::errors::misuse;
use crate::host::Hosted;
use crate::program::empty_program;
use crate::values::{Call, Failure};

/// A list or dictionary of programs.
#[pyclass(name = "Container", module = "flambeau._native", frozen)]
pub(crate) struct Container {
    value: Items,
    /// The program in whose terms elements are converted: one without classes.
    program: Hosted,
}

enum Items {
    List(List),
    Dict(Dict),
}

impl Container {
    /// Returns the list or dictionary, not a copy.
    pub(crate) fn value(&self) -> IValue {
        match &self.value {
            Items::List(list) => IValue::List(list.clone()),
            Items::Dict(dict) => IValue::Dict(dict.clone()),
        }
    }

    fn of(value: IValue, program: Hosted) -> Option<Container> {
        let value = match value {
            IValue::List(list) => Items::List(list),
            IValue::Dict(dict) => Items::Dict(dict),
            _ => return None,
        };
        Some(Container { value, program })
    }

    /// Converts an element or a key.
    fn converted(&self, object: &Bound<'_, PyAny>, ty: Type) -> PyResult<IValue> {
        // Python takes an integer as a float and a float as a bool; elements have exactly the type.
        let value = Call::of(object.py(), &self.program).value(object, Type::ANY, 0);
        let value = match value {
            Ok(value) if value.fits(ty) => Ok(value),
            // A container within this one, whose type does not follow from its elements.
            Ok(IValue::List(_) | IValue::Dict(_)) => {
                Call::of(object.py(), &self.program).value(object, ty, 0)
            }
            Ok(_) => Err(Failure::Type),
            Err(failure) => Err(failure),
        };
        value.map_err(|failure| match failure {
            Failure::Raised(error) => error,
            Failure::Type => {
                let found = object.get_type().name().map_or_else(|_| "?".to_owned(), |n| n.to_string());
                PyTypeError::new_err(format!("expected a value of type {ty} but found one of type {found}"))
            }
        })
    }

    fn python<'py>(&self, py: Python<'py>, value: &IValue) -> PyResult<Bound<'py, PyAny>> {
        Call::of(py, &self.program).result(value, &self.program, 0)
    }

    fn position(key: &Bound<'_, PyAny>) -> PyResult<usize> {
        key.extract().map_err(|_| PyIndexError::new_err("list index out of range"))
    }
}

#[pymethods]
impl Container {
    /// Copies a list or dictionary of Python, whose elements must be of one type.
    #[new]
    fn new(object: &Bound<'_, PyAny>) -> PyResult<Container> {
        let py = object.py();
        let is_container = object.is_instance_of::<PyList>() || object.is_instance_of::<PyDict>();
        let program = empty_program(py)?;
        let inferred = Call::of(py, &program).value(object, Type::ANY, 0);
        let value = match inferred {
            Ok(value) if is_container => value,
            Err(Failure::Raised(error)) => return Err(error),
            _ => {
                return Err(misuse(
                    py,
                    "a list or a dictionary of values that TorchScript supports".to_owned(),
                ));
            }
        };
        let mixed = match &value {
            IValue::List(list) => list.elem_type() == Type::ANY,
            IValue::Dict(dict) => dict.key_type() == Type::ANY || dict.value_type() == Type::ANY,
            _ => false,
        };
        if mixed {
            return Err(misuse(py, "the elements of the container are of different types".to_owned()));
        }
        Container::of(value, program).ok_or_else(|| misuse(py, "no list or dictionary".to_owned()))
    }

    /// The type in programs.
    #[getter]
    fn type_text(&self) -> String {
        self.value().type_of().annotation_str()
    }

    fn __len__(&self) -> usize {
        match &self.value {
            Items::List(list) => list.len(),
            Items::Dict(dict) => dict.len(),
        }
    }

    /// The elements as a list or dictionary of Python.
    fn copied<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.python(py, &self.value())
    }

    /// A list with these elements and this list's type.
    fn with_elements(&self, elements: &Bound<'_, PyAny>) -> PyResult<Container> {
        let (py, ty) = (elements.py(), self.value().type_of());
        let program = self.program.clone();
        let value = Call::of(py, &program).value(elements, ty, 0);
        match value {
            Ok(value) => {
                let made = Container::of(value, program);
                made.ok_or_else(|| misuse(py, "no list or dictionary".to_owned()))
            }
            Err(Failure::Raised(error)) => Err(error),
            Err(Failure::Type) => Err(PyTypeError::new_err(format!("expected elements of {ty}"))),
        }
    }

    /// Checks that a value can be a key of a dictionary or an element of a list.
    fn check(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let ty = match &self.value {
            Items::List(list) => list.elem_type(),
            Items::Dict(dict) => dict.key_type(),
        };
        self.converted(value, ty).map(|_| ())
    }

    /// The element at a position or under a key.
    fn get<'py>(&self, py: Python<'py>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let found = match &self.value {
            Items::List(list) => list
                .get(Container::position(key)?)
                .ok_or_else(|| PyIndexError::new_err("list index out of range"))?,
            Items::Dict(dict) => {
                let own = self.converted(key, dict.key_type())?;
                let found = dict.get(&own).map_err(|e| misuse(py, e.to_string()))?;
                found.ok_or_else(|| PyKeyError::new_err(key.clone().unbind()))?
            }
        };
        self.python(py, &found)
    }

    /// Replaces an element, or adds one to a dictionary.
    fn set(&self, py: Python<'_>, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        match &self.value {
            Items::List(list) => {
                let (at, value) = (Container::position(key)?, self.converted(value, list.elem_type())?);
                list.set(at, value).map_err(|_| PyIndexError::new_err("list index out of range"))
            }
            Items::Dict(dict) => {
                let key = self.converted(key, dict.key_type())?;
                let value = self.converted(value, dict.value_type())?;
                dict.insert(key, value).map(|_| ()).map_err(|e| misuse(py, e.to_string()))
            }
        }
    }

    /// Inserts an element into a list.
    fn insert(&self, at: usize, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let Items::List(list) = &self.value else {
            return Err(misuse(value.py(), "`insert` of a dictionary".to_owned()));
        };
        let value = self.converted(value, list.elem_type())?;
        let mut items = list.write();
        let at = at.min(items.len());
        items.insert(at, value);
        Ok(())
    }

    /// Removes an element.
    fn remove(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<()> {
        match &self.value {
            Items::List(list) => {
                let at = Container::position(key)?;
                let mut items = list.write();
                if at >= items.len() {
                    return Err(PyIndexError::new_err("list index out of range"));
                }
                items.remove(at);
                Ok(())
            }
            Items::Dict(dict) => {
                let own = self.converted(key, dict.key_type())?;
                let removed = dict.write().remove(&own).map_err(|e| misuse(py, e.to_string()))?;
                removed.map(|_| ()).ok_or_else(|| PyKeyError::new_err(key.clone().unbind()))
            }
        }
    }

    /// Removes all elements.
    fn clear(&self) {
        match &self.value {
            Items::List(list) => list.write().truncate(0),
            Items::Dict(dict) => dict.write().clear(),
        }
    }
}

//! Arguments of nodes as values of the graph.
//!
//! An argument is a value by name, a constant, or a list of both. A constant takes the type of its parameter: an integer
//! for a parameter of type `float` is a float constant, and dtypes, layouts and memory formats become the integers that
//! TorchScript uses for them.

use crate::codes::SchemaEnum;
use flambeau_ir::types::TypeKind;
use flambeau_ir::{IValue, Prim, Type, ValueId};
use flambeau_tensor as tensor;

use super::{Lowering, Res};
use crate::error::quoted;
use crate::model::{Argument, Device, Layout, MemoryFormat, ScalarType, Sym};
use crate::{ExportCode, ExportError};

/// Returns the name of the value that an argument refers to; `None` for a constant or a list.
pub(super) fn value_name(arg: &Argument) -> Option<&str> {
    match arg {
        Argument::Tensor(name) | Argument::OptionalTensor(Some(name)) => Some(name),
        Argument::SymInt(Sym::Name(name)) => Some(name),
        Argument::SymFloat(Sym::Name(name)) => Some(name),
        Argument::SymBool(Sym::Name(name)) => Some(name),
        Argument::CustomObj { name, .. } => Some(name),
        _ => None,
    }
}

impl<'m> Lowering<'m> {
    /// Returns the value of an argument for which no type is known.
    pub(super) fn free(&mut self, arg: &'m Argument) -> Res<ValueId> {
        self.argument(arg, Type::ANY)
    }

    /// Returns the value of an argument for a parameter of type `ty`.
    pub(super) fn argument(&mut self, arg: &'m Argument, ty: Type) -> Res<ValueId> {
        let ty = ty.unwrap_optional();
        let elem = ty.list_elem();
        Ok(match arg {
            Argument::None | Argument::OptionalTensor(None) => self.constant(IValue::None, Type::NONE),
            Argument::Tensor(name) | Argument::OptionalTensor(Some(name)) => self.value(name)?,
            Argument::Tensors(names) => {
                let items: Vec<ValueId> = names.iter().map(|name| self.value(name)).collect::<Res<_>>()?;
                self.list(elem.unwrap_or(Type::TENSOR), &items)
            }
            Argument::OptionalTensors(names) => {
                let mut items = Vec::with_capacity(names.len());
                for name in names {
                    items.push(match name {
                        Some(name) => self.value(name)?,
                        None => self.constant(IValue::None, Type::NONE),
                    });
                }
                self.list(elem.unwrap_or(Type::optional(Type::TENSOR)), &items)
            }
            Argument::NestedTensors(lists) => {
                let mut items = Vec::with_capacity(lists.len());
                for names in lists {
                    let inner: Vec<ValueId> =
                        names.iter().map(|name| self.value(name)).collect::<Res<_>>()?;
                    items.push(self.list(Type::TENSOR, &inner));
                }
                self.list(Type::list(Type::TENSOR), &items)
            }
            Argument::SymInt(Sym::Name(name)) => self.value(name)?,
            Argument::SymFloat(Sym::Name(name)) => self.value(name)?,
            Argument::SymBool(Sym::Name(name)) => self.value(name)?,
            Argument::SymInts(items) => self.mixed(items, elem.unwrap_or(Type::INT), IValue::Int)?,
            Argument::SymFloats(items) => self.mixed(items, elem.unwrap_or(Type::FLOAT), IValue::Float)?,
            Argument::SymBools(items) => self.mixed(items, elem.unwrap_or(Type::BOOL), IValue::Bool)?,
            _ => {
                let (value, ty) = constant(arg, ty)?;
                self.constant(value, ty)
            }
        })
    }

    /// Returns the values of a list of operands of a higher-order operator.
    pub(super) fn operands(&mut self, arg: &'m Argument) -> Res<Vec<ValueId>> {
        match arg {
            Argument::Tensors(names) => names.iter().map(|name| self.value(name)).collect(),
            Argument::OptionalTensors(names) => names
                .iter()
                .map(|name| match name {
                    Some(name) => self.value(name),
                    None => Ok(self.constant(IValue::None, Type::NONE)),
                })
                .collect(),
            Argument::SymInts(items) => {
                items.iter().map(|item| self.item(item, Type::INT, IValue::Int)).collect()
            }
            Argument::SymFloats(items) => {
                items.iter().map(|item| self.item(item, Type::FLOAT, IValue::Float)).collect()
            }
            Argument::SymBools(items) => {
                items.iter().map(|item| self.item(item, Type::BOOL, IValue::Bool)).collect()
            }
            Argument::Ints(items) => Ok(items.iter().map(|&n| self.int(n)).collect()),
            Argument::Floats(items) => {
                Ok(items.iter().map(|&x| self.constant(IValue::Float(x), Type::FLOAT)).collect())
            }
            Argument::Bools(items) => {
                Ok(items.iter().map(|&b| self.constant(IValue::Bool(b), Type::BOOL)).collect())
            }
            Argument::None => Ok(Vec::new()),
            _ => Err(unfit("the operands of a higher-order operator are not a list of values")),
        }
    }

    fn list(&mut self, elem: Type, items: &[ValueId]) -> ValueId {
        self.edit().value(Prim::ListConstruct, items, Type::list(elem))
    }

    fn item<T: Copy>(&mut self, item: &'m Sym<T>, ty: Type, of: impl Fn(T) -> IValue) -> Res<ValueId> {
        match item {
            Sym::Name(name) => self.value(name),
            Sym::Value(value) => Ok(self.constant(of(*value), ty)),
        }
    }

    /// Returns a list of names and constants: a constant if there are no names.
    fn mixed<T: Copy>(&mut self, items: &'m [Sym<T>], elem: Type, of: impl Fn(T) -> IValue) -> Res<ValueId> {
        let known: Option<Vec<IValue>> = items
            .iter()
            .map(|item| match item {
                Sym::Value(value) => adapted(of(*value), elem),
                Sym::Name(_) => None,
            })
            .collect();
        if let Some(values) = known {
            return Ok(self.constant(IValue::list(elem, values), Type::list(elem)));
        }
        let values: Vec<ValueId> = items.iter().map(|item| self.item(item, elem, &of)).collect::<Res<_>>()?;
        Ok(self.list(elem, &values))
    }
}

/// Returns a number as an element of type `ty`; `None` if it would lose its value.
fn adapted(value: IValue, ty: Type) -> Option<IValue> {
    match (value, ty.kind()) {
        (IValue::Int(n), TypeKind::Float) => Some(IValue::Float(n as f64)),
        (IValue::Bool(b), TypeKind::Int) => Some(IValue::Int(i64::from(b))),
        (value, _) => Some(value),
    }
}

/// Returns a constant argument with its type, for a parameter of type `ty`.
///
/// # Errors
/// `E012` for an argument that is no constant, `E011` for one that is not supported.
pub fn constant(arg: &Argument, ty: Type) -> Res<(IValue, Type)> {
    let elem = ty.list_elem();
    let list = |default: Type, values: Vec<IValue>| {
        let elem = elem.filter(|e| !matches!(e.kind(), TypeKind::Any)).unwrap_or(default);
        let values: Option<Vec<IValue>> = values.into_iter().map(|v| adapted(v, elem)).collect();
        let values = values.unwrap_or_default();
        (IValue::list(elem, values), Type::list(elem))
    };
    Ok(match arg {
        Argument::Int(n) | Argument::SymInt(Sym::Value(n)) => number(IValue::Int(*n), Type::INT, ty),
        Argument::Float(x) | Argument::SymFloat(Sym::Value(x)) => number(IValue::Float(*x), Type::FLOAT, ty),
        Argument::Bool(b) | Argument::SymBool(Sym::Value(b)) => number(IValue::Bool(*b), Type::BOOL, ty),
        Argument::Complex { real, imag } => {
            (IValue::complex(tensor::Complex::new(*real, *imag)), Type::COMPLEX)
        }
        Argument::String(text) => match ty.kind() {
            TypeKind::Device => (device(text)?, Type::DEVICE),
            _ => (IValue::str(text), Type::STR),
        },
        Argument::Ints(items) => list(Type::INT, items.iter().map(|&n| IValue::Int(n)).collect()),
        Argument::Floats(items) => list(Type::FLOAT, items.iter().map(|&x| IValue::Float(x)).collect()),
        Argument::Bools(items) => list(Type::BOOL, items.iter().map(|&b| IValue::Bool(b)).collect()),
        Argument::Strings(items) => list(Type::STR, items.iter().map(|s| IValue::str(s)).collect()),
        Argument::IntLists(lists) => {
            let items = lists.iter().map(|l| IValue::ints(l.clone())).collect();
            list(Type::list(Type::INT), items)
        }
        Argument::FloatLists(lists) => {
            let floats =
                |l: &Vec<f64>| IValue::list(Type::FLOAT, l.iter().map(|&x| IValue::Float(x)).collect());
            list(Type::list(Type::FLOAT), lists.iter().map(floats).collect())
        }
        Argument::ScalarType(dtype) => (IValue::Int(dtype_number(*dtype)?), Type::INT),
        Argument::MemoryFormat(format) => (IValue::Int(memory_format(*format)?), Type::INT),
        Argument::Layout(layout) => (IValue::Int(layout_number(*layout)?), Type::INT),
        Argument::Device(own) => (device_value(own)?, Type::DEVICE),
        Argument::Graph { .. } => return Err(unfit("an operator cannot have a subgraph as an argument")),
        Argument::Operator(name) => {
            return Err(unfit(format!("the operator {} is not a value", quoted(name))));
        }
        Argument::CustomObj { name, .. } => {
            let message = format!("the custom object {} is not supported", quoted(name));
            return Err(ExportError::new(ExportCode::Operator, message));
        }
        Argument::Dict(_) => {
            return Err(ExportError::new(
                ExportCode::Operator,
                "a dictionary as an argument is not supported",
            ));
        }
        _ => return Err(unfit("the argument is not a constant")),
    })
}

/// Returns a number as a constant for a parameter of type `ty`.
fn number(value: IValue, own: Type, ty: Type) -> (IValue, Type) {
    match (&value, ty.kind()) {
        (IValue::Int(n), TypeKind::Float) => (IValue::Float(*n as f64), Type::FLOAT),
        _ => (value, own),
    }
}

fn dtype_number(dtype: ScalarType) -> Res<i64> {
    let number = dtype.dtype().map(tensor::DType::scalar_type);
    number.ok_or_else(|| unsupported(format!("the dtype {}", dtype.name())))
}

fn memory_format(format: MemoryFormat) -> Res<i64> {
    let own = match format {
        MemoryFormat::Contiguous => tensor::MemoryFormat::Contiguous,
        MemoryFormat::ChannelsLast => tensor::MemoryFormat::ChannelsLast,
        MemoryFormat::ChannelsLast3d => tensor::MemoryFormat::ChannelsLast3d,
        MemoryFormat::Preserve => tensor::MemoryFormat::Preserve,
        MemoryFormat::Unknown => return Err(unsupported("an unknown memory format".to_owned())),
    };
    Ok(own as i64)
}

fn layout_number(layout: Layout) -> Res<i64> {
    match layout {
        Layout::Strided => Ok(tensor::TensorLayout::Strided as i64),
        other => Err(unsupported(format!("the layout {}", other.name()))),
    }
}

fn device_value(own: &Device) -> Res<IValue> {
    match own.index {
        Some(index) => device(&format!("{}:{index}", own.kind)),
        None => device(&own.kind),
    }
}

fn device(text: &str) -> Res<IValue> {
    let unknown = |_| unsupported(format!("the device {}", quoted(text)));
    tensor::Device::parse(text).map(IValue::Device).map_err(unknown)
}

#[cold]
fn unfit(message: impl Into<String>) -> ExportError {
    ExportError::new(ExportCode::Argument, message)
}

#[cold]
fn unsupported(what: String) -> ExportError {
    ExportError::new(ExportCode::Operator, format!("{what} is not supported"))
}

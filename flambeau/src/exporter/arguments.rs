//! Arguments of operators as the schema of exported programs has them.
//!
//! Arguments are in the order of the operator's schema. One that equals its default is left out; those before the first
//! omitted one are passed by position, the others by name, as in PyTorch's files.

use super::record::{Recorder, sym_argument};
use super::symbolic::Symbolic;
use super::{Res, refused};
use flambeau_export::model::{
    Argument, ArgumentKind, Device, Layout, MemoryFormat, NamedArgument, ScalarType, Sym,
};
use flambeau_ir::schema::FunctionSchema;
use flambeau_ir::types::TypeKind;
use flambeau_ir::{IValue, Type};
use flambeau_tensor::{self as tensor, DType, TensorLayout};

impl Recorder {
    /// Converts the arguments of an operator, of which there is one per parameter.
    pub(super) fn arguments(
        &mut self,
        schema: &FunctionSchema,
        values: &[IValue],
        symbols: &[Option<Symbolic>],
    ) -> Res<Vec<NamedArgument>> {
        let mut arguments = Vec::with_capacity(values.len());
        let mut by_position = true;
        for (i, (parameter, value)) in schema.args.iter().zip(values).enumerate() {
            let symbol = symbols.get(i).and_then(Option::as_ref);
            let is_default = symbol.is_none()
                && self.symbols_of(value).is_none()
                && parameter.default.as_ref().is_some_and(|default| is_equal(default, value));
            if is_default {
                by_position = false;
                continue;
            }
            by_position &= !parameter.kwarg_only;
            let arg = match symbol {
                Some(symbol) => self.number(symbol)?,
                None => self.argument(value, parameter.real_ty).map_err(|stop| match stop {
                    super::Stop::Export(e) => {
                        super::Stop::Export(e.in_field(parameter.name.as_str()).at_node(&schema.full_name()))
                    }
                    run @ super::Stop::Run(_) => run,
                })?,
            };
            let kind = if by_position { ArgumentKind::Positional } else { ArgumentKind::Keyword };
            arguments.push(NamedArgument { name: parameter.name.to_string(), arg, kind: Some(kind) });
        }
        Ok(arguments)
    }

    /// Returns the argument for a symbolic number.
    pub(super) fn number(&mut self, symbol: &Symbolic) -> Res<Argument> {
        let name = self.number_name(symbol)?;
        Ok(sym_argument(symbol, name))
    }

    /// Converts a value for a parameter of a type as written.
    fn argument(&mut self, value: &IValue, ty: Type) -> Res<Argument> {
        let ty = ty.unwrap_optional();
        Ok(match value {
            IValue::None => Argument::None,
            IValue::Tensor(tensor) => Argument::Tensor(self.name_of(tensor)?),
            IValue::Bool(b) => Argument::Bool(*b),
            IValue::Int(n) => return coded(*n, ty),
            IValue::Float(x) => Argument::Float(*x),
            IValue::Complex(z) => Argument::Complex { real: z.re, imag: z.im },
            IValue::Str(text) => Argument::String(text.to_text().into_owned()),
            IValue::Device(device) => {
                // The only device is the processor.
                Argument::Device(Device { kind: device.type_name().to_owned(), index: None })
            }
            IValue::List(list) => {
                let items = list.to_vec();
                let symbols = self.symbols_of(value).cloned();
                let elem = ty.list_elem().unwrap_or_else(|| list.elem_type());
                match symbols {
                    Some(symbols) => self.symbolic_list(&items, &symbols)?,
                    None => self.list(&items, elem)?,
                }
            }
            other => return Err(refused(format!("a {} cannot be an argument of an operator", other.tag()))),
        })
    }

    fn list(&mut self, items: &[IValue], elem: Type) -> Res<Argument> {
        let is_optional = matches!(elem.kind(), TypeKind::Optional(_));
        let tensors = |item: &IValue| item.is_tensor() || item.is_none();
        if is_optional && items.iter().all(tensors) {
            let name = |item: &IValue| item.as_tensor().map(|tensor| self.name_of(tensor)).transpose();
            return Ok(Argument::OptionalTensors(items.iter().map(name).collect::<Res<_>>()?));
        }
        fn all<T>(items: &[IValue], each: impl Fn(&IValue) -> Option<T>) -> Option<Vec<T>> {
            items.iter().map(each).collect()
        }
        let mixed = || refused("a list of values of several types cannot be an argument of an operator");
        Ok(match elem.unwrap_optional().kind() {
            _ if elem.is_tensor() || items.first().is_some_and(IValue::is_tensor) => {
                let mut names = Vec::with_capacity(items.len());
                for item in items {
                    names.push(self.name_of(item.as_tensor().ok_or_else(mixed)?)?);
                }
                Argument::Tensors(names)
            }
            TypeKind::Float => {
                let float = |item: &IValue| item.as_float().or(item.as_int().map(|n| n as f64));
                Argument::Floats(all(items, float).ok_or_else(mixed)?)
            }
            TypeKind::Bool => Argument::Bools(all(items, IValue::as_bool).ok_or_else(mixed)?),
            TypeKind::Str => {
                let text = |item: &IValue| Some(item.as_str()?.to_text().into_owned());
                Argument::Strings(all(items, text).ok_or_else(mixed)?)
            }
            _ if items.iter().any(IValue::is_float) => {
                Argument::Floats(all(items, IValue::as_float).ok_or_else(mixed)?)
            }
            _ => Argument::Ints(all(items, IValue::as_int).ok_or_else(mixed)?),
        })
    }

    /// Converts a list of which some elements are symbolic integers.
    fn symbolic_list(&mut self, items: &[IValue], symbols: &[Option<Symbolic>]) -> Res<Argument> {
        let mut out = Vec::with_capacity(items.len());
        for (item, symbol) in items.iter().zip(symbols) {
            out.push(match (symbol, item) {
                (Some(symbol), IValue::Int(_)) => Sym::Name(self.number_name(symbol)?),
                (None, IValue::Int(n)) => Sym::Value(*n),
                _ => return Err(refused("symbolic numbers in a list must be integers")),
            });
        }
        Ok(Argument::SymInts(out))
    }
}

/// Converts an integer that may stand for a dtype, a layout or a memory format.
fn coded(n: i64, ty: Type) -> Res<Argument> {
    let unknown = |kind: &str| refused(format!("{n} is not the number of a {kind}"));
    Ok(match ty.kind() {
        TypeKind::ScalarType => {
            let dtype = DType::from_scalar_type(n).and_then(ScalarType::of_dtype);
            Argument::ScalarType(dtype.ok_or_else(|| unknown("dtype"))?)
        }
        TypeKind::Layout => match TensorLayout::from_number(n) {
            Some(TensorLayout::Strided) => Argument::Layout(Layout::Strided),
            _ => return Err(unknown("supported layout")),
        },
        TypeKind::MemoryFormat => {
            let format = tensor::MemoryFormat::from_number(n).ok_or_else(|| unknown("memory format"))?;
            Argument::MemoryFormat(match format {
                tensor::MemoryFormat::Contiguous => MemoryFormat::Contiguous,
                tensor::MemoryFormat::Preserve => MemoryFormat::Preserve,
                tensor::MemoryFormat::ChannelsLast => MemoryFormat::ChannelsLast,
                tensor::MemoryFormat::ChannelsLast3d => MemoryFormat::ChannelsLast3d,
            })
        }
        TypeKind::Float => Argument::Float(n as f64),
        _ => Argument::Int(n),
    })
}

/// Returns whether an argument equals its default. Lists are equal if their elements are.
fn is_equal(default: &IValue, value: &IValue) -> bool {
    match (default, value) {
        (IValue::None, IValue::None) => true,
        (IValue::List(a), IValue::List(b)) => {
            let (a, b) = (a.to_vec(), b.to_vec());
            a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| is_equal(a, b))
        }
        (IValue::Int(a), IValue::Int(b)) => a == b,
        (IValue::Bool(a), IValue::Bool(b)) => a == b,
        (IValue::Float(a), IValue::Float(b)) => a.to_bits() == b.to_bits(),
        (IValue::Str(a), IValue::Str(b)) => a == b,
        _ => false,
    }
}

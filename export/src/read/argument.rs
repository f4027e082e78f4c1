//! Reads arguments, symbolic scalars and metadata of tensors.

use super::{Reader, need, string, strings, union, unknown_tag};
use crate::codes::SchemaEnum;
use crate::error::quoted;
use crate::expr::ExprId;
use crate::json::{JsonReader, Res};
use crate::model::{
    Argument, CustomObj, Device, Layout, MemoryFormat, ScalarType, Sym, SymBool, SymFloat, SymInt, TensorMeta,
};
use crate::{ExportCode, ExportError};

impl<'a> Reader<'a> {
    /// Reads an argument.
    pub(super) fn argument(&mut self, json: &mut JsonReader<'a>) -> Res<Argument> {
        union(json, |json, tag| {
            Ok(match tag {
                "as_none" => {
                    json.bool()?;
                    Argument::None
                }
                "as_tensor" => Argument::Tensor(self.name(json)?),
                "as_int" => Argument::Int(json.int()?),
                "as_float" => Argument::Float(json.float()?),
                "as_string" => Argument::String(string(json)?),
                "as_bool" => Argument::Bool(json.bool()?),
                "as_sym_int" => Argument::SymInt(sym(json, "as_int", JsonReader::int)?),
                "as_sym_float" => Argument::SymFloat(sym(json, "as_float", JsonReader::float)?),
                "as_sym_bool" => Argument::SymBool(sym(json, "as_bool", JsonReader::bool)?),
                "as_scalar_type" => Argument::ScalarType(scalar_type(json)?),
                "as_memory_format" => {
                    Argument::MemoryFormat(numbered(json, "memory format", MemoryFormat::of_number)?)
                }
                "as_layout" => Argument::Layout(layout(json)?),
                "as_device" => Argument::Device(self.device(json)?),
                "as_operator" => Argument::Operator(string(json)?),
                "as_complex" => self.complex(json)?,
                "as_graph" => self.subgraph(json)?,
                "as_custom_obj" => {
                    let CustomObj { name, class } = self.custom_obj(json)?;
                    Argument::CustomObj { name, class }
                }
                "as_optional_tensor" => Argument::OptionalTensor(self.optional_name(json)?),
                _ => self.list_argument(json, tag)?,
            })
        })
    }

    /// Reads the argument of a tag for lists or dictionaries.
    fn list_argument(&mut self, json: &mut JsonReader<'a>, tag: &str) -> Res<Argument> {
        Ok(match tag {
            "as_tensors" => Argument::Tensors(self.names(json)?),
            "as_optional_tensors" => Argument::OptionalTensors(json.array(|json| self.optional_name(json))?),
            "as_nested_tensors" => Argument::NestedTensors(json.array(|json| self.names(json))?),
            "as_ints" => Argument::Ints(json.array(JsonReader::int)?),
            "as_int_lists" => Argument::IntLists(json.array(|json| json.array(JsonReader::int))?),
            "as_floats" => Argument::Floats(json.array(JsonReader::float)?),
            "as_float_lists" => Argument::FloatLists(json.array(|json| json.array(JsonReader::float))?),
            "as_strings" => Argument::Strings(strings(json)?),
            "as_bools" => Argument::Bools(json.array(JsonReader::bool)?),
            "as_sym_ints" => Argument::SymInts(json.array(|json| sym(json, "as_int", JsonReader::int))?),
            "as_sym_floats" => {
                Argument::SymFloats(json.array(|json| sym(json, "as_float", JsonReader::float))?)
            }
            "as_sym_bools" => Argument::SymBools(json.array(|json| sym(json, "as_bool", JsonReader::bool))?),
            "as_string_to_argument" => {
                Argument::Dict(self.map(json, |reader, json| reader.argument(json))?.into_iter().collect())
            }
            _ => return Err(unknown_tag(json, "argument")),
        })
    }

    /// Reads a reference to a value: an object with its name.
    pub(super) fn name(&mut self, json: &mut JsonReader<'a>) -> Res<String> {
        let mut name = None;
        json.object(|json, key| {
            match key {
                "name" => name = Some(string(json)?),
                _ => self.keep_unknown("TensorArgument", json, key)?,
            }
            Ok(())
        })?;
        need(name, "name")
    }

    fn names(&mut self, json: &mut JsonReader<'a>) -> Res<Vec<String>> {
        json.array(|json| self.name(json))
    }

    fn optional_name(&mut self, json: &mut JsonReader<'a>) -> Res<Option<String>> {
        union(json, |json, tag| match tag {
            "as_tensor" => self.name(json).map(Some),
            "as_none" => json.bool().map(|_| None),
            _ => Err(unknown_tag(json, "optional tensor")),
        })
    }

    fn complex(&mut self, json: &mut JsonReader<'a>) -> Res<Argument> {
        let (mut real, mut imag) = (None, None);
        json.object(|json, key| {
            match key {
                "real" => real = Some(json.float()?),
                "imag" => imag = Some(json.float()?),
                _ => self.keep_unknown("ComplexValue", json, key)?,
            }
            Ok(())
        })?;
        Ok(Argument::Complex { real: need(real, "real")?, imag: need(imag, "imag")? })
    }

    fn subgraph(&mut self, json: &mut JsonReader<'a>) -> Res<Argument> {
        let (mut name, mut graph) = (None, None);
        json.object(|json, key| {
            match key {
                "name" => name = Some(string(json)?),
                "graph" => graph = Some(Box::new(self.graph(json)?)),
                _ => self.keep_unknown("GraphArgument", json, key)?,
            }
            Ok(())
        })?;
        Ok(Argument::Graph { name: need(name, "name")?, graph: need(graph, "graph")? })
    }

    pub(super) fn custom_obj(&mut self, json: &mut JsonReader<'a>) -> Res<CustomObj> {
        let (mut name, mut class) = (None, None);
        json.object(|json, key| {
            match key {
                "name" => name = Some(string(json)?),
                "class_fqn" => class = Some(string(json)?),
                _ => self.keep_unknown("CustomObjArgument", json, key)?,
            }
            Ok(())
        })?;
        Ok(CustomObj { name: need(name, "name")?, class: need(class, "class_fqn")? })
    }

    fn device(&mut self, json: &mut JsonReader<'a>) -> Res<Device> {
        let (mut kind, mut index) = (None, None);
        json.object(|json, key| {
            match key {
                "type" => kind = Some(string(json)?),
                "index" => index = json.optional(JsonReader::int)?,
                _ => self.keep_unknown("Device", json, key)?,
            }
            Ok(())
        })?;
        Ok(Device { kind: need(kind, "type")?, index })
    }

    /// Reads the metadata of a tensor.
    pub(crate) fn tensor_meta(&mut self, json: &mut JsonReader<'a>) -> Res<TensorMeta> {
        let (mut dtype, mut sizes, mut requires_grad) = (None, None, None);
        let (mut place, mut strides, mut storage_offset, mut kind) = (None, None, None, None);
        json.object(|json, key| {
            match key {
                "dtype" => dtype = Some(scalar_type(json)?),
                "sizes" => sizes = Some(json.array(|json| self.sym_int(json))?),
                "requires_grad" => requires_grad = Some(json.bool()?),
                "device" => place = Some(self.device(json)?),
                "strides" => strides = Some(json.array(|json| self.sym_int(json))?),
                "storage_offset" => storage_offset = Some(self.sym_int(json)?),
                "layout" => kind = Some(layout(json)?),
                _ => self.keep_unknown("TensorMeta", json, key)?,
            }
            Ok(())
        })?;
        Ok(TensorMeta {
            dtype: need(dtype, "dtype")?,
            sizes: need(sizes, "sizes")?,
            requires_grad: need(requires_grad, "requires_grad")?,
            device: need(place, "device")?,
            strides: need(strides, "strides")?,
            storage_offset: need(storage_offset, "storage_offset")?,
            layout: need(kind, "layout")?,
        })
    }

    /// Reads an integer or an expression.
    pub(super) fn sym_int(&mut self, json: &mut JsonReader<'a>) -> Res<SymInt> {
        union(json, |json, tag| match tag {
            "as_int" => json.int().map(SymInt::Int),
            "as_expr" => {
                self.sym_expr(json, "as_int", JsonReader::int).map(|(expr, hint)| SymInt::Expr { expr, hint })
            }
            _ => Err(unknown_tag(json, "symbolic integer")),
        })
    }

    /// Reads a float or an expression.
    pub(super) fn sym_float(&mut self, json: &mut JsonReader<'a>) -> Res<SymFloat> {
        union(json, |json, tag| match tag {
            "as_float" => json.float().map(SymFloat::Float),
            "as_expr" => self
                .sym_expr(json, "as_float", JsonReader::float)
                .map(|(expr, hint)| SymFloat::Expr { expr, hint }),
            _ => Err(unknown_tag(json, "symbolic float")),
        })
    }

    /// Reads a boolean or an expression.
    pub(super) fn sym_bool(&mut self, json: &mut JsonReader<'a>) -> Res<SymBool> {
        union(json, |json, tag| match tag {
            "as_bool" => json.bool().map(SymBool::Bool),
            "as_expr" => self
                .sym_expr(json, "as_bool", JsonReader::bool)
                .map(|(expr, hint)| SymBool::Expr { expr, hint }),
            _ => Err(unknown_tag(json, "symbolic boolean")),
        })
    }

    /// Reads an expression and its value in the example. A value of another kind is ignored.
    fn sym_expr<T>(
        &mut self,
        json: &mut JsonReader<'a>,
        kind: &str,
        mut value: impl FnMut(&mut JsonReader<'a>) -> Res<T>,
    ) -> Res<(ExprId, Option<T>)> {
        let (mut expr, mut hint) = (None, None);
        json.object(|json, key| {
            match key {
                "expr_str" => {
                    json.kind()?;
                    let at = json.offset();
                    let text = json.string()?;
                    expr = Some(self.expr(&text).map_err(|e| e.at(at))?);
                }
                "hint" => {
                    let found = json.optional(|json| {
                        union(json, |json, tag| match tag == kind {
                            true => value(json).map(Some),
                            false => json.skip().map(|_| None),
                        })
                    })?;
                    hint = found.flatten();
                }
                _ => self.keep_unknown("SymExpr", json, key)?,
            }
            Ok(())
        })?;
        Ok((need(expr, "expr_str")?, hint))
    }
}

/// Reads a symbolic scalar of an argument: the name of a value, or a constant under `tag`.
fn sym<'a, T>(
    json: &mut JsonReader<'a>,
    tag: &str,
    mut value: impl FnMut(&mut JsonReader<'a>) -> Res<T>,
) -> Res<Sym<T>> {
    union(json, |json, found| match found {
        "as_name" => string(json).map(Sym::Name),
        _ if found == tag => value(json).map(Sym::Value),
        _ => Err(unknown_tag(json, "symbolic argument")),
    })
}

/// Reads the number of an enumeration.
fn numbered<T>(json: &mut JsonReader<'_>, what: &str, of: fn(i64) -> Option<T>) -> Res<T> {
    json.kind()?;
    let at = json.offset();
    let number = json.int()?;
    of(number).ok_or_else(|| {
        let number = quoted(&number.to_string());
        ExportError::new(ExportCode::Number, format!("no {what} has the number {number}")).at(at)
    })
}

fn scalar_type(json: &mut JsonReader<'_>) -> Res<ScalarType> {
    numbered(json, "scalar type", ScalarType::of_number)
}

fn layout(json: &mut JsonReader<'_>) -> Res<Layout> {
    numbered(json, "layout", Layout::of_number)
}

//! The model as JSON text, in the form of a schema version.
//!
//! The text is the one that PyTorch writes: members in the order of the schema's fields, `json.dumps` spacing, ASCII only.
//! A file that was read and is written in its own version has the same text, except for fields that this crate does not
//! know. Files of 8.2 omit members that are `None`; later files write `null`.

use std::fmt::Write as _;

use crate::codes::SchemaEnum;
use crate::error::quoted;
use crate::expr::{ExprId, python_float};
use crate::model::{
    Argument, ArgumentKind, CustomObj, Device, GraphModel, InputSpec, Map, ModuleCall, NodeMetadata,
    NodeModel, OutputSpec, ProgramModel, ScalarType, Sym, SymBool, SymFloat, SymInt, TensorMeta,
};
use crate::{ExportCode, ExportError};

type Res = Result<(), ExportError>;

/// First minor versions with features.
mod since {
    /// Kinds of arguments, optional tensors, `null` for `None`, infinities as strings, fields of named tuples.
    pub(super) const KINDS: i64 = 8;
    /// Complex numbers, parameter mutations, guards.
    pub(super) const GUARDS: i64 = 14;
    /// Names of nodes, nested lists, dictionaries.
    pub(super) const NAMES: i64 = 20;
}

/// Returns the JSON text of a program in the schema 8.`minor`. `names` are the names of the FX nodes by the address of
/// their node, which files since 8.20 contain.
pub(super) fn program(
    program: &ProgramModel,
    minor: i64,
    names: &dyn Fn(&NodeModel) -> Option<String>,
) -> Result<String, ExportError> {
    let mut writer = Writer { out: String::new(), minor, program, names };
    writer.program()?;
    Ok(writer.out)
}

/// Appends a string as a JSON string of ASCII characters.
pub(super) fn string(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            ' '..='~' => out.push(c),
            _ => {
                let mut units = [0; 2];
                for unit in c.encode_utf16(&mut units) {
                    // Writing to a string does not fail.
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
        }
    }
    out.push('"');
}

/// Appends the metadata of a tensor as an object.
pub(super) fn tensor_meta(
    program: &ProgramModel,
    minor: i64,
    meta: &TensorMeta,
) -> Result<String, ExportError> {
    let mut writer = Writer { out: String::new(), minor, program, names: &|_| None };
    writer.tensor_meta(meta)?;
    Ok(writer.out)
}

struct Writer<'m> {
    out: String,
    minor: i64,
    program: &'m ProgramModel,
    names: &'m dyn Fn(&NodeModel) -> Option<String>,
}

/// The members of an object that is being written.
struct Members {
    any: bool,
}

impl<'m> Writer<'m> {
    fn open(&mut self) -> Members {
        self.out.push('{');
        Members { any: false }
    }

    /// Begins a member.
    fn key(&mut self, members: &mut Members, name: &str) {
        if std::mem::replace(&mut members.any, true) {
            self.out.push_str(", ");
        }
        string(&mut self.out, name);
        self.out.push_str(": ");
    }

    fn close(&mut self) {
        self.out.push('}');
    }

    /// Writes an object with one member.
    fn tagged(&mut self, tag: &str, value: impl FnOnce(&mut Self) -> Res) -> Res {
        let mut members = self.open();
        self.key(&mut members, tag);
        value(self)?;
        self.close();
        Ok(())
    }

    fn list<T>(
        &mut self,
        items: impl IntoIterator<Item = T>,
        mut write: impl FnMut(&mut Self, T) -> Res,
    ) -> Res {
        self.out.push('[');
        for (i, item) in items.into_iter().enumerate() {
            self.out.push_str(if i > 0 { ", " } else { "" });
            write(self, item)?;
        }
        self.out.push(']');
        Ok(())
    }

    fn map<V>(&mut self, map: &'m Map<V>, mut write: impl FnMut(&mut Self, &'m V) -> Res) -> Res {
        let mut members = self.open();
        for (name, value) in map {
            self.key(&mut members, name);
            write(self, value)?;
        }
        self.close();
        Ok(())
    }

    fn metadata(&mut self, metadata: &NodeMetadata) -> Res {
        let mut members = self.open();
        for (name, text) in &**metadata {
            self.key(&mut members, name);
            self.text(text)?;
        }
        self.close();
        Ok(())
    }

    fn text(&mut self, text: &str) -> Res {
        string(&mut self.out, text);
        Ok(())
    }

    fn int(&mut self, value: i64) -> Res {
        let _ = write!(self.out, "{value}");
        Ok(())
    }

    fn bool(&mut self, value: bool) -> Res {
        self.out.push_str(if value { "true" } else { "false" });
        Ok(())
    }

    fn float(&mut self, value: f64) -> Res {
        if value.is_finite() {
            self.out.push_str(&python_float(value));
            return Ok(());
        }
        let name = match value {
            x if x.is_nan() => "NaN",
            x if x > 0.0 => "Infinity",
            _ => "-Infinity",
        };
        // In files of 8.2 these are bare words, which JSON does not have.
        match self.minor {
            since::KINDS.. => string(&mut self.out, name),
            _ => self.out.push_str(name),
        }
        Ok(())
    }

    /// Writes a member, or `null`, or nothing: as the version does for `None`.
    fn optional<T>(
        &mut self,
        members: &mut Members,
        name: &str,
        value: Option<T>,
        write: impl FnOnce(&mut Self, T) -> Res,
    ) -> Res {
        match value {
            Some(value) => {
                self.key(members, name);
                write(self, value)
            }
            None if self.minor >= since::KINDS => {
                self.key(members, name);
                self.out.push_str("null");
                Ok(())
            }
            None => Ok(()),
        }
    }

    #[cold]
    fn lacks(&self, what: &str) -> ExportError {
        let message = format!("files of schema 8.{} cannot contain {what}", self.minor);
        ExportError::new(ExportCode::Version, message)
    }

    fn needs(&self, minor: i64, what: &str) -> Res {
        if self.minor < minor { Err(self.lacks(what)) } else { Ok(()) }
    }

    fn program(&mut self) -> Res {
        let program = self.program;
        let mut members = self.open();
        self.key(&mut members, "graph_module");
        self.graph_module()?;
        self.key(&mut members, "opset_version");
        self.map(&program.opset_version, |w, v| w.int(*v))?;
        self.key(&mut members, "range_constraints");
        self.map(&program.range_constraints, |w, range| {
            // An absent bound is `null` in every version.
            let bound = |n: Option<i64>| n.map_or("null".to_owned(), |n| n.to_string());
            let _ = write!(w.out, "{{\"min_val\": {}, \"max_val\": {}}}", bound(range.min), bound(range.max));
            Ok(())
        })?;
        self.key(&mut members, "schema_version");
        let minor = self.minor;
        let _ = write!(self.out, "{{\"major\": 8, \"minor\": {minor}}}");
        self.key(&mut members, "verifiers");
        self.list(&program.verifiers, |w, v| w.text(v))?;
        self.key(&mut members, "torch_version");
        self.text(&program.torch_version)?;
        if self.minor >= since::GUARDS {
            self.key(&mut members, "guards_code");
            self.list(&program.guards_code, |w, v| w.text(v))?;
        }
        self.close();
        Ok(())
    }

    fn graph_module(&mut self) -> Res {
        let module = &self.program.module;
        let mut members = self.open();
        self.key(&mut members, "graph");
        self.graph(&module.graph)?;
        self.key(&mut members, "signature");
        self.out.push_str("{\"input_specs\": ");
        self.list(&module.signature.inputs, Self::input_spec)?;
        self.out.push_str(", \"output_specs\": ");
        self.list(&module.signature.outputs, Self::output_spec)?;
        self.close();
        self.key(&mut members, "module_call_graph");
        self.list(&module.module_call_graph, Self::module_call)?;
        self.key(&mut members, "metadata");
        self.map(&module.metadata, |w, v| w.text(v))?;
        if self.minor >= since::KINDS {
            self.key(&mut members, "treespec_namedtuple_fields");
            self.map(&module.namedtuple_fields, |w, names| {
                w.tagged("field_names", |w| w.list(names, |w, name| w.text(name)))
            })?;
        }
        self.close();
        Ok(())
    }

    fn graph(&mut self, graph: &'m GraphModel) -> Res {
        let mut members = self.open();
        self.key(&mut members, "inputs");
        self.list(&graph.inputs, Self::argument)?;
        self.key(&mut members, "outputs");
        if let Some(what) = graph.outputs.iter().find_map(constant_output) {
            self.needs(since::KINDS, what)?;
        }
        self.list(&graph.outputs, Self::argument)?;
        self.key(&mut members, "nodes");
        self.list(&graph.nodes, Self::node)?;
        self.key(&mut members, "tensor_values");
        self.map(&graph.tensor_values, |w, meta| w.tensor_meta(meta))?;
        self.key(&mut members, "sym_int_values");
        self.map(&graph.sym_int_values, Self::sym_int)?;
        self.key(&mut members, "sym_bool_values");
        self.map(&graph.sym_bool_values, Self::sym_bool)?;
        self.key(&mut members, "is_single_tensor_return");
        self.bool(graph.is_single_tensor_return)?;
        self.key(&mut members, "custom_obj_values");
        self.map(&graph.custom_obj_values, Self::custom_obj)?;
        self.key(&mut members, "sym_float_values");
        self.map(&graph.sym_float_values, Self::sym_float)?;
        self.close();
        Ok(())
    }

    fn node(&mut self, node: &'m NodeModel) -> Res {
        let is_higher_order = node.target.starts_with("torch.ops.higher_order.");
        let mut members = self.open();
        self.key(&mut members, "target");
        self.text(&node.target)?;
        self.key(&mut members, "inputs");
        self.list(&node.inputs, |w, input| {
            let mut members = w.open();
            w.key(&mut members, "name");
            w.text(&input.name)?;
            w.key(&mut members, "arg");
            w.argument(&input.arg)?;
            if w.minor >= since::KINDS {
                // The operands of higher-order operators have no schema that says how they are passed.
                let positional = is_higher_order.then_some(ArgumentKind::Positional);
                let kind = input.kind.or(positional).map(|kind| match kind {
                    ArgumentKind::Positional => 1,
                    ArgumentKind::Keyword => 2,
                });
                w.optional(&mut members, "kind", kind, Self::int)?;
            }
            w.close();
            Ok(())
        })?;
        // Without the flag PyTorch takes one result for a bare tensor.
        let single = node.is_hop_single_tensor_return.or(is_higher_order.then_some(false));
        self.key(&mut members, "outputs");
        match &node.outputs[..] {
            [only] if is_higher_order && single == Some(false) => {
                self.only_output(only, node.is_hop_single_tensor_return.is_some())?;
            }
            outputs => self.list(outputs, Self::argument)?,
        }
        self.key(&mut members, "metadata");
        self.metadata(&node.metadata)?;
        if self.minor >= since::KINDS {
            self.optional(&mut members, "is_hop_single_tensor_return", single, Self::bool)?;
        }
        if self.minor >= since::NAMES {
            let name = node.name.clone().or_else(|| (self.names)(node));
            self.optional(&mut members, "name", name, |w, name| w.text(&name))?;
        }
        self.close();
        Ok(())
    }

    /// Writes the only output of a node that returns a tuple. A tuple of one tensor is the tensor, where a flag says that it
    /// is in a tuple, and else a list. A program of PyTorch 2.6 states no flag (`is_stated`), so its tensor stays as it is.
    fn only_output(&mut self, output: &'m Argument, is_stated: bool) -> Res {
        let has_flag = self.minor >= since::KINDS;
        self.list([()], |w, ()| match output {
            Argument::Tensors(names) if has_flag && names.len() == 1 => {
                w.tagged("as_tensor", |w| w.named(&names[0]))
            }
            Argument::Tensor(name) if !has_flag && is_stated => {
                w.tagged("as_tensors", |w| w.list([name], |w, name| w.named(name)))
            }
            other => w.argument(other),
        })
    }

    fn tensor_meta(&mut self, meta: &TensorMeta) -> Res {
        let mut members = self.open();
        self.key(&mut members, "dtype");
        self.scalar_type(meta.dtype)?;
        self.key(&mut members, "sizes");
        self.list(&meta.sizes, Self::sym_int)?;
        self.key(&mut members, "requires_grad");
        self.bool(meta.requires_grad)?;
        self.key(&mut members, "device");
        self.device(&meta.device)?;
        self.key(&mut members, "strides");
        self.list(&meta.strides, Self::sym_int)?;
        self.key(&mut members, "storage_offset");
        self.sym_int(&meta.storage_offset)?;
        self.key(&mut members, "layout");
        self.int(meta.layout.number())?;
        self.close();
        Ok(())
    }

    fn scalar_type(&mut self, dtype: ScalarType) -> Res {
        let minor = match dtype.number() {
            33.. => since::NAMES,
            31.. => since::GUARDS,
            29.. => since::KINDS,
            _ => 0,
        };
        self.needs(minor, dtype.name())?;
        self.int(dtype.number())
    }

    fn device(&mut self, device: &Device) -> Res {
        let mut members = self.open();
        self.key(&mut members, "type");
        self.text(&device.kind)?;
        self.optional(&mut members, "index", device.index, Self::int)?;
        self.close();
        Ok(())
    }

    fn expr<T>(
        &mut self,
        expr: ExprId,
        hint: Option<T>,
        tag: &str,
        write: impl FnOnce(&mut Self, T) -> Res,
    ) -> Res {
        self.tagged("as_expr", |w| {
            let mut members = w.open();
            w.key(&mut members, "expr_str");
            let text = w.program.exprs.srepr(expr);
            w.text(&text)?;
            w.optional(&mut members, "hint", hint, |w, hint| w.tagged(tag, |w| write(w, hint)))?;
            w.close();
            Ok(())
        })
    }

    fn sym_int(&mut self, value: &SymInt) -> Res {
        match value {
            SymInt::Int(n) => self.tagged("as_int", |w| w.int(*n)),
            SymInt::Expr { expr, hint } => self.expr(*expr, *hint, "as_int", Self::int),
        }
    }

    fn sym_float(&mut self, value: &SymFloat) -> Res {
        match value {
            SymFloat::Float(x) => self.tagged("as_float", |w| w.float(*x)),
            SymFloat::Expr { expr, hint } => self.expr(*expr, *hint, "as_float", Self::float),
        }
    }

    fn sym_bool(&mut self, value: &SymBool) -> Res {
        match value {
            SymBool::Bool(b) => self.tagged("as_bool", |w| w.bool(*b)),
            SymBool::Expr { expr, hint } => self.expr(*expr, *hint, "as_bool", Self::bool),
        }
    }

    fn custom_obj(&mut self, value: &CustomObj) -> Res {
        self.named_class(&value.name, &value.class)
    }

    fn named_class(&mut self, name: &str, class: &str) -> Res {
        let mut members = self.open();
        self.key(&mut members, "name");
        self.text(name)?;
        self.key(&mut members, "class_fqn");
        self.text(class)?;
        self.close();
        Ok(())
    }

    /// Writes `{"name": NAME}`.
    fn named(&mut self, name: &str) -> Res {
        self.tagged("name", |w| w.text(name))
    }

    fn tensor_or_none(&mut self, name: Option<&String>) -> Res {
        match name {
            Some(name) => self.tagged("as_tensor", |w| w.named(name)),
            None => self.tagged("as_none", |w| w.bool(true)),
        }
    }

    fn sym<T: Copy>(&mut self, value: &Sym<T>, tag: &str, write: impl FnOnce(&mut Self, T) -> Res) -> Res {
        match value {
            Sym::Name(name) => self.tagged("as_name", |w| w.text(name)),
            Sym::Value(value) => self.tagged(tag, |w| write(w, *value)),
        }
    }

    fn argument(&mut self, arg: &'m Argument) -> Res {
        match arg {
            Argument::OptionalTensor(_) => self.needs(since::KINDS, "optional tensors")?,
            Argument::Complex { .. } => self.needs(since::GUARDS, "complex numbers")?,
            Argument::NestedTensors(_) | Argument::IntLists(_) | Argument::FloatLists(_) => {
                self.needs(since::NAMES, "lists of lists")?;
            }
            Argument::Dict(_) => self.needs(since::NAMES, "dictionaries")?,
            _ => {}
        }
        self.tagged(tag_of(arg), |w| w.argument_value(arg))
    }

    fn argument_value(&mut self, arg: &'m Argument) -> Res {
        match arg {
            Argument::None => self.bool(true),
            Argument::Tensor(name) => self.named(name),
            Argument::Tensors(names) => self.list(names, |w, name| w.named(name)),
            Argument::OptionalTensor(name) => self.tensor_or_none(name.as_ref()),
            Argument::OptionalTensors(names) => self.list(names, |w, name| w.tensor_or_none(name.as_ref())),
            Argument::NestedTensors(lists) => {
                self.list(lists, |w, names| w.list(names, |w, name| w.named(name)))
            }
            Argument::Int(n) => self.int(*n),
            Argument::Ints(items) => self.list(items, |w, n| w.int(*n)),
            Argument::IntLists(lists) => self.list(lists, |w, items| w.list(items, |w, n| w.int(*n))),
            Argument::Float(x) => self.float(*x),
            Argument::Floats(items) => self.list(items, |w, x| w.float(*x)),
            Argument::FloatLists(lists) => self.list(lists, |w, items| w.list(items, |w, x| w.float(*x))),
            Argument::Complex { real, imag } => {
                let mut members = self.open();
                self.key(&mut members, "real");
                self.float(*real)?;
                self.key(&mut members, "imag");
                self.float(*imag)?;
                self.close();
                Ok(())
            }
            Argument::String(text) | Argument::Operator(text) => self.text(text),
            Argument::Strings(items) => self.list(items, |w, text| w.text(text)),
            Argument::Bool(b) => self.bool(*b),
            Argument::Bools(items) => self.list(items, |w, b| w.bool(*b)),
            Argument::SymInt(value) => self.sym(value, "as_int", Self::int),
            Argument::SymInts(items) => self.list(items, |w, item| w.sym(item, "as_int", Self::int)),
            Argument::SymFloat(value) => self.sym(value, "as_float", Self::float),
            Argument::SymFloats(items) => self.list(items, |w, item| w.sym(item, "as_float", Self::float)),
            Argument::SymBool(value) => self.sym(value, "as_bool", Self::bool),
            Argument::SymBools(items) => self.list(items, |w, item| w.sym(item, "as_bool", Self::bool)),
            Argument::ScalarType(dtype) => self.scalar_type(*dtype),
            Argument::MemoryFormat(format) => self.int(format.number()),
            Argument::Layout(layout) => self.int(layout.number()),
            Argument::Device(device) => self.device(device),
            Argument::Graph { name, graph } => {
                let mut members = self.open();
                self.key(&mut members, "name");
                self.text(name)?;
                self.key(&mut members, "graph");
                // The reader bounds the nesting of graphs, and with it this recursion.
                self.graph(graph)?;
                self.close();
                Ok(())
            }
            Argument::CustomObj { name, class } => self.named_class(name, class),
            Argument::Dict(entries) => {
                let mut members = self.open();
                for (key, value) in entries {
                    self.key(&mut members, key);
                    self.argument(value)?;
                }
                self.close();
                Ok(())
            }
        }
    }

    /// Writes `{TAG: {"arg": {"name": ARG}, FIELD: TARGET}}`.
    fn of_target(&mut self, tag: &str, arg: &str, field: &str, target: &str) -> Res {
        self.tagged(tag, |w| {
            let mut members = w.open();
            w.key(&mut members, "arg");
            w.named(arg)?;
            w.key(&mut members, field);
            w.text(target)?;
            w.close();
            Ok(())
        })
    }

    fn input_spec(&mut self, spec: &'m InputSpec) -> Res {
        match spec {
            InputSpec::UserInput { arg } => {
                self.tagged("user_input", |w| w.tagged("arg", |w| w.argument(arg)))
            }
            InputSpec::Parameter { arg, target } => {
                self.of_target("parameter", arg, "parameter_name", target)
            }
            InputSpec::Buffer { arg, target, persistent } => self.tagged("buffer", |w| {
                let mut members = w.open();
                w.key(&mut members, "arg");
                w.named(arg)?;
                w.key(&mut members, "buffer_name");
                w.text(target)?;
                w.key(&mut members, "persistent");
                w.bool(*persistent)?;
                w.close();
                Ok(())
            }),
            InputSpec::TensorConstant { arg, target } => {
                self.of_target("tensor_constant", arg, "tensor_constant_name", target)
            }
            InputSpec::CustomObj { arg, target } => self.tagged("custom_obj", |w| {
                let mut members = w.open();
                w.key(&mut members, "arg");
                w.custom_obj(arg)?;
                w.key(&mut members, "custom_obj_name");
                w.text(target)?;
                w.close();
                Ok(())
            }),
            InputSpec::Token { arg } => self.tagged("token", |w| w.tagged("arg", |w| w.named(arg))),
            InputSpec::ConstantInput { name, value } => self.tagged("constant_input", |w| {
                let mut members = w.open();
                w.key(&mut members, "name");
                w.text(name)?;
                w.key(&mut members, "value");
                w.argument(value)?;
                w.close();
                Ok(())
            }),
        }
    }

    fn output_spec(&mut self, spec: &'m OutputSpec) -> Res {
        match spec {
            OutputSpec::UserOutput { arg } => {
                self.tagged("user_output", |w| w.tagged("arg", |w| w.argument(arg)))
            }
            OutputSpec::LossOutput { arg } => {
                self.tagged("loss_output", |w| w.tagged("arg", |w| w.named(arg)))
            }
            OutputSpec::BufferMutation { arg, target } => {
                self.of_target("buffer_mutation", arg, "buffer_name", target)
            }
            OutputSpec::ParameterMutation { arg, target } => {
                self.needs(since::GUARDS, "mutations of parameters")?;
                self.of_target("parameter_mutation", arg, "parameter_name", target)
            }
            OutputSpec::GradientToParameter { arg, target } => {
                self.of_target("gradient_to_parameter", arg, "parameter_name", target)
            }
            OutputSpec::GradientToUserInput { arg, target } => {
                self.of_target("gradient_to_user_input", arg, "user_input_name", target)
            }
            OutputSpec::UserInputMutation { arg, target } => {
                self.of_target("user_input_mutation", arg, "user_input_name", target)
            }
            OutputSpec::Token { arg } => self.tagged("token", |w| w.tagged("arg", |w| w.named(arg))),
        }
    }

    fn module_call(&mut self, call: &'m ModuleCall) -> Res {
        let mut members = self.open();
        self.key(&mut members, "fqn");
        self.text(&call.fqn)?;
        self.optional(&mut members, "signature", call.signature.as_ref(), |w, signature| {
            let mut members = w.open();
            w.key(&mut members, "inputs");
            w.list(&signature.inputs, Self::argument)?;
            w.key(&mut members, "outputs");
            w.list(&signature.outputs, Self::argument)?;
            w.key(&mut members, "in_spec");
            w.text(&signature.in_spec)?;
            w.key(&mut members, "out_spec");
            w.text(&signature.out_spec)?;
            w.optional(
                &mut members,
                "forward_arg_names",
                signature.forward_arg_names.as_ref(),
                |w, names| w.list(names, |w, name| w.text(name)),
            )?;
            w.close();
            Ok(())
        })?;
        self.close();
        Ok(())
    }
}

fn tag_of(arg: &Argument) -> &'static str {
    match arg {
        Argument::None => "as_none",
        Argument::Tensor(_) => "as_tensor",
        Argument::Tensors(_) => "as_tensors",
        Argument::OptionalTensor(_) => "as_optional_tensor",
        Argument::OptionalTensors(_) => "as_optional_tensors",
        Argument::NestedTensors(_) => "as_nested_tensors",
        Argument::Int(_) => "as_int",
        Argument::Ints(_) => "as_ints",
        Argument::IntLists(_) => "as_int_lists",
        Argument::Float(_) => "as_float",
        Argument::Floats(_) => "as_floats",
        Argument::FloatLists(_) => "as_float_lists",
        Argument::Complex { .. } => "as_complex",
        Argument::String(_) => "as_string",
        Argument::Strings(_) => "as_strings",
        Argument::Bool(_) => "as_bool",
        Argument::Bools(_) => "as_bools",
        Argument::SymInt(_) => "as_sym_int",
        Argument::SymInts(_) => "as_sym_ints",
        Argument::SymFloat(_) => "as_sym_float",
        Argument::SymFloats(_) => "as_sym_floats",
        Argument::SymBool(_) => "as_sym_bool",
        Argument::SymBools(_) => "as_sym_bools",
        Argument::ScalarType(_) => "as_scalar_type",
        Argument::MemoryFormat(_) => "as_memory_format",
        Argument::Layout(_) => "as_layout",
        Argument::Device(_) => "as_device",
        Argument::Graph { .. } => "as_graph",
        Argument::CustomObj { .. } => "as_custom_obj",
        Argument::Operator(_) => "as_operator",
        Argument::Dict(_) => "as_string_to_argument",
    }
}

/// Returns the error for an object that cannot be written.
#[cold]
pub(super) fn cannot_write(what: &str) -> ExportError {
    ExportError::new(ExportCode::Version, format!("{} cannot be written", quoted(what)))
}

/// Describes an output of a kind that PyTorch 2.6 does not read; `None` for all other kinds.
fn constant_output(output: &Argument) -> Option<&'static str> {
    match output {
        Argument::Bool(_) => Some("a constant truth value as an output"),
        Argument::String(_) => Some("a string as an output"),
        _ => None,
    }
}

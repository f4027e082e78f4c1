//! Input types for commands that analyse without a call: stated types, or those of example values.
//!
//! A type is stated as `f32[2,*]` (`*` or `?` is an unknown size), as a dtype (`f32`), or in IR syntax (`Float(2, 3, strides=[3, 1])`, `int[]`). It is
//! combined with the type that the graph declares; a contradiction is an error.

use crate::inputs::{
    NamedOption, TensorSpec, dtype, from_file, inline, parameter, parse_named, within, wrong,
};
use crate::output::usage;
use anyhow::Result;
use flambeau::ir::ValueId;
use flambeau::ir::types::{Dim, NoClasses, TensorType, TypeKind, is_subtype, parse_ir_type};
use flambeau::{Entry, Error, Graph, IValue, Type};

/// Options that state types of inputs.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct InputTypeArgs {
    /// A JSON file with example inputs, in the format of `run`: their types and sizes become those of the graph's
    /// inputs.
    #[arg(long, value_name = "FILE")]
    pub(crate) inputs: Option<String>,
    /// The type of an input, as `x=f32[2,3]`, `x=f32[2,?]` (an unknown size), `x=Float(2, 3, strides=[3, 1])` or
    /// `n=int`; or an example value, in the format of `run`.
    #[arg(long = "arg", short = 'a', value_name = "NAME=TYPE")]
    pub(crate) args: Vec<String>,
}

impl InputTypeArgs {
    /// Returns whether no type is stated.
    pub(crate) fn is_empty(&self) -> bool {
        self.inputs.is_none() && self.args.is_empty()
    }

    /// Sets the stated types on the inputs of a graph, which is a copy of the entry's.
    pub(crate) fn apply(&self, entry: &Entry, graph: &mut Graph) -> Result<()> {
        let params = entry.params();
        // A method's receiver is an input of the graph but not a parameter.
        let receivers = graph.inputs().count() - params.len();
        let values: Vec<ValueId> = graph.inputs().skip(receivers).collect();
        let mut combine = |at: usize, given: Type| -> Result<(), Error> {
            let (name, declared) = (params[at].name, graph.ty(values[at]));
            let ty = combined(declared, given)
                .ok_or_else(|| wrong(format!("input `{name}`: expected {declared}, found {given}")))?;
            graph.edit().set_type(values[at], ty);
            Ok(())
        };
        for (at, ty) in self.of_file(entry)? {
            combine(at, ty)?;
        }
        for NamedOption { at, name, value } in
            parse_named(&self.args, "TYPE", &|name| parameter(entry, name))?
        {
            let ty = type_of_text(value, params[at].ty);
            let ty = ty.map_err(|e| usage(within(&format!("input `{name}`"), e)))?;
            combine(at, ty).map_err(usage)?;
        }
        Ok(())
    }

    /// Returns the types of the inputs in the file, with the indices of their parameters.
    fn of_file(&self, entry: &Entry) -> Result<Vec<(usize, Type)>> {
        let params = entry.params();
        let mut types = Vec::new();
        if let Some(file) = &self.inputs {
            let inputs = from_file(file, params)?;
            let (given, taken) = (inputs.positional.len(), params.len());
            if given > taken {
                return Err(
                    wrong(format!("{file}: {given} inputs, but {} takes {taken}", entry.name())).into()
                );
            }
            types.extend(inputs.positional.iter().map(of_value).enumerate());
            for (name, value) in &inputs.named {
                types.push((parameter(entry, name)?, of_value(value)));
            }
        }
        Ok(types)
    }
}

/// Returns the type that a text states, or the type of the value that it states for a parameter of type `declared`.
fn type_of_text(text: &str, declared: Type) -> Result<Type, Error> {
    let head = text.split(['[', '(']).next().unwrap_or(text).trim();
    // `int[2]` is a list, as in graphs; dtypes that are not names of types take precedence over lists of classes.
    let spec = TensorSpec::read(text);
    if type_in(head).is_none() {
        if let Ok(dtype) = dtype(text) {
            return Ok(Type::tensor(TensorType { dtype: Some(dtype), ..TensorType::default() }));
        }
        if let Ok(spec) = spec {
            return tensor_type(text, spec);
        }
    }
    if let Some(ty) = type_in(text) {
        return Ok(ty);
    }
    match inline(text, declared) {
        Ok(value) => Ok(of_value(&value)),
        // A text that begins with a name is reported as an invalid type, not as an invalid value.
        Err(_) if text.starts_with(|c: char| c.is_ascii_alphabetic()) => {
            Err(match (parse_ir_type(text, 0), spec) {
                (Err(e), _) if !text.contains('[') => wrong(format!("`{text}` is not a type: {}", e.message)),
                (_, Err(e)) if text.contains('[') => e,
                _ => wrong(format!("`{text}` is neither a type nor a value")),
            })
        }
        Err(e) => Err(e),
    }
}

/// Parses a whole text as a type. A bare class name is not accepted, because values may be names too.
fn type_in(text: &str) -> Option<Type> {
    let (ty, end) = parse_ir_type(text, 0).ok()?;
    (text[end..].trim().is_empty() && !matches!(ty.kind(), TypeKind::Class(_))).then_some(ty)
}

fn tensor_type(text: &str, spec: TensorSpec) -> Result<Type, Error> {
    if let Some(size) = spec.sizes.iter().flatten().find(|&&size| size < 0) {
        return Err(wrong(format!("`{text}` has the size {size}")));
    }
    let sizes = spec.sizes.into_iter().map(|size| size.map_or(Dim::Unknown, Dim::Known)).collect();
    let facts = TensorType { dtype: Some(spec.dtype), sizes: Some(sizes), ..TensorType::default() };
    Ok(Type::tensor(facts))
}

/// Returns the most precise type of a value, with dtype, sizes and strides of a tensor.
pub(crate) fn of_value(value: &IValue) -> Type {
    match value {
        IValue::Tensor(tensor) => Type::tensor(TensorType::of(tensor)),
        other => other.type_of(),
    }
}

/// Returns the intersection of both types; `None` if it is empty.
fn combined(declared: Type, given: Type) -> Option<Type> {
    match (declared.unwrap_optional().as_tensor(), given.as_tensor()) {
        (Some(declared), Some(given)) => declared.meet(given).map(Type::tensor),
        _ => is_subtype(given, declared, &NoClasses).then_some(given),
    }
}

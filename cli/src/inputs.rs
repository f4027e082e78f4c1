//! Arguments of calls: values as JSON, from a file or inline, and random tensors. Commands without a call also accept
//! types ([`crate::input_types`]).

use crate::output::{did_you_mean, usage};
use anyhow::{Context, Result, anyhow};
use flambeau::ir::Symbol;
use flambeau::ir::schema::Argument;
use flambeau::json::JsonError;
use flambeau::tensor::{DType, Tensor};
use flambeau::{Entry, Error, ExportedProgram, Fault, IValue, Type};
use serde_json::Value;

/// Options that state arguments.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct InputArgs {
    /// A JSON file: a list of values in order, or `{"inputs": […], "kwargs": {…}}`; `-` for standard input. A value is plain
    /// JSON, as `[1, 2.5]`, or has a tag, as `{"t": "tensor", "dtype": "float64", "shape": [2], "data": [1, 2]}`.
    #[arg(long, value_name = "FILE")]
    pub(crate) inputs: Option<String>,
    /// An argument: `NAME=JSON`, as `n=3`, `x=[1.5, 2.0]` or `s=text`, or a random tensor, as `x=rand:f32[2,3]`; dtypes are
    /// f32, f64, f16, bf16, i64, i32, or PyTorch's names.
    #[arg(long = "arg", short = 'a', value_name = "NAME=VALUE")]
    pub(crate) args: Vec<String>,
}

/// Positional and named arguments.
#[derive(Default)]
pub(crate) struct Inputs {
    pub(crate) positional: Vec<IValue>,
    pub(crate) named: Vec<(String, IValue)>,
}

impl Inputs {
    /// Returns the named arguments as [`Entry::call`] takes them.
    pub(crate) fn kwargs(&self) -> Vec<(&str, IValue)> {
        self.named.iter().map(|(n, v)| (n.as_str(), v.clone())).collect()
    }

    /// Returns a copy that shares no memory with the original.
    ///
    /// # Errors
    /// If memory is exhausted.
    pub(crate) fn copied(&self) -> Result<Inputs> {
        let copy = |value: &IValue| value.deep_copied().map_err(|e| anyhow!("copying the arguments: {e:?}"));
        Ok(Inputs {
            positional: self.positional.iter().map(copy).collect::<Result<_>>()?,
            named: self.named.iter().map(|(name, v)| Ok((name.clone(), copy(v)?))).collect::<Result<_>>()?,
        })
    }

    /// Moves named arguments to their positions if all earlier parameters have an argument. The lookup of names then
    /// happens once, not at every call.
    fn bind_positional(&mut self, params: &[Argument]) {
        for param in params.iter().skip(self.positional.len()).take_while(|p| !p.kwarg_only) {
            let Some(at) = self.named.iter().position(|(name, _)| *name == param.name.as_str()) else {
                return;
            };
            self.positional.push(self.named.remove(at).1);
        }
    }
}

impl InputArgs {
    /// Returns whether any argument is stated.
    pub(crate) fn is_stated(&self) -> bool {
        self.inputs.is_some() || !self.args.is_empty()
    }

    /// Reads the arguments for an entry; the types of its parameters determine the element types of empty lists.
    pub(crate) fn read(&self, entry: &Entry) -> Result<Inputs> {
        let params = entry.params();
        let mut inputs = match &self.inputs {
            Some(file) => from_file(file, params)?,
            None => Inputs::default(),
        };
        self.add_named(params, &|name| parameter(entry, name), &mut inputs)?;
        inputs.bind_positional(params);
        Ok(inputs)
    }

    /// Reads the arguments for an exported program. Names are those of its parameters.
    pub(crate) fn read_exported(&self, program: &ExportedProgram) -> Result<Inputs> {
        let params = program.call_spec().params().into_iter();
        let params: Vec<Argument> = params.map(|(name, ty)| Argument::new(Symbol::new(&name), ty)).collect();
        let mut inputs = match &self.inputs {
            Some(file) => from_file(file, &params)?,
            None => Inputs::default(),
        };
        let find = |name: &str| {
            let names = || params.iter().map(|param| param.name.as_str());
            names().position(|own| own == name).ok_or_else(|| {
                let error =
                    Error::new(Fault::Misuse, WRONG_CALL, format!("the program has no argument `{name}`"));
                Error { help: did_you_mean(name, names()), ..error }
            })
        };
        self.add_named(&params, &find, &mut inputs)?;
        Ok(inputs)
    }

    /// Adds the arguments of options. `find` returns the index of the parameter with a name.
    fn add_named(
        &self,
        params: &[Argument],
        find: &dyn Fn(&str) -> Result<usize, Error>,
        inputs: &mut Inputs,
    ) -> Result<()> {
        for NamedOption { at, name, value } in parse_named(&self.args, "VALUE", find)? {
            let value =
                inline(value, params[at].ty).map_err(|e| usage(within(&format!("argument `{name}`"), e)))?;
            inputs.named.push((params[at].name.to_string(), value));
        }
        Ok(())
    }

    /// Adds to the error of a call whether it is one of the command line: the call does not match the signature, and
    /// all arguments come from options.
    pub(crate) fn with_command_line_code(&self, error: Error) -> anyhow::Error {
        if error.code == WRONG_CALL && self.inputs.is_none() { usage(error) } else { error.into() }
    }
}

/// The code of errors for arguments that do not match a signature.
const WRONG_CALL: &str = "X0003";

/// An option `NAME=VALUE` for a parameter.
pub(crate) struct NamedOption<'a> {
    /// The index of the parameter.
    pub(crate) at: usize,
    pub(crate) name: &'a str,
    pub(crate) value: &'a str,
}

/// Splits options of the form `NAME=VALUE` and finds their parameters, at most one option for each.
pub(crate) fn parse_named<'a>(
    texts: &'a [String],
    value: &str,
    find: &dyn Fn(&str) -> Result<usize, Error>,
) -> Result<Vec<NamedOption<'a>>> {
    let mut found: Vec<NamedOption<'a>> = Vec::new();
    for text in texts {
        let form = || usage(wrong(format!("`{text}` is not NAME={value}")));
        let (name, value) = text.split_once('=').ok_or_else(form)?;
        let at = find(name).map_err(usage)?;
        if found.iter().any(|other| other.at == at) {
            let text = format!("argument `{name}` is given twice");
            return Err(usage(Error::new(Fault::Misuse, WRONG_CALL, text)));
        }
        found.push(NamedOption { at, name, value });
    }
    Ok(found)
}

/// Returns the index of the parameter with a name. Names of graphs may have a number behind a dot: `x` also names the
/// parameter `x.1` if it is the only one of this form.
pub(crate) fn parameter(entry: &Entry, name: &str) -> Result<usize, Error> {
    let params = entry.params();
    let known: Vec<&str> = params.iter().map(|p| p.name.as_str()).collect();
    if let Some(at) = known.iter().position(|known| *known == name) {
        return Ok(at);
    }
    let numbered = |known: &str| {
        let number = known.strip_prefix(name).and_then(|rest| rest.strip_prefix('.'));
        number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    };
    let mut alike = (0..known.len()).filter(|&at| numbered(known[at]));
    if let (Some(at), None) = (alike.next(), alike.next()) {
        return Ok(at);
    }
    let (function, all) = (entry.name(), known.join(", "));
    let text = format!("{function} has no parameter `{name}`; its parameters are {all}");
    let mut error = Error::new(Fault::Misuse, WRONG_CALL, text);
    error.help = did_you_mean(name, known.iter().copied());
    Err(error)
}

/// Reads the arguments from a JSON file, or from standard input (`-`).
pub(crate) fn from_file(file: &str, params: &[Argument]) -> Result<Inputs> {
    let text = if file == "-" {
        std::io::read_to_string(std::io::stdin()).context("reading standard input")?
    } else {
        std::fs::read_to_string(file).with_context(|| format!("reading {file}"))?
    };
    let json: Value =
        serde_json::from_str(&text).map_err(|e| wrong(format!("{file} is not valid JSON: {e}")))?;
    let mut inputs = Inputs::default();
    read_file(&json, file, params, &mut inputs)?;
    Ok(inputs)
}

pub(crate) fn type_of(params: &[Argument], name: &str) -> Type {
    params.iter().find(|p| p.name.as_str() == name).map_or(Type::ANY, |p| p.ty)
}

/// Creates the error for invalid arguments.
pub(crate) fn wrong(text: impl Into<String>) -> Error {
    Error::new(Fault::Input, "X0004", text)
}

/// Adds the name of the argument to an error.
pub(crate) fn within(place: &str, error: Error) -> Error {
    Error { message: format!("{place}: {}", error.message), ..error }
}

/// Keys of a file of arguments.
const FILE_KEYS: [&str; 2] = ["inputs", "kwargs"];

fn read_file(json: &Value, file: &str, params: &[Argument], inputs: &mut Inputs) -> Result<(), Error> {
    let no_list =
        || wrong(format!("{file}: expected a list of values, or an object with `inputs` and `kwargs`"));
    let (list, kwargs) = match json {
        Value::Array(list) => (list.as_slice(), None),
        Value::Object(o) => {
            if let Some(unknown) = o.keys().find(|key| !FILE_KEYS.contains(&key.as_str())) {
                let mut error = wrong(format!("{file}: `{unknown}` is not `inputs` or `kwargs`"));
                error.help = did_you_mean(unknown, FILE_KEYS);
                return Err(error);
            }
            let list = o.get("inputs").map_or(Some(&[][..]), |v| v.as_array().map(Vec::as_slice));
            (list.ok_or_else(no_list)?, o.get("kwargs"))
        }
        _ => return Err(no_list()),
    };
    let at = |place: String| move |e: JsonError| within(&format!("{file}, {place}"), Error::from(e));
    // Values may refer to earlier ones, so that arguments share memory.
    let mut reader = flambeau::json::Reader::default();
    for (i, value) in list.iter().enumerate() {
        let ty = params.get(i).map_or(Type::ANY, |p| p.ty);
        let value = reader.read_as(value, ty).map_err(at(format!("input {i}")))?;
        inputs.positional.push(value);
    }
    let named = match kwargs {
        None | Some(Value::Null) => None,
        Some(kwargs) => Some(kwargs.as_object().ok_or_else(no_list)?),
    };
    for (name, value) in named.into_iter().flatten() {
        let value = reader.read_as(value, type_of(params, name));
        inputs.named.push((name.clone(), value.map_err(at(format!("argument `{name}`")))?));
    }
    Ok(())
}

/// Parses `rand:f32[2,3]`, a JSON value, or text for a string.
pub(crate) fn inline(text: &str, ty: Type) -> Result<IValue, Error> {
    if let Some(spec) = text.strip_prefix("rand:") {
        return Ok(IValue::Tensor(random(spec)?));
    }
    let json = serde_json::from_str::<Value>(text);
    // A string needs no quotes, whatever it looks like.
    if is_text(ty) && !matches!(json, Ok(Value::String(_) | Value::Object(_) | Value::Null)) {
        return Ok(IValue::str(text));
    }
    match text {
        "True" => return Ok(IValue::Bool(true)),
        "False" => return Ok(IValue::Bool(false)),
        "none" | "None" => return Ok(IValue::None),
        "inf" | "-inf" | "nan" => return Ok(IValue::Float(text.parse().unwrap_or(f64::NAN))),
        _ => {}
    }
    match json {
        Ok(json) => Ok(flambeau::json::read_as(&json, ty)?),
        Err(e) => {
            let mut error = wrong(format!("`{text}` is not a value: {e}"));
            if TensorSpec::read(text).is_ok() {
                error.help = Some(format!("for a random tensor of this type: `rand:{text}`"));
            }
            Err(error)
        }
    }
}

/// Returns whether a type is that of a string, or of an optional one.
fn is_text(ty: Type) -> bool {
    ty == Type::STR || ty == Type::optional(Type::STR)
}

/// `f32[2,3]`: a dtype and sizes; `*` is an unknown size.
pub(crate) struct TensorSpec {
    pub(crate) dtype: DType,
    pub(crate) sizes: Vec<Option<i64>>,
}

impl TensorSpec {
    pub(crate) fn read(spec: &str) -> Result<TensorSpec, Error> {
        let unlike = || wrong(format!("`{spec}`: expected DTYPE[SIZES], such as f32[2,3]"));
        let (name, sizes) = spec.split_once('[').ok_or_else(unlike)?;
        let dtype = dtype(name)?;
        let sizes = sizes.strip_suffix(']').ok_or_else(unlike)?;
        let size = |text: &str| match text.trim() {
            // `*` in types of graphs, `?` in the output of `shapes`.
            "*" | "?" => Ok(None),
            digits => digits.parse().map(Some).map_err(|_| unlike()),
        };
        let sizes = sizes.split(',').filter(|s| !s.trim().is_empty()).map(size).collect::<Result<_, _>>()?;
        Ok(TensorSpec { dtype, sizes })
    }
}

/// Returns the dtype with a short name or a name of PyTorch.
pub(crate) fn dtype(name: &str) -> Result<DType, Error> {
    DType::from_short_name(name).or_else(|| DType::from_name(name)).ok_or_else(|| {
        let mut error = wrong(format!("`{name}` is not a dtype"));
        let known = DType::ALL.iter().flat_map(|dtype| [dtype.short_name(), dtype.name()]);
        error.help = did_you_mean(name, known);
        error
    })
}

/// Maximum number of elements of a random tensor.
const MAX_RANDOM: i64 = 1 << 26;

/// Parses `f32[2,3]` and returns a tensor of random numbers between -1 and 1 (integers from 0 to 9, bools of either value),
/// the same at every call.
fn random(spec: &str) -> Result<Tensor, Error> {
    let TensorSpec { dtype, sizes } = TensorSpec::read(spec)?;
    let sizes: Option<Vec<i64>> = sizes.into_iter().collect();
    let sizes = sizes.ok_or_else(|| wrong(format!("`{spec}` has an unknown size")))?;
    let count = flambeau::tensor::numel_of(&sizes).map_err(|e| wrong(e.to_string()))? as i64;
    if count > MAX_RANDOM {
        return Err(Error::new(
            Fault::Limit,
            "X0004",
            format!("`{spec}` has more than {MAX_RANDOM} elements"),
        ));
    }
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    let mut draw = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let unit = (state >> 40) as f64 / f64::from(1u32 << 24);
        match dtype {
            DType::Bool => (unit * 2.0).floor(),
            dtype if dtype.is_integral(true) => (unit * 10.0).floor(),
            _ => 2.0 * unit - 1.0,
        }
    };
    let values: Vec<f64> = (0..count).map(|_| draw()).collect();
    let tensor = Tensor::from_vec(values, &sizes).and_then(|t| t.to_dtype(dtype));
    tensor.map_err(|e| wrong(e.to_string()))
}

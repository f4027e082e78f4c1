//! Arguments of calls: values as JSON, from a file or inline, and random tensors.

use anyhow::{Context, Result, anyhow, bail};
use flambeau::ir::schema::Argument;
use flambeau::tensor::{DType, Scalar, Tensor};
use flambeau::{Entry, IValue, Type};
use serde_json::Value;

/// Where arguments come from.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct InputArgs {
    /// A JSON file: a list of values in order, or `{"inputs": […], "kwargs": {…}}`; `-` for standard input.
    #[arg(long, value_name = "FILE")]
    pub(crate) inputs: Option<String>,
    /// An argument: `NAME=JSON value`, a plain number, or `NAME=rand:f32[2,3]`.
    #[arg(long = "arg", short = 'a', value_name = "NAME=VALUE")]
    pub(crate) args: Vec<String>,
}

/// Positional and named arguments.
pub(crate) struct Inputs {
    pub(crate) positional: Vec<IValue>,
    pub(crate) named: Vec<(String, IValue)>,
}

impl Inputs {
    /// Named arguments as the façade takes them.
    pub(crate) fn kwargs(&self) -> Vec<(&str, IValue)> {
        self.named.iter().map(|(n, v)| (n.as_str(), v.clone())).collect()
    }
}

impl InputArgs {
    /// Reads the arguments for an entry, whose parameters' types decide what empty lists are.
    pub(crate) fn read(&self, entry: &Entry) -> Result<Inputs> {
        let params = entry.params();
        let mut inputs = Inputs { positional: Vec::new(), named: Vec::new() };
        if let Some(file) = &self.inputs {
            let text = if file == "-" {
                std::io::read_to_string(std::io::stdin()).context("reading standard input")?
            } else {
                std::fs::read_to_string(file).with_context(|| format!("reading {file}"))?
            };
            let json: Value = serde_json::from_str(&text).with_context(|| format!("{file} is no JSON"))?;
            read_file(&json, params, &mut inputs).with_context(|| format!("in {file}"))?;
        }
        for text in &self.args {
            let (name, value) = text.split_once('=').ok_or_else(|| anyhow!("`{text}` is not NAME=VALUE"))?;
            let ty = type_of(params, name);
            inputs
                .named
                .push((name.to_owned(), inline(value, ty).with_context(|| format!("argument `{name}`"))?));
        }
        Ok(inputs)
    }
}

fn type_of(params: &[Argument], name: &str) -> Type {
    params.iter().find(|p| p.name.as_str() == name).map_or(Type::ANY, |p| p.ty)
}

fn read_file(json: &Value, params: &[Argument], inputs: &mut Inputs) -> Result<()> {
    let list = match json {
        Value::Array(list) => list.as_slice(),
        Value::Object(o) => o.get("inputs").and_then(Value::as_array).map_or(&[][..], Vec::as_slice),
        _ => bail!("expected a list of values, or an object with `inputs` and `kwargs`"),
    };
    for (i, value) in list.iter().enumerate() {
        let ty = params.get(i).map_or(Type::ANY, |p| p.ty);
        inputs.positional.push(flambeau::json::read_as(value, ty).map_err(flambeau::Error::from)?);
    }
    let named = json.get("kwargs").and_then(Value::as_object);
    for (name, value) in named.into_iter().flatten() {
        let ty = type_of(params, name);
        inputs.named.push((name.clone(), flambeau::json::read_as(value, ty).map_err(flambeau::Error::from)?));
    }
    Ok(())
}

/// `3`, `2.5`, `true`, `rand:f32[2,3]`, or a JSON value.
fn inline(text: &str, ty: Type) -> Result<IValue> {
    if let Some(spec) = text.strip_prefix("rand:") {
        return Ok(IValue::Tensor(random(spec)?));
    }
    match text {
        "true" | "True" => return Ok(IValue::Bool(true)),
        "false" | "False" => return Ok(IValue::Bool(false)),
        "none" | "None" => return Ok(IValue::None),
        _ => {}
    }
    if ty != Type::FLOAT
        && let Ok(v) = text.parse::<i64>()
    {
        return Ok(IValue::Int(v));
    }
    if let Ok(v) = text.parse::<f64>() {
        return Ok(IValue::Float(v));
    }
    match serde_json::from_str::<Value>(text) {
        Ok(json) => Ok(flambeau::json::read_as(&json, ty).map_err(flambeau::Error::from)?),
        Err(_) if ty == Type::STR => Ok(IValue::str(text)),
        Err(e) => bail!("`{text}` is no value: {e}"),
    }
}

/// `f32[2,3]`: a tensor of numbers between -1 and 1, the same at every call.
fn random(spec: &str) -> Result<Tensor> {
    let (dtype, sizes) = spec.split_once('[').ok_or_else(|| anyhow!("`{spec}` is not like `f32[2,3]`"))?;
    let dtype = match dtype {
        "f32" => DType::F32,
        "f64" => DType::F64,
        "f16" => DType::F16,
        "bf16" => DType::BF16,
        "i64" => DType::I64,
        "i32" => DType::I32,
        other => DType::from_name(other).ok_or_else(|| anyhow!("`{other}` is no dtype"))?,
    };
    let sizes = sizes.strip_suffix(']').ok_or_else(|| anyhow!("`{spec}` lacks `]`"))?;
    let sizes: Vec<i64> = if sizes.is_empty() {
        Vec::new()
    } else {
        sizes.split(',').map(|s| s.trim().parse::<i64>()).collect::<Result<_, _>>().context("sizes")?
    };
    let count = flambeau::tensor::numel_of(&sizes).map_err(|e| anyhow!("{e}"))?;
    if count > 1 << 30 {
        bail!("`{spec}` has more than 2^30 elements");
    }
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    let values: Vec<Scalar> = (0..count)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let unit = (state >> 40) as f64 / f64::from(1u32 << 24);
            if dtype.is_integral(true) {
                Scalar::Int((unit * 10.0) as i64)
            } else {
                Scalar::Float(2.0 * unit - 1.0)
            }
        })
        .collect();
    Tensor::from_scalars(&values, &sizes, dtype).map_err(|e| anyhow!("{e}"))
}

//! Tables of builtin names: globals of the language and members of `torch`, `math` and similar modules.
//!
//! A namespace is a prefix of operator names, a global is a row. Operators are not listed here: an operator exists if
//! the registry has it.

use std::rc::Rc;

use flambeau_ir::{FunctionSchema, IValue, Prim, Registry, Symbol, Type};

use super::sugar::{Special, Sugar};

/// Builtin functions that a class can overload by a method: name, method, operator.
const MAGIC: [(&str, &str, &str); 6] = [
    ("len", "__len__", "aten::len"),
    ("hex", "__hex__", "aten::hex"),
    ("oct", "__oct__", "aten::oct"),
    ("round", "__round__", "aten::round"),
    ("hash", "__hash__", "aten::hash"),
    ("abs", "__abs__", "prim::abs"),
];

/// Conversions: name, method, operator, result type.
const CASTS: [(&str, &str, &str, Type); 5] = [
    ("int", "__int__", "aten::Int", Type::INT),
    ("float", "__float__", "aten::Float", Type::FLOAT),
    ("complex", "__complex__", "aten::Complex", Type::COMPLEX),
    ("bool", "__bool__", "aten::Bool", Type::BOOL),
    ("str", "__str__", "aten::str", Type::STR),
];

/// Builtin functions that are plain operators.
const OPERATORS: [(&str, &str); 14] = [
    ("id", "prim::id"),
    ("min", "prim::min"),
    ("max", "prim::max"),
    ("all", "aten::all"),
    ("any", "aten::any"),
    ("divmod", "aten::divmod"),
    ("sum", "aten::sum"),
    ("ord", "aten::ord"),
    ("chr", "aten::chr"),
    ("bin", "aten::bin"),
    ("pow", "aten::pow"),
    ("sorted", "aten::sorted"),
    ("rangelist", "prim::rangelist"),
    ("device", "aten::device"),
];

const SPECIAL: [(&str, Special); 28] = [
    ("awaitable", Special::Awaitable),
    ("torch.jit.awaitable", Special::Awaitable),
    ("tuple", Special::Tuple),
    ("list", Special::List),
    ("dict", Special::Dict),
    ("getattr", Special::GetAttr),
    ("hasattr", Special::HasAttr),
    ("isinstance", Special::IsInstance),
    ("range", Special::Range),
    ("zip", Special::Zip),
    ("enumerate", Special::Enumerate),
    ("slice", Special::Slice),
    ("annotate", Special::Annotate),
    ("uninitialized", Special::Uninitialized),
    ("unchecked_cast", Special::UncheckedCast),
    ("fork", Special::Fork),
    ("torch.jit.annotate", Special::Annotate),
    ("torch.jit.isinstance", Special::IsInstance),
    ("torch.jit.fork", Special::Fork),
    ("torch.ByteTensor", Special::TypedTensor(0)),
    ("torch.CharTensor", Special::TypedTensor(1)),
    ("torch.ShortTensor", Special::TypedTensor(2)),
    ("torch.IntTensor", Special::TypedTensor(3)),
    ("torch.LongTensor", Special::TypedTensor(4)),
    ("torch.HalfTensor", Special::TypedTensor(5)),
    ("torch.FloatTensor", Special::TypedTensor(6)),
    ("torch.DoubleTensor", Special::TypedTensor(7)),
    ("torch.BoolTensor", Special::TypedTensor(11)),
];

/// Namespaces and the prefix of their members' operators. With an empty prefix, a namespace has only the members listed
/// elsewhere.
const NAMESPACES: [(&str, &str); 28] = [
    ("torch", "aten::"),
    ("math", "aten::"),
    ("torch.linalg", "aten::linalg_"),
    ("torch.fft", "aten::fft_"),
    ("torch.special", "aten::special_"),
    ("torch.sparse", "aten::_sparse_"),
    ("torch.nn", ""),
    ("torch.nn.functional", "aten::"),
    ("torch.nn.modules", ""),
    ("torch.nn.modules.utils", "aten::"),
    ("torch.nn.init", ""),
    ("torch._C", "aten::"),
    ("torch._C._nn", "aten::"),
    ("torch._VF", "aten::"),
    ("torch.jit", "aten::"),
    ("torch.Tensor", "aten::"),
    ("torch.utils", ""),
    ("torch.autograd", ""),
    ("torch.autograd.profiler", ""),
    ("torch.profiler", ""),
    ("torch.cuda", "cuda::"),
    ("torch.cuda.amp", ""),
    ("torch.cpu", ""),
    ("torch.cpu.amp", ""),
    ("torch.amp", ""),
    ("torch.nested", "aten::_nested_"),
    ("cmath", "aten::"),
    ("warnings", "aten::"),
];

/// Functions of `math` that TorchScript does not have, although tensors have operators of these names.
const NOT_IN_MATH: [&str; 9] =
    ["dist", "exp2", "hypot", "isclose", "lcm", "log2", "nextafter", "prod", "trunc"];

/// Names of functions whose operators do not follow the prefix rule.
const RENAMED: [(&str, &str); 17] = [
    ("cmath.phase", "aten::angle"),
    ("cmath.rect", "aten::polar"),
    ("torch.jit._awaitable_wait", "prim::awaitable_wait"),
    ("torch.jit._awaitable_nowait", "prim::awaitable_nowait"),
    ("math.remainder", "aten::mathremainder"),
    ("torch.autograd.backward", "aten::backward"),
    ("torch.autograd.grad", "aten::grad"),
    ("torch.jit.wait", "aten::wait"),
    ("torch.jit._wait", "aten::wait"),
    ("torch.jit._unwrap_optional", "aten::_unwrap_optional"),
    ("torch._jit_internal._unwrap_optional", "aten::_unwrap_optional"),
    ("math.fabs", "aten::fabs"),
    ("torch.conv_tbc", "aten::conv_tbc"),
    ("torch.rsub", "aten::rsub"),
    ("torch.nn.functional.hardtanh_", "aten::hardtanh_"),
    ("torch.concat", "aten::concat"),
    ("torch._segment_reduce", "aten::segment_reduce"),
];

const DTYPES: [(&str, i64); 69] = [
    ("uint8", 0),
    ("int8", 1),
    ("int16", 2),
    ("short", 2),
    ("int32", 3),
    ("int", 3),
    ("int64", 4),
    ("long", 4),
    ("float16", 5),
    ("half", 5),
    ("float32", 6),
    ("float", 6),
    ("float64", 7),
    ("double", 7),
    ("complex32", 8),
    ("complex64", 9),
    ("cfloat", 9),
    ("complex128", 10),
    ("cdouble", 10),
    ("bool", 11),
    ("qint8", 12),
    ("quint8", 13),
    ("qint32", 14),
    ("bfloat16", 15),
    ("quint4x2", 16),
    ("quint2x4", 17),
    ("bits1x8", 18),
    ("bits2x4", 19),
    ("bits4x2", 20),
    ("bits8", 21),
    ("bits16", 22),
    ("float8_e5m2", 23),
    ("float8_e4m3fn", 24),
    ("float8_e5m2fnuz", 25),
    ("float8_e4m3fnuz", 26),
    ("uint16", 27),
    ("uint32", 28),
    ("uint64", 29),
    ("uint1", 30),
    ("uint2", 31),
    ("uint3", 32),
    ("uint4", 33),
    ("uint5", 34),
    ("uint6", 35),
    ("uint7", 36),
    ("int1", 37),
    ("int2", 38),
    ("int3", 39),
    ("int4", 40),
    ("int5", 41),
    ("int6", 42),
    ("int7", 43),
    ("strided", 0),
    ("sparse_coo", 1),
    ("sparse_csr", 2),
    ("sparse_csc", 4),
    ("sparse_bsr", 5),
    ("sparse_bsc", 6),
    ("jagged", 7),
    ("contiguous_format", 0),
    ("legacy_contiguous_format", 0),
    ("preserve_format", 1),
    ("channels_last", 2),
    ("channels_last_3d", 3),
    ("per_tensor_affine", 0),
    ("per_channel_affine", 1),
    ("per_tensor_symmetric", 2),
    ("per_channel_symmetric", 3),
    ("per_channel_affine_float_qparams", 4),
];

/// Tensor methods that convert to a dtype.
const TENSOR_CASTS: [(&str, i64); 10] = [
    ("byte", 0),
    ("char", 1),
    ("short", 2),
    ("int", 3),
    ("long", 4),
    ("half", 5),
    ("float", 6),
    ("double", 7),
    ("cfloat", 9),
    ("cdouble", 10),
];

/// Properties: type name, member, operator.
const PROPERTIES: [(&str, &str, &str); 38] = [
    ("Tensor", "dtype", "prim::dtype"),
    ("Tensor", "device", "prim::device"),
    ("Tensor", "grad", "prim::grad"),
    ("Tensor", "data", "prim::data"),
    ("Tensor", "shape", "prim::shape"),
    ("Tensor", "is_cuda", "prim::is_cuda"),
    ("Tensor", "is_cpu", "prim::is_cpu"),
    ("Tensor", "is_xla", "prim::is_xla"),
    ("Tensor", "is_xpu", "prim::is_xpu"),
    ("Tensor", "is_sparse", "prim::is_sparse"),
    ("Tensor", "is_sparse_csr", "prim::is_sparse_csr"),
    ("Tensor", "is_mkldnn", "prim::is_mkldnn"),
    ("Tensor", "is_mps", "prim::is_mps"),
    ("Tensor", "is_mtia", "prim::is_mtia"),
    ("Tensor", "is_quantized", "prim::is_quantized"),
    ("Tensor", "is_vulkan", "prim::is_vulkan"),
    ("Tensor", "is_ipu", "prim::is_ipu"),
    ("Tensor", "is_meta", "prim::is_meta"),
    ("Tensor", "is_maia", "prim::is_maia"),
    ("Tensor", "is_leaf", "aten::is_leaf"),
    ("Tensor", "retains_grad", "aten::retains_grad"),
    ("Tensor", "is_nested", "prim::is_nested"),
    ("Tensor", "requires_grad", "prim::requires_grad"),
    ("Tensor", "layout", "prim::layout"),
    ("Tensor", "T", "prim::T"),
    ("Tensor", "H", "prim::H"),
    ("Tensor", "mT", "aten::mT"),
    ("Tensor", "mH", "aten::mH"),
    ("Tensor", "itemsize", "prim::itemsize"),
    ("Tensor", "nbytes", "prim::nbytes"),
    ("Tensor", "ndim", "prim::ndim"),
    ("Tensor", "name", "prim::name"),
    ("Tensor", "real", "aten::real"),
    ("Tensor", "imag", "aten::imag"),
    ("Device", "type", "prim::type"),
    ("Device", "index", "prim::index"),
    ("complex", "real", "aten::real"),
    ("complex", "imag", "aten::imag"),
];

const EXCEPTIONS: [&str; 26] = [
    "BaseException",
    "Exception",
    "ArithmeticError",
    "AssertionError",
    "AttributeError",
    "BufferError",
    "EOFError",
    "FloatingPointError",
    "ImportError",
    "IndexError",
    "KeyError",
    "KeyboardInterrupt",
    "LookupError",
    "MemoryError",
    "NameError",
    "NotImplementedError",
    "OSError",
    "OverflowError",
    "RecursionError",
    "RuntimeError",
    "StopIteration",
    "SystemError",
    "TypeError",
    "UnicodeError",
    "ValueError",
    "ZeroDivisionError",
];

/// Returns the dtype that a tensor method converts to.
pub(super) fn tensor_cast(name: &str) -> Option<i64> {
    row(&TENSOR_CASTS, name)
}

/// Returns the operator of a property.
pub(super) fn property(owner: &str, name: &str) -> Option<&'static str> {
    PROPERTIES.iter().find(|(o, n, _)| *o == owner && *n == name).map(|(_, _, op)| *op)
}

fn row<T: Copy>(table: &[(&str, T)], name: &str) -> Option<T> {
    table.iter().find(|(n, _)| *n == name).map(|(_, v)| *v)
}

/// Returns a constant by its dotted name, such as `torch.float32` or `math.pi`.
pub(crate) fn constant(name: &str) -> Option<IValue> {
    if let Some(member) = name.strip_prefix("torch.")
        && let Some(number) = row(&DTYPES, member)
    {
        return Some(IValue::Int(number));
    }
    let modules = ["math.", "cmath.", "torch."];
    let short = modules.iter().find_map(|module| name.strip_prefix(module)).unwrap_or(name);
    Some(match short {
        "pi" if short != name => IValue::Float(std::f64::consts::PI),
        "e" if short != name => IValue::Float(std::f64::consts::E),
        "tau" if short != name => IValue::Float(std::f64::consts::TAU),
        "inf" => IValue::Float(f64::INFINITY),
        "nan" => IValue::Float(f64::NAN),
        "infj" => IValue::complex(flambeau_tensor::Complex::new(0.0, f64::INFINITY)),
        "nanj" => IValue::complex(flambeau_tensor::Complex::new(0.0, f64::NAN)),
        _ => return None,
    })
}

/// Returns the meaning of a builtin global name.
pub(crate) fn global(name: &str) -> Option<Sugar> {
    if name == "print" {
        return Some(Sugar::Print);
    }
    let builtin = |op: &str| Sugar::Builtin(Symbol::new(op), None);
    if let Some((_, method, op, ty)) = CASTS.iter().find(|c| c.0 == name) {
        let cast = Sugar::Cast(Symbol::new(op), *ty);
        return Some(Sugar::Magic(Symbol::new(method), Rc::new(cast)));
    }
    if let Some((_, method, op)) = MAGIC.iter().find(|m| m.0 == name) {
        return Some(Sugar::Magic(Symbol::new(method), Rc::new(builtin(op))));
    }
    if let Some(op) = row(&OPERATORS, name) {
        return Some(builtin(op));
    }
    if let Some(special) = row(&SPECIAL, name) {
        return Some(Sugar::Special(special));
    }
    if EXCEPTIONS.contains(&name) {
        return Some(Sugar::Exception(Symbol::new(&format!("builtins.{name}"))));
    }
    match name {
        "torch" | "math" | "cmath" | "warnings" => Some(Sugar::Namespace(Symbol::new(name))),
        "F" => Some(Sugar::Namespace(Symbol::new("torch.nn.functional"))),
        "ops" => Some(Sugar::Namespace(Symbol::new("torch.ops"))),
        _ => constant(name).map(Sugar::Constant),
    }
}

/// Returns the meaning of a member of a namespace. `script` looks up the library written in TorchScript.
pub(crate) fn member(
    registry: &Registry,
    space: &str,
    name: &str,
    script: &dyn Fn(&str) -> Option<Sugar>,
) -> Option<Sugar> {
    let full = format!("{space}.{name}");
    if let Some(value) = constant(&full) {
        return Some(Sugar::Constant(value));
    }
    if full == "torch.jit.is_scripting" {
        return Some(Sugar::Builtin(Symbol::new("aten::is_scripting"), None));
    }
    if let Some(special) = row(&SPECIAL, &full).or_else(|| row(&SPECIAL, &full.replace("jit._", "jit."))) {
        return Some(Sugar::Special(special));
    }
    if let Some(rest) = full.strip_prefix("torch.ops.") {
        return Some(match rest.split_once('.') {
            Some((ns, op)) => Sugar::Builtin(Symbol::new(&format!("{ns}::{op}")), None),
            None => Sugar::Namespace(Symbol::new(&full)),
        });
    }
    if full == "torch.ops" || row(&NAMESPACES, &full).is_some() {
        return Some(Sugar::Namespace(Symbol::new(&full)));
    }
    if let Some(op) = row(&RENAMED, &full) {
        return Some(Sugar::Builtin(Symbol::new(op), None));
    }
    if let Some(found) = script(&full) {
        return Some(found);
    }
    if space == "math" && NOT_IN_MATH.contains(&name) {
        return None;
    }
    let prefix = row(&NAMESPACES, space).filter(|p| !p.is_empty())?;
    let op = Symbol::new(&format!("{prefix}{name}"));
    // Return unknown operators too: the call reports the missing operator. The functions of `math` are none of them.
    let known = !registry.overloads(op).is_empty();
    if space == "math" {
        return known.then_some(Sugar::Builtin(op, None));
    }
    (known || space != "torch.nn.functional" || prefix == "aten::").then_some(Sugar::Builtin(op, None))
}

/// Structural operators that programs can call by name, as archived code does, with their schemas.
const STRUCTURAL: [(Prim, &str); 10] = [
    (Prim::AutogradAllNonZero, "prim::AutogradAllNonZero(...) -> bool"),
    (Prim::AutogradAllZero, "prim::AutogradAllZero(...) -> bool"),
    (Prim::AutogradAnyNonZero, "prim::AutogradAnyNonZero(...) -> bool"),
    (Prim::AwaitableNowait, "prim::awaitable_nowait(t self) -> Await(t)"),
    (Prim::AwaitableWait, "prim::awaitable_wait(Await(t) self) -> t"),
    (Prim::BroadcastSizes, "prim::BroadcastSizes(...) -> int[]"),
    (Prim::MMTreeReduce, "prim::MMTreeReduce(...) -> Tensor"),
    (Prim::RaiseException, "prim::RaiseException(str msg, str? cls=None) -> ()"),
    (Prim::ReductionSizes, "prim::ReductionSizes(int[] size, int[] red_axes, bool keepdim=False) -> int[]"),
    (Prim::UncheckedUnwrapOptional, "prim::unchecked_unwrap_optional(t(a)? optional) -> t(a)"),
];

/// Returns the structural operator of this name and its schema.
pub(crate) fn structural(name: Symbol) -> Option<(Prim, FunctionSchema)> {
    let prim = Prim::from_symbol(name)?;
    let (_, text) = STRUCTURAL.iter().find(|(p, _)| *p == prim)?;
    Some((prim, FunctionSchema::parse(text).ok()?))
}

//! Printing of types.
//!
//! PyTorch has three notations for a type, and all three occur in output:
//! - [`Type`]'s `Display` is the notation of graphs: `Float(2, 3)[]`, `NamedTuple(x : int)`, `Future[T]`;
//! - [`Type::str_text`] is the notation inside dictionaries, unions and awaitables of graphs: unrefined tensors, named
//!   tuples by name, `Future(T)`;
//! - [`Type::annotation`] is source text: `List[Tensor]`, `Optional[int]`; error messages use it too.
//!
//! One difference from PyTorch: a union with int, float and complex prints its members joined by `, ` with `Scalar`
//! last, where PyTorch omits separators (`Union(TensorScalar)`).

use std::fmt::{self, Write};

use super::{Dim, TensorType, Type, TypeKind};

/// The properties of tensor types that a graph's text shows: the levels of PyTorch, with PyTorch's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Verbosity {
    /// 0: values are printed without types. Types in attributes are printed as with [`Verbosity::Type`].
    None,
    /// 1: element type and sizes.
    Type,
    /// 2: also strides.
    Strides,
    /// 3: also device and `requires_grad`.
    #[default]
    Full,
    /// 4: also the numbers of symbolic sizes, as `SS(-1)`.
    Symbolic,
}

impl Verbosity {
    /// Returns the level with a number from 0 to 4, as in PyTorch's variable `PYTORCH_JIT_TYPE_VERBOSITY`.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Verbosity> {
        let all = [Self::None, Self::Type, Self::Strides, Self::Full, Self::Symbolic];
        all.get(usize::from(number)).copied()
    }
}

/// The notation.
#[derive(Clone, Copy, PartialEq)]
enum Style {
    Graph(Verbosity),
    Str,
    Annotation,
}

/// Maximum weight of a type whose text is cached.
const KEPT_WEIGHT: u32 = 32;

struct Text(Type, Style);

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(f, self.0, self.1)
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.weight() > KEPT_WEIGHT {
            return write(f, *self, Style::Graph(Verbosity::Full));
        }
        f.write_str(self.entry().text.get_or_init(|| {
            let mut text = String::new();
            write(&mut text, *self, Style::Graph(Verbosity::Full))
                .expect("invariant: writing to a string works");
            text.into()
        }))
    }
}

impl Type {
    /// Returns the notation of graphs with the tensor properties that `verbosity` selects.
    #[must_use]
    pub fn with_verbosity(self, verbosity: Verbosity) -> impl fmt::Display {
        Text(self, Style::Graph(verbosity))
    }

    /// Returns the notation inside dictionaries, unions and awaitables of graphs.
    #[must_use]
    pub fn str_text(self) -> impl fmt::Display {
        Text(self, Style::Str)
    }

    /// Returns source text for formatting, as [`Type::annotation_str`].
    #[must_use]
    pub fn annotation(self) -> impl fmt::Display {
        Text(self, Style::Annotation)
    }

    /// Returns source text: `List[int]`, `Optional[Tensor]`, `Dict[str, Tuple[int, float]]`.
    #[must_use]
    pub fn annotation_str(self) -> String {
        self.annotation().to_string()
    }
}

fn write(out: &mut dyn Write, ty: Type, style: Style) -> fmt::Result {
    let annotation = style == Style::Annotation;
    let name = match ty.kind() {
        TypeKind::Tensor(t) => match style {
            Style::Graph(verbosity) => return write_tensor(out, t, verbosity),
            _ => "Tensor",
        },
        TypeKind::List(t) if annotation => return wrapped(out, "List[", &[*t], "]", style),
        TypeKind::List(t) => return wrapped(out, "", &[*t], "[]", style),
        TypeKind::Optional(t) if annotation => return wrapped(out, "Optional[", &[*t], "]", style),
        TypeKind::Optional(t) => return wrapped(out, "", &[*t], "?", style),
        TypeKind::Dict(k, v) if annotation => return wrapped(out, "Dict[", &[*k, *v], "]", style),
        TypeKind::Dict(k, v) => return wrapped(out, "Dict(", &[*k, *v], ")", Style::Str),
        TypeKind::Union(ts) => return write_union(out, ts, annotation),
        TypeKind::Tuple(_) => return write_tuple(out, ty, style),
        TypeKind::Future(t) if style == Style::Str => return wrapped(out, "Future(", &[*t], ")", style),
        TypeKind::Future(t) => return wrapped(out, "Future[", &[*t], "]", style),
        TypeKind::RRef(t) if style == Style::Str => return wrapped(out, "RRef(", &[*t], ")", style),
        TypeKind::RRef(t) => return wrapped(out, "RRef[", &[*t], "]", style),
        TypeKind::Await(t) if annotation => return wrapped(out, "Await[", &[*t], "]", style),
        TypeKind::Await(t) => return wrapped(out, "Await(", &[*t], ")", Style::Str),
        TypeKind::Interface(n) if !annotation => {
            return write!(out, "InterfaceType<{}>", short_name(n.name.as_str()));
        }
        TypeKind::Enum(n, _) if !annotation => return write!(out, "Enum<{}>", n.name),
        TypeKind::Function(name) if annotation && !name.is_empty() => name.as_str(),
        TypeKind::Class(n) | TypeKind::Interface(n) | TypeKind::Enum(n, _) => n.name.as_str(),
        TypeKind::Var(name) => name.as_str(),
        TypeKind::Number if annotation => "number",
        simple => simple_name(simple).expect("invariant: the other kinds are simple"),
    };
    out.write_str(name)
}

/// Returns the name of a kind without parts and identity.
pub(super) fn simple_name(kind: &TypeKind) -> Option<&'static str> {
    Some(match kind {
        TypeKind::Any => "Any",
        TypeKind::None => "NoneType",
        TypeKind::Bool => "bool",
        TypeKind::Int => "int",
        TypeKind::Float => "float",
        TypeKind::Complex => "complex",
        TypeKind::Number => "Scalar",
        TypeKind::Str => "str",
        TypeKind::Device => "Device",
        TypeKind::Generator => "Generator",
        TypeKind::Stream => "Stream",
        TypeKind::Storage => "Storage",
        TypeKind::Quantizer => "Quantizer",
        TypeKind::QScheme => "QScheme",
        TypeKind::Layout => "Layout",
        TypeKind::MemoryFormat => "MemoryFormat",
        TypeKind::ScalarType => "ScalarType",
        TypeKind::SymInt => "SymInt",
        TypeKind::SymFloat => "SymFloat",
        TypeKind::SymBool => "SymBool",
        TypeKind::Capsule => "Capsule",
        TypeKind::PyObject => "PyObject",
        TypeKind::AnyList => "list",
        TypeKind::AnyTuple => "tuple",
        TypeKind::AnyClass => "AnyClassType",
        TypeKind::AnyEnum => "AnyEnumType",
        TypeKind::Function(_) => "Function",
        TypeKind::Overflow => "<type too large>",
        _ => return None,
    })
}

fn wrapped(out: &mut dyn Write, open: &str, parts: &[Type], close: &str, style: Style) -> fmt::Result {
    out.write_str(open)?;
    for (i, part) in parts.iter().enumerate() {
        if i > 0 {
            out.write_str(", ")?;
        }
        write(out, *part, style)?;
    }
    out.write_str(close)
}

fn write_union(out: &mut dyn Write, members: &[Type], annotation: bool) -> fmt::Result {
    const NUMBERS: [Type; 3] = [Type::FLOAT, Type::COMPLEX, Type::INT];
    let (open, close, style) =
        if annotation { ("Union[", "]", Style::Annotation) } else { ("Union(", ")", Style::Str) };
    if !NUMBERS.iter().all(|n| members.contains(n)) {
        return wrapped(out, open, members, close, style);
    }
    let mut shown: Vec<Type> = members.iter().copied().filter(|m| !NUMBERS.contains(m)).collect();
    shown.push(Type::NUMBER);
    wrapped(out, open, &shown, close, style)
}

fn write_tuple(out: &mut dyn Write, ty: Type, style: Style) -> fmt::Result {
    let tuple = ty.as_tuple().expect("invariant: asked of tuples only");
    // A tuple of results has field names without a name of its own; only graphs print the fields.
    let graph = matches!(style, Style::Graph(_));
    let Some(named) = tuple.named.as_ref().filter(|n| graph || !n.name.is_empty()) else {
        return match style {
            Style::Annotation if tuple.elems.is_empty() => out.write_str("Tuple[()]"),
            Style::Annotation => wrapped(out, "Tuple[", &tuple.elems, "]", style),
            _ => wrapped(out, "(", &tuple.elems, ")", style),
        };
    };
    if !graph {
        return out.write_str(named.name.as_str());
    }
    out.write_str("NamedTuple(")?;
    for (i, (field, elem)) in named.fields.iter().zip(&tuple.elems).enumerate() {
        let comma = if i > 0 { ", " } else { "" };
        write!(out, "{comma}{} : ", field.name)?;
        write(out, *elem, style)?;
        if let Some(default) = field.default {
            write!(out, " = {default}")?;
        }
    }
    out.write_str(")")
}

fn write_tensor(out: &mut dyn Write, t: &TensorType, verbosity: Verbosity) -> fmt::Result {
    match t.dtype {
        Some(dtype) => out.write_str(dtype.ir_name())?,
        None => out.write_str("Tensor")?,
    }
    let mut list = List { out, open: false, any: false };
    if let Some(sizes) = &t.sizes {
        list.begin()?;
        for &size in sizes {
            list.separate()?;
            match size {
                Dim::Known(n) => write!(list.out, "{n}")?,
                Dim::Sym(s) if verbosity == Verbosity::Symbolic => write!(list.out, "SS({s})")?,
                Dim::Sym(_) | Dim::Unknown => list.out.write_str("*")?,
            }
        }
        if verbosity >= Verbosity::Strides
            && !sizes.is_empty()
            && let Some(strides) = t.concrete_strides()
        {
            list.separate()?;
            write!(list.out, "strides={strides:?}")?;
        }
    } else if t.dtype.is_some() {
        list.out.write_str("Tensor")?;
    }
    if verbosity >= Verbosity::Full {
        if let Some(grad) = t.requires_grad {
            list.separate()?;
            write!(list.out, "requires_grad={}", u8::from(grad))?;
        }
        if let Some(device) = t.device {
            list.separate()?;
            write!(list.out, "device={device}")?;
        }
    }
    if list.open {
        list.out.write_str(")")?;
    }
    if t.undefined { out.write_str("[Undefined]") } else { Ok(()) }
}

/// A parenthesised list; the first item prints the opening parenthesis.
struct List<'a> {
    out: &'a mut dyn Write,
    open: bool,
    any: bool,
}

impl List<'_> {
    fn begin(&mut self) -> fmt::Result {
        if std::mem::replace(&mut self.open, true) { Ok(()) } else { self.out.write_str("(") }
    }

    fn separate(&mut self) -> fmt::Result {
        self.begin()?;
        if std::mem::replace(&mut self.any, true) { self.out.write_str(", ") } else { Ok(()) }
    }
}

/// Returns the name without its module path, as interfaces print it.
fn short_name(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Symbol;
    use crate::types::NamedField;
    use flambeau_tensor::{DType, Device};

    #[test]
    fn tensors() {
        let full = TensorType {
            requires_grad: Some(false),
            device: Some(Device::CPU),
            ..TensorType::contiguous(DType::F32, &[2, 3])
        };
        let t = Type::tensor(full.clone());
        assert_eq!(t.to_string(), "Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu)");
        assert_eq!(t.with_verbosity(Verbosity::Type).to_string(), "Float(2, 3)");
        assert_eq!(t.with_verbosity(Verbosity::Strides).to_string(), "Float(2, 3, strides=[3, 1])");
        let scalar = TensorType { dtype: Some(DType::I64), sizes: Some([].into()), ..full.clone() };
        assert_eq!(Type::tensor(scalar).to_string(), "Long(requires_grad=0, device=cpu)");
        let bare = TensorType { dtype: Some(DType::F32), ..TensorType::default() };
        assert_eq!(Type::tensor(bare).to_string(), "FloatTensor");
        let undefined = TensorType { undefined: true, ..TensorType::default() };
        assert_eq!(Type::tensor(undefined).to_string(), "Tensor[Undefined]");
        let grad = TensorType { requires_grad: Some(true), ..TensorType::default() };
        assert_eq!(Type::tensor(grad).to_string(), "Tensor(requires_grad=1)");
        let dims = TensorType { sizes: Some([Dim::Unknown, Dim::Sym(-1)].into()), ..TensorType::default() };
        assert_eq!(Type::tensor(dims.clone()).to_string(), "Tensor(*, *)");
        assert_eq!(Type::tensor(dims).with_verbosity(Verbosity::Symbolic).to_string(), "Tensor(*, SS(-1))");
    }

    #[test]
    fn containers() {
        let float2 = Type::tensor(TensorType { strides: None, ..TensorType::contiguous(DType::F32, &[2]) });
        assert_eq!(Type::list(float2).to_string(), "Float(2)[]");
        assert_eq!(Type::dict(Type::STR, float2).to_string(), "Dict(str, Tensor)");
        assert_eq!(Type::future(float2).to_string(), "Future[Float(2)]");
        assert_eq!(Type::dict(Type::STR, Type::future(Type::INT)).to_string(), "Dict(str, Future(int))");
        let fields = [
            (NamedField { name: Symbol::new("x"), default: None }, Type::TENSOR),
            (NamedField { name: Symbol::new("y"), default: Some(Symbol::new("3")) }, Type::INT),
        ];
        let named = Type::named_tuple(Symbol::new("__torch__.N"), &fields);
        assert_eq!(named.to_string(), "NamedTuple(x : Tensor, y : int = 3)");
        assert_eq!(Type::dict(Type::STR, named).to_string(), "Dict(str, __torch__.N)");
        assert_eq!(named.annotation_str(), "__torch__.N");
        assert_eq!(Type::UNIT.annotation_str(), "Tuple[()]");
        let deep = Type::optional(Type::dict(Type::STR, Type::tuple(&[Type::LIST_INT, Type::NUMBER])));
        assert_eq!(deep.annotation_str(), "Optional[Dict[str, Tuple[List[int], number]]]");
        assert_eq!(deep.to_string(), "Dict(str, (int[], Scalar))?");
        assert_eq!(
            Type::enumeration(Symbol::new("__torch__.E"), 0, Type::INT).to_string(),
            "Enum<__torch__.E>"
        );
        assert_eq!(Type::interface(Symbol::new("__torch__.I"), 0).to_string(), "InterfaceType<I>");
        assert_eq!(Type::interface(Symbol::new("__torch__.I"), 0).annotation_str(), "__torch__.I");
    }
}

//! Parser for types.
//!
//! One parser accepts every notation: graph text (`Float(2, 3)[]`, `Future[T]`, `NamedTuple(x : int)`, `Enum<q>`), the
//! notation inside dictionaries (`Future(T)`), types of schemas, and source annotations (`List[int]`, `Optional[T]`, `A
//! | B`). Where notations disagree about a name, [`TypeSyntax`] decides.

use flambeau_tensor::{DType, Device, Fault};
use smallvec::SmallVec;

use super::cursor::{Cursor, continues_name};
use super::{Dim, NamedField, TensorType, Type};
use crate::symbol::Symbol;

/// Error: a text is not a type, or is a type that exceeds the limits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} at offset {offset}")]
pub struct TypeParseError {
    /// The offset of the error, in bytes from the start of the text.
    pub offset: usize,
    /// The message.
    pub message: String,
    /// The kind of fault: `Input`, `Limit` or `Unsupported`.
    pub fault: Fault,
}

/// The notation to parse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypeSyntax {
    /// Graph text: unknown names are classes.
    Graph,
    /// Schemas: unknown lowercase names are type variables, and `ScalarType` and the like remain as written.
    Schema,
    /// Source annotations: as graph text, with alternatives `A | B`.
    Annotation,
}

/// Lookup of types by name.
pub trait TypeNames {
    /// Returns the type with a qualified name. `None` makes the name a class with number 0.
    fn resolve(&self, name: &str) -> Option<Type>;
}

/// A lookup without names.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoNames;

impl TypeNames for NoNames {
    fn resolve(&self, _: &str) -> Option<Type> {
        None
    }
}

/// Parses the graph-text type that starts at byte `pos`; returns the type and the position after it.
///
/// # Errors
/// Returns [`TypeParseError`] if no type starts there, or if the type exceeds the limits.
pub fn parse_ir_type(text: &str, pos: usize) -> Result<(Type, usize), TypeParseError> {
    read_type(text, pos, TypeSyntax::Graph, &NoNames)
}

/// Parses the type that starts at byte `pos`; returns the type and the position after it.
///
/// # Errors
/// Returns [`TypeParseError`] if no type starts there, or if the type exceeds the limits.
pub fn read_type(
    text: &str,
    pos: usize,
    syntax: TypeSyntax,
    names: &dyn TypeNames,
) -> Result<(Type, usize), TypeParseError> {
    let mut reader = Reader::new(text, syntax, names);
    if !text.is_char_boundary(pos) {
        return Err(TypeParseError { offset: pos, ..reader.at.error("not a character boundary") });
    }
    reader.at.pos = pos;
    reader.at.comments = syntax == TypeSyntax::Graph;
    let ty = reader.ty()?;
    Ok((ty, reader.at.pos))
}

/// Parses a complete source annotation.
///
/// # Errors
/// Returns [`TypeParseError`] if the text is not exactly one type, or if the type exceeds the limits.
pub fn read_annotation(text: &str, names: &dyn TypeNames) -> Result<Type, TypeParseError> {
    let (ty, end) = read_type(text, 0, TypeSyntax::Annotation, names)?;
    let mut rest = Cursor::new(text, end);
    if rest.peek().is_some() { Err(rest.error("unexpected text after the type")) } else { Ok(ty) }
}

/// Returns the type that a simple name denotes in every notation.
fn plain(name: &str) -> Option<Type> {
    Some(match name {
        "Tensor" => Type::TENSOR,
        "int" => Type::INT,
        "float" => Type::FLOAT,
        "bool" => Type::BOOL,
        "str" => Type::STR,
        "NoneType" | "None" => Type::NONE,
        "Scalar" | "number" => Type::NUMBER,
        "Device" => Type::DEVICE,
        "complex" => Type::COMPLEX,
        "Any" => Type::ANY,
        "Generator" => Type::GENERATOR,
        "Stream" => Type::STREAM,
        "Storage" => Type::STORAGE,
        "Quantizer" => Type::QUANTIZER,
        "QScheme" => Type::QSCHEME,
        "Capsule" => Type::CAPSULE,
        "PyObject" => Type::PY_OBJECT,
        "Function" => Type::FUNCTION,
        "AnyClassType" => Type::ANY_CLASS,
        "AnyEnumType" => Type::ANY_ENUM,
        "Layout" => Type::LAYOUT,
        "MemoryFormat" => Type::MEMORY_FORMAT,
        "ScalarType" => Type::SCALAR_TYPE,
        "SymInt" => Type::SYM_INT,
        "SymFloat" => Type::SYM_FLOAT,
        "SymBool" => Type::SYM_BOOL,
        "Dimname" => Type::STR,
        "DeviceIndex" | "ConstQuantizerPtr" => Type::INT,
        _ => return None,
    })
}

/// Candidate names for spelling suggestions.
const TYPE_KEYWORDS: [&str; 20] = [
    "Tensor",
    "int",
    "float",
    "bool",
    "str",
    "None",
    "Scalar",
    "Device",
    "complex",
    "Any",
    "Generator",
    "Stream",
    "Storage",
    "Layout",
    "MemoryFormat",
    "ScalarType",
    "SymInt",
    "SymFloat",
    "SymBool",
    "Dimname",
];

fn unknown(name: &str, near: Option<&str>) -> String {
    match near {
        Some(near) => format!("unknown type `{name}`, did you mean `{near}`?"),
        None => format!("unknown type `{name}`"),
    }
}

pub(crate) struct Reader<'a> {
    pub(crate) at: Cursor<'a>,
    syntax: TypeSyntax,
    names: &'a dyn TypeNames,
    depth: u32,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(text: &'a str, syntax: TypeSyntax, names: &'a dyn TypeNames) -> Self {
        Self { at: Cursor::new(text, 0), syntax, names, depth: 0 }
    }

    /// Parses a type with its suffixes and alternatives.
    fn ty(&mut self) -> Result<Type, TypeParseError> {
        self.nested(|reader| {
            let first = reader.suffixed()?;
            if reader.syntax != TypeSyntax::Annotation || reader.at.peek() != Some(b'|') {
                return Ok(first);
            }
            let mut members: SmallVec<[Type; 4]> = SmallVec::from_slice(&[first]);
            while reader.at.eat("|") {
                members.push(reader.suffixed()?);
            }
            reader.checked(Type::union(&members))
        })
    }

    /// Runs `f` one nesting level deeper. Fails at the depth limit.
    fn nested<R>(
        &mut self,
        f: impl FnOnce(&mut Self) -> Result<R, TypeParseError>,
    ) -> Result<R, TypeParseError> {
        if self.depth >= Type::MAX_DEPTH {
            return Err(self.limit());
        }
        self.depth += 1;
        let result = f(self);
        self.depth -= 1;
        result
    }

    fn limit(&self) -> TypeParseError {
        let message =
            format!("type nested deeper than {} or longer than {}", Type::MAX_DEPTH, Type::MAX_WEIGHT);
        TypeParseError { fault: Fault::Limit, ..self.at.error(message) }
    }

    pub(crate) fn checked(&self, ty: Type) -> Result<Type, TypeParseError> {
        if ty == Type::OVERFLOW { Err(self.limit()) } else { Ok(ty) }
    }

    fn suffixed(&mut self) -> Result<Type, TypeParseError> {
        let mut ty = self.base()?;
        loop {
            let next = self.suffix(ty)?;
            match next {
                Some(outer) => ty = self.checked(outer)?,
                None => return Ok(ty),
            }
        }
    }

    /// Parses a suffix at the position: `[]`, `[3]` (the number is not part of the type) or `?`.
    fn suffix(&mut self, inner: Type) -> Result<Option<Type>, TypeParseError> {
        match self.at.here() {
            Some(b'?') => {
                self.at.pos += 1;
                Ok(Some(Type::optional(inner)))
            }
            Some(b'[') if self.at.ahead(1) == Some(b']') => {
                self.at.pos += 2;
                Ok(Some(Type::list(inner)))
            }
            Some(b'[') if self.at.ahead(1).is_some_and(|b| b.is_ascii_digit()) => {
                self.at.pos += 1;
                self.at.int()?;
                self.at.expect("]")?;
                Ok(Some(Type::list(inner)))
            }
            _ => Ok(None),
        }
    }

    /// Parses a type without suffixes.
    pub(crate) fn base(&mut self) -> Result<Type, TypeParseError> {
        if self.at.peek() == Some(b'(') {
            self.at.pos += 1;
            let elems = self.list(")")?;
            return self.checked(Type::tuple(&elems));
        }
        let start = self.at;
        let name = self.at.dotted();
        if name.is_empty() {
            return Err(self.at.error("expected a type"));
        }
        match plain(name) {
            Some(Type::TENSOR) => return self.tensor(TensorType::default(), true),
            // Programs use integers where schemas have `ScalarType` and the like.
            Some(ty) if self.syntax != TypeSyntax::Schema => return Ok(crate::schema::fake(ty)),
            Some(ty) => return Ok(ty),
            None => {}
        }
        if let Some(b'(' | b'[' | b'<') = self.at.here()
            && let Some(ty) = self.applied(name)?
        {
            return self.checked(ty);
        }
        if let Some((dtype, ranked)) = dtype_name(name) {
            let facts = TensorType { dtype: Some(dtype), ..TensorType::default() };
            return self.tensor(facts, !ranked || self.at.here() != Some(b'('));
        }
        let glued = name.strip_suffix("Scalar").or_else(|| name.strip_suffix("number"));
        if let Some(first) = glued.and_then(plain) {
            return Ok(Type::union(&[first, Type::NUMBER]));
        }
        if UNSUPPORTED_DTYPES.contains(&name.strip_suffix("Tensor").unwrap_or(name)) {
            let message = format!("tensors of {name} are not supported");
            return Err(TypeParseError { fault: Fault::Unsupported, ..start.error(message) });
        }
        // Class names are qualified, so a capitalized name without dots is not a class.
        let bare = self.syntax != TypeSyntax::Annotation
            && !name.contains('.')
            && name.starts_with(|c: char| c.is_ascii_uppercase());
        let ty = self.named(name);
        let near = || crate::nearest(name, TYPE_KEYWORDS);
        if bare && matches!(ty.kind(), super::TypeKind::Class(_)) && self.names.resolve(name).is_none() {
            return Err(start.error(unknown(name, near())));
        }
        // A type variable that is spelled almost like a type is a misspelling of the type.
        if matches!(ty.kind(), super::TypeKind::Var(_))
            && let Some(near) = near()
        {
            return Err(start.error(unknown(name, Some(near))));
        }
        Ok(ty)
    }

    /// Returns the type of a name that is not built in.
    fn named(&self, name: &str) -> Type {
        let schema = self.syntax == TypeSyntax::Schema;
        if schema && !name.contains('.') && name.starts_with(|c: char| c.is_ascii_lowercase()) {
            return Type::var(Symbol::new(name));
        }
        match name {
            "list" | "List" => return Type::ANY_LIST,
            "tuple" | "Tuple" => return Type::ANY_TUPLE,
            _ => {}
        }
        if let Some(ty) = self.names.resolve(name) {
            return ty;
        }
        if self.syntax == TypeSyntax::Annotation {
            match name {
                "torch.Tensor" => return Type::TENSOR,
                "torch.device" => return Type::DEVICE,
                "torch.dtype" | "torch.layout" | "torch.memory_format" => return Type::INT,
                "torch.Generator" => return Type::GENERATOR,
                _ => {}
            }
        }
        Type::class(Symbol::new(name), 0)
    }

    /// Parses the arguments of a type constructor; returns `None` if `name` is not one.
    fn applied(&mut self, name: &str) -> Result<Option<Type>, TypeParseError> {
        let open = self.at.here();
        let close = if open == Some(b'(') { ")" } else { "]" };
        match (name, open) {
            ("Enum" | "InterfaceType", Some(b'<')) => return self.angled(name).map(Some),
            ("NamedTuple", Some(b'(')) => return self.named_tuple().map(Some),
            (_, Some(b'<')) => return Ok(None),
            (_, Some(b'[')) if matches!(self.at.ahead(1), Some(b']' | b'0'..=b'9')) => return Ok(None),
            _ => {}
        }
        let wanted = match name {
            "Future" | "Await" | "RRef" | "Optional" | "List" | "list" => Some(1),
            "Dict" | "dict" => Some(2),
            "Union" | "Tuple" | "tuple" => None,
            "torch.futures.Future" | "torch.jit._await._Await" => Some(1),
            _ => return Ok(None),
        };
        self.at.pos += 1;
        let parts = self.list(close)?;
        if wanted.is_some_and(|n| n != parts.len()) || (name == "Union" && parts.is_empty()) {
            return Err(self.at.error(format!("wrong number of types for {name}: {}", parts.len())));
        }
        Ok(Some(match name {
            "Future" | "torch.futures.Future" => Type::future(parts[0]),
            "Await" | "torch.jit._await._Await" => Type::awaitable(parts[0]),
            "RRef" => Type::rref(parts[0]),
            "Optional" => Type::optional(parts[0]),
            "List" | "list" => Type::list(parts[0]),
            "Dict" | "dict" => Type::dict(parts[0], parts[1]),
            "Union" => Type::union(&parts),
            // `Tuple[()]` is the empty tuple, but parses as a tuple with the empty tuple as its element.
            _ if *parts == [Type::UNIT] && self.empty_tuple_behind() => Type::UNIT,
            _ => Type::tuple(&parts),
        }))
    }

    /// Returns whether the text parsed last ends in `()]`.
    fn empty_tuple_behind(&self) -> bool {
        let before = self.at.text[..self.at.pos].strip_suffix(']').map(str::trim_end);
        let inside = before.and_then(|text| text.strip_suffix(')')).map(str::trim_end);
        inside.is_some_and(|text| text.ends_with('('))
    }

    fn list(&mut self, close: &str) -> Result<SmallVec<[Type; 4]>, TypeParseError> {
        let mut types = SmallVec::new();
        if self.at.eat(close) {
            return Ok(types);
        }
        // PyTorch prints a comma before the first member of some unions.
        self.at.eat(",");
        loop {
            types.push(self.ty()?);
            // PyTorch also omits the comma before the number types.
            if self.at.here() == Some(b'S') || self.at.here() == Some(b'n') {
                continue;
            }
            if !self.at.eat(",") {
                self.at.expect(close)?;
                return Ok(types);
            }
            // A trailing comma is allowed.
            if self.at.eat(close) {
                return Ok(types);
            }
        }
    }

    fn angled(&mut self, name: &str) -> Result<Type, TypeParseError> {
        self.at.expect("<")?;
        let inner = self.at.dotted();
        if inner.is_empty() {
            return Err(self.at.error("expected a qualified name"));
        }
        self.at.expect(">")?;
        let symbol = Symbol::new(inner);
        Ok(self.names.resolve(inner).unwrap_or_else(|| match name {
            "Enum" => Type::enumeration(symbol, 0, Type::ANY),
            _ => Type::interface(symbol, 0),
        }))
    }

    fn named_tuple(&mut self) -> Result<Type, TypeParseError> {
        self.at.expect("(")?;
        let mut fields: Vec<(NamedField, Type)> = Vec::new();
        if !self.at.eat(")") {
            loop {
                let name = self.at.name();
                if name.is_empty() {
                    return Err(self.at.error("expected a field name"));
                }
                let name = Symbol::new(name);
                self.at.expect(":")?;
                let ty = self.ty()?;
                let default = if self.at.eat("=") { Some(self.default_text()?) } else { None };
                fields.push((NamedField { name, default }, ty));
                if !self.at.eat(",") {
                    self.at.expect(")")?;
                    break;
                }
            }
        }
        Ok(Type::named_tuple(Symbol::EMPTY, &fields))
    }

    /// Consumes the text of a default value up to the comma or bracket that ends it.
    fn default_text(&mut self) -> Result<Symbol, TypeParseError> {
        self.at.blanks();
        let start = self.at.pos;
        let (mut depth, mut quoted) = (0_u32, false);
        while let Some(b) = self.at.here() {
            match b {
                b'\\' if quoted => self.at.pos += 1,
                b'"' => quoted = !quoted,
                _ if quoted => {}
                b'(' | b'[' | b'{' => depth += 1,
                b',' | b')' if depth == 0 => {
                    return Ok(Symbol::new(self.at.text[start..self.at.pos].trim_end()));
                }
                b')' | b']' | b'}' => depth = depth.saturating_sub(1),
                _ => {}
            }
            self.at.pos += 1;
        }
        self.at.pos = self.at.text.len();
        Err(self.at.error("unterminated default"))
    }

    /// Parses the suffix of a tensor type. With `unranked`, a missing size list means an unknown rank, not rank zero.
    fn tensor(&mut self, mut facts: TensorType, unranked: bool) -> Result<Type, TypeParseError> {
        let bracket =
            self.at.here() == Some(b'(') && (self.syntax != TypeSyntax::Schema || facts.dtype.is_some());
        if bracket {
            self.at.pos += 1;
            self.tensor_facts(&mut facts, unranked)?;
        }
        if self.at.text[self.at.pos..].starts_with("[Undefined]") {
            self.at.pos += "[Undefined]".len();
            facts.undefined = true;
        }
        if facts == TensorType::default() { Ok(Type::TENSOR) } else { self.checked(Type::tensor(facts)) }
    }

    fn tensor_facts(&mut self, facts: &mut TensorType, unranked: bool) -> Result<(), TypeParseError> {
        let mut sizes: SmallVec<[Dim; 8]> = SmallVec::new();
        let mut any = false;
        while !self.at.eat(")") {
            if std::mem::replace(&mut any, true) {
                self.at.expect(",")?;
            }
            match self.at.peek() {
                // Inferred types are printed with `?`.
                Some(b'*' | b'?') => {
                    self.at.pos += 1;
                    sizes.push(Dim::Unknown);
                }
                Some(b'0'..=b'9' | b'-') => sizes.push(Dim::Known(self.at.int()?)),
                _ => match self.at.name() {
                    "SS" => {
                        self.at.expect("(")?;
                        sizes.push(Dim::Sym(self.at.int()?));
                        self.at.expect(")")?;
                    }
                    fact => {
                        self.at.expect("=")?;
                        self.tensor_fact(fact, facts)?;
                    }
                },
            }
        }
        // `Tensor()` has rank zero; `Tensor(requires_grad=1)` has unknown rank.
        if !(sizes.is_empty() && unranked && any) {
            facts.sizes = Some(sizes.as_slice().into());
        }
        Ok(())
    }

    fn tensor_fact(&mut self, fact: &str, facts: &mut TensorType) -> Result<(), TypeParseError> {
        match fact {
            "strides" => {
                self.at.expect("[")?;
                let mut strides: SmallVec<[Option<i64>; 8]> = SmallVec::new();
                while !self.at.eat("]") {
                    if !strides.is_empty() {
                        self.at.expect(",")?;
                    }
                    strides.push(if self.at.eat("*") { None } else { Some(self.at.int()?) });
                }
                facts.strides = Some(strides.as_slice().into());
            }
            "requires_grad" => {
                facts.requires_grad = match self.at.int()? {
                    0 => Some(false),
                    1 => Some(true),
                    _ => return Err(self.at.error("requires_grad must be 0 or 1")),
                };
            }
            "device" => {
                self.at.blanks();
                let start = self.at.pos;
                while self.at.here().is_some_and(|b| continues_name(b) || b == b':') {
                    self.at.pos += 1;
                }
                let name = &self.at.text[start..self.at.pos];
                facts.device = Some(Device::parse(name).map_err(|e| self.at.error(e.to_string()))?);
            }
            other => return Err(self.at.error(format!("unknown tensor property `{other}`"))),
        }
        Ok(())
    }
}

/// Element types of PyTorch that tensors of this library cannot have.
const UNSUPPORTED_DTYPES: [&str; 22] = [
    "ComplexHalf",
    "QInt8",
    "QUInt8",
    "QInt32",
    "QUInt4x2",
    "QUInt2x4",
    "Bits1x8",
    "Bits2x4",
    "Bits4x2",
    "Bits8",
    "Bits16",
    "Float8_e5m2",
    "Float8_e4m3fn",
    "Float8_e5m2fnuz",
    "Float8_e4m3fnuz",
    "UInt16",
    "UInt32",
    "UInt64",
    "UInt1",
    "UInt2",
    "UInt4",
    "Undefined",
];

/// Returns the dtype of `Float` (whose rank follows) or `FloatTensor` (of unknown rank), and whether a rank follows.
fn dtype_name(name: &str) -> Option<(DType, bool)> {
    match DType::from_ir_name(name) {
        Some(dtype) => Some((dtype, true)),
        None => DType::from_ir_name(name.strip_suffix("Tensor")?).map(|dtype| (dtype, false)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reads(text: &str) -> Type {
        let (ty, end) = parse_ir_type(text, 0).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(end, text.len(), "{text}");
        ty
    }

    #[test]
    fn printed_types_read_back() {
        for text in [
            "Tensor",
            "Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu)",
            "Float(*, 3)",
            "Float()",
            "Long(requires_grad=0, device=cuda:1)",
            "FloatTensor",
            "FloatTensor(requires_grad=1)",
            "Tensor(requires_grad=1)",
            "Tensor(2, *)",
            "Tensor[Undefined]",
            "Float(2)[]",
            "int[][]?",
            "int?[]",
            "(Float(2), int)",
            "()",
            "(int)",
            "Dict(str, Dict(str, int[])?)",
            "Union(Tensor, int, str)",
            "Future[Float(2)]",
            "RRef[Tensor]",
            "Await(Tensor)",
            "Dict(str, Future(int))",
            "NamedTuple(x : Tensor, y : int = 3, z : str = \"a, b)\")",
            "Enum<__torch__.E>?",
            "InterfaceType<I>",
            "__torch__.M.___torch_mangle_3.K",
            "Function",
            "PyObject",
            "list",
            "AnyEnumType",
            "Scalar?",
            "Union(str, Scalar)",
        ] {
            assert_eq!(reads(text).to_string(), text);
        }
        assert_eq!(reads("Future(int)"), Type::future(Type::INT));
        assert_eq!(reads("Float(SS(-1), 3)").as_tensor().and_then(TensorType::rank), Some(2));
        assert_eq!(reads("Float(2, ?)"), reads("Float(2, *)"));
        assert_eq!(reads("int[3]"), Type::LIST_INT);
        assert_eq!(reads("Union(, str, Scalar)").to_string(), "Union(str, Scalar)");
        assert_eq!(reads("Union(TensorScalar)").to_string(), "Union(Tensor, Scalar)");
        assert_eq!(reads("Union(int[]Scalar)").to_string(), "Union(int[], Scalar)");
    }

    #[test]
    fn reads_annotations() {
        for text in [
            "List[int]",
            "Optional[Dict[str, Tuple[List[int], number]]]",
            "Tuple[()]",
            "Tuple[Tuple[()], int]",
            "Future[Tensor]",
            "Union[Tensor, int]",
            "__torch__.M",
        ] {
            assert_eq!(read_annotation(text, &NoNames).unwrap().annotation_str(), text);
        }
        assert_eq!(read_annotation("int | None", &NoNames).unwrap(), Type::OPTIONAL_INT);
        assert_eq!(read_annotation("list[ int ]", &NoNames).unwrap(), Type::LIST_INT);
        assert!(read_annotation("int int", &NoNames).is_err());
    }

    #[test]
    fn errors_have_positions_and_depth_is_limited() {
        for (text, offset) in [("", 0), ("Dict(int", 8), ("Float(2, x=1)", 11), ("(int,, int)", 5), ("%x", 0)]
        {
            assert_eq!(parse_ir_type(text, 0).map_err(|e| e.offset), Err(offset), "{text}");
        }
        for text in ["(".repeat(100_000), "List[".repeat(100_000), format!("int{}", "[]".repeat(100_000))] {
            assert_eq!(parse_ir_type(&text, 0).map_err(|e| e.fault), Err(Fault::Limit));
        }
        assert_eq!(parse_ir_type("QInt8(2)", 0).map_err(|e| e.fault), Err(Fault::Unsupported));
    }
}

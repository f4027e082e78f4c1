//! Parser for schemas.

use flambeau_tensor::{Complex, DType, Fault};
use smallvec::SmallVec;

use super::{AliasInfo, AliasSet, Argument, FunctionSchema, fake};
use crate::symbol::Symbol;
use crate::types::{Cursor, Type, TypeKind, TypeNames, TypeParseError, TypeReader, TypeSyntax};
use crate::value::IValue;

/// Error: a text is not a schema.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} at offset {offset} of schema `{text}`")]
pub struct SchemaParseError {
    /// The text.
    pub text: String,
    /// The offset of the error in bytes.
    pub offset: usize,
    /// The message.
    pub message: String,
    /// The kind of fault.
    pub fault: Fault,
}

type Parsed<T> = Result<T, TypeParseError>;

pub(super) fn schema(text: &str, names: &dyn TypeNames) -> Result<FunctionSchema, SchemaParseError> {
    let mut parser = Parser { at: TypeReader::new(text, TypeSyntax::Schema, names), fresh: 0, depth: 0 };
    parser.schema().map_err(|e| SchemaParseError {
        text: text.to_owned(),
        offset: e.offset,
        message: e.message,
        fault: e.fault,
    })
}

struct Parser<'a> {
    at: TypeReader<'a>,
    /// Number of unnamed alias sets so far.
    fresh: u32,
    depth: u32,
}

impl<'a> Parser<'a> {
    fn cursor(&mut self) -> &mut Cursor<'a> {
        &mut self.at.at
    }

    fn schema(&mut self) -> Parsed<FunctionSchema> {
        let (name, overload) = self.name()?;
        let mut args = Vec::new();
        let mut vararg = false;
        let mut kwarg_only = false;
        self.cursor().expect("(")?;
        if !self.cursor().eat(")") {
            loop {
                if vararg {
                    return Err(self.cursor().error("`...` must be last"));
                }
                if self.cursor().eat("*") {
                    kwarg_only = true;
                } else if self.cursor().eat("...") {
                    vararg = true;
                } else {
                    let arg = self.argument(false)?;
                    args.push(Argument { kwarg_only, ..arg });
                }
                if !self.cursor().eat(",") {
                    self.cursor().expect(")")?;
                    break;
                }
            }
        }
        self.cursor().expect("->")?;
        let (returns, varret) = self.returns()?;
        if self.cursor().peek().is_some() {
            return Err(self.cursor().error("unexpected text after the schema"));
        }
        Ok(FunctionSchema { name, overload, args, returns, vararg, varret })
    }

    fn name(&mut self) -> Parsed<(Symbol, Symbol)> {
        let start = {
            let cursor = self.cursor();
            cursor.blanks();
            cursor.pos
        };
        let first = self.cursor().name();
        if first.is_empty() {
            return Err(self.cursor().error("expected a name"));
        }
        let mut dots = true;
        if self.cursor().here() == Some(b':') {
            self.cursor().expect("::")?;
            if self.cursor().name().is_empty() {
                return Err(self.cursor().error("expected a name after `::`"));
            }
        } else {
            // The qualified name of a function has dots; only operators have overloads.
            dots = self.cursor().here() != Some(b'.') || first != "__torch__";
            if !dots {
                self.cursor().pos = start;
                self.cursor().dotted();
            }
        }
        let end = self.cursor().pos;
        let name = Symbol::new(&self.cursor().text[start..end]);
        if !dots || self.cursor().here() != Some(b'.') {
            return Ok((name, Symbol::EMPTY));
        }
        self.cursor().pos += 1;
        let overload = self.cursor().name();
        if overload.is_empty() {
            return Err(self.cursor().error("expected an overload name"));
        }
        if overload == "default" || overload.starts_with("__") {
            return Err(self.cursor().error(format!("`{overload}` is not a legal overload name")));
        }
        Ok((name, Symbol::new(overload)))
    }

    fn returns(&mut self) -> Parsed<(Vec<Argument>, bool)> {
        if self.cursor().eat("...") {
            return Ok((Vec::new(), true));
        }
        if !self.cursor().eat("(") {
            return Ok((vec![self.argument(true)?], false));
        }
        let (mut returns, mut varret) = (Vec::new(), false);
        if !self.cursor().eat(")") {
            loop {
                if varret {
                    return Err(self.cursor().error("`...` must be last"));
                }
                if self.cursor().eat("...") {
                    varret = true;
                } else {
                    returns.push(self.argument(true)?);
                }
                if !self.cursor().eat(",") {
                    self.cursor().expect(")")?;
                    break;
                }
            }
        }
        Ok((returns, varret))
    }

    fn argument(&mut self, is_return: bool) -> Parsed<Argument> {
        let (mut real_ty, mut alias) = self.ty()?;
        let mut n = None;
        if self.cursor().here() == Some(b'[') {
            self.cursor().pos += 1;
            let size = self.cursor().int()?;
            let size = u32::try_from(size)
                .map_err(|_| self.cursor().error("the size of a list must not be negative"))?;
            self.cursor().expect("]")?;
            n = Some(size);
            real_ty = self.at.checked(Type::list(real_ty))?;
            alias = self.container_alias(alias)?;
            if self.cursor().eat("?") {
                real_ty = Type::optional(real_ty);
            }
        }
        let name = self.cursor().name();
        if name.is_empty() && !is_return {
            return Err(self.cursor().error("expected the argument's name"));
        }
        let ty = fake(real_ty);
        let default =
            if !is_return && self.cursor().eat("=") { Some(self.default(ty, real_ty, n)?) } else { None };
        Ok(Argument { real_ty, n, alias, default, ..Argument::new(Symbol::new(name), ty) })
    }

    /// Parses a type with its annotations. Annotations inside tuples, dictionaries and futures are parsed and dropped.
    fn ty(&mut self) -> Parsed<(Type, Option<AliasInfo>)> {
        if self.depth >= Type::MAX_DEPTH {
            return Err(TypeParseError {
                fault: Fault::Limit,
                ..self.cursor().error("the type is nested too deeply")
            });
        }
        self.depth += 1;
        let base = self.base();
        self.depth -= 1;
        let mut ty = self.at.checked(base?)?;
        let mut alias = self.alias()?;
        loop {
            if self.cursor().here() == Some(b'?') {
                self.cursor().pos += 1;
                ty = Type::optional(ty);
            } else if self.cursor().here() == Some(b'[') && self.cursor().ahead(1) == Some(b']') {
                self.cursor().pos += 2;
                ty = Type::list(ty);
                alias = self.container_alias(alias)?;
            } else {
                return Ok((ty, alias));
            }
            ty = self.at.checked(ty)?;
        }
    }

    fn base(&mut self) -> Parsed<Type> {
        if self.cursor().eat("(") {
            return Ok(Type::tuple(&self.types(")")?));
        }
        let before = self.cursor().pos;
        let name = self.cursor().name();
        let applied = matches!(name, "Future" | "Await" | "RRef" | "Dict" | "Union");
        if !applied || self.cursor().here() != Some(b'(') {
            self.cursor().pos = before;
            return self.at.base();
        }
        self.cursor().pos += 1;
        let parts = self.types(")")?;
        match (name, parts.as_slice()) {
            ("Future", [t]) => Ok(Type::future(*t)),
            ("Await", [t]) => Ok(Type::awaitable(*t)),
            ("RRef", [t]) => Ok(Type::rref(*t)),
            ("Dict", [k, v]) => Ok(Type::dict(*k, *v)),
            ("Union", [_, ..]) => Ok(Type::union(&parts)),
            _ => Err(self.cursor().error(format!("wrong number of types for {name}: {}", parts.len()))),
        }
    }

    fn types(&mut self, close: &str) -> Parsed<SmallVec<[Type; 4]>> {
        let mut types = SmallVec::new();
        if self.cursor().eat(close) {
            return Ok(types);
        }
        loop {
            types.push(self.ty()?.0);
            if !self.cursor().eat(",") {
                self.cursor().expect(close)?;
                return Ok(types);
            }
        }
    }

    /// Returns the list's own annotation with the annotation of its elements in it.
    fn container_alias(&mut self, elem: Option<AliasInfo>) -> Parsed<Option<AliasInfo>> {
        let own = self.alias()?;
        Ok(match elem {
            None => own,
            Some(elem) => {
                let mut own = own.unwrap_or_default();
                own.contained.push(elem);
                Some(own)
            }
        })
    }

    fn alias(&mut self) -> Parsed<Option<AliasInfo>> {
        if self.cursor().here() == Some(b'!') {
            self.cursor().pos += 1;
            let set = AliasSet::Named(Symbol::new(&format!("${}", self.fresh)));
            self.fresh += 1;
            let sets: SmallVec<[AliasSet; 1]> = SmallVec::from_slice(&[set]);
            return Ok(Some(AliasInfo {
                before: sets.clone(),
                after: sets,
                write: true,
                contained: Vec::new(),
            }));
        }
        if self.cursor().here() != Some(b'(') {
            return Ok(None);
        }
        self.cursor().pos += 1;
        let before = self.sets()?;
        let write = self.cursor().eat("!");
        let after = if self.cursor().eat("->") { self.sets()? } else { before.clone() };
        self.cursor().expect(")")?;
        Ok(Some(AliasInfo { before, after, write, contained: Vec::new() }))
    }

    fn sets(&mut self) -> Parsed<SmallVec<[AliasSet; 1]>> {
        let mut sets: SmallVec<[AliasSet; 1]> = SmallVec::new();
        loop {
            if self.cursor().eat("*") {
                // A wildcard subsumes the other sets.
                sets.clear();
                sets.push(AliasSet::Wildcard);
            } else {
                let name = {
                    let cursor = self.cursor();
                    let dollar = cursor.eat("$");
                    let start = cursor.pos - usize::from(dollar);
                    if dollar {
                        cursor.int()?;
                    } else if cursor.name().is_empty() {
                        return Err(cursor.error("expected an alias set"));
                    }
                    cursor.text[start..cursor.pos].trim_start()
                };
                let set = AliasSet::Named(Symbol::new(name));
                if !sets.contains(&AliasSet::Wildcard) && !sets.contains(&set) {
                    sets.push(set);
                }
            }
            if !self.cursor().eat("|") {
                return Ok(sets);
            }
        }
    }

    fn default(&mut self, ty: Type, real_ty: Type, n: Option<u32>) -> Parsed<IValue> {
        let Some(elem) = ty.unwrap_optional().list_elem() else { return self.constant(ty, real_ty) };
        if !self.cursor().eat("[") {
            let one = self.constant(elem, real_ty.unwrap_optional().list_elem().unwrap_or(elem))?;
            if one.is_none() {
                return Ok(one);
            }
            let Some(n) = n else { return Err(self.cursor().error("expected a list")) };
            if n > 64 {
                return Err(self.cursor().error("sized lists have at most 64 elements"));
            }
            return Ok(IValue::list(elem, vec![one; n as usize]));
        }
        let mut items = Vec::new();
        if !self.cursor().eat("]") {
            loop {
                items.push(self.constant(elem, elem)?);
                if !self.cursor().eat(",") {
                    self.cursor().expect("]")?;
                    break;
                }
            }
        }
        Ok(IValue::list(elem, items))
    }

    fn constant(&mut self, ty: Type, real_ty: Type) -> Parsed<IValue> {
        match self.cursor().peek() {
            Some(b'"' | b'\'') => self.string(),
            Some(b'-' | b'+' | b'.' | b'0'..=b'9') => self.number(ty),
            _ => {
                let word = self.cursor().name();
                named_constant(word, real_ty.unwrap_optional())
                    .ok_or_else(|| self.cursor().error(format!("`{word}` is not a default value")))
            }
        }
    }

    fn string(&mut self) -> Parsed<IValue> {
        let cursor = self.cursor();
        let (bytes, end) =
            unquote(cursor.text, cursor.pos).ok_or_else(|| cursor.error("unterminated string"))?;
        cursor.pos = end;
        Ok(IValue::Str(bytes.into()))
    }

    fn number(&mut self, ty: Type) -> Parsed<IValue> {
        let cursor = self.cursor();
        let start = cursor.pos;
        let bytes = cursor.text.as_bytes();
        let mut end = start;
        while let Some(&b) = bytes.get(end) {
            let exponent_sign =
                (b == b'-' || b == b'+') && (end == start || matches!(bytes[end - 1], b'e' | b'E'));
            if !(b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'j') || exponent_sign) {
                break;
            }
            end += 1;
        }
        let text = &cursor.text[start..end];
        let value = match (ty.kind(), text.strip_suffix('j')) {
            (_, Some(imaginary)) => imaginary.parse().ok().map(|im| IValue::complex(Complex::new(0.0, im))),
            (TypeKind::Complex, None) => text.parse().ok().map(|re| IValue::complex(Complex::new(re, 0.0))),
            (TypeKind::Float, None) => text.parse().ok().map(IValue::Float),
            _ if text.contains(['.', 'e', 'E']) => text.parse().ok().map(IValue::Float),
            _ => text.parse().ok().map(IValue::Int),
        };
        let value = value.ok_or_else(|| cursor.error(format!("`{text}` is not a number")))?;
        cursor.pos = end;
        Ok(value)
    }
}

/// Returns the value of an identifier as a default.
fn named_constant(word: &str, real_ty: Type) -> Option<IValue> {
    Some(match word {
        "True" => IValue::Bool(true),
        "False" => IValue::Bool(false),
        "None" => IValue::None,
        "float" => IValue::Int(DType::F32.scalar_type()),
        "complex" => IValue::Int(DType::C64.scalar_type()),
        "long" => IValue::Int(DType::I64.scalar_type()),
        "strided" | "contiguous_format" => IValue::Int(0),
        // The `Reduction` enumeration of loss functions.
        "Mean" => IValue::Int(1),
        "inf" => IValue::Float(f64::INFINITY),
        "nan" => IValue::Float(f64::NAN),
        _ if real_ty == Type::SCALAR_TYPE => IValue::Int(DType::from_name(word)?.scalar_type()),
        _ => return None,
    })
}

/// Decodes the quoted string that starts at `pos`; returns its bytes and the position after the closing quote. Accepts
/// C escapes, including octal ones. Returns `None` if the string is unterminated or an escape is malformed.
#[must_use]
pub fn unquote(text: &str, pos: usize) -> Option<(Vec<u8>, usize)> {
    let bytes = text.as_bytes();
    let quote = *bytes.get(pos)?;
    let mut out = Vec::new();
    let mut at = pos + 1;
    loop {
        let b = *bytes.get(at)?;
        at += 1;
        if b == quote {
            return Some((out, at));
        }
        if b != b'\\' {
            out.push(b);
            continue;
        }
        let escape = *bytes.get(at)?;
        at += 1;
        out.push(match escape {
            b'a' => 0x07,
            b'b' => 0x08,
            b'f' => 0x0c,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'v' => 0x0b,
            b'x' => {
                let value = u8::from_str_radix(text.get(at..at + 2)?, 16).ok()?;
                at += 2;
                value
            }
            b'0'..=b'7' => {
                let mut value = u32::from(escape - b'0');
                for _ in 0..2 {
                    match bytes.get(at) {
                        Some(&d @ b'0'..=b'7') => value = value * 8 + u32::from(d - b'0'),
                        _ => break,
                    }
                    at += 1;
                }
                value as u8
            }
            other => other,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every schema of PyTorch's registry, as PyTorch prints it.
    const ALL: &str = include_str!("../../../tests/oracle/schemas.txt");

    #[test]
    fn every_schema_round_trips() {
        let mut count = 0;
        for line in ALL.lines() {
            let schema = FunctionSchema::parse(line).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(schema.to_string(), line);
            count += 1;
        }
        assert_eq!(count, 4399);
    }

    #[test]
    fn written_and_returned_arguments() {
        let schema = FunctionSchema::parse(
            "t::f.o(Tensor(a!) self, ScalarType? d=long, SymInt[2] s=1, *, Tensor! out) -> Tensor(a!)",
        )
        .unwrap();
        assert!(schema.is_write(0) && !schema.is_write(1) && schema.args[3].is_out());
        assert_eq!(schema.args[1].ty, Type::OPTIONAL_INT);
        assert_eq!(schema.args[2].ty, Type::LIST_INT);
        assert_eq!(schema.args[2].default.as_ref().map(ToString::to_string), Some("[1, 1]".to_owned()));
        assert_eq!(schema.args[1].default.as_ref().and_then(IValue::as_int), Some(4));
        let names: Vec<String> = schema.alias_sets().iter().map(ToString::to_string).collect();
        assert_eq!(names, ["a", "$0"]);
        let list =
            FunctionSchema::parse("t::g(Tensor(a)[](b!) x, t(c|d -> *) y) -> (Tensor(a) q, int w)").unwrap();
        let alias = list.args[0].alias.as_ref().unwrap();
        assert!(alias.write && !alias.contained[0].write);
        assert!(list.args[1].alias.as_ref().unwrap().is_wildcard_after());
        assert_eq!(list.return_type().to_string(), "NamedTuple(q : Tensor, w : int)");
        assert_eq!(list.return_type().annotation_str(), "Tuple[Tensor, int]");
        assert_eq!(list.to_string(), "t::g(Tensor(a)[](b!) x, t(c|d -> *) y) -> (Tensor(a) q, int w)");
    }

    #[test]
    fn writing_elements_is_a_write() {
        let read = |text: &str| FunctionSchema::parse(text).unwrap();
        let out = read("t::split.out(Tensor self, *, Tensor(a!)[] out) -> ()");
        assert!(out.is_mutable() && out.args[1].is_out() && !out.is_write(0));
        let alias = out.args[1].alias.as_ref().unwrap();
        assert!(alias.writes() && !alias.write && !alias.escapes());
        assert!(read("t::f(Tensor(a -> *)[] x) -> ()").args[0].alias.as_ref().unwrap().escapes());
        assert!(!read("t::g(Tensor(a)[] x) -> Tensor(a)").is_mutable());
    }

    /// Damaged schemas and types must parse or fail with an error, without panicking.
    #[test]
    fn damaged_schemas_are_refused() {
        const PIECES: [&str; 16] = [
            "(",
            ")",
            "[",
            "]",
            "?",
            "!",
            "->",
            "|",
            "*",
            "\"",
            "\\",
            "é",
            "=",
            "Dict(",
            "Tuple[",
            "9999999999999999999999",
        ];
        let mut seed = 1_u64;
        let mut random = |n: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as usize % n
        };
        let mut read = 0;
        for line in ALL.lines().step_by(5) {
            let mut text = line.to_owned();
            for _ in 0..1 + random(3) {
                let at = (0..=random(text.len() + 1)).rev().find(|&i| text.is_char_boundary(i)).unwrap_or(0);
                match random(3) {
                    0 => text.insert_str(at, PIECES[random(PIECES.len())]),
                    1 => text.truncate(at),
                    _ => drop(text.drain(..at)),
                }
            }
            if let Ok(schema) = FunctionSchema::parse(&text) {
                read += 1;
                assert_eq!(
                    FunctionSchema::parse(&schema.to_string()).map(|s| s.to_string()),
                    Ok(schema.to_string())
                );
            }
            let _ = crate::types::parse_ir_type(&text, 0);
            let _ = crate::types::read_annotation(&text, &crate::types::NoNames);
        }
        assert!(read > 0);
    }

    #[test]
    fn errors_have_positions() {
        for (text, offset) in [
            ("", 0),
            ("aten::f", 7),
            ("aten::f(", 8),
            ("aten::f(int)", 11),
            ("aten::f.default() -> ()", 15),
            ("aten::f(int x=y) -> ()", 15),
            ("aten::f(int x) -> () z", 21),
            ("aten::f(..., int x) -> ()", 12),
        ] {
            assert_eq!(FunctionSchema::parse(text).map_err(|e| e.offset), Err(offset), "{text}");
        }
        let deep = format!("aten::f({} x) -> ()", "(".repeat(100_000));
        assert_eq!(FunctionSchema::parse(&deep).map_err(|e| e.fault), Err(Fault::Limit));
    }
}

//! Values of `Final` attributes and enum members in archived code.
//!
//! The printer writes constants as literals. Constants without a literal are in the table of constants, as
//! `CONSTANTS.c3`.

use flambeau_frontend::{Ast, Leaf, SyntaxOp, TreeId, TreeKind, view};
use flambeau_ir::types::TypeKind;
use flambeau_ir::value::{Dict, EnumValue, List, Tuple};
use flambeau_ir::{CompilationUnit, IValue, Symbol, Type};
use flambeau_tensor::{Complex, Device};

use crate::annotation::{class_names, dotted, read_type};
use crate::{ArchiveCode, ArchiveError};

/// Maximum nesting of constants.
const DEPTH: usize = 200;

/// The names that the constant expressions of an archive can refer to.
pub(crate) struct Literals<'a> {
    /// The trees of the source.
    pub(crate) ast: &'a Ast,
    /// The archive's table of constants.
    pub(crate) constants: &'a [IValue],
    /// Returns the type that is declared under a qualified name.
    pub(crate) class: &'a dyn Fn(&str) -> Option<Type>,
    /// The classes declared so far, among them all enums.
    pub(crate) unit: &'a CompilationUnit,
}

impl Literals<'_> {
    /// Evaluates the constant expression `id` of type `ty`, if known (else `Any`).
    pub(crate) fn read(&self, id: TreeId, ty: Type) -> Result<IValue, ArchiveError> {
        self.value(id, ty, 0)
    }

    fn bad(&self, id: TreeId) -> ArchiveError {
        let start = self.ast.span(id).start;
        ArchiveError::new(
            ArchiveCode::Class,
            format!("the expression of kind `{:?}` is not a constant", self.ast.kind(id)),
        )
        .at(u64::from(start))
    }

    fn value(&self, id: TreeId, ty: Type, depth: usize) -> Result<IValue, ArchiveError> {
        let (ast, bad) = (self.ast, || self.bad(id));
        if depth > DEPTH {
            return Err(bad());
        }
        let ty = ty.unwrap_optional();
        Ok(match ast.kind(id) {
            TreeKind::None => IValue::None,
            TreeKind::True => IValue::Bool(true),
            TreeKind::False => IValue::Bool(false),
            TreeKind::StringLiteral => IValue::str(ast.name(id)),
            TreeKind::Const => match ast.leaf(id) {
                Leaf::Int(i) if ty == Type::FLOAT => IValue::Float(i as f64),
                Leaf::Int(i) => IValue::Int(i),
                Leaf::Float(f) => IValue::Float(f),
                Leaf::Imag(im) => IValue::complex(Complex::new(0.0, im)),
                _ => return Err(bad()),
            },
            TreeKind::Var => match ast.name(id) {
                "inf" => IValue::Float(f64::INFINITY),
                "nan" => IValue::Float(f64::NAN),
                "infj" => IValue::complex(Complex::new(0.0, f64::INFINITY)),
                "nanj" => IValue::complex(Complex::new(0.0, f64::NAN)),
                _ => return Err(bad()),
            },
            TreeKind::UnaryOp if ast.op(id) == Some(SyntaxOp::Neg) => {
                match self.value(ast.child(id, 0), ty, depth + 1)? {
                    IValue::Int(i) => IValue::Int(i.checked_neg().ok_or_else(bad)?),
                    IValue::Float(f) => IValue::Float(-f),
                    IValue::Complex(z) => IValue::complex(-*z),
                    _ => return Err(bad()),
                }
            }
            TreeKind::BinOp if matches!(ast.op(id), Some(SyntaxOp::Add | SyntaxOp::Sub)) => {
                let part = |n| self.value(ast.child(id, n), Type::ANY, depth + 1);
                let number =
                    |v: IValue| v.as_complex().or_else(|| v.as_float().map(|f| Complex::new(f, 0.0)));
                match (part(0).map(number)?, part(1).map(number)?) {
                    (Some(a), Some(b)) if ast.op(id) == Some(SyntaxOp::Add) => IValue::complex(a + b),
                    (Some(a), Some(b)) => IValue::complex(a - b),
                    _ => return Err(bad()),
                }
            }
            TreeKind::TupleLiteral => IValue::tuple(self.items(ast.children(id), ty, depth)?),
            TreeKind::ListLiteral => {
                let elem = ty.list_elem();
                let values = self.all(ast.children(id), |_| elem, depth)?;
                let elem = elem.or_else(|| values.first().map(IValue::type_of)).unwrap_or(Type::TENSOR);
                IValue::List(List::from_values(elem, values))
            }
            TreeKind::DictLiteral => self.dict(id, ty, depth)?,
            TreeKind::Select => self.member(id)?,
            TreeKind::Apply => self.call(id, depth)?,
            _ => return Err(bad()),
        })
    }

    /// Evaluates expressions; `ty` returns the type of each, if known.
    fn all(
        &self,
        parts: &[TreeId],
        ty: impl Fn(usize) -> Option<Type>,
        depth: usize,
    ) -> Result<Vec<IValue>, ArchiveError> {
        let part = |(n, &id)| self.value(id, ty(n).unwrap_or(Type::ANY), depth + 1);
        parts.iter().enumerate().map(part).collect()
    }

    /// Evaluates the elements of a tuple of type `ty`.
    fn items(&self, parts: &[TreeId], ty: Type, depth: usize) -> Result<Vec<IValue>, ArchiveError> {
        let elems = ty.as_tuple().map(|t| &t.elems);
        self.all(parts, |n| elems.and_then(|e| e.get(n).copied()), depth)
    }

    fn dict(&self, id: TreeId, ty: Type, depth: usize) -> Result<IValue, ArchiveError> {
        let literal = view::DictLiteral::of(self.ast, id).ok_or_else(|| self.bad(id))?;
        let types = ty.dict_types();
        let keys = self.all(literal.keys(), |_| types.map(|t| t.0), depth)?;
        let values = self.all(literal.values(), |_| types.map(|t| t.1), depth)?;
        let first = || Some((keys.first()?.type_of(), values.first()?.type_of()));
        let (key, value) = types.or_else(first).unwrap_or((Type::STR, Type::TENSOR));
        let dict = Dict::new(key, value);
        for (key, value) in keys.into_iter().zip(values) {
            dict.insert(key, value).map_err(|_| self.bad(id))?;
        }
        Ok(IValue::Dict(dict))
    }

    /// Evaluates `CONSTANTS.c3` or a member of an enum.
    fn member(&self, id: TreeId) -> Result<IValue, ArchiveError> {
        let select = view::Select::of(self.ast, id).ok_or_else(|| self.bad(id))?;
        let owner = dotted(self.ast, select.value()).ok_or_else(|| self.bad(id))?;
        if owner == "CONSTANTS" {
            let number = select.name().strip_prefix('c').and_then(|n| n.parse::<usize>().ok());
            return number.and_then(|n| self.constants.get(n)).cloned().ok_or_else(|| self.bad(id));
        }
        let ty = (self.class)(&owner).ok_or_else(|| self.bad(id))?;
        let name = Symbol::new(select.name());
        let members = &self.unit.enumeration(ty).ok_or_else(|| self.bad(id))?.members;
        let (_, value) = members.iter().find(|(n, _)| *n == name).ok_or_else(|| self.bad(id))?;
        Ok(IValue::Enum(EnumValue::new(ty, name, value.clone())))
    }

    /// Evaluates `annotate(T, value)`, `torch.device("cpu")` or the construction of a named tuple.
    fn call(&self, id: TreeId, depth: usize) -> Result<IValue, ArchiveError> {
        let call = view::Apply::of(self.ast, id).ok_or_else(|| self.bad(id))?;
        let name = dotted(self.ast, call.callee()).ok_or_else(|| self.bad(id))?;
        match (name.as_str(), call.inputs()) {
            ("annotate", &[ty, value]) => self.value(value, read_type(self.ast, ty, self.class)?, depth + 1),
            ("torch.device", &[text]) => {
                let text = view::StringLiteral::of(self.ast, text).ok_or_else(|| self.bad(id))?;
                Device::parse(text.value()).map(IValue::Device).map_err(|_| self.bad(id))
            }
            (name, inputs) => {
                let ty = (self.class)(name).ok_or_else(|| self.bad(id))?;
                let fields = ty.as_tuple().filter(|t| t.named.is_some() && t.elems.len() == inputs.len());
                fields.ok_or_else(|| self.bad(id))?;
                Ok(IValue::Tuple(Tuple::named(ty, self.items(inputs, ty, depth)?)))
            }
        }
    }
}

/// Collects the qualified names of the classes that a constant expression mentions: named tuples, enums, and the types of
/// `annotate`.
pub(crate) fn constant_classes(ast: &Ast, id: TreeId, out: &mut Vec<String>) {
    let mut stack = vec![id];
    while let Some(id) = stack.pop() {
        match ast.kind(id) {
            TreeKind::Select => {
                out.extend(dotted(ast, ast.child(id, 0)).filter(|owner| owner != "CONSTANTS"));
            }
            TreeKind::Apply => {
                let Some(call) = view::Apply::of(ast, id) else { continue };
                let name = dotted(ast, call.callee());
                match (name.as_deref(), call.inputs()) {
                    (Some("annotate"), &[ty, value]) => {
                        class_names(ast, ty, out);
                        stack.push(value);
                    }
                    (Some("torch.device"), _) | (None, _) => {}
                    (Some(name), inputs) => {
                        out.push(name.to_owned());
                        stack.extend(inputs);
                    }
                }
            }
            TreeKind::TupleLiteral | TreeKind::ListLiteral | TreeKind::DictLiteral | TreeKind::List => {
                stack.extend(ast.children(id));
            }
            _ => {}
        }
    }
}

/// Returns true if a constant has its declared type.
pub(crate) fn has_type(value: &IValue, ty: Type) -> bool {
    match (value, ty.kind()) {
        (IValue::Tuple(items), TypeKind::Tuple(t)) => {
            items.items().len() == t.elems.len()
                && items.items().iter().zip(&t.elems).all(|(v, &t)| v.fits(t))
        }
        _ => value.fits(ty),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flambeau_frontend::parse_expression;
    use flambeau_ir::module::Enumeration;
    use flambeau_ir::types::NamedField;

    fn constant(text: &str, ty: Type) -> Result<IValue, ArchiveError> {
        let parsed = parse_expression(text, &flambeau_frontend::FrontendLimits::default());
        assert!(parsed.problems.is_empty(), "{:?}", parsed.problems);
        let mut unit = CompilationUnit::new();
        let colour = Type::enumeration(Symbol::new("__torch__.Colour"), 0, Type::STR);
        let members = vec![(Symbol::new("RED"), IValue::str("r")), (Symbol::new("BLUE"), IValue::str("b"))];
        unit.define_enum(Enumeration { ty: colour, members });
        let field = |name| NamedField { name: Symbol::new(name), default: None };
        let fields = [(field("x"), Type::INT), (field("y"), Type::list(colour))];
        let pair = Type::named_tuple(Symbol::new("__torch__.Pair"), &fields);
        let class = |name: &str| match name {
            "__torch__.Colour" => Some(colour),
            "__torch__.Pair" => Some(pair),
            _ => None,
        };
        let constants = [IValue::str("zero"), IValue::Int(7)];
        let literals = Literals { ast: &parsed.ast, constants: &constants, class: &class, unit: &unit };
        literals.read(parsed.root, ty)
    }

    #[test]
    fn literals() {
        let int = |text| constant(text, Type::INT).expect("a constant").as_int();
        assert_eq!((int("3"), int("-3"), int("CONSTANTS.c1")), (Some(3), Some(-3), Some(7)));
        let float = |text| constant(text, Type::FLOAT).expect("a constant").as_float();
        assert_eq!((float("1."), float("-inf"), float("2")), (Some(1.0), Some(f64::NEG_INFINITY), Some(2.0)));
        let pair = constant("(1, (True, None, \"x\"))", Type::ANY).expect("a constant");
        assert_eq!(pair.as_tuple().map(|t| t.items().len()), Some(2));
        let list = constant("[1., 2.]", Type::list(Type::FLOAT)).expect("a constant");
        assert_eq!(list.as_list().and_then(List::to_floats), Some(vec![1.0, 2.0]));
        let z = constant("1.+2.j", Type::COMPLEX).expect("a constant");
        assert_eq!(z.as_complex(), Some(Complex::new(1.0, 2.0)));
        assert!(constant("torch.device(\"cpu\")", Type::DEVICE).expect("a constant").is_device());
    }

    #[test]
    fn containers_and_members_of_enums() {
        let exact = |text: &str, ty| {
            let value = constant(text, ty).unwrap_or_else(|e| panic!("{text}: {e}"));
            (value.to_string(), value.type_of().annotation_str())
        };
        for (text, value, ty) in [
            ("{1: 2.5, 3: 4.}", "{1: 2.5, 3: 4.}", "Dict[int, float]"),
            ("annotate(List[int], [])", "[]", "List[int]"),
            ("annotate(List[Optional[int]], [1, None])", "[1, None]", "List[Optional[int]]"),
            ("annotate(Dict[str, List[int]],{})", "{}", "Dict[str, List[int]]"),
            ("__torch__.Colour.BLUE", "Enum<Colour.BLUE>", "__torch__.Colour"),
            ("[__torch__.Colour.RED]", "[Enum<Colour.RED>]", "List[__torch__.Colour]"),
            ("__torch__.Pair(1, [])", "(1, [])", "__torch__.Pair"),
        ] {
            assert_eq!(exact(text, Type::ANY), (value.to_owned(), ty.to_owned()), "{text}");
        }
        let declared = exact("{1: 2}", Type::dict(Type::INT, Type::FLOAT));
        assert_eq!(declared, ("{1: 2.}".to_owned(), "Dict[int, float]".to_owned()));
    }

    #[test]
    fn classes_that_constants_mention() {
        let text = "(CONSTANTS.c0, {a.E.X: 1}, [b.N(c.F.Y)], annotate(List[d.G], []), torch.device(\"cpu\"))";
        let parsed = parse_expression(text, &flambeau_frontend::FrontendLimits::default());
        let mut names = Vec::new();
        constant_classes(&parsed.ast, parsed.root, &mut names);
        names.sort();
        assert_eq!(names, ["a.E", "b.N", "c.F", "d.G"]);
    }

    #[test]
    fn expressions_that_are_not_constants() {
        for text in [
            "x",
            "f(1)",
            "CONSTANTS.c9",
            "OTHER.c0",
            "1 * 2",
            "-\"x\"",
            "{[1]: 2}",
            "__torch__.Colour.GREEN",
            "__torch__.Pair.x",
            "__torch__.Pair(1)",
            "__torch__.Colour(1)",
            "annotate(Banana, 1)",
        ] {
            assert_eq!(constant(text, Type::ANY).expect_err("none").code(), ArchiveCode::Class, "{text}");
        }
        let deep = format!("{}1{}", "(".repeat(5000), ",)".repeat(5000));
        assert_eq!(constant(&deep, Type::ANY).expect_err("none").code(), ArchiveCode::Class);
    }
}

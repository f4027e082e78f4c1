//! Type annotations of archived code.
//!
//! The printer writes types in one form: `List[Dict[str, Tensor]]`, `Optional[int]`, `__torch__.net.Block`. Class names
//! are resolved by a callback after the caller has declared the names that [`class_names`] returns, so declaring a
//! chain of classes does not recurse. The recursion here is bounded by [`Type::MAX_DEPTH`].

use flambeau_frontend::{Ast, TreeId, TreeKind, view};
use flambeau_ir::Type;

use crate::error::quoted;
use crate::{ArchiveCode, ArchiveError};

/// Returns the type that the expression `id` denotes; `class` resolves qualified names.
pub(crate) fn read_type(
    ast: &Ast,
    id: TreeId,
    class: &dyn Fn(&str) -> Option<Type>,
) -> Result<Type, ArchiveError> {
    read(ast, id, class, 0)
}

fn read(
    ast: &Ast,
    id: TreeId,
    class: &dyn Fn(&str) -> Option<Type>,
    depth: u32,
) -> Result<Type, ArchiveError> {
    if depth > Type::MAX_DEPTH {
        return Err(bad(ast, id, "a type is nested too deep"));
    }
    let ty = match ast.kind(id) {
        TreeKind::None => Type::NONE,
        TreeKind::Var => match simple(ast.name(id)) {
            Some(ty) => ty,
            None => class(ast.name(id)).ok_or_else(|| unknown(ast, id, ast.name(id)))?,
        },
        TreeKind::Select => {
            let name = dotted(ast, id).ok_or_else(|| bad(ast, id, "this is not a type"))?;
            match torch_type(&name).or_else(|| class(&name)) {
                Some(ty) => ty,
                None => return Err(unknown(ast, id, &name)),
            }
        }
        TreeKind::Subscript => {
            let subscript = view::Subscript::of(ast, id).ok_or_else(|| bad(ast, id, "this is not a type"))?;
            let head = dotted(ast, subscript.value()).unwrap_or_default();
            let part = |&part: &TreeId| read(ast, part, class, depth + 1);
            let parts = match subscript.subscripts() {
                // `Tuple[()]` is the empty tuple.
                &[only] if ast.kind(only) == TreeKind::TupleLiteral => {
                    ast.children(only).iter().map(part).collect::<Result<Vec<_>, _>>()?
                }
                several => several.iter().map(part).collect::<Result<Vec<_>, _>>()?,
            };
            generic(head.as_str(), &parts).ok_or_else(|| {
                let message = format!("{} does not take {} types", quoted(&head), parts.len());
                bad(ast, id, &message)
            })?
        }
        _ => return Err(bad(ast, id, "this is not a type")),
    };
    if ty == Type::OVERFLOW { Err(bad(ast, id, "a type is too large")) } else { Ok(ty) }
}

fn generic(head: &str, parts: &[Type]) -> Option<Type> {
    Some(match (head, parts) {
        ("List", &[elem]) => Type::list(elem),
        ("Dict", &[key, value]) => Type::dict(key, value),
        ("Optional", &[inner]) => Type::optional(inner),
        ("Tuple", parts) => Type::tuple(parts),
        ("Union", parts) if !parts.is_empty() => Type::union(parts),
        ("Future", &[inner]) => Type::future(inner),
        ("Await", &[inner]) => Type::awaitable(inner),
        ("RRef", &[inner]) => Type::rref(inner),
        ("Final", &[inner]) => inner,
        _ => return None,
    })
}

fn simple(name: &str) -> Option<Type> {
    Some(match name {
        "Tensor" => Type::TENSOR,
        "int" => Type::INT,
        "float" => Type::FLOAT,
        "bool" => Type::BOOL,
        "complex" => Type::COMPLEX,
        "str" => Type::STR,
        "number" | "Scalar" => Type::NUMBER,
        "NoneType" | "None" => Type::NONE,
        "Any" => Type::ANY,
        "Device" => Type::DEVICE,
        "Generator" => Type::GENERATOR,
        "Stream" => Type::STREAM,
        "Storage" => Type::STORAGE,
        "QScheme" => Type::QSCHEME,
        "Quantizer" => Type::QUANTIZER,
        "Capsule" => Type::CAPSULE,
        "PyObject" => Type::PY_OBJECT,
        "AnyListType" => Type::ANY_LIST,
        "AnyTupleType" => Type::ANY_TUPLE,
        "AnyClassType" => Type::ANY_CLASS,
        "AnyEnumType" => Type::ANY_ENUM,
        _ => return None,
    })
}

fn torch_type(name: &str) -> Option<Type> {
    Some(match name {
        "torch.Tensor" => Type::TENSOR,
        "torch.device" => Type::DEVICE,
        "torch.Generator" => Type::GENERATOR,
        "torch.dtype" | "torch.layout" | "torch.memory_format" | "torch.qscheme" => Type::INT,
        _ => return None,
    })
}

/// Collects the qualified names in a type expression that are not builtin types, in order.
pub(crate) fn class_names(ast: &Ast, id: TreeId, out: &mut Vec<String>) {
    let mut stack = vec![id];
    while let Some(id) = stack.pop() {
        match ast.kind(id) {
            TreeKind::Select => {
                out.extend(dotted(ast, id).filter(|name| torch_type(name).is_none()));
            }
            TreeKind::Subscript | TreeKind::List | TreeKind::TupleLiteral => {
                stack.extend(ast.children(id).iter().rev())
            }
            _ => {}
        }
    }
}

/// Returns `a.b.c` as text if the expression is a dotted name.
pub(crate) fn dotted(ast: &Ast, id: TreeId) -> Option<String> {
    let mut parts = Vec::new();
    let mut at = id;
    while let Some(select) = view::Select::of(ast, at) {
        parts.push(select.name());
        at = select.value();
    }
    parts.push(view::Var::of(ast, at)?.name());
    parts.reverse();
    Some(parts.join("."))
}

fn unknown(ast: &Ast, id: TreeId, name: &str) -> ArchiveError {
    let code =
        if name.starts_with("__torch__.torch.classes.") { ArchiveCode::Value } else { ArchiveCode::Class };
    ArchiveError::new(code, format!("unknown type name {}", quoted(name))).at(u64::from(ast.span(id).start))
}

fn bad(ast: &Ast, id: TreeId, message: &str) -> ArchiveError {
    ArchiveError::new(ArchiveCode::Class, message).at(u64::from(ast.span(id).start))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flambeau_frontend::parse_expression;
    use flambeau_ir::Symbol;

    fn read_text(text: &str) -> Result<Type, ArchiveError> {
        let parsed = parse_expression(text, &flambeau_frontend::FrontendLimits::default());
        assert!(parsed.problems.is_empty(), "{:?}", parsed.problems);
        let class = |name: &str| (name == "__torch__.C").then(|| Type::class(Symbol::new(name), 0));
        read_type(&parsed.ast, parsed.root, &class)
    }

    #[test]
    fn spelled_as_printed() {
        for text in [
            "Tensor",
            "NoneType",
            "List[Dict[str, Optional[Tensor]]]",
            "Tuple[int, List[float], __torch__.C]",
            "Tuple[()]",
            "Future[Tensor]",
            "Union[int, str]",
            "Device",
            "number",
        ] {
            assert_eq!(read_text(text).expect("a type").annotation_str(), text);
        }
        assert_eq!(read_text("None").expect("a type"), Type::NONE);
    }

    #[test]
    fn unknown_and_malformed() {
        for text in ["Banana", "__torch__.D", "List[int, int]", "Dict[int]", "3", "f(x)", "Tensor[int]"] {
            assert_eq!(read_text(text).expect_err("no type").code(), ArchiveCode::Class, "{text}");
        }
        let deep = format!("{}int{}", "List[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(read_text(&deep).expect_err("too deep").code(), ArchiveCode::Class);
    }

    #[test]
    fn names_of_classes() {
        let text = "Dict[__torch__.a.B, Tuple[__torch__.C, torch.Tensor, int]]";
        let parsed = parse_expression(text, &flambeau_frontend::FrontendLimits::default());
        let mut names = Vec::new();
        class_names(&parsed.ast, parsed.root, &mut names);
        assert_eq!(names, ["__torch__.a.B", "__torch__.C"]);
    }
}

//! Values of `Final` attributes and enum members in archived code.
//!
//! The printer writes constants as literals. Constants without a literal are in the table of constants, as
//! `CONSTANTS.c3`.

use flambeau_frontend::{Ast, Leaf, Op, TreeId, TreeKind, view};
use flambeau_ir::types::TypeKind;
use flambeau_ir::value::List;
use flambeau_ir::{IValue, Type};
use flambeau_tensor::{Complex, Device};

use crate::{ArchiveError, Code};

/// Maximum nesting of constants.
const DEPTH: usize = 200;

/// Evaluates the constant expression `id` of type `ty`, if known (else `Any`). `constants` is the archive's table.
pub(crate) fn read_constant(
    ast: &Ast,
    id: TreeId,
    ty: Type,
    constants: &[IValue],
) -> Result<IValue, ArchiveError> {
    read(ast, id, ty, constants, 0)
}

fn read(ast: &Ast, id: TreeId, ty: Type, constants: &[IValue], depth: usize) -> Result<IValue, ArchiveError> {
    let bad = || ArchiveError::new(Code::Class, "this is not a constant").at(u64::from(ast.span(id).start));
    if depth > DEPTH {
        return Err(bad());
    }
    let ty = ty.unwrap_optional();
    let items = |elem: &dyn Fn(usize) -> Type| {
        let parts = ast.children(id).iter().enumerate();
        parts.map(|(n, &part)| read(ast, part, elem(n), constants, depth + 1)).collect::<Result<Vec<_>, _>>()
    };
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
        TreeKind::UnaryOp if ast.op(id) == Some(Op::Neg) => {
            match read(ast, ast.child(id, 0), ty, constants, depth + 1)? {
                IValue::Int(i) => IValue::Int(i.checked_neg().ok_or_else(bad)?),
                IValue::Float(f) => IValue::Float(-f),
                IValue::Complex(z) => IValue::complex(-*z),
                _ => return Err(bad()),
            }
        }
        TreeKind::BinOp if matches!(ast.op(id), Some(Op::Add | Op::Sub)) => {
            let part = |n| read(ast, ast.child(id, n), Type::ANY, constants, depth + 1);
            let number = |v: IValue| v.as_complex().or_else(|| v.as_float().map(|f| Complex::new(f, 0.0)));
            match (part(0).map(number)?, part(1).map(number)?) {
                (Some(a), Some(b)) if ast.op(id) == Some(Op::Add) => IValue::complex(a + b),
                (Some(a), Some(b)) => IValue::complex(a - b),
                _ => return Err(bad()),
            }
        }
        TreeKind::TupleLiteral => {
            let elems = ty.as_tuple().map(|t| &t.elems);
            IValue::tuple(items(&|n| elems.and_then(|e| e.get(n).copied()).unwrap_or(Type::ANY))?)
        }
        TreeKind::ListLiteral => {
            let elem = ty.list_elem();
            let values = items(&|_| elem.unwrap_or(Type::ANY))?;
            let elem = elem.or_else(|| values.first().map(IValue::type_of)).unwrap_or(Type::TENSOR);
            IValue::List(List::from_values(elem, values))
        }
        TreeKind::Select => {
            let select = view::Select::of(ast, id).ok_or_else(bad)?;
            let of = view::Var::of(ast, select.value()).ok_or_else(bad)?;
            let number = select.name().strip_prefix('c').and_then(|n| n.parse::<usize>().ok());
            match number.and_then(|n| constants.get(n)) {
                Some(value) if of.name() == "CONSTANTS" => value.clone(),
                _ => return Err(bad()),
            }
        }
        TreeKind::Apply => {
            let call = view::Apply::of(ast, id).ok_or_else(bad)?;
            let name = crate::annotation::dotted(ast, call.callee());
            let text = call.inputs().first().and_then(|&t| view::StringLiteral::of(ast, t));
            match (name.as_deref(), text.map(|t| Device::parse(t.value()))) {
                (Some("torch.device"), Some(Ok(device))) => IValue::Device(device),
                _ => return Err(bad()),
            }
        }
        _ => return Err(bad()),
    })
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

    fn constant(text: &str, ty: Type) -> Result<IValue, ArchiveError> {
        let parsed = parse_expression(text, &flambeau_frontend::Limits::default());
        assert!(parsed.problems.is_empty(), "{:?}", parsed.problems);
        read_constant(&parsed.ast, parsed.root, ty, &[IValue::str("zero"), IValue::Int(7)])
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
    fn no_constants() {
        for text in ["x", "f(1)", "CONSTANTS.c9", "OTHER.c0", "1 * 2", "-\"x\"", "{1: 2}"] {
            assert_eq!(constant(text, Type::ANY).expect_err("none").code(), Code::Class, "{text}");
        }
        let deep = format!("{}1{}", "(".repeat(5000), ",)".repeat(5000));
        assert_eq!(constant(&deep, Type::ANY).expect_err("none").code(), Code::Class);
    }
}

//! Sorting of lists of objects.
//!
//! Kernels cannot call methods. If an element is an object, or a tuple that contains objects, the sorting operators are
//! therefore functions written in TorchScript (`library/sorting.py`), instantiated for each element type at first use.
//! An instance differs from others only in the expression that compares two elements `a` and `b`. Objects are compared
//! by `__lt__` of their class, tuples lexicographically.

use flambeau_ir::types::{ClassEnv, TypeKind};
use flambeau_ir::{FunctionSchema, Source, Symbol, Type};

use super::fun::SourceFile;
use super::session::CompileSession;

/// Source of the sorting functions for an `Element` compared by `a < b`, and of functions that raise `Reason`.
const LIBRARY: &str = include_str!("../library/sorting.py");

/// The operators that [`LIBRARY`] implements.
const OPERATORS: [&str; 2] = ["aten::sort", "aten::sorted"];

/// The method that defines the order of a class.
const ORDER: &str = "__lt__";

/// Maximum number of compared parts of an element. The comparison is one expression, nested as deeply as there are
/// parts, and a type of a few lines can have a million parts.
const MAX_PARTS: usize = 512;

/// An element type has more than [`MAX_PARTS`] parts.
#[derive(Debug, thiserror::Error)]
#[error("elements with more than {MAX_PARTS} parts")]
pub(crate) struct TooManyParts;

/// Comparison of the elements of a type.
enum Order {
    /// Elements are compared by this expression of `a` and `b`.
    By(String),
    /// Elements cannot be compared; sorting raises this message.
    None(String),
}

/// Returns the library function that implements `op` for lists of `elem`, or `None` if `elem` contains no objects.
pub(crate) fn over_objects(
    session: &CompileSession<'_>,
    op: Symbol,
    elem: Type,
) -> Result<Option<Symbol>, TooManyParts> {
    if !OPERATORS.iter().any(|name| op == *name) {
        return Ok(None);
    }
    let order = order(session, elem)?;
    Ok(order.and_then(|order| declared(session, op.base(), elem, &order)))
}

/// Declares the instance of library function `base` for element type `elem`, unless it exists; returns its name.
fn declared(session: &CompileSession<'_>, base: &str, elem: Type, order: &Order) -> Option<Symbol> {
    let name = Symbol::new(&format!("{}__{base}", qualified(elem)));
    if session.has_function(name) {
        return Some(name);
    }
    let (suffix, less, reason) = match order {
        Order::By(less) => ("", less.as_str(), ""),
        Order::None(reason) => ("_unordered", "", reason.as_str()),
    };
    let header = format!("def {base}{suffix}(");
    let definition = LIBRARY.split("\n\n").find(|d| d.starts_with(&header))?;
    let text = definition
        .replace("a < b", less)
        .replace("Reason", reason)
        .replace("Element", &elem.annotation().to_string());
    let file = SourceFile::new(Source::new("torch/sorting.py", text), &session.limits);
    let def = file.parsed.ast.children(file.parsed.root).first().copied()?;
    session.declare(name, &file, def, None);
    Some(name)
}

/// Returns the qualified name of an element type. For a tuple it is the text of the type with other characters replaced
/// by underscores. If two types get the same name, calls with the second type fail to match the function's schema.
fn qualified(elem: Type) -> String {
    match elem.as_class() {
        Some(class) => class.name.to_string(),
        None => {
            let word = |c: char| if c.is_alphanumeric() { c } else { '_' };
            format!("__torch__.{}", elem.annotation().to_string().chars().map(word).collect::<String>())
        }
    }
}

/// Returns how elements of a type are compared, or `None` if the type contains no objects or contains a part that the
/// kernels cannot compare either.
fn order(session: &CompileSession<'_>, elem: Type) -> Result<Option<Order>, TooManyParts> {
    // The stack yields the parts of nested tuples in comparison order.
    let (mut tests, mut objects) = (Vec::new(), false);
    let mut todo = vec![(String::new(), elem)];
    while let Some((path, ty)) = todo.pop() {
        let (a, b) = (format!("a{path}"), format!("b{path}"));
        match ty.kind() {
            TypeKind::Tuple(tuple) => {
                let parts = tuple.elems.iter().enumerate().rev();
                todo.extend(parts.map(|(i, &part)| (format!("{path}[{i}]"), part)));
            }
            TypeKind::Class(class) => {
                if !is_ordered(session, ty) {
                    let name = class.name;
                    return Ok(Some(Order::None(format!(
                        "To sort a list of {name}, it must define a {ORDER} method with two inputs of type {name} that \
                         returns a bool"
                    ))));
                }
                objects = true;
                tests.push((format!("{a} is not {b}"), format!("{a} < {b}")));
            }
            TypeKind::Int | TypeKind::Float | TypeKind::Str => {
                tests.push((format!("{a} != {b}"), format!("{a} < {b}")));
            }
            TypeKind::Bool => tests.push((format!("{a} != {b}"), format!("int({a}) < int({b})"))),
            TypeKind::Tensor(_) => tests.push((format!("bool({a} != {b})"), format!("bool({a} < {b})"))),
            _ => return Ok(None),
        }
        // Past the limit it only matters whether there is an object.
        tests.truncate(MAX_PARTS + 1);
    }
    if objects && tests.len() > MAX_PARTS {
        return Err(TooManyParts);
    }
    let Some((_, last)) = tests.pop().filter(|_| objects) else { return Ok(None) };
    let less = |rest: String, (differ, less): (String, String)| format!("({less} if {differ} else {rest})");
    Ok(Some(Order::By(tests.into_iter().rev().fold(last, less))))
}

/// Returns true if the class has a method that compares two of its objects.
fn is_ordered(session: &CompileSession<'_>, class: Type) -> bool {
    let schema = ClassEnv::method(session, class, Symbol::new(ORDER));
    let fits =
        |s: &FunctionSchema| s.args.len() == 2 && s.args[1].ty == class && s.return_type() == Type::BOOL;
    schema.is_some_and(|s| fits(&s))
}

//! Sorting of lists that hold objects.
//!
//! Kernels call no methods, so where an element is an object, or a tuple with objects in it, the operators that sort are
//! functions written in TorchScript (`library/sorting.py`), made for the type of the elements when first asked for. What
//! differs between types is how two elements `a` and `b` are compared: objects by the class's `__lt__`, tuples by the
//! first parts in which they differ.

use flambeau_ir::types::{ClassEnv, TypeKind};
use flambeau_ir::{FunctionSchema, Source, Symbol, Type};

use super::fun::SourceFile;
use super::session::Session;

/// The functions, for lists of an `Element` that is compared by `a < b`; and those that refuse, for a `Reason`.
const LIBRARY: &str = include_str!("../library/sorting.py");

/// The operators that [`LIBRARY`] has.
const OPERATORS: [&str; 2] = ["aten::sort", "aten::sorted"];

/// The method that gives a class its order.
const ORDER: &str = "__lt__";

/// Parts of an element that are compared at most: the comparison is one expression, nested as deep as there are parts,
/// and types of a few lines may have a million.
const PARTS: usize = 512;

/// Elements have more than [`PARTS`].
pub(crate) struct TooManyParts;

/// How elements of a type are compared.
enum Order {
    /// The expression that says whether `a` is less than `b`.
    By(String),
    /// They are not, and lists that hold some are refused with these words.
    None(String),
}

/// The function that stands for an operator over a list of such elements, if they are or hold objects.
pub(crate) fn over_objects(
    session: &Session<'_>,
    op: Symbol,
    elem: Type,
) -> Result<Option<Symbol>, TooManyParts> {
    if !OPERATORS.iter().any(|name| op == *name) {
        return Ok(None);
    }
    let order = order(session, elem)?;
    Ok(order.and_then(|order| declared(session, op.base(), elem, &order)))
}

/// The function of this name for elements of the type, which are compared so.
fn declared(session: &Session<'_>, base: &str, elem: Type, order: &Order) -> Option<Symbol> {
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

/// A qualified name for an element type. Of a tuple it is made of the text of the type, whose other signs become
/// underscores; should two types share a name, calls with the second do not fit the function, and say so.
fn qualified(elem: Type) -> String {
    match elem.as_class() {
        Some(class) => class.name.to_string(),
        None => {
            let word = |c: char| if c.is_alphanumeric() { c } else { '_' };
            format!("__torch__.{}", elem.annotation().to_string().chars().map(word).collect::<String>())
        }
    }
}

/// How elements of the type are compared; nothing if there is no object among them, or what has no order in a kernel
/// either.
fn order(session: &Session<'_>, elem: Type) -> Result<Option<Order>, TooManyParts> {
    // Parts of tuples in tuples come in the order in which they are compared.
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
        // Beyond, all that matters is whether there is an object at all.
        tests.truncate(PARTS + 1);
    }
    if objects && tests.len() > PARTS {
        return Err(TooManyParts);
    }
    let Some((_, last)) = tests.pop().filter(|_| objects) else { return Ok(None) };
    let less = |rest: String, (differ, less): (String, String)| format!("({less} if {differ} else {rest})");
    Ok(Some(Order::By(tests.into_iter().rev().fold(last, less))))
}

/// Does the class have a method that compares two of its objects?
fn is_ordered(session: &Session<'_>, class: Type) -> bool {
    let schema = ClassEnv::method(session, class, Symbol::new(ORDER));
    let fits =
        |s: &FunctionSchema| s.args.len() == 2 && s.args[1].ty == class && s.return_type() == Type::BOOL;
    schema.is_some_and(|s| fits(&s))
}

//! Type annotations to types, and signatures to schemas.

use std::mem::discriminant;
use std::sync::Arc;

use flambeau_ir::schema::Argument;
use flambeau_ir::{Diagnostic, Fault, FunctionSchema, IValue, Symbol, Type};

use super::fun::{Res, SourceFile};
use super::session::CompileSession;
use crate::span::Span;
use crate::tree::{Ast, Leaf, SyntaxOp, TreeId, TreeKind};
use crate::view;

/// Maximum nesting of annotations: that of types.
const DEPTH: u32 = Type::MAX_DEPTH;

/// Reads the annotations of one source.
pub(crate) struct TypeReader<'s> {
    pub(crate) session: &'s CompileSession<'s>,
    pub(crate) file: &'s Arc<SourceFile>,
}

/// Types written as a plain name.
const SIMPLE: [(&str, Type); 26] = [
    ("Tensor", Type::TENSOR),
    ("int", Type::INT),
    ("dtype", Type::INT),
    ("layout", Type::INT),
    ("memory_format", Type::INT),
    ("float", Type::FLOAT),
    ("complex", Type::COMPLEX),
    ("bool", Type::BOOL),
    ("str", Type::STR),
    ("number", Type::NUMBER),
    ("Scalar", Type::NUMBER),
    ("Device", Type::DEVICE),
    ("device", Type::DEVICE),
    ("Stream", Type::STREAM),
    ("Generator", Type::GENERATOR),
    ("QScheme", Type::QSCHEME),
    ("qscheme", Type::QSCHEME),
    ("Storage", Type::STORAGE),
    ("Quantizer", Type::QUANTIZER),
    ("Any", Type::ANY),
    ("None", Type::NONE),
    ("NoneType", Type::NONE),
    ("Capsule", Type::CAPSULE),
    ("PyObject", Type::PY_OBJECT),
    ("list", Type::ANY_LIST),
    ("tuple", Type::ANY_TUPLE),
];

/// Generic types, each with an example.
const GENERIC: [(&str, &str); 9] = [
    ("List", "List[int]"),
    ("Dict", "Dict[int, int]"),
    ("dict", "Dict[int, int]"),
    ("Tuple", "Tuple[int]"),
    ("Optional", "Optional[int]"),
    ("Union", "Union[int, str]"),
    ("Future", "Future[int]"),
    ("Await", "Await[int]"),
    ("Final", "Final[int]"),
];

/// Prefix of the types of lists that a single element may stand for; the length follows.
const BROADCASTING_LIST: &str = "BroadcastingList";

/// How a generic type is made from its arguments.
enum Constructor {
    One(fn(Type) -> Type),
    Any(fn(&[Type]) -> Type),
    Dict,
}

fn simple(name: &str) -> Option<Type> {
    SIMPLE.iter().find(|(n, _)| *n == name).map(|(_, ty)| *ty)
}

/// Module prefixes that are optional in type names.
const PREFIXES: [&str; 6] = ["torch.jit.", "torch.futures.", "torch.nn.", "torch.", "typing.", "builtins."];

/// Returns the `N` of `torch.nn.common_types._size_N_t`, which is `BroadcastingListN[int]`.
fn size_of_alias(name: &str) -> Option<u32> {
    let digit = name.rsplit('.').next()?.strip_prefix("_size_")?.strip_suffix("_t")?;
    digit.parse().ok().filter(|_| digit.len() == 1)
}

impl TypeReader<'_> {
    fn ast(&self) -> &Ast {
        &self.file.parsed.ast
    }

    fn error<T>(&self, tree: TreeId, message: impl Into<String>) -> Res<T> {
        let range = self.file.range(self.ast().span(tree));
        Err(Box::new(Diagnostic::new(Fault::Input, "F0110", message).at(range)))
    }

    /// Returns the type of an annotation.
    pub(crate) fn read(&self, tree: TreeId) -> Res<Type> {
        let ty = self.read_at(tree, 0)?;
        if ty == Type::OVERFLOW {
            return self.error(tree, "this type is nested too deeply");
        }
        Ok(ty)
    }

    /// Returns `a.b.c` if the tree is a dotted name.
    pub(crate) fn dotted(&self, tree: TreeId) -> Option<String> {
        let ast = self.ast();
        let mut parts = Vec::new();
        let mut at = tree;
        loop {
            match ast.kind(at) {
                TreeKind::Select => {
                    parts.push(ast.name(at));
                    at = ast.child(at, 0);
                }
                TreeKind::Var => {
                    parts.push(ast.name(at));
                    parts.reverse();
                    return Some(parts.join("."));
                }
                _ => return None,
            }
        }
    }

    fn read_at(&self, tree: TreeId, depth: u32) -> Res<Type> {
        if depth > DEPTH {
            return self.error(tree, "this type is nested too deeply");
        }
        let ast = self.ast();
        match ast.kind(tree) {
            TreeKind::None => Ok(Type::NONE),
            TreeKind::Var | TreeKind::Select => {
                let Some(name) = self.dotted(tree) else { return self.error(tree, "this is not a type") };
                match size_of_alias(&name) {
                    Some(_) => Ok(Type::list(Type::INT)),
                    None => self.named(tree, &name),
                }
            }
            TreeKind::StringLiteral => self.quoted(tree),
            TreeKind::Subscript => self.generic(tree, depth),
            TreeKind::BinOp if ast.op(tree) == Some(SyntaxOp::BitOr) => {
                let (a, b) = (
                    self.read_at(ast.child(tree, 0), depth + 1)?,
                    self.read_at(ast.child(tree, 1), depth + 1)?,
                );
                Ok(Type::union(&[a, b]))
            }
            kind => match ast.op(tree) {
                Some(op) if matches!(kind, TreeKind::BinOp | TreeKind::UnaryOp) => {
                    let message =
                        format!("Expression of type {} cannot be used in a type expression", op.text());
                    self.error(tree, message)
                }
                _ => self.error(tree, "this expression cannot be used in a type expression"),
            },
        }
    }

    /// Reads an annotation given as a string, which may name a class that is defined later.
    fn quoted(&self, tree: TreeId) -> Res<Type> {
        let source = flambeau_ir::Source::new(self.file.source.name.clone(), self.ast().name(tree));
        let parsed = crate::parse_expression(&source.text, &self.session.limits);
        if !parsed.problems.is_empty() {
            return self.error(tree, "this text is not a type");
        }
        let root = parsed.root;
        let file = Arc::new(SourceFile { source, parsed });
        if file.parsed.ast.kind(root) == TreeKind::StringLiteral {
            return self.error(tree, "this text is not a type");
        }
        let read = TypeReader { session: self.session, file: &file }.read(root);
        read.map_err(|problem| self.relocated(tree, problem))
    }

    /// Moves the problem of a quoted annotation from the quoted text to its place in this source: to the part of the
    /// literal, or to the whole literal if escapes or several quotes make offsets differ.
    fn relocated(&self, tree: TreeId, mut problem: Box<Diagnostic>) -> Box<Diagnostic> {
        let literal = self.ast().span(tree);
        let written = &self.file.source.text[literal.start as usize..literal.end as usize];
        let exact = written.get(1..written.len() - 1) == Some(self.ast().name(tree));
        if let Some(label) = &mut problem.primary {
            let part = &label.at.range;
            label.at = self.file.range(match exact {
                true => Span::new(literal.start + 1 + part.start, literal.start + 1 + part.end),
                false => literal,
            });
        }
        problem
    }

    fn named(&self, tree: TreeId, name: &str) -> Res<Type> {
        if let Some(ty) = self.session.named_type(Symbol::new(name)) {
            return Ok(ty);
        }
        let short = PREFIXES.iter().find_map(|p| name.strip_prefix(p)).unwrap_or(name);
        if let Some(ty) = simple(short) {
            return Ok(ty);
        }
        if short == "Parameter" {
            return Ok(Type::TENSOR);
        }
        if let Some(ty) = self.session.resolver().ty(name) {
            return Ok(ty);
        }
        if let Some((_, example)) = GENERIC.iter().find(|(n, _)| *n == short) {
            return self.error(
                tree,
                match short {
                    "Dict" | "dict" => format!(
                        "Attempted to use {short} without contained types. Please add contained type, e.g. {example}"
                    ),
                    _ => format!(
                        "Attempted to use {short} without a contained type. Please add a contained type, e.g. {example}"
                    ),
                },
            );
        }
        let simple = SIMPLE.iter().map(|(n, _)| *n).filter(|n| n.len() > 2);
        let help = self.suggest_type(short, simple);
        self.unknown(tree, format!("Unknown type name '{name}'"), help)
    }

    /// Returns the builtin or program-defined type name nearest to a misspelled one, as a help text.
    fn suggest_type<'n>(&self, name: &str, builtin: impl Iterator<Item = &'n str>) -> Option<String> {
        let own = self.session.type_names();
        let near = flambeau_ir::nearest(name, builtin.chain(own.iter().map(|n| n.as_str())))?;
        Some(format!("did you mean `{near}`?"))
    }

    fn unknown<T>(&self, tree: TreeId, message: String, help: Option<String>) -> Res<T> {
        self.error(tree, message).map_err(|mut problem: Box<Diagnostic>| {
            problem.help = help;
            problem
        })
    }

    fn generic(&self, tree: TreeId, depth: u32) -> Res<Type> {
        let ast = self.ast();
        let base = ast.child(tree, 0);
        let Some(name) = self.dotted(base) else {
            return self.error(base, "Subscripted type must be a type identifier");
        };
        let short = PREFIXES.iter().find_map(|p| name.strip_prefix(p)).unwrap_or(&name);
        let parts = ast.children(ast.child(tree, 1));
        if matches!(short, "Tuple" | "tuple")
            && let [only] = parts
            && ast.kind(*only) == TreeKind::TupleLiteral
        {
            if !ast.children(*only).is_empty() {
                return self
                    .error(*only, "Tuple literal in Tuple type annotation must not have any elements");
            }
            return Ok(Type::tuple(&[]));
        }
        let constructor = match short {
            "List" | "list" => Constructor::One(Type::list),
            "Optional" => Constructor::One(Type::optional),
            "Future" => Constructor::One(Type::future),
            "Await" | "_Await" => Constructor::One(Type::awaitable),
            "RRef" => Constructor::One(Type::rref),
            "Final" => Constructor::One(|t| t),
            "Tuple" | "tuple" => Constructor::Any(Type::tuple),
            "Union" => Constructor::Any(Type::union),
            "Dict" | "dict" => Constructor::Dict,
            _ => match short.strip_prefix(BROADCASTING_LIST).map(str::parse) {
                Some(Ok(1u32..)) => Constructor::One(Type::list),
                Some(_) => {
                    return self.error(tree, "subscript of Broadcastable list must be a positive integer");
                }
                None => {
                    let help = self.suggest_type(short, GENERIC.iter().map(|(n, _)| *n));
                    return self.unknown(tree, format!("Unknown type constructor {name}"), help);
                }
            },
        };
        let types: Vec<Type> = parts.iter().map(|&t| self.read_at(t, depth + 1)).collect::<Res<_>>()?;
        match (constructor, types.as_slice()) {
            (Constructor::One(make), &[only]) => Ok(make(only)),
            (Constructor::One(_), all) => {
                self.error(tree, format!("{short} takes one type argument, found {}", all.len()))
            }
            (Constructor::Any(make), all) => Ok(make(all)),
            (Constructor::Dict, &[key, value]) => match refused_key(key) {
                Some(why) => self.error(parts[0], why),
                None => Ok(Type::dict(key, value)),
            },
            (Constructor::Dict, _) => {
                self.error(tree, "Dict takes two type arguments, a key and a value type")
            }
        }
    }

    /// Returns the `N` of `BroadcastingListN[T]` or of an alias of such a type.
    fn broadcast(&self, tree: TreeId) -> Option<u32> {
        let ast = self.ast();
        let mut tree = tree;
        if ast.kind(tree) == TreeKind::Subscript && self.dotted(ast.child(tree, 0))?.ends_with("Optional") {
            tree = *ast.children(ast.child(tree, 1)).first()?;
        }
        if ast.kind(tree) != TreeKind::Subscript {
            return size_of_alias(&self.dotted(tree)?);
        }
        let name = self.dotted(ast.child(tree, 0))?;
        name.rsplit('.').next()?.strip_prefix(BROADCASTING_LIST)?.parse().ok()
    }

    /// Returns the declared schema of a function. Without a result annotation, `returns` is empty.
    pub(crate) fn schema(&self, name: Symbol, def: TreeId, self_type: Option<Type>) -> Res<FunctionSchema> {
        let ast = self.ast();
        let Some(def) = view::Def::of(ast, def) else { return self.error(def, "this is not a function") };
        let Some(decl) = view::Decl::of(ast, def.decl()) else {
            return self.error(def.id(), "this has no signature");
        };
        let mut args = Vec::with_capacity(decl.params().len());
        for (i, &param) in decl.params().iter().enumerate() {
            let Some(param) = view::Param::of(ast, param) else { continue };
            let ty = match (param.annotation(), self_type) {
                (_, Some(ty)) if i == 0 => ty,
                (Some(annotation), _) => self.read(annotation)?,
                (None, _) => Type::TENSOR,
            };
            let mut arg = Argument::new(Symbol::new(param.name()), ty);
            arg.n = param.annotation().and_then(|a| self.broadcast(a));
            arg.kwarg_only = param.keyword_only();
            arg.is_inferred = param.annotation().is_none() && !(i == 0 && self_type.is_some());
            arg.default = match param.default() {
                Some(default) => Some(self.parameter_default(default, &arg)?),
                None => None,
            };
            args.push(arg);
        }
        if self_type.is_some() && args.is_empty() {
            return self.error(def.id(), "methods must have a self argument");
        }
        let returns = match decl.result() {
            Some(result) => vec![Argument::new(Symbol::EMPTY, self.read(result)?)],
            None => Vec::new(),
        };
        Ok(FunctionSchema { name, overload: Symbol::EMPTY, args, returns, vararg: false, varret: false })
    }

    /// Evaluates a default value, which must be a constant, and converts it to type `ty`.
    pub(crate) fn default(&self, tree: TreeId, ty: Type) -> Res<IValue> {
        Ok(fitted(self.literal(tree, 0)?, ty))
    }

    /// Evaluates the default value of a parameter or field and checks it against the declared type.
    pub(crate) fn parameter_default(&self, tree: TreeId, param: &Argument) -> Res<IValue> {
        let value = repeated(self.default(tree, param.ty)?, param.n);
        let found = value.type_of();
        let is_number = |t: Type| matches!(t, Type::INT | Type::FLOAT);
        let same_kind = |a: Type, b: Type| discriminant(a.kind()) == discriminant(b.unwrap_optional().kind());
        let fits = flambeau_ir::types::is_subtype(found, param.ty, self.session)
            || found.depth() > 1 && same_kind(found, param.ty)
            || is_number(found) && param.ty.unwrap_optional() == Type::COMPLEX;
        if fits {
            return Ok(value);
        }
        self.error(
            tree,
            format!(
                "Expected a default value of type {} on parameter \"{}\", but found {}",
                param.ty.annotation(),
                param.name,
                found.annotation()
            ),
        )
    }

    fn literal(&self, tree: TreeId, depth: u32) -> Res<IValue> {
        let ast = self.ast();
        if depth > DEPTH {
            return self.error(tree, "this default is nested too deeply");
        }
        let children =
            || ast.children(tree).iter().map(|&t| self.literal(t, depth + 1)).collect::<Res<Vec<IValue>>>();
        Ok(match ast.kind(tree) {
            TreeKind::None => IValue::None,
            TreeKind::True => IValue::Bool(true),
            TreeKind::False => IValue::Bool(false),
            TreeKind::StringLiteral => IValue::str(ast.name(tree)),
            TreeKind::Const => number(ast.leaf(tree)),
            TreeKind::TupleLiteral => IValue::Tuple(flambeau_ir::value::Tuple::new(children()?)),
            TreeKind::ListLiteral => {
                let items = children()?;
                let elem = items.first().map_or(Type::TENSOR, IValue::type_of);
                list_of(elem, items)
            }
            TreeKind::UnaryOp if ast.op(tree) == Some(SyntaxOp::Neg) => {
                match self.literal(ast.child(tree, 0), depth + 1)? {
                    IValue::Int(v) => IValue::Int(v.wrapping_neg()),
                    IValue::Float(v) => IValue::Float(-v),
                    _ => return self.error(tree, NO_DEFAULT),
                }
            }
            TreeKind::BinOp => {
                let [a, b] = [0, 1].map(|i| self.literal(ast.child(tree, i), depth + 1));
                match ast.op(tree).and_then(|op| crate::literal::arithmetic(op, &a.ok()?, &b.ok()?)) {
                    Some(value) => value,
                    None => return self.error(tree, NO_DEFAULT),
                }
            }
            TreeKind::DictLiteral => {
                let [keys, values] = [0, 1].map(|i| ast.children(ast.child(tree, i)));
                let pairs = keys.iter().zip(values);
                let pairs = pairs
                    .map(|(&k, &v)| Ok((self.literal(k, depth + 1)?, self.literal(v, depth + 1)?)))
                    .collect::<Res<Vec<_>>>()?;
                self.dict_of(tree, pairs)?
            }
            TreeKind::Apply => self.applied(tree, depth)?,
            _ => match self.dotted(tree).and_then(|name| self.named_constant(&name)) {
                Some(value) => value,
                None => return self.error(tree, NO_DEFAULT),
            },
        })
    }

    fn dict_of(&self, tree: TreeId, pairs: Vec<(IValue, IValue)>) -> Res<IValue> {
        let (key, value) =
            pairs.first().map_or((Type::STR, Type::TENSOR), |(k, v)| (k.type_of(), v.type_of()));
        let dict = flambeau_ir::value::Dict::new(key, value);
        for (k, v) in pairs {
            if dict.insert(k, v).is_err() {
                return self.error(tree, "this default has a dictionary key of an unsupported type");
            }
        }
        Ok(IValue::Dict(dict))
    }

    /// Evaluates `annotate(T, value)` and `torch.device("cpu")`, which occur in printed code, and `float("inf")`.
    fn applied(&self, tree: TreeId, depth: u32) -> Res<IValue> {
        let ast = self.ast();
        let Some(call) = view::Apply::of(ast, tree) else { return self.error(tree, NO_DEFAULT) };
        let name = self.dotted(call.callee()).unwrap_or_default();
        match (name.rsplit('.').next().unwrap_or_default(), call.inputs()) {
            ("annotate", &[ty, value]) => {
                let ty = self.read(ty)?;
                Ok(fitted(self.literal(value, depth + 1)?, ty))
            }
            ("float", &[text]) => match self.literal(text, depth + 1)? {
                IValue::Str(text) => match text.to_text().trim().parse() {
                    Ok(number) => Ok(IValue::Float(number)),
                    Err(_) => self.error(tree, "this is not a number"),
                },
                _ => self.error(tree, NO_DEFAULT),
            },
            ("device", &[text]) => match self.literal(text, depth + 1)? {
                IValue::Str(text) => match text.to_string().parse() {
                    Ok(device) => Ok(IValue::Device(device)),
                    Err(_) => self.error(tree, "this is not a device"),
                },
                _ => self.error(tree, NO_DEFAULT),
            },
            _ => self.error(tree, NO_DEFAULT),
        }
    }

    /// Resolves a dotted name to a constant of the language or of the archive, or to an enum member.
    fn named_constant(&self, name: &str) -> Option<IValue> {
        if let Some(value) = super::names::constant(name) {
            return Some(value);
        }
        if let Some(super::sugar::Sugar::Constant(value)) = self.session.resolver().value(name) {
            return Some(value);
        }
        let (owner, member) = name.rsplit_once('.')?;
        let ty = self.session.named_type(Symbol::new(owner)).or_else(|| self.session.resolver().ty(owner))?;
        self.session.resolver().complete(self.session, ty).ok()?;
        let member = Symbol::new(member);
        let value = self.session.with_unit(|u| {
            u.enumeration(ty)?.members.iter().find(|(n, _)| *n == member).map(|(_, v)| v.clone())
        })?;
        Some(IValue::Enum(flambeau_ir::value::EnumValue::new(ty, member, value)))
    }
}

/// Returns the reason why `key` is not a valid dictionary key type, or `None` if it is valid.
pub(crate) fn refused_key(key: Type) -> Option<String> {
    let known = [Type::INT, Type::STR, Type::FLOAT, Type::BOOL, Type::COMPLEX, Type::DEVICE, Type::ANY];
    if key.is_tensor() || key.has_vars() || known.contains(&key) {
        return None;
    }
    Some(format!(
        "Cannot create dict for key type '{}', only int, float, complex, Tensor, device and string keys are supported",
        key.annotation()
    ))
}

/// The message for a default that is not a constant expression.
const NO_DEFAULT: &str = "a default value must be a constant";

/// Expands a number to a list of `n` copies, for a parameter of type `T[n]`.
fn repeated(value: IValue, n: Option<u32>) -> IValue {
    let Some(n) = n.filter(|_| matches!(value, IValue::Int(_) | IValue::Float(_))) else { return value };
    list_of(value.type_of(), vec![value; n as usize])
}

/// Converts a literal to a declared type: ints to floats, names of devices to devices, and element types of lists and
/// dictionaries, at any depth.
fn fitted(value: IValue, ty: Type) -> IValue {
    let ty = ty.unwrap_optional();
    match value {
        IValue::Int(v) if ty == Type::FLOAT => IValue::Float(v as f64),
        IValue::Str(text) if ty == Type::DEVICE => match text.to_string().parse() {
            Ok(device) => IValue::Device(device),
            Err(_) => IValue::Str(text),
        },
        IValue::List(list) => {
            let Some(elem) = ty.list_elem() else { return IValue::List(list) };
            let items: Vec<IValue> = list.to_vec().into_iter().map(|item| fitted(item, elem)).collect();
            if items.iter().all(|item| item.fits(elem)) { list_of(elem, items) } else { IValue::List(list) }
        }
        IValue::Dict(dict) => {
            let flambeau_ir::types::TypeKind::Dict(key, value) = ty.kind() else { return IValue::Dict(dict) };
            for (k, v) in dict.to_vec() {
                // Replacing the value of a key that is there cannot fail.
                let _ = dict.insert(k, fitted(v, *value));
            }
            dict.set_types(*key, *value);
            IValue::Dict(dict)
        }
        value => value,
    }
}

/// Returns the value of a number literal.
pub(crate) fn number(leaf: Leaf) -> IValue {
    match leaf {
        Leaf::Int(v) => IValue::Int(v),
        Leaf::Float(v) => IValue::Float(v),
        Leaf::Imag(v) => IValue::complex(flambeau_tensor::Complex::new(0.0, v)),
        _ => IValue::None,
    }
}

/// Creates a list value.
pub(crate) fn list_of(elem: Type, items: Vec<IValue>) -> IValue {
    IValue::List(flambeau_ir::value::List::from_values(elem, items))
}

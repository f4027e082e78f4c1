//! Derivatives of operators, stated as TorchScript expressions.
//!
//! A `.grads` file has one entry per operator: a line with one or more operator names, followed by indented lines with
//! the gradient of each argument, or a single line that starts with `constant` or `layout`:
//!
//! ```text
//! # A comment.
//! aten::addcmul
//!   self    = grad
//!   tensor1 = grad * (tensor2 * value)
//!   tensor2 = grad * (tensor1 * value)
//! aten::scaled_dot_product_attention
//!   query, key, value = attention_gradient(grad, query, key, value)
//!   attn_mask = none
//! aten::chain_matmul
//!   by chain(matrices)
//! constant aten::argmax aten::isnan
//! layout aten::transpose_
//! view aten::t
//!   self = grad.t()
//! ```
//!
//! | form | meaning |
//! |---|---|
//! | `a, b = EXPRESSION` | the gradients of several arguments as a tuple, so that common subexpressions are computed once |
//! | `a = none` | the argument has no gradient; an argument without a line has no *known* gradient, and requesting it is an error |
//! | `a = piecewise EXPRESSION` | the gradient is constant in pieces of the argument, as that of `relu` |
//! | `by EXPRESSION` | the operator computes the same function of its arguments as the expression |
//! | `view NAMES` | the entry of views whose elements do not share memory: the formula is also the adjoint of the view |
//! | `a = refused` | a call in which the argument requires a gradient is an error, as in PyTorch; also beside `by`. `a = refused NAME`: the error has the name of that operator, a part of this one. `for integral b` behind it: only if argument `b` is a tensor of integers |
//! | `real NAMES` | calls with complex results that require gradients are errors, as in PyTorch. `aten::softmax=_softmax`: the error has the second name |
//! | `constant NAMES` | the results are constants for differentiation |
//! | `layout NAMES` | the operators change in place which elements of the storage a tensor has: their gradients follow from the layouts before and after, as for views |
//!
//! `piecewise`: the gradient of the gradient with respect to the argument is zero, as in PyTorch, where such a gradient is an
//! operator that reads the argument; without the word it would not depend on the argument at all. `by`: the gradients are those
//! of the expression: graphs contain it instead of the operator, and a backward pass over a recorded call runs it again on a tape. Composite operators need no formula of their own.
//!
//! An expression may use the operator's arguments by name, `grad` (the gradient of the first result; `grad1`, `grad2` …
//! of the others), `result` (`result1` …), `self_like` and the functions of the texts passed as [`Gradients::helpers`].
//! `self_copy` is a copy of argument `self`, which may be overwritten: for formulas that read an argument where PyTorch's read
//! results, or tensors that were computed from the argument.
//! `self_like` has the sizes and type of argument `self` and zeros as elements, so the elements of `self` need not be
//! saved and may be overwritten. A formula need not sum over broadcast dimensions or convert types back: the code that
//! applies the formula does both. Each gradient is one line.
//! `aten::add` covers all overloads; `aten::sum.dim_IntList` covers one overload and precedes it. An in-place operator
//! without an entry uses the one of its functional variant.

use flambeau_exec::tape::{Refusals, RefusedArg};
use flambeau_ir::schema::Argument;
use flambeau_ir::value::{IValue, List};
use flambeau_ir::{Facet, FunctionSchema, OpId, Registry, Symbol, Type, nearest};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

/// Gradient formulas stated by an operator, for itself and for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gradients {
    name: &'static str,
    entries: &'static str,
    helpers: &'static str,
}

impl Gradients {
    /// Formulas from a file: `Gradients::file("pointwise.grads", include_str!("pointwise.grads"))`.
    pub const fn file(name: &'static str, entries: &'static str) -> Self {
        Gradients { name, entries, helpers: "" }
    }

    /// Functions in TorchScript that formulas may call.
    #[must_use]
    pub const fn helpers(self, source: &'static str) -> Self {
        Gradients { helpers: source, ..self }
    }
}

impl Gradients {
    /// The name of the file.
    pub fn name(&self) -> &'static str {
        self.name
    }

    fn error(&self, line: usize, message: String) -> GradientsError {
        GradientsError { file: self.name, line: line + 1, message }
    }

    /// The groups of operators that share an entry. Assumes a well-formed text:
    /// [`GradientTable::from_registry`] rejects others.
    fn groups(&self) -> Vec<Group> {
        let mut all: Vec<Group> = Vec::new();
        for (line, whole) in self.entries.lines().enumerate() {
            let text = whole.trim();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            if whole.starts_with(' ') {
                all.last_mut().into_iter().for_each(|group| group.lines.push((line, text)));
                continue;
            }
            let listed = LISTS.iter().find_map(|word| text.strip_prefix(word));
            let text = text.strip_prefix("view ").unwrap_or(text);
            let names = listed.unwrap_or(text).split_whitespace();
            let names = names.map(|name| (line, name.split('=').next().unwrap_or(name)));
            all.push(Group { names: names.collect(), lines: Vec::new() });
        }
        all
    }

    /// Returns the operators of a registry that the text names.
    ///
    /// # Errors
    /// Returns one error per name of an operator that is not registered and per argument that no overload in its group
    /// has.
    pub fn operators(&self, registry: &Registry) -> Result<Vec<OpId>, Vec<GradientsError>> {
        let (mut found, mut errors) = (Vec::new(), Vec::new());
        for Group { names, lines, .. } in self.groups() {
            let mut rows: Vec<OpId> = Vec::new();
            for &(line, name) in &names {
                let before = rows.len();
                rows.extend(registry.lookup(name));
                rows.extend(registry.overloads(Symbol::new(name)));
                if rows.len() == before {
                    errors.push(self.error(line, unknown("operator", name, &known_names(registry))));
                }
            }
            let args = rows.iter().flat_map(|op| &registry.schema(*op).args);
            let args: Vec<&str> = args.map(|arg| arg.name.as_str()).collect();
            for (line, text) in
                lines.into_iter().filter(|(_, text)| !rows.is_empty() && !text.starts_with("by "))
            {
                let stated = text.split_once('=').map_or("", |(args, _)| args).split(',').map(str::trim);
                for arg in stated.filter(|arg| !args.contains(arg)) {
                    let of = format!("argument of `{}`", names[0].1);
                    errors.push(self.error(line, unknown(&of, arg, &args)));
                }
            }
            found.extend(rows);
        }
        if errors.is_empty() { Ok(found) } else { Err(errors) }
    }
}

/// The first words of lines with names alone.
const LISTS: [&str; 3] = ["constant ", "layout ", "real "];

/// Operators that share an entry.
struct Group {
    /// The names, each with its line (from 0).
    names: Vec<(usize, &'static str)>,
    /// The lines of gradients.
    lines: Vec<(usize, &'static str)>,
}

/// Qualified names of all operators, with and without their overloads.
fn known_names(registry: &Registry) -> Vec<&'static str> {
    let names = registry.ids().map(|op| registry.name(op.into()).as_str());
    let full = registry.ids().filter(|op| !registry.schema(*op).overload.is_empty());
    names.chain(full.map(|op| Symbol::new(&registry.schema(op).full_name()).as_str())).collect()
}

fn unknown(kind: &str, name: &str, known: &[&str]) -> String {
    match nearest(name, known.iter().copied()) {
        Some(near) => format!("there is no {kind} called `{name}`, did you mean `{near}`?"),
        None => format!("there is no {kind} called `{name}`"),
    }
}

impl Facet for Gradients {
    const NAME: &'static str = "gradients";
}

/// The gradient of one argument, or of several at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgGradient {
    /// The arguments.
    pub args: Vec<&'static str>,
    /// The expression; a tuple if there are several arguments. `None`: there is no gradient.
    pub text: Option<&'static str>,
    /// Whether the gradient is constant in pieces of the arguments: its derivatives with respect to them are zero, and
    /// not absent.
    pub is_piecewise: bool,
}

/// The entry of an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GradientEntry {
    /// No gradient propagates through the operator.
    Constant,
    /// The operator changes in place which elements of the storage a tensor has.
    Layout,
    /// The gradients of its arguments.
    Formulas(Vec<ArgGradient>),
    /// The gradients of the arguments of a view, for graphs.
    View(Vec<ArgGradient>),
    /// An expression that computes the same from the arguments: the gradients are those of the expression.
    Body(&'static str),
}

/// An entry that does not parse or does not match the registry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {message}")]
pub struct GradientsError {
    /// The file.
    pub file: &'static str,
    /// The line, from 1.
    pub line: usize,
    /// The message.
    pub message: String,
}

/// The gradient entries of all operators of a registry.
#[derive(Debug, Default)]
pub struct GradientTable {
    entries: HashMap<Symbol, GradientEntry, FxBuildHasher>,
    /// Operators with real results, each with its name in the error for complex ones.
    real: HashMap<Symbol, Symbol, FxBuildHasher>,
    refused: HashMap<Symbol, Vec<StatedRefusal>, FxBuildHasher>,
    helpers: String,
}

/// An argument that must not require a gradient.
#[derive(Clone, Copy, Debug)]
struct StatedRefusal {
    arg: &'static str,
    /// The name of the operator in the error, if it is not that of the entry.
    operator: Option<&'static str>,
    /// The argument that must be a tensor of integers.
    where_integral: Option<&'static str>,
}

/// An entry whose lines are being read.
struct OpenEntry {
    names: Vec<Symbol>,
    /// The line of the names, from 0.
    line: usize,
    entry: GradientEntry,
    /// Whether it has lines of gradients.
    has_lines: bool,
}

impl Default for OpenEntry {
    fn default() -> Self {
        OpenEntry { names: Vec::new(), line: 0, entry: GradientEntry::Formulas(Vec::new()), has_lines: false }
    }
}

impl GradientTable {
    /// Reads the entries of all operators of a registry.
    ///
    /// # Errors
    /// Returns an error for the first line that does not parse.
    pub fn from_registry(registry: &Registry) -> Result<Self, GradientsError> {
        let mut table = GradientTable::default();
        for (_, gradients) in registry.column::<Gradients>().iter() {
            table.read(gradients)?;
        }
        Ok(table)
    }

    fn read(&mut self, gradients: &Gradients) -> Result<(), GradientsError> {
        self.helpers.push_str(gradients.helpers);
        let fail = |line: usize, message: &str| gradients.error(line, message.to_owned());
        let mut open = OpenEntry::default();
        for (at, line) in gradients.entries.lines().enumerate() {
            let text = line.trim();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            if line.starts_with(' ') {
                if open.names.is_empty() {
                    return Err(fail(at, "a gradient without an operator"));
                }
                open.has_lines = true;
                if let Some(refusal) = parse_refusal(text) {
                    open.names.iter().for_each(|name| self.refused.entry(*name).or_default().push(refusal));
                    continue;
                }
                parse_gradient(&mut open.entry, text).map_err(|message| fail(at, message))?;
                continue;
            }
            self.close(std::mem::take(&mut open)).map_err(|(line, message)| fail(line, message))?;
            if let Some(names) = text.strip_prefix("real ") {
                for name in names.split_whitespace() {
                    let (name, operator) = name.split_once('=').unwrap_or((name, base_name(name)));
                    if self.real.insert(Symbol::new(name), Symbol::new(operator)).is_some() {
                        return Err(fail(at, "stated twice"));
                    }
                }
                continue;
            }
            let of_lists = [("constant ", GradientEntry::Constant), ("layout ", GradientEntry::Layout)];
            let listed = of_lists.iter().find_map(|(word, entry)| Some((text.strip_prefix(word)?, entry)));
            let named = |names: &'static str| names.split_whitespace().map(Symbol::new);
            match listed {
                Some((names, entry)) => {
                    for name in named(names) {
                        if self.entries.insert(name, entry.clone()).is_some() {
                            return Err(fail(at, "stated twice"));
                        }
                    }
                }
                None => {
                    let viewed = text.strip_prefix("view ");
                    let entry = match viewed {
                        Some(_) => GradientEntry::View(Vec::new()),
                        None => GradientEntry::Formulas(Vec::new()),
                    };
                    let names = named(viewed.unwrap_or(text)).collect();
                    open = OpenEntry { names, line: at, entry, has_lines: false };
                }
            }
        }
        self.close(open).map_err(|(line, message)| fail(line, message))
    }

    /// Adds an entry. Returns the line and the message of an error.
    fn close(&mut self, open: OpenEntry) -> Result<(), (usize, &'static str)> {
        if !open.names.is_empty() && !open.has_lines {
            return Err((open.line, "an operator without gradients"));
        }
        for name in open.names {
            if self.entries.insert(name, open.entry.clone()).is_some() {
                return Err((open.line, "stated twice"));
            }
        }
        Ok(())
    }

    /// TorchScript functions that formulas may call.
    pub fn helpers(&self) -> &str {
        &self.helpers
    }

    /// Returns the number of operators that have an entry.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether an in-place operator overwrites its operand by a constant, with a history of its own: all its gradients are zero.
    pub fn overwrites(&self, registry: &Registry, op: OpId) -> bool {
        let is_constant = |op: OpId| matches!(self.of(registry, op), Some(GradientEntry::Constant));
        registry.functional_variant(op).is_some_and(is_constant) && !is_constant(op)
    }

    /// Whether an in-place operator changes its operand without a history of its own, so that the operand keeps the one it had.
    pub fn keeps_history(&self, registry: &Registry, op: OpId) -> bool {
        let is_constant = |op: OpId| matches!(self.of(registry, op), Some(GradientEntry::Constant));
        registry.functional_variant(op).is_some_and(is_constant) && is_constant(op)
    }

    /// Returns which calls of an operator are refused because gradients are required.
    pub fn refusals(&self, registry: &Registry, op: OpId) -> Option<Refusals> {
        let schema = registry.schema(op);
        let functional = registry.functional_variant(op).map(|variant| registry.schema(variant));
        let names = || {
            let stated = [Some(schema), functional].into_iter().flatten();
            stated.flat_map(|s| [Symbol::new(&format!("{}.{}", s.name, s.overload)), s.name])
        };
        let refused = names().find_map(|name| Some((name, self.refused.get(&name)?)));
        let args = refused.map_or_else(Vec::new, |(name, args)| {
            let refused = args.iter().filter_map(|stated| {
                let operator = stated.operator.unwrap_or_else(|| base_name(name.as_str()));
                let where_integral = match stated.where_integral {
                    Some(other) => Some(schema.arg_index(other)?),
                    None => None,
                };
                let arg = schema.arg_index(stated.arg)?;
                Some(RefusedArg { arg, operator: Symbol::new(operator), where_integral })
            });
            refused.collect()
        });
        let complex_results = names().find_map(|name| self.real.get(&name).copied());
        let found = Refusals { args, complex_results };
        (found != Refusals::default()).then_some(found)
    }

    /// Returns the entry of an operator, restricted to arguments the operator has. `out` variants have no entry.
    pub fn of(&self, registry: &Registry, op: OpId) -> Option<GradientEntry> {
        let schema = registry.schema(op);
        if schema.args.iter().any(Argument::is_out) {
            return None;
        }
        let functional = registry.functional_variant(op).map(|variant| registry.schema(variant));
        [Some(schema), functional].into_iter().flatten().find_map(|stated| {
            let name = stated.name;
            let full = Symbol::new(&format!("{name}.{}", stated.overload));
            let entry = self.entries.get(&full).or_else(|| self.entries.get(&name))?;
            let formulas = match entry {
                GradientEntry::Constant if name == schema.name => return Some(GradientEntry::Constant),
                GradientEntry::Constant => return Some(overwritten(schema)),
                GradientEntry::Layout => return Some(GradientEntry::Layout),
                GradientEntry::Body(_) => return (!schema.returns.is_empty()).then(|| entry.clone()),
                GradientEntry::Formulas(formulas) | GradientEntry::View(formulas) => formulas,
            };
            let own = formulas.iter().filter(|f| f.args.iter().all(|arg| takes_gradient(schema, arg)));
            let mut own: Vec<ArgGradient> = own.cloned().collect();
            // PyTorch computes them in this order, which determines how second derivatives are rounded.
            own.sort_by(|a, b| a.args.cmp(&b.args));
            match entry {
                GradientEntry::View(_) if name != schema.name => None,
                GradientEntry::View(_) => Some(GradientEntry::View(own)),
                _ => Some(GradientEntry::Formulas(own)),
            }
        })
    }
}

/// The entry of an in-place operator whose functional variant is `constant`: all gradients are zero, because the result
/// depends neither on the previous elements nor on the other operands.
fn overwritten(schema: &FunctionSchema) -> GradientEntry {
    let tensors = schema.args.iter().filter(|arg| takes_gradient(schema, arg.name.as_str()));
    let gradient = |arg: &Argument| ArgGradient {
        args: vec![arg.name.as_str()],
        text: Some("torch.zeros_like(grad)"),
        is_piecewise: false,
    };
    GradientEntry::Formulas(tensors.map(gradient).collect())
}

/// Returns the name of an operator in errors: without namespace and overload.
fn base_name(name: &str) -> &str {
    let name = name.rsplit("::").next().unwrap_or(name);
    name.split('.').next().unwrap_or(name)
}

/// Reads a line `argument = refused OPERATOR for integral ARGUMENT`, of which the parts behind `refused` may be missing.
fn parse_refusal(text: &'static str) -> Option<StatedRefusal> {
    let (arg, text) = text.split_once('=')?;
    let text = text.trim().strip_prefix("refused")?;
    let (operator, where_integral) = match text.split_once(" for integral ") {
        Some((operator, other)) => (operator.trim(), Some(other.trim())),
        None => (text.trim(), None),
    };
    let is_name = |text: &str| text.chars().all(|c| c.is_alphanumeric() || c == '_');
    let all_names = is_name(operator) && where_integral.is_none_or(is_name);
    let operator = Some(operator).filter(|name| !name.is_empty());
    all_names.then_some(StatedRefusal { arg: arg.trim(), operator, where_integral })
}

/// Adds one indented line to an entry.
fn parse_gradient(entry: &mut GradientEntry, text: &'static str) -> Result<(), &'static str> {
    let (GradientEntry::Formulas(formulas) | GradientEntry::View(formulas)) = entry else {
        return Err("unexpected line after `by`");
    };
    if let Some(body) = text.strip_prefix("by ") {
        if !formulas.is_empty() {
            return Err("`by` must be the only line of an entry");
        }
        *entry = GradientEntry::Body(body.trim_start());
        return Ok(());
    }
    let (args, formula) = text.split_once('=').ok_or("expected `argument = expression`")?;
    let formula = formula.trim_start();
    let pieces = formula.strip_prefix("piecewise ");
    formulas.push(ArgGradient {
        args: args.split(',').map(str::trim).collect(),
        text: (formula != "none").then_some(pieces.unwrap_or(formula)),
        is_piecewise: pieces.is_some(),
    });
    Ok(())
}

/// Whether an operator has results and an argument of this name that is a tensor or a list of tensors.
fn takes_gradient(schema: &FunctionSchema, arg: &str) -> bool {
    let ty = schema.arg_index(arg).map(|i| schema.args[i].ty.unwrap_optional());
    !schema.returns.is_empty()
        && ty.is_some_and(|ty| ty.list_elem().unwrap_or(ty).unwrap_optional() == Type::TENSOR)
}

/// The identifiers in an expression, without duplicates, in order of first occurrence.
fn identifiers(text: &str) -> Vec<&str> {
    let mut found: Vec<&str> = Vec::new();
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let mut rest = text;
    while let Some(start) = rest.find(word) {
        let after_dot = rest[..start].ends_with('.');
        let tail = &rest[start..];
        let end = tail.find(|c| !word(c)).unwrap_or(tail.len());
        let name = &tail[..end];
        let is_name = !name.starts_with(|c: char| c.is_ascii_digit());
        if is_name && !after_dot && !found.contains(&name) {
            found.push(name);
        }
        rest = &tail[end..];
    }
    found
}

/// An identifier in a formula, resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// The gradient of a result.
    Grad(usize),
    /// An argument.
    Arg(usize),
    /// A copy of an argument, which may be overwritten.
    Copy(usize),
    /// A tensor of zeros with the sizes and type of an argument.
    Like(usize),
    /// A result.
    Result(usize),
}

impl Named {
    /// Returns the argument whose elements a formula reads.
    pub fn arg(self) -> Option<usize> {
        match self {
            Named::Arg(arg) | Named::Copy(arg) => Some(arg),
            Named::Grad(_) | Named::Like(_) | Named::Result(_) => None,
        }
    }
}

/// A formula as a TorchScript function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormulaSource {
    /// Its parameters.
    pub params: Vec<Named>,
    /// `def gradient(grad: Tensor, other: Tensor) -> Tensor: …`
    pub text: String,
}

/// The type with `number` replaced by `float`, or by `complex` if `complex` is set: formulas are typed TorchScript.
fn concrete(ty: Type, complex: bool) -> Type {
    let number = if complex { Type::COMPLEX } else { Type::FLOAT };
    if ty == Type::NUMBER { number } else { ty.map_contained(|t| concrete(t, complex)) }
}

/// Converts a value to the parameter type of a formula: numbers, also those in lists, become floats (or complex
/// numbers).
pub fn concrete_value(value: IValue, ty: Type, complex: bool) -> IValue {
    let ty = ty.unwrap_optional();
    let number = |value: IValue| match value.as_scalar() {
        Some(x) if complex => IValue::Complex(x.to_complex().into()),
        Some(x) => IValue::Float(x.to_f64()),
        None => value,
    };
    match value {
        IValue::List(list) if ty.list_elem() == Some(Type::NUMBER) => {
            let elem = if complex { Type::COMPLEX } else { Type::FLOAT };
            IValue::List(List::from_values(elem, list.to_vec().into_iter().map(number).collect()))
        }
        value if ty == Type::NUMBER => number(value),
        value => value,
    }
}

/// The TorchScript type of a gradient: a list for a list argument, else an optional tensor.
fn gradient_type(schema: &FunctionSchema, arg: &str) -> &'static str {
    let of = schema.arg_index(arg).map_or(Type::TENSOR, |i| schema.args[i].ty);
    if of.unwrap_optional().list_elem().is_some() { "List[Tensor]" } else { "Optional[Tensor]" }
}

impl FormulaSource {
    /// The function for gradients of an operator; `None` if the arguments have no gradient. `complex`: one of the
    /// numbers among the operator's arguments is complex.
    pub fn of_gradient(schema: &FunctionSchema, gradient: &ArgGradient, complex: bool) -> Option<Self> {
        let types: Vec<&str> = gradient.args.iter().map(|arg| gradient_type(schema, arg)).collect();
        let result = if types.len() == 1 { types[0].to_owned() } else { tuple_of(&types.join(", ")) };
        Some(Self::new(schema, gradient.text?, &result, complex))
    }

    /// The function for the body (`by`) of an operator.
    pub fn of_body(schema: &FunctionSchema, body: &str, complex: bool) -> Self {
        let types: Vec<String> = schema.returns.iter().map(|r| r.ty.annotation().to_string()).collect();
        let result = if types.len() == 1 { types[0].clone() } else { tuple_of(&types.join(", ")) };
        Self::new(schema, body, &result, complex)
    }

    fn new(schema: &FunctionSchema, expression: &str, result: &str, complex: bool) -> FormulaSource {
        let indexed = |name: &str, prefix: &str| -> Option<usize> {
            let rest = name.strip_prefix(prefix)?;
            if rest.is_empty() { Some(0) } else { rest.parse().ok() }
        };
        let mut params = Vec::new();
        let mut text = "def gradient(".to_owned();
        for name in identifiers(expression) {
            let (param, ty) = if let Some(i) = schema.arg_index(name) {
                (Named::Arg(i), concrete(schema.args[i].ty, complex))
            } else if let Some(i) = name.strip_suffix("_copy").and_then(|arg| schema.arg_index(arg)) {
                (Named::Copy(i), schema.args[i].ty)
            } else if let Some(i) = name.strip_suffix("_like").and_then(|arg| schema.arg_index(arg)) {
                (Named::Like(i), schema.args[i].ty)
            } else if let Some(i) = indexed(name, "grad").filter(|i| *i < schema.returns.len()) {
                let is_list = schema.returns[i].ty.list_elem().is_some();
                (Named::Grad(i), if is_list { Type::list(Type::TENSOR) } else { Type::TENSOR })
            } else if let Some(i) = indexed(name, "result").filter(|i| *i < schema.returns.len()) {
                (Named::Result(i), schema.returns[i].ty)
            } else {
                continue;
            };
            params.push(param);
            text.push_str(&format!("{name}: {}, ", ty.annotation()));
        }
        text = format!("{}) -> {result}:\n    return {expression}\n", text.trim_end_matches(", "));
        FormulaSource { params, text }
    }
}

fn tuple_of(types: &str) -> String {
    format!("Tuple[{types}]")
}

#[cfg(test)]
mod tests {
    use super::*;
    use flambeau_ir::{OpDef, RegistryBuilder};
    use std::sync::Arc;

    fn one(arg: &'static str, text: &'static str) -> ArgGradient {
        ArgGradient { args: vec![arg], text: Some(text), is_piecewise: false }
    }

    #[test]
    fn formulas_that_use_only_sizes_save_no_tensor() {
        let schema: FunctionSchema = "aten::f(Tensor self, Tensor? other=None) -> Tensor".parse().unwrap();
        let gradient = one("self", "grad.expand(self_like.size()) * g(other_like)");
        let source = FormulaSource::of_gradient(&schema, &gradient, false).unwrap();
        assert_eq!(source.params, [Named::Grad(0), Named::Like(0), Named::Like(1)]);
        assert!(
            source.text.contains("(grad: Tensor, self_like: Tensor, other_like: Optional[Tensor])"),
            "{}",
            source.text
        );
    }

    /// A registry of operators with these schemas.
    fn registry(schemas: &[&str]) -> Arc<Registry> {
        let mut builder = RegistryBuilder::new();
        builder.add(schemas.iter().map(|schema| OpDef::new(schema)));
        builder.build().unwrap()
    }

    fn entry_of(table: &GradientTable, registry: &Registry, name: &str) -> Option<GradientEntry> {
        table.of(registry, registry.lookup(name).unwrap())
    }

    #[test]
    fn one_expression_gives_several_gradients() {
        let mut table = GradientTable::default();
        let text = "aten::f\n  a, b = both(grad, a, b)\n  c = none\naten::g\n  by h(a)\n";
        table.read(&Gradients::file("x.grads", text)).unwrap();
        let registry = registry(&[
            "aten::f(Tensor a, Tensor[] b, Tensor c) -> Tensor",
            "aten::g(Tensor a) -> (Tensor, Tensor)",
        ]);
        let schema = |name: &str| registry.schema(registry.lookup(name).unwrap());
        let (f, g) = (schema("aten::f"), schema("aten::g"));
        let Some(GradientEntry::Formulas(formulas)) = entry_of(&table, &registry, "aten::f") else {
            panic!()
        };
        assert_eq!(formulas.iter().map(|f| f.args.len()).collect::<Vec<_>>(), [2, 1]);
        let source = FormulaSource::of_gradient(f, &formulas[0], false).unwrap().text;
        assert!(source.contains("-> Tuple[Optional[Tensor], List[Tensor]]:"), "{source}");
        assert_eq!(FormulaSource::of_gradient(f, &formulas[1], false), None);
        assert_eq!(entry_of(&table, &registry, "aten::g"), Some(GradientEntry::Body("h(a)")));
        let source = FormulaSource::of_body(g, "h(a)", false).text;
        assert_eq!(source, "def gradient(a: Tensor) -> Tuple[Tensor, Tensor]:\n    return h(a)\n");
        let both = Gradients::file("x.grads", "aten::k\n  a = grad\n  by h(a)\n");
        assert_eq!(
            table.read(&both).map_err(|e| e.to_string()),
            Err("x.grads:3: `by` must be the only line of an entry".to_owned())
        );
    }

    #[test]
    fn a_formula_becomes_a_function_of_its_names() {
        let schema: FunctionSchema =
            "aten::addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor"
                .parse()
                .unwrap();
        let gradient = one("tensor1", "grad * (tensor2.conj() * value)");
        let source = FormulaSource::of_gradient(&schema, &gradient, false).unwrap();
        assert_eq!(source.params, [Named::Grad(0), Named::Arg(2), Named::Arg(3)]);
        assert_eq!(
            source.text,
            "def gradient(grad: Tensor, tensor2: Tensor, value: float) -> Optional[Tensor]:\n    return grad * (tensor2.conj() * value)\n"
        );
    }

    #[test]
    fn entries_are_parsed_and_found() {
        let mut table = GradientTable::default();
        let text = "# sums\naten::add aten::sub\n  self = grad\naten::add.Scalar\n  other = grad\nconstant aten::argmax\n";
        table.read(&Gradients::file("x.grads", text)).unwrap();
        let registry = registry(&[
            "aten::add.Tensor(Tensor self, Tensor other) -> Tensor",
            "aten::add.Scalar(Tensor self, Tensor other) -> Tensor",
            "aten::sub.Tensor(Tensor self, Tensor other) -> Tensor",
            "aten::sub_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
            "aten::argmax(Tensor self, Tensor other) -> Tensor",
            "aten::argmax_(Tensor(a!) self, Tensor other) -> Tensor(a!)",
            "aten::exp(Tensor self) -> Tensor",
            "aten::turn_(Tensor(a!) self) -> Tensor(a!)",
        ]);
        let add = entry_of(&table, &registry, "aten::add.Tensor");
        assert_eq!(add, Some(GradientEntry::Formulas(vec![one("self", "grad")])));
        assert_eq!(entry_of(&table, &registry, "aten::sub_.Tensor"), add);
        let scalar = entry_of(&table, &registry, "aten::add.Scalar");
        assert_eq!(scalar, Some(GradientEntry::Formulas(vec![one("other", "grad")])));
        assert_eq!(entry_of(&table, &registry, "aten::argmax"), Some(GradientEntry::Constant));
        assert_eq!(entry_of(&table, &registry, "aten::exp"), None);
        let replaced =
            GradientEntry::Formulas(["self", "other"].map(|arg| one(arg, "torch.zeros_like(grad)")).to_vec());
        let overwritten = entry_of(&table, &registry, "aten::argmax_");
        assert_eq!(overwritten, Some(replaced), "the second entry replaces the first");
        let listed = Gradients::file("y.grads", "layout aten::turn_\nconstant aten::argmax\n");
        assert_eq!(table.read(&listed).map_err(|e| e.to_string()), Err("y.grads:2: stated twice".to_owned()));
        assert_eq!(entry_of(&table, &registry, "aten::turn_"), Some(GradientEntry::Layout));
        let twice = Gradients::file("x.grads", "aten::add\n  self = grad\n");
        assert_eq!(table.read(&twice).map_err(|e| e.to_string()), Err("x.grads:1: stated twice".to_owned()));
        let empty = Gradients::file("x.grads", "aten::turn_\naten::exp\n  self = grad\n");
        let expected = Err("x.grads:1: an operator without gradients".to_owned());
        assert_eq!(table.read(&empty).map_err(|e| e.to_string()), expected);
    }
}

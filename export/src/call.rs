//! The interface of a call: structure of arguments and results, and the conditions on the arguments.
//!
//! A program states for each leaf of its arguments a constant or the metadata of a placeholder. Sizes that are numbers
//! must agree; sizes that are expressions bind the symbols, which must be consistent and within their ranges, except
//! for the default lower bound 2, which PyTorch does not enforce. Files since schema 8.14 repeat these conditions as
//! guards, and may add others. dtypes and devices are not conditions.
//!
//! Errors have the texts of the version of PyTorch that wrote the file, which name the argument and the dimension: `Expected input at
//! *args[0].shape[0] to be <= 12, but got 13` in files without guards, else the guard, `Guard failed: x.size()[0] <= 12`.

use std::collections::BTreeMap;

use flambeau_ir::{IValue, Symbol, Type};
use flambeau_tensor::Tensor;

use crate::error::quoted;
use crate::expr::{Bindings, ExprId, Exprs, Guard, Number, PathStep, Solved};
use crate::model::{
    Argument, GraphModel, InputSpec, Map, ModuleCallSignature, OutputSpec, ProgramModel, RangeConstraint,
    SymInt,
};
use crate::tree::{Key, TreeSpec};
use crate::{ExportCode, ExportError};

type Res<T> = Result<T, ExportError>;

/// Lower bounds up to this one are not enforced: an export assumes that sizes are not 0 or 1, and runs for these, too.
const DEFAULT_LOWER_BOUND: i64 = 2;

/// The interface of a program's call.
#[derive(Clone, Debug)]
pub struct CallSpec {
    args: Vec<TreeSpec>,
    /// The parameters that `args` are passed to, if the file names them.
    arg_names: Vec<String>,
    kwargs: Vec<(String, TreeSpec)>,
    output: TreeSpec,
    /// One per leaf of `args` and `kwargs`.
    leaves: Vec<Leaf>,
    exprs: Exprs,
    /// By expression of a size: the range that the file states for its text, a symbol or an expression such as `2*s0`.
    ranges: BTreeMap<ExprId, RangeConstraint>,
    guards: Vec<InputGuard>,
    unread: Vec<String>,
}

/// A leaf of the arguments.
#[derive(Clone, Debug)]
struct Leaf {
    /// Its place: `*args[0]['k']`, or `'name'['k']`.
    path: String,
    /// The name of its placeholder.
    name: String,
    condition: Condition,
}

/// The constraint on a leaf.
#[derive(Clone, Debug)]
enum Condition {
    /// A tensor with these sizes.
    Tensor(Vec<SymInt>),
    /// An integer with this value.
    Int(SymInt),
    /// A value of this type.
    OfType(Type),
    /// This value.
    Constant(IValue),
}

/// A guard with the sources of its terms.
#[derive(Clone, Debug)]
struct InputGuard {
    guard: Guard,
    sources: Vec<(Symbol, usize, Property)>,
}

/// A number that belongs to a leaf.
#[derive(Clone, Copy, Debug)]
enum Property {
    Value,
    Size(i64),
    Stride(i64),
    Offset,
}

/// The structure of the arguments and the result of a call.
#[derive(Clone, Debug)]
pub struct CallTrees {
    /// By positional argument.
    pub args: Vec<TreeSpec>,
    /// By argument that is passed by name.
    pub kwargs: Vec<(String, TreeSpec)>,
    /// That of the result.
    pub output: TreeSpec,
}

impl CallTrees {
    /// Reads the tree specs of a call. `names` are the fields of named tuples ([`GraphModule::namedtuple_fields`](crate::model::GraphModule)).
    ///
    /// # Errors
    /// `E010` for a malformed tree spec.
    pub fn parse(call: &ModuleCallSignature, names: &Map<Vec<String>>) -> Res<CallTrees> {
        let input = TreeSpec::parse(&call.in_spec, names).map_err(|e| e.in_field("in_spec"))?;
        let output = TreeSpec::parse(&call.out_spec, names).map_err(|e| e.in_field("out_spec"))?;
        let (args, kwargs) = parts(&input)?;
        Ok(CallTrees { args, kwargs, output })
    }
}

impl CallSpec {
    /// Reads the interface of a program.
    ///
    /// # Errors
    /// `E010` for a malformed tree spec, or one that does not match the signature.
    pub fn new(model: &ProgramModel) -> Res<CallSpec> {
        let names = &model.module.namedtuple_fields;
        let own = model.module.module_call_graph.first().and_then(|call| call.signature.as_ref());
        let own = own.ok_or_else(|| broken("the program has no tree specs"))?;
        let CallTrees { args, kwargs, output } = CallTrees::parse(own, names)?;
        let mut spec = CallSpec {
            args,
            arg_names: own.forward_arg_names.clone().unwrap_or_default(),
            kwargs,
            output,
            leaves: Vec::new(),
            exprs: model.exprs.clone(),
            ranges: BTreeMap::new(),
            guards: Vec::new(),
            unread: Vec::new(),
        };
        spec.leaves = spec.conditions(model)?;
        spec.ranges = spec.ranges_of_sizes(&model.range_constraints);
        let results = model.module.signature.outputs.iter();
        let results =
            results.filter(|o| matches!(o, OutputSpec::UserOutput { .. } | OutputSpec::LossOutput { .. }));
        let (stated, own) = (spec.output.leaves(), results.count());
        if stated != own {
            return Err(broken(format!("the results have {own} leaves, their tree spec {stated}")));
        }
        for text in &model.guards_code {
            spec.add_guard(text);
        }
        Ok(spec)
    }

    /// Returns the guards of the file that are in no supported form. They are not checked.
    #[must_use]
    pub fn unread_guards(&self) -> &[String] {
        &self.unread
    }

    /// Returns the number of leaves of the arguments.
    #[must_use]
    pub fn leaf_count(&self) -> usize {
        self.leaves.len()
    }

    /// Returns the names of the positional parameters, if the file has them.
    #[must_use]
    pub fn arg_names(&self) -> &[String] {
        &self.arg_names
    }

    /// Returns the structure of each positional argument.
    #[must_use]
    pub fn args(&self) -> &[TreeSpec] {
        &self.args
    }

    /// Returns the structure of each argument that is passed by name.
    #[must_use]
    pub fn kwargs(&self) -> &[(String, TreeSpec)] {
        &self.kwargs
    }

    /// Returns the structure of the result.
    #[must_use]
    pub fn output(&self) -> &TreeSpec {
        &self.output
    }

    /// Returns the type of each leaf of the arguments, and its value if it must be a constant.
    pub fn leaf_types(&self) -> impl Iterator<Item = (Type, Option<&IValue>)> {
        self.leaves.iter().map(|leaf| match &leaf.condition {
            Condition::Tensor(_) => (Type::TENSOR, None),
            Condition::Int(_) => (Type::INT, None),
            Condition::OfType(ty) => (*ty, None),
            Condition::Constant(value) => (value.type_of(), Some(value)),
        })
    }

    /// Returns the names and types of the parameters; the type of one that is no leaf is `Any`.
    pub fn params(&self) -> Vec<(String, Type)> {
        let mut leaves = self.leaf_types();
        let positional = self.args.iter().enumerate().map(|(i, spec)| {
            let name = self.arg_names.get(i).cloned();
            (name.unwrap_or_else(|| format!("args[{i}]")), spec)
        });
        let named = self.kwargs.iter().map(|(name, spec)| (name.clone(), spec));
        let param = |(name, spec): (String, &TreeSpec)| {
            let mut types = leaves.by_ref().take(spec.leaves()).map(|(ty, _)| ty);
            let first = types.next();
            types.for_each(drop);
            (name, first.filter(|_| spec.is_leaf()).unwrap_or(Type::ANY))
        };
        positional.chain(named).map(param).collect()
    }

    fn conditions(&self, model: &ProgramModel) -> Res<Vec<Leaf>> {
        let mut paths = Vec::new();
        for (i, arg) in self.args.iter().enumerate() {
            arg.leaf_paths(&format!("*args[{i}]"), &mut paths);
        }
        for (name, value) in &self.kwargs {
            value.leaf_paths(&format!("'{name}'"), &mut paths);
        }
        let specs = model.module.signature.inputs.iter();
        let conditions: Vec<(String, Condition)> = specs
            .filter_map(|spec| match spec {
                InputSpec::UserInput { arg } => {
                    Some((arg.name().unwrap_or_default().to_owned(), condition(&model.module.graph, arg)))
                }
                InputSpec::ConstantInput { name, value } => {
                    Some((name.clone(), Condition::Constant(constant(value))))
                }
                _ => None,
            })
            .collect();
        if conditions.len() != paths.len() {
            let (own, stated) = (conditions.len(), paths.len());
            return Err(broken(format!("the arguments have {own} leaves, their tree spec {stated}")));
        }
        let leaves = paths.into_iter().zip(conditions);
        Ok(leaves.map(|(path, (name, condition))| Leaf { path, name, condition }).collect())
    }

    /// Returns the ranges of the sizes that are expressions.
    fn ranges_of_sizes(&self, stated: &Map<RangeConstraint>) -> BTreeMap<ExprId, RangeConstraint> {
        let sizes = self.leaves.iter().flat_map(|leaf| match &leaf.condition {
            Condition::Tensor(sizes) => sizes.as_slice(),
            Condition::Int(size) => std::slice::from_ref(size),
            Condition::OfType(_) | Condition::Constant(_) => &[],
        });
        let exprs = sizes.filter_map(|size| match size {
            SymInt::Expr { expr, .. } => Some(*expr),
            SymInt::Int(_) => None,
        });
        exprs.filter_map(|expr| Some((expr, *stated.get(&self.exprs.to_text(expr))?))).collect()
    }

    fn add_guard(&mut self, text: &str) {
        let Ok(guard) = self.exprs.parse_guard(text) else {
            self.unread.push(text.to_owned());
            return;
        };
        let sources: Option<Vec<_>> = guard
            .terms
            .iter()
            .map(|term| {
                let (leaf, property) = self.source(&term.root, &term.path)?;
                Some((term.symbol, leaf, property))
            })
            .collect();
        match sources {
            Some(sources) => self.guards.push(InputGuard { guard, sources }),
            None => self.unread.push(text.to_owned()),
        }
    }

    /// Returns the leaf and the property to which the path of a guard leads.
    fn source(&self, root: &str, path: &[PathStep]) -> Option<(usize, Property)> {
        let (path, property) = match path.split_last() {
            Some((PathStep::Size(dim), path)) => (path, Property::Size(*dim)),
            Some((PathStep::Stride(dim), path)) => (path, Property::Stride(*dim)),
            Some((PathStep::StorageOffset, path)) => (path, Property::Offset),
            _ => (path, Property::Value),
        };
        if root == "flat_args" {
            let [PathStep::Index(leaf)] = path else { return None };
            let leaf = usize::try_from(*leaf).ok().filter(|leaf| *leaf < self.leaves.len())?;
            return Some((leaf, property));
        }
        let mut before = 0;
        let named = self.arg_names.iter().map(String::as_str).zip(&self.args);
        let own_kwargs = self.kwargs.iter().map(|(name, spec)| (name.as_str(), spec));
        // Arguments without names cannot be the root of a path; their leaves come first all the same.
        let unnamed = self.args.iter().skip(self.arg_names.len()).map(|spec| ("", spec));
        for (name, spec) in named.chain(unnamed).chain(own_kwargs) {
            if name == root {
                return Some((before + spec.leaf_at(path)?, property));
            }
            before += spec.leaves();
        }
        None
    }

    /// Returns the leaves of the arguments of a call, in order. A positional parameter may be passed by name.
    ///
    /// # Errors
    /// `E013` if the arguments have another structure.
    pub fn flatten(&self, args: &[IValue], kwargs: &[(&str, IValue)]) -> Res<Vec<IValue>> {
        if args.len() > self.args.len() {
            let (takes, given) = (self.args.len(), args.len());
            return Err(refused(format!(
                "the program takes at most {takes} positional argument{} but {given} were given",
                if takes == 1 { "" } else { "s" }
            )));
        }
        let named = |name: &str| kwargs.iter().position(|(own, _)| *own == name);
        let positional = |name: &str| self.arg_names.iter().position(|own| own == name);
        let is_known =
            |name: &str| positional(name).is_some() || self.kwargs.iter().any(|(own, _)| own == name);
        if let Some((name, _)) = kwargs.iter().find(|(name, _)| !is_known(name)) {
            return Err(refused(format!("the program has no argument {}", quoted(name))));
        }
        let is_repeated = |at: usize, name: &str| {
            named(name) != Some(at) || positional(name).is_some_and(|i| i < args.len())
        };
        if let Some((_, (name, _))) = kwargs.iter().enumerate().find(|(at, (name, _))| is_repeated(*at, name))
        {
            return Err(refused(format!("multiple values are given for the argument {}", quoted(name))));
        }
        let mut leaves = Vec::with_capacity(self.leaves.len());
        for (i, spec) in self.args.iter().enumerate() {
            let by_name = self.arg_names.get(i).and_then(|name| named(name));
            let value = match (args.get(i), by_name) {
                (Some(value), _) => value,
                (None, Some(at)) => &kwargs[at].1,
                (None, None) => {
                    let name = self.arg_names.get(i).map(|name| format!(" ({})", quoted(name)));
                    let name = name.unwrap_or_default();
                    return Err(refused(format!("the argument *args[{i}]{name} is missing")));
                }
            };
            spec.flatten(value, &format!("*args[{i}]"), &mut leaves).map_err(|e| refused(e.to_string()))?;
        }
        for (name, spec) in &self.kwargs {
            let at =
                named(name).ok_or_else(|| refused(format!("the argument {} is missing", quoted(name))))?;
            spec.flatten(&kwargs[at].1, name, &mut leaves).map_err(|e| refused(e.to_string()))?;
        }
        Ok(leaves)
    }

    /// Checks the leaves of a call: kinds, sizes, ranges, constants, guards.
    ///
    /// # Errors
    /// `E013` for the first condition that does not hold.
    pub fn check(&self, leaves: &[IValue]) -> Res<()> {
        // A guard whose terms have no values, because an argument has another kind, is reported after the kinds.
        let mut without_value = None;
        for guard in &self.guards {
            match guard.holds(&self.exprs, leaves) {
                Some(true) => {}
                Some(false) => return Err(guard.failed()),
                None => without_value = without_value.or(Some(guard)),
            }
        }
        let mut bindings = Bindings::new();
        // Sizes with several symbols of which one is unknown are checked when all symbols are known.
        let mut deferred: Vec<(Place<'_>, ExprId, i64)> = Vec::new();
        for (leaf, value) in self.leaves.iter().zip(leaves) {
            match (&leaf.condition, value) {
                (Condition::Tensor(sizes), IValue::Tensor(tensor)) => {
                    self.check_sizes(leaf, sizes, tensor, &mut bindings, &mut deferred)?;
                }
                (Condition::Tensor(_), other) => return Err(not_of_kind(leaf, "a tensor", other)),
                (Condition::Int(size), IValue::Int(n)) => {
                    let place = Place { leaf, dim: None };
                    self.check_size(place, size, *n, &mut bindings, &mut deferred)?;
                }
                (Condition::Int(_), other) => return Err(not_of_kind(leaf, "an int", other)),
                (Condition::OfType(ty), other) if other.type_of() != *ty => {
                    return Err(not_of_kind(leaf, &format!("a {ty}"), other));
                }
                (Condition::Constant(own), other) if !is_same(own, other) => {
                    let (path, own, given) = (&leaf.path, shown(own), shown(other));
                    return Err(refused(format!(
                        "Expected input at {path} to be equal to {own}, but got {given}"
                    )));
                }
                (Condition::OfType(_) | Condition::Constant(_), _) => {}
            }
        }
        for (place, expr, value) in deferred {
            let solved = bindings.relate(&self.exprs, expr, value);
            self.accept(place, expr, value, solved)?;
        }
        without_value.map_or(Ok(()), |guard| Err(guard.failed()))
    }

    fn check_sizes<'s>(
        &'s self,
        leaf: &'s Leaf,
        sizes: &[SymInt],
        tensor: &Tensor,
        bindings: &mut Bindings,
        deferred: &mut Vec<(Place<'s>, ExprId, i64)>,
    ) -> Res<()> {
        if sizes.len() != tensor.rank() {
            let stated: Vec<String> = sizes.iter().map(|size| self.size_text(size)).collect();
            return Err(refused(format!(
                "Unexpected number of dimensions in input at {}.shape (expected torch.Size([{}]), got torch.Size({:?}))",
                leaf.path,
                stated.join(", "),
                tensor.sizes()
            )));
        }
        for (dim, (size, &own)) in sizes.iter().zip(tensor.sizes()).enumerate() {
            if let SymInt::Int(n) = size
                && *n == own
            {
                continue;
            }
            self.check_size(Place { leaf, dim: Some(dim) }, size, own, bindings, deferred)?;
        }
        Ok(())
    }

    fn size_text(&self, size: &SymInt) -> String {
        match size {
            SymInt::Int(n) => n.to_string(),
            SymInt::Expr { expr, .. } => self.exprs.to_text(*expr),
        }
    }

    /// Relates a size or an integer argument to its metadata.
    fn check_size<'s>(
        &'s self,
        place: Place<'s>,
        size: &SymInt,
        own: i64,
        bindings: &mut Bindings,
        deferred: &mut Vec<(Place<'s>, ExprId, i64)>,
    ) -> Res<()> {
        let expr = match size {
            SymInt::Int(n) if *n == own => return Ok(()),
            SymInt::Int(n) => {
                return Err(refused(format!("Expected input at {place} to be equal to {n}, but got {own}")));
            }
            SymInt::Expr { expr, .. } => *expr,
        };
        let solved = bindings.relate(&self.exprs, expr, own);
        if let Ok(Solved::Undetermined) = solved {
            deferred.push((place, expr, own));
            return Ok(());
        }
        self.accept(place, expr, own, solved)?;
        let Some(range) = self.ranges.get(&expr) else { return Ok(()) };
        if let Some(min) = enforced_minimum(range).filter(|min| own < *min) {
            return Err(refused(format!("Expected input at {place} to be >= {min}, but got {own}")));
        }
        if let Some(max) = range.max.filter(|max| own > *max) {
            return Err(refused(format!("Expected input at {place} to be <= {max}, but got {own}")));
        }
        Ok(())
    }

    fn accept(
        &self,
        place: Place<'_>,
        expr: ExprId,
        own: i64,
        solved: Result<Solved, crate::expr::ExprError>,
    ) -> Res<()> {
        match solved {
            Ok(Solved::Bound(_) | Solved::Agrees | Solved::Undetermined) => Ok(()),
            Ok(Solved::Differs(wanted)) => {
                let wanted = number_text(wanted);
                Err(refused(format!("Expected input at {place} to be equal to {wanted}, but got {own}")))
            }
            Ok(Solved::NoSolution(symbol)) => {
                let form = self.exprs.to_text(expr);
                let place = place.of_placeholder();
                Err(refused(format!(
                    "Expected input {place} = {own} to be of the form {form}, where {symbol} is an integer"
                )))
            }
            Err(error) => {
                Err(refused(format!("the size of the input at {place} cannot be checked: {error}")))
            }
        }
    }

    /// Builds the result of a call from the leaves; returns `None` if there are too few.
    pub fn unflatten(&self, leaves: impl IntoIterator<Item = IValue>) -> Option<IValue> {
        self.output.unflatten(&mut leaves.into_iter())
    }
}

impl InputGuard {
    /// Returns whether the guard holds; `None` if a term has no value, or the condition has none, as a remainder by zero.
    fn holds(&self, exprs: &Exprs, leaves: &[IValue]) -> Option<bool> {
        let value_of = |symbol: Symbol| {
            let (_, leaf, property) = self.sources.iter().find(|(own, ..)| *own == symbol)?;
            property.of(leaves.get(*leaf)?)
        };
        match exprs.eval(self.guard.condition, &value_of).ok()? {
            Number::Bool(holds) => Some(holds),
            Number::Int(n) => Some(n != 0),
            _ => None,
        }
    }

    #[cold]
    fn failed(&self) -> ExportError {
        refused(format!("Guard failed: {}", self.guard.text))
    }
}

/// A number of an argument, for messages.
#[derive(Clone, Copy, Debug)]
struct Place<'s> {
    leaf: &'s Leaf,
    /// The dimension, of a size of a tensor.
    dim: Option<usize>,
}

impl Place<'_> {
    /// Returns the place by the name of the placeholder, as PyTorch does for some conditions.
    fn of_placeholder(self) -> String {
        self.under(&self.leaf.name)
    }

    fn under(self, name: &str) -> String {
        match self.dim {
            Some(dim) => format!("{name}.shape[{dim}]"),
            None => name.to_owned(),
        }
    }
}

impl std::fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.under(&self.leaf.path))
    }
}

impl Property {
    fn of(self, value: &IValue) -> Option<Number> {
        let at = |list: &[i64], dim: i64| usize::try_from(dim).ok().and_then(|dim| list.get(dim)).copied();
        Some(match (self, value) {
            (Property::Value, IValue::Int(n)) => Number::Int(*n),
            (Property::Value, IValue::Float(x)) => Number::Float(*x),
            (Property::Value, IValue::Bool(b)) => Number::Bool(*b),
            (Property::Size(dim), IValue::Tensor(t)) => Number::Int(at(t.sizes(), dim)?),
            (Property::Stride(dim), IValue::Tensor(t)) => Number::Int(at(t.strides(), dim)?),
            (Property::Offset, IValue::Tensor(t)) => Number::Int(t.offset()),
            _ => return None,
        })
    }
}

/// Splits the tree spec of the arguments into those by position and those by name.
fn parts(input: &TreeSpec) -> Res<(Vec<TreeSpec>, Vec<(String, TreeSpec)>)> {
    let malformed = || broken("the tree spec of the arguments is not a tuple and a dict");
    let Some([args, kwargs]) = input.as_tuple() else { return Err(malformed()) };
    let args = args.as_tuple().ok_or_else(malformed)?.to_vec();
    let kwargs = kwargs.as_dict().ok_or_else(malformed)?;
    let named = kwargs.map(|(key, spec)| match key {
        Key::Str(name) => Ok((name.clone(), spec.clone())),
        _ => Err(broken("the name of an argument is not a string")),
    });
    Ok((args, named.collect::<Res<_>>()?))
}

/// Returns the lower bound that calls check.
fn enforced_minimum(range: &RangeConstraint) -> Option<i64> {
    range.min.filter(|min| *min > DEFAULT_LOWER_BOUND)
}

/// Returns minimum and maximum of the sizes that calls accept for a symbol, if the program states a range.
pub(crate) fn enforced_range(model: &ProgramModel, expr: ExprId) -> Option<(i64, i64)> {
    let range = model.range_constraints.get(&model.exprs.to_text(expr))?;
    Some((enforced_minimum(range).unwrap_or(0), range.max.unwrap_or(i64::MAX)))
}

fn condition(graph: &GraphModel, arg: &Argument) -> Condition {
    match arg {
        Argument::Tensor(name) => match graph.tensor_values.get(name) {
            Some(meta) => Condition::Tensor(meta.sizes.clone()),
            None => Condition::OfType(Type::TENSOR),
        },
        Argument::SymInt(crate::model::Sym::Name(name)) => match graph.sym_int_values.get(name) {
            Some(size) => Condition::Int(size.clone()),
            None => Condition::OfType(Type::INT),
        },
        Argument::SymFloat(crate::model::Sym::Name(_)) => Condition::OfType(Type::FLOAT),
        Argument::SymBool(crate::model::Sym::Name(_)) => Condition::OfType(Type::BOOL),
        constant_value => Condition::Constant(constant(constant_value)),
    }
}

fn constant(value: &Argument) -> IValue {
    match value {
        Argument::Int(n) => IValue::Int(*n),
        Argument::Float(x) => IValue::Float(*x),
        Argument::Bool(b) => IValue::Bool(*b),
        Argument::String(s) => IValue::str(s),
        _ => IValue::None,
    }
}

/// Compares a constant with an argument: of the same kind and equal.
fn is_same(a: &IValue, b: &IValue) -> bool {
    match (a, b) {
        (IValue::None, IValue::None) => true,
        (IValue::Int(a), IValue::Int(b)) => a == b,
        (IValue::Bool(a), IValue::Bool(b)) => a == b,
        // NaN is the same constant as NaN.
        (IValue::Float(a), IValue::Float(b)) => a == b || (a.is_nan() && b.is_nan()),
        (IValue::Str(a), IValue::Str(b)) => a == b,
        _ => false,
    }
}

fn shown(value: &IValue) -> String {
    match value {
        IValue::None => "None".to_owned(),
        IValue::Int(n) => n.to_string(),
        IValue::Float(x) => crate::expr::python_float(*x),
        IValue::Bool(b) => if *b { "True" } else { "False" }.to_owned(),
        IValue::Str(s) => s.to_text().into_owned(),
        other => format!("a {}", other.type_of()),
    }
}

fn number_text(number: Number) -> String {
    match number {
        Number::Int(n) => n.to_string(),
        Number::Ratio(n, d) => format!("{n}/{d}"),
        Number::Float(x) => crate::expr::python_float(x),
        Number::Bool(b) => if b { "True" } else { "False" }.to_owned(),
    }
}

#[cold]
fn not_of_kind(leaf: &Leaf, kind: &str, found: &IValue) -> ExportError {
    refused(format!("Expected input at {} to be {kind}, but got a {}", leaf.path, found.type_of()))
}

#[cold]
fn refused(message: String) -> ExportError {
    ExportError::new(ExportCode::Call, message)
}

#[cold]
fn broken(message: impl Into<String>) -> ExportError {
    ExportError::new(ExportCode::TreeSpec, message)
}

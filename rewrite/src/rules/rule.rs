//! Rules resolved against a registry: for each rule, all choices of overloads, as patterns over registry rows.
//!
//! An operator name in a rule stands for a family of overloads. Resolution tries every choice of overloads on the left
//! side that accepts the arguments, infers the types of the variables, and selects the overloads of the right side by
//! those types. Each valid choice is an [`Instance`]. A rule without an instance is an error, so a misspelt rule is
//! reported when the rule set is built.

use super::parse::{ConditionArg, Exactness, RuleAst, RuleCondition, RuleExpr, RuleExprId, parse_rules};
use super::vocabulary::{ComputeFn, ConditionFn, TermFact, Vocabulary};
#[cfg(feature = "egraph")]
use crate::egraph::saturate::Matchers;
use crate::facets::{OptInRules, Rules};
use flambeau_ir::schema::Argument;
use flambeau_ir::types::{NoClasses, TypeKind, is_subtype, parse_ir_type};
use flambeau_ir::{Attr, Diagnostic, Fault, IValue, OpId, Registry, Source, Symbol, Type};
use flambeau_tensor::Scalar;
use smallvec::SmallVec;
use std::sync::Arc;

/// A subexpression of an [`Instance`]; operands precede their users.
#[derive(Clone, Debug)]
pub enum Pat {
    /// A variable, by index.
    Var(u16),
    /// A constant of this value as an argument of this type.
    Literal(IValue, Type),
    /// An operator with all its arguments.
    Op(OpId, SmallVec<[u16; 4]>),
    /// A list constructed from elements of this type.
    List(Type, SmallVec<[u16; 4]>),
    /// A computed constant as an argument of this type: function index, argument patterns, type.
    Compute(usize, SmallVec<[u16; 4]>, Type),
}

/// One choice of overloads for a rule: both sides over registry rows, and the types of the variables.
#[derive(Clone, Debug)]
pub struct Instance {
    /// Index of the rule in its set.
    pub rule: usize,
    /// Whether the sides of a law are swapped.
    pub reversed: bool,
    /// The subexpressions of both sides.
    pub pats: Vec<Pat>,
    /// Index of the left side in `pats`.
    pub left: u16,
    /// Index of the right side in `pats`.
    pub right: u16,
    /// Types of the variables.
    pub var_types: Vec<Type>,
    /// The type of the left side according to its operator's schema.
    pub root_type: Type,
}

impl Instance {
    /// Whether the right side is a constant that follows from facts about the operands of the root.
    pub(crate) fn answers_from_facts(&self) -> bool {
        let is_leaf = |&arg: &u16| matches!(self.pats[usize::from(arg)], Pat::Var(_) | Pat::Literal(..));
        let is_flat =
            matches!(&self.pats[usize::from(self.left)], Pat::Op(_, args) if args.iter().all(is_leaf));
        is_flat && matches!(self.pats[usize::from(self.right)], Pat::Compute(..) | Pat::Literal(..))
    }
}

/// A rule of a set.
#[derive(Clone, Debug)]
pub struct Rule {
    /// The qualified name: name of the rule set, `/`, name of the rule.
    pub name: String,
    /// How the sides may differ.
    pub class: Exactness,
    /// The rule as written.
    pub ast: RuleAst,
    conditions: Vec<(ConditionFn, RuleCondition)>,
    functions: Vec<ComputeFn>,
}

impl Rule {
    /// Whether all conditions hold. `root` is the value being rewritten.
    pub fn holds<'f>(&self, var: impl Fn(u16) -> TermFact<'f>, root: TermFact<'f>) -> bool {
        self.conditions.iter().all(|(f, c)| {
            let args: SmallVec<[TermFact<'_>; 4]> = c
                .args
                .iter()
                .map(|a| match a {
                    ConditionArg::Var(v) => var(*v),
                    ConditionArg::Root => root,
                    ConditionArg::Literal(v) => TermFact::Literal(v),
                })
                .collect();
            f(&args).is_some_and(|yes| yes != c.negated)
        })
    }

    /// Computes a constant of the right side; `None` if the function is not defined for the arguments.
    pub(crate) fn compute(&self, function: usize, args: &[TermFact<'_>]) -> Option<IValue> {
        (self.functions[function])(args)
    }
}

/// Rules resolved against a registry.
#[derive(Clone, Debug, Default)]
pub struct RuleSet {
    rules: Vec<Rule>,
    instances: Vec<Instance>,
    /// The left sides of `instances`, compiled for equality saturation.
    pub(crate) matchers: Matchers,
}

/// Placeholder: without equality saturation there are no matchers.
#[cfg(not(feature = "egraph"))]
type Matchers = ();

/// Maximum number of instances of a rule.
const MAX_INSTANCES: usize = 512;

impl RuleSet {
    /// An empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates the set of the rules that operators state in their [`Rules`] facet, in order of registry rows.
    ///
    /// # Errors
    /// Returns all diagnostics of their texts.
    pub fn from_registry(registry: &Registry, vocabulary: &Vocabulary) -> Result<Self, Vec<Diagnostic>> {
        let column = registry.column::<Rules>();
        Self::from_texts(column.iter().map(|(_, rules)| rules), registry, vocabulary)
    }

    /// Creates the set of the rules that apply only if a pipeline names them: the [`OptInRules`] facet, in order of
    /// registry rows.
    ///
    /// # Errors
    /// Returns all diagnostics of their texts.
    pub fn on_request(registry: &Registry, vocabulary: &Vocabulary) -> Result<Self, Vec<Diagnostic>> {
        let column = registry.column::<OptInRules>();
        Self::from_texts(column.iter().map(|(_, rules)| &rules.0), registry, vocabulary)
    }

    fn from_texts<'r>(
        texts: impl Iterator<Item = &'r Rules>,
        registry: &Registry,
        vocabulary: &Vocabulary,
    ) -> Result<Self, Vec<Diagnostic>> {
        let mut set = Self::new();
        let mut errors = Vec::new();
        for rules in texts {
            for (name, text) in rules.texts() {
                errors.extend(
                    set.add(&Source::new(name, text), registry, vocabulary).err().unwrap_or_default(),
                );
            }
        }
        if errors.is_empty() { Ok(set) } else { Err(errors) }
    }

    /// Adds the rules of a text.
    ///
    /// # Errors
    /// Returns all diagnostics of the text; the set is then unchanged.
    pub fn add(
        &mut self,
        source: &Arc<Source>,
        registry: &Registry,
        vocabulary: &Vocabulary,
    ) -> Result<(), Vec<Diagnostic>> {
        let mut errors = Vec::new();
        let mut added = RuleSet::new();
        for ast in parse_rules(source)? {
            if self.rules.iter().any(|r| r.name == ast.name) {
                let text = format!("rule `{}` is defined twice", ast.name);
                errors.push(Diagnostic::new(Fault::Input, "R0002", text).at(ast.at.clone()));
                continue;
            }
            match resolve(ast, self.rules.len() + added.rules.len(), registry, vocabulary) {
                Ok((rule, instances)) => {
                    added.rules.push(rule);
                    added.instances.extend(instances);
                }
                Err(error) => errors.push(*error),
            }
        }
        if errors.is_empty() {
            self.matchers = Matchers::default();
            self.rules.extend(added.rules);
            self.instances.extend(added.instances);
            Ok(())
        } else {
            Err(errors)
        }
    }

    /// Returns the rules, in order.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Returns the instances of all rules.
    pub fn instances(&self) -> &[Instance] {
        &self.instances
    }

    /// Adds the rules of another set, except those whose name exists already.
    pub fn append(&mut self, other: &RuleSet) {
        self.matchers = Matchers::default();
        let mut number = Vec::with_capacity(other.rules.len());
        for rule in &other.rules {
            let fresh = self.rules.iter().all(|r| r.name != rule.name);
            number.push(fresh.then_some(self.rules.len()));
            if fresh {
                self.rules.push(rule.clone());
            }
        }
        let renumbered =
            other.instances.iter().filter_map(|i| Some(Instance { rule: number[i.rule]?, ..i.clone() }));
        self.instances.extend(renumbered);
    }

    /// Returns the set restricted to the rules that satisfy `keep`.
    pub fn filtered(&self, keep: impl Fn(&Rule) -> bool) -> Self {
        let mut number = vec![None; self.rules.len()];
        let mut out = RuleSet::new();
        for (i, rule) in self.rules.iter().enumerate() {
            if keep(rule) {
                number[i] = Some(out.rules.len());
                out.rules.push(rule.clone());
            }
        }
        out.instances = self
            .instances
            .iter()
            .filter_map(|i| Some(Instance { rule: number[i.rule]?, ..i.clone() }))
            .collect();
        out
    }
}

impl Instance {
    /// Whether two subexpressions are equal. The parser bounds their number.
    pub(crate) fn is_same_term(&self, a: u16, b: u16) -> bool {
        let mut stack: SmallVec<[(u16, u16); 8]> = SmallVec::from_slice(&[(a, b)]);
        while let Some((a, b)) = stack.pop() {
            let (left, right) = match (&self.pats[usize::from(a)], &self.pats[usize::from(b)]) {
                (Pat::Var(x), Pat::Var(y)) if x == y => continue,
                (Pat::Literal(x, t), Pat::Literal(y, u)) if t == u && same_constant(x, y) => continue,
                (Pat::Op(x, left), Pat::Op(y, right)) if x == y => (left, right),
                (Pat::List(x, left), Pat::List(y, right)) if x == y => (left, right),
                _ => return false,
            };
            if left.len() != right.len() {
                return false;
            }
            stack.extend(left.iter().copied().zip(right.iter().copied()));
        }
        true
    }
}

/// The subexpressions of the right side, operands before users. Operands of subexpressions that are `known` are left
/// out.
pub(crate) fn right_side(instance: &Instance, known: impl Fn(u16) -> bool) -> Vec<u16> {
    let mut needed = vec![false; instance.pats.len()];
    let mut stack = vec![instance.right];
    while let Some(at) = stack.pop() {
        if !std::mem::replace(&mut needed[usize::from(at)], true) && !known(at) {
            match &instance.pats[usize::from(at)] {
                Pat::Op(_, args) | Pat::List(_, args) | Pat::Compute(_, args, _) => {
                    stack.extend(args.iter().copied())
                }
                Pat::Var(_) | Pat::Literal(..) => {}
            }
        }
    }
    (0..instance.pats.len() as u16).filter(|&i| needed[usize::from(i)]).collect()
}

/// The value that a literal has as an argument of type `formal`; `None` if the literal does not fit that type.
pub(crate) fn literal_for(value: &IValue, formal: Type) -> Option<IValue> {
    let inner = formal.unwrap_optional();
    match (value, inner.kind()) {
        (IValue::None, _) => (formal.may_be_none() || formal.has_vars()).then(|| value.clone()),
        (IValue::Int(i), TypeKind::Float) => Some(IValue::Float(*i as f64)),
        (IValue::Int(_) | IValue::Float(_) | IValue::Bool(_), TypeKind::Number) => Some(value.clone()),
        (IValue::Int(_), TypeKind::Int)
        | (IValue::Float(_), TypeKind::Float)
        | (IValue::Bool(_), TypeKind::Bool) => Some(value.clone()),
        (IValue::Str(_), TypeKind::Str) | (IValue::Device(_), TypeKind::Device) => Some(value.clone()),
        (IValue::List(l), TypeKind::List(elem)) => {
            let items: Option<Vec<IValue>> = l.to_vec().iter().map(|v| literal_for(v, *elem)).collect();
            Some(IValue::list(*elem, items?))
        }
        _ => None,
    }
}

/// Whether a constant of the program matches a literal of a rule.
pub(crate) fn literal_matches(literal: &IValue, constant: &IValue) -> bool {
    match (literal, constant) {
        (IValue::Int(_) | IValue::Float(_), IValue::Int(_) | IValue::Float(_)) => {
            match (literal.as_scalar(), constant.as_scalar()) {
                (Some(Scalar::Int(a)), Some(Scalar::Int(b))) => a == b,
                (Some(Scalar::Float(a)), Some(Scalar::Float(b))) => a.to_bits() == b.to_bits(),
                // `0` means `0.0` and not `-0.0`.
                (Some(Scalar::Int(a)), Some(Scalar::Float(b))) => (a as f64).to_bits() == b.to_bits(),
                _ => false,
            }
        }
        (IValue::List(a), IValue::List(b)) => {
            let (a, b) = (a.to_vec(), b.to_vec());
            a.len() == b.len() && a.iter().zip(&b).all(|(x, y)| literal_matches(x, y))
        }
        _ => same_constant(literal, constant),
    }
}

/// Whether two constants are interchangeable: numbers and strings are compared by bits, shared objects by identity.
pub(crate) fn same_constant(a: &IValue, b: &IValue) -> bool {
    match (a, b) {
        // Lists of numbers and strings are compared by their elements, which contain no lists.
        (IValue::List(x), IValue::List(y)) if !x.ptr_eq(y) => {
            if x.elem_type() != y.elem_type() {
                return false;
            }
            let (x, y) = (x.to_vec(), y.to_vec());
            let same = |(x, y): (&IValue, &IValue)| Attr::Value(x.clone()).same(&Attr::Value(y.clone()));
            x.len() == y.len() && x.iter().zip(&y).all(same)
        }
        _ => Attr::Value(a.clone()).same(&Attr::Value(b.clone())),
    }
}

/// Whether a value of type `actual` is accepted as an argument of type `formal`. A type variable accepts any type.
/// Recursion depth is that of types in schemas.
pub(crate) fn fits(actual: Type, formal: Type) -> bool {
    match formal.kind() {
        TypeKind::Var(_) => return true,
        TypeKind::List(elem) if elem.has_vars() => {
            return actual.list_elem().is_some_and(|actual| fits(actual, *elem));
        }
        _ => {}
    }
    let (actual, formal) = (actual.erase_shapes(), formal.erase_shapes());
    actual == formal || is_subtype(actual, formal, &NoClasses)
}

fn resolve(
    ast: RuleAst,
    number: usize,
    registry: &Registry,
    vocabulary: &Vocabulary,
) -> Result<(Rule, Vec<Instance>), Box<Diagnostic>> {
    let wrong = |at: &flambeau_ir::SourceRange, text: String| {
        Box::new(Diagnostic::new(Fault::Input, "R0003", text).at(at.clone()))
    };
    let mut conditions = Vec::new();
    for c in &ast.conditions {
        let Some((arity, f)) = vocabulary.find_condition(&c.name) else {
            return Err(wrong(&c.at, format!("there is no condition `{}`", c.name)));
        };
        if arity != c.args.len() {
            return Err(wrong(
                &c.at,
                format!("condition `{}` takes {arity} arguments, not {}", c.name, c.args.len()),
            ));
        }
        conditions.push((f, c.clone()));
    }
    let mut functions = Vec::new();
    for e in &ast.exprs {
        if let RuleExpr::Compute { function, args, at } = e {
            let Some((arity, f)) = vocabulary.find_function(function) else {
                return Err(wrong(at, format!("there is no function `@{function}`")));
            };
            if arity != args.len() {
                return Err(wrong(at, format!("`@{function}` takes {arity} arguments, not {}", args.len())));
            }
            functions.push(f);
        }
        if let RuleExpr::Op { name, overload, at, .. } = e
            && candidates(registry, name, overload.as_deref()).is_empty()
        {
            let full = overload.as_ref().map_or_else(|| name.clone(), |o| format!("{name}.{o}"));
            return Err(wrong(at, format!("there is no operator `{full}`")));
        }
    }
    let mut instances = Vec::new();
    let mut why = String::new();
    for reversed in if ast.both_ways { &[false, true][..] } else { &[false][..] } {
        let search = Search { ast: &ast, registry, number, reversed: *reversed };
        search.run(&mut instances, &mut why).map_err(|text| wrong(&ast.at, text))?;
    }
    if instances.is_empty() {
        let text = format!("no overloads make both sides of rule `{}` fit together", ast.name);
        return Err(Box::new((*wrong(&ast.at, text)).note(why)));
    }
    let rule = Rule { name: ast.name.clone(), class: ast.class, conditions, functions, ast };
    Ok((rule, instances))
}

fn candidates(registry: &Registry, name: &str, overload: Option<&str>) -> SmallVec<[OpId; 8]> {
    match overload {
        Some(o) => registry.find(Symbol::new(name), Symbol::new(o)).into_iter().collect(),
        None => registry.overloads(Symbol::new(name)).iter().copied().collect(),
    }
}

/// An argument in schema order: from the rule, or the default.
#[derive(Clone)]
enum ArgSource {
    Expr(RuleExprId),
    Default(IValue),
}

/// The arguments of an operator in a rule, in the order of an overload's schema; `None` if they do not match it.
fn arrange(args: &[(Option<String>, RuleExprId)], formals: &[Argument]) -> Option<Vec<ArgSource>> {
    let mut ordered: Vec<Option<ArgSource>> = vec![None; formals.len()];
    for (i, (name, expr)) in args.iter().enumerate() {
        let slot = match name {
            Some(name) => formals.iter().position(|f| f.name.as_str() == name)?,
            None if formals.get(i)?.kwarg_only => return None,
            None => i,
        };
        if ordered[slot].replace(ArgSource::Expr(*expr)).is_some() {
            return None;
        }
    }
    ordered
        .into_iter()
        .zip(formals)
        .map(|(g, f)| g.or_else(|| f.default.clone().map(ArgSource::Default)))
        .collect()
}

struct Search<'a> {
    ast: &'a RuleAst,
    registry: &'a Registry,
    number: usize,
    reversed: bool,
}

impl Search<'_> {
    fn sides(&self) -> (RuleExprId, RuleExprId) {
        if self.reversed { (self.ast.right, self.ast.left) } else { (self.ast.left, self.ast.right) }
    }

    /// The subexpressions of a side, users before operands.
    fn reach(&self, root: RuleExprId) -> Vec<RuleExprId> {
        let (mut found, mut stack) = (Vec::new(), vec![root]);
        while let Some(e) = stack.pop() {
            found.push(e);
            match &self.ast.exprs[e as usize] {
                RuleExpr::Op { args, .. } => stack.extend(args.iter().rev().map(|a| a.1)),
                RuleExpr::List(items) => stack.extend(items.iter().rev()),
                RuleExpr::Compute { args, .. } => stack.extend(args.iter().rev()),
                RuleExpr::Var(_) | RuleExpr::Literal(_) => {}
            }
        }
        found
    }

    fn run(&self, out: &mut Vec<Instance>, why: &mut String) -> Result<(), String> {
        let (left, right) = self.sides();
        let ops: Vec<RuleExprId> = self
            .reach(left)
            .into_iter()
            .filter(|&e| matches!(self.ast.exprs[e as usize], RuleExpr::Op { .. }))
            .collect();
        let mut bound = Vec::new();
        for v in &self.ast.vars {
            bound.push(match &v.ty {
                None => None,
                Some(text) => Some(named_type(text).ok_or_else(|| format!("`{text}` is not a type"))?),
            });
        }
        // Depth-first search over the choices of overloads, with an explicit stack.
        let mut stack: Vec<(usize, Vec<Option<Type>>, Vec<(RuleExprId, OpId)>)> =
            vec![(0, bound, Vec::new())];
        while let Some((at, bound, chosen)) = stack.pop() {
            if out.len() >= MAX_INSTANCES {
                return Err(format!("more than {MAX_INSTANCES} choices of overloads; name overloads"));
            }
            let Some(&expr) = ops.get(at) else {
                match self.finish(left, right, &bound, &chosen) {
                    Ok(instance) => out.push(instance),
                    Err(text) => *why = text,
                }
                continue;
            };
            let RuleExpr::Op { name, overload, args, .. } = &self.ast.exprs[expr as usize] else { continue };
            // Pushed in reverse, so that instances come in order of registration.
            for &id in candidates(self.registry, name, overload.as_deref()).iter().rev() {
                let mut bound = bound.clone();
                if self.choose(id, args, &mut bound) {
                    let mut chosen = chosen.clone();
                    chosen.push((expr, id));
                    stack.push((at + 1, bound, chosen));
                }
            }
        }
        Ok(())
    }

    /// Whether an overload accepts the arguments. Narrows the types of variables.
    fn choose(&self, id: OpId, args: &[(Option<String>, RuleExprId)], bound: &mut [Option<Type>]) -> bool {
        let schema = self.registry.schema(id);
        if schema.returns.len() != 1 || schema.is_mutable() || schema.vararg {
            return false;
        }
        let Some(ordered) = arrange(args, &schema.args) else { return false };
        ordered.iter().zip(&schema.args).all(|(g, formal)| match g {
            ArgSource::Default(_) => true,
            ArgSource::Expr(e) => self.narrow(*e, formal.ty, bound),
        })
    }

    fn narrow(&self, expr: RuleExprId, formal: Type, bound: &mut [Option<Type>]) -> bool {
        match &self.ast.exprs[expr as usize] {
            RuleExpr::Var(v) => {
                let slot = &mut bound[*v as usize];
                let ty = match *slot {
                    None => Some(formal),
                    Some(known) if fits(known, formal) => Some(known),
                    Some(known) if fits(formal, known) => Some(formal),
                    Some(_) => None,
                };
                if ty.is_some() {
                    *slot = ty;
                }
                ty.is_some()
            }
            RuleExpr::Literal(value) => literal_for(value, formal).is_some(),
            RuleExpr::List(items) => formal
                .unwrap_optional()
                .list_elem()
                .is_some_and(|elem| items.iter().all(|&i| self.narrow(i, elem, bound))),
            // Checked after all overloads are chosen.
            RuleExpr::Op { .. } => true,
            RuleExpr::Compute { .. } => true,
        }
    }

    fn finish(
        &self,
        left: RuleExprId,
        right: RuleExprId,
        bound: &[Option<Type>],
        chosen: &[(RuleExprId, OpId)],
    ) -> Result<Instance, String> {
        let var_types: Vec<Type> = bound.iter().map(|t| t.unwrap_or(Type::ANY)).collect();
        let mut build =
            Build { search: self, pats: Vec::new(), var_types: &var_types, computed: self.first_function() };
        let (l, root_type) = build.expr(left, None, chosen)?;
        let (r, right_type) = build.expr(right, Some(root_type), &[])?;
        if !fits(right_type, root_type) {
            return Err(format!("the left side has type `{root_type}`, the right side `{right_type}`"));
        }
        let pats = build.pats;
        Ok(Instance {
            rule: self.number,
            reversed: self.reversed,
            pats,
            left: l,
            right: r,
            var_types,
            root_type,
        })
    }

    /// For each expression, the number of computed constants before it.
    fn first_function(&self) -> Vec<usize> {
        let mut n = 0;
        let each = |e: &RuleExpr| {
            let here = n;
            n += usize::from(matches!(e, RuleExpr::Compute { .. }));
            here
        };
        self.ast.exprs.iter().map(each).collect()
    }
}

/// Parses a type in a rule.
fn named_type(text: &str) -> Option<Type> {
    let (ty, end) = parse_ir_type(text, 0).ok()?;
    (end == text.len()).then_some(ty)
}

struct Build<'s, 'a> {
    search: &'s Search<'a>,
    pats: Vec<Pat>,
    var_types: &'s [Type],
    computed: Vec<usize>,
}

impl Build<'_, '_> {
    fn push(&mut self, pat: Pat) -> u16 {
        self.pats.push(pat);
        (self.pats.len() - 1) as u16
    }

    /// Builds a subexpression as an argument of type `formal`. `chosen` holds the overloads of the left side; overloads
    /// of other operators are selected by the types of their arguments. The parser bounds the nesting.
    fn expr(
        &mut self,
        expr: RuleExprId,
        formal: Option<Type>,
        chosen: &[(RuleExprId, OpId)],
    ) -> Result<(u16, Type), String> {
        match &self.search.ast.exprs[expr as usize] {
            RuleExpr::Var(v) => {
                let ty = self.var_types[*v as usize];
                Ok((self.push(Pat::Var(*v)), ty))
            }
            RuleExpr::Literal(value) => {
                let ty = formal.unwrap_or_else(|| value.type_of());
                let value = literal_for(value, ty).ok_or_else(|| format!("the literal is not a `{ty}`"))?;
                let own = value.type_of();
                Ok((self.push(Pat::Literal(value, ty)), own))
            }
            RuleExpr::List(items) => {
                let elem = formal.and_then(|f| f.unwrap_optional().list_elem());
                let Some(elem) = elem else { return Err("unexpected list".to_owned()) };
                let mut pats = SmallVec::new();
                for &i in items {
                    let (pat, ty) = self.expr(i, Some(elem), chosen)?;
                    if !fits(ty, elem) {
                        return Err(format!("expected list elements of type `{elem}`, found `{ty}`"));
                    }
                    pats.push(pat);
                }
                Ok((self.push(Pat::List(elem, pats)), Type::list(elem)))
            }
            RuleExpr::Compute { args, .. } => {
                let mut pats = SmallVec::new();
                for &a in args {
                    pats.push(self.expr(a, None, chosen)?.0);
                }
                let ty = formal.ok_or("a computed constant must be an argument")?;
                let function = self.computed[expr as usize];
                Ok((self.push(Pat::Compute(function, pats, ty)), ty))
            }
            RuleExpr::Op { name, overload, args, .. } => {
                if let Some(&(_, id)) = chosen.iter().find(|c| c.0 == expr) {
                    return self.op(id, args, chosen);
                }
                let mut why = format!("no overload of `{name}` accepts the arguments");
                for id in candidates(self.search.registry, name, overload.as_deref()) {
                    let mark = self.pats.len();
                    match self.op(id, args, chosen) {
                        Ok(built) => return Ok(built),
                        Err(text) => {
                            self.pats.truncate(mark);
                            why = text;
                        }
                    }
                }
                Err(why)
            }
        }
    }

    fn op(
        &mut self,
        id: OpId,
        args: &[(Option<String>, RuleExprId)],
        chosen: &[(RuleExprId, OpId)],
    ) -> Result<(u16, Type), String> {
        let registry = self.search.registry;
        let schema = registry.schema(id);
        if schema.returns.len() != 1 || schema.is_mutable() || schema.vararg {
            return Err(format!("`{}` cannot be used in a rule", schema.full_name()));
        }
        let ordered = arrange(args, &schema.args)
            .ok_or_else(|| format!("the arguments do not match the schema of `{}`", schema.full_name()))?;
        let mut pats = SmallVec::new();
        for (g, formal) in ordered.into_iter().zip(&schema.args) {
            pats.push(match g {
                ArgSource::Default(value) => self.push(Pat::Literal(value, formal.ty)),
                ArgSource::Expr(e) => {
                    let (pat, ty) = self.expr(e, Some(formal.ty), chosen)?;
                    if !fits(ty, formal.ty) {
                        return Err(format!(
                            "`{}`: `{}` is a `{}`, not a `{ty}`",
                            schema.full_name(),
                            formal.name,
                            formal.ty
                        ));
                    }
                    pat
                }
            });
        }
        Ok((self.push(Pat::Op(id, pats)), schema.returns[0].ty))
    }
}

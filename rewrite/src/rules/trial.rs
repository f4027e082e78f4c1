//! Randomized testing of rules: the reference evaluator runs both sides on random inputs, and the results are compared
//! according to the rule's class.
//!
//! Inputs are drawn such that conditions are likely to hold: tensors have equal or broadcastable shapes, sizes are
//! small and repeat so that matrix products fit, lists are permutations or shapes. An attempt counts if the conditions
//! hold and the left side runs; then the right side must run and agree. `exact` rules are tried with NaN, infinities
//! and signed zeros, other classes without.
//!
//! No rule may remove an error: if the conditions hold and the left side raises, the right side must raise, too, and for
//! `exact` rules the same class of error with the same message. Some inputs are drawn to fail: tensors whose shapes do
//! not fit, dimensions out of range.
//!
//! Conditions get the same facts as in the engine: types, some of them with partial information. If the conditions hold
//! and the left side runs, the results of shape propagation for the two sides must not contradict each other. If it
//! raises, facts about its value are void, and the engine leaves a window with contradictory facts unchanged.
//!
//! The engine checks that a rewrite changes no sharing of memory ([`super::sharing`]), except for operators that share
//! memory with an operand or copy it. If one is the root of a side, both results must share memory with the same
//! variables.

use super::contradiction::contradiction;
use super::parse::Exactness;
use super::rule::{Instance, Pat, Rule, RuleSet, right_side};
use super::sharing::may_copy;
use super::vocabulary::TermFact;
use flambeau_analysis::{AliasDb, shape};
use flambeau_exec::sample::{ElementDistribution, broadcastable, shape as draw_shape, tensor};
use flambeau_exec::{ExecError, Gen, Host, reference};
use flambeau_ir::types::TypeKind;
use flambeau_ir::{CompilationUnit, Editor, Graph, IValue, Prim, Registry, Type, ValueId};
use flambeau_tensor::{Complex, DType, Tensor, compare};
use std::sync::Arc;

/// Bounds on the number of attempts.
#[derive(Clone, Copy, Debug)]
pub struct TrialLimits {
    /// Maximum number of attempts per instance.
    pub attempts: u64,
    /// An instance passes after this number of attempts that count and as many in which both sides raise.
    pub enough: u64,
    /// Seed of the random numbers.
    pub seed: u64,
}

impl Default for TrialLimits {
    fn default() -> Self {
        TrialLimits { attempts: 600, enough: 24, seed: 1 }
    }
}

/// The result of testing one instance.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The rule.
    pub rule: String,
    /// The operators of both sides, as text.
    pub instance: String,
    /// Number of attempts that counted.
    pub tried: u64,
    /// Number of attempts in which the conditions held and both sides raised.
    pub raised: u64,
    /// The reason why the last rejected attempt did not count.
    pub refused: Option<String>,
    /// The first attempt that failed.
    pub failure: Option<CounterExample>,
}

/// Inputs on which the two sides differ.
#[derive(Clone, Debug)]
pub struct CounterExample {
    /// The names and values of the variables, as text.
    pub inputs: Vec<(String, String)>,
    /// The result of the left side.
    pub left: String,
    /// The result of the right side, or the error that it raises.
    pub right: String,
}

impl std::fmt::Display for CounterExample {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (name, value) in &self.inputs {
            writeln!(f, "%{name} = {value}")?;
        }
        writeln!(f, "left:  {}", self.left)?;
        write!(f, "right: {}", self.right)
    }
}

/// Tests every instance of the rules of a set.
pub fn try_rules(registry: &Arc<Registry>, rules: &RuleSet, effort: TrialLimits) -> Vec<Trial> {
    rules.instances().iter().map(|i| try_instance(registry, rules, i, effort)).collect()
}

/// Tests one instance.
pub fn try_instance(
    registry: &Arc<Registry>,
    rules: &RuleSet,
    instance: &Instance,
    effort: TrialLimits,
) -> Trial {
    let rule = &rules.rules()[instance.rule];
    let mut trial = Trial {
        rule: rule.name.clone(),
        instance: describe(registry, instance),
        tried: 0,
        raised: 0,
        refused: None,
        failure: None,
    };
    for attempt in 0..effort.attempts {
        if trial.tried.min(trial.raised) >= effort.enough {
            break;
        }
        let mut g = Gen::from_seed(effort.seed.wrapping_mul(0x9E37_79B9).wrapping_add(attempt));
        let vars = draw(instance, rule.class, &mut g);
        let types: Vec<Type> = vars.iter().map(|v| forgetting(type_of(v), &mut g)).collect();
        match (Attempt { registry, instance, rule, vars: &vars, types: &types }).verdict() {
            Verdict::Agree => trial.tried += 1,
            Verdict::BothRaise => trial.raised += 1,
            Verdict::Refused(why) => trial.refused = Some(why),
            Verdict::Differ(example) => {
                trial.failure = Some(example);
                break;
            }
        }
    }
    trial
}

/// One evaluation of both sides.
struct Attempt<'t> {
    registry: &'t Arc<Registry>,
    instance: &'t Instance,
    rule: &'t Rule,
    vars: &'t [IValue],
    /// The types of the variables, as far as the conditions know them.
    types: &'t [Type],
}

/// The outcome of an attempt.
enum Verdict {
    Agree,
    BothRaise,
    /// The rule does not apply.
    Refused(String),
    Differ(CounterExample),
}

impl Attempt<'_> {
    fn verdict(&self) -> Verdict {
        let refused = |why: &str| Verdict::Refused(why.to_owned());
        let left = self.run(self.instance.left, &[]);
        let root = match &left {
            Ok(value) => {
                if let Some(example) = self.claims_differ() {
                    return Verdict::Differ(example);
                }
                type_of(value)
            }
            Err(_) => self.claimed(self.instance.left, &[]),
        };
        if !self.rule.holds(|v| self.fact(v), TermFact::Value { ty: root, constant: None }) {
            return match left {
                Ok(_) => refused("a condition does not hold"),
                Err(error) => refused(&error.message),
            };
        }
        let Some(computed) = self.compute() else { return refused("a constant cannot be computed") };
        let right = self.run(self.instance.right, &computed);
        match (&left, &right) {
            (Err(x), Err(y)) if self.same_error(x, y) => Verdict::BothRaise,
            (Ok(x), Ok(y)) if agrees(self.rule.class, x, y) => match self.sharing_differs(x, y) {
                Some((x, y)) => Verdict::Differ(self.example(x, y)),
                None => Verdict::Agree,
            },
            _ => {
                let shown = |side: Result<IValue, ExecError>| {
                    side.map_or_else(|e| format!("error: {}: {}", e.class, e.message), |v| show(&v))
                };
                Verdict::Differ(self.example(shown(left), shown(right)))
            }
        }
    }

    fn run(&self, root: u16, computed: &[(u16, IValue)]) -> Result<IValue, ExecError> {
        let graph = Arc::new(side(self.registry, self.instance, root, self.vars, computed));
        let values = reference::run(&graph, self.vars.to_vec(), &CompilationUnit::new(), &mut Host::quiet())?;
        Ok(values.into_iter().next().unwrap_or_default())
    }

    /// Whether the errors of both sides are the same as far as the rule's class requires.
    fn same_error(&self, left: &ExecError, right: &ExecError) -> bool {
        let line = |e: &ExecError| e.message.lines().next().unwrap_or_default().to_owned();
        self.rule.class != Exactness::Exact || (&left.class, line(left)) == (&right.class, line(right))
    }

    /// The differing variables with which two results share memory, as text. `None` if they do not differ, or if the
    /// engine checks the sharing of both sides' operators.
    fn sharing_differs(&self, left: &IValue, right: &IValue) -> Option<(String, String)> {
        let unchecked = |root: u16| match &self.instance.pats[usize::from(root)] {
            Pat::Op(op, _) => may_copy(self.registry, *op),
            _ => false,
        };
        if !unchecked(self.instance.left) && !unchecked(self.instance.right) {
            return None;
        }
        let shared = |result: &IValue| -> Vec<&str> {
            let shares = |v: &IValue| match (result, v) {
                (IValue::Tensor(a), IValue::Tensor(b)) => a.storage().nbytes() > 0 && a.shares_storage(b),
                _ => false,
            };
            let names = self.rule.ast.vars.iter().map(|v| v.name.as_str());
            names.zip(self.vars).filter(|(_, v)| shares(v)).map(|(name, _)| name).collect()
        };
        let (x, y) = (shared(left), shared(right));
        let text = |names: &[&str]| format!("shares memory with [{}]", names.join(", "));
        (x != y).then(|| (text(&x), text(&y)))
    }

    /// The fact that conditions get for a variable. The elements of a tensor are not known when rules are applied.
    fn fact(&self, v: u16) -> TermFact<'_> {
        let i = usize::from(v);
        TermFact::Value { ty: self.types[i], constant: (!self.vars[i].is_tensor()).then_some(&self.vars[i]) }
    }

    /// The inferred type of a side.
    fn claimed(&self, root: u16, computed: &[(u16, IValue)]) -> Type {
        let graph = side(self.registry, self.instance, root, self.vars, computed);
        let facts = self.vars.iter().zip(self.types).map(|(v, &ty)| match v {
            IValue::Tensor(_) => shape::Fact::of_type(ty),
            _ => shape::Fact::of(v),
        });
        let shapes = shape::Shapes::with_inputs(&graph, &AliasDb::new(&graph), facts.collect());
        let output = graph.outputs().next().expect("invariant: a side has one output");
        shapes.refined_type(&graph, output)
    }

    /// A contradiction between the inferred types of the two sides, for variables that satisfy the conditions.
    fn claims_differ(&self) -> Option<CounterExample> {
        let left = self.claimed(self.instance.left, &[]);
        if !self.rule.holds(|v| self.fact(v), TermFact::Value { ty: left, constant: None }) {
            return None;
        }
        let right = self.claimed(self.instance.right, &self.compute()?);
        let why = contradiction(left, right)?;
        Some(self.example(format!("claimed to be {left}: {why}"), format!("claimed to be {right}")))
    }

    fn example(&self, left: String, right: String) -> CounterExample {
        let names = self.rule.ast.vars.iter().map(|v| v.name.clone());
        let shown = self.vars.iter().zip(self.types).map(|(v, ty)| match v {
            IValue::Tensor(_) => format!("{} known as {ty}", show(v)),
            _ => show(v),
        });
        CounterExample { inputs: names.zip(shown).collect(), left, right }
    }

    /// The computed constants of the right side, by subexpression.
    fn compute(&self) -> Option<Vec<(u16, IValue)>> {
        let mut found = Vec::new();
        for at in right_side(self.instance, |_| false) {
            if let Pat::Compute(function, args, ty) = &self.instance.pats[usize::from(at)] {
                let facts: Option<Vec<TermFact<'_>>> = args
                    .iter()
                    .map(|&a| match &self.instance.pats[usize::from(a)] {
                        Pat::Var(v) => Some(self.fact(*v)),
                        Pat::Literal(value, _) => Some(TermFact::Literal(value)),
                        _ => None,
                    })
                    .collect();
                let value = self.rule.compute(*function, &facts?)?;
                found.push((at, super::rule::literal_for(&value, *ty)?));
            }
        }
        Some(found)
    }
}

/// A tensor type, sometimes with part of its information removed.
fn forgetting(ty: Type, g: &mut Gen<'_>) -> Type {
    let Some(tensor) = ty.as_tensor().filter(|_| g.one_in(4)) else { return ty };
    let mut less = tensor.clone();
    less.strides = None;
    match g.below(3) {
        0 => less.dtype = None,
        1 => less.sizes = None,
        _ => (less.dtype, less.sizes) = (None, None),
    }
    Type::tensor(less)
}

/// Builds a graph that computes one side from the variables.
fn side(
    registry: &Arc<Registry>,
    instance: &Instance,
    root: u16,
    vars: &[IValue],
    computed: &[(u16, IValue)],
) -> Graph {
    let mut graph = Graph::new(Arc::clone(registry));
    let mut editor = graph.edit();
    let inputs: Vec<ValueId> = vars.iter().map(|v| editor.add_input(v.type_of())).collect();
    let mut values: Vec<Option<ValueId>> = vec![None; instance.pats.len()];
    let mut stack = vec![(root, false)];
    while let Some((at, ready)) = stack.pop() {
        let slot = usize::from(at);
        if values[slot].is_some() {
            continue;
        }
        let args: &[u16] = match &instance.pats[slot] {
            Pat::Op(_, args) | Pat::List(_, args) => args,
            Pat::Var(_) | Pat::Literal(..) | Pat::Compute(..) => &[],
        };
        if !ready && !args.is_empty() {
            stack.push((at, true));
            stack.extend(args.iter().map(|&a| (a, false)));
            continue;
        }
        let operands: Vec<ValueId> = args.iter().filter_map(|&a| values[usize::from(a)]).collect();
        values[slot] = Some(match &instance.pats[slot] {
            Pat::Var(v) => inputs[usize::from(*v)],
            Pat::Literal(value, ty) => constant(&mut editor, value, *ty),
            Pat::Compute(_, _, ty) => {
                let value = computed.iter().find(|c| c.0 == at).map(|c| c.1.clone()).unwrap_or_default();
                constant(&mut editor, &value, *ty)
            }
            Pat::Op(op, _) => editor.value(*op, &operands, registry.schema(*op).returns[0].ty),
            Pat::List(elem, _) => editor.value(Prim::ListConstruct, &operands, Type::list(*elem)),
        });
    }
    let value = values[usize::from(root)].expect("invariant: the root was built last");
    editor.add_output(value);
    graph
}

fn constant(editor: &mut Editor<'_>, value: &IValue, formal: Type) -> ValueId {
    if let (IValue::List(list), Some(elem)) = (value, formal.unwrap_optional().list_elem()) {
        let items: Vec<ValueId> = list.to_vec().iter().map(|v| constant(editor, v, elem)).collect();
        return editor.value(Prim::ListConstruct, &items, Type::list(elem));
    }
    editor.constant(value.clone())
}

/// The type of a value, with the complete information about a tensor.
fn type_of(value: &IValue) -> Type {
    match value {
        IValue::Tensor(tensor) => {
            let requires_grad = Some(tensor.requires_grad());
            let fact = shape::TensorFact { requires_grad, ..shape::TensorFact::of(tensor) };
            shape::Fact::Tensor(fact).refine(Type::TENSOR)
        }
        _ => value.type_of(),
    }
}

/// Draws random values for the variables.
fn draw(instance: &Instance, class: Exactness, g: &mut Gen<'_>) -> Vec<IValue> {
    const DTYPES: [DType; 8] =
        [DType::F32, DType::F32, DType::F64, DType::C128, DType::I64, DType::I32, DType::U8, DType::Bool];
    let dtype = *g.pick(&DTYPES);
    let mixed = g.one_in(4);
    let full = match g.below(4) {
        0 => vec![2, 2],
        1 => vec![3, 3],
        _ => draw_shape(g, 0, 3),
    };
    let rank = full.len();
    let alike = g.below(3) > 0;
    let elements =
        ElementDistribution { special: class == Exactness::Exact, ..ElementDistribution::default() };
    let one = |ty: Type, g: &mut Gen<'_>| -> IValue { draw_one(ty, &full, rank, g) };
    instance
        .var_types
        .iter()
        .map(|&ty| {
            if ty.unwrap_optional().is_tensor() {
                let sizes = match g.one_in(6) {
                    true => draw_shape(g, 0, 3),
                    false if alike => full.clone(),
                    false => broadcastable(g, &full),
                };
                let dtype = if mixed { *g.pick(&DTYPES) } else { dtype };
                return IValue::Tensor(tensor(g, &sizes, dtype, &elements));
            }
            one(ty, g)
        })
        .collect()
}

fn draw_one(ty: Type, full: &[i64], rank: usize, g: &mut Gen<'_>) -> IValue {
    let dim = rank.max(1) as i64;
    match ty.kind() {
        TypeKind::Int => IValue::Int(g.int(-dim, dim)),
        TypeKind::Float => IValue::Float(*g.pick(&[-1.5, -1.0, 0.0, 0.5, 1.0, 2.0, 3.0])),
        TypeKind::Bool => IValue::Bool(g.flag()),
        TypeKind::Complex => {
            let part = |g: &mut Gen<'_>| *g.pick(&[-1.5, 0.0, 0.5, 2.0]);
            IValue::complex(Complex::new(part(g), part(g)))
        }
        TypeKind::Var(_) if g.flag() => IValue::None,
        TypeKind::Number | TypeKind::Any | TypeKind::Var(_) => {
            if g.flag() {
                IValue::Int(g.int(-3, 4))
            } else {
                IValue::Float(*g.pick(&[-2.0, -1.0, 0.25, 0.5, 1.5, 2.0, 3.0]))
            }
        }
        TypeKind::List(elem) if *elem == Type::INT => IValue::ints(draw_ints(full, rank, g)),
        TypeKind::List(elem) => {
            let n = g.below(3) + 1;
            IValue::list(*elem, (0..n).map(|_| draw_leaf(*elem, g)).collect())
        }
        TypeKind::Optional(inner) if g.one_in(3) => draw_leaf(*inner, g),
        TypeKind::Str => IValue::str("a"),
        _ => IValue::None,
    }
}

fn draw_leaf(ty: Type, g: &mut Gen<'_>) -> IValue {
    match ty.kind() {
        TypeKind::Int => IValue::Int(g.int(-2, 3)),
        TypeKind::Float | TypeKind::Number => IValue::Float(*g.pick(&[-1.0, 0.5, 2.0])),
        TypeKind::Bool => IValue::Bool(g.flag()),
        _ => IValue::None,
    }
}

/// Integers that are meaningful for views: a permutation of the dimensions, or other sizes with the same number of
/// elements.
fn draw_ints(full: &[i64], rank: usize, g: &mut Gen<'_>) -> Vec<i64> {
    match g.below(4) {
        0 | 1 => {
            let mut order: Vec<i64> = (0..rank as i64).collect();
            for i in (1..order.len()).rev() {
                order.swap(i, g.below(i + 1));
            }
            if g.one_in(3) {
                order.iter_mut().for_each(|d| *d -= rank as i64);
            }
            order
        }
        2 => full.to_vec(),
        _ => {
            let count: i64 = full.iter().product();
            if g.flag() || count == 0 {
                return vec![count];
            }
            let divisors: Vec<i64> = (1..=count).filter(|d| count % d == 0).collect();
            let d = *g.pick(&divisors);
            vec![d, if g.flag() { -1 } else { count / d }]
        }
    }
}

fn agrees(class: Exactness, left: &IValue, right: &IValue) -> bool {
    match (left, right) {
        (IValue::Tensor(a), IValue::Tensor(b)) => {
            a.dtype() == b.dtype() && a.sizes() == b.sizes() && same(class, a, b)
        }
        (IValue::Float(a), IValue::Float(b)) if class != Exactness::Exact => {
            (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1.0)
        }
        (IValue::Float(a), IValue::Float(b)) => a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan(),
        _ if class == Exactness::ShapeOnly => left.type_of() == right.type_of(),
        _ => left.equals(right).unwrap_or(false),
    }
}

fn same(class: Exactness, a: &Tensor, b: &Tensor) -> bool {
    let tolerance = match a.dtype() {
        DType::F64 | DType::C128 => 1e-10,
        DType::F32 | DType::C64 => 1e-4,
        _ => 2e-2,
    };
    let verdict = match class {
        Exactness::Exact => compare::equal_nan(a, b).and_then(|equal| Ok(equal && signs_agree(a, b)?)),
        Exactness::Rounding | Exactness::Finite => compare::close(a, b, tolerance, tolerance),
        Exactness::ShapeOnly => Ok(true),
    };
    verdict.unwrap_or(false)
}

/// Whether zeros have equal signs.
fn signs_agree(a: &Tensor, b: &Tensor) -> flambeau_tensor::Result<bool> {
    let agree = |x: f64, y: f64| x.is_nan() || x.is_sign_negative() == y.is_sign_negative();
    let (x, y) = (a.to_scalars()?, b.to_scalars()?);
    Ok(x.iter().zip(&y).all(|(p, q)| {
        let (p, q) = (p.to_complex(), q.to_complex());
        agree(p.re, q.re) && agree(p.im, q.im)
    }))
}

fn show(value: &IValue) -> String {
    match value {
        IValue::Tensor(t) => {
            let elements: Vec<String> = t.to_scalars().map_or_else(
                |_| Vec::new(),
                |v| v.iter().take(64).map(|s| format!("{}", s.to_f64())).collect(),
            );
            format!("{:?}{:?} strides {:?} [{}]", t.dtype(), t.sizes(), t.strides(), elements.join(", "))
        }
        other => format!("{other:?}"),
    }
}

fn describe(registry: &Registry, instance: &Instance) -> String {
    let names: Vec<String> = instance
        .pats
        .iter()
        .filter_map(|p| match p {
            Pat::Op(op, _) => Some(registry.schema(*op).full_name()),
            _ => None,
        })
        .collect();
    names.join(" ")
}

//! Entries under [`Execution::Profiling`]: every call has the results of the reference evaluator, whether it is
//! profiled, runs a plan, or bails out of one.

use flambeau::{Entry, Execution, IValue, Session, Tensor};

/// The entry `f` of a source under two modes of execution.
struct Both {
    reference: Entry,
    profiling: Entry,
}

impl Both {
    fn new(source: &str) -> Both {
        let entry = |execution| {
            let session = Session::standard().expect("consistent").with_execution(execution);
            let session = session.with_compilation(flambeau::Compilation::Synchronous);
            let program = session.compile_source(source, "test.py").unwrap_or_else(|e| panic!("{e}"));
            program.entry("f").expect("there")
        };
        Both { reference: entry(Execution::Reference), profiling: entry(Execution::Profiling) }
    }

    /// Calls both on copies of the arguments and compares results, errors and the arguments afterwards.
    #[track_caller]
    fn call(&self, args: &[IValue]) -> Result<IValue, String> {
        let [wanted, got] = [&self.reference, &self.profiling].map(|entry| {
            let args: Vec<IValue> = args.iter().map(copy).collect();
            // The traceback of an error in a fused group also names the group.
            let last = |text: String| text.lines().last().unwrap_or_default().to_owned();
            let result = entry.call(&args, &[]).map_err(|e| last(e.to_string()));
            (format!("{:?}", result.as_ref().map(text)), args.iter().map(text).collect::<Vec<_>>(), result)
        });
        assert_eq!(wanted.0, got.0, "results");
        assert_eq!(wanted.1, got.1, "arguments after the call");
        got.2
    }

    /// The types of the inputs of all plans.
    fn preconditions(&self) -> Vec<Vec<String>> {
        let plans = self.profiling.plans();
        plans
            .iter()
            .map(|plan| plan.graph().inputs().map(|v| plan.graph().ty(v).to_string()).collect())
            .collect()
    }

    /// The failures of all bail-outs of all plans.
    fn failures(&self) -> Vec<Vec<u32>> {
        let plans = self.profiling.plans();
        plans.iter().map(|plan| plan.code().bailouts().map(|b| b.failures).collect()).collect()
    }
}

fn copy(value: &IValue) -> IValue {
    match value {
        IValue::Tensor(t) => IValue::Tensor(t.clone_data().expect("small")),
        other => other.clone(),
    }
}

fn text(value: &IValue) -> String {
    match value {
        IValue::Tensor(t) => {
            let values = t
                .contiguous()
                .expect("small")
                .to_vec::<f32>()
                .map_or_else(|e| e.to_string(), |v| format!("{v:?}"));
            format!("{:?}{:?}{:?}{values}", t.dtype(), t.sizes(), t.strides())
        }
        IValue::Tuple(items) => items.items().iter().map(text).collect::<Vec<_>>().join(";"),
        other => format!("{other:?}"),
    }
}

fn tensor(sizes: &[i64]) -> IValue {
    let n = sizes.iter().product::<i64>();
    let values = (0..n).map(|i| (i * 7 % 11) as f32 - 4.0).collect();
    IValue::Tensor(Tensor::from_vec(values, sizes).expect("sizes match"))
}

fn row(values: &[f32]) -> IValue {
    IValue::Tensor(Tensor::from_vec(values.to_vec(), &[values.len() as i64]).expect("sizes match"))
}

const SIZES: &str = "
def f(x, y):
    n = x.size(0)
    z = torch.relu(x + y) * n
    if z.dim() == 2:
        z = z + x.size(1)
    return z
";

#[test]
fn the_third_call_runs_a_plan() {
    let both = Both::new(SIZES);
    for _ in 0..2 {
        assert!(both.preconditions().is_empty());
        both.call(&[tensor(&[2, 3]), tensor(&[2, 3])]).unwrap();
    }
    let known = "Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu)";
    assert_eq!(both.preconditions(), [[known, known]]);
    for _ in 0..3 {
        both.call(&[tensor(&[2, 3]), tensor(&[2, 3])]).unwrap();
    }
    let plan = &both.profiling.plans()[0];
    let text = plan.graph().to_string();
    assert!(plan.code().bailouts().len() == 0, "every guard follows from the arguments:\n{text}");
    for gone in ["aten::size", "aten::dim", "prim::If", "prim::profile"] {
        assert!(!text.contains(gone), "`{gone}` is known:\n{text}");
    }
}

#[test]
fn a_changed_size_becomes_a_symbol() {
    let both = Both::new(SIZES);
    for n in [2, 2, 5, 6, 7] {
        both.call(&[tensor(&[n, 3]), tensor(&[n, 3])]).unwrap();
    }
    let plans = both.profiling.plans();
    assert_eq!(plans.len(), 2, "{:?}", both.preconditions());
    let sizes = |plan: usize, input: usize| {
        let graph = plans[plan].graph();
        let ty = graph.ty(graph.inputs().nth(input).unwrap()).as_tensor().unwrap();
        ty.sizes.clone().unwrap()
    };
    assert_eq!(sizes(0, 0)[0].known(), Some(2), "the special plan comes first");
    assert_eq!(sizes(1, 0)[0].known(), None);
    assert_eq!(sizes(1, 0), sizes(1, 1), "equal sizes share a symbol");
    // Broadcasting is not an equality, so this call fits no plan.
    both.call(&[tensor(&[4, 3]), tensor(&[1, 3])]).unwrap();
    both.call(&[tensor(&[4, 3]), tensor(&[2, 3])]).unwrap_err();
}

#[test]
fn other_kinds_have_their_own_plans() {
    let both = Both::new(SIZES);
    for _ in 0..3 {
        both.call(&[tensor(&[2, 3]), tensor(&[2, 3])]).unwrap();
        both.call(&[tensor(&[4]), tensor(&[4])]).unwrap();
    }
    assert_eq!(both.preconditions().len(), 2);
}

const SELECTED: &str = "
def f(x, n: int):
    y = x[x > 0]
    s = torch.relu(x)
    for i in range(n):
        s.add_(i)
        y = (y * 2)[y < 5 + i]
        s = s + y.size(0)
    return s, y
";

#[test]
fn a_failed_guard_continues_in_the_middle() {
    let both = Both::new(SELECTED);
    let args = |values: &[f32], n| [row(values), IValue::Int(n)];
    for _ in 0..3 {
        both.call(&args(&[1.0, -2.0, 3.0, 9.0], 3)).unwrap();
    }
    assert!(
        !both.failures().is_empty() && !both.failures()[0].is_empty(),
        "{:?}",
        both.profiling.plans()[0].graph().to_string()
    );
    assert!(both.failures()[0].iter().all(|&n| n == 0), "{:?}", both.failures());
    // Other values: other numbers of selected elements at several places.
    both.call(&args(&[1.0, 2.0, 3.0, 9.0], 3)).unwrap();
    assert_eq!(both.failures()[0].iter().sum::<u32>(), 1, "{:?}", both.failures());
    for values in [[-1.0, -2.0, -3.0, -4.0], [4.0, -2.0, 3.0, 9.0], [1.0, -2.0, 4.0, 8.0]] {
        for n in 0..5 {
            both.call(&args(&values, n)).unwrap();
        }
    }
}

#[test]
fn guards_that_fail_often_are_dropped() {
    let both = Both::new(SELECTED);
    let args = |k: usize| {
        let values: Vec<f32> = (0..8).map(|i| if i < k { 1.0 } else { -1.0 }).collect();
        [row(&values), IValue::Int(2)]
    };
    for _ in 0..3 {
        both.call(&args(3)).unwrap();
    }
    let guards = both.failures()[0].len();
    for k in 0..30 {
        both.call(&args(k % 8)).unwrap();
    }
    assert!(both.failures()[0].len() < guards, "{:?}", both.failures());
    assert!(both.failures()[0].iter().all(|&n| n < 3), "{:?}", both.failures());
}

#[test]
fn every_guard_may_fail() {
    let both = Both::new(SELECTED);
    let args = [row(&[1.0, -2.0, 3.0, 9.0]), IValue::Int(3)];
    for _ in 0..2 {
        both.call(&args).unwrap();
    }
    let plan = both.profiling.plans().remove(0);
    assert!(plan.code().bailouts().len() >= 2, "{}", plan.graph());
    for position in 0..plan.code().bailouts().len() {
        for period in 1..3 {
            plan.code().force_bailout(position, period);
            both.call(&args).unwrap();
            plan.code().force_bailout(position, 0);
        }
    }
}

#[test]
fn optionals_are_refined() {
    let both = Both::new(
        "
def f(x, bias: Optional[Tensor], scale: Optional[float]):
    if bias is not None:
        x = x + bias
    if scale is not None:
        x = x * scale
    return x
",
    );
    for _ in 0..3 {
        both.call(&[tensor(&[3]), tensor(&[3]), IValue::None]).unwrap();
        both.call(&[tensor(&[3]), IValue::None, IValue::Float(2.0)]).unwrap();
    }
    let plans = both.profiling.plans();
    assert_eq!(plans.len(), 2);
    for plan in plans {
        assert!(!plan.graph().to_string().contains("prim::If"), "{}", plan.graph());
    }
}

#[test]
fn unions_and_any_are_refined_to_what_occurs() {
    let both = Both::new(
        "def f(a: Union[int, float, str], b: Any) -> float:
    r = 0.0
    if isinstance(a, int):
        r = float(a) + 1.0
    elif isinstance(a, str):
        r = float(len(a)) - 0.5
    else:
        r = a * 2.0
    if isinstance(b, Tensor):
        r = r + float(b.sum())
    elif isinstance(b, List[int]):
        r = r + float(len(b))
    return r
",
    );
    let list = IValue::List(flambeau::ir::value::List::from_items(
        flambeau::ir::Type::INT,
        flambeau::ir::value::ListItems::Ints(vec![1, 2, 3]),
    ));
    let firsts = [IValue::Int(3), IValue::from("four"), IValue::Float(0.5)];
    let seconds = [tensor(&[3]), list, IValue::None];
    for second in &seconds {
        for first in &firsts {
            for _ in 0..4 {
                both.call(&[first.clone(), second.clone()]).expect("runs");
            }
        }
    }
    let preconditions = both.preconditions();
    for (first, second) in [("int", "Float(3"), ("str", "Float(3"), ("float", "Any")] {
        let is_there = |types: &Vec<String>| types[0] == first && types[1].starts_with(second);
        assert!(preconditions.iter().any(is_there), "{first}, {second}: {preconditions:?}");
    }
    let plans = both.profiling.plans();
    let is_refined = |graph: &flambeau::Graph| graph.inputs().all(|v| graph.ty(v).to_string() != "Any");
    let refined: Vec<_> = plans.iter().filter(|plan| is_refined(plan.graph())).collect();
    assert_eq!(refined.len(), 3, "one for each type of the first argument");
    for plan in refined {
        assert!(!plan.graph().to_string().contains("isinstance"), "{}", plan.graph());
    }
}

#[test]
fn inputs_that_are_written_and_resized() {
    let both = Both::new(
        "
def f(x, y):
    x.add_(1)
    x.resize_(2)
    z = x + y
    y.mul_(2)
    return z + x.size(0)
",
    );
    for sizes in [3, 3, 3, 4, 5, 6] {
        both.call(&[tensor(&[sizes]), tensor(&[2])]).unwrap();
        both.call(&[tensor(&[sizes]), tensor(&[1])]).unwrap();
    }
}

#[test]
fn errors_have_the_same_place() {
    let both = Both::new(
        "
def g(y, k: int):
    if k > 2:
        raise ValueError('too many')
    return y[y > k]

def f(x, n: int):
    y = x
    for i in range(n):
        y = g(y, i)
    return y
",
    );
    for _ in 0..3 {
        both.call(&[row(&[1.0, 2.0, 3.0]), IValue::Int(2)]).unwrap();
    }
    let args = [row(&[1.0, 2.0, 3.0, 4.0]), IValue::Int(4)];
    both.call(&args).unwrap_err();
    let [wanted, got] = [&both.reference, &both.profiling].map(|e| e.call(&args, &[]).unwrap_err());
    let places = |e: &flambeau::Error| e.trace.iter().map(|t| format!("{t:?}")).collect::<Vec<_>>();
    assert!(!wanted.trace.is_empty());
    assert_eq!(places(&wanted).last(), places(&got).last());
}

#[test]
fn branches_and_trip_counts_are_profiled() {
    let source = "
def f(x, n: int, m: int):
    y = x
    for i in range(n):
        for j in range(3):
            y = y + x
        if i >= 0:
            y = y * 2.0
        else:
            y = y - x
        if i == m:
            y = y + 1.0
    return y
";
    let both = Both::new(source);
    for n in [4, 5, 5] {
        both.call(&[tensor(&[2]), IValue::Int(n), IValue::Int(1)]).expect("runs");
    }
    let profiles = both.profiling.profiles();
    let [profile] = profiles.as_slice() else { panic!("{} profiles", profiles.len()) };
    let text = profile.to_string();
    let lines = |part: &str| text.lines().filter(|line| line.contains(part)).count();
    assert_eq!(lines("prim::Loop"), 2, "{text}");
    assert_eq!(lines("prim::Loop[trip_count=3]"), 1, "only the inner loop:\n{text}");
    assert_eq!((lines("prim::If["), lines("prim::If[taken=0]")), (1, 1), "{text}");
    assert_eq!(lines("prim::profile[index=0]()"), 0, "counters are removed:\n{text}");
}

#[cfg(feature = "archive")]
#[test]
fn attributes_of_modules_are_part_of_the_precondition() {
    let archive = include_bytes!("../../../archive/tests/data/nested.pt");
    let run = |execution| {
        let session = Session::standard().expect("consistent").with_execution(execution);
        let session = session.with_compilation(flambeau::Compilation::Synchronous);
        let program = session.load_archive_bytes(archive).expect("loads");
        let entry = program.entry("forward").expect("there");
        let weight = || {
            let module = program.module().expect("a module");
            let named = module.named_parameters();
            named.into_iter().find(|(name, _)| name == "a.lin.weight").expect("there").1
        };
        let mut results = Vec::new();
        let mut call = || {
            // Calls that record gradients are not specialized.
            let mut host = session.host();
            host.set_grad_enabled(false);
            let result = entry.call_on(&[tensor(&[3, 2])], &[], &mut host).map(|value| text(&value));
            results.push(result.map_err(|e| e.message));
        };
        (0..4).for_each(|_| call());
        // The same attribute with other metadata: the plan does not fit, and a later one does.
        weight().set_requires_grad(false);
        (0..4).for_each(|_| call());
        (results, entry)
    };
    let (wanted, _) = run(Execution::Reference);
    let (got, entry) = run(Execution::Profiling);
    assert_eq!(got, wanted);
    let plans = entry.plans();
    assert!(!plans.is_empty());
    for plan in plans {
        let graph = plan.graph();
        assert!(graph.inputs().len() > 2, "weights are inputs:\n{graph}");
        assert_eq!(plan.code().bailouts().len(), 0, "no guard of a weight is left:\n{graph}");
    }
}

/// Plans know sizes that were observed. Sizes outside of the ranges that the function states are refused before and after
/// plans exist.
#[test]
fn stated_ranges_of_sizes_are_checked_beside_plans() {
    let text = "graph(%x : Tensor(SS(-2))) where SS(-2) in [4, 64]:
  %y : Tensor = aten::neg(%x)
  return (%y)
";
    let session = Session::standard().expect("consistent").with_execution(Execution::Profiling);
    let session = session.with_compilation(flambeau::Compilation::Synchronous);
    let program = session.parse_ir(text).unwrap_or_else(|e| panic!("{e}"));
    let entry = program.entry("forward").expect("there");
    let call = |size: usize| {
        let x = Tensor::from_vec(vec![1.0f32; size], &[size as i64]).expect("small");
        entry.call(&[IValue::Tensor(x)], &[])
    };
    for size in [4, 8, 16, 32] {
        call(size).unwrap_or_else(|e| panic!("{e}"));
    }
    assert!(!entry.plans().is_empty());
    let refused = call(100).expect_err("the size is out of range");
    assert!(refused.message.contains("in [4, 64]"), "{refused}");
}

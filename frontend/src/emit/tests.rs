//! Tests of the emitter: sources and their expected graphs.

use std::sync::Arc;

use flambeau_ir::verify::verify;
use flambeau_ir::{
    CompilationUnit, Diagnostic, Fault, ImplicitConversion, OpDef, Registry, RegistryBuilder, Source, Symbol,
};

use super::{CompileSession, NativeResolver, SourceFile};
use crate::FrontendLimits;

/// Operators for small programs, in the order that determines overload precedence.
const OPS: [&str; 42] = [
    "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    "aten::add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
    "aten::add.t(t[] a, t[] b) -> t[]",
    "aten::add.str(str a, str b) -> str",
    "aten::add.int(int a, int b) -> int",
    "aten::add.float(float a, float b) -> float",
    "aten::sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    "aten::sub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
    "aten::sub.int(int a, int b) -> int",
    "aten::mul.Tensor(Tensor self, Tensor other) -> Tensor",
    "aten::mul.Scalar(Tensor self, Scalar other) -> Tensor",
    "aten::mul.int(int a, int b) -> int",
    "aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)",
    "aten::add_.Scalar(Tensor(a!) self, Scalar other, Scalar alpha=1) -> Tensor(a!)",
    "aten::add_.t(t[](a!) self, t[] b) -> t[]",
    "aten::neg(Tensor self) -> Tensor",
    "aten::relu(Tensor self) -> Tensor",
    "aten::lt.int(int a, int b) -> bool",
    "aten::gt.int(int a, int b) -> bool",
    "aten::eq.int(int a, int b) -> bool",
    "aten::eq.str(str a, str b) -> bool",
    "aten::remainder.int(int a, int b) -> int",
    "aten::__and__.bool(bool a, bool b) -> bool",
    "aten::__not__(bool self) -> bool",
    "aten::__is__(t1 self, t2 obj) -> bool",
    "aten::__isnot__(t1 self, t2 obj) -> bool",
    "aten::Bool.Tensor(Tensor a) -> bool",
    "aten::Bool.int(int a) -> bool",
    "aten::Int.Scalar(Scalar a) -> int",
    "aten::str(t elem) -> str",
    "aten::len.t(t[] a) -> int",
    "aten::len.str(str s) -> int",
    "aten::append.t(t[](a!) self, t(c -> *) el) -> t[](a!)",
    "aten::__getitem__.t(t[](a) list, int idx) -> t(*)",
    "aten::_set_item.t(t[](a!) l, int idx, t(b -> *) el) -> t[](a!)",
    "aten::__range_length(int lo, int hi, int step) -> int",
    "aten::__derive_index(int index, int start, int step) -> int",
    "aten::select.int(Tensor(a) self, int dim, int index) -> Tensor(a)",
    "aten::slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor(a)",
    "aten::unsqueeze(Tensor(a) self, int dim) -> Tensor(a)",
    "aten::index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
    "aten::format(str self, ...) -> str",
];

fn registry() -> Arc<Registry> {
    let mut builder = RegistryBuilder::new();
    builder.add(OPS.map(OpDef::new)).facet("aten::Int.Scalar", ImplicitConversion::NumberToInt);
    builder.build().unwrap()
}

fn compile(src: &str) -> Result<CompilationUnit, Vec<Diagnostic>> {
    let file = SourceFile::new(Source::new("<string>", src), &FrontendLimits::default());
    let session = CompileSession::new(registry(), &NativeResolver, FrontendLimits::default());
    session.declare_source(&file)?;
    session.finish()?;
    let unit = session.into_unit();
    for function in unit.functions() {
        if let Err(report) = verify(&function.graph) {
            panic!("{report:?}\n{}", function.graph);
        }
    }
    Ok(unit)
}

fn graph(src: &str) -> String {
    compile(src)
        .unwrap_or_else(|e| panic!("{}", e[0].render()))
        .function(Symbol::new("f"))
        .unwrap()
        .graph
        .to_string()
}

fn problem(src: &str) -> (Fault, String) {
    match compile(src) {
        Ok(_) => panic!("{src} compiles"),
        Err(problems) => (problems[0].fault, problems[0].message.clone()),
    }
}

#[test]
fn loops_carry_variables_under_their_names() {
    let text = graph(
        "def f(x, n: int):\n    y = x\n    for i in range(n):\n        y = y + x\n        if i > 3:\n            y = y + 2\n    y = y + 1\n    return y\n",
    );
    for line in [
        "%y : Tensor = prim::Loop(%n.1,",
        "block0(%i.1 : int, %y.29 : Tensor):",
        "%y.3 : Tensor = aten::add(%y.29, %x.1,",
        "%y.27 : Tensor = prim::If(",
        "%y.9 : Tensor = aten::add(%y.3,",
        "%y.23 : Tensor = aten::add(%y,",
        "return (%y.23)",
    ] {
        assert!(text.contains(line), "{line} in\n{text}");
    }
}

#[test]
fn exits_become_plain_control_flow() {
    let sources = [
        "def f(n: int):\n  i = 0\n  while i < n:\n    i += 1\n    if i == 3:\n      continue\n    if i == 7:\n      break\n    if i == 9:\n      return 0\n  return i\n",
        "def f(n: int) -> int:\n  if n == 1:\n    return 1\n  if n == 2:\n    return 2\n  return 3\n",
        "def f(n: int) -> int:\n  for i in range(n):\n    for j in range(i):\n      if j == 4:\n        return j\n      elif j == 5:\n        break\n      else:\n        continue\n  return 0\n",
        "def f(n: int) -> int:\n  while True:\n    if n > 3:\n      return n\n    n = n + 1\n  return 0\n",
        "def f(n: int) -> int:\n  if n > 0:\n    raise ValueError('x')\n  else:\n    y = n\n  return y\n",
        "def f(n: int):\n  return [i for i in range(n)], [[j for j in range(i)] for i in range(n)]\n",
    ];
    for src in sources {
        let text = graph(src);
        for gone in ["ReturnStmt", "BreakStmt", "ContinueStmt", "LoopContinuation", "Store", "Load", "Scope"]
        {
            assert!(!text.contains(gone), "{gone} in\n{text}");
        }
    }
}

#[test]
fn conditions_refine_types() {
    graph("def f(x: Optional[int]) -> int:\n  if x is None:\n    return 0\n  return x + 1\n");
    graph(
        "def f(x: Optional[int], y: Optional[int]) -> int:\n  if x is not None and y is not None:\n    return x + y\n  return 0\n",
    );
    graph("def f(x: Optional[int]) -> int:\n  assert x is not None\n  return x + 1\n");
    graph("def f(x: Optional[int]) -> int:\n  return x + 1 if x is not None else 0\n");
    graph("def f(x: Union[int, str]) -> int:\n  if isinstance(x, str):\n    return len(x)\n  return x + 1\n");
    let text = graph("def f(x: int) -> int:\n  if x is None:\n    return nonsense\n  return x\n");
    assert!(!text.contains("prim::If"), "{text}");
    let (_, message) = problem("def f(x: Optional[int]) -> int:\n  return x + 1\n");
    assert!(message.contains("no variant of `aten::add`"), "{message}");
}

#[test]
fn errors_name_the_problem_and_its_function() {
    let cases = [
        ("def f(x):\n  return y\n", "undefined value y"),
        ("def f(n: int):\n  if n > 0:\n    y = 1\n  return y\n", "y is not defined in the false branch"),
        ("def f(n: int):\n  for i in range(n):\n    n = 'a'\n  return n\n", "previously had type int"),
        ("def f(n: int) -> str:\n  return n\n", "annotated as having type str but is actually of type int"),
        ("def f(n: int) -> int:\n  if n > 0:\n    return 1\n", "does not return along all paths"),
        ("def f(n: int):\n  return f(n)\n", "called recursively"),
        ("def f(n: int):\n  break\n", "'break' outside loop"),
        ("def f(n: int):\n  a, b = 1, 2, 3\n  return a\n", "too many values to unpack"),
        ("def f(n: Strange):\n  return n\n", "Unknown type name 'Strange'"),
        (
            "def f(n: int):\n  return n if n > 0 else 'a'\n",
            "true branch has type int but false branch has type str",
        ),
        ("def f(n: int, n: int):\n  return n\n", "duplicate argument"),
    ];
    for (src, fragment) in cases {
        let (fault, message) = problem(src);
        assert_eq!(fault, Fault::Input, "{src}");
        assert!(message.contains(fragment), "{src}: {message}");
    }
    assert_eq!(problem("def f(x):\n  return torch.nonsense(x)\n").0, Fault::Input);
    // TorchScript has no such statement, so the fault is the input's and not a missing feature.
    assert_eq!(problem("def f(x):\n  class C: pass\n  return x\n").0, Fault::Input);
    assert_eq!(problem("class C(D): pass\n").0, Fault::Unsupported);
}

#[test]
fn a_name_is_suggested() {
    let problems = compile("def f(value: int):\n  return valeu\n").unwrap_err();
    assert_eq!(problems[0].help.as_deref(), Some("did you mean `value`?"));
}

#[test]
fn functions_may_be_called_before_their_definition() {
    let text = graph("def f(x):\n  return g(x, k=2)\ndef g(x, k: int = 1):\n  return x + k\n");
    assert!(text.contains("prim::CallFunction("), "{text}");
    let error = compile("def f(x):\n  return g(x)\ndef g(x):\n  return x + undefined\n").unwrap_err();
    assert!(
        error[0].secondary[0].text.contains("'g' is being compiled since it was called from 'f'"),
        "{:?}",
        error[0].secondary
    );
}

#[test]
fn every_stage_can_be_inspected() {
    let src = "def f(n: int):\n  while n > 0:\n    n = n - 1\n    if n == 5:\n      break\n  return n\n";
    let file = SourceFile::new(Source::new("<string>", src), &FrontendLimits::default());
    let mut session = CompileSession::new(registry(), &NativeResolver, FrontendLimits::default());
    session.keep_stages();
    session.declare_source(&file).unwrap();
    session.finish().unwrap();
    let stages = session.stages();
    assert_eq!(stages.len(), crate::ssa::SsaStage::ALL.len());
    assert!(stages[0].text.contains("prim::BreakStmt") && stages[0].text.contains("prim::Store"));
    assert!(!stages[6].text.contains("prim::BreakStmt") && !stages[6].text.contains("prim::Store"));
}

#[test]
fn deep_nesting_is_safe() {
    let n = 10_000;
    let sum = format!("def f(x):\n  return {}x\n", "x + ".repeat(n));
    let parens = format!("def f(x: int):\n  return {}x{}\n", "(1 + ".repeat(n), ")".repeat(n));
    let minus = format!("def f(x):\n  return {}x\n", "-".repeat(n));
    let calls = format!("def f(x):\n  return {}x{}\n", "torch.relu(".repeat(n), ")".repeat(n));
    let chain = format!(
        "def f(x: int):\n  if x > 0: y = 0\n{}  else: y = 1\n  return y\n",
        "  elif x > 1: y = 2\n".repeat(n)
    );
    let returns = format!("def f(x: int):\n{}  return 0\n", "  if x > 1: return 2\n".repeat(2_000));
    let ands = format!("def f(x: bool):\n  return {}x\n", "x and ".repeat(n));
    let mut nested = String::from("def f(x: int):\n  y = 0\n");
    for i in 0..2_000 {
        nested.push_str(&format!("{}if x > {i}:\n", " ".repeat(i + 2)));
    }
    nested.push_str(&format!("{}y = 1\n  return y\n", " ".repeat(2_002)));
    let functions: String = (0..5_000).map(|i| format!("def f{i}(x):\n  return f{}(x)\n", i + 1)).collect();
    let functions = format!("def f(x):\n  return f0(x)\n{functions}def f5000(x):\n  return x\n");
    for src in [sum, parens, minus, calls, chain, returns, ands, nested, functions] {
        let start = std::time::Instant::now();
        assert!(compile(&src).is_ok());
        let seconds = start.elapsed().as_secs_f64();
        assert!(seconds < 20.0, "{seconds} s for {}", &src[..60]);
    }
}

#[test]
fn growing_types_are_refused_at_their_position() {
    let source = format!("def f(x: int):\n    return {}x{}\n", "[".repeat(1000), "]".repeat(1000));
    let (fault, message) = problem(&source);
    assert_eq!((fault, message.as_str()), (Fault::Limit, "the type of this value is too large"));
}

//! Comparison of the machine with the reference on handwritten and random graphs.
#![allow(clippy::unwrap_used, reason = "a test's helpers may panic")]

mod toy;

use flambeau_exec::{CancelToken, Code, CompiledProgram, ExecError, Fault, Host, Vm, reference};
use flambeau_ir::module::{Attribute, AttributeKind, Class, Function};
use flambeau_ir::schema::FunctionSchema;
use flambeau_ir::{CompilationUnit, Graph, IValue, Registry, Symbol, Type};
use flambeau_tensor::{MemoryBudget, Tensor};
use std::sync::Arc;

/// Runs a graph on both evaluators and compares the results.
fn both(graph: &Arc<Graph>, args: &[IValue]) -> Result<Vec<IValue>, ExecError> {
    both_in(graph, args, Arc::new(CompilationUnit::new()))
}

fn both_in(
    graph: &Arc<Graph>,
    args: &[IValue],
    unit: Arc<CompilationUnit>,
) -> Result<Vec<IValue>, ExecError> {
    let code = Arc::new(Code::compile(graph, &*unit).unwrap());
    let wanted = reference::run(graph, copies(args), &*unit, &mut Host::quiet());
    let mut vm = Vm::new(CompiledProgram::new(unit));
    for _ in 0..2 {
        let found = vm.run(&code, copies(args), &mut Host::quiet());
        match (&wanted, &found) {
            (Ok(wanted), Ok(found)) => {
                assert_eq!(wanted.len(), found.len());
                for (w, f) in wanted.iter().zip(found) {
                    assert_eq!(format!("{w:?}"), format!("{f:?}"), "{code}");
                }
            }
            (Err(wanted), Err(found)) => {
                assert_eq!(wanted.to_string(), found.to_string(), "{code}");
                let ops = |e: &ExecError| e.trace.iter().map(|t| (t.function, t.op)).collect::<Vec<_>>();
                assert_eq!(ops(wanted), ops(found), "{code}");
            }
            _ => panic!("reference {wanted:?}, machine {found:?}\n{code}"),
        }
    }
    wanted
}

/// Deep copies of arguments (tensors are shared).
fn copies(args: &[IValue]) -> Vec<IValue> {
    let mut memo = flambeau_ir::value::CopyMemo::default();
    args.iter().map(|a| a.deep_copy(&mut memo, &mut |t| Ok(t.clone())).unwrap()).collect()
}

fn run(text: &str, args: &[IValue]) -> Result<Vec<IValue>, ExecError> {
    let registry = toy::registry();
    both(&toy::graph(&registry, text), args)
}

fn ints(values: &[IValue]) -> Vec<i64> {
    values.iter().map(|v| v.as_int().unwrap()).collect()
}

fn new_machine(unit: &Arc<CompilationUnit>) -> Vm {
    Vm::new(CompiledProgram::new(Arc::clone(unit) as _))
}

const SUM: &str = "graph(%n : int):
  %zero : int = prim::Constant[value=0]()
  %true : bool = prim::Constant[value=1]()
  %three : int = prim::Constant[value=3]()
  %seven : int = prim::Constant[value=7]()
  %s : int = prim::Loop(%n, %true, %zero)
    block0(%i : int, %a : int):
      %x : int = aten::mul(%i, %three)
      %y : int = aten::remainder(%x, %seven)
      %b : int = aten::add(%a, %y)
      -> (%true, %b)
  return (%s)
";

const COLLATZ: &str = "graph(%limit : int):
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %two : int = prim::Constant[value=2]()
  %three : int = prim::Constant[value=3]()
  %max : int = prim::Constant[value=9223372036854775807]()
  %true : bool = prim::Constant[value=1]()
  %total : int = prim::Loop(%limit, %true, %zero)
    block0(%i : int, %t : int):
      %n0 : int = aten::add(%i, %one)
      %go : bool = aten::ne(%n0, %one)
      %n2 : int, %t2 : int = prim::Loop(%max, %go, %n0, %t)
        block0(%j : int, %n : int, %steps : int):
          %r : int = aten::remainder(%n, %two)
          %even : bool = aten::eq(%r, %zero)
          %m : int = prim::If(%even)
            block0():
              %h : int = aten::floordiv(%n, %two)
              -> (%h)
            block1():
              %a : int = aten::mul(%n, %three)
              %b : int = aten::add(%a, %one)
              -> (%b)
          %next : int = aten::add(%steps, %one)
          %more : bool = aten::ne(%m, %one)
          -> (%more, %m, %next)
      -> (%true, %t2)
  return (%total)
";

#[test]
fn loops_over_numbers() {
    for n in [-3, 0, 1, 10, 1000] {
        let want: i64 = (0..n).map(|i| (i * 3) % 7).sum();
        assert_eq!(ints(&run(SUM, &[IValue::Int(n)]).unwrap()), [want]);
    }
    let collatz = |mut n: i64| {
        let mut steps = 0;
        while n != 1 {
            n = if n % 2 == 0 { n / 2 } else { 3 * n + 1 };
            steps += 1;
        }
        steps
    };
    let want: i64 = (1..=100).map(collatz).sum();
    assert_eq!(ints(&run(COLLATZ, &[IValue::Int(100)]).unwrap()), [want]);
}

#[test]
fn the_loop_is_two_instructions() {
    let registry = toy::registry();
    let code = Code::compile(&toy::graph(&registry, SUM), &CompilationUnit::new()).unwrap();
    let text = code.to_string();
    let top = text.lines().position(|l| l.contains("IMul")).unwrap();
    let next = text.lines().position(|l| l.contains("Next")).unwrap();
    assert_eq!(next - top, 1, "{text}");
}

#[test]
fn combined_instructions_equal_separate_ones() {
    let values = [i64::MIN, -7, -1, 0, 1, 3, 5, i64::MAX];
    for (first, second) in
        ["add", "sub", "mul"].into_iter().flat_map(|f| ["add", "sub", "mul", "remainder"].map(|s| (f, s)))
    {
        for (operands, ty) in [
            ("%x, %c", "int"),
            ("%c, %x", "int"),
            ("%x, %c", "float"),
            ("%c, %x", "float"),
            ("%x, %x", "int"),
        ] {
            if (second, ty) == ("remainder", "float") {
                continue;
            }
            let of = |op: &str, operands: &str| format!("aten::{op}({operands})");
            let text = format!(
                "graph(%n : int, %a : {ty}, %b : {ty}, %c : {ty}):
  %true : bool = prim::Constant[value=1]()
  %x : {ty} = {}
  %y : {ty} = {}
  %s : {ty} = prim::Loop(%n, %true, %y)
    block0(%i : int, %t : {ty}):
      %x2 : {ty} = {}
      %u : {ty} = {}
      %v : {ty} = aten::add(%t, %u)
      -> (%true, %v)
  return (%y, %s)
",
                of(first, "%a, %b"),
                of(second, operands),
                of(first, "%c, %t"),
                of(second, &operands.replace("%x", "%x2")),
            );
            for (i, &a) in values.iter().enumerate() {
                let (b, c) = (values[(i * 3 + 1) % values.len()], values[(i * 5 + 2) % values.len()]);
                let value = |v: i64| if ty == "int" { IValue::Int(v) } else { IValue::Float(v as f64 / 3.0) };
                // Results and errors must agree, including remainders by zero.
                let _ = run(&text, &[IValue::Int(3), value(a), value(b), value(c)]);
            }
        }
    }
}

#[test]
fn carried_values_swap() {
    let text = "graph(%n : int, %a : int, %b : int, %c : Tensor, %d : Tensor):
  %true : bool = prim::Constant[value=1]()
  %x : int, %y : int, %z : int, %t : Tensor, %u : Tensor = prim::Loop(%n, %true, %a, %b, %a, %c, %d)
    block0(%i : int, %p : int, %q : int, %r : int, %v : Tensor, %w : Tensor):
      -> (%true, %q, %r, %p, %w, %v)
  return (%x, %y, %z, %t, %u)
";
    let t = |x: f32| IValue::Tensor(Tensor::from_vec(vec![x], &[1]).unwrap());
    for n in 0..7 {
        run(text, &[IValue::Int(n), IValue::Int(1), IValue::Int(2), t(3.0), t(4.0)]).unwrap();
    }
}

#[test]
fn conditions_of_every_comparison() {
    for op in ["eq", "ne", "lt", "le", "gt", "ge"] {
        let text = |ty: &str| {
            format!(
                "graph(%a : {ty}, %b : {ty}):
  %one : int = prim::Constant[value=1]()
  %two : int = prim::Constant[value=2]()
  %five : int = prim::Constant[value=5]()
  %c : bool = aten::{op}(%a, %b)
  %r : int = prim::If(%c)
    block0():
      -> (%one)
    block1():
      -> (%two)
  %true : bool = prim::Constant[value=1]()
  %l : int, %last : {ty} = prim::Loop(%five, %true, %two, %a)
    block0(%i : int, %k : int, %prev : {ty}):
      %m : int = aten::add(%k, %one)
      %d : bool = aten::{op}(%prev, %b)
      -> (%d, %m, %b)
  return (%r, %l, %last)
"
            )
        };
        for (a, b) in [(1, 2), (2, 1), (2, 2)] {
            run(&text("int"), &[IValue::Int(a), IValue::Int(b)]).unwrap();
            run(&text("float"), &[IValue::Float(a as f64), IValue::Float(b as f64)]).unwrap();
        }
        run(&text("float"), &[IValue::Float(f64::NAN), IValue::Float(1.0)]).unwrap();
    }
}

#[test]
fn numbers_in_both_banks() {
    let text = "graph(%a : int, %o : int?, %n : Scalar):
  %none : NoneType = prim::Constant()
  %half : float = prim::Constant[value=0.5]()
  %two : int = prim::Constant[value=2]()
  %is : bool = aten::__isnot__(%o, %none)
  %r : int = prim::If(%is)
    block0():
      %u : int = prim::unchecked_cast(%o)
      %s : int = aten::add(%u, %a)
      -> (%s)
    block1():
      -> (%a)
  %f : float = aten::add(%half, %r)
  %g : float = aten::add(%f, %two)
  %q : float = aten::div(%r, %two)
  %l : Scalar[] = prim::ListConstruct(%n, %n)
  %t : (int, float, Scalar) = prim::TupleConstruct(%r, %g, %n)
  %x : int, %y : float, %z : Scalar = prim::TupleUnpack(%t)
  return (%x, %y, %z, %q, %l, %t)
";
    for o in [IValue::None, IValue::Int(5)] {
        for n in [IValue::Int(1), IValue::Float(2.5)] {
            run(text, &[IValue::Int(7), o.clone(), n]).unwrap();
        }
    }
}

#[test]
fn lists_of_every_kind() {
    let text = "graph(%n : int, %x : Tensor):
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %true : bool = prim::Constant[value=1]()
  %half : float = prim::Constant[value=0.5]()
  %a : int[] = prim::ListConstruct()
  %b : float[] = prim::ListConstruct()
  %c : Tensor[] = prim::ListConstruct(%x)
  %d : bool[] = prim::ListConstruct()
   = prim::Loop(%n, %true)
    block0(%i : int):
      %p : int[] = aten::append(%a, %i)
      %f : float = aten::add(%half, %i)
      %q : float[] = aten::append(%b, %f)
      %r : Tensor[] = aten::append(%c, %x)
      %e : bool = aten::gt(%i, %one)
      %s : bool[] = aten::append(%d, %e)
      -> (%true)
  %m : int = aten::len(%a)
  %sum : int, %fs : float = prim::Loop(%m, %true, %zero, %half)
    block0(%k : int, %acc : int, %g : float):
      %v : int = aten::__getitem__(%a, %k)
      %w : float = aten::__getitem__(%b, %k)
      %t : Tensor = aten::__getitem__(%c, %k)
      %y : bool = aten::__getitem__(%d, %k)
      %acc2 : int = aten::add(%acc, %v)
      %g2 : float = aten::add(%g, %w)
      %z : int[] = aten::_set_item(%a, %k, %acc2)
      %z2 : float[] = aten::_set_item(%b, %k, %g2)
      %z3 : Tensor[] = aten::_set_item(%c, %k, %t)
      %z4 : bool[] = aten::_set_item(%d, %k, %y)
      -> (%true, %acc2, %g2)
  %same : int[] = aten::append(%a, %one)
  %l : int = aten::len(%same)
  return (%sum, %fs, %a, %b, %c, %d, %l)
";
    let x = IValue::Tensor(Tensor::from_vec(vec![1.0f32], &[1]).unwrap());
    for n in [0, 1, 20] {
        run(text, &[IValue::Int(n), x.clone()]).unwrap();
    }
    let text = "graph(%l : int[], %i : int):
  %v : int = aten::__getitem__(%l, %i)
  return (%v)
";
    let l = IValue::ints(vec![1, 2, 3]);
    assert_eq!(ints(&run(text, &[l.clone(), IValue::Int(-1)]).unwrap()), [3]);
    let error = run(text, &[l, IValue::Int(3)]).unwrap_err();
    assert_eq!((error.class.as_str(), error.fault), ("IndexError", Fault::Input));
    assert_eq!(error.trace.len(), 1);
}

#[test]
fn containers() {
    let text = "graph(%a : int, %s : str):
  %one : int = prim::Constant[value=1]()
  %t : (int, str, int) = prim::TupleConstruct(%a, %s, %one)
  %i : int = prim::TupleIndex(%t, %one)
  %d : Dict(str, int) = prim::DictConstruct(%s, %a)
  %l : str[] = prim::ListConstruct(%s, %s)
  %p : str, %q : str = prim::ListUnpack(%l)
  %is : bool = prim::isinstance[types=[int]](%a)
  return (%t, %d, %p, %q, %is)
";
    let text = text.replace("  %i : int = prim::TupleIndex(%t, %one)\n", "");
    run(&text, &[IValue::Int(3), IValue::str("k")]).unwrap();
}

fn unit(registry: &Arc<Registry>) -> Arc<CompilationUnit> {
    let mut unit = CompilationUnit::new();
    let class = Type::class(Symbol::new("__torch__.C"), 0);
    let mut add = |name: &str, text: &str| {
        let graph = toy::graph(registry, text);
        let schema = FunctionSchema::parse(&format!("{}() -> ()", name.replace('.', "_"))).ok();
        let schema = Arc::new(schema.unwrap_or_else(|| FunctionSchema {
            name: Symbol::new(name),
            overload: Symbol::EMPTY,
            args: Vec::new(),
            returns: Vec::new(),
            vararg: false,
            varret: false,
        }));
        unit.define_function(Function { name: Symbol::new(name), schema, graph });
    };
    add("double", "graph(%x : int):\n  %y : int = aten::add(%x, %x)\n  return (%y)\n");
    add("divide", "graph(%a : int, %b : int):\n  %y : int = aten::floordiv(%a, %b)\n  return (%y)\n");
    add(
        "get",
        "graph(%self : __torch__.C, %k : int):
  %n : int = prim::GetAttr[name=\"n\"](%self)
  %m : int = aten::add(%n, %k)
   = prim::SetAttr[name=\"n\"](%self, %m)
  return (%m)
",
    );
    add(
        "enter",
        "graph(%self : __torch__.C):
  %ten : int = prim::Constant[value=10]()
   = prim::SetAttr[name=\"n\"](%self, %ten)
  return (%self)
",
    );
    add(
        "exit",
        "graph(%self : __torch__.C, %a : NoneType, %b : NoneType, %c : NoneType):
  %n : int = prim::GetAttr[name=\"n\"](%self)
  %m : int = aten::neg(%n)
   = prim::SetAttr[name=\"n\"](%self, %m)
  %none : NoneType = prim::Constant()
  return (%none)
",
    );
    let mut c = Class::new(class, false);
    c.attributes.push(Attribute { name: Symbol::new("n"), ty: Type::INT, kind: AttributeKind::Plain });
    for (method, function) in [("get", "get"), ("__enter__", "enter"), ("__exit__", "exit")] {
        c.methods.insert(Symbol::new(method), Symbol::new(function));
    }
    unit.define_class(c);
    Arc::new(unit)
}

#[test]
fn calls_objects_and_traces() {
    let registry = toy::registry();
    let unit = unit(&registry);
    let text = "graph(%x : int, %d : int):
  %f : Function = prim::Constant[name=\"double\"]()
  %g : Function = prim::Constant[name=\"divide\"]()
  %y : int = prim::CallFunction(%f, %x)
  %o : __torch__.C = prim::CreateObject()
   = prim::SetAttr[name=\"n\"](%o, %y)
  %a : int = prim::CallMethod[name=\"get\"](%o, %x)
  %b : int = prim::GetAttr[name=\"n\"](%o)
  %q : int = prim::CallFunction(%g, %b, %d)
  return (%y, %a, %b, %q)
";
    let graph = toy::graph(&registry, text);
    let ok = both_in(&graph, &[IValue::Int(3), IValue::Int(2)], Arc::clone(&unit)).unwrap();
    assert_eq!(ints(&ok), [6, 9, 9, 4]);
    let error = both_in(&graph, &[IValue::Int(3), IValue::Int(0)], unit).unwrap_err();
    assert_eq!(error.to_string(), "RuntimeError: division by 0");
    assert_eq!(error.trace.len(), 2);
    assert_eq!(error.trace[1].function.as_str(), "divide");
    assert_eq!(error.trace[1].op.as_str(), "aten::floordiv");
}

#[test]
fn context_managers_exit_on_errors_too() {
    let registry = toy::registry();
    let unit = unit(&registry);
    let text = "graph(%o : __torch__.C, %d : int):
  %e : __torch__.C = prim::Enter(%o)
  %ten : int = prim::Constant[value=10]()
  %q : int = aten::floordiv(%ten, %d)
  %x : NoneType = prim::Exit(%o)
  %n : int = prim::GetAttr[name=\"n\"](%o)
  return (%q, %n)
";
    let graph = toy::graph(&registry, text);
    let class = Type::class(Symbol::new("__torch__.C"), 0);
    let object = || flambeau_ir::value::Object::new(class, vec![IValue::Int(1)]);
    let ok = both_in(&graph, &[IValue::Object(object()), IValue::Int(5)], Arc::clone(&unit)).unwrap();
    assert_eq!(ints(&ok), [2, -10]);
    let code = Arc::new(Code::compile(&graph, &*unit).unwrap());
    for machine in [false, true] {
        let o = object();
        let args = vec![IValue::Object(o.clone()), IValue::Int(0)];
        let failed = match machine {
            true => new_machine(&unit).run(&code, args, &mut Host::quiet()).is_err(),
            false => reference::run(&graph, args, &*unit, &mut Host::quiet()).is_err(),
        };
        assert!(failed);
        assert_eq!(o.get(0).as_int(), Some(-10));
    }
}

#[test]
fn forked_tasks_and_failed_futures() {
    let text = "graph(%a : int, %b : int):
  %f : Future(int) = prim::fork_0(%a, %b)
  %one : int = prim::Constant[value=1]()
  %c : int = aten::add(%a, %one)
  %v : int = aten::wait(%f)
  %r : int = aten::add(%c, %v)
  return (%r)
with prim::fork_0 = graph(%x : int, %y : int):
  %q : int = aten::floordiv(%x, %y)
  return (%q)
";
    assert_eq!(ints(&run(text, &[IValue::Int(7), IValue::Int(2)]).unwrap()), [11]);
    let error = run(text, &[IValue::Int(7), IValue::Int(0)]).unwrap_err();
    assert_eq!(error.class, "FutureError");
}

#[test]
fn bailouts_continue_in_the_other_graph() {
    let text = "graph(%x : Tensor, %n : int):
  %t : Float(2) = prim::BailOut_0(%x, %x, %n)
  %y : Tensor = aten::relu(%t)
  %one : int = prim::Constant[value=1]()
  return (%y, %one)
with prim::BailOut_0 = graph(%x : Tensor, %n : int):
  %y : Tensor = aten::neg(%x)
  return (%y, %n)
";
    let t = |n: usize| IValue::Tensor(Tensor::from_vec(vec![-1.0f32; n], &[n as i64]).unwrap());
    let fits = run(text, &[t(2), IValue::Int(9)]).unwrap();
    assert_eq!(fits[1].as_int(), Some(1));
    let bails = run(text, &[t(3), IValue::Int(9)]).unwrap();
    assert_eq!(bails[1].as_int(), Some(9));
    assert_eq!(bails[0].as_tensor().unwrap().to_vec::<f32>().unwrap(), [1.0; 3]);
}

#[test]
fn unsupported_operators_fail_when_reached() {
    let text = "graph(%c : bool, %x : int):
  %r : int = prim::If(%c)
    block0():
      %y : int = aten::unsupported(%x)
      -> (%y)
    block1():
      -> (%x)
  return (%r)
";
    assert!(run(text, &[IValue::Bool(false), IValue::Int(1)]).is_ok());
    let error = run(text, &[IValue::Bool(true), IValue::Int(1)]).unwrap_err();
    assert_eq!(error.fault, Fault::Unsupported);
    assert!(error.message.contains("aten::unsupported"), "{error}");
}

#[test]
fn raised_classes_are_kept() {
    let text = "graph(%m : str):
  %c : str = prim::Constant[value=\"builtins.ValueError\"]()
   = prim::RaiseException(%m, %c)
  return ()
";
    let error = run(text, &[IValue::str("no")]).unwrap_err();
    assert_eq!(error.to_string(), "builtins.ValueError: no");
    assert!(error.render().contains("Traceback"), "{}", error.render());
}

/// Builds `If`s nested to a depth.
fn nest(registry: &Arc<Registry>, depth: usize) -> Arc<Graph> {
    use flambeau_ir::{At, Prim};
    let add = registry.lookup("aten::add.int").unwrap();
    let mut g = Graph::new(Arc::clone(registry));
    let mut e = g.edit();
    let (c, x) = (e.add_input(Type::BOOL), e.add_input(Type::INT));
    let mut owners = Vec::new();
    let mut outermost = None;
    for _ in 0..depth {
        let node = e.node(Prim::If, &[c], &[Type::INT]);
        outermost.get_or_insert(node);
        let (then, other) = (e.add_block(node), e.add_block(node));
        e.add_block_output(other, x);
        owners.push((node, then));
        e.at(At::end(then));
    }
    let mut value = e.value(add, &[x, x], Type::INT);
    for &(node, then) in owners.iter().rev() {
        e.add_block_output(then, value);
        value = e.graph().result(node, 0);
    }
    let root = e.graph().root();
    e.at(At::end(root));
    e.add_output(value);
    Arc::new(g)
}

#[test]
fn deep_nesting_and_long_code() {
    let registry = toy::registry();
    let graph = nest(&registry, 100_000);
    for c in [true, false] {
        let want = if c { 8 } else { 4 };
        assert_eq!(ints(&both(&graph, &[IValue::Bool(c), IValue::Int(4)]).unwrap()), [want]);
    }
    let add = registry.lookup("aten::add.int").unwrap();
    let mut g = Graph::new(Arc::clone(&registry));
    let mut e = g.edit();
    let x = e.add_input(Type::INT);
    let mut v = x;
    for _ in 0..1_000_000 {
        v = e.value(add, &[v, x], Type::INT);
    }
    e.add_output(v);
    assert_eq!(ints(&both(&Arc::new(g), &[IValue::Int(2)]).unwrap()), [2_000_002]);
}

#[test]
fn limits_stop_runs() {
    let registry = toy::registry();
    let graph = toy::graph(&registry, SUM);
    let unit = Arc::<CompilationUnit>::default();
    let code = Arc::new(Code::compile(&graph, &*unit).unwrap());
    let mut vm = new_machine(&unit);
    let stopped = |host: &mut Host, vm: &mut Vm| {
        let machine = vm.run(&code, [IValue::Int(1 << 40)], host).unwrap_err();
        assert_eq!(machine.fault, Fault::Limit, "{machine}");
    };
    let mut host = Host::quiet();
    stopped(host.set_fuel(10_000), &mut vm);
    let args = vec![IValue::Int(1 << 40)];
    let reference = reference::run(&graph, args, &*unit, host.set_fuel(10_000)).unwrap_err();
    assert_eq!(reference.fault, Fault::Limit);
    vm.run(&code, [IValue::Int(50)], host.set_fuel(100)).unwrap();
    assert!((50..=52).contains(&host.fuel()), "{}", host.fuel());
    let (token, mut host) = (CancelToken::new(), Host::quiet());
    host.set_cancel(token.clone());
    let waiter = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(50));
        token.cancel();
    });
    stopped(&mut host, &mut vm);
    waiter.join().unwrap();
    stopped(Host::quiet().set_interrupt(|| true), &mut vm);
}

#[test]
fn memory_is_limited() {
    let registry = toy::registry();
    let unit = Arc::new(CompilationUnit::new());
    let growing = "graph(%n : int):
  %true : bool = prim::Constant[value=1]()
  %a : int[] = prim::ListConstruct()
   = prim::Loop(%n, %true)
    block0(%i : int):
      %p : int[] = aten::append(%a, %i)
      -> (%true)
  return (%a)
";
    let zeros = "graph(%n : int):
  %s : int[] = prim::ListConstruct(%n)
  %z : Tensor = aten::zeros(%s)
  return (%z)
";
    for text in [growing, zeros] {
        let graph = toy::graph(&registry, text);
        let code = Arc::new(Code::compile(&graph, &*unit).unwrap());
        let mut host = Host::quiet();
        host.set_budget(Some(MemoryBudget::new(1 << 22)));
        let error = new_machine(&unit).run(&code, [IValue::Int(1 << 40)], &mut host).unwrap_err();
        assert_eq!(error.fault, Fault::Limit, "{error}");
        let error = reference::run(&graph, vec![IValue::Int(1 << 40)], &*unit, &mut host).unwrap_err();
        assert_eq!(error.fault, Fault::Limit, "{error}");
    }
}

#[test]
fn values_die_at_their_last_use() {
    let registry = toy::registry();
    let text = "graph(%x : Tensor):
  %a : Tensor = aten::relu(%x)
  %b : Tensor = aten::relu(%a)
  %c : Tensor = aten::relu(%b)
  return (%c)
";
    let code = Code::compile(&toy::graph(&registry, text), &CompilationUnit::new()).unwrap();
    assert_eq!(code.registers().1, 1, "{code}");
    assert_eq!(code.to_string().matches("move").count(), 4, "{code}");
}

const FUSED: &str = "graph(%x : Tensor, %y : Tensor, %k : float):
  %a : Tensor, %b : Tensor = prim::FusionGroup_0(%x, %y, %k)
  return (%a, %b)
with prim::FusionGroup_0 = graph(%x : Tensor, %y : Tensor, %k : float):
  %one : int = prim::Constant[value=1]()
  %three : float = prim::Constant[value=3.0]()
  %a : Tensor = aten::mul(%x, %y)
  %b : Tensor = aten::add(%a, %x, %three)
  %c : Tensor = aten::sigmoid(%b)
  %d : Tensor = aten::mul(%c, %k)
  %e : Tensor = aten::tanh(%d)
  %f : Tensor = aten::add(%e, %a, %one)
  return (%e, %f)
";

/// A value last used in one branch dies at that use, and on entry to the other branch.
#[test]
fn values_die_in_the_branch_that_uses_them_last() {
    let registry = toy::registry();
    let text = "graph(%p : bool, %q : bool, %n : int, %x : Tensor):
  %t : bool = prim::Constant[value=1]()
  %a : Tensor = aten::relu(%x)
  %b : Tensor = aten::relu(%x)
  %r : Tensor = prim::If(%p)
    block0():
      %c : Tensor = aten::relu(%a)
      %s : Tensor = prim::If(%q)
        block0():
          -> (%b)
        block1():
          -> (%c)
      -> (%s)
    block1():
      %l : Tensor = prim::Loop(%n, %t, %b)
        block0(%i : int, %k : Tensor):
          %m : Tensor = aten::mul(%k, %x)
          -> (%t, %m)
      -> (%l)
  return (%r, %x)";
    let graph = toy::graph(&registry, text);
    let code = Code::compile(&graph, &CompilationUnit::new()).unwrap();
    let listing = code.to_string();
    assert!(listing.contains("aten::relu(move"), "the first branch takes `a`\n{listing}");
    assert_eq!(listing.matches("Drop").count(), 3, "`a` of one branch, `b` or `c` of others\n{listing}");
    let x = IValue::Tensor(Tensor::from_slice(&[1.0_f32, -2.0], &[2]).unwrap());
    for (p, q, n) in [(true, true, 0), (true, false, 0), (false, true, 0), (false, false, 3)] {
        both(&graph, &[IValue::Bool(p), IValue::Bool(q), IValue::Int(n), x.clone()]).unwrap();
    }
}

#[test]
fn fused_groups_give_the_same_bits() {
    let registry = toy::registry();
    let graph = toy::graph(&registry, FUSED);
    let numbers = |n: i64| (0..n).map(|i| (i as f32 * 0.37).sin() * 4.0).collect::<Vec<_>>();
    let t = |sizes: &[i64]| Tensor::from_vec(numbers(sizes.iter().product()), sizes).unwrap();
    let double = |t: &Tensor| t.to_dtype(flambeau_tensor::DType::F64).unwrap();
    let turned = t(&[7, 5]).transpose(0, 1).unwrap();
    let pairs = [
        (t(&[8]), t(&[8])),
        (t(&[16]), t(&[16])),
        (t(&[1000]), t(&[1000])),
        (t(&[5, 7]), t(&[7])),
        (t(&[5, 1]), t(&[1, 7])),
        (t(&[33, 40]), t(&[40])),
        (t(&[]), t(&[3])),
        (t(&[0, 3]), t(&[3])),
        (turned.clone(), turned.clone()),
        (turned.clone(), t(&[5, 7])),
        (double(&t(&[100])), double(&t(&[100]))),
        (double(&t(&[5, 7])), double(&t(&[7]))),
        (t(&[4]), double(&t(&[4]))),
    ];
    for (x, y) in pairs {
        let args = [IValue::Tensor(x.clone()), IValue::Tensor(y.clone()), IValue::Float(0.7)];
        let results = both(&graph, &args).unwrap();
        let code = Arc::new(Code::compile(&graph, &CompilationUnit::new()).unwrap());
        assert!(code.to_string().contains("Fused"), "{code}");
        let found = new_machine(&Arc::default()).run(&code, args, &mut Host::quiet()).unwrap();
        for (w, f) in results.iter().zip(&found) {
            let (w, f) = (w.as_tensor().unwrap(), f.as_tensor().unwrap());
            assert_eq!((w.sizes(), w.strides(), w.dtype()), (f.sizes(), f.strides(), f.dtype()));
            assert_eq!(w.to_bytes().unwrap(), f.to_bytes().unwrap(), "{:?} {:?}", x.sizes(), y.sizes());
        }
    }
}

#[test]
fn fused_chunks_and_outputs_of_different_shapes() {
    let text = "graph(%x : Tensor, %y : Tensor):
  %a : Tensor, %b : Tensor = prim::FusionGroup_0(%x, %y)
  return (%a, %b)
with prim::FusionGroup_0 = graph(%x : Tensor, %y : Tensor):
  %p : Tensor, %q : Tensor = prim::ConstantChunk[chunks=2, dim=1](%x)
  %r : Tensor = aten::mul(%p, %q)
  %a : Tensor = aten::relu(%r)
  %b : Tensor = aten::neg(%y)
  return (%a, %b)
";
    let t = |sizes: &[i64]| {
        let n: i64 = sizes.iter().product();
        IValue::Tensor(Tensor::from_vec((0..n).map(|i| i as f32 - 5.0).collect(), sizes).unwrap())
    };
    let r = run(text, &[t(&[3, 4]), t(&[3, 2])]).unwrap();
    assert_eq!(r[0].as_tensor().unwrap().sizes(), [3, 2]);
    let r = run(text, &[t(&[3, 4]), t(&[2])]).unwrap();
    assert_eq!(r[1].as_tensor().unwrap().sizes(), [2]);
    assert!(run(text, &[t(&[3, 1]), t(&[3, 7])]).is_err());
}

/// Generates random programs: numbers, tensors and lists in nested branches and loops; loop-carried values are
/// permuted, repeated or dropped.
struct Writer<'r> {
    registry: &'r Registry,
    g: flambeau_exec::Gen<'static>,
    left: usize,
}

/// Values in scope, by type.
#[derive(Clone, Default)]
struct Scope {
    all: Vec<(Type, flambeau_ir::ValueId)>,
}

const TYPES: [Type; 5] = [Type::INT, Type::BOOL, Type::FLOAT, Type::TENSOR, Type::LIST_INT];

impl Writer<'_> {
    fn pick(&mut self, scope: &Scope, ty: Type) -> flambeau_ir::ValueId {
        let of: Vec<_> = scope.all.iter().filter(|v| v.0 == ty).map(|v| v.1).collect();
        // Prefer recent values, so that operands die early as well as late.
        let recent = of.len().min(3);
        if self.g.flag() { of[of.len() - 1 - self.g.below(recent)] } else { *self.g.pick(&of) }
    }

    fn op(&self, name: &str) -> flambeau_ir::OpId {
        self.registry.lookup(name).unwrap()
    }

    fn block(&mut self, e: &mut flambeau_ir::Editor<'_>, scope: &mut Scope, depth: usize) {
        let steps = 1 + self.g.below(6);
        for _ in 0..steps {
            if self.left == 0 {
                return;
            }
            self.left -= 1;
            match self.g.below(if depth < 4 { 14 } else { 10 }) {
                0..=2 => {
                    let name = *self.g.pick(&["aten::add.int", "aten::mul.int", "aten::sub.int"]);
                    let (a, b) = (self.pick(scope, Type::INT), self.pick(scope, Type::INT));
                    scope.all.push((Type::INT, e.value(self.op(name), &[a, b], Type::INT)));
                }
                3 | 4 => {
                    let name = *self.g.pick(&["aten::lt.int", "aten::eq.int", "aten::ge.int"]);
                    let (a, b) = (self.pick(scope, Type::INT), self.pick(scope, Type::INT));
                    scope.all.push((Type::BOOL, e.value(self.op(name), &[a, b], Type::BOOL)));
                }
                5 => {
                    let (a, b) = (self.pick(scope, Type::FLOAT), self.pick(scope, Type::INT));
                    scope
                        .all
                        .push((Type::FLOAT, e.value(self.op("aten::add.float_int"), &[a, b], Type::FLOAT)));
                }
                6 | 7 => {
                    let name = *self.g.pick(&["aten::relu", "aten::neg"]);
                    let a = self.pick(scope, Type::TENSOR);
                    scope.all.push((Type::TENSOR, e.value(self.op(name), &[a], Type::TENSOR)));
                }
                8 => {
                    let (l, i) = (self.pick(scope, Type::LIST_INT), self.pick(scope, Type::INT));
                    e.value(self.op("aten::append.t"), &[l, i], Type::LIST_INT);
                }
                9 => {
                    let l = self.pick(scope, Type::LIST_INT);
                    scope.all.push((Type::INT, e.value(self.op("aten::len.t"), &[l], Type::INT)));
                }
                10 | 11 => self.branch(e, scope, depth),
                _ => self.looped(e, scope, depth),
            }
        }
    }

    fn some_types(&mut self) -> Vec<Type> {
        (0..self.g.below(5)).map(|_| *self.g.pick(&TYPES)).collect()
    }

    fn branch(&mut self, e: &mut flambeau_ir::Editor<'_>, scope: &mut Scope, depth: usize) {
        use flambeau_ir::{At, Prim};
        let cond = self.pick(scope, Type::BOOL);
        let types = self.some_types();
        let node = e.node(Prim::If, &[cond], &types);
        for _ in 0..2 {
            let block = e.add_block(node);
            e.at(At::end(block));
            let mut inner = scope.clone();
            if self.g.flag() {
                self.block(e, &mut inner, depth + 1);
            }
            for &ty in &types {
                let v = self.pick(&inner, ty);
                e.add_block_output(block, v);
            }
        }
        e.at(At::after(node));
        for (i, &ty) in types.iter().enumerate() {
            scope.all.push((ty, e.graph().result(node, i)));
        }
    }

    fn looped(&mut self, e: &mut flambeau_ir::Editor<'_>, scope: &mut Scope, depth: usize) {
        use flambeau_ir::{At, Prim};
        let types = self.some_types();
        // At most three iterations, whatever the program computes.
        let max = e.constant(IValue::Int(self.g.int(0, 3)));
        let mut operands = vec![max, self.pick(scope, Type::BOOL)];
        operands.extend(types.iter().map(|&ty| self.pick(scope, ty)));
        let node = e.node(Prim::Loop, &operands, &types);
        let block = e.add_block(node);
        let mut inner = scope.clone();
        inner.all.push((Type::INT, e.add_block_input(block, Type::INT)));
        for &ty in &types {
            inner.all.push((ty, e.add_block_input(block, ty)));
        }
        e.at(At::end(block));
        self.block(e, &mut inner, depth + 1);
        let cond = self.pick(&inner, Type::BOOL);
        e.add_block_output(block, cond);
        for &ty in &types {
            let v = self.pick(&inner, ty);
            e.add_block_output(block, v);
        }
        e.at(At::after(node));
        for (i, &ty) in types.iter().enumerate() {
            scope.all.push((ty, e.graph().result(node, i)));
        }
    }
}

#[test]
fn random_programs_agree() {
    let registry = toy::registry();
    for seed in 0..1500 {
        let mut graph = Graph::new(Arc::clone(&registry));
        let mut e = graph.edit();
        let mut writer = Writer { registry: &registry, g: flambeau_exec::Gen::from_seed(seed), left: 60 };
        let mut scope = Scope::default();
        for ty in TYPES {
            scope.all.push((ty, e.add_input(ty)));
            scope.all.push((ty, e.add_input(ty)));
        }
        scope.all.push((Type::INT, e.constant(IValue::Int(2))));
        scope.all.push((Type::BOOL, e.constant(IValue::Bool(true))));
        writer.block(&mut e, &mut scope, 0);
        writer.block(&mut e, &mut scope, 0);
        for _ in 0..4 {
            for ty in TYPES {
                let v = writer.pick(&scope, ty);
                e.add_output(v);
            }
        }
        let t = |x: f32| IValue::Tensor(Tensor::from_vec(vec![x, -x], &[2]).unwrap());
        let args = [
            IValue::Int(3),
            IValue::Int(-1),
            IValue::Bool(seed % 2 == 0),
            IValue::Bool(false),
            IValue::Float(0.5),
            IValue::Float(2.0),
            t(1.5),
            t(-2.0),
            IValue::ints(vec![1]),
            IValue::ints(vec![]),
        ];
        let graph = Arc::new(graph);
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| both(&graph, &args).unwrap()));
        assert!(outcome.is_ok(), "seed {seed}");
    }
}

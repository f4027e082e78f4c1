//! Instructions that combine several operations: what is combined, and that results and errors are those of the reference.
#![allow(clippy::unwrap_used, reason = "a test's helpers may panic")]

mod toy;

use flambeau_exec::{Code, CompiledProgram, Host, Vm, reference};
use flambeau_ir::{CompilationUnit, Graph, IValue};
use std::sync::Arc;

const WORDS: [i64; 12] = [i64::MIN, i64::MIN + 1, -65_522, -7, -1, 0, 1, 2, 3, 65_521, 1 << 33, i64::MAX];

/// Compiles a graph, and compares the machine with the reference for arguments made from the words above. Returns the listing.
fn compared(text: &str, arguments: impl Fn(&[i64; 3]) -> Vec<IValue>) -> String {
    let registry = toy::registry();
    let graph: Arc<Graph> = toy::graph(&registry, text);
    let unit = Arc::new(CompilationUnit::new());
    let code = Arc::new(Code::compile(&graph, &*unit).unwrap());
    let mut vm = Vm::new(CompiledProgram::new(Arc::clone(&unit) as _));
    for (i, a) in WORDS.into_iter().enumerate() {
        for (j, b) in WORDS.into_iter().enumerate() {
            let arguments = arguments(&[a, b, WORDS[(3 * i + 5 * j) % WORDS.len()]]);
            // Fuel ends loops at the same iteration.
            for fuel in [100, 3] {
                let host = || {
                    let mut host = Host::quiet();
                    host.set_fuel(fuel);
                    host
                };
                let wanted = reference::run(&graph, arguments.clone(), &*unit, &mut host());
                let found = vm.run(&code, arguments.clone(), &mut host());
                match (wanted, found) {
                    (Ok(wanted), Ok(found)) => {
                        assert_eq!(format!("{wanted:?}"), format!("{found:?}"), "{arguments:?}\n{code}");
                    }
                    (Err(wanted), Err(found)) => {
                        assert_eq!(wanted.to_string(), found.to_string(), "{arguments:?}\n{code}");
                        let ops = |e: &flambeau_exec::ExecError| {
                            e.trace.iter().map(|t| (t.function, t.op)).collect::<Vec<_>>()
                        };
                        assert_eq!(ops(&wanted), ops(&found), "{arguments:?}\n{code}");
                    }
                    (wanted, found) => panic!("reference {wanted:?}, machine {found:?}\n{code}"),
                }
            }
        }
    }
    code.to_string()
}

fn ints([a, b, c]: &[i64; 3]) -> Vec<IValue> {
    [5, *a, *b, *c].map(IValue::Int).to_vec()
}

fn floats([a, b, c]: &[i64; 3]) -> Vec<IValue> {
    let float = |v: &i64| IValue::Float(if *v == 7 { f64::NAN } else { *v as f64 / 3.0 });
    vec![IValue::Int(5), float(a), float(b), float(c)]
}

/// A counted loop that carries `%t`, whose next value is `%u`.
fn counted(ty: &str, body: &str) -> String {
    format!(
        "graph(%n : int, %a : {ty}, %b : {ty}, %c : {ty}):
  %true : bool = prim::Constant[value=1]()
  %small : int = prim::Constant[value=65521]()
  %s : {ty} = prim::Loop(%n, %true, %a)
    block0(%i : int, %t : {ty}):
{body}
      -> (%true, %u)
  return (%s)
"
    )
}

fn of(lines: &[&str]) -> String {
    lines.iter().map(|line| format!("      {line}")).collect::<Vec<_>>().join("\n")
}

#[test]
fn three_operations() {
    for (divisor, listed) in [("%b", "IMod (IAdd (IMul s"), ("%small", "IModBy (IAdd (IMul s")] {
        let last = format!("%u : int = aten::remainder(%y, {divisor})");
        for sum in ["%y : int = aten::add(%x, %i)", "%y : int = aten::add(%i, %x)"] {
            let body = of(&["%x : int = aten::mul(%t, %c)", sum, &last]);
            let listing = compared(&counted("int", &body), ints);
            assert!(listing.contains(listed), "{listing}");
        }
    }
    let body =
        of(&["%x : int = aten::add(%t, %i)", "%y : int = aten::mul(%x, %b)", "%u : int = aten::add(%c, %y)"]);
    let listing = compared(&counted("int", &body), ints);
    assert!(listing.contains("IAdd (IMul (IAdd s"), "{listing}");
    let body = of(&[
        "%x : float = aten::mul(%t, %b)",
        "%y : float = aten::mul(%x, %a)",
        "%u : float = aten::add(%y, %c)",
    ]);
    let listing = compared(&counted("float", &body), floats);
    assert!(listing.contains("FAdd (FMul (FMul s"), "{listing}");
}

#[test]
fn results_that_are_right_operands() {
    for (first, second, ty) in
        [("mul", "sub", "int"), ("mul", "add", "float"), ("mul", "sub", "float"), ("div", "add", "float")]
    {
        let body = of(&[
            &format!("%x : {ty} = aten::{first}(%t, %b)"),
            &format!("%u : {ty} = aten::{second}(%c, %x)"),
        ]);
        let listing = if ty == "int" {
            compared(&counted(ty, &body), ints)
        } else {
            compared(&counted(ty, &body), floats)
        };
        assert!(listing.lines().any(|l| l.contains(", (")), "{listing}");
    }
}

#[test]
fn conversions_of_operands() {
    for op in ["mul", "div"] {
        let body = of(&[
            "%x : float = aten::Float(%i)",
            &format!("%y : float = aten::{op}(%x, %b)"),
            "%u : float = aten::add(%t, %y)",
        ]);
        let listing = compared(&counted("float", &body), floats);
        assert!(listing.contains("(IToF s"), "{listing}");
    }
}

#[test]
fn conversions_of_right_operands() {
    for op in ["add", "sub", "mul", "div"] {
        let left = [&format!("%y : float = aten::{op}(%x, %b)"), "%u : float = aten::add(%t, %y)"];
        let right = [&format!("%y : float = aten::{op}(%b, %x)"), "%u : float = aten::add(%y, %t)"];
        for [first, second] in [left, right] {
            let body = of(&["%x : float = aten::Float(%i)", first, second]);
            let listing = compared(&counted("float", &body), floats);
            assert!(listing.contains("(IToF s"), "{listing}");
        }
    }
}

/// A test of a negation tests the operand.
#[test]
fn tests_of_negations() {
    let body = of(&[
        "%less : bool = aten::lt(%t, %b)",
        "%other : bool = aten::eq(%t, %c)",
        "%both : bool = aten::__and__(%less, %other)",
        "%not : bool = aten::__not__(%both)",
        "%u : int = prim::If(%not)",
        "  block0():",
        "    %m : int = aten::mul(%t, %c)",
        "    -> (%m)",
        "  block1():",
        "    %k : int = aten::add(%t, %i)",
        "    -> (%k)",
    ]);
    let listing = compared(&counted("int", &body), ints);
    assert!(!listing.contains("BNot"), "{listing}");
}

/// Loops over a list of the function, whose elements are the parameters: one that uses the list by element only, and one that does not.
#[test]
fn loops_over_lists() {
    for (ty, arguments) in [("int", ints as fn(&[i64; 3]) -> Vec<IValue>), ("float", floats)] {
        for (other, has_span) in [("", true), ("      %l : t[] = aten::append(%list, %u)\n", false)] {
            let other = other.replace("t[]", &format!("{ty}[]"));
            let text = format!(
                "graph(%n : int, %a : {ty}, %b : {ty}, %c : {ty}):
  %true : bool = prim::Constant[value=1]()
  %list : {ty}[] = prim::ListConstruct(%a, %b, %c, %b)
  %length : int = aten::len(%list)
  %s : {ty} = prim::Loop(%length, %true, %a)
    block0(%i : int, %t : {ty}):
      %x : {ty} = aten::__getitem__(%list, %i)
      %d : {ty} = aten::mul(%x, %c)
      %u : {ty} = aten::add(%d, %t)
{other}      -> (%true, %u)
  return (%s, %list)
"
            );
            let listing = compared(&text, arguments);
            assert_eq!(listing.contains("= SpanNext s"), has_span, "{listing}");
        }
    }
}

/// Loops over `range(%a, %b, step)`: the count is the element, unless something else uses it.
#[test]
fn loops_over_ranges() {
    for (step, counts, [is_distance, is_element]) in [
        (1, false, [true, true]),
        (1, true, [true, false]),
        (-1, false, [true, false]),
        (3, false, [false, false]),
    ] {
        let other = if counts { "%i" } else { "%x" };
        let text = format!(
            "graph(%n : int, %a : int, %b : int, %c : int):
  %true : bool = prim::Constant[value=1]()
  %step : int = prim::Constant[value={step}]()
  %length : int = aten::__range_length(%a, %b, %step)
  %s : int, %last : int = prim::Loop(%length, %true, %a, %c)
    block0(%i : int, %t : int, %l : int):
      %x : int = aten::__derive_index(%i, %a, %step)
      %d : int = aten::mul(%t, %c)
      %u : int = aten::add(%d, {other})
      -> (%true, %u, %x)
  return (%s, %last)
"
        );
        let listing = compared(&text, ints);
        assert_eq!(listing.contains("IDistance"), is_distance, "{listing}");
        assert_eq!(listing.contains("IAdd s2, s"), is_element, "{listing}");
    }
}

/// A loop over a list of the parameters and a string, as `zip` makes it, with an element that is used after the loop.
#[test]
fn loops_over_pairs() {
    for text in ["", "a", "banana"] {
        let text = format!(
            "graph(%n : int, %a : int, %b : int, %c : int):
  %true : bool = prim::Constant[value=1]()
  %text : str = prim::Constant[value=\"{text}\"]()
  %byte : str = prim::Constant[value=\"a\"]()
  %list : int[] = prim::ListConstruct(%a, %b, %c)
  %m : int = aten::len(%list)
  %k : int = aten::len(%text)
  %length : int = prim::min(%m, %k)
  %s : int, %last : int = prim::Loop(%length, %true, %a, %n)
    block0(%i : int, %t : int, %l : int):
      %x : int = aten::__getitem__(%list, %i)
      %y : str = aten::__getitem__(%text, %i)
      %is : bool = aten::eq(%y, %byte)
      %u : int = prim::If(%is)
        block0():
          %v : int = aten::mul(%t, %x)
          -> (%v)
        block1():
          -> (%t)
      -> (%true, %u, %x)
  return (%s, %last)
"
        );
        let listing = compared(&text, ints);
        assert!(listing.contains("EachNext") && listing.contains("StrByte"), "{listing}");
    }
}

/// A loop without a counter that is visible: `%t` is carried while a comparison holds.
fn conditional(body: &str, condition: &str) -> String {
    format!(
        "graph(%n : int, %a : int, %b : int, %c : int):
  %true : bool = prim::Constant[value=1]()
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %minus : int = prim::Constant[value=-3]()
  %two : int = prim::Constant[value=2]()
  %small : int = prim::Constant[value=7]()
  %max : int = prim::Constant[value=9223372036854775807]()
  %s : int, %k : int = prim::Loop(%max, %true, %a, %zero)
    block0(%i : int, %t : int, %count : int):
{body}
      %go : bool = {condition}
      -> (%go, %u, %counted)
  return (%s, %k)
"
    )
}

#[test]
fn sums_before_jumps() {
    for (compare, listed) in
        [("eq", "JIEq"), ("ne", "JINe"), ("lt", "JILt"), ("le", "JILe"), ("gt", "JILt"), ("ge", "JILe")]
    {
        for (step, sum) in [("%b", "add"), ("%one", "sub")] {
            let body = of(&[
                "%counted : int = aten::sub(%count, %minus)",
                &format!("%u : int = aten::{sum}(%t, {step})"),
            ]);
            let listing = compared(&conditional(&body, &format!("aten::{compare}(%u, %c)")), ints);
            let found = listing.lines().any(|l| l.contains("IAdd s") && l.contains(listed));
            assert!(found, "{compare}: {listing}");
        }
    }
}

#[test]
fn operations_before_jumps() {
    let tested = |operation: &str, compare: &str, other: &str| {
        let body = of(&[
            &format!("%r : int = {operation}"),
            &format!("%even : bool = aten::{compare}(%r, {other})"),
            "%u : int = prim::If(%even)",
            "  block0():",
            "    %h : int = aten::floordiv(%t, %two)",
            "    -> (%h)",
            "  block1():",
            "    %m : int = aten::mul(%t, %small)",
            "    %p : int = aten::add(%m, %one)",
            "    -> (%p)",
            "%counted : int = aten::add(%count, %r)",
        ]);
        compared(&conditional(&body, "aten::ne(%u, %one)"), ints)
    };
    for (operation, name) in [
        ("aten::remainder(%t, %two)", "IAnd"),
        ("aten::remainder(%t, %small)", "IModBy"),
        ("aten::remainder(%t, %b)", "IMod"),
    ] {
        for compare in ["eq", "ne"] {
            let listing = tested(operation, compare, "%zero");
            let found = listing.lines().any(|l| l.contains(&format!("= {name} s")) && l.contains("; J"));
            assert!(found, "{listing}");
        }
    }
    for compare in ["lt", "le", "gt", "ge"] {
        let listing = tested("aten::mul(%count, %t)", compare, "%c");
        assert!(listing.lines().any(|l| l.contains("= IMul s") && l.contains("; JI")), "{listing}");
    }
}

/// In a frame of more than 256 words, operations whose registers do not fit stay separate.
#[test]
fn registers_that_do_not_fit() {
    for (words, all) in [(200, true), (300, false)] {
        let differences = |i: usize| format!("%x{i} : int = aten::sub(%a, %i)");
        let uses = |i: usize| {
            let before = if i == 0 { "%t".to_owned() } else { format!("%y{}", i - 1) };
            let product = format!("%m{i} : int = aten::mul({before}, %c)");
            let sum = format!("%n{i} : int = aten::add(%m{i}, %x{i})");
            format!("{product}\n      {sum}\n      %y{i} : int = aten::remainder(%n{i}, %small)")
        };
        let lines: Vec<String> = (0..words).map(differences).chain((0..words).map(uses)).collect();
        let mut body = of(&lines.iter().map(String::as_str).collect::<Vec<_>>());
        body.push_str(&format!("\n      %u : int = aten::add(%y{}, %x0)", words - 1));
        let listing = compared(&counted("int", &body), ints);
        let combined = listing.matches("IModBy (IAdd (IMul s").count();
        assert!(combined > 100, "{combined}");
        assert_eq!(combined == words, all, "{combined} of {words} are combined");
    }
}

/// An operand that is used twice is computed on its own; one that branches compute is right on both ways.
#[test]
fn operands_with_other_uses() {
    let body = of(&[
        "%x : int = aten::mul(%t, %b)",
        "%y : int = aten::add(%x, %x)",
        "%z : int = aten::mul(%t, %c)",
        "%w : int = aten::add(%z, %y)",
        "%v : int = aten::sub(%w, %z)",
        "%u : int = aten::remainder(%v, %small)",
    ]);
    let listing = compared(&counted("int", &body), ints);
    assert!(listing.contains("= IMul s"), "{listing}");
    let body = of(&[
        "%q : bool = aten::lt(%t, %b)",
        "%x : int = prim::If(%q)",
        "  block0():",
        "    %m : int = aten::mul(%t, %c)",
        "    -> (%m)",
        "  block1():",
        "    %k : int = aten::mul(%t, %b)",
        "    -> (%k)",
        "%u : int = aten::add(%x, %i)",
    ]);
    compared(&counted("int", &body), ints);
}

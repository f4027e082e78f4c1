//! Programs with their expected facts, including cases that PyTorch gets wrong: loops, interfaces, callbacks,
//! constants.

use super::*;
use crate::cache::Analyses;
use crate::testing::{Random, def, graph, registry, value};
use flambeau_ir::{Editor, IValue, Prim, Type};

/// Checks facts by value names: `a ~ b` for may-alias and `a !~ b` for its negation.
fn check(text: &str, facts: &[&str]) -> (Graph, AliasDb) {
    let g = graph(text);
    let db = AliasDb::new(&g);
    for fact in facts {
        let words: Vec<&str> = fact.split(' ').collect();
        let v = |i: usize| value(&g, words[i]);
        let (got, want) = match words[1] {
            "~" => (db.may_alias(v(0), v(2)), true),
            "!~" => (db.may_alias(v(0), v(2)), false),
            "holds" => (db.may_contain_alias(v(0), v(2)), true),
            "!holds" => (db.may_contain_alias(v(0), v(2)), false),
            "written" => (db.has_writers(v(0)), true),
            "!written" => (db.has_writers(v(0)), false),
            "wildcard" => (db.may_be_wildcard(v(0)), true),
            "!wildcard" => (db.may_be_wildcard(v(0)), false),
            other => panic!("{other}"),
        };
        assert_eq!(got, want, "{fact}\n{}\n{}", g, db.dump(&g));
    }
    (g, db)
}

#[test]
fn results_of_two_branches() {
    let text = "graph(%a : Tensor, %b : Tensor, %c0 : bool):
  %one : int = prim::Constant[value=1]()
  %c : Tensor = aten::mul(%a, %b)
  %r : Tensor = prim::If(%c0)
    block0():
      -> (%a)
    block1():
      -> (%b)
  %x : Tensor = aten::relu(%a)
  %s : Tensor = prim::If(%c0)
    block0():
      -> (%x)
    block1():
      -> (%c)
  %w : Tensor = aten::add_(%c, %x, %one)
  return (%r, %c)";
    let (g, db) = check(
        text,
        &[
            "r ~ a",
            "r ~ b",
            "r !~ c",
            "c !~ a",
            "s ~ x",
            "s ~ c",
            "w ~ c",
            "c written",
            "x !written",
            "s written",
            "r wildcard",
            "x !wildcard",
            "a !written",
        ],
    );
    assert_eq!(
        db.dump(&g),
        "\
%a : Tensor -> *input Tensor
%b : Tensor -> *input Tensor
%c : Tensor -> new; written; returned
%r : Tensor -> *input Tensor
%x : Tensor -> new
%s : Tensor -> %x, %c; written; returned
%w : Tensor -> %c; written; returned
writes:
  aten::add_(%c, %x, %one): %c
"
    );
    assert!(db.to_dot(&g).contains("->"));
    let (x, c, a) = (value(&g, "x"), value(&g, "c"), value(&g, "a"));
    assert!(!db.safe_to_change_aliasing(&[x], &[c]), "c is written");
    assert!(db.safe_to_change_aliasing(&[x], &[a]));
    assert!(!db.safe_to_change_aliasing(&[value(&g, "r")], &[a]), "both are seen from outside");
    assert!(db.writes_to(&g, def(&g, "w"), &[value(&g, "s")]));
    assert!(!db.writes_to_wildcard(&g, def(&g, "w")));
    assert!(db.escapes_scope(&[c]) && !db.escapes_scope(&[x]));
}

#[test]
fn swapped_carried_values_alias() {
    check(
        "graph(%a : Tensor, %n : int):
  %one : int = prim::Constant[value=1]()
  %true : bool = prim::Constant[value=1]()
  %c : Tensor = aten::relu(%a)
  %d : Tensor = aten::tanh(%a)
  %x : Tensor, %y : Tensor = prim::Loop(%n, %true, %c, %d)
    block0(%i : int, %p : Tensor, %q : Tensor):
      %w : Tensor = aten::add_(%p, %p, %one)
      -> (%true, %q, %p)
  %e : Tensor = aten::tanh(%a)
  return (%d, %e)",
        &["d written", "c written", "e !written", "x ~ d", "y ~ c", "p ~ d", "q ~ c", "x !~ e", "d !~ e"],
    );
}

#[test]
fn nested_loops_rotate() {
    check(
        "graph(%n : int, %z : Tensor):
  %one : int = prim::Constant[value=1]()
  %t : bool = prim::Constant[value=1]()
  %a : Tensor = aten::relu(%z)
  %b : Tensor = aten::relu(%z)
  %c : Tensor = aten::relu(%z)
  %u : Tensor, %v : Tensor, %w : Tensor = prim::Loop(%n, %t, %a, %b, %c)
    block0(%i : int, %p : Tensor, %q : Tensor, %r : Tensor):
      %s : Tensor = prim::Loop(%n, %t, %p)
        block0(%j : int, %k : Tensor):
          %k2 : Tensor = aten::t(%k)
          -> (%t, %k2)
      -> (%t, %q, %r, %s)
  %m : Tensor = aten::add_(%u, %z, %one)
  return (%a)",
        &["a written", "b written", "c written", "w ~ b", "s ~ c", "z !written"],
    );
}

#[test]
fn objects_and_interfaces() {
    let object = "graph(%c : __torch__.C, %i : __torch__.I):
  %a : Tensor = prim::GetAttr[name=\"x\"](%c)
  %r : Tensor = prim::CallMethod[name=\"mutate\"](%i)
  %b : Tensor = prim::GetAttr[name=\"x\"](%c)
  return (%a, %b)";
    let (g, db) = check(object, &["a written", "b written", "a ~ b", "c written"]);
    assert!(db.writes_to_wildcard(&g, def(&g, "r")));
    check(
        "graph(%x : Tensor):
  %l : Tensor = aten::relu(%x)
  %m : Tensor = aten::relu(%x)
  %o : __torch__.C = prim::CreateObject()
   = prim::SetAttr[name=\"x\"](%o, %l)
  %a : Tensor = prim::GetAttr[name=\"x\"](%o)
  %one : int = prim::Constant[value=1]()
  %w : Tensor = aten::add_(%a, %a, %one)
  return (%m)",
        &["a ~ l", "l written", "m !written", "o written", "a !~ m"],
    );
}

#[test]
fn host_callbacks_and_unknown_operators_write() {
    check(
        "graph(%x : Tensor, %z : Tensor):
  %k : Tensor = aten::relu(%x)
  %own : Tensor = aten::relu(%x)
  %a : Tensor = aten::tanh(%x)
  %u : Tensor = my::unknown(%k)
  %b : Tensor = aten::tanh(%x)
  return (%a, %b)",
        &["k written", "x written", "z written", "own !written", "a !written", "u ~ k", "u ~ x"],
    );
    check(
        "graph(%x : Tensor):
  %k : Tensor = aten::relu(%x)
  %u : Tensor = aten::mystery(%k)
  return (%u)",
        &["k written", "u ~ k", "x written"],
    );
}

#[test]
fn escaping_constants_may_be_written() {
    let mut g = Graph::new(registry());
    let tensor = || IValue::Tensor(flambeau_tensor::Tensor::from_slice(&[1.0_f32], &[1]).unwrap());
    let relu = registry().lookup("aten::relu").unwrap();
    let mut e = g.edit();
    let (kept, given) = (e.constant(tensor()), e.constant(tensor()));
    let same = e.value(Prim::Annotate, &[given], Type::TENSOR);
    let r = e.value(relu, &[kept], Type::TENSOR);
    e.add_output(same);
    e.add_output(r);
    let db = AliasDb::new(&g);
    assert!(db.has_writers(given), "the caller may write it before the next run");
    assert!(!db.has_writers(kept) && !db.has_writers(r));
}

#[test]
fn a_returned_value_may_not_alias_a_constant() {
    let mut g = Graph::new(registry());
    let tensor = || IValue::Tensor(flambeau_tensor::Tensor::from_slice(&[1.0_f32], &[1]).unwrap());
    let relu = registry().lookup("aten::relu").unwrap();
    let pair = Type::tuple(&[Type::TENSOR, Type::INT]);
    let mut e = g.edit();
    let (one, other) = (e.constant(tensor()), e.constant(tensor()));
    let holder = e.constant_of(IValue::tuple(vec![tensor(), IValue::Int(0)]), pair);
    let inner = e.value(relu, &[one], Type::TENSOR);
    let returned = e.value(relu, &[inner], Type::TENSOR);
    e.add_output(returned);
    let db = AliasDb::new(&g);
    for constant in [one, holder] {
        assert!(!db.safe_to_change_aliasing(&[returned], &[constant]), "a caller would write the constant");
        assert!(!db.safe_to_change_aliasing(&[constant], &[returned]));
        assert!(db.safe_to_change_aliasing(&[inner], &[constant]), "only the run sees it");
    }
    assert!(db.safe_to_change_aliasing(&[one], &[other]), "constants that stay inside may become one");
}

#[test]
fn containers_and_tuples() {
    check(
        "graph(%x : Tensor, %i : int):
  %a : Tensor = aten::relu(%x)
  %b : Tensor = aten::relu(%x)
  %c : Tensor = aten::relu(%x)
  %d : Tensor = aten::relu(%x)
  %l : Tensor[] = prim::ListConstruct(%a, %b)
  %joined : Tensor = aten::cat(%l, %i)
  %open : Tensor[] = prim::ListConstruct(%c)
  %m : Tensor[] = aten::append(%open, %d)
  %g : Tensor = aten::__getitem__(%open, %i)
  %t : (Tensor, Tensor) = prim::TupleConstruct(%a, %g)
  %t0 : Tensor, %t1 : Tensor = prim::TupleUnpack(%t)
  %w : Tensor = aten::add_(%b, %x, %i)
  return (%joined)",
        &[
            "l holds a",
            "l holds b",
            "l !holds c",
            "l written",
            "a !written",
            "joined !~ a",
            "g ~ c",
            "g ~ d",
            "g ~ x",
            "g !~ a",
            "t0 ~ a",
            "t0 !~ g",
            "t1 ~ c",
            "t holds a",
            "t !~ a",
            "m ~ open",
            "open written",
            "a !wildcard",
            "c wildcard",
        ],
    );
    check(
        "graph(%x : Tensor, %n : int, %p : bool):
  %a : Tensor = aten::relu(%x)
  %b : Tensor = aten::relu(%x)
  %s : (Tensor, int) = prim::TupleConstruct(%a, %n)
  %t : (Tensor, int) = prim::TupleConstruct(%b, %n)
  %u : (Tensor, int) = prim::If(%p)
    block0():
      -> (%s)
    block1():
      -> (%t)
  %y : Tensor, %k : int = prim::TupleUnpack(%u)
  %v : Tensor, %k2 : int = prim::TupleUnpack(%s)
  return (%k)",
        &["y ~ a", "y ~ b", "v ~ a", "v !~ b", "u holds b", "a !wildcard"],
    );
}

#[test]
fn lists_of_views() {
    check(
        "graph(%x : Tensor, %n : int):
  %a : Tensor = aten::relu(%x)
  %o : Tensor = aten::relu(%x)
  %l : Tensor[] = aten::chunk(%a, %n, %n)
  %p : Tensor, %q : Tensor = prim::ListUnpack(%l)
  %w : Tensor = aten::add_(%p, %o, %n)
  return (%q)",
        &["p ~ a", "q ~ a", "p ~ q", "q written", "a !wildcard", "o !written", "p !~ x"],
    );
    check(
        "graph(%x : Tensor, %n : int):
  %a : Tensor = aten::relu(%x)
  %l : Tensor[] = prim::ListConstruct(%a)
  %m : Tensor[] = aten::broadcast_tensors(%l)
  %p : Tensor, %q : Tensor = prim::ListUnpack(%m)
  return (%n)",
        &["p ~ a", "p ~ q", "m !~ l"],
    );
    check(
        "graph(%x : Tensor, %n : int):
  %a : Tensor = aten::relu(%x)
  %l : Tensor[] = aten::split(%a, %n, %n)
  %p : Tensor = aten::__getitem__(%l, %n)
  %is : int[] = prim::ListConstruct(%n, %n)
  %js : int[] = aten::copy(%is)
  %ks : int[] = aten::append(%is, %n)
  return (%p)",
        &["p ~ a", "a wildcard", "is !~ js", "ks ~ is", "is written", "js !written"],
    );
}

#[test]
fn the_training_flag_decides_about_writes() {
    let text = |flag: i32| {
        format!(
            "graph(%x : Tensor, %m : Tensor):
  %t : bool = prim::Constant[value={flag}]()
  %mean : Tensor = aten::relu(%m)
  %y : Tensor = aten::norm(%x, %mean, %t)
  return (%y)"
        )
    };
    check(&text(0), &["mean !written"]);
    check(&text(1), &["mean written", "y !~ mean"]);
}

#[test]
fn effects_of_subgraphs_are_summarized() {
    let text = "graph(%x : Tensor, %n : int):
  %a : Tensor = aten::relu(%x)
  %b : Tensor = aten::relu(%x)
  %u : Tensor, %v : Tensor, %w : Tensor = prim::DifferentiableGraph_0(%a, %b, %n)
  return (%u)
with prim::DifferentiableGraph_0 = graph(%p : Tensor, %q : Tensor, %k : int):
  %r : Tensor = aten::add_(%p, %q, %k)
  %s : Tensor = aten::relu(%q)
  %t : Tensor = aten::t(%q)
  return (%s, %t, %r)";
    let (g, db) = check(
        text,
        &["a written", "b !written", "u !~ a", "u !~ b", "v ~ b", "v !~ a", "w ~ a", "x !written"],
    );
    assert!(db.writes_to(&g, def(&g, "u"), &[value(&g, "w")]));
}

#[test]
fn moves_include_dependencies() {
    let text = "graph(%x : Tensor, %i : int):
  %a : Tensor = aten::relu(%x)
  %b : Tensor = aten::add_(%a, %x, %i)
  %c : Tensor = aten::tanh(%x)
  %d : Tensor = aten::mul(%c, %b)
  %e : Tensor = aten::tanh(%a)
  return (%d, %e)";
    let mut g = graph(text);
    let db = AliasDb::new(&g);
    let n = |g: &Graph, name: &str| def(g, name);
    // `a` feeds the write, which feeds `e`: they move along.
    let plan = db.plan_move_after(&g, n(&g, "a"), n(&g, "c")).unwrap();
    assert_eq!(plan.steps.len(), 2);
    assert!(db.plan_move_before(&g, n(&g, "e"), n(&g, "b")).is_none(), "e reads what b writes");
    assert!(db.plan_move_after(&g, n(&g, "b"), n(&g, "e")).is_none());
    let up = db.plan_move_before(&g, n(&g, "c"), n(&g, "a")).unwrap();
    assert_eq!(up.steps, [MoveStep::Before { node: n(&g, "c"), next: n(&g, "a") }]);
    let couple = db.plan_couple_move(&g, n(&g, "c"), n(&g, "e")).unwrap();
    plan.apply(&mut g.edit()).unwrap();
    assert_eq!(couple.apply(&mut g.edit()).unwrap_err().made, couple.revision);
    let order: Vec<_> = g.nodes(g.root()).collect();
    assert_eq!(order, ["c", "a", "b", "d", "e"].map(|name| n(&g, name)));
    flambeau_ir::verify::verify(&g).unwrap();
}

#[test]
fn random_numbers_keep_their_order() {
    let g = graph(
        "graph(%s : int[]):
  %a : Tensor = aten::rand(%s)
  %b : Tensor = aten::rand(%s)
  %c : Tensor[] = prim::ListConstruct(%a)
  return (%b, %c)",
    );
    let db = AliasDb::new(&g);
    assert!(db.plan_move_after(&g, def(&g, "a"), def(&g, "b")).is_none());
    assert!(db.plan_move_before(&g, def(&g, "c"), def(&g, "b")).is_some());
}

#[test]
fn errors_keep_their_order_with_writes_that_the_caller_sees() {
    let text = "graph(%x : Tensor, %y : Tensor, %i : int):
  %l : Tensor = aten::relu(%y)
  %a : Tensor = aten::add_(%x, %x, %i)
  %b : Tensor = aten::mm(%y, %y)
  return (%b)";
    let may_pass = |text: &str| {
        let g = graph(text);
        let db = AliasDb::new(&g);
        let (a, b) = (def(&g, "a"), def(&g, "b"));
        (db.plan_move_before(&g, b, a).is_some(), db.plan_move_after(&g, a, b).is_some())
    };
    assert_eq!(may_pass(text), (false, false));
    assert_eq!(
        may_pass(&text.replace("add_(%x", "add_(%l")),
        (true, true),
        "the memory is the program's own"
    );
    assert_eq!(
        may_pass(&text.replace("%b : Tensor = aten::mm(%y, %y)", "%b : Tensor? = prim::Constant()")),
        (true, true),
        "no error"
    );
}

#[test]
fn sets_of_memory() {
    let (g, db) = check(
        "graph(%x : Tensor, %i : int):
  %a : Tensor = aten::relu(%x)
  %b : Tensor = aten::t(%a)
  %c : Tensor = aten::relu(%x)
  %w : Tensor = aten::add_(%b, %c, %i)
  return (%c)",
        &[],
    );
    let mut set = MemorySet::new(&db);
    let v = |name: &str| value(&g, name);
    assert!(set.add(&db, v("b")) && !set.add(&db, v("a")));
    assert!(set.intersects(&db, v("w")) && !set.intersects(&db, v("c")) && !set.intersects(&db, v("x")));
    assert!(set.written_by(&db, def(&g, "w")) && !set.written_by(&db, def(&g, "b")));
    assert!(set.add(&db, v("c")) && set.intersects(&db, v("c")));
}

/// Builds random programs with branches, loops, views, writes, lists and tuples.
pub(super) fn random_graph(random: &mut Random, size: usize) -> Graph {
    let r = registry();
    let op = |name: &str| r.lookup(name).unwrap();
    let mut g = Graph::new(r.clone());
    let mut e = g.edit();
    let mut live: Vec<ValueId> = (0..2).map(|_| e.add_input(Type::TENSOR)).collect();
    let cond = e.add_input(Type::BOOL);
    let n = e.add_input(Type::INT);
    let mut open: Vec<(NodeId, usize)> = Vec::new();
    for _ in 0..size {
        let pick = live[random.below(live.len())];
        let other = live[random.below(live.len())];
        match random.below(12) {
            0..4 => live.push(e.value(op("aten::relu"), &[pick], Type::TENSOR)),
            4 => live.push(e.value(op("aten::t"), &[pick], Type::TENSOR)),
            5 => live.push(e.value(op("aten::add_.Tensor"), &[pick, other, n], Type::TENSOR)),
            6 => {
                let list = e.value(Prim::ListConstruct, &[pick, other], Type::LIST_TENSOR);
                live.push(e.value(op("aten::cat"), &[list, n], Type::TENSOR));
            }
            7 => {
                let list = e.value(Prim::ListConstruct, &[pick], Type::LIST_TENSOR);
                e.value(op("aten::append.t"), &[list, other], Type::LIST_TENSOR);
                live.push(e.value(op("aten::__getitem__.t"), &[list, n], Type::TENSOR));
            }
            8 => {
                let ty = Type::tuple(&[Type::TENSOR, Type::TENSOR]);
                let tuple = e.value(Prim::TupleConstruct, &[pick, other], ty);
                let unpack = e.node(Prim::TupleUnpack, &[tuple], &[Type::TENSOR, Type::TENSOR]);
                live.push(e.graph().result(unpack, random.below(2)));
            }
            9 if open.len() < 4 => {
                let node = e.node(Prim::Loop, &[n, cond, pick, other], &[Type::TENSOR, Type::TENSOR]);
                let body = e.add_block(node);
                e.add_block_input(body, Type::INT);
                open.push((node, live.len()));
                live.push(e.add_block_input(body, Type::TENSOR));
                live.push(e.add_block_input(body, Type::TENSOR));
                e.at(flambeau_ir::At::end(body));
            }
            10 if open.len() < 4 => {
                let node = e.node(Prim::If, &[cond], &[Type::TENSOR]);
                let (taken, not) = (e.add_block(node), e.add_block(node));
                e.add_block_output(not, pick);
                open.push((node, live.len()));
                e.at(flambeau_ir::At::end(taken));
            }
            _ => close(&mut e, &mut open, &mut live, cond, random),
        }
    }
    while !open.is_empty() {
        close(&mut e, &mut open, &mut live, cond, random);
    }
    e.add_output(live[random.below(live.len())]);
    g
}

fn close(
    e: &mut Editor<'_>,
    open: &mut Vec<(NodeId, usize)>,
    live: &mut Vec<ValueId>,
    cond: ValueId,
    random: &mut Random,
) {
    let Some((node, outer)) = open.pop() else { return };
    let body = e.graph().block(node, 0);
    let mut give = |e: &mut Editor<'_>| {
        let v = live[random.below(live.len())];
        e.add_block_output(body, v);
    };
    if e.graph().is_prim(node, Prim::Loop) {
        e.add_block_output(body, cond);
        give(e);
    }
    give(e);
    live.truncate(outer);
    let results: Vec<ValueId> = e.graph().results(node).collect();
    live.extend(results);
    e.at(flambeau_ir::At::after(node));
}

#[test]
fn new_tensors_alias_no_earlier_value() {
    let text = |more: &str| {
        format!(
            "graph(%self : __torch__.M, %x : Tensor, %all : Tensor[]):
  %one : int = prim::Constant[value=1]()
  %w : Tensor = prim::GetAttr[name=\"w\"](%self)
  %list : Tensor[] = prim::GetAttr[name=\"list\"](%self)
  %y : Tensor = aten::add_(%x, %x, %one)
  %m : Tensor = aten::mul(%w, %w)
  %z : Tensor = aten::add_(%m, %m, %one)
  %l : Tensor[] = aten::append(%list, %z)
{more}  %got : Tensor = aten::__getitem__(%all, %one)
  return (%got)"
        )
    };
    // The input may be the attribute; the new tensor is neither; the list element may be any of them.
    let facts = ["x ~ w", "w written", "m !~ w", "m !~ x", "got ~ m", "got ~ w", "m wildcard"];
    check(&text(""), &facts);
    let unwritten = text("").replace("add_(%x", "add(%x");
    check(&unwritten, &["w !written", "x !written", "got written"]);
    // An attribute that is or may be assigned can be the new tensor.
    let assigned = "  = prim::SetAttr[name=\"w\"](%self, %m)\n";
    check(&unwritten.replace("  %got", &format!("{assigned}  %got")), &["w ~ m", "w written", "x !written"]);
    let other = assigned.replace("\"w\"", "\"v\"");
    check(&unwritten.replace("  %got", &format!("{other}  %got")), &["w !~ m", "w !written"]);
    let called = "  %r : Tensor = prim::CallMethod[name=\"f\"](%self, %m)\n";
    check(&unwritten.replace("  %got", &format!("{called}  %got")), &["w ~ m", "w written"]);
}

#[test]
fn updates_report_every_fresh_alias() {
    for seed in 1..60 {
        let mut random = Random(seed * 7919);
        let mut g = random_graph(&mut random, 60);
        let mut all = Analyses::new();
        all.get::<AliasDb>(&g);
        for _ in 0..30 {
            let nodes: Vec<_> = g.nodes_deep().collect();
            let node = nodes[random.below(nodes.len())];
            let relu = registry().lookup("aten::relu").unwrap();
            match random.below(5) {
                0 => {
                    // As in common subexpression elimination.
                    let results: Vec<_> = g.results(node).filter(|&v| g.ty(v) == Type::TENSOR).collect();
                    let inputs: Vec<_> = g.inputs().filter(|&v| g.ty(v) == Type::TENSOR).collect();
                    if let [v] = results[..] {
                        g.edit().replace_all_uses(v, inputs[random.below(inputs.len())]);
                    }
                }
                1 => {
                    if g.results(node).all(|v| g.use_count(v) == 0) && g.block_count(node) == 0 {
                        g.edit().erase(node);
                    }
                }
                2 | 3 => {
                    let operands: Vec<_> = g.operands(node).collect();
                    if let Some(i) = operands.iter().position(|&v| g.ty(v) == Type::TENSOR) {
                        let t = registry().lookup("aten::t").unwrap();
                        let write = registry().lookup("aten::add_.Tensor").unwrap();
                        let n = g.inputs().nth(3).unwrap();
                        let mut e = g.edit();
                        e.at(flambeau_ir::At::before(node));
                        let v = match random.below(3) {
                            0 => e.value(relu, &[operands[i]], Type::TENSOR),
                            1 => e.value(t, &[operands[i]], Type::TENSOR),
                            _ => e.value(write, &[operands[i], operands[i], n], Type::TENSOR),
                        };
                        e.set_operand(node, i, v);
                    }
                }
                _ => {
                    let mut e = g.edit();
                    e.at(flambeau_ir::At::before(node));
                    e.constant(IValue::Int(3));
                }
            }
            all.check(&g).unwrap_or_else(|why| panic!("seed {seed}: {why:?}\n{g}"));
        }
        let stats = all.stats().next().unwrap();
        assert!(stats.kept > stats.rebuilt, "{stats:?}");
    }
}

/// Builds a chain of pointwise nodes with occasional views, writes, lists and branches.
fn large(n: usize, kind: usize) -> Graph {
    let r = registry();
    let op = |name: &str| r.lookup(name).unwrap();
    let (relu, add, t, write) =
        (op("aten::relu"), op("aten::add.Tensor"), op("aten::t"), op("aten::add_.Tensor"));
    let mut g = Graph::new(r.clone());
    let mut e = g.edit();
    let mut v = e.add_input(Type::TENSOR);
    let x = v;
    let cond = e.add_input(Type::BOOL);
    let one = e.constant(IValue::Int(1));
    for i in 0..n {
        v = match (kind, i % 8) {
            (1, 3) => e.value(t, &[v], Type::TENSOR),
            (1, 5) => e.value(write, &[v, x, one], Type::TENSOR),
            (2, _) if i % 4 == 0 => {
                let node = e.node(Prim::If, &[cond], &[Type::TENSOR]);
                for _ in 0..2 {
                    let block = e.add_block(node);
                    e.add_block_output(block, v);
                }
                let inner = e.graph().block(node, 0);
                e.at(flambeau_ir::At::end(inner));
                let y = e.value(relu, &[v], Type::TENSOR);
                let ret = e.graph().ret(inner);
                e.set_operand(ret, 0, y);
                e.at(flambeau_ir::At::after(node));
                e.graph().result(node, 0)
            }
            (3, _) => e.value(t, &[v], Type::TENSOR),
            _ => e.value(
                if i % 2 == 0 { relu } else { add },
                &[v, x, one][..if i % 2 == 0 { 1 } else { 3 }],
                Type::TENSOR,
            ),
        };
    }
    e.add_output(v);
    g
}

#[test]
fn time_is_linear() {
    let most = if cfg!(debug_assertions) { 100_000 } else { 1_000_000 };
    for kind in 0..4 {
        for n in [10, 1_000, 100_000, 1_000_000] {
            if n > most {
                continue;
            }
            let g = large(n, kind);
            let best = (0..3)
                .map(|_| {
                    let start = std::time::Instant::now();
                    let db = AliasDb::new(&g);
                    let took = start.elapsed();
                    assert!(db.may_be_wildcard(g.inputs().next().unwrap()));
                    took
                })
                .min()
                .unwrap();
            println!("kind {kind}: {n} nodes, {:.1} ns a node", best.as_nanos() as f64 / n as f64);
            assert!(best.as_nanos() < 20_000 * n as u128 + 50_000_000, "{n} nodes took {best:?}");
        }
    }
}

#[test]
fn a_hundred_thousand_blocks_deep() {
    let r = registry();
    let (relu, write) = (r.lookup("aten::relu").unwrap(), r.lookup("aten::add_.Tensor").unwrap());
    let mut g = Graph::new(r);
    let mut e = g.edit();
    let (x, cond, one) = (e.add_input(Type::TENSOR), e.add_input(Type::BOOL), e.add_input(Type::INT));
    let mut v = e.value(relu, &[x], Type::TENSOR);
    for i in 0..100_000 {
        let node = e.node(Prim::If, &[cond], &[Type::TENSOR]);
        let (taken, other) = (e.add_block(node), e.add_block(node));
        e.add_block_output(other, v);
        e.at(flambeau_ir::At::start(taken));
        v = e.value(
            if i % 2 == 0 { relu } else { write },
            &[v, x, one][..if i % 2 == 0 { 1 } else { 3 }],
            Type::TENSOR,
        );
        e.add_block_output(taken, v);
        e.at(flambeau_ir::At::after(g_def(&e, v)));
    }
    let db = AliasDb::new(&g);
    assert!(db.has_writers(v) && !db.has_writers(x));
    let shapes = crate::Shapes::new(&g, &db);
    assert!(shapes.tensor(v).is_some());
    assert!(crate::Liveness::new(&g).is_last_use(g.ret(g.parent(g.def(v))), 0));
    let dominance = crate::Dominance::new(&g);
    assert!(dominance.dominates(g.def(x), g.def(v)));
    assert!(WriteOrder::new(&g, &db, &dominance).writes_to(&db, v, 0..u32::MAX));
}

fn g_def(e: &Editor<'_>, v: ValueId) -> NodeId {
    e.graph().def(v)
}

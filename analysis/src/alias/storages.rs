//! Tests of tensors that come to share storages by `set_`, and of constants with shared storages.

use super::*;
use crate::testing::{graph, registry, value};
use flambeau_ir::{Editor, IValue, Prim, Type};
use flambeau_tensor::Tensor;

fn alias(text: &str, pairs: &[(&str, &str, bool)]) {
    let g = graph(text);
    let db = AliasDb::new(&g);
    for &(a, b, expected) in pairs {
        let got = db.may_alias(value(&g, a), value(&g, b));
        assert_eq!(got, expected, "{a} and {b}\n{g}\n{}", db.dump(&g));
    }
}

#[test]
fn set_affects_results_of_branches_and_loops() {
    let through = |value: &str| {
        format!(
            "graph(%x : Tensor, %c : bool, %n : int):
  %one : int = prim::Constant[value=1]()
  %t : Tensor = aten::relu(%x)
  %other : Tensor = aten::relu(%x)
{value}  %s : Tensor = aten::set_(%v, %x)
  %w : Tensor = aten::add_(%x, %one, %one)
  %r : Tensor = aten::relu(%t)
  return (%r)"
        )
    };
    let branch = "  %v : Tensor = prim::If(%c)
    block0():
      -> (%t)
    block1():
      -> (%x)
";
    let carried = "  %v : Tensor = prim::Loop(%n, %c, %x)
    block0(%i : int, %p : Tensor):
      -> (%c, %t)
";
    let list = "  %l : Tensor[] = prim::ListConstruct(%t, %x)
  %v : Tensor = aten::__getitem__(%l, %one)
";
    let tuple = "  %a : (Tensor, Tensor) = prim::TupleConstruct(%t, %x)
  %b : (Tensor, Tensor) = prim::TupleConstruct(%x, %t)
  %l : (Tensor, Tensor) = prim::If(%c)
    block0():
      -> (%a)
    block1():
      -> (%b)
  %v : Tensor, %u : Tensor = prim::TupleUnpack(%l)
";
    let subgraph = "  %v : Tensor = prim::DifferentiableGraph_0(%t, %x)
";
    for text in [branch, carried, list, tuple] {
        let g = graph(&through(text).replace("add_(%x, %one, %one)", "add_(%x, %x, %one)"));
        let db = AliasDb::new(&g);
        let v = |name: &str| value(&g, name);
        assert!(db.may_alias(v("t"), v("x")) && db.has_writers(v("t")), "{g}\n{}", db.dump(&g));
        assert!(!db.may_alias(v("other"), v("x")) && !db.has_writers(v("other")), "{g}\n{}", db.dump(&g));
    }
    let text = through(subgraph).replace("add_(%x, %one, %one)", "add_(%x, %x, %one)")
        + "\nwith prim::DifferentiableGraph_0 = graph(%p : Tensor, %q : Tensor):
  %s : Tensor = aten::set_(%p, %q)
  return (%s)";
    alias(&text, &[("t", "x", true), ("other", "x", false)]);
}

#[test]
fn set_between_local_tensors_aliases_only_them() {
    alias(
        "graph(%x : Tensor):
  %a : Tensor = aten::relu(%x)
  %b : Tensor = aten::relu(%x)
  %c : Tensor = aten::relu(%x)
  %s : Tensor = aten::set_(%a, %b)
  return (%c)",
        &[("a", "b", true), ("a", "c", false), ("a", "x", false), ("b", "x", false)],
    );
}

#[test]
fn unknown_operators_may_call_set() {
    alias(
        "graph(%x : Tensor):
  %k : Tensor = aten::relu(%x)
  %own : Tensor = aten::relu(%x)
  %u : Tensor = aten::mystery(%k)
  return (%u)",
        &[("k", "x", true), ("own", "x", false)],
    );
}

fn numbers() -> Tensor {
    Tensor::from_slice(&[1.0_f32, 2.0], &[2]).unwrap()
}

/// Builds a graph with constants, an input, and the nodes that `more` adds. Returns the constants' values and the
/// input.
fn with_constants(
    constants: &[(IValue, Type)],
    more: impl FnOnce(&mut Editor<'_>, &[ValueId], ValueId),
) -> (Graph, Vec<ValueId>, ValueId) {
    let mut g = Graph::new(registry());
    let mut e = g.edit();
    let x = e.add_input(Type::TENSOR);
    let values: Vec<ValueId> = constants.iter().map(|(c, ty)| e.constant_of(c.clone(), *ty)).collect();
    more(&mut e, &values, x);
    (g, values, x)
}

#[test]
fn constants_with_one_storage_alias() {
    let shared = numbers();
    let pair = Type::tuple(&[Type::TENSOR, Type::INT]);
    let constants = [
        (IValue::Tensor(shared.clone()), Type::TENSOR),
        (IValue::Tensor(shared.alias()), Type::TENSOR),
        (IValue::tuple(vec![IValue::Tensor(shared.clone()), IValue::Int(1)]), pair),
        (IValue::Tensor(numbers()), Type::TENSOR),
        (IValue::list(Type::TENSOR, vec![IValue::Tensor(shared)]), Type::LIST_TENSOR),
    ];
    let write = registry().lookup("aten::add_.Tensor").unwrap();
    // A list and its members are visible outside, but a tensor with another storage is not.
    for count in [4, 5] {
        let (g, c, x) = with_constants(&constants[..count], |e, c, _| {
            let one = e.constant(IValue::Int(1));
            let unpacked = e.node(Prim::TupleUnpack, &[c[2]], &[Type::TENSOR, Type::INT]);
            let item = e.graph().result(unpacked, 0);
            e.value(write, &[item, item, one], Type::TENSOR);
        });
        let db = AliasDb::new(&g);
        let dump = db.dump(&g);
        assert!(db.may_alias(c[0], c[1]) && db.may_contain_alias(c[0], c[2]), "{dump}");
        assert!((0..3).all(|i| db.has_writers(c[i])), "{dump}");
        assert!(!db.may_alias(c[0], c[3]), "{dump}");
        if let Some(&list) = c.get(4) {
            assert!(db.may_contain_alias(c[0], list) && db.may_contain_alias(c[2], list), "{dump}");
            assert!(db.has_writers(list), "{dump}");
        }
        // The input may be any of the constants, and is written together with them.
        assert!(db.may_alias(x, c[3]) && db.may_alias(x, c[0]) && db.has_writers(x), "{dump}");
    }
}

#[test]
fn writes_to_inputs_count_for_constants() {
    let ints = Type::list(Type::INT);
    let constants = [
        (IValue::Tensor(numbers()), Type::TENSOR),
        (IValue::Tensor(numbers()), Type::TENSOR),
        (IValue::ints(vec![1, 2]), ints),
    ];
    let (write, relu) =
        (registry().lookup("aten::add_.Tensor").unwrap(), registry().lookup("aten::relu").unwrap());
    for writes in [false, true] {
        let (g, c, x) = with_constants(&constants, |e, c, x| {
            let one = e.constant(IValue::Int(1));
            if writes {
                e.value(write, &[x, x, one], Type::TENSOR);
            }
            let r = e.value(relu, &[c[0]], Type::TENSOR);
            e.add_output(r);
            e.add_output(x);
        });
        let db = AliasDb::new(&g);
        assert_eq!(db.has_writers(c[0]), writes);
        assert!(!db.may_alias(c[0], c[1]) && db.may_alias(c[0], x) && !db.has_writers(c[2]));
        let mut set = MemorySet::new(&db);
        set.add(&db, x);
        assert!(set.intersects(&db, c[0]) && !set.intersects(&db, c[2]));
        if writes {
            assert!(g.nodes(g.root()).any(|n| db.writes_to(&g, n, &[c[0]])));
        }
    }
}

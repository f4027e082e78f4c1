//! Tests of rules on symbolic and actual operands.

use super::*;
use flambeau_ir::{IValue, Type};
use flambeau_tensor::DType;
use std::borrow::Cow;

fn tensor(dtype: Option<DType>, dims: &[Dim]) -> OperandFact<'static> {
    let fact = Fact::Tensor(TensorFact::contiguous(dims.iter().copied()).with_dtype(dtype));
    OperandFact { fact: Cow::Owned(fact), ty: Type::TENSOR, constant: None }
}

fn value(v: IValue) -> OperandFact<'static> {
    OperandFact::of(&v)
}

fn known(dims: &[i64]) -> Vec<Dim> {
    dims.iter().map(|&n| Dim::Known(n)).collect()
}

fn dims_of(shape: &ResultShapes, operands: Vec<OperandFact<'_>>, symbols: &mut Symbols) -> Option<Dims> {
    let mut cx = ShapeCx::new(None, operands, symbols);
    shape.result(0, &mut cx)?.as_tensor()?.dims.clone()
}

#[test]
fn broadcasting() {
    let mut s = Symbols::new();
    let b = s.fresh(Range::SIZE);
    let shape = ResultShapes::broadcast([0, 1]);
    let x = tensor(None, &[b, Dim::Known(1), Dim::Known(4)]);
    let y = tensor(None, &known(&[3, 1]));
    let dims = dims_of(&shape, vec![x.clone(), y], &mut s).unwrap();
    assert_eq!(dims[..], [b, Dim::Known(3), Dim::Known(4)]);
    let dims = dims_of(&shape, vec![x.clone(), value(IValue::Int(2))], &mut s).unwrap();
    assert_eq!(dims.len(), 3);
    assert_eq!(dims_of(&shape, vec![x, tensor(None, &known(&[3]))], &mut s), None);
}

#[test]
fn reducing() {
    let mut s = Symbols::new();
    let shape = ResultShapes::reduce(1, 2);
    let x = || tensor(None, &known(&[2, 3, 4]));
    let run = |dim: IValue, keep: bool, s: &mut Symbols| {
        dims_of(&shape, vec![x(), value(dim), value(IValue::Bool(keep))], s).unwrap().to_vec()
    };
    assert_eq!(run(IValue::ints(vec![-1]), false, &mut s), known(&[2, 3]));
    assert_eq!(run(IValue::ints(vec![0, 2]), true, &mut s), known(&[1, 3, 1]));
    assert_eq!(run(IValue::Int(0), false, &mut s), known(&[3, 4]));
    assert_eq!(run(IValue::None, false, &mut s), known(&[]));
    assert_eq!(run(IValue::ints(vec![]), true, &mut s), known(&[1, 1, 1]));
}

#[test]
fn multiplying() {
    let mut s = Symbols::new();
    let b = s.fresh(Range::SIZE);
    let shape = ResultShapes::matmul(0, 1);
    let mut run = |x: &[Dim], y: &[Dim]| dims_of(&shape, vec![tensor(None, x), tensor(None, y)], &mut s);
    assert_eq!(run(&[b, Dim::Known(3)], &known(&[3, 5])).unwrap()[..], [b, Dim::Known(5)]);
    assert_eq!(run(&known(&[3]), &known(&[3])).unwrap()[..], []);
    assert_eq!(run(&known(&[7, 1, 2, 3]), &known(&[4, 3, 5])).unwrap().to_vec(), known(&[7, 4, 2, 5]));
    assert_eq!(run(&known(&[2, 3]), &known(&[3])).unwrap().to_vec(), known(&[2]));
    assert_eq!(run(&known(&[2, 3]), &known(&[4, 5])), None);
}

#[test]
fn reshaping() {
    let mut s = Symbols::new();
    let b = s.fresh(Range::SIZE);
    let shape = ResultShapes::reshape(1);
    let ask = |list: Vec<Dim>| OperandFact {
        fact: Cow::Owned(Fact::List(list.into_iter().map(Fact::Int).collect())),
        ty: Type::LIST_INT,
        constant: None,
    };
    let x = || tensor(None, &[b, Dim::Known(2), Dim::Known(6)]);
    let dims = dims_of(&shape, vec![x(), ask(vec![b, Dim::Known(-1)])], &mut s).unwrap();
    assert_eq!(dims[..], [b, Dim::Known(12)]);
    let dims = dims_of(&shape, vec![x(), ask(known(&[-1, 12]))], &mut s).unwrap();
    assert_eq!(dims[..], [b, Dim::Known(12)]);
    let flat = ResultShapes::flatten(1, 2);
    let dims = dims_of(&flat, vec![x(), value(IValue::Int(1)), value(IValue::Int(-1))], &mut s).unwrap();
    assert_eq!(dims[..], [b, Dim::Known(12)]);
}

#[test]
fn slicing() {
    let mut s = Symbols::new();
    let b = s.fresh(Range::SIZE);
    let shape = ResultShapes::slice(1, 2, 3, 4);
    let int = |n: i64| value(IValue::Int(n));
    let mut run = |dim: i64, from: OperandFact<'static>, to: OperandFact<'static>, step: i64| {
        let x = tensor(None, &[b, Dim::Known(10)]);
        dims_of(&shape, vec![x, int(dim), from, to, int(step)], &mut s).unwrap()
    };
    assert_eq!(run(1, int(-3), value(IValue::None), 1)[..], [b, Dim::Known(3)]);
    assert_eq!(run(1, int(1), int(100), 4)[..], [b, Dim::Known(3)]);
    assert_eq!(run(0, int(0), int(i64::MAX), 1)[..], [b, Dim::Known(10)]);
    assert!(matches!(run(0, int(0), int(4), 1)[0], Dim::Sym(_)));
}

#[test]
fn lists_of_tensors() {
    let mut s = Symbols::new();
    let chunk = ResultShapes::chunk(1, 2);
    let operands = vec![tensor(None, &known(&[2, 7])), value(IValue::Int(3)), value(IValue::Int(1))];
    let fact = chunk.result(0, &mut ShapeCx::new(None, operands, &mut s)).unwrap();
    let Fact::List(parts) = &fact else { panic!("{fact:?}") };
    let widths: Vec<_> = parts.iter().map(|p| p.as_tensor().unwrap().dims.as_ref().unwrap()[1]).collect();
    assert_eq!(widths, known(&[3, 3, 1]));
    let list = OperandFact { fact: Cow::Owned(fact), ty: Type::LIST_TENSOR, constant: None };
    let cat = ResultShapes::cat(0, 1);
    assert_eq!(dims_of(&cat, vec![list, value(IValue::Int(-1))], &mut s).unwrap().to_vec(), known(&[2, 7]));
}

#[test]
fn promoting() {
    let mut s = Symbols::new();
    let dtype = Dtype::promote([0, 1]);
    let mut run = |a: OperandFact<'static>, b: OperandFact<'static>| {
        let cx = ShapeCx::new(None, vec![a, b], &mut s);
        dtype.result(0, &cx)
    };
    let (i, f) = (tensor(Some(DType::I64), &known(&[2])), tensor(Some(DType::F32), &[]));
    assert_eq!(run(i.clone(), f.clone()), Some(DType::F32));
    assert_eq!(run(i.clone(), value(IValue::Float(1.0))), Some(DType::F32));
    assert_eq!(run(i.clone(), value(IValue::Bool(true))), Some(DType::I64));
    let open = |d| OperandFact {
        fact: Cow::Owned(Fact::Tensor(TensorFact::default().with_dtype(Some(d)))),
        ty: Type::TENSOR,
        constant: None,
    };
    assert_eq!(run(open(DType::F64), open(DType::F32)), None, "depends on which one has no dimensions");
    assert_eq!(run(open(DType::F32), open(DType::F32)), Some(DType::F32));
    assert_eq!(run(open(DType::I32), f), Some(DType::F32));
    assert_eq!(Dtype::sum_of(0).result(0, &ShapeCx::new(None, [i], &mut s)), Some(DType::I64));
}

#[test]
fn lattice() {
    let mut s = Symbols::new();
    let a = Fact::Tensor(TensorFact::contiguous(known(&[2, 3])).with_dtype(Some(DType::F32)));
    let b = Fact::Tensor(TensorFact::contiguous(known(&[5, 3])).with_dtype(Some(DType::F64)));
    let Fact::Tensor(joined) = a.join(&b, &mut s) else { panic!() };
    let dims = joined.dims.unwrap();
    assert_eq!((dims[1], joined.dtype), (Dim::Known(3), None));
    assert_eq!(s.range(dims[0]), Range { min: 2, max: 5 });
    assert_eq!(Fact::any_tensor().meet(&a), a);
    let list = Fact::List(vec![Fact::Int(Dim::Known(1)), Fact::Int(Dim::Known(2))]);
    assert_eq!(list.element(), Some(Fact::Int(Dim::Unknown)));
    let refined = a.refine(Type::TENSOR);
    assert_eq!(Fact::of_type(refined), a);
    assert_eq!(a.refine(Type::OPTIONAL_TENSOR), refined);
}

mod programs {
    use super::*;
    use crate::alias::AliasDb;
    use crate::cache::Analyses;
    use crate::testing::{graph, registry, value};
    use flambeau_ir::{Editor, Graph, Prim};

    fn report(text: &str) -> String {
        let g = graph(text);
        Shapes::new(&g, &AliasDb::new(&g)).report(&g)
    }

    #[test]
    fn sizes_flow_through_branches_lists_and_views() {
        let text = report(
            "graph(%x : Float(SS(-7), 4, strides=[4, 1], requires_grad=0, device=cpu), %w : Float(4, 6, device=cpu), %p : bool):
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %m : Tensor = aten::mm(%x, %w)
  %r : Tensor = aten::relu(%m)
  %n : int = aten::size(%r, %zero)
  %k : int = aten::mul(%n, %one)
  %l : Tensor[] = prim::ListConstruct(%r, %m)
  %c : Tensor = aten::cat(%l, %one)
  %minus : int = prim::Constant[value=-1]()
  %s : int[] = prim::ListConstruct(%k, %minus, %one)
  %v : Tensor = aten::view(%c, %s)
  %b : Tensor = prim::If(%p)
    block0():
      -> (%m)
    block1():
      %t : Tensor = aten::t(%w)
      -> (%t)
  return (%v, %b)",
        );
        let want = "\
%x : Float(s0, 4) contiguous cpu no_grad
%w : Float(4, 6) cpu
%p : bool
%zero : int = 0
%one : int = 1
%m : Float(s0, 6) contiguous cpu
%r : Float(s0, 6) contiguous cpu
%n : int = s0
%k : int = s0
%l : [Float(s0, 6) contiguous cpu, Float(s0, 6) contiguous cpu]
%c : Float(s0, 12) cpu
%minus : int = -1
%s : [s0, -1, 1]
%v : Float(s0, 12, 1) cpu
%b : Float(s1, s2) cpu
  %t : Float(6, 4) cpu
where s0 >= 0
where s1 >= 0
where 4 <= s2 <= 6
";
        assert_eq!(text, want, "{text}");
    }

    #[test]
    fn loops_widen_only_changing_facts() {
        let text = "graph(%x : Float(2, 3, device=cpu), %n : int):
  %t : bool = prim::Constant[value=1]()
  %zero : int = prim::Constant[value=0]()
  %a : Tensor, %b : Tensor, %c : int = prim::Loop(%n, %t, %x, %x, %zero)
    block0(%i : int, %p : Tensor, %q : Tensor, %k : int):
      %l : Tensor[] = prim::ListConstruct(%p, %x)
      %p2 : Tensor = aten::cat(%l, %zero)
      %q2 : Tensor = aten::relu(%q)
      %k2 : int = aten::size(%p2, %zero)
      -> (%t, %p2, %q2, %k2)
  return (%a, %b, %c)";
        let g = graph(text);
        let shapes = Shapes::new(&g, &AliasDb::new(&g));
        let dims = |name: &str| shapes.tensor(value(&g, name)).unwrap().dims.clone().unwrap();
        assert_eq!(dims("b").to_vec(), known(&[2, 3]));
        assert_eq!(dims("q").to_vec(), known(&[2, 3]));
        for name in ["a", "p", "p2"] {
            assert!(matches!(dims(name)[..], [Dim::Sym(_), Dim::Known(3)]), "{}", shapes.report(&g));
        }
        assert_ne!(dims("a")[0], dims("p")[0]);
        assert_ne!(dims("p2")[0], dims("p")[0]);
        assert!(matches!(shapes.fact(value(&g, "c")), Fact::Int(Dim::Sym(_))));
        let refined = shapes.refined_type(&g, value(&g, "b"));
        assert_eq!(refined.as_tensor().unwrap().concrete_sizes(), Some(vec![2, 3]));
    }

    #[test]
    fn resizable_tensors_have_unknown_sizes() {
        let text = report(
            "graph(%x : Float(2, 3), %s : int[]):
  %one : int = prim::Constant[value=1]()
  %a : Tensor = aten::relu(%x)
  %b : Tensor = aten::add_(%a, %x, %one)
  %c : Tensor = aten::relu(%x)
  %d : Tensor = aten::t(%c)
  %e : Tensor = aten::resize_(%d, %s)
  %l : Tensor[] = prim::ListConstruct(%a)
  %m : Tensor[] = aten::append(%l, %b)
  return (%e, %m)",
        );
        assert!(text.contains("%b : Float(2, 3)"), "{text}");
        assert!(text.contains("%c : Float(*)") && text.contains("%d : Float(*)"), "{text}");
        assert!(text.contains("%l : Tensor(*)[]"), "{text}");
    }

    #[test]
    fn deep_loops_end_and_stay_linear() {
        let mut g = Graph::new(registry());
        let relu = registry().lookup("aten::relu").unwrap();
        let mut e = g.edit();
        let (x, n, t) = (e.add_input(Type::TENSOR), e.add_input(Type::INT), e.add_input(Type::BOOL));
        let mut carried = x;
        for _ in 0..2_000 {
            let node = e.node(Prim::Loop, &[n, t, carried], &[Type::TENSOR]);
            let body = e.add_block(node);
            e.add_block_input(body, Type::INT);
            carried = e.add_block_input(body, Type::TENSOR);
            e.at(flambeau_ir::At::end(body));
            let r = e.value(relu, &[carried], Type::TENSOR);
            e.add_block_output(body, t);
            e.add_block_output(body, r);
            e.at(flambeau_ir::At::start(body));
        }
        let db = AliasDb::new(&g);
        let fact = Fact::Tensor(TensorFact::of_dims(known(&[2])));
        let shapes = Shapes::with_inputs(&g, &db, vec![fact.clone()]);
        assert_eq!(shapes.fact(x), &fact);
    }

    #[test]
    fn updates_drop_facts_of_edited_values() {
        let mut g = graph(
            "graph(%x : Float(2, 3)):
  %a : Tensor = aten::relu(%x)
  return (%a)",
        );
        let mut all = Analyses::new();
        all.get::<Shapes>(&g);
        let relu = registry().lookup("aten::relu").unwrap();
        let new = |e: &mut Editor<'_>, x| e.value(relu, &[x], Type::TENSOR);
        let x = g.inputs().next().unwrap();
        let v = new(&mut g.edit(), x);
        all.check(&g).unwrap();
        assert_eq!(all.get::<Shapes>(&g).fact(v), &Fact::Unknown);
        let old = value(&g, "a");
        g.edit().replace_all_uses(old, v);
        let shapes = all.get::<Shapes>(&g);
        assert!(shapes.tensor(v).unwrap().dims.is_some());
        assert_eq!(shapes.tensor(v).unwrap().dims, shapes.tensor(x).unwrap().dims);
    }
}

#[test]
fn windows_and_their_inverse() {
    let mut s = Symbols::new();
    let n = s.fresh(Range::SIZE);
    let k = Dim::Known;
    assert_eq!(s.windows(n, k(3), k(1), k(1), k(1)), n, "what keeps a size is the size");
    assert_eq!(s.windows(k(7), k(3), k(2), k(1), k(1)), k(4));
    assert_eq!(s.windows(k(9), k(3), k(1), k(0), k(2)), k(5));
    let halved = s.windows(n, k(2), k(2), k(0), k(1));
    assert_eq!(halved, s.floor_div(n, k(2)));
    assert_eq!(s.spread(n, k(2), k(2), k(0), k(1)), s.mul(n, k(2)));
    assert_eq!(s.spread(k(4), k(3), k(2), k(1), k(1)), k(7));
    assert_eq!(s.windows(n, Dim::Unknown, k(1), k(1), k(1)), Dim::Unknown);
}

#[test]
fn batched_matrices() {
    let mut s = Symbols::new();
    let (b, n) = (s.fresh(Range::SIZE), s.fresh(Range::SIZE));
    let values = ResultShapes::per_matrix(0, |cx, m, n| [cx.symbols.min(m, n)]);
    let x = || tensor(None, &[b, Dim::Known(3), Dim::Known(5)]);
    assert_eq!(dims_of(&values, vec![x()], &mut s).unwrap()[..], [b, Dim::Known(3)]);
    assert_eq!(dims_of(&values, vec![tensor(None, &known(&[3]))], &mut s), None);
    let solved = ResultShapes::matrices_with(1, 0);
    let right = tensor(None, &[Dim::Known(7), Dim::Known(1), n, Dim::Known(2)]);
    let dims = dims_of(&solved, vec![x(), right], &mut s).unwrap();
    assert_eq!(dims[..], [Dim::Known(7), b, n, Dim::Known(2)]);
}

#[test]
fn shapes_selected_by_flags() {
    let mut s = Symbols::new();
    let n = s.fresh(Range::SIZE);
    let x = || tensor(None, &[n, Dim::Known(4)]);
    let wanted = ResultShapes::wanted(1, ResultShapes::dims(|cx| Some([cx.size(0, 0)])));
    let flag = |b: bool| value(IValue::Bool(b));
    assert_eq!(dims_of(&wanted, vec![x(), flag(true)], &mut s).unwrap()[..], [n]);
    assert_eq!(dims_of(&wanted, vec![x(), flag(false)], &mut s).unwrap()[..], [Dim::Known(0)]);
    let open = OperandFact { fact: Cow::Owned(Fact::Unknown), ty: Type::BOOL, constant: None };
    assert_eq!(dims_of(&wanted, vec![x(), open], &mut s).unwrap().len(), 1);
    let loss = ResultShapes::loss(1, ResultShapes::same_as(0));
    assert_eq!(dims_of(&loss, vec![x(), value(IValue::Int(0))], &mut s).unwrap().len(), 2);
    assert_eq!(dims_of(&loss, vec![x(), value(IValue::Int(2))], &mut s).unwrap().len(), 0);
}

#[test]
fn formats_and_defaults() {
    let text = "t::copy(Tensor self, bool dense=True, *, MemoryFormat? memory_format=None) -> Tensor";
    let schema = flambeau_ir::FunctionSchema::parse(text).unwrap();
    let mut s = Symbols::new();
    let mut strides = |format: Option<i64>| {
        let mut operands = vec![tensor(None, &known(&[2, 3]))];
        if let Some(format) = format {
            operands.extend([value(IValue::Bool(false)), value(IValue::Int(format))]);
        }
        let mut cx = ShapeCx::new(Some(&schema), operands, &mut s);
        assert_eq!(cx.bool("dense"), Some(format.is_none()), "an omitted argument has its default");
        ResultShapes::same_as(0).result(0, &mut cx).unwrap().as_tensor().unwrap().strides
    };
    assert_eq!(strides(None), Strides::Contiguous);
    assert_eq!(strides(Some(0)), Strides::Contiguous);
    assert_eq!(strides(Some(2)), Strides::Unknown, "channels last");
}

#[test]
fn resized_spatial_dimensions() {
    let mut s = Symbols::new();
    let b = s.fresh(Range::SIZE);
    let shape = ResultShapes::resized(2, 1);
    let x = || tensor(None, &[b, Dim::Known(3), Dim::Known(8), Dim::Known(9)]);
    let mut to = |sizes: Vec<i64>| dims_of(&shape, vec![x(), value(IValue::ints(sizes))], &mut s).unwrap();
    assert_eq!(to(vec![5])[..], [b, Dim::Known(3), Dim::Known(5), Dim::Known(5)]);
    assert_eq!(to(vec![5, 6])[..], [b, Dim::Known(3), Dim::Known(5), Dim::Known(6)]);
    let negative = dims_of(&shape, vec![x(), value(IValue::ints(vec![-1]))], &mut s);
    assert_eq!(negative, None, "the node fails when it runs");
}

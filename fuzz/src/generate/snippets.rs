//! Fragments that passes match and that random single operators would rarely form: a tree of matrix products, a
//! normalized convolution, gradient formulas. Each is a graph whose inputs the generator fills with available values.
//! Fragments with operators that a registry does not have are omitted.

use flambeau_ir::text::parse_graph;
use flambeau_ir::{Graph, OpKind, Registry, Source};
use std::sync::Arc;

/// A fragment.
pub(super) struct SourceFragment {
    registry: Arc<Registry>,
    source: Arc<Source>,
    /// The fragment; programs use copies made by [`SourceFragment::fresh`].
    pub(super) graph: Graph,
}

impl SourceFragment {
    fn read(text: &str, registry: &Arc<Registry>) -> Option<SourceFragment> {
        let source = Source::new("snippet.ir", text);
        let graph = parse_graph(&source, registry).ok()?;
        let known = graph.nodes_deep().all(|n| !matches!(graph.op(n).kind(), OpKind::Unknown(_)));
        known.then(|| SourceFragment { registry: Arc::clone(registry), source, graph })
    }

    /// Returns the fragment with its own copies of constants, which the program may write.
    pub(super) fn fresh(&self) -> Graph {
        parse_graph(&self.source, &self.registry).unwrap_or_else(|_| self.graph.clone())
    }
}

/// Returns the fragments whose operators the registry has.
pub(super) fn of(registry: &Arc<Registry>) -> Vec<SourceFragment> {
    TEXTS.iter().filter_map(|text| SourceFragment::read(text, registry)).collect()
}

const TEXTS: &[&str] = &[
    // An optional number that a branch returns, and that is tested.
    "graph(%n : int, %m : int):
  %none : NoneType = prim::Constant()
  %c : bool = aten::gt(%n, %m)
  %x : int? = prim::If(%c)
    block0():
      -> (%n)
    block1():
      -> (%none)
  %is : bool = aten::__isnot__(%x, %none)
  %r : int = prim::If(%is)
    block0():
      %k : int = prim::unchecked_cast(%x)
      -> (%k)
    block1():
      -> (%m)
  return (%r)
",
    // A sum of matrix products.
    "graph(%a : Tensor, %b : Tensor):
  %1 : int = prim::Constant[value=1]()
  %p : Tensor = aten::mm(%a, %b)
  %q : Tensor = aten::mm(%b, %a)
  %r : Tensor = aten::mm(%a, %a)
  %s : Tensor = aten::mm(%b, %b)
  %t : Tensor = aten::add(%p, %q, %1)
  %u : Tensor = aten::add(%t, %r, %1)
  %v : Tensor = aten::add(%u, %s, %1)
  return (%v)
",
    // Matrix products that share a side.
    "graph(%a : Tensor, %b : Tensor, %c : Tensor):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %p : Tensor = aten::mm(%a, %b)
  %q : Tensor = aten::mm(%a, %c)
  %n : Tensor = aten::neg(%b)
  %r : Tensor = aten::mm(%a, %n)
  %s : Tensor = aten::mm(%a, %a)
  return (%p, %q, %r, %s)
",
    // A convolution that is normalized by running statistics.
    "graph(%a : Tensor):
  %mean : Tensor = prim::Constant[value=tensor(float32, [2], [1], \"0000803f000080bf\")]()
  %var : Tensor = prim::Constant[value=tensor(float32, [2], [1], \"0000404000000000\")]()
  %gain : Tensor = prim::Constant[value=tensor(float32, [2], [1], \"000000400000003f\")]()
  %shift : Tensor = prim::Constant[value=tensor(float32, [2], [1], \"0000803e000080c0\")]()
  %w : Tensor = prim::Constant[value=tensor(float32, [2, 1, 1, 1], [1, 1, 1, 1], \"0000803f000000c0\")]()
  %none : NoneType = prim::Constant()
  %no : bool = prim::Constant[value=0]()
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %two : int = prim::Constant[value=2]()
  %six : int = prim::Constant[value=6]()
  %m : float = prim::Constant[value=0.1]()
  %e : float = prim::Constant[value=1.]()
  %sizes : int[] = prim::ListConstruct(%one, %one, %two, %one)
  %i1 : int[] = prim::ListConstruct(%one, %one)
  %i0 : int[] = prim::ListConstruct(%zero, %zero)
  %f : Tensor = aten::to(%a, %six, %no, %no, %none)
  %s : Tensor = aten::sum(%f, %none)
  %x : Tensor = aten::full(%sizes, %m, %none, %none, %none, %none)
  %y : Tensor = aten::add(%x, %s, %one)
  %c : Tensor = aten::conv2d(%y, %w, %none, %i1, %i0, %i1, %one)
  %n : Tensor = aten::batch_norm(%c, %gain, %shift, %mean, %var, %no, %m, %e, %no)
  return (%n)
",
    // Chunks of known number.
    "graph(%a : Tensor):
  %0 : int = prim::Constant[value=0]()
  %2 : int = prim::Constant[value=2]()
  %l : Tensor[] = prim::ListConstruct(%a, %a)
  %c : Tensor = aten::cat(%l, %0)
  %p : Tensor[] = aten::chunk(%c, %2, %0)
  %x : Tensor, %y : Tensor = prim::ListUnpack(%p)
  %s : Tensor = aten::sigmoid(%x)
  %t : Tensor = aten::tanh(%y)
  %u : Tensor = aten::mul(%s, %t)
  return (%u)
",
    // Numbers that are written.
    "graph(%a : Tensor, %x : float, %i : int):
  %no : bool = prim::Constant[value=0]()
  %none : NoneType = prim::Constant()
  %six : int = prim::Constant[value=6]()
  %seven : int = prim::Constant[value=7]()
  %half : float = prim::Constant[value=0.5]()
  %big : float = prim::Constant[value=1e+39]()
  %many : int = prim::Constant[value=100]()
  %c : Tensor = prim::Constant[value=tensor(float64, [], [], \"000000000000e0bf\")]()
  %d : int = prim::dtype(%a)
  %e : Device = prim::device(%a)
  %t : Tensor = aten::tensor(%half, %d, %e, %no)
  %v : Tensor = aten::copy_(%a, %t, %no)
  %f : Tensor = aten::to(%a, %six, %no, %no, %none)
  %g : int = prim::dtype(%f)
  %u : Tensor = aten::tensor(%x, %g, %e, %no)
  %w : Tensor = aten::copy_(%f, %u, %no)
  %o : Tensor = aten::tensor(%big, %g, %e, %no)
  %q : Tensor = aten::copy_(%f, %o, %no)
  %h : Tensor = aten::tensor(%many, %d, %e, %no)
  %p : Tensor = aten::neg_(%h)
  %y : Tensor = aten::copy_(%a, %h, %no)
  %j : Tensor = aten::tensor(%i, %d, %e, %no)
  %z : Tensor = aten::copy_(%a, %j, %no)
  %k : Tensor = aten::to(%a, %seven, %no, %no, %none)
  %l : Tensor = aten::copy_(%k, %c, %no)
  return (%f, %k)
",
    // A constant tensor that stands for a number.
    "graph(%a : Tensor):
  %1 : int = prim::Constant[value=1]()
  %c : Tensor = prim::Constant[value=tensor(float64, [], [], \"000000000000e03f\")]()
  %x : Tensor = aten::mul(%a, %c)
  %y : Tensor = aten::add(%x, %c, %1)
  return (%y)
",
    // Gradients that may be undefined.
    "graph(%a : Tensor, %b : Tensor):
  %z : Tensor = prim::AutogradZero()
  %s : Tensor = prim::AutogradAdd(%a, %z)
  %n : Tensor = prim::GradOf[name=\"aten::mul\"](%s)
    block0():
      %p : Tensor = aten::mul(%s, %b)
      -> (%p)
  %t : Tensor = prim::AutogradAdd(%n, %b)
  return (%t)
",
    // An integer that is known in one branch.
    "graph(%i : int, %a : Tensor):
  %1 : int = prim::Constant[value=1]()
  %2 : int = prim::Constant[value=2]()
  %c : bool = aten::eq(%i, %2)
  %r : Tensor = prim::If(%c)
    block0():
      %j : int = aten::add(%i, %1)
      %x : Tensor = aten::add(%a, %j, %i)
      -> (%x)
    block1():
      -> (%a)
  return (%r)
",
    // A linear layer in parts, and its whole.
    "graph(%x : Tensor, %w : Tensor, %b : Tensor):
  %1 : int = prim::Constant[value=1]()
  %t : Tensor = aten::t(%w)
  %y : Tensor = aten::addmm(%b, %x, %t, %1, %1)
  %m : Tensor = aten::mm(%x, %t)
  %z : Tensor = aten::add(%m, %y, %1)
  %l : Tensor = aten::linear(%x, %w, %b)
  return (%y, %z, %l)
",
    // Expansion to the sizes that a tensor has.
    "graph(%a : Tensor):
  %no : bool = prim::Constant[value=0]()
  %s : int[] = aten::size(%a)
  %e : Tensor = aten::expand(%a, %s, %no)
  %r : Tensor = aten::mul(%e, %a)
  return (%r)
",
    "graph():
  %three : int = prim::Constant[value=3]()
  %no : bool = prim::Constant[value=0]()
  %none : NoneType = prim::Constant()
  %s : int[] = prim::ListConstruct(%three, %three)
  %x : Tensor = aten::ones(%s, %none, %none, %none, %none)
  %e : Tensor = aten::expand(%x, %s, %no)
  return (%e)
",
    // A chain of pointwise operators that can be differentiated, activated at the end.
    "graph(%a : Tensor, %b : Tensor):
  %1 : int = prim::Constant[value=1]()
  %p : Tensor = aten::mul(%a, %b)
  %q : Tensor = aten::sigmoid(%p)
  %r : Tensor = aten::tanh(%q)
  %s : Tensor = aten::add(%r, %p, %1)
  %t : Tensor = aten::relu(%s)
  return (%t)
",
    // A write of memory that nothing else shares, and a list that grows.
    "graph(%a : Tensor, %b : Tensor):
  %1 : int = prim::Constant[value=1]()
  %p : Tensor = aten::mul(%a, %b)
  %q : Tensor = aten::add_(%p, %b, %1)
  %l : Tensor[] = prim::ListConstruct(%p)
  %m : Tensor[] = aten::append(%l, %q)
  %n : int = aten::len(%l)
  %c : Tensor = aten::stack(%l, %n)
  return (%q, %l)
",
    // Activations in place, of memory that nothing else shares.
    "graph(%a : Tensor, %b : Tensor):
  %p : Tensor = aten::mul(%a, %b)
  %q : Tensor = aten::relu_(%p)
  %n : Tensor = aten::neg(%q)
  %t : Tensor = aten::tanh_(%n)
  return (%t)
",
    // The same before and after a write.
    "graph(%a : Tensor, %b : Tensor):
  %1 : int = prim::Constant[value=1]()
  %p : Tensor = aten::mul(%a, %b)
  %w : Tensor = aten::add_(%a, %b, %1)
  %q : Tensor = aten::mul(%a, %b)
  return (%p, %q)
",
    // A read of one tensor after a write of another, which may share its memory.
    "graph(%a : Tensor, %b : Tensor):
  %1 : int = prim::Constant[value=1]()
  %w : Tensor = aten::add_(%a, %1, %1)
  %r : Tensor = aten::neg(%b)
  return (%r)
",
    // Identity operands: of another element type, and of the other sign.
    "graph(%a : Tensor):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %f : float = prim::Constant[value=1.]()
  %o : Tensor = aten::mul(%a, %f)
  %z : Tensor = aten::add(%a, %0, %1)
  return (%o, %z)
",
    // A task and its wait.
    "graph(%a : Tensor):
  %f : Future(Tensor) = prim::fork_0(%a)
  %r : Tensor = aten::wait(%f)
  return (%r)
with prim::fork_0 = graph(%x : Tensor):
  %y : Tensor = aten::neg(%x)
  return (%y)
",
    // Two tasks on a tensor that is written before they are awaited.
    "graph(%a : Tensor, %b : Tensor):
  %1 : int = prim::Constant[value=1]()
  %f : Future(Tensor) = prim::fork_0(%a)
  %g : Future(Tensor) = prim::fork_1(%a, %b)
  %n : Tensor = aten::neg(%b)
  %w : Tensor = aten::add_(%a, %1, %1)
  %p : Tensor = aten::wait(%g)
  %q : Tensor = aten::wait(%f)
  return (%p, %q, %n)
with prim::fork_0 = graph(%x : Tensor):
  %1 : int = prim::Constant[value=1]()
  %y : Tensor = aten::neg(%x)
  %z : Tensor = aten::add_(%y, %x, %1)
  return (%z)
with prim::fork_1 = graph(%x : Tensor, %b : Tensor):
  %y : Tensor = aten::mul(%x, %b)
  return (%y)
",
    // A chain of tasks that a loop starts, and a list of their futures.
    "graph(%a : Tensor):
  %0 : int = prim::Constant[value=0]()
  %3 : int = prim::Constant[value=3]()
  %t : bool = prim::Constant[value=1]()
  %f : Future(Tensor) = prim::fork_0(%a)
  %l : Future(Tensor)[] = prim::ListConstruct(%f)
  %last : Future(Tensor) = prim::Loop(%3, %t, %f)
    block0(%i : int, %g : Future(Tensor)):
      %h : Future(Tensor) = prim::fork_1(%g)
      %m : Future(Tensor)[] = aten::append(%l, %h)
      -> (%t, %h)
  %first : Future(Tensor) = aten::__getitem__(%l, %0)
  %p : Tensor = aten::wait(%last)
  %q : Tensor = aten::wait(%first)
  return (%p, %q)
with prim::fork_0 = graph(%x : Tensor):
  %y : Tensor = aten::neg(%x)
  return (%y)
with prim::fork_1 = graph(%g : Future(Tensor)):
  %x : Tensor = aten::wait(%g)
  %y : Tensor = aten::neg(%x)
  return (%y)
",
    // A dictionary that a loop counts in.
    "graph(%n : int):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %2 : int = prim::Constant[value=2]()
  %7 : int = prim::Constant[value=7]()
  %t : bool = prim::Constant[value=1]()
  %d : Dict(int, int) = prim::DictConstruct(%0, %n)
   = prim::Loop(%7, %t)
    block0(%i : int):
      %k : int = aten::remainder(%i, %2)
      %h : bool = aten::__contains__(%d, %k)
       = prim::If(%h)
        block0():
          %v : int = aten::__getitem__(%d, %k)
          %w : int = aten::add(%v, %1)
           = aten::_set_item(%d, %k, %w)
          -> ()
        block1():
           = aten::_set_item(%d, %k, %i)
          -> ()
      -> (%t)
  %r : int = aten::__getitem__(%d, %1)
  return (%r, %d)
",
    // Bytes of a string, compared and looked up.
    "graph(%n : int):
  %0 : int = prim::Constant[value=0]()
  %5 : int = prim::Constant[value=5]()
  %t : bool = prim::Constant[value=1]()
  %s : str = prim::Constant[value=\"abcab\"]()
  %a : str = prim::Constant[value=\"a\"]()
  %d : Dict(str, int) = prim::DictConstruct(%a, %n)
  %c : int = prim::Loop(%5, %t, %0)
    block0(%i : int, %c0 : int):
      %x : str = aten::__getitem__(%s, %i)
      %h : bool = aten::eq(%x, %a)
      %c1 : int = prim::If(%h)
        block0():
          %v : int = aten::__getitem__(%d, %x)
          %w : int = aten::add(%c0, %v)
          -> (%w)
        block1():
          -> (%c0)
      -> (%t, %c1)
  return (%c)
",
    // Lists in a list.
    "graph(%n : int):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %2 : int = prim::Constant[value=2]()
  %t : bool = prim::Constant[value=1]()
  %p : int[] = prim::ListConstruct(%n, %1)
  %q : int[] = prim::ListConstruct(%2, %n)
  %l : int[][] = prim::ListConstruct(%p, %q)
  %c : int = prim::Loop(%2, %t, %0)
    block0(%i : int, %c0 : int):
      %r : int[] = aten::__getitem__(%l, %i)
      %x : int = aten::__getitem__(%r, %i)
      %s : int[] = aten::__getitem__(%l, %0)
      %y : int = aten::__getitem__(%s, %i)
      %z : int = aten::add(%x, %y)
      %c1 : int = aten::add(%c0, %z)
      -> (%t, %c1)
  return (%c)
",
    // Inverse operators, identity operands, idempotent operators.
    "graph(%a : Tensor):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %x : Tensor = aten::transpose(%a, %0, %1)
  %y : Tensor = aten::transpose(%x, %0, %1)
  %r : Tensor = aten::relu(%y)
  %s : Tensor = aten::relu(%r)
  %m : Tensor = aten::mul(%s, %1)
  %d : Tensor = aten::add(%m, %0, %1)
  %n : Tensor = aten::neg(%d)
  %o : Tensor = aten::neg(%n)
  return (%o)
",
    // A tuple of the elements of a tuple, and one that branches make.
    "graph(%a : Tensor, %b : Tensor, %c : bool):
  %t : (Tensor, Tensor) = prim::If(%c)
    block0():
      %p : (Tensor, Tensor) = prim::TupleConstruct(%a, %b)
      -> (%p)
    block1():
      %q : (Tensor, Tensor) = prim::TupleConstruct(%b, %a)
      -> (%q)
  %x : Tensor, %y : Tensor = prim::TupleUnpack(%t)
  return (%t, %x, %y)
",
    // A tuple whose type is less precise than its elements' types.
    "graph():
  %three : int = prim::Constant[value=3]()
  %none : NoneType = prim::Constant()
  %s : int[] = prim::ListConstruct(%three, %three)
  %x : Float(3, 3) = aten::ones(%s, %none, %none, %none, %none)
  %y : Float(3, 3) = aten::neg(%x)
  %t : (Tensor, Tensor) = prim::TupleConstruct(%x, %y)
  %l : Tensor, %r : Tensor = prim::TupleUnpack(%t)
  return (%t, %l, %r)
",
    // Optional values, dictionaries, lengths.
    "graph(%a : Tensor, %i : int):
  %k : str = prim::Constant[value=\"k\"]()
  %none : NoneType = prim::Constant()
  %d : Dict(str, Tensor) = prim::DictConstruct(%k, %a)
  %h : bool = aten::__contains__(%d, %k)
  %g : Tensor = aten::__getitem__(%d, %k)
  %n : int = aten::len(%d)
  %is : bool = aten::__is__(%g, %none)
  return (%g, %n, %h, %is)
",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fragment_parses_with_the_standard_operators() {
        let registry = flambeau_ops::registry();
        for text in TEXTS {
            let source = Source::new("snippet.ir", *text);
            let graph = parse_graph(&source, &registry).unwrap_or_else(|e| panic!("{}\n{text}", e.render()));
            if let Err(e) = flambeau_ir::verify::verify(&graph) {
                panic!("{e}\n{text}");
            }
        }
        assert_eq!(of(&registry).len(), TEXTS.len());
    }
}

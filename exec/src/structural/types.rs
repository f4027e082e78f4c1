//! Type checks of values, profiling, and calls of host operators.

use super::current_node;
use crate::callees::Callees;
use crate::error::KernelError;
use crate::kernel::{KernelCx, KernelResult};
use flambeau_analysis::guards::guarded_length;
use flambeau_analysis::shape::TensorFact;
use flambeau_ir::attr::names;
use flambeau_ir::types::{Dim, TensorType, TypeKind, is_subtype};
use flambeau_ir::value::IValue;
use flambeau_ir::{Attr, Graph, NodeId, Prim, Type};
use flambeau_tensor::Tensor;

/// Whether a tensor satisfies every property that a refined type states.
pub fn fits_tensor(tensor: &Tensor, ty: &TensorType) -> bool {
    if ty.undefined
        || ty.dtype.is_some_and(|d| d != tensor.dtype())
        || ty.device.is_some_and(|d| d != tensor.device())
    {
        return false;
    }
    if let Some(sizes) = &ty.sizes {
        let own = tensor.sizes();
        if own.len() != sizes.len() || sizes.iter().zip(own).any(|(d, &n)| d.known().is_some_and(|k| k != n))
        {
            return false;
        }
    }
    if let Some(strides) = &ty.strides {
        let (own, sizes) = (tensor.strides(), tensor.sizes());
        let same = |((want, &have), &size): ((&Option<i64>, &i64), &i64)| {
            size <= 1 || want.is_none_or(|w| w == have)
        };
        if own.len() != strides.len() || !strides.iter().zip(own).zip(sizes).all(same) {
            return false;
        }
    }
    ty.requires_grad.is_none_or(|r| r == tensor.requires_grad())
}

/// Whether a value satisfies a type including tensor refinements. An absent tensor fits optional and undefined types.
pub(crate) fn fits_refined(value: &IValue, ty: Type) -> bool {
    match (value, ty.kind()) {
        (IValue::Tensor(t), TypeKind::Tensor(facts)) => fits_tensor(t, facts),
        (IValue::None, TypeKind::Tensor(facts)) => facts.undefined,
        (IValue::None, _) => ty.may_be_none(),
        (_, TypeKind::Optional(inner)) => fits_refined(value, *inner),
        _ => value.fits(ty.erase_shapes()),
    }
}

/// The property of its first operand that a `prim::Guard` or `prim::BailOut` checks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GuardCheck {
    /// The type of the result.
    pub(crate) ty: Type,
    /// The number of elements of a list.
    pub(crate) length: Option<usize>,
}

impl GuardCheck {
    /// Returns the check of a guard: its type, and for a list its length.
    pub(crate) fn of(graph: &Graph, guard: NodeId) -> GuardCheck {
        let ty = graph.results(guard).next().map_or(Type::ANY, |v| graph.ty(v));
        GuardCheck { ty, length: guarded_length(graph, guard) }
    }

    /// Whether a value is as stated. O(rank) for a tensor.
    #[inline]
    pub(crate) fn holds(&self, value: &IValue) -> bool {
        fits_refined(value, self.ty) && self.length.is_none_or(|n| has_length(value, n))
    }
}

fn has_length(value: &IValue, length: usize) -> bool {
    matches!(value, IValue::List(list) if list.len() == length)
}

/// Whether a type states more of a tensor than `Tensor`. Element types of lists and dictionaries are ignored: their
/// refinements are never relied on, because elements are replaced without a check.
pub fn is_refined(ty: Type) -> bool {
    match ty.kind() {
        TypeKind::Tensor(_) => ty != Type::TENSOR,
        TypeKind::Optional(inner) => is_refined(*inner),
        TypeKind::Tuple(t) => t.elems.iter().any(|&e| is_refined(e)),
        _ => false,
    }
}

/// Symbols of declared types and their sizes in one call.
pub(crate) type SymbolSizes = Vec<(i64, i64)>;

/// Checks an argument against the refined type declared for a graph input. A symbol must have the same size in all
/// inputs. O(rank) per tensor in the argument.
///
/// # Errors
/// Returns an input error that names the input, its declared type and the argument's type if they disagree.
#[cold]
pub(crate) fn check_declared(
    graph: &Graph,
    index: usize,
    value: &IValue,
    ty: Type,
    symbols: &mut SymbolSizes,
) -> KernelResult {
    let Some((declared, actual)) = find_mismatch(graph, value, ty, symbols) else { return Ok(()) };
    let name = graph.inputs().nth(index).map(|v| graph.name(v).to_string()).unwrap_or_default();
    // Types print symbolic sizes as `*`, so the message lists the symbols with their sizes.
    let known: Vec<String> = symbols.iter().map(|(symbol, size)| format!("SS({symbol}) = {size}")).collect();
    let known = if known.is_empty() {
        String::new()
    } else {
        format!(" (sizes bound by earlier inputs: {})", known.join(", "))
    };
    Err(KernelError::input(format!(
        "input {index}, `%{name}`, is declared as {declared}{} but the argument is {actual}{known}",
        ranges_of(graph, declared)
    )))
}

/// Describes the ranges of the symbols in a type: ` with SS(-1) in [3, 64]`.
fn ranges_of(graph: &Graph, ty: Type) -> String {
    let sizes = ty.as_tensor().and_then(|facts| facts.sizes.as_ref()).into_iter().flatten();
    let ranges = sizes.filter_map(|dim| match dim {
        Dim::Sym(symbol) => graph.size_range(*symbol),
        _ => None,
    });
    let ranges: Vec<String> = ranges.map(|r| format!("SS({}) in [{}, {}]", r.symbol, r.min, r.max)).collect();
    if ranges.is_empty() { String::new() } else { format!(" with {}", ranges.join(", ")) }
}

/// Whether arguments have the declared types of a graph's inputs, refinements and symbols included. Only the parts that
/// a caller may refine are compared: tensors, the presence of optionals, and numbers, strings and tensors among the
/// values of wider types.
pub fn fits_inputs(graph: &Graph, args: &[IValue]) -> bool {
    let mut symbols = SymbolSizes::new();
    args.len() == graph.inputs().len()
        && graph.inputs().zip(args).all(|(input, arg)| {
            let ty = graph.ty(input);
            let none = arg.is_none();
            let present = if none { ty.may_be_none() || ty.is_tensor() } else { ty != Type::NONE };
            present
                && has_kind_of(arg, ty)
                && (!is_refined(ty) || find_mismatch(graph, arg, ty, &mut symbols).is_none())
        })
}

/// Whether a value is of the kind of a number, string or tensor that a type states. O(1).
fn has_kind_of(value: &IValue, ty: Type) -> bool {
    match ty.kind() {
        TypeKind::Int => matches!(value, IValue::Int(_)),
        TypeKind::Float => matches!(value, IValue::Float(_)),
        TypeKind::Bool => matches!(value, IValue::Bool(_)),
        TypeKind::Complex => matches!(value, IValue::Complex(_)),
        TypeKind::Str => matches!(value, IValue::Str(_)),
        TypeKind::Tensor(_) => matches!(value, IValue::Tensor(_) | IValue::None),
        _ => true,
    }
}

/// Finds the first part of a value that contradicts its declared type; returns the declared type and a description of
/// the part.
fn find_mismatch(
    graph: &Graph,
    value: &IValue,
    ty: Type,
    symbols: &mut SymbolSizes,
) -> Option<(Type, String)> {
    match (value, ty.kind()) {
        (IValue::Tensor(t), TypeKind::Tensor(facts))
            if !fits_tensor(t, facts) || !agree(graph, t, facts, symbols) =>
        {
            let fact = TensorFact { requires_grad: Some(t.requires_grad()), ..TensorFact::of(t) };
            let strides = t.strides().iter().map(|&n| Some(n)).collect();
            Some((ty, Type::tensor(TensorType { strides: Some(strides), ..fact.to_type() }).to_string()))
        }
        (IValue::None, TypeKind::Tensor(facts)) if !facts.undefined => Some((ty, "None".to_owned())),
        (IValue::None, _) => None,
        (_, TypeKind::Optional(inner)) => find_mismatch(graph, value, *inner, symbols),
        (IValue::Tuple(parts), TypeKind::Tuple(t)) => parts
            .items()
            .iter()
            .zip(&t.elems[..])
            .find_map(|(part, &ty)| find_mismatch(graph, part, ty, symbols)),
        _ => None,
    }
}

/// Whether every symbol among the sizes has the size it was bound to before, or else one of its range. The number of symbols is
/// bounded by the sizes written in the declared types, so a linear search suffices.
fn agree(graph: &Graph, tensor: &Tensor, ty: &TensorType, symbols: &mut SymbolSizes) -> bool {
    let mut sizes = ty.sizes.iter().flatten().zip(tensor.sizes());
    sizes.all(|(&dim, &size)| match dim {
        Dim::Sym(symbol) => match symbols.iter().find(|(s, _)| *s == symbol) {
            Some(&(_, before)) => before == size,
            None => {
                symbols.push((symbol, size));
                graph.size_range(symbol).is_none_or(|range| range.contains(size))
            }
        },
        _ => true,
    })
}

fn types_attr(cx: &KernelCx<'_>) -> Result<Vec<Type>, KernelError> {
    match cx.attr(names::types()) {
        Some(Attr::Types(types)) => Ok(types.to_vec()),
        Some(Attr::Type(ty)) => Ok(vec![*ty]),
        _ => Err(KernelError::misuse("a node lacks its attribute `types`")),
    }
}

pub(super) fn isinstance(cx: &mut KernelCx<'_>, callees: &dyn Callees) -> KernelResult {
    let types = types_attr(cx)?;
    let own = cx.arg(0)?.type_of();
    let is = types.iter().any(|&ty| is_subtype(own, ty.erase_shapes(), callees.classes()));
    cx.ret(is);
    Ok(())
}

pub(super) fn profile(cx: &mut KernelCx<'_>) -> KernelResult {
    let (graph, node) = current_node(cx)?;
    let (args, _, host) = cx.parts();
    host.observe(graph, node, args);
    if cx.n_results() > 0 {
        let value = cx.take(0);
        cx.ret(value);
    }
    Ok(())
}

pub(super) fn guard(cx: &mut KernelCx<'_>) -> KernelResult {
    let (graph, node) = current_node(cx)?;
    let check = GuardCheck::of(graph, node);
    if !check.holds(cx.arg(0)?) {
        let length = check.length.map_or_else(String::new, |n| format!(" and length {n}"));
        return Err(KernelError::misuse(format!(
            "prim::Guard: the value does not have the profiled type {}{length}",
            check.ty
        )));
    }
    let value = cx.take(0);
    cx.ret(value);
    Ok(())
}

/// Runs `TypeCheck`, which returns its operands followed by whether all fit, and the checks that return only the
/// latter.
pub(super) fn check(prim: Prim, cx: &mut KernelCx<'_>) -> KernelResult {
    let types = types_attr(cx)?;
    let all = types.len() <= cx.n_args()
        && types.iter().zip(cx.args().iter()).all(|(&ty, value)| match prim {
            Prim::RequiresGradCheck => {
                let wanted = ty.unwrap_optional().as_tensor().and_then(|t| t.requires_grad);
                let found = value.as_tensor().is_some_and(Tensor::requires_grad);
                wanted.is_none_or(|w| w == found)
            }
            _ => fits_refined(value, ty),
        });
    for i in 0..cx.n_results().saturating_sub(1) {
        let value = cx.take(i);
        cx.ret(value);
    }
    cx.ret(all);
    Ok(())
}

/// Calls an operator of the host and checks its results against the result types.
pub(super) fn host_call(prim: Prim, cx: &mut KernelCx<'_>) -> KernelResult {
    let (graph, node) = current_node(cx)?;
    let expected = cx.n_results();
    let (args, rets, host) = cx.parts();
    if prim == Prim::CastFromPython {
        let ty = graph.ty(graph.result(node, 0));
        let value =
            std::mem::take(args.get_mut(0).ok_or_else(|| KernelError::internal("argument 0 is missing"))?);
        rets.push(host.cast(value, ty)?);
        return Ok(());
    }
    host.call(graph, node, args, rets)?;
    if rets.len() != expected {
        return Err(KernelError::misuse(format!(
            "a host call returned {} results; expected {expected}",
            rets.len()
        )));
    }
    for (value, result) in rets.iter().zip(graph.results(node)) {
        let ty = graph.ty(result);
        if !value.fits(ty.erase_shapes()) {
            let tag = value.tag();
            return Err(KernelError::input(format!("a host call returned {tag}; expected {ty}")));
        }
    }
    Ok(())
}

//! List operators.
//!
//! Elements are compared with `==`; tensors must then have one element each. A kernel locks at most one list, and none
//! while it compares values, since a list may be both operands or contain itself.

use crate::per_type::{
    Elem, OverloadRow, all, check_values_fit, index_error, machine, picked, row, slice_positions,
};
use crate::sort;
use flambeau_analysis::ResultShapes;
use flambeau_exec::{Gen, Intrinsic, KernelCx, KernelError, KernelResult};
use flambeau_ir::value::{IValue, List, ListItems};
use flambeau_ir::{Effects, OpDef};

const NUMBERS: &[Elem] = &[Elem::Int, Elem::Float, Elem::Bool];

fn one(g: &mut Gen<'_>, elem: Elem) -> Vec<IValue> {
    vec![elem.list(g, 0)]
}

fn filled(g: &mut Gen<'_>, elem: Elem) -> Vec<IValue> {
    vec![elem.list(g, 1)]
}

fn two(g: &mut Gen<'_>, elem: Elem) -> Vec<IValue> {
    vec![elem.list(g, 0), elem.list(g, 0)]
}

fn and_index(g: &mut Gen<'_>, elem: Elem) -> Vec<IValue> {
    let list = elem.list(g, 1);
    let n = list.as_list().map_or(0, List::len) as i64;
    vec![list, IValue::Int(g.int(-n, n - 1))]
}

fn and_elem(g: &mut Gen<'_>, elem: Elem) -> Vec<IValue> {
    vec![elem.list(g, 0), elem.draw(g)]
}

/// Draws a list and one of its elements.
fn and_own(g: &mut Gen<'_>, elem: Elem) -> Vec<IValue> {
    let args = and_index(g, elem);
    let found = args[0].as_list().and_then(|l| l.get(g.below(l.len())));
    vec![args[0].clone(), found.expect("invariant: the list is not empty")]
}

fn and_count(g: &mut Gen<'_>, elem: Elem) -> Vec<IValue> {
    vec![elem.list(g, 1), IValue::Int(g.int(0, 3))]
}

fn basics() -> Vec<OverloadRow> {
    vec![
        machine("aten::len", "t", "The number of elements.", Intrinsic::ListLen)
            .shapes(|| ResultShapes::length_of(0))
            .sample(one),
        machine("aten::len", "any", "The number of elements.", Intrinsic::ListLen)
            .shapes(|| ResultShapes::length_of(0))
            .sample(one),
        machine("aten::__getitem__", "t", "`list[idx]`.", Intrinsic::ListGet).raises().sample(and_index),
        machine("aten::select", "t", "`list[idx]`.", Intrinsic::ListGet).raises().sample(and_index),
        machine("aten::_set_item", "t", "`l[idx] = el`; returns the list.", Intrinsic::ListSet)
            .raises()
            .sample(|g, elem| {
                let mut args = and_index(g, elem);
                args.push(elem.draw(g));
                args
            }),
        machine("aten::append", "t", "Appends an element and returns the list.", Intrinsic::ListAppend)
            .sample(and_elem),
        row("aten::copy", "t", "A new list with the same elements.", copy).sample(one),
        row("aten::list", "t", "A new list with the same elements.", copy).sample(one),
        row("aten::clear", "t", "Removes all elements.", |cx| {
            let old = std::mem::replace(&mut *cx.list(0)?.write(), ListItems::Values(Vec::new()));
            let empty = ListItems::for_type(cx.list(0)?.elem_type());
            *cx.list(0)?.write() = empty;
            drop(old);
            Ok(())
        })
        .sample(one),
        row("aten::reverse", "t", "Reverses the order in place.", |cx| {
            cx.list(0)?.write().reverse();
            Ok(())
        })
        .sample(one),
        row("aten::slice", "t", "`l[start:end:step]`, a new list. Negative steps go backwards.", slice)
            .raises()
            .sample(|g, elem| {
                let mut args = one(g, elem);
                args.extend([IValue::Int(g.int(-4, 4)), IValue::Int(g.int(-4, 4))]);
                args.push(IValue::Int(*g.pick(&[1, 2, -1, -2])));
                args
            }),
    ]
}

fn copy(cx: &mut KernelCx<'_>) -> KernelResult {
    check_values_fit(cx.list(0)?.len())?;
    let list = cx.list(0)?.copy();
    cx.ret(list);
    Ok(())
}

fn slice(cx: &mut KernelCx<'_>) -> KernelResult {
    let list = cx.list(0)?;
    let positions = slice_positions(list.len(), cx.opt_int(1)?, cx.opt_int(2)?, cx.int(3)?)?;
    let result = picked(list, positions)?;
    cx.ret(result);
    Ok(())
}

fn changes() -> Vec<OverloadRow> {
    vec![
        row(
            "aten::insert",
            "t",
            "Inserts an element before a position, which is clamped to the list.",
            insert,
        )
        .sample(|g, elem| vec![elem.list(g, 0), IValue::Int(g.int(-4, 4)), elem.draw(g)]),
        row("aten::pop", "t", "Removes and returns the element at a position.", pop)
            .raises()
            .sample(and_index),
        row("aten::Delete", "t", "`del self[idx]`.", |cx| {
            let i = cx.int(1)?;
            let mut items = cx.list(0)?.write();
            let past = if items.is_empty() { "pop index out of range" } else { "list index out of range" };
            let old = remove(&mut items, i, past)?;
            // Its destructor may read the list.
            drop(items);
            drop(old);
            Ok(())
        })
        .raises()
        .sample(and_index),
        row("aten::extend", "t", "Appends all elements of another list.", extend).sample(two),
        row("aten::add", "t", "`a + b`: the elements of one list, then those of another.", |cx| {
            let (a, b) = (cx.list(0)?, cx.list(1)?);
            check_values_fit(a.len().saturating_add(b.len()))?;
            let (joined, tail) = (a.copy(), b.read().clone());
            joined.write().append(tail);
            cx.ret(joined);
            Ok(())
        })
        .sample(two),
        row("aten::add_", "t", "`self += b`; returns the list.", |cx| {
            extend(cx)?;
            let list = cx.take(0);
            cx.ret(list);
            Ok(())
        })
        .sample(two),
        row("aten::mul", "left_t", "`l * n`: the elements `n` times over.", |cx| repeat(cx, 0, 1))
            .raises()
            .sample(and_count),
        row("aten::mul", "right_", "`n * l`: the elements `n` times over.", |cx| repeat(cx, 1, 0))
            .raises()
            .sample(|g, elem| and_count(g, elem).into_iter().rev().collect()),
        row(
            "aten::mul_",
            "t",
            "`l *= n`; returns the list, which becomes empty if `n` is not positive.",
            |cx| {
                let result = repeated(cx.list(0)?, cx.int(1)?.max(0))?;
                let old = std::mem::replace(&mut *cx.list(0)?.write(), result);
                drop(old);
                let list = cx.take(0);
                cx.ret(list);
                Ok(())
            },
        )
        .raises()
        .sample(and_count),
    ]
}

/// Removes the element at a possibly negative index.
fn remove(items: &mut ListItems, i: i64, message: &str) -> Result<IValue, KernelError> {
    let n = items.len();
    let at = if i < 0 { i.saturating_add(n as i64) } else { i };
    let at = usize::try_from(at).ok().filter(|&at| at < n).ok_or_else(|| index_error(message))?;
    Ok(items.remove(at))
}

fn insert(cx: &mut KernelCx<'_>) -> KernelResult {
    let value = cx.take(2);
    let i = cx.int(1)?;
    let list = cx.list(0)?;
    check_values_fit(list.len() + 1)?;
    let mut items = list.write();
    let n = items.len() as i64;
    let at = if i < 0 { i.saturating_add(n).max(0) } else { i.min(n) };
    items.insert(at as usize, value);
    Ok(())
}

fn pop(cx: &mut KernelCx<'_>) -> KernelResult {
    let i = cx.int(1)?;
    let mut items = cx.list(0)?.write();
    let past = if items.is_empty() { "pop from empty list" } else { "list index out of range" };
    let value = remove(&mut items, i, past)?;
    drop(items);
    cx.ret(value);
    Ok(())
}

fn extend(cx: &mut KernelCx<'_>) -> KernelResult {
    let (list, other) = (cx.list(0)?, cx.list(1)?);
    check_values_fit(list.len().saturating_add(other.len()))?;
    let tail = other.read().clone();
    list.write().append(tail);
    Ok(())
}

/// `list * n`; a negative count is an error, as in TorchScript.
fn repeat(cx: &mut KernelCx<'_>, list: usize, count: usize) -> KernelResult {
    let (list, n) = (cx.list(list)?, cx.int(count)?);
    if n < 0 && !list.is_empty() {
        return Err(KernelError::input("vector::reserve"));
    }
    let result = List::from_items(list.elem_type(), repeated(list, n.max(0))?);
    cx.ret(result);
    Ok(())
}

fn repeated(list: &List, n: i64) -> Result<ListItems, KernelError> {
    let items = list.read();
    let n = if items.is_empty() { 0 } else { usize::try_from(n).unwrap_or(usize::MAX) };
    check_values_fit(items.len().saturating_mul(n))?;
    Ok(items.repeat(n))
}

fn searches() -> Vec<OverloadRow> {
    let contained: &[Elem] = &[Elem::Int, Elem::Float, Elem::Str];
    vec![
        row("aten::__contains__", "{}_list", "`item in l`.", |cx| {
            let found = find(cx)?.is_some();
            cx.ret(found);
            Ok(())
        })
        .over(contained)
        .sample(and_elem),
        row("aten::index", "list_{}", "The position of the first element equal to `el`.", |cx| {
            let at = find(cx)?.ok_or_else(|| missing(cx))?;
            cx.ret(at as i64);
            Ok(())
        })
        .over(Elem::LIST_ELEMENTS)
        .raises()
        .sample(and_own),
        row("aten::count", "{}", "The number of elements equal to `el`.", |cx| {
            let (items, wanted) = (cx.list(0)?.to_vec(), cx.arg(1)?);
            let mut n = 0i64;
            for item in &items {
                n += i64::from(item.equals(wanted)?);
            }
            cx.ret(n);
            Ok(())
        })
        .over(Elem::LIST_ELEMENTS)
        .raises()
        .sample(and_elem),
        row("aten::remove", "{}", "Removes the first element equal to `el`.", |cx| {
            let at = find(cx)?.ok_or_else(|| KernelError::input("list.remove(x): x not in list"))?;
            let mut items = cx.list(0)?.write();
            // Another thread may have changed the list since.
            let old = remove(&mut items, at as i64, "list.remove(x): x not in list")?;
            drop(items);
            drop(old);
            Ok(())
        })
        .over(Elem::LIST_ELEMENTS)
        .raises()
        .sample(and_own),
        row("aten::eq", "{}_list", "Whether two lists have equal elements.", |cx| same(cx, true))
            .over(Elem::LIST_ELEMENTS)
            .raises()
            .sample(two),
        row("aten::ne", "{}_list", "Whether two lists are not equal.", |cx| same(cx, false))
            .over(Elem::LIST_ELEMENTS)
            .raises()
            .sample(two),
    ]
}

/// Returns the position of the first element equal to argument 1.
fn find(cx: &KernelCx<'_>) -> Result<Option<usize>, KernelError> {
    let (list, wanted) = (cx.list(0)?, cx.arg(1)?);
    match (&*list.read(), wanted) {
        (ListItems::Ints(v), IValue::Int(x)) => return Ok(v.iter().position(|y| y == x)),
        (ListItems::Floats(v), IValue::Float(x)) => return Ok(v.iter().position(|y| y == x)),
        (ListItems::Bools(v), IValue::Bool(x)) => return Ok(v.iter().position(|y| y == x)),
        _ => {}
    }
    for (i, item) in list.to_vec().iter().enumerate() {
        if item.equals(wanted)? {
            return Ok(Some(i));
        }
    }
    Ok(None)
}

#[cold]
fn missing(cx: &KernelCx<'_>) -> KernelError {
    let shown = match cx.arg(1) {
        Ok(IValue::Float(x)) => crate::string::number::general(*x, 6),
        Ok(IValue::Bool(b)) => u8::from(*b).to_string(),
        Ok(other) => other.to_string(),
        Err(error) => return error,
    };
    KernelError::input(format!("'{shown}' is not in list"))
}

/// Whether lists 0 and 1 are equal element by element. A tensor with several elements is an error even when compared
/// with itself.
fn same(cx: &mut KernelCx<'_>, wanted: bool) -> KernelResult {
    let (a, b) = (cx.list(0)?.to_vec(), cx.list(1)?.to_vec());
    let mut equal = a.len() == b.len();
    if equal {
        for (x, y) in a.iter().zip(&b) {
            if x.as_tensor().is_some_and(|t| t.numel() != 1) {
                return Err(KernelError::input(
                    "Boolean value of Tensor with more than one value is ambiguous",
                ));
            }
            equal = x.equals(y)?;
            if !equal {
                break;
            }
        }
    }
    cx.ret(equal == wanted);
    Ok(())
}

fn folds() -> Vec<OverloadRow> {
    let summed: &[Elem] = &[Elem::Int, Elem::Float, Elem::Bool, Elem::Complex];
    let truths: &[Elem] = &[Elem::Int, Elem::Float, Elem::Bool, Elem::Str];
    vec![
        row("aten::sum", "{}", "The sum of the elements; for booleans, the number of true ones.", sum)
            .over(summed)
            .sample(one),
        row("aten::any", "{}", "Whether some element is true.", |cx| {
            let found = cx.list(0)?.read().iter().any(|v| truth(&v));
            cx.ret(found);
            Ok(())
        })
        .over(truths)
        .sample(one),
        row("aten::all", "{}", "Whether all elements are true.", |cx| {
            let all = cx.list(0)?.read().iter().all(|v| truth(&v));
            cx.ret(all);
            Ok(())
        })
        .over(NUMBERS)
        .sample(one),
        row("prim::min", "self_{}", "The smallest element.", |cx| extreme(cx, false))
            .over(NUMBERS)
            .raises()
            .sample(filled),
        row("prim::max", "self_{}", "The largest element.", |cx| extreme(cx, true))
            .over(NUMBERS)
            .raises()
            .sample(filled),
        row("prim::min", "{}_list", "The smaller of two lists, compared element by element.", |cx| {
            smaller_list(cx, false)
        })
        .over(NUMBERS)
        .sample(two),
        row("prim::max", "{}_list", "The larger of two lists, compared element by element.", |cx| {
            smaller_list(cx, true)
        })
        .over(NUMBERS)
        .sample(two),
    ]
}

fn truth(value: &IValue) -> bool {
    match value {
        IValue::Bool(b) => *b,
        IValue::Int(i) => *i != 0,
        IValue::Float(x) => *x != 0.0,
        IValue::Str(s) => !s.is_empty(),
        _ => false,
    }
}

fn sum(cx: &mut KernelCx<'_>) -> KernelResult {
    let total = match &*cx.list(0)?.read() {
        ListItems::Ints(v) => IValue::Int(v.iter().fold(0, |a: i64, &b| a.wrapping_add(b))),
        ListItems::Floats(v) => IValue::Float(v.iter().fold(0.0, |a, &b| a + b)),
        ListItems::Bools(v) => IValue::Int(v.iter().filter(|&&b| b).count() as i64),
        items => {
            let zero = flambeau_tensor::Complex::new(0.0, 0.0);
            IValue::complex(items.iter().filter_map(|v| v.as_complex()).fold(zero, |a, b| a + b))
        }
    };
    cx.ret(total);
    Ok(())
}

/// Returns the last smallest (or largest) element with respect to `<`: NaN is skipped unless it is first.
fn extreme(cx: &mut KernelCx<'_>, max: bool) -> KernelResult {
    let best = cx.list(0)?.read().iter().reduce(|best, x| {
        let better = if max { sort::less(&best, &x) } else { sort::less(&x, &best) };
        if better { x } else { best }
    });
    let name = if max { "max" } else { "min" };
    cx.ret(best.ok_or_else(|| KernelError::input(format!("{name}() arg is an empty sequence")))?);
    Ok(())
}

/// Returns a copy of the lexicographically smaller (or larger) list.
fn smaller_list(cx: &mut KernelCx<'_>, max: bool) -> KernelResult {
    let (l, r) = (cx.list(0)?.to_vec(), cx.list(1)?.to_vec());
    let unequal = l.iter().zip(&r).find(|(x, y)| !x.equals(y).unwrap_or(false));
    let take_right = match unequal {
        Some((x, y)) if max => sort::less(x, y),
        Some((x, y)) => sort::less(y, x),
        None if max => r.len() > l.len(),
        None => r.len() < l.len(),
    };
    let result = cx.list(usize::from(take_right))?.copy();
    cx.ret(result);
    Ok(())
}

fn sorts() -> Vec<OverloadRow> {
    let in_place = "Sorts in place, keeping equal elements in order; NaN goes last.";
    let copied = "A sorted copy; equal elements keep their order, NaN goes last.";
    let with_flag = |g: &mut Gen<'_>, elem: Elem| vec![elem.list(g, 0), IValue::Bool(g.flag())];
    vec![
        row("aten::sort", "{}", in_place, sort_in_place).over(Elem::LIST_ELEMENTS).raises().sample(with_flag),
        row("aten::sorted", "{}", copied, sorted).over(Elem::LIST_ELEMENTS).raises().sample(one),
        row("aten::sort", "any", in_place, sort_in_place)
            .raises()
            .sample(|g, _| vec![pairs(g), IValue::Bool(g.flag())]),
        row("aten::sorted", "any", copied, sorted).raises().sample(|g, _| vec![pairs(g)]),
    ]
}

fn pairs(g: &mut Gen<'_>) -> IValue {
    let items: Vec<IValue> =
        (0..g.below(4)).map(|_| IValue::tuple(vec![Elem::Int.draw(g), Elem::Str.draw(g)])).collect();
    IValue::list(flambeau_ir::Type::tuple(&[Elem::Int.ty(), Elem::Str.ty()]), items)
}

fn sort_in_place(cx: &mut KernelCx<'_>) -> KernelResult {
    let reverse = cx.boolean(1)?;
    let list = cx.list(0)?;
    let sorted = sort::sorted(list, reverse)?;
    *list.write() = sorted;
    Ok(())
}

fn sorted(cx: &mut KernelCx<'_>) -> KernelResult {
    let list = cx.list(0)?;
    let result = List::from_items(list.elem_type(), sort::sorted(list, false)?);
    cx.ret(result);
    Ok(())
}

pub(super) fn family() -> Vec<OpDef> {
    let mut rows = basics();
    rows.extend(changes());
    rows.extend(searches());
    rows.extend(folds());
    rows.extend(sorts());
    rows.push(
        row("prim::rangelist", "", "The integers from 0 to `n` (excluded).", |cx| {
            let n = usize::try_from(cx.int(0)?).map_err(|_| KernelError::input("vector::reserve"))?;
            check_values_fit(n)?;
            cx.ret(List::from_ints((0..n as i64).collect()));
            Ok(())
        })
        .effects(Effects::RAISES)
        .sample(|g, _| vec![IValue::Int(g.int(0, 4))]),
    );
    all(rows)
}

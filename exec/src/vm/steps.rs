//! Steps of instructions on values: operands, kernels, lists, object slots.

use super::StepBuffers;
use super::dispatch::ValueFrame;
use crate::bytecode::{CallSite, Code, Instr, Opcode, Operand, OperandSource, SiteOp};
use crate::error::KernelError;
use crate::intrinsic::{self, ScalarKind};
use crate::kernel::{KernelCx, Rets};
use crate::structural::{self, one_value};
use crate::tape;
use flambeau_ir::value::{Future, IValue, List, ListItems, Object};
use flambeau_tensor::Tensor;

/// Returns the value of an operand.
#[inline(always)]
pub(super) fn fetch(operand: Operand, code: &Code, s: &[u64], v: &mut [IValue]) -> IValue {
    match operand.place() {
        OperandSource::Copy(r) => v[r as usize].clone(),
        OperandSource::Move(r) => std::mem::take(&mut v[r as usize]),
        OperandSource::Const(c) => code.constants[c as usize].clone(),
        OperandSource::Scalar(kind, r) => kind.boxed(s[r as usize]),
        OperandSource::Nowhere => IValue::None,
    }
}

/// Stores a result.
#[inline(always)]
pub(super) fn store(
    operand: Operand,
    value: IValue,
    s: &mut [u64],
    v: &mut [IValue],
) -> Result<(), KernelError> {
    match operand.register() {
        Some(r) => {
            put(&mut v[r as usize], value);
            Ok(())
        }
        None => store_word(operand, &value, s),
    }
}

/// Stores a result that does not go to the value bank.
#[inline(never)]
fn store_word(operand: Operand, value: &IValue, s: &mut [u64]) -> Result<(), KernelError> {
    if let OperandSource::Scalar(kind, r) = operand.place() {
        match kind.unboxed(value) {
            Some(word) => s[r as usize] = word,
            None => return Err(wrong_kind(kind, value)),
        }
    }
    Ok(())
}

/// Stores a value in a register. The register is usually empty; then the call of the destructor is skipped.
#[inline(always)]
pub(super) fn put(register: &mut IValue, value: IValue) {
    if register.is_none() {
        std::mem::forget(std::mem::replace(register, value));
    } else {
        *register = value;
    }
}

/// Drops a value in place. Numbers skip the destructor call. The value is not loaded as a whole, because such a load
/// would stall if the value was just written in parts.
#[inline(always)]
pub(super) fn discard(value: &mut IValue) {
    match value {
        IValue::None => {}
        IValue::Bool(_) | IValue::Int(_) | IValue::Float(_) => std::mem::forget(std::mem::take(value)),
        _ => *value = IValue::None,
    }
}

/// Appends the results of a return site to a buffer and clears the registers.
pub(super) fn results(code: &Code, site: u32, s: &[u64], v: &mut [IValue], rets: &mut Rets) {
    let range = &code.sites[site as usize].operands;
    let operands = &code.operands[range.start as usize..range.end as usize];
    rets.extend(operands.iter().map(|&operand| fetch(operand, code, s, v)));
    clear(v);
}

/// Like [`results`], as one value.
#[inline]
pub(super) fn returned(code: &Code, site: u32, s: &[u64], v: &mut [IValue]) -> IValue {
    let range = &code.sites[site as usize].operands;
    if let &[operand] = &code.operands[range.start as usize..range.end as usize] {
        let value = fetch(operand, code, s, v);
        clear(v);
        return value;
    }
    let mut rets = Rets::new();
    results(code, site, s, v, &mut rets);
    one_value(rets.drain(..))
}

/// Drops all values in registers.
#[inline(always)]
pub(super) fn clear(registers: &mut [IValue]) {
    for register in registers {
        if !register.is_none() {
            *register = IValue::None;
        }
    }
}

#[cold]
fn wrong_kind(kind: ScalarKind, value: &IValue) -> KernelError {
    let wanted = match kind {
        ScalarKind::Int => "an integer",
        ScalarKind::Float => "a float",
        ScalarKind::Bool => "a bool",
    };
    KernelError::input(format!("expected {wanted} but found {}", value.tag()))
}

/// Returns the value of an operand as a word of a kind.
#[inline]
pub(super) fn unbox(
    operand: u32,
    kind: ScalarKind,
    code: &Code,
    s: &[u64],
    v: &[IValue],
) -> Result<u64, KernelError> {
    let value = match Operand(operand).place() {
        OperandSource::Copy(r) | OperandSource::Move(r) => &v[r as usize],
        OperandSource::Const(c) => &code.constants[c as usize],
        OperandSource::Scalar(own, r) => {
            let value = own.boxed(s[r as usize]);
            return kind.unboxed(&value).ok_or_else(|| wrong_kind(kind, &value));
        }
        OperandSource::Nowhere => &IValue::None,
    };
    kind.unboxed(value).ok_or_else(|| wrong_kind(kind, value))
}

/// Collects the operands of a site in the argument buffer and returns them.
#[inline]
pub(super) fn gather<'a>(
    code: &Code,
    site: &CallSite,
    s: &[u64],
    v: &mut [IValue],
    args: &'a mut Vec<IValue>,
) -> &'a mut [IValue] {
    args.clear();
    let operands = &code.operands[site.operands.start as usize..site.operands.end as usize];
    args.reserve(operands.len());
    for operand in operands {
        // Each value is constructed in its destination: moving a value that was just written in parts would stall on
        // store forwarding.
        match operand.place() {
            OperandSource::Copy(r) => push_copy(&v[r as usize], args),
            OperandSource::Move(r) => args.push(std::mem::take(&mut v[r as usize])),
            OperandSource::Const(c) => push_copy(&code.constants[c as usize], args),
            OperandSource::Scalar(kind, r) => args.push(kind.boxed(s[r as usize])),
            OperandSource::Nowhere => args.push(IValue::None),
        }
    }
    // The length comes from the operands, since the buffer's length was just written and reloading it would stall.
    &mut args[..operands.len()]
}

#[inline(always)]
fn push_copy(value: &IValue, args: &mut Vec<IValue>) {
    match value {
        IValue::Tensor(t) => args.push(IValue::Tensor(t.clone())),
        IValue::Int(i) => args.push(IValue::Int(*i)),
        other => args.push(other.clone()),
    }
}

/// Stores results into the destinations of a site.
#[inline]
pub(super) fn scatter(
    code: &Code,
    site: &CallSite,
    results: &mut Rets,
    s: &mut [u64],
    v: &mut [IValue],
) -> Result<(), KernelError> {
    let dests = &code.operands[site.dests.start as usize..site.dests.end as usize];
    if dests.len() != results.len() {
        return Err(wrong_count(code, site, results.len()));
    }
    if let (&[dest], [value]) = (dests, &mut results[..]) {
        // The value was just written in parts; a swap avoids a dependency on a load of the whole value.
        match dest.register() {
            Some(r) if v[r as usize].is_none() => std::mem::swap(&mut v[r as usize], value),
            Some(r) => v[r as usize] = std::mem::take(value),
            None => store_word(dest, value, s)?,
        }
        results.clear();
        return Ok(());
    }
    for (&dest, value) in dests.iter().zip(results.iter_mut()) {
        store(dest, std::mem::take(value), s, v)?;
    }
    results.clear();
    Ok(())
}

#[cold]
fn wrong_count(code: &Code, site: &CallSite, found: usize) -> KernelError {
    let (name, wanted) = (code.graph.op_name(site.node), site.dests.len());
    KernelError::internal(format!("`{name}` returned {found} results; expected {wanted}"))
}

/// Runs the kernel or structural operator of a site.
#[inline(never)]
pub(super) fn op(
    code: &Code,
    at: u32,
    s: &mut [u64],
    v: &mut [IValue],
    env: &mut StepBuffers<'_>,
) -> Result<(), KernelError> {
    let site = &code.sites[at as usize];
    let operands = &code.operands[site.operands.start as usize..site.operands.end as usize];
    let args = &mut env.slots[..operands.len()];
    for (slot, operand) in args.iter_mut().zip(operands) {
        // Each value is constructed in its destination, as in `gather`.
        match operand.place() {
            OperandSource::Copy(r) => put_copy(&v[r as usize], slot),
            OperandSource::Move(r) => std::mem::swap(slot, &mut v[r as usize]),
            OperandSource::Const(c) => put_copy(&code.constants[c as usize], slot),
            OperandSource::Scalar(kind, r) => put(slot, kind.boxed(s[r as usize])),
            OperandSource::Nowhere => {}
        }
    }
    env.rets.clear();
    let start = env.host.start_timing();
    let place = crate::kernel::CallOrigin::Node(&code.graph, site.node);
    let mut cx = KernelCx::new(&mut *args, env.rets, place, env.host);
    let done = match &site.work {
        SiteOp::Kernel(kernel) => match cx.host().poll() {
            Ok(()) if cx.host().tape().is_some() => match code.graph.op(site.node).row() {
                Some(row) => tape::call(kernel, row, code.graph.registry().schema(row), &mut cx),
                None => kernel.call(&mut cx),
            },
            Ok(()) => kernel.call(&mut cx),
            Err(error) => Err(error),
        },
        SiteOp::Prim(prim) => structural::run(*prim, &mut cx, &**env.callees),
        _ => Err(KernelError::internal("a site without a kernel")),
    };
    // Free dead arguments before anything else runs.
    args.iter_mut().for_each(discard);
    if let Some(start) = start {
        env.host.add_timing(&code.graph, site.node, start);
    }
    done?;
    scatter(code, site, env.rets, s, v)
}

#[inline(always)]
pub(super) fn put_copy(value: &IValue, slot: &mut IValue) {
    match value {
        IValue::Tensor(t) => put(slot, IValue::Tensor(t.clone())),
        IValue::Int(i) => put(slot, IValue::Int(*i)),
        other => *slot = other.clone(),
    }
}

/// Performs the select and the conversion site of [`crate::bytecode::Opcode::Read`] at once; returns whether that was
/// possible. It reports no errors: the separate sites do.
#[inline(never)]
pub(super) fn read(i: &Instr, s: &mut [u64], values: &mut ValueFrame<'_, '_>) -> bool {
    let ValueFrame { code, v, .. } = values;
    let operands = &code.operands[code.sites[i.a as usize].operands.start as usize..];
    let dest = code.operands[code.sites[i.b as usize].dests.start as usize];
    let (&[tensor, _, index, ..], OperandSource::Scalar(kind, to)) = (operands, dest.place()) else {
        return false;
    };
    let (OperandSource::Copy(from) | OperandSource::Move(from), OperandSource::Scalar(ScalarKind::Int, at)) =
        (tensor.place(), index.place())
    else {
        return false;
    };
    let IValue::Tensor(row) = &v[from as usize] else { return false };
    let Some(word) = row.element_of_row(s[at as usize] as i64).and_then(|element| kind.converted(element))
    else {
        return false;
    };
    s[to as usize] = word;
    if let OperandSource::Move(_) = tensor.place() {
        discard(&mut v[from as usize]);
    }
    true
}

/// Computes a product with a transposed operand ([`crate::bytecode::Opcode::Transposed`]); returns whether that was
/// possible. It reports no errors: the separate sites do, which also run if something observes the operators.
#[inline]
pub(super) fn transposed(code: &Code, at: u32, v: &mut [IValue], env: &mut StepBuffers<'_>) -> bool {
    if !env.host.is_unobserved() || env.host.poll().is_err() {
        return false;
    }
    let site = &code.sites[at as usize];
    let operands = &code.operands[site.operands.start as usize..site.operands.end as usize];
    let (&[left, right], SiteOp::Transposed(product)) = (operands, &site.work) else { return false };
    let (Some(a), Some(b)) = (tensor(left, code, v), tensor(right, code, v)) else { return false };
    let (Some(product), Some(to)) = (product(a, b), code.operands[site.dests.start as usize].register())
    else {
        return false;
    };
    for operand in [left, right] {
        if let OperandSource::Move(r) = operand.place() {
            discard(&mut v[r as usize]);
        }
    }
    put(&mut v[to as usize], IValue::Tensor(product));
    true
}

/// Returns the tensor that an operand denotes.
#[inline(always)]
fn tensor<'a>(operand: Operand, code: &'a Code, v: &'a [IValue]) -> Option<&'a Tensor> {
    match operand.place() {
        OperandSource::Copy(r) | OperandSource::Move(r) => v[r as usize].as_tensor(),
        OperandSource::Const(c) => code.constants[c as usize].as_tensor(),
        OperandSource::Scalar(..) | OperandSource::Nowhere => None,
    }
}

/// Runs a fused group with its tile program; returns whether that supports the arguments. If not, they are in the
/// buffer.
#[inline(never)]
pub(super) fn fused(
    code: &Code,
    at: u32,
    s: &mut [u64],
    v: &mut [IValue],
    env: &mut StepBuffers<'_>,
) -> Result<bool, KernelError> {
    let site = &code.sites[at as usize];
    gather(code, site, s, v, env.args);
    env.rets.clear();
    env.host.poll()?;
    let SiteOp::Fused(group) = &site.work else {
        return Err(KernelError::internal("a site without a group"));
    };
    // A recorded run records the operators of the group.
    if env.host.tape().is_some() {
        return Ok(false);
    }
    let start = env.host.start_timing();
    let done = group.run(env.args, env.rets)?;
    if let Some(start) = start {
        env.host.add_timing(&code.graph, site.node, start);
    }
    if !done {
        return Ok(false);
    }
    env.args.iter_mut().for_each(discard);
    env.args.clear();
    scatter(code, site, env.rets, s, v)?;
    Ok(true)
}

/// Performs the check of a bail-out; returns whether it succeeded. Then the first operand is the result, and the other
/// operands, which only the continuation needs, are dropped where they die.
#[inline]
pub(super) fn guard(code: &Code, at: u32, s: &mut [u64], v: &mut [IValue]) -> Result<bool, KernelError> {
    let site = &code.sites[at as usize];
    let operands = &code.operands[site.operands.start as usize..site.operands.end as usize];
    let (Some((&guarded, captures)), Some(bailout)) = (operands.split_first(), code.bailout(at)) else {
        return Err(KernelError::internal("a bail-out without a guarded value"));
    };
    let passes = match guarded.place() {
        OperandSource::Copy(r) | OperandSource::Move(r) => bailout.passes(&v[r as usize]),
        OperandSource::Const(c) => bailout.passes(&code.constants[c as usize]),
        OperandSource::Scalar(kind, r) => bailout.passes(&kind.boxed(s[r as usize])),
        OperandSource::Nowhere => bailout.passes(&IValue::None),
    };
    if !passes {
        return Ok(false);
    }
    let value = fetch(guarded, code, s, v);
    for capture in captures {
        if let OperandSource::Move(r) = capture.place() {
            discard(&mut v[r as usize]);
        }
    }
    store(code.operands[site.dests.start as usize], value, s, v)?;
    Ok(true)
}

/// Returns the future that an operand refers to, unless it is complete.
pub(super) fn pending<'a>(operand: u32, code: &'a Code, v: &'a [IValue]) -> Option<&'a Future> {
    let value = match Operand(operand).place() {
        OperandSource::Copy(r) | OperandSource::Move(r) => &v[r as usize],
        OperandSource::Const(c) => &code.constants[c as usize],
        _ => &IValue::None,
    };
    value.as_future().filter(|future| !future.is_done())
}

/// Returns the list that an operand refers to.
#[inline]
pub(super) fn list<'a>(operand: u32, code: &'a Code, v: &'a [IValue]) -> Result<&'a List, KernelError> {
    let value = match Operand(operand).place() {
        OperandSource::Copy(r) | OperandSource::Move(r) => &v[r as usize],
        OperandSource::Const(c) => &code.constants[c as usize],
        _ => &IValue::None,
    };
    match value {
        IValue::List(list) => Ok(list),
        other => Err(not_a_list(other)),
    }
}

/// Returns the contents of the list in a register if this register holds the only reference, so no lock is needed.
#[inline(always)]
pub(super) fn own_list(operand: u32, v: &mut [IValue]) -> Option<&mut ListItems> {
    match Operand(operand).place() {
        OperandSource::Copy(r) | OperandSource::Move(r) => match &mut v[r as usize] {
            IValue::List(list) => list.get_mut(),
            _ => None,
        },
        _ => None,
    }
}

/// Stores an element of an element of the list in a register, a number; returns the number of instructions to skip, which
/// is 0 if those must report an error.
#[inline(never)]
pub(super) fn get_nested(i: &Instr, s: &mut [u64], v: &mut [IValue]) -> usize {
    let indices = [s[i.c as usize] as i64, s[usize::from(i.d)] as i64];
    match nested_word(Operand(i.b), indices, ScalarKind::of_field(i.e), v) {
        Some(word) => {
            s[i.a as usize] = word;
            usize::from(i.e >> 2)
        }
        None => 0,
    }
}

#[inline(always)]
fn nested_word(
    operand: Operand,
    [outer, inner]: [i64; 2],
    kind: ScalarKind,
    v: &mut [IValue],
) -> Option<u64> {
    let IValue::List(list) = &mut v[operand.register()? as usize] else { return None };
    match list.get_mut() {
        Some(ListItems::Values(rows)) => {
            let at = intrinsic::wrap_index(outer, rows.len()).ok()?;
            let IValue::List(row) = &mut rows[at] else { return None };
            match row.get_mut() {
                Some(items) => get_word(items, inner, kind).ok(),
                None => get_word(&row.read(), inner, kind).ok(),
            }
        }
        Some(_) => None,
        None => {
            let ListItems::Values(rows) = &*list.read() else { return None };
            let at = intrinsic::wrap_index(outer, rows.len()).ok()?;
            let IValue::List(row) = &rows[at] else { return None };
            get_word(&row.read(), inner, kind).ok()
        }
    }
}

/// Returns whether two operands are the identical value, or are not, as a word.
#[inline(never)]
pub(super) fn is(i: &Instr, code: &Code, s: &[u64], v: &[IValue]) -> u64 {
    let (mut word_a, mut word_b) = (IValue::None, IValue::None);
    let a = peek(Operand(i.b), code, s, v, &mut word_a);
    let b = peek(Operand(i.c), code, s, v, &mut word_b);
    let same = if b.is_none() { a.is_none() } else { a.is_same(b) };
    u64::from(same == (i.op == Opcode::Is))
}

/// Passes a value to the observer.
pub(super) fn observe(i: &Instr, code: &Code, s: &[u64], v: &[IValue], env: &mut StepBuffers<'_>) {
    let mut word = IValue::None;
    let value = peek(Operand(i.b), code, s, v, &mut word);
    env.host.observe(code.graph(), code.profiles[i.a as usize], std::slice::from_ref(value));
}

/// Returns the value of an operand without moving it; a word is boxed in `word`.
#[inline(always)]
fn peek<'a>(
    operand: Operand,
    code: &'a Code,
    s: &[u64],
    v: &'a [IValue],
    word: &'a mut IValue,
) -> &'a IValue {
    match operand.place() {
        OperandSource::Copy(r) | OperandSource::Move(r) => &v[r as usize],
        OperandSource::Const(c) => &code.constants[c as usize],
        OperandSource::Scalar(kind, r) => {
            *word = kind.boxed(s[r as usize]);
            word
        }
        OperandSource::Nowhere => word,
    }
}

#[cold]
fn not_a_list(value: &IValue) -> KernelError {
    KernelError::input(format!("expected a list but found {}", value.tag()))
}

/// Returns element `i` as a word.
#[inline(always)]
pub(super) fn get_word(items: &ListItems, i: i64, kind: ScalarKind) -> Result<u64, KernelError> {
    match (items, kind) {
        (ListItems::Ints(v), ScalarKind::Int) => Ok(v[intrinsic::wrap_index(i, v.len())?] as u64),
        (ListItems::Floats(v), ScalarKind::Float) => Ok(v[intrinsic::wrap_index(i, v.len())?].to_bits()),
        (ListItems::Bools(v), ScalarKind::Bool) => Ok(u64::from(v[intrinsic::wrap_index(i, v.len())?])),
        _ => get_other(items, i, kind),
    }
}

#[cold]
fn get_other(items: &ListItems, i: i64, kind: ScalarKind) -> Result<u64, KernelError> {
    let at = intrinsic::wrap_index(i, items.len())?;
    let value = items.get(at).unwrap_or_default();
    kind.unboxed(&value).ok_or_else(|| wrong_kind(kind, &value))
}

/// Sets element `i` to a word.
#[inline(always)]
pub(super) fn set_word(
    items: &mut ListItems,
    i: i64,
    kind: ScalarKind,
    word: u64,
) -> Result<(), KernelError> {
    let at = intrinsic::wrap_index(i, items.len())?;
    match (items, kind) {
        (ListItems::Ints(v), ScalarKind::Int) => v[at] = word as i64,
        (ListItems::Floats(v), ScalarKind::Float) => v[at] = f64::from_bits(word),
        (ListItems::Bools(v), ScalarKind::Bool) => v[at] = word != 0,
        (other, _) => other.set(at, kind.boxed(word)),
    }
    Ok(())
}

/// Appends a word.
#[inline(always)]
pub(super) fn append_word(items: &mut ListItems, kind: ScalarKind, word: u64) -> Result<(), KernelError> {
    match (items, kind) {
        (ListItems::Ints(v), ScalarKind::Int) => {
            grow(v)?;
            v.push(word as i64);
        }
        (ListItems::Floats(v), ScalarKind::Float) => {
            grow(v)?;
            v.push(f64::from_bits(word));
        }
        (ListItems::Bools(v), ScalarKind::Bool) => {
            grow(v)?;
            v.push(word != 0);
        }
        (other, _) => other.push(kind.boxed(word)),
    }
    Ok(())
}

/// Returns an error if the growth of a list exceeds the memory limit.
#[inline]
fn grow<T>(v: &Vec<T>) -> Result<(), KernelError> {
    if v.len() == v.capacity() && v.len() >= intrinsic::GROWTH_CHECKED {
        intrinsic::check_growth(v.len())
    } else {
        Ok(())
    }
}

/// Returns slot `slot` of the object that an operand refers to.
#[inline(never)]
pub(super) fn get_slot(
    operand: u32,
    slot: u32,
    code: &Code,
    v: &mut [IValue],
) -> Result<IValue, KernelError> {
    let slot = slot as usize;
    let found = match own_slots(operand, v) {
        Some(slots) => slots.get(slot).cloned().unwrap_or(IValue::Uninitialized),
        None => object(operand, code, v)?.get(slot),
    };
    match found {
        IValue::Uninitialized => Err(KernelError::new(
            crate::Fault::Input,
            "AttributeError",
            "an attribute was read before it was set",
        )),
        found => Ok(found),
    }
}

/// Returns the slots of an object whose only handle is in a register.
#[inline]
fn own_slots(operand: u32, v: &mut [IValue]) -> Option<&mut [IValue]> {
    match &mut v[Operand(operand).register()? as usize] {
        IValue::Object(object) => object.get_mut().map(Vec::as_mut_slice),
        _ => None,
    }
}

fn object<'v>(operand: u32, code: &'v Code, v: &'v [IValue]) -> Result<&'v Object, KernelError> {
    let value = match Operand(operand).place() {
        OperandSource::Copy(r) | OperandSource::Move(r) => &v[r as usize],
        OperandSource::Const(c) => &code.constants[c as usize],
        _ => &IValue::None,
    };
    match value {
        IValue::Object(object) => Ok(object),
        other => Err(not_an_object(other)),
    }
}

/// Returns a slot of an object as a word.
#[inline]
pub(super) fn get_word_slot(i: Instr, code: &Code, v: &mut [IValue]) -> Result<u64, KernelError> {
    let (operand, slot, kind) = (i.b, i.c, ScalarKind::of_field(i.d));
    let unboxed = |slots: &[IValue]| slots.get(slot as usize).and_then(|value| kind.unboxed(value));
    let word = match Operand(operand).place() {
        OperandSource::Copy(r) | OperandSource::Move(r) => match &mut v[r as usize] {
            IValue::Object(object) => match object.get_mut() {
                Some(slots) => unboxed(slots),
                None => unboxed(&object.read()),
            },
            _ => None,
        },
        _ => None,
    };
    match word {
        Some(word) => Ok(word),
        // Constants, and errors.
        None => {
            let value = get_slot(operand, slot, code, v)?;
            kind.unboxed(&value).ok_or_else(|| wrong_kind(kind, &value))
        }
    }
}

#[cold]
fn not_an_object(value: &IValue) -> KernelError {
    KernelError::input(format!("expected an object but found {}", value.tag()))
}

/// Sets slot `slot` of the object that an operand refers to.
#[inline(never)]
pub(super) fn set_slot(
    operand: u32,
    slot: u32,
    value: IValue,
    code: &Code,
    v: &mut [IValue],
) -> Result<(), KernelError> {
    if let Some(known) = own_slots(operand, v).and_then(|slots| slots.get_mut(slot as usize)) {
        drop(std::mem::replace(known, value));
        return Ok(());
    }
    object(operand, code, v)?.set(slot as usize, value);
    Ok(())
}

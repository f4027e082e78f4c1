//! Dictionary operators: keys in insertion order, compared by value (tensors by identity).
//!
//! Every operator has one overload per key type; each is written once here.

use crate::per_type::{Elem, OverloadRow, all, check_values_fit, row};
use flambeau_exec::{DictList, FastPath, Gen, KernelCx, KernelError, KernelResult};
use flambeau_ir::value::{Dict, DictMap, IValue, List, Tuple};
use flambeau_ir::{OpDef, Type};

fn alone(g: &mut Gen<'_>, key: Elem) -> Vec<IValue> {
    vec![IValue::Dict(key.dict(g))]
}

/// Draws a dictionary and a key, often one of its own.
fn and_key(g: &mut Gen<'_>, key: Elem) -> Vec<IValue> {
    if g.flag() { and_own(g, key) } else { vec![IValue::Dict(key.dict(g)), key.draw(g)] }
}

/// Draws a dictionary and one of its keys.
fn and_own(g: &mut Gen<'_>, key: Elem) -> Vec<IValue> {
    let dict = key.dict(g);
    let (own, _) = dict.to_vec().swap_remove(0);
    vec![IValue::Dict(dict), own]
}

fn key_and_value(g: &mut Gen<'_>, key: Elem) -> Vec<IValue> {
    let mut args = and_key(g, key);
    args.push(IValue::Int(g.int(10, 20)));
    args
}

fn questions() -> Vec<OverloadRow> {
    vec![
        row("aten::len", "Dict_{}", "The number of entries.", |cx| {
            let n = cx.dict(0)?.len();
            cx.ret(n as i64);
            Ok(())
        })
        .sample(alone),
        row("aten::__contains__", "{}", "`key in dict`.", |cx| {
            let found = found(cx)?.is_some();
            cx.ret(found);
            Ok(())
        })
        .fast(FastPath::DictContains)
        .sample(and_key),
        row("aten::__getitem__", "Dict_{}", "`self[key]`.", |cx| {
            let value = found(cx)?.ok_or_else(|| no_key(cx))?;
            cx.ret(value);
            Ok(())
        })
        .raises()
        .fast(FastPath::DictGet)
        .sample(and_own),
        row("aten::get", "{}", "The value of a key, or `None`.", |cx| {
            let value = found(cx)?;
            cx.ret_opt(value);
            Ok(())
        })
        .sample(and_key),
        row("aten::get", "default_{}", "The value of a key, or a default.", |cx| {
            let value = found(cx)?;
            let value = value.unwrap_or_else(|| cx.take(2));
            cx.ret(value);
            Ok(())
        })
        .sample(key_and_value),
        row("aten::keys", "{}", "A list of the keys.", |cx| {
            let dict = cx.dict(0)?;
            let keys = listed(dict.key_type(), dict, |(k, _)| k)?;
            cx.ret(keys);
            Ok(())
        })
        .lists(DictList::Keys)
        .sample(alone),
        row("aten::values", "{}", "A list of the values.", |cx| {
            let dict = cx.dict(0)?;
            let values = listed(dict.value_type(), dict, |(_, v)| v)?;
            cx.ret(values);
            Ok(())
        })
        .lists(DictList::Values)
        .sample(alone),
        row("aten::items", "{}", "A list of pairs of key and value.", |cx| {
            let dict = cx.dict(0)?;
            let pair = Type::tuple(&[dict.key_type(), dict.value_type()]);
            let items = listed(pair, dict, |(k, v)| IValue::Tuple(Tuple::new([k, v])))?;
            cx.ret(items);
            Ok(())
        })
        .lists(DictList::Items)
        .sample(alone),
        row("aten::copy", "Dict_{}", "A new dictionary with the same entries.", copy).sample(alone),
        row("aten::dict", "Dict_{}", "A new dictionary with the same entries.", copy).sample(alone),
        row("aten::dict", "{}", "A dictionary from pairs; the last value of equal keys is kept.", from_pairs)
            .raises()
            .sample(|g, key| {
                let pairs =
                    key.dict(g).to_vec().into_iter().map(|(k, v)| IValue::tuple(vec![k, v])).collect();
                vec![IValue::list(Type::tuple(&[key.ty(), Type::INT]), pairs)]
            }),
    ]
}

fn changes() -> Vec<OverloadRow> {
    vec![
        row("aten::_set_item", "{}", "`l[idx] = v`.", |cx| {
            let (key, value) = (cx.take(1), cx.take(2));
            check_values_fit(cx.dict(0)?.len() + 1)?;
            let old = cx.dict(0)?.insert(key, value)?;
            drop(old);
            Ok(())
        })
        .fast(FastPath::DictSet)
        .sample(key_and_value),
        row("aten::Delete", "Dict_{}", "`del self[key]`.", |cx| {
            let old = removed(cx)?;
            old.map(drop).ok_or_else(|| no_key(cx))
        })
        .raises()
        .sample(and_own),
        row("aten::pop", "Dict_{}", "Removes a key and returns its value.", |cx| {
            let value = removed(cx)?.ok_or_else(|| no_key(cx))?;
            cx.ret(value);
            Ok(())
        })
        .raises()
        .sample(and_own),
        row("aten::pop", "Dict_default_{}", "Removes a key and returns its value, or a default.", |cx| {
            let value = removed(cx)?;
            let value = value.unwrap_or_else(|| cx.take(2));
            cx.ret(value);
            Ok(())
        })
        .sample(key_and_value),
        row("aten::popitem", "{}", "Removes the entry inserted first and returns its key and value.", |cx| {
            let first = cx.dict(0)?.write().pop_first();
            let (k, v) = first.ok_or_else(|| KernelError::input("popitem(): dictionary is empty"))?;
            cx.ret(Tuple::new([k, v]));
            Ok(())
        })
        .raises()
        .sample(alone),
        row(
            "aten::setdefault",
            "{}",
            "The value of a key, which is inserted with a default if missing.",
            |cx| {
                let value = match found(cx)? {
                    Some(value) => value,
                    None => {
                        let (key, default) = (cx.take(1), cx.take(2));
                        cx.dict(0)?.insert(key, default.clone())?;
                        default
                    }
                };
                cx.ret(value);
                Ok(())
            },
        )
        .sample(key_and_value),
        row("aten::update", "{}", "Sets all entries of another dictionary.", |cx| {
            let added = cx.dict(1)?.to_vec();
            check_values_fit(cx.dict(0)?.len().saturating_add(added.len()))?;
            for (k, v) in added {
                let old = cx.dict(0)?.insert(k, v)?;
                drop(old);
            }
            Ok(())
        })
        .sample(|g, key| vec![IValue::Dict(key.dict(g)), IValue::Dict(key.dict(g))]),
        row("aten::clear", "{}", "Removes all entries.", |cx| {
            let old = std::mem::take(&mut *cx.dict(0)?.write());
            drop(Dict::from_map(Type::ANY, Type::ANY, old));
            Ok(())
        })
        .sample(alone),
    ]
}

/// Returns the value of key 1 in dictionary 0.
fn found(cx: &KernelCx<'_>) -> Result<Option<IValue>, KernelError> {
    Ok(cx.dict(0)?.get(cx.arg(1)?)?)
}

fn removed(cx: &KernelCx<'_>) -> Result<Option<IValue>, KernelError> {
    Ok(cx.dict(0)?.write().remove(cx.arg(1)?)?)
}

#[cold]
fn no_key(cx: &KernelCx<'_>) -> KernelError {
    match cx.arg(1) {
        Ok(key) => KernelError::input(format!("KeyError: {key}")),
        Err(error) => error,
    }
}

fn listed(elem: Type, dict: &Dict, f: impl Fn((IValue, IValue)) -> IValue) -> Result<List, KernelError> {
    check_values_fit(dict.len())?;
    Ok(List::from_values(elem, dict.to_vec().into_iter().map(f).collect()))
}

fn copy(cx: &mut KernelCx<'_>) -> KernelResult {
    check_values_fit(cx.dict(0)?.len())?;
    let dict = cx.dict(0)?.copy();
    cx.ret(dict);
    Ok(())
}

fn from_pairs(cx: &mut KernelCx<'_>) -> KernelResult {
    let list = cx.list(0)?;
    let elem = list.elem_type();
    let types = elem.as_tuple().map(|t| &t.elems[..]);
    let [key, value] = types.unwrap_or_default() else {
        return Err(KernelError::input(format!("a dictionary is made of pairs, not of {elem}")));
    };
    check_values_fit(list.len())?;
    let mut map = DictMap::default();
    for pair in list.to_vec() {
        let Some([k, v]) = pair.as_tuple().map(Tuple::items) else {
            return Err(KernelError::input("a dictionary is made of pairs"));
        };
        map.insert(k.clone(), v.clone())?;
    }
    let dict = Dict::from_map(*key, *value, map);
    cx.ret(dict);
    Ok(())
}

pub(super) fn family() -> Vec<OpDef> {
    let rows = questions().into_iter().chain(changes()).map(|row| row.over(Elem::KEYS));
    let empty = row("aten::dict", "", "An empty dictionary.", |cx| {
        let types = match cx.result_type(0).kind() {
            flambeau_ir::types::TypeKind::Dict(k, v) => (*k, *v),
            _ => (Type::STR, Type::TENSOR),
        };
        cx.ret(Dict::new(types.0, types.1));
        Ok(())
    });
    all(rows.chain([empty]))
}

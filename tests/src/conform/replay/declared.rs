//! Conversion of recorded results to the types that the program declares.
//!
//! PyTorch's `math.isnan` is declared to return a bool but returns an integer. A program cannot observe the difference;
//! the recording contains it.

use flambeau_ir::Type;
use flambeau_ir::types::TypeKind;
use serde_json::{Value, json};

use crate::value::{items, tag};

/// Returns the value with integers replaced by bools where `ty` has bool. JSON bounds the depth of values.
pub(super) fn as_declared(value: &Value, ty: Type) -> Value {
    match (tag(value), ty.kind()) {
        ("int", TypeKind::Bool) => {
            json!({"t": "bool", "v": value.get("v").and_then(Value::as_i64) != Some(0)})
        }
        (_, TypeKind::Optional(inner)) => as_declared(value, *inner),
        ("tuple", TypeKind::Tuple(tuple)) => {
            let members = items(value).iter().zip(&tuple.elems).map(|(v, ty)| as_declared(v, *ty)).collect();
            with_members(value, members)
        }
        ("list", TypeKind::List(elem)) => {
            with_members(value, items(value).iter().map(|v| as_declared(v, *elem)).collect())
        }
        _ => value.clone(),
    }
}

fn with_members(value: &Value, members: Vec<Value>) -> Value {
    let mut value = value.clone();
    if members.len() == items(&value).len() {
        value["v"] = Value::Array(members);
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_convert_to_declared_bools() {
        let value = json!({"t": "tuple", "v": [{"t": "int", "v": 1}, {"t": "int", "v": 1}]});
        let want = json!({"t": "tuple", "v": [{"t": "bool", "v": true}, {"t": "int", "v": 1}]});
        assert_eq!(as_declared(&value, Type::tuple(&[Type::BOOL, Type::INT])), want);
        assert_eq!(as_declared(&value, Type::INT), value);
    }
}

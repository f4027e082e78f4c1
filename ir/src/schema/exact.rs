//! Overload resolution without conversions, used by the parser of graph text for every node.
//!
//! A node in a graph has an operand for every parameter, in order, including keyword-only parameters and defaults. A
//! schema therefore matches if each operand's type is a subtype of its parameter's type, where matching binds type
//! variables.

use super::FunctionSchema;
use crate::types::{ClassEnv, NoClasses, Type, TypeBindings, is_subtype, match_type_variables};

/// Returns whether operands of these types, in order, match the parameters without conversions. Missing trailing
/// parameters must have defaults.
#[must_use]
pub fn accepts_types(schema: &FunctionSchema, types: &[Type], classes: &dyn ClassEnv) -> bool {
    let n = schema.args.len();
    if types.len() > n && !schema.vararg {
        return false;
    }
    let mut bound: Option<TypeBindings> = None;
    for (arg, &actual) in schema.args.iter().zip(types) {
        if arg.ty == actual {
            continue;
        }
        let formal = if arg.ty.has_vars() {
            let bound = bound.get_or_insert_default();
            if match_type_variables(arg.ty, actual, bound, classes).is_err() {
                return false;
            }
            match bound.apply(arg.ty) {
                Some(formal) => formal,
                // `None` for `t?` matches whatever the variable is bound to.
                None if actual == Type::NONE => continue,
                None => return false,
            }
        } else {
            arg.ty
        };
        // A list of refined tensors may be used as a list of tensors, although lists are invariant.
        if !is_subtype(actual, formal, classes)
            && !is_subtype(actual.erase_shapes(), formal.erase_shapes(), classes)
        {
            return false;
        }
    }
    schema.args[types.len().min(n)..].iter().all(|arg| arg.default.is_some())
}

/// Returns the index of the first schema that accepts operands of these types without conversions. Schemas with exactly
/// as many parameters as operands take precedence, so the defaults of a longer overload never hide an exact match.
pub fn resolve_exact<'a>(
    schemas: impl Iterator<Item = &'a FunctionSchema> + Clone,
    types: &[Type],
) -> Option<usize> {
    let accepts = |s: &FunctionSchema| accepts_types(s, types, &NoClasses);
    let whole = schemas.clone().position(|s| s.args.len() == types.len() && accepts(s));
    whole.or_else(|| schemas.clone().position(accepts))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::parse_ir_type;

    fn types(text: &str) -> Vec<Type> {
        let (ty, _) = parse_ir_type(text, 0).unwrap();
        ty.as_tuple().unwrap().elems.to_vec()
    }

    #[test]
    fn overloads_are_chosen_by_operands() {
        let schemas: Vec<FunctionSchema> = [
            "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
            "aten::add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
            "aten::add.t(t[] a, t[] b) -> t[]",
            "aten::add.int(int a, int b) -> int",
            "aten::add.float(float a, float b) -> float",
            "aten::add(Scalar a, Scalar b) -> Scalar",
        ]
        .iter()
        .map(|s| FunctionSchema::parse(s).unwrap())
        .collect();
        let find = |text| resolve_exact(schemas.iter(), &types(text));
        assert_eq!(find("(Float(2), Tensor, int)"), Some(0));
        assert_eq!(find("(Tensor, Tensor)"), Some(0));
        assert_eq!(find("(Tensor, float, int)"), Some(1));
        assert_eq!(find("(int[], int[])"), Some(2));
        assert_eq!(find("(Float(2)[], Tensor[])"), Some(2));
        assert_eq!(find("(int[], float[])"), None);
        assert_eq!(find("(int, int)"), Some(3));
        assert_eq!(find("(int, float)"), Some(5));
        assert_eq!(find("(str, str)"), None);
        assert_eq!(find("()"), None);
    }
}

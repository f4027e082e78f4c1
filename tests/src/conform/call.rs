//! One recorded call of the program of a case: its inputs and what was recorded of it.
//!
//! A case is either one call, whose fields stand in the case itself, or a list of calls that one loaded program takes
//! one after another. Replaying sees calls only, so that both are judged by the same code.

use serde_json::Value;

use super::case::Case;
use crate::value::compare::Tolerance;

/// A call: fields of one JSON object, with defaults from the case.
#[derive(Debug, Clone, Copy)]
pub struct Call<'c> {
    /// The case the call belongs to.
    pub case: &'c Case,
    json: &'c Value,
}

impl<'c> Call<'c> {
    /// The call whose fields are those of `json`, a part of `case` or all of it.
    pub(super) fn new(case: &'c Case, json: &'c Value) -> Call<'c> {
        Call { case, json }
    }

    /// A field of the call.
    pub fn get(&self, field: &str) -> Option<&'c Value> {
        self.json.get(field)
    }

    fn list(&self, field: &str) -> &'c [Value] {
        self.get(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    /// The function or method that is called.
    pub fn entry(&self) -> &'c str {
        self.get("entry").and_then(Value::as_str).unwrap_or_else(|| self.case.text("entry"))
    }

    /// The positional inputs.
    pub fn inputs(&self) -> &'c [Value] {
        self.list("inputs")
    }

    /// The inputs by name, in order.
    pub fn kwargs(&self) -> impl Iterator<Item = (&'c str, &'c Value)> {
        self.get("kwargs").and_then(Value::as_object).into_iter().flatten().map(|(k, v)| (k.as_str(), v))
    }

    /// The positional inputs as they were after the call; empty where the call changed none.
    pub fn inputs_after(&self) -> &'c [Value] {
        self.list("inputs_after")
    }

    /// Attributes to set before the call: paths from the module that is called, and values.
    pub fn set(&self) -> impl Iterator<Item = (&'c str, &'c Value)> {
        self.list("set").iter().filter_map(|pair| Some((pair.get(0)?.as_str()?, pair.get(1)?)))
    }

    /// Groups of positions whose arguments are one object: each position that repeats an earlier one, and the earlier
    /// one.
    pub fn same(&self) -> impl Iterator<Item = (usize, usize)> {
        let positions = |group: &'c Value| group.as_array().into_iter().flatten().filter_map(Value::as_u64);
        self.list("same").iter().flat_map(move |group| {
            let first = positions(group).next();
            first.into_iter().flat_map(move |first| {
                positions(group).skip(1).map(move |later| (later as usize, first as usize))
            })
        })
    }

    /// Recorded gradients of one kind (`grad_outputs`, `grad_inputs`); `None` where none were recorded.
    pub fn gradients(&self, kind: &str) -> Option<&'c [Value]> {
        let list = self.get("grads")?.get(kind)?.as_array()?;
        Some(list.as_slice())
    }

    /// Whether a tensor among the inputs requires a gradient.
    pub fn requires_grad(&self) -> bool {
        let requires = |value: &Value| value.get("rg").and_then(Value::as_bool) == Some(true);
        let mut open: Vec<&Value> = self.inputs().iter().chain(self.kwargs().map(|(_, v)| v)).collect();
        while let Some(value) = open.pop() {
            if requires(value) {
                return true;
            }
            open.extend(value.get("v").unwrap_or(value).as_array().into_iter().flatten());
        }
        false
    }

    /// How close results have to be.
    pub fn tolerance(&self) -> Tolerance {
        let number = |field| {
            let own = self.get(field).or_else(|| self.case.get(field));
            own.and_then(Value::as_f64).unwrap_or(0.0)
        };
        let check = self.get("check").and_then(Value::as_str).unwrap_or_else(|| self.case.text("check"));
        Tolerance { rtol: number("rtol"), atol: number("atol"), meta: check == "meta", ..Tolerance::EXACT }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(line: &str) -> Case {
        Case::parse(line).unwrap()
    }

    #[test]
    fn a_case_without_calls_is_one_call() {
        let case = case(r#"{"entry": "f", "inputs": [1], "rtol": 0.5}"#);
        let calls = case.calls();
        assert_eq!(calls.len(), 1);
        assert_eq!((calls[0].entry(), calls[0].inputs().len(), calls[0].tolerance().rtol), ("f", 1, 0.5));
    }

    #[test]
    fn calls_have_defaults_from_their_case() {
        let case = case(
            r#"{"entry": "f", "atol": 2.0, "calls": [{"inputs": []}, {"entry": "g",
                "set": [["bn.training", 3]], "same": [[2, 0, 1], [4, 5]]}]}"#,
        );
        let calls = case.calls();
        assert_eq!((calls[0].entry(), calls[1].entry()), ("f", "g"));
        assert!(calls.iter().all(|c| c.tolerance().atol == 2.0));
        assert_eq!(calls[1].set().map(|(path, _)| path).collect::<Vec<_>>(), ["bn.training"]);
        assert_eq!(calls[1].same().collect::<Vec<_>>(), [(0, 2), (1, 2), (5, 4)]);
    }
}

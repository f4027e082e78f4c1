//! A recorded call of a case's program: inputs and recorded results.
//!
//! A case is either a single call, whose fields are fields of the case, or a list of calls that run in order on one
//! loaded program. Both are replayed as lists of calls.

use serde_json::Value;

use super::case::Case;
use crate::value::compare::Tolerance;

/// A call: the fields of a JSON object, with the fields of the case as defaults.
#[derive(Debug, Clone, Copy)]
pub struct Call<'c> {
    /// The case.
    pub case: &'c Case,
    json: &'c Value,
}

impl<'c> Call<'c> {
    /// Creates a call from `json`, which is `case` itself or a part of it.
    pub(super) fn new(case: &'c Case, json: &'c Value) -> Call<'c> {
        Call { case, json }
    }

    /// Returns a field of the call.
    pub fn get(&self, field: &str) -> Option<&'c Value> {
        self.json.get(field)
    }

    fn list(&self, field: &str) -> &'c [Value] {
        self.get(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    /// Returns the name of the called function or method.
    pub fn entry(&self) -> &'c str {
        self.get("entry").and_then(Value::as_str).unwrap_or_else(|| self.case.text("entry"))
    }

    /// Returns the positional inputs.
    pub fn inputs(&self) -> &'c [Value] {
        self.list("inputs")
    }

    /// Returns the keyword inputs, in order.
    pub fn kwargs(&self) -> impl Iterator<Item = (&'c str, &'c Value)> {
        self.get("kwargs").and_then(Value::as_object).into_iter().flatten().map(|(k, v)| (k.as_str(), v))
    }

    /// Returns the positional inputs after the call; empty if the call changed none.
    pub fn inputs_after(&self) -> &'c [Value] {
        self.list("inputs_after")
    }

    /// Returns attributes to set before the call: paths from the called module, and values.
    pub fn set(&self) -> impl Iterator<Item = (&'c str, &'c Value)> {
        self.list("set").iter().filter_map(|pair| Some((pair.get(0)?.as_str()?, pair.get(1)?)))
    }

    /// Returns aliasing among the arguments: pairs of a position and an earlier position with the same object.
    pub fn same(&self) -> impl Iterator<Item = (usize, usize)> {
        let positions = |group: &'c Value| group.as_array().into_iter().flatten().filter_map(Value::as_u64);
        self.list("same").iter().flat_map(move |group| {
            let first = positions(group).next();
            first.into_iter().flat_map(move |first| {
                positions(group).skip(1).map(move |later| (later as usize, first as usize))
            })
        })
    }

    /// Returns the recorded gradients `grads`.
    pub fn gradients(&self) -> Option<&'c Value> {
        self.get("grads")
    }

    /// Returns the tolerance for comparing results.
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

//! A recorded case, and the verdict of its replay.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};

use super::call::Call;

/// A case: one JSON object of a suite.
#[derive(Debug, Clone)]
pub struct Case {
    json: Value,
}

impl Case {
    /// Parses a line of a suite.
    ///
    /// # Errors
    /// Returns an error if the line is not a JSON object.
    pub fn parse(line: &str) -> Result<Case, String> {
        let json: Value = serde_json::from_str(line).map_err(|e| format!("the case is not JSON: {e}"))?;
        if json.is_object() { Ok(Case { json }) } else { Err("the case is not an object".to_string()) }
    }

    /// Returns a field.
    pub fn get(&self, field: &str) -> Option<&Value> {
        self.json.get(field)
    }

    /// Returns the whole object.
    pub(super) fn json(&self) -> &Value {
        &self.json
    }

    /// Returns the text of a field; empty if the field is absent.
    pub fn text(&self, field: &str) -> &str {
        self.get(field).and_then(Value::as_str).unwrap_or("")
    }

    /// Returns the id of the case.
    pub fn id(&self) -> &str {
        // Cases of printed forms are identified by their archive.
        if self.get("id").is_some() { self.text("id") } else { self.text("archive") }
    }

    /// Returns the archive if it is part of the case.
    pub fn archive_bytes(&self) -> Option<Vec<u8>> {
        BASE64.decode(self.get("archive_bytes")?.as_str()?).ok()
    }

    /// Returns whether a field is true.
    pub fn is(&self, field: &str) -> bool {
        self.get(field).and_then(Value::as_bool).unwrap_or(false)
    }

    /// Returns the recorded calls, in order. A case without the field `calls` is a single call.
    pub fn calls(&self) -> Vec<Call<'_>> {
        let calls =
            self.get("calls").and_then(Value::as_array).map_or(std::slice::from_ref(&self.json), |c| c);
        calls.iter().map(|json| Call::new(self, json)).collect()
    }

    /// Returns the group in which the case is counted: operator, model, test file, chapter or pass, depending on the
    /// suite.
    pub fn group(&self) -> &str {
        match self.text("suite") {
            "ops" => self.text("op"),
            "models" => self.text("model"),
            "lang" => self.text("group"),
            "ir" => self.text("pass"),
            // `jit.test_async.TestAsync.test_wait`: the last two parts are the class and the method.
            "harvest" | "" => {
                let test = self.text("test");
                test.rsplitn(3, '.').nth(2).unwrap_or(test)
            }
            _ => "",
        }
    }
}

/// The outcome of replaying a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The result is as recorded.
    Passed,
    /// The result differs.
    Failed,
    /// The replay failed with an error of kind `Unsupported`.
    Unsupported,
    /// A panic, the death of the process, or a timeout.
    Panicked,
}

impl Outcome {
    const ALL: [Outcome; 4] = [Outcome::Passed, Outcome::Failed, Outcome::Unsupported, Outcome::Panicked];

    /// Returns the name of the outcome in reports.
    pub fn word(self) -> &'static str {
        match self {
            Outcome::Passed => "passed",
            Outcome::Failed => "failed",
            Outcome::Unsupported => "unsupported",
            Outcome::Panicked => "panicked",
        }
    }
}

/// The outcome of a case with an explanation.
#[derive(Debug, Clone)]
pub struct Verdict {
    /// The outcome.
    pub outcome: Outcome,
    /// The reason if the case did not pass; a remark (`extended`) if it did.
    pub why: String,
}

impl Verdict {
    /// Creates the verdict of a case that passed.
    pub fn passed() -> Verdict {
        Verdict { outcome: Outcome::Passed, why: String::new() }
    }

    /// Creates the verdict of a case that failed.
    pub fn failed(why: impl Into<String>) -> Verdict {
        Verdict { outcome: Outcome::Failed, why: why.into() }
    }

    /// Creates the verdict of a case that needs an unsupported feature.
    pub fn unsupported(why: impl Into<String>) -> Verdict {
        Verdict { outcome: Outcome::Unsupported, why: why.into() }
    }

    /// Creates the verdict of a case that panicked.
    pub fn panicked(why: impl Into<String>) -> Verdict {
        Verdict { outcome: Outcome::Panicked, why: why.into() }
    }

    /// Returns the verdict as one line of JSON.
    pub fn to_line(&self) -> String {
        json!({"outcome": self.outcome.word(), "why": self.why}).to_string()
    }

    /// Parses a line written by [`Verdict::to_line`]; returns `None` for anything else.
    pub fn from_line(line: &str) -> Option<Verdict> {
        let json: Value = serde_json::from_str(line).ok()?;
        let word = json.get("outcome")?.as_str()?;
        let outcome = Outcome::ALL.into_iter().find(|o| o.word() == word)?;
        Some(Verdict { outcome, why: json.get("why")?.as_str()?.to_string() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_follow_the_suite() {
        let group = |line: &str| Case::parse(line).unwrap().group().to_string();
        assert_eq!(group(r#"{"suite": "ops", "op": "add"}"#), "add");
        assert_eq!(
            group(r#"{"suite": "harvest", "test": "jit.test_async.TestAsync.test_x"}"#),
            "jit.test_async"
        );
        assert_eq!(group(r#"{"suite": "ir", "kind": "ir_text"}"#), "");
        assert_eq!(group(r#"{"suite": "bad"}"#), "");
    }

    #[test]
    fn verdicts_round_trip() {
        let verdict = Verdict::unsupported("a \"quoted\"\nreason");
        let back = Verdict::from_line(&verdict.to_line()).unwrap();
        assert_eq!((back.outcome, back.why.as_str()), (Outcome::Unsupported, "a \"quoted\"\nreason"));
        assert!(Verdict::from_line("noise").is_none());
    }
}

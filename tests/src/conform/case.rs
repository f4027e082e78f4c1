//! A recorded case, and how its replay ended.

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
    /// Reads a line of a suite.
    ///
    /// # Errors
    /// If it is no JSON object.
    pub fn parse(line: &str) -> Result<Case, String> {
        let json: Value = serde_json::from_str(line).map_err(|e| format!("the case is no JSON: {e}"))?;
        if json.is_object() { Ok(Case { json }) } else { Err("the case is no object".to_string()) }
    }

    /// A field, if it is there.
    pub fn get(&self, field: &str) -> Option<&Value> {
        self.json.get(field)
    }

    /// A field's text; empty where there is none.
    pub fn text(&self, field: &str) -> &str {
        self.get(field).and_then(Value::as_str).unwrap_or("")
    }

    /// The name it goes by.
    pub fn id(&self) -> &str {
        // Printed forms are recorded per archive.
        if self.get("id").is_some() { self.text("id") } else { self.text("archive") }
    }

    /// The archive, where it is part of the case.
    pub fn archive_bytes(&self) -> Option<Vec<u8>> {
        BASE64.decode(self.get("archive_bytes")?.as_str()?).ok()
    }

    /// Whether a field is there and true.
    pub fn is(&self, field: &str) -> bool {
        self.get(field).and_then(Value::as_bool).unwrap_or(false)
    }

    /// The recorded calls, in order. A case without the field `calls` is one call itself.
    pub fn calls(&self) -> Vec<Call<'_>> {
        let calls =
            self.get("calls").and_then(Value::as_array).map_or(std::slice::from_ref(&self.json), |c| c);
        calls.iter().map(|json| Call::new(self, json)).collect()
    }

    /// The group it is counted in: by operator, model, test file, chapter or pass, according to the suite.
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

/// How the replay of a case ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// As recorded.
    Passed,
    /// Otherwise.
    Failed,
    /// An error that names what is not supported.
    Unsupported,
    /// A panic, the death of the process, no answer in time.
    Panicked,
}

impl Outcome {
    const ALL: [Outcome; 4] = [Outcome::Passed, Outcome::Failed, Outcome::Unsupported, Outcome::Panicked];

    /// Its word in reports.
    pub fn word(self) -> &'static str {
        match self {
            Outcome::Passed => "passed",
            Outcome::Failed => "failed",
            Outcome::Unsupported => "unsupported",
            Outcome::Panicked => "panicked",
        }
    }
}

/// The outcome of a case with what is to be said about it.
#[derive(Debug, Clone)]
pub struct Verdict {
    /// How it ended.
    pub outcome: Outcome,
    /// Why it did not pass; remarks of those that did (`extended`).
    pub why: String,
}

impl Verdict {
    /// It passed.
    pub fn passed() -> Verdict {
        Verdict { outcome: Outcome::Passed, why: String::new() }
    }

    /// It did not.
    pub fn failed(why: impl Into<String>) -> Verdict {
        Verdict { outcome: Outcome::Failed, why: why.into() }
    }

    /// Something is missing.
    pub fn unsupported(why: impl Into<String>) -> Verdict {
        Verdict { outcome: Outcome::Unsupported, why: why.into() }
    }

    /// It took the process with it.
    pub fn panicked(why: impl Into<String>) -> Verdict {
        Verdict { outcome: Outcome::Panicked, why: why.into() }
    }

    /// As one line of JSON.
    pub fn to_line(&self) -> String {
        json!({"outcome": self.outcome.word(), "why": self.why}).to_string()
    }

    /// Reads what [`Verdict::to_line`] wrote; `None` for anything else.
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
    fn verdicts_travel() {
        let verdict = Verdict::unsupported("a \"quoted\"\nreason");
        let back = Verdict::from_line(&verdict.to_line()).unwrap();
        assert_eq!((back.outcome, back.why.as_str()), (Outcome::Unsupported, "a \"quoted\"\nreason"));
        assert!(Verdict::from_line("noise").is_none());
    }
}

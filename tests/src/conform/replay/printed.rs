//! Comparison of an archive's printed programs with PyTorch's: graphs, source, and source compiled again.
//!
//! Graphs are compared in canonical form: constants are printed where they are used, values are numbered in order of
//! definition, and locations are omitted. The variables of source are numbered likewise.

use std::collections::BTreeMap;
use std::fmt::Write;

use flambeau::Program;
use flambeau_frontend::FrontendLimits;
use flambeau_frontend::print::{ReceiverForm, code};
use flambeau_ir::Symbol;
use serde_json::Value;

use super::super::case::{Case, Verdict};
use super::text::{first_difference, read};
use super::{Replay, verdict_of};
use crate::canonical::canonical;

impl Replay {
    pub(super) fn printed(&self, case: &Case) -> Result<(), Verdict> {
        let program = self.load(case, &self.session).map_err(|e| verdict_of(&e, "refused"))?;
        for method in case.get("methods").and_then(Value::as_array).into_iter().flatten() {
            let text = |field| method.get(field).and_then(Value::as_str);
            let name = text("name").unwrap_or("");
            let entry = program.entry(name).map_err(|e| verdict_of(&e, "no such method"))?;
            match (case.text("form"), text("graph"), text("code")) {
                ("graph", Some(want), _) => {
                    let want = read(want, self.session.registry())?;
                    same(name, "graph", &canonical(entry.graph()), &canonical(&want))?;
                }
                ("code", _, Some(want)) => {
                    let got = entry.code().map_err(|e| verdict_of(&e, "printing"))?;
                    same(name, "code", &numbered(&got), &numbered(want))?;
                }
                ("again", ..) => self.round_trip(&program, name)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Compiles the source of a method in its own program and compares the graph with the original.
    fn round_trip(&self, program: &Program, name: &str) -> Result<(), Verdict> {
        let method =
            program.module().and_then(|m| program.unit().method(m.object().class(), Symbol::new(name)));
        let Some(function) = method else { return Ok(()) };
        let refused = |what: &str, e: &flambeau_ir::Diagnostic| {
            Verdict::failed(format!("{what}: {}", e.message.lines().next().unwrap_or("")))
        };
        let printed =
            code(program.unit(), function, ReceiverForm::Typed).map_err(|e| refused("printing", &e))?;
        let again = printed.compile(program.unit(), self.session.registry(), &FrontendLimits::default());
        let again = again.map_err(|all| refused("compiling again", &all[0]))?;
        same(
            function.name.as_str(),
            "graph compiled again",
            &canonical(&again.graph),
            &canonical(&function.graph),
        )
    }
}

fn same(name: &str, what: &str, got: &str, want: &str) -> Result<(), Verdict> {
    if got.trim_end() == want.trim_end() {
        return Ok(());
    }
    Err(Verdict::failed(format!("the {what} of `{name}` differs: {}", first_difference(got, want))))
}

/// Returns the source with variables numbered in order of appearance.
fn numbered(text: &str) -> String {
    let mut variables: BTreeMap<&str, usize> = BTreeMap::new();
    for line in text.lines() {
        let line = line.trim_start();
        let targets = match line.split_once(" in range(") {
            Some((head, _)) if line.starts_with("for ") => &head[4..],
            _ if line.starts_with("with ") => {
                line.split_once(" as ").map_or("", |(_, name)| name.trim_end_matches(':'))
            }
            _ if line.starts_with("def __") => line[4..].split('(').next().unwrap_or(""),
            _ => match line.split_once(" = ") {
                Some((targets, _)) => targets.split(':').next().unwrap_or(""),
                // A parameter.
                None => line.split_once(':').map_or("", |(name, _)| name),
            },
        };
        for target in targets.split(',').map(str::trim).filter(|t| is_name(t)) {
            let next = variables.len();
            variables.entry(target).or_insert(next);
        }
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
        if end == 0 {
            out.push(c);
            rest = &rest[c.len_utf8()..];
            continue;
        }
        let (word, after) = rest.split_at(end);
        match variables.get(word).filter(|_| !out.ends_with('.') && !after.starts_with('=')) {
            Some(n) => {
                let _ = write!(out, "v{n}");
            }
            None => out.push_str(word),
        }
        rest = after;
    }
    out
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_numbered() {
        let a = "def f(x: Tensor) -> Tensor:\n  _0 = torch.add(x, x.y, alpha=1)\n  return _0\n";
        let b = a.replace("_0", "_7");
        assert_eq!(numbered(a), numbered(&b));
        assert!(numbered(a).contains("x.y, alpha=1"));
        assert_ne!(numbered(a), numbered(&a.replace("return _0", "return x")));
    }
}

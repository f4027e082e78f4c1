//! Operators that changed their meaning, in archives from before.
//!
//! The format version says what operators meant when an archive was written: integer `div` truncated before version 4,
//! `full` of a boolean or an integer was of floats before version 5, `linspace` and `logspace` had a default number of
//! steps before versions 8 and 9. Running such code with today's operators would give wrong answers in silence, so it
//! is refused, call by call: calls that mean the same now are let through.

use flambeau_frontend::{Ast, Kind, TreeId, view};

use crate::code::SourceFile;
use crate::{ArchiveError, Code};

/// An operator, the version from which it means what it means now, and which calls meant the same before.
struct Change {
    name: &'static str,
    since: u64,
    same: fn(&Ast, view::Apply<'_>) -> bool,
}

const CHANGES: &[Change] = &[
    Change { name: "div", since: 4, same: |_, _| false },
    Change { name: "div_", since: 4, same: |_, _| false },
    Change { name: "full", since: 5, same: has_dtype },
    Change { name: "linspace", since: 8, same: has_steps },
    Change { name: "logspace", since: 9, same: has_steps },
];

/// Refuses the function `def` if it calls an operator that meant something else in archives of `version`.
pub(crate) fn check_meaning(file: &SourceFile, def: TreeId, version: u64) -> Result<(), ArchiveError> {
    if CHANGES.iter().all(|change| change.since <= version) {
        return Ok(());
    }
    let ast = file.ast();
    let mut stack = vec![def];
    while let Some(id) = stack.pop() {
        stack.extend(ast.children(id).iter().rev());
        let Some(call) = view::Apply::of(ast, id) else { continue };
        let Some(change) = changed(ast, call.callee(), version).filter(|change| !(change.same)(ast, call))
        else {
            continue;
        };
        let Change { name, since, .. } = change;
        let message =
            format!("`torch.{name}` meant something else before format version {since}; this is {version}");
        let at = u64::from(ast.span(id).start);
        return Err(ArchiveError::new(Code::Upgrade, message).in_record(file.record()).at(at));
    }
    Ok(())
}

fn changed(ast: &Ast, callee: TreeId, version: u64) -> Option<&'static Change> {
    let select = view::Select::of(ast, callee)?;
    let of = view::Var::of(ast, select.value())?;
    let found = CHANGES.iter().find(|change| change.name == select.name() && change.since > version)?;
    (of.name() == "torch").then_some(found)
}

fn is_given(ast: &Ast, call: view::Apply<'_>, name: &str, position: usize) -> bool {
    let named =
        call.attributes().iter().filter_map(|&a| view::Attribute::of(ast, a)).find(|a| a.name() == name);
    let value = named.map(|a| a.value()).or_else(|| call.inputs().get(position).copied());
    value.is_some_and(|v| ast.kind(v) != Kind::None)
}

fn has_dtype(ast: &Ast, call: view::Apply<'_>) -> bool {
    // Keyword-only: there is no position.
    is_given(ast, call, "dtype", usize::MAX)
}

fn has_steps(ast: &Ast, call: view::Apply<'_>) -> bool {
    is_given(ast, call, "steps", 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flambeau_ir::Source;

    fn check(call: &str, version: u64) -> Result<(), ArchiveError> {
        let text = format!("def f(x):\n  return {call}\n");
        let file = flambeau_frontend::SourceFile::new(Source::new("code/a.py", text), &Default::default());
        let def = file.parsed.ast.children(file.parsed.root)[0];
        check_meaning(&SourceFile::whole(file), def, version)
    }

    #[test]
    fn only_calls_that_changed_are_refused() {
        for (call, version) in [
            ("torch.div(x, 2)", 3),
            ("torch.relu(torch.div_(x, 2))", 1),
            ("torch.full([2], 1)", 4),
            ("torch.full([2], 1, dtype=None)", 4),
            ("torch.linspace(0, 1)", 7),
            ("torch.logspace(0, 1, None)", 8),
        ] {
            assert_eq!(check(call, version).expect_err("refused").code(), Code::Upgrade, "{call}");
        }
        for (call, version) in [
            ("torch.div(x, 2)", 4),
            ("torch.mul(x, 2)", 1),
            ("x.div(2)", 3),
            ("torch.full([2], 1, dtype=6)", 4),
            ("torch.linspace(0, 1, 5)", 7),
            ("torch.logspace(0, 1, steps=5)", 8),
        ] {
            assert!(check(call, version).is_ok(), "{call}");
        }
    }
}

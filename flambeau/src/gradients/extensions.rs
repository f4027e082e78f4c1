//! Checks of the gradients that extensions state.

use crate::error::Error;
use crate::session::Session;
use flambeau_ir::Fault;
use flambeau_rewrite::autodiff::Gradients;
use std::collections::BTreeSet;

/// Checks the gradients that extensions state: their syntax, the names of operators and arguments, and that their
/// formulas compile. Tests check those of the standard operators.
///
/// # Errors
/// `S0002` with file and line; `F…` for the first formula that does not compile.
pub(crate) fn check_extensions(session: &Session) -> Result<(), Error> {
    let (registry, standard) = (session.registry(), flambeau_ops::registry());
    let (known, column) = (standard.column::<Gradients>(), registry.column::<Gradients>());
    let is_known = |g: &&Gradients| known.iter().any(|(_, other)| *g == other);
    let added: Vec<&Gradients> = column.iter().map(|(_, g)| g).filter(|g| !is_known(g)).collect();
    if added.is_empty() {
        return Ok(());
    }
    let library = session.gradient_library()?;
    let (mut ops, mut errors) = (BTreeSet::new(), Vec::new());
    for gradients in added {
        match gradients.operators(registry) {
            Ok(found) => ops.extend(found),
            Err(wrong) => errors.extend(wrong.iter().map(ToString::to_string)),
        }
    }
    if !errors.is_empty() {
        return Err(Error::new(Fault::Misuse, "S0002", errors.join("\n")));
    }
    library.check(ops).map_err(|mut errors| errors.swap_remove(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_formula_compiles() {
        let session = Session::standard().expect("the standard session");
        let library = session.gradient_library().expect("the derivatives read");
        let problems = library.check(session.registry().ids()).err().unwrap_or_default();
        let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert!(problems.is_empty(), "{}", texts.join("\n"));
    }

    #[test]
    fn gradients_name_operators_and_arguments_that_are_there() {
        let registry = flambeau_ops::registry();
        for (_, gradients) in registry.column::<Gradients>().iter() {
            let problems = gradients.operators(&registry).err().unwrap_or_default();
            let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
            assert!(problems.is_empty(), "{}", texts.join("\n"));
        }
    }
}

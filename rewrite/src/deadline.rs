//! The time limit of a run of a pipeline.
//!
//! The manager checks the deadline before and after every pass. After the deadline no pass gets fuel, so a pass stops
//! rewriting; passes whose search takes longer than their rewrites also check the deadline at each step of the search
//! ([`Deadline::check`]). A run that passes its deadline returns an error, never the graph it has reached: a graph that
//! a run returns does not depend on the speed of the machine.

use crate::pass::PassError;
use flambeau_ir::Fault;
use std::time::{Duration, Instant};

/// The time at which a run must have ended; the default is no limit.
#[derive(Clone, Copy, Debug, Default)]
pub struct Deadline(Option<(Instant, Duration)>);

impl Deadline {
    /// Returns the deadline that is `time` from now; `None` is no limit.
    pub fn after(time: Option<Duration>) -> Self {
        Deadline(time.and_then(|time| Some((Instant::now().checked_add(time)?, time))))
    }

    /// Returns whether the deadline has passed.
    pub fn has_passed(self) -> bool {
        self.0.is_some_and(|(end, _)| Instant::now() >= end)
    }

    /// Checks the clock.
    ///
    /// # Errors
    /// Returns an error of fault `Limit` if the deadline has passed.
    pub fn check(self) -> Result<(), PassError> {
        match self.0 {
            Some((_, time)) if self.has_passed() => {
                let text = format!("out of time: the limit of {:.3} seconds was reached", time.as_secs_f64());
                Err(PassError::new(Fault::Limit, text))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::Control;
    use crate::manager::Manager;
    use crate::pass::{DynPass, Pass, PassCx};
    use crate::passes::constant_propagation::ConstantPropagation;
    use crate::pipeline::{PassLibrary, Pipeline};
    use crate::rules::Rewrite;
    use crate::testing::{read, toy};
    use flambeau_analysis::Analyses;

    const TEXT: &str = "graph(%x : Tensor):
  %a : Tensor = toy::relu(%x)
  %b : Tensor = toy::relu(%x)
  return (%a)
";

    /// Waits until the deadline has passed, then tries to rewrite.
    struct Slow;

    impl Pass for Slow {
        const NAME: &'static str = "slow";

        fn run(&self, cx: &mut PassCx<'_>) -> Result<(), PassError> {
            while !cx.deadline().has_passed() {
                std::thread::yield_now();
            }
            let last = cx.graph().nodes(cx.graph().root()).last().expect("a node");
            assert!(!cx.fuel("erase", last), "no fuel after the deadline");
            Ok(())
        }
    }

    #[test]
    fn a_pass_that_exceeds_the_deadline_fails_the_run() {
        let mut graph = read(&toy(), TEXT);
        let mut control = Control::new().with_deadline(Deadline::after(Some(Duration::from_millis(5))));
        let pipeline = Pipeline::new().then(Slow);
        let error = Manager::new().run_with(&mut graph, &pipeline, &mut Analyses::new(), &mut control);
        let error = error.expect_err("out of time");
        assert_eq!((error.pass.as_str(), error.error.fault), ("slow", Fault::Limit), "{error}");
        assert!(error.to_string().contains("the limit of 0.005 seconds"), "{error}");
        assert_eq!(error.report.passes.len(), 1, "the report includes the pass");
    }

    #[test]
    fn no_pass_starts_after_the_deadline() {
        let registry = toy();
        for pass in ["cse", "constant_propagation", "peephole", "fix(dce)"] {
            let mut graph = read(&registry, TEXT);
            let mut control = Control::new().with_deadline(Deadline::after(Some(Duration::ZERO)));
            let pipeline = Pipeline::parse(pass, &PassLibrary::standard()).expect("a pipeline");
            let error = Manager::new().run_with(&mut graph, &pipeline, &mut Analyses::new(), &mut control);
            let error = error.expect_err(pass);
            assert_eq!(error.error.fault, Fault::Limit, "{error}");
            assert!(error.report.passes.is_empty());
            assert_eq!(graph.to_string(), TEXT);
        }
    }

    #[test]
    fn searches_end_at_the_deadline() {
        let passes: Vec<Box<dyn DynPass>> = vec![
            Box::new(ConstantPropagation::default()),
            Box::new(Rewrite::default()),
            #[cfg(feature = "egraph")]
            Box::new(crate::egraph::Saturate::default()),
        ];
        for pass in passes {
            let mut graph = read(&toy(), TEXT);
            let mut control = Control::new().with_deadline(Deadline::after(Some(Duration::ZERO)));
            let mut analyses = Analyses::new();
            let mut cx = PassCx::bare(&mut graph, &mut analyses, &mut control, None);
            let error = pass.run(&mut cx).expect_err(pass.name());
            assert_eq!(error.fault, Fault::Limit, "{error}");
        }
    }

    #[test]
    fn a_time_beyond_the_clock_is_no_limit() {
        assert!(!Deadline::after(Some(Duration::MAX)).has_passed() && !Deadline::after(None).has_passed());
    }
}

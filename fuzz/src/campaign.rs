//! Campaigns: run an oracle on many cases, count the outcomes, reduce the first failure.

use crate::case::Case;
use crate::generate::OperatorPool;
use crate::oracle::{CheckOutcome, Oracle};
use crate::reduce::reduce;
use flambeau_exec::Gen;
use flambeau_ir::Registry;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Upper bound on the steps of a program.
pub(crate) const MAX_STEPS: usize = 64;

/// Numbers of cases by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Cases in which the property was tested and holds.
    pub checked: u64,
    /// Number of checked cases in which the tested pass changed the program.
    pub changed: u64,
    /// Cases to which the property does not apply.
    pub rejected: u64,
    /// Cases that exceeded the time limit.
    pub timeout: u64,
    /// Cases in which the property does not hold.
    pub failed: u64,
    /// Number of guards that failed in the checked cases.
    pub failed_guards: u64,
}

impl Tally {
    /// Counts one case.
    pub fn add(&mut self, outcome: &CheckOutcome) {
        match outcome {
            CheckOutcome::Checked => self.checked += 1,
            CheckOutcome::Changed => (self.checked, self.changed) = (self.checked + 1, self.changed + 1),
            CheckOutcome::Rejected(_) => self.rejected += 1,
            CheckOutcome::Timeout => self.timeout += 1,
            CheckOutcome::Failed(_) => self.failed += 1,
        }
    }

    /// Returns the number of all cases.
    pub fn cases(&self) -> u64 {
        self.checked + self.rejected + self.timeout + self.failed
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Tally { checked, changed, rejected, timeout, failed, failed_guards } = self;
        write!(
            f,
            "{checked} checked ({changed} changed), {rejected} rejected, {timeout} timeouts, {failed} failed"
        )?;
        match failed_guards {
            0 => Ok(()),
            guards => write!(f, "; {guards} guards failed"),
        }
    }
}

/// A failure in its smallest form.
pub struct Finding {
    /// The number of the case in the campaign.
    pub number: u64,
    /// The smallest case that still fails.
    pub case: Case,
    /// The failure.
    pub why: String,
}

/// Generates cases for oracles.
pub struct Campaign {
    operators: OperatorPool,
    seed: u64,
}

impl Campaign {
    /// Creates a campaign over the operators of a registry; equal seeds give equal cases.
    pub fn new(registry: &Arc<Registry>, seed: u64) -> Campaign {
        Campaign { operators: OperatorPool::new(registry), seed }
    }

    /// Draws every fourth operator of programs from these, given as `ns::name` or `ns::name.overload`.
    ///
    /// ```
    /// use flambeau_fuzz::Campaign;
    ///
    /// let campaign = Campaign::new(&flambeau_ops::registry(), 1).favouring(["aten::set_", "aten::mul.Tensor"])?;
    /// let programs = (0..20).map(|i| campaign.case(i).graph.to_string());
    /// assert!(programs.filter(|text| text.contains("aten::set_") || text.contains("aten::mul")).count() > 5);
    /// # Ok::<(), String>(())
    /// ```
    ///
    /// # Errors
    /// The first name that is not an operator of generated programs.
    pub fn favouring<S: AsRef<str>>(
        self,
        operators: impl IntoIterator<Item = S>,
    ) -> Result<Campaign, String> {
        Ok(Campaign { operators: self.operators.favouring(operators)?, ..self })
    }

    /// Adds operators with seed-dependent results to many cases.
    #[must_use]
    pub fn favouring_random(self) -> Campaign {
        Campaign { operators: self.operators.favouring_random(), ..self }
    }

    /// Draws operators on strings, lists and dictionaries much more often than others.
    #[must_use]
    pub fn favouring_containers(self) -> Campaign {
        Campaign { operators: self.operators.favouring_containers(), ..self }
    }

    /// Returns the operators that programs draw from.
    pub fn operators(&self) -> &OperatorPool {
        &self.operators
    }

    /// Returns case number `i`.
    pub fn case(&self, i: u64) -> Case {
        self.operators.draw(self.choices(i))
    }

    /// Returns case number `i`, cut after step `last`, without an execution of this step ([`OperatorPool::draw_until`]).
    pub fn case_until(&self, i: u64, last: usize) -> Case {
        self.operators.draw_until(self.choices(i), last)
    }

    /// Returns the choices from which case number `i` is generated.
    fn choices(&self, i: u64) -> Gen<'static> {
        // The generator counts up from its seed, so the seeds of cases are far apart.
        let mut g = Gen::from_seed(
            self.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ i.wrapping_mul(0xD134_2543_DE82_EF95),
        );
        Gen::from_seed(g.bits())
    }

    /// Checks cases until `limit` of them, `time`, or the first failure, which is reduced. If panics unwind, a panic
    /// counts as a failure of its case.
    pub fn run(
        &self,
        oracle: &dyn Oracle,
        limit: u64,
        time: Duration,
        mut progress: impl FnMut(&Tally),
    ) -> (Tally, Option<Finding>) {
        let start = Instant::now();
        let mut run = OracleRun::new(oracle);
        for i in 0..limit {
            if start.elapsed() > time {
                break;
            }
            run.check(i, &self.case_or_panic(i));
            if run.finding.is_some() {
                break;
            }
            progress(&run.tally);
        }
        (run.tally, run.finding)
    }

    /// Checks the same cases against several oracles, each until its first failure, like [`Campaign::run`]. A case is
    /// generated once, because generation takes as long as a check. `time` is for all oracles together.
    pub fn run_all(
        &self,
        oracles: &[Box<dyn Oracle>],
        limit: u64,
        time: Duration,
    ) -> Vec<(Tally, Option<Finding>)> {
        let start = Instant::now();
        let mut runs: Vec<OracleRun<'_>> = oracles.iter().map(|oracle| OracleRun::new(&**oracle)).collect();
        for i in 0..limit {
            if start.elapsed() > time || runs.iter().all(|run| run.finding.is_some()) {
                break;
            }
            let case = self.case_or_panic(i);
            runs.iter_mut().filter(|run| run.finding.is_none()).for_each(|run| run.check(i, &case));
        }
        runs.into_iter().map(|run| (run.tally, run.finding)).collect()
    }

    /// Returns case number `i`, or the program whose run panicked during generation.
    fn case_or_panic(&self, i: u64) -> Case {
        let made = catch_unwind(AssertUnwindSafe(|| self.case(i)));
        made.unwrap_or_else(|_| self.smallest_that_panics(i))
    }

    /// Returns the program whose run panicked during generation of case number `i`.
    fn smallest_that_panics(&self, i: u64) -> Case {
        let until = |last| catch_unwind(AssertUnwindSafe(|| self.case_until(i, last)));
        let cases = (1..=MAX_STEPS).map_while(|last| until(last).ok());
        // The last program that could be generated is the first whose run panics.
        cases
            .last()
            .unwrap_or_else(|| Case::new(flambeau_ir::Graph::new(self.operators.registry().clone()), vec![]))
    }
}

/// An oracle with its results.
struct OracleRun<'o> {
    oracle: CatchPanics<'o>,
    tally: Tally,
    finding: Option<Finding>,
}

impl<'o> OracleRun<'o> {
    fn new(oracle: &'o dyn Oracle) -> Self {
        OracleRun { oracle: CatchPanics(oracle), tally: Tally::default(), finding: None }
    }

    /// Checks the case of a number. The first failure is reduced and stored.
    fn check(&mut self, number: u64, case: &Case) {
        let outcome = self.oracle.check(case);
        self.tally.add(&outcome);
        if matches!(outcome, CheckOutcome::Failed(_)) {
            let (case, _) = reduce(case, &self.oracle, 2_000);
            let why = match self.oracle.check(&case) {
                CheckOutcome::Failed(why) => why,
                other => format!("{other:?}"),
            };
            self.finding = Some(Finding { number, case, why });
        }
    }
}

/// An oracle that converts panics into failures.
struct CatchPanics<'o>(&'o dyn Oracle);

impl Oracle for CatchPanics<'_> {
    fn name(&self) -> String {
        self.0.name()
    }

    fn check(&self, case: &Case) -> CheckOutcome {
        catch_unwind(AssertUnwindSafe(|| self.0.check(case))).unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
            CheckOutcome::Failed(format!("panics: {text}"))
        })
    }
}

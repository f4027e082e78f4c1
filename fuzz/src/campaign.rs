//! Campaigns: many cases against an oracle, counted, with the first failure reduced.

use crate::case::Case;
use crate::generate::OperatorPool;
use crate::oracle::{Oracle, Outcome};
use crate::reduce::reduce;
use flambeau_exec::Gen;
use flambeau_ir::Registry;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// More steps than any program is made by.
pub(crate) const MOST_STEPS: usize = 64;

/// How cases ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Cases in which the property was tested and holds.
    pub checked: u64,
    /// Those of them in which what is tested changed the program.
    pub changed: u64,
    /// Cases that did not bear on the property.
    pub rejected: u64,
    /// Cases that took too long.
    pub timeout: u64,
    /// Cases in which it does not hold.
    pub failed: u64,
}

impl Tally {
    /// Counts one case.
    pub fn add(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Checked => self.checked += 1,
            Outcome::Changed => (self.checked, self.changed) = (self.checked + 1, self.changed + 1),
            Outcome::Rejected(_) => self.rejected += 1,
            Outcome::Timeout => self.timeout += 1,
            Outcome::Failed(_) => self.failed += 1,
        }
    }

    /// All cases.
    pub fn cases(&self) -> u64 {
        self.checked + self.rejected + self.timeout + self.failed
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Tally { checked, changed, rejected, timeout, failed } = self;
        write!(
            f,
            "{checked} checked ({changed} changed), {rejected} rejected, {timeout} timeouts, {failed} failed"
        )
    }
}

/// A failure with its smallest form.
pub struct Finding {
    /// The number of the case in the campaign.
    pub seed: u64,
    /// The smallest case that still fails.
    pub case: Case,
    /// What fails.
    pub why: String,
}

/// Many cases against oracles.
pub struct Campaign {
    operators: OperatorPool,
    seed: u64,
}

impl Campaign {
    /// A campaign over the operators of a registry; equal seeds make equal cases.
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
    /// The first name that no operator of generated programs has.
    pub fn favouring<S: AsRef<str>>(
        self,
        operators: impl IntoIterator<Item = S>,
    ) -> Result<Campaign, String> {
        Ok(Campaign { operators: self.operators.favouring(operators)?, ..self })
    }

    /// The same with operators whose results the run's seed decides in many cases.
    #[must_use]
    pub fn favouring_random(self) -> Campaign {
        Campaign { operators: self.operators.favouring_random(), ..self }
    }

    /// The operators drawn from.
    pub fn operators(&self) -> &OperatorPool {
        &self.operators
    }

    /// Case number `i`.
    pub fn case(&self, i: u64) -> Case {
        self.operators.draw(self.choices(i))
    }

    /// Case number `i` as it stands after step `last`, which is not tried ([`OperatorPool::draw_until`]).
    pub fn case_until(&self, i: u64, last: usize) -> Case {
        self.operators.draw_until(self.choices(i), last)
    }

    /// The choices that case number `i` is made by.
    fn choices(&self, i: u64) -> Gen<'static> {
        // The generator counts up from its seed: cases start far apart.
        let mut g = Gen::from_seed(
            self.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ i.wrapping_mul(0xD134_2543_DE82_EF95),
        );
        Gen::from_seed(g.bits())
    }

    /// Checks cases until `limit` of them, or `time`, or the first failure, which is reduced. A panic is a failure of
    /// its case, where panics unwind.
    pub fn run(
        &self,
        oracle: &dyn Oracle,
        limit: u64,
        time: Duration,
        mut progress: impl FnMut(&Tally),
    ) -> (Tally, Option<Finding>) {
        let start = Instant::now();
        let mut trial = Trial::new(oracle);
        for i in 0..limit {
            if start.elapsed() > time {
                break;
            }
            trial.check(i, &self.case_or_panic(i));
            if trial.finding.is_some() {
                break;
            }
            progress(&trial.tally);
        }
        (trial.tally, trial.finding)
    }

    /// Checks the same cases against several oracles, each until its first failure, as [`Campaign::run`] does. A case is
    /// made once, which takes as long as checking it. `time` is for all oracles together.
    pub fn run_all(
        &self,
        oracles: &[Box<dyn Oracle>],
        limit: u64,
        time: Duration,
    ) -> Vec<(Tally, Option<Finding>)> {
        let start = Instant::now();
        let mut trials: Vec<Trial<'_>> = oracles.iter().map(|oracle| Trial::new(&**oracle)).collect();
        for i in 0..limit {
            if start.elapsed() > time || trials.iter().all(|trial| trial.finding.is_some()) {
                break;
            }
            let case = self.case_or_panic(i);
            trials.iter_mut().filter(|trial| trial.finding.is_none()).for_each(|trial| trial.check(i, &case));
        }
        trials.into_iter().map(|trial| (trial.tally, trial.finding)).collect()
    }

    /// Case number `i`, or the program whose trial panicked while the case was made.
    fn case_or_panic(&self, i: u64) -> Case {
        let made = catch_unwind(AssertUnwindSafe(|| self.case(i)));
        made.unwrap_or_else(|_| self.smallest_that_panics(i))
    }

    /// The program whose trial panicked while case number `i` was made.
    fn smallest_that_panics(&self, i: u64) -> Case {
        let until = |last| catch_unwind(AssertUnwindSafe(|| self.case_until(i, last)));
        let cases = (1..=MOST_STEPS).map_while(|last| until(last).ok());
        // The last program that could be made is the first whose trial panics.
        cases
            .last()
            .unwrap_or_else(|| Case::new(flambeau_ir::Graph::new(self.operators.registry().clone()), vec![]))
    }
}

/// An oracle, and how it fared so far.
struct Trial<'o> {
    oracle: Caught<'o>,
    tally: Tally,
    finding: Option<Finding>,
}

impl<'o> Trial<'o> {
    fn new(oracle: &'o dyn Oracle) -> Self {
        Trial { oracle: Caught(oracle), tally: Tally::default(), finding: None }
    }

    /// Checks case number `seed`. A failure is reduced and kept.
    fn check(&mut self, seed: u64, case: &Case) {
        let outcome = self.oracle.check(case);
        self.tally.add(&outcome);
        if matches!(outcome, Outcome::Failed(_)) {
            let (case, _) = reduce(case, &self.oracle, 2_000);
            let why = match self.oracle.check(&case) {
                Outcome::Failed(why) => why,
                other => format!("{other:?}"),
            };
            self.finding = Some(Finding { seed, case, why });
        }
    }
}

/// An oracle whose panics are failures.
struct Caught<'o>(&'o dyn Oracle);

impl Oracle for Caught<'_> {
    fn name(&self) -> String {
        self.0.name()
    }

    fn check(&self, case: &Case) -> Outcome {
        catch_unwind(AssertUnwindSafe(|| self.0.check(case))).unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
            Outcome::Failed(format!("panics: {text}"))
        })
    }
}

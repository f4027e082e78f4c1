//! Tests facts against runs: the `ResultShapes` and `Dtype` rules of operators, and the conclusions [`Shapes`] draws from them
//! about whole programs.
//!
//! A rule is sound if every result of a call is covered by the fact predicted for it, whichever part of the operands'
//! facts the rule received ([`flambeau_analysis::shape::Valuation`] has the definition). A rule is total if it accepts
//! arbitrary facts without a panic. [`try_facts`] tests both for every operator of a registry, with arguments from the
//! operator's `Sample`; operators of an extension are tested like the standard ones. [`fn@watch`] tests the soundness of
//! the facts of a program.
//!
//! [`Shapes`]: flambeau_analysis::shape::Shapes

mod arbitrary;
mod arguments;
mod predict;
mod watch;

pub use arguments::{border, hostile, is_output, is_variant, sample};
pub use predict::{FactWeakener, Prediction};
pub use watch::{Watched, watch, watch_partial};

use crate::kernel::Kernel;
use crate::sample::Gen;
use flambeau_analysis::shape::{Dtype, ResultShapes, ShapeCx, Symbols, conclude};
use flambeau_ir::value::IValue;
use flambeau_ir::{OpId, Registry};
use flambeau_tensor::MemoryBudget;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// Number of trials per operator.
#[derive(Clone, Copy, Debug)]
pub struct TrialCount {
    /// Calls with sampled arguments.
    pub samples: u64,
    /// Calls with boundary arguments.
    pub borders: u64,
    /// Weakened predictions per call.
    pub parts: usize,
    /// Evaluations of the rules on arbitrary facts.
    pub arbitrary: u64,
    /// Seed of the random choices.
    pub seed: u64,
}

impl Default for TrialCount {
    fn default() -> Self {
        TrialCount { samples: 4, borders: 10, parts: 2, arbitrary: 16, seed: 1 }
    }
}

/// Result of the trials of one operator.
#[derive(Clone, Debug)]
pub struct FactTrial {
    /// The operator's full name.
    pub operator: String,
    /// Calls that returned results, which were compared with the predictions.
    pub checked: u64,
    /// Calls that raised an error; there is nothing to compare.
    pub raised: u64,
    /// Descriptions of failures, limited in number.
    pub failures: Vec<String>,
}

/// Memory limit of one call, in bytes.
const MEMORY: usize = 4 << 20;
/// Time limit of one rule evaluation.
const RULE_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximal number of failures recorded per operator.
const MAX_RECORDED_FAILURES: usize = 3;

/// Tests the rules of all operators for which `chosen` returns true.
pub fn try_facts(registry: &Registry, chosen: impl Fn(OpId) -> bool, effort: TrialCount) -> Vec<FactTrial> {
    registry.ids().filter(|&id| chosen(id)).map(|id| try_operator(registry, id, effort)).collect()
}

/// Tests the rules of one operator.
pub fn try_operator(registry: &Registry, id: OpId, effort: TrialCount) -> FactTrial {
    let operator = registry.schema(id).full_name();
    let mut trial = FactTrial { operator, checked: 0, raised: 0, failures: Vec::new() };
    let mut seeds = Gen::from_seed(effort.seed.wrapping_mul(0x9E37_79B9) ^ id.index() as u64);
    if registry.facet::<Kernel>(id).is_some() {
        for call in 0..effort.samples + effort.borders {
            let mut g = Gen::from_seed(seeds.bits());
            let args = match call < effort.samples {
                true => sample(registry, id, &mut g).unwrap_or_else(|| border(registry, id, &mut g)),
                false => border(registry, id, &mut g),
            };
            trial.call(registry, id, args, effort.parts, &mut g);
        }
    }
    for _ in 0..effort.arbitrary {
        trial.arbitrary(registry, id, &mut Gen::from_seed(seeds.bits()));
    }
    trial
}

impl FactTrial {
    fn fail(&mut self, what: String) {
        if self.failures.len() < MAX_RECORDED_FAILURES {
            self.failures.push(what);
        }
    }

    /// Runs one call and compares its results with the predictions.
    fn call(&mut self, registry: &Registry, id: OpId, args: Vec<IValue>, parts: usize, g: &mut Gen<'_>) {
        let schema = registry.schema(id);
        // The call may write to its arguments, so they are formatted before it.
        let shown = format!("{args:?}");
        let forecasts = || {
            let all = std::iter::once(Prediction::of_all(registry, id, &args));
            let forecasts: Vec<Prediction> =
                all.chain((0..parts).map(|_| Prediction::of_part(registry, id, &args, g))).collect();
            forecasts
        };
        let Ok(forecasts) = catch_unwind(AssertUnwindSafe(forecasts)) else {
            return self.fail(format!("a rule panics on {shown}"));
        };
        let run = || MemoryBudget::new(MEMORY).run(|| arguments::call(registry, id, args));
        match catch_unwind(AssertUnwindSafe(run)) {
            Err(_) => self.fail(format!("the kernel panics on {shown}")),
            Ok(None | Some(Err(_))) => self.raised += 1,
            Ok(Some(Ok(results))) => {
                if results.len() != schema.returns.len() && !schema.varret {
                    self.fail(format!("{} results on {shown}", results.len()));
                }
                self.checked += 1;
                if let Some(wrong) = forecasts.iter().find_map(|forecast| forecast.wrong(&results)) {
                    self.fail(format!("{wrong}, on {shown}"));
                }
            }
        }
    }

    /// Evaluates the rules on arbitrary facts, which need not fit the schema.
    fn arbitrary(&mut self, registry: &Registry, id: OpId, g: &mut Gen<'_>) {
        let schema = registry.schema(id);
        let (shape, dtype) = (registry.facet::<ResultShapes>(id), registry.facet::<Dtype>(id));
        if shape.is_none() && dtype.is_none() {
            return;
        }
        let mut symbols = Symbols::new();
        let operands = arbitrary::operands(schema, &mut symbols, g);
        let operand_facts = || operands.iter().map(|o| format!("{:?} ", o.fact)).collect::<String>();
        let start = Instant::now();
        let facts = operands.clone();
        let apply_rules = || {
            let mut cx = ShapeCx::new(Some(schema), facts, &mut symbols);
            (0..schema.returns.len().max(1)).for_each(|i| drop(conclude(shape, dtype, i, &mut cx)));
        };
        if catch_unwind(AssertUnwindSafe(apply_rules)).is_err() {
            self.fail(format!("a rule panics on the facts {}", operand_facts()));
        } else if start.elapsed() > RULE_TIMEOUT {
            self.fail(format!("a rule takes {:?} on the facts {}", start.elapsed(), operand_facts()));
        }
    }
}

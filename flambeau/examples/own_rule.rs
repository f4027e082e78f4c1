//! A custom rewrite rule, given as text: the reference evaluator tests it before its use.
//!
//! Run: `cargo run --release -p flambeau --example own_rule`

use flambeau::Session;
use flambeau::rewrite::rules::trial::{TrialLimits, try_rules};

/// `exact` promises bitwise equal results; a rule with different rounding is `rounding`, and the default pipeline
/// ignores it.
const RULES: &str = "ruleset mine
use aten

rule relu-sigmoid [exact]: relu(sigmoid(%x)) => sigmoid(%x) where floating(%x)
";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let session = Session::builder().standard().rules("mine.rules", RULES).build()?;

    let mine = session.rules()?.filtered(|rule| rule.name.starts_with("mine/"));
    for trial in try_rules(session.registry(), &mine, TrialLimits::default()) {
        println!("{}: {} programs agree, failure: {:?}", trial.rule, trial.tried, trial.failure);
    }

    let source = "def f(x: Tensor):\n    return torch.relu(torch.sigmoid(x.to(torch.float32)))\n";
    let program = session.compile_source(source, "f.py")?;
    let graph = program.entry("f")?.graph().clone();
    println!("{}", session.optimize(&graph, "egraph,dce")?);
    Ok(())
}

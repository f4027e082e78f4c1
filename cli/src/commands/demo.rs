//! The demonstration that runs without arguments: an LSTM cell, from source to result.

use crate::commands::bench::time;
use crate::input_types::of_value;
use crate::output;
use crate::setup::Setup;
use anstyle::{AnsiColor, Style};
use anyhow::{Context, Result, bail};
use flambeau::IValue;
use flambeau::analysis::{AliasDb, Analyses, shape::Shapes};
use flambeau::rewrite::Manager;
use flambeau::tensor::compare::max_abs_diff;

/// The program, and inputs with PyTorch's outputs.
const SOURCE: &str = include_str!("../../data/lstm_cell.py");
const RECORD: &str = include_str!("../../data/lstm_cell.json");

fn title(text: &str) -> Result<()> {
    let style: Style = AnsiColor::Cyan.on_default().bold();
    output::line(format_args!("\n{style}== {text} =={style:#}"))
}

/// Runs the command.
pub(crate) fn run(setup: Setup) -> Result<()> {
    let options = setup.print;
    let session = setup.session()?;
    title("source")?;
    output::line(SOURCE)?;

    let program = session.compile_source(SOURCE, "lstm_cell.py")?;
    let entry = program.entry("lstm_cell")?;
    title("graph")?;
    output::line(entry.graph().to_text(options))?;

    title("aliasing: values that may share memory")?;
    let mut analyses = Analyses::new();
    output::line(analyses.get::<AliasDb>(entry.graph()).dump(entry.graph()))?;

    let record: serde_json::Value = serde_json::from_str(RECORD).context("the embedded record")?;
    let read = |v: &serde_json::Value| flambeau::json::read(v).map_err(flambeau::Error::from);
    let list = record["inputs"].as_array().context("the embedded record has no inputs")?;
    let inputs: Vec<IValue> = list.iter().map(read).collect::<Result<_, _>>()?;

    title("shapes: inferred from the inputs' types")?;
    let mut typed = (**entry.graph()).clone();
    let params: Vec<_> = typed.inputs().collect();
    for (&param, input) in params.iter().zip(&inputs) {
        typed.edit().set_type(param, of_value(input));
    }
    output::line(Analyses::new().get::<Shapes>(&typed).report(&typed))?;

    title("passes: the graph after each that changed it")?;
    let pipeline = session.pipeline("default")?;
    let mut graph = (**entry.graph()).clone();
    let mut written = Ok(());
    let mut manager = Manager::new().unit(program.unit()).on_change(|capture| {
        if !capture.pass.is_empty() && written.is_ok() {
            let text = capture.graph.to_text(options);
            written = output::line(format_args!("-- after {}\n{text}", capture.pass));
        }
    });
    let mut report = manager.run(&mut graph, &pipeline).map_err(|e| anyhow::anyhow!("{e}"))?;
    drop(manager);
    written?;
    let ran = report.passes.len();
    report.passes.retain(|pass| pass.changed);
    output::line(format_args!(
        "{report}{} other passes found nothing to change\n",
        ran - report.passes.len()
    ))?;

    title("bytecode")?;
    output::line(entry.bytecode()?)?;

    title("run")?;
    let result = entry.call(&inputs, &[])?;
    output::line(&result)?;
    let timing = time(0.2, || {
        entry.call(&inputs, &[])?;
        Ok(())
    })?;
    output::line(format_args!("{:.2} us per call ({} calls)", timing.median / 1e3, timing.calls))?;

    let expected = read(&record["expected"])?;
    let worst = difference(&result, &expected)?;
    output::line(format_args!("greatest difference from PyTorch's recorded outputs: {worst:.3e}"))?;
    if worst > 1e-5 {
        bail!("the outputs differ from PyTorch's by {worst}");
    }
    Ok(())
}

/// Returns the largest absolute difference between tensors of two results with the same structure.
fn difference(a: &IValue, b: &IValue) -> Result<f64> {
    match (a, b) {
        (IValue::Tensor(x), IValue::Tensor(y)) => Ok(max_abs_diff(x, y).map_err(|e| anyhow::anyhow!("{e}"))?),
        (IValue::Tuple(x), IValue::Tuple(y)) if x.items().len() == y.items().len() => {
            let pairs = x.items().iter().zip(y.items());
            pairs.map(|(x, y)| difference(x, y)).try_fold(0.0, |worst: f64, d| Ok(worst.max(d?)))
        }
        _ => bail!("the structure of the result differs from the recorded one"),
    }
}

//! `flambeau run`: calls a function, a method or an exported program and prints its result.

use crate::exported;
use crate::inputs::InputArgs;
use crate::output::OutputArgs;
use crate::program::{ProgramArgs, ThreadArgs};
use crate::setup::{Setup, session};
use anyhow::Result;
use flambeau::{Execution, ExportedProgram};

/// Arguments of `run`.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    program: ProgramArgs,
    #[command(flatten)]
    inputs: InputArgs,
    #[command(flatten)]
    output: OutputArgs,
    /// Run with the reference evaluator, which defines the semantics of programs.
    #[arg(long)]
    reference: bool,
    /// Run bytecode without optimization.
    #[arg(long, conflicts_with = "reference")]
    unoptimized: bool,
    /// Stop after this many loop iterations and function calls.
    #[arg(long, value_name = "UNITS")]
    fuel: Option<u64>,
    /// Stop if tensors would hold more than this many megabytes.
    #[arg(long, value_name = "MB")]
    memory: Option<usize>,
    #[command(flatten)]
    threads: ThreadArgs,
}

/// Runs the command.
pub(crate) fn run(args: &Args, setup: Setup) -> Result<()> {
    let execution = match (args.reference, args.unoptimized) {
        (true, _) => Execution::Reference,
        (_, true) => Execution::Machine,
        _ => Execution::Optimized,
    };
    let mut builder = setup.builder.execution(execution);
    if let Some(units) = args.fuel {
        builder = builder.fuel(units);
    }
    if let Some(mb) = args.memory {
        builder = builder.memory(mb.saturating_mul(1 << 20));
    }
    let session = args.threads.of(&session(builder)?);
    // Output of the program is buffered until it has succeeded: after an error, standard output is empty.
    let printed = Printed::default();
    let mut host = session.host();
    host.set_stdout(printed.clone());
    let result = match exported::model(&args.program, &session, true)? {
        Some(model) => {
            let program = ExportedProgram::new(&session, model)?;
            let inputs = args.inputs.read_exported()?;
            program.call_on(&inputs.positional, &inputs.kwargs(), &mut host)
        }
        None => {
            let entry = args.program.entry(&session)?;
            let inputs = args.inputs.read(&entry)?;
            entry.call_on(&inputs.positional, &inputs.kwargs(), &mut host)
        }
    };
    let result = result.map_err(|e| args.inputs.blame(e))?;
    anstream::print!("{}", printed.take());
    args.output.value(&result)
}

/// A buffer that the host writes and the command reads.
#[derive(Clone, Default)]
struct Printed(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);

impl Printed {
    fn take(&self) -> String {
        let bytes = self.0.lock().map(|mut b| std::mem::take(&mut *b)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl std::io::Write for Printed {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let mut buffer = self.0.lock().map_err(|_| std::io::Error::other("the buffer is poisoned"))?;
        buffer.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

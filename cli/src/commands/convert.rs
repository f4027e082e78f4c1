//! `flambeau convert`: converts a module or its tensors to another file; the name of the output determines the format.

use crate::inputs::InputArgs;
use crate::output::{self, command_line_error, usage};
use crate::output_file::FileFormat;
use crate::program::{ProgramArgs, with_files};
use crate::setup::Setup;
use anyhow::{Context, Result};
use flambeau::archive::{replace_file, save_safetensors, save_state_dict};
use flambeau::export::{FileVersion, is_exported_file};
use flambeau::{
    DecompositionTable, DynamicSize, Entry, Error, ExportOptions, ExportedProgram, Fault, Program, Session,
};
use std::path::PathBuf;

/// Arguments of `convert`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// A `.pt` archive, an exported program, a state dict of `torch.save`, or a `.safetensors` file; functions of `.py` source or `.ir` text
    /// become methods of an empty module, a single one its `forward`.
    input: PathBuf,
    /// The file to write, replaced atomically. Its extension selects the format: `.pt`, `.pth`, `.bin` or `.zip` for an
    /// archive, `.pt2` for an exported program, `.safetensors` for tensors.
    output: PathBuf,
    /// Write only the tensors, as a state dict that `torch.load` reads.
    #[arg(long)]
    state_dict: bool,
    /// The function of a source that becomes `forward`; by default all keep their names.
    #[arg(long, short)]
    entry: Option<String>,
    /// Replace the module's tensors by those of this file (a state dict, `.safetensors`, or another archive).
    #[arg(long, value_name = "FILE", conflicts_with = "state_dict")]
    weights: Option<PathBuf>,
    /// With `--weights`: keep tensors that the file lacks and ignore additional ones; both are reported.
    #[arg(long, requires = "weights")]
    partial: bool,
    /// Example arguments, with which a module or function is run to become an exported program.
    #[command(flatten)]
    examples: InputArgs,
    /// With a module or function as input: a size that may vary, as INPUT:DIM=NAME:MIN..MAX, such as `x:0=batch:1..64`.
    #[arg(long, value_name = "SIZE")]
    dynamic: Vec<String>,
    /// With an exported program as output: the version of PyTorch that reads the file, `2.6`, `2.8`, `2.9` or `2.15`
    /// [default: 2.15]. Older versions do not read files of newer ones.
    #[arg(long = "for", value_name = "VERSION")]
    version: Option<String>,
    /// With an exported program as output: decompose its operators, to those of `core-aten`; `functional` replaces only
    /// operators that write.
    #[arg(long, value_name = "TABLE")]
    decompose: Option<String>,
    /// With an exported program as input and an archive as output: write one module with one method, not the modules that
    /// the program was exported with.
    #[arg(long)]
    flat: bool,
    /// A file to add to the archive; one of the same name is replaced.
    #[arg(long, value_name = "NAME=FILE", conflicts_with = "state_dict")]
    extra: Vec<String>,
}

/// The error for options of exported programs, if the output is of another kind.
const REQUIRE_EXPORTED_OUTPUT: &str = "`--for` and `--decompose` require an exported program as output";

/// The error for the option `--flat`, if no exported program becomes an archive.
const FLAT_REQUIRES_ARCHIVE: &str = "`--flat` requires an exported program as input and an archive as output";

/// Returns a program with the submodules that an exported one had, or with one module if they cannot be restored.
fn modules(program: &ExportedProgram, flat: bool) -> std::result::Result<Program, Error> {
    if flat {
        return program.to_module();
    }
    match program.unflatten() {
        Err(error) if error.fault == Fault::Unsupported => {
            output::error_line(format_args!("warning: written as one module: {}", error.message));
            program.to_module()
        }
        module => module,
    }
}

/// Runs the command.
pub(crate) fn run(args: &Args, setup: Setup) -> Result<()> {
    let session = with_files(&setup.session()?, false);
    let limits = flambeau::archive::ArchiveLimits::default();
    let format = FileFormat::of_any(&args.output)?;
    let (to_exported, to_safetensors) = (format == FileFormat::Exported, format == FileFormat::Safetensors);
    let from_source = args.input.extension().is_some_and(|e| e == "py" || e == "ir");
    if args.state_dict && format != FileFormat::Archive {
        return Err(command_line_error(format!(
            "`--state-dict` writes a file for `torch.load`; it cannot write {}",
            args.output.display()
        )));
    }
    if !from_source && is_exported_file(&args.input, &limits).map_err(Error::from)? {
        return convert_exported(&session, args, format);
    }
    if args.flat {
        return Err(command_line_error(FLAT_REQUIRES_ARCHIVE));
    }
    if to_exported {
        return export(&session, args);
    }
    if args.version.is_some() || args.decompose.is_some() {
        return Err(command_line_error(REQUIRE_EXPORTED_OUTPUT));
    }
    if args.examples.is_stated() || !args.dynamic.is_empty() {
        return Err(command_line_error(
            "`--inputs`, `--arg` and `--dynamic` require an exported program as output",
        ));
    }
    if args.entry.is_some() && !from_source {
        return Err(command_line_error(format!(
            "`--entry` requires source or an exported program as output, not {}",
            args.input.display()
        )));
    }
    if from_source && (args.state_dict || to_safetensors) {
        return Err(command_line_error(format!("{} has functions, but no tensors", args.input.display())));
    }
    let from_module =
        !from_source && flambeau::archive::has_code_file(&args.input, &limits).map_err(Error::from)?;
    if from_module && !args.state_dict && !to_safetensors {
        return convert_module(&session, args);
    }
    if args.weights.is_some() || !args.extra.is_empty() {
        let (input, output) = (args.input.display(), args.output.display());
        return Err(command_line_error(format!(
            "`--weights` and `--extra` require archives as input and output, not {input} and {output}"
        )));
    }
    if to_safetensors {
        let weights = session.load_weights(&args.input)?;
        return Ok(replace_file(&args.output, |out| save_safetensors(&weights, out)).map_err(Error::from)?);
    }
    if from_source {
        return convert_functions(&session, args);
    }
    let weights = session.load_weights(&args.input)?;
    Ok(replace_file(&args.output, |out| save_state_dict(&weights, out)).map_err(Error::from)?)
}

/// Converts an exported program: to another version, to a TorchScript module, or to its tensors.
fn convert_exported(session: &Session, args: &Args, format: FileFormat) -> Result<()> {
    if args.weights.is_some() || !args.extra.is_empty() || args.entry.is_some() {
        return Err(command_line_error(
            "`--weights`, `--extra` and `--entry` do not apply to exported programs",
        ));
    }
    // An invalid option precedes the errors of the file.
    let version = version(args)?;
    if args.examples.is_stated() || !args.dynamic.is_empty() {
        return Err(command_line_error(
            "`--inputs`, `--arg` and `--dynamic` apply to modules and functions, not to exported programs",
        ));
    }
    if format != FileFormat::Exported && (args.version.is_some() || args.decompose.is_some()) {
        return Err(command_line_error(REQUIRE_EXPORTED_OUTPUT));
    }
    if args.flat && (format != FileFormat::Archive || args.state_dict) {
        return Err(command_line_error(FLAT_REQUIRES_ARCHIVE));
    }
    let program = session.load_exported(&args.input)?;
    let version = version.unwrap_or_default();
    let output = &args.output;
    match format {
        FileFormat::Exported => {
            Ok(decomposed(session, program, args.decompose.as_deref())?.save(output, version)?)
        }
        FileFormat::Safetensors => {
            let weights = program.state_dict();
            Ok(replace_file(output, |out| save_safetensors(&weights, out)).map_err(Error::from)?)
        }
        FileFormat::Archive if args.state_dict => {
            let weights = program.state_dict();
            Ok(replace_file(output, |out| save_state_dict(&weights, out)).map_err(Error::from)?)
        }
        FileFormat::Archive => Ok(modules(&program, args.flat)?.save(output)?),
    }
}

/// Returns the version of PyTorch for which an exported program is written, if the command line states it.
fn version(args: &Args) -> Result<Option<FileVersion>> {
    args.version.as_deref().map(version_named).transpose()
}

/// Returns the version of PyTorch with a name.
pub(crate) fn version_named(name: &str) -> Result<FileVersion> {
    FileVersion::from_name(name)
        .ok_or_else(|| command_line_error(format!("`{name}` is not `2.6`, `2.8`, `2.9` or `2.15`")))
}

/// Decomposes an exported program with a table by name.
pub(crate) fn decomposed(
    session: &Session,
    program: ExportedProgram,
    table: Option<&str>,
) -> Result<ExportedProgram> {
    let table = match table {
        None => return Ok(program),
        Some("core-aten") => DecompositionTable::core_aten(session)?,
        Some("functional") => DecompositionTable::functional(session)?,
        Some(other) => {
            return Err(command_line_error(format!("`{other}` is not `core-aten` or `functional`")));
        }
    };
    Ok(program.run_decompositions(&table)?)
}

/// Exports an entry by a run on example arguments.
pub(crate) fn exported(
    entry: &Entry,
    examples: &InputArgs,
    dynamic: &[String],
    in_place: bool,
) -> Result<ExportedProgram> {
    let sizes = dynamic.iter().map(|text| text.parse::<DynamicSize>().map_err(usage));
    let options = ExportOptions { dynamic: sizes.collect::<Result<_>>()?, in_place };
    let inputs = examples.read(entry)?;
    let exported = ExportedProgram::from_entry_with(entry, &inputs.positional, &inputs.kwargs(), &options);
    exported.map_err(|mut error| {
        if !examples.is_stated() && error.fault == Fault::Misuse && error.help.is_none() {
            let help = "an exported program is recorded by a run on example arguments: state them by --inputs FILE or \
                        -a NAME=VALUE";
            error.help = Some(help.to_owned());
        }
        examples.with_command_line_code(error)
    })
}

/// Exports a method of a module, or a function.
fn export(session: &Session, args: &Args) -> Result<()> {
    if args.weights.is_some() || !args.extra.is_empty() {
        return Err(command_line_error("`--weights` and `--extra` do not apply to exported programs"));
    }
    let version = version(args)?;
    let file = args.input.to_string_lossy().into_owned();
    let chosen = ProgramArgs { file, entry: args.entry.clone(), copy: false };
    let program = chosen.load(session)?;
    let entry = chosen.pick(&program)?;
    let exported = exported(&entry, &args.examples, &args.dynamic, false)?;
    let exported = decomposed(session, exported, args.decompose.as_deref())?;
    Ok(exported.save(&args.output, version.unwrap_or_default())?)
}

/// Converts a module to another archive, with other weights and extra files.
fn convert_module(session: &Session, args: &Args) -> Result<()> {
    let mut program = session.load_archive(&args.input)?;
    if let (Some(file), Some(module)) = (&args.weights, program.module()) {
        let mismatch = module.load_state_dict(&session.load_weights(file)?, !args.partial)?;
        for (outcome, names) in [("kept", &mismatch.missing), ("left out", &mismatch.unexpected)] {
            names.iter().for_each(|name| output::error_line(format_args!("{outcome}: {name}")));
        }
    }
    let mut files = program.extra_files().to_vec();
    for text in &args.extra {
        let (name, path) =
            text.split_once('=').ok_or_else(|| command_line_error(format!("`{text}` is not NAME=FILE")))?;
        let bytes = std::fs::read(path).with_context(|| format!("reading {path}"))?;
        match files.iter_mut().find(|(n, _)| n == name) {
            Some((_, old)) => *old = bytes,
            None => files.push((name.to_owned(), bytes)),
        }
    }
    if !args.extra.is_empty() {
        program = program.with_extra_files(files);
    }
    Ok(program.save(&args.output)?)
}

/// Writes functions as an archive.
fn convert_functions(session: &Session, args: &Args) -> Result<()> {
    let file = args.input.to_string_lossy().into_owned();
    let chosen = ProgramArgs { file, entry: args.entry.clone(), copy: false };
    let program = chosen.load(session)?;
    if args.entry.is_some() {
        // An unknown name is an error of the command line.
        chosen.pick(&program)?;
    }
    let entries = program.entries();
    let methods: Vec<(&str, &str)> = match (&args.entry, entries.as_slice()) {
        (Some(only), _) | (None, [only]) => vec![(only, "forward")],
        _ => entries.iter().map(|name| (name.as_str(), name.as_str())).collect(),
    };
    Ok(program.to_module(&methods)?.save(&args.output)?)
}

//! Export: exported programs of TorchScript functions and modules.
//!
//! An export runs the program once on example arguments, node by node, as PyTorch's own export does with a Python program.
//! Every call of an operator that computes a tensor becomes a node of the exported graph. Everything else (containers,
//! objects, strings, numbers, calls of functions, loops, branches) is computed and leaves no node, so the exported graph has
//! the operators of the path that the example takes. Numbers are constants of the graph, unless they are symbolic
//! ([`symbolic`]): a number that is read from a tensor, and a size that the caller lets vary or that the contents of tensors
//! determine ([`sizes`]). A branch on a number of a tensor becomes a `cond`, one on a size restricts its range.
//!
//! * [`tracer`] runs the program; it is an evaluator like `flambeau_exec::reference`, with a hook at every node ([`classes`]:
//!   which operators are recorded; [`numbers`]: those on symbolic numbers);
//! * [`mod@record`] has the graph so far and the name of each tensor in it, by identity;
//! * [`arguments`] converts arguments of operators, [`state`] the attributes of the module;
//! * [`retrace`] compares the recordings of two examples;
//! * [`branch`] makes `cond` of branches on symbolic conditions, [`while_loop`] makes `while_loop` of loops on them, in
//!   scopes of subgraphs ([`scope`]), with results that are tensors ([`joined`]);
//! * [`functional`] replaces operators that write by those that do not, with the views of [`aliases`], and operators that a
//!   [`table`] decomposes by its functions.
//!
//! The program runs on copies of the module and of the arguments, so an export changes neither. No operator of the exported
//! graph writes: the new content of a buffer, a parameter or an argument is an output, as the signature states, and a call of
//! the exported program copies it. With [`ExportOptions::in_place`] writes remain operators that write, as in the programs
//! that `torch.export.export` returns before decompositions.

mod aliases;
mod arguments;
mod branch;
mod classes;
mod constraints;
mod decompose;
mod functional;
mod joined;
mod numbers;
mod options;
mod record;
mod results;
mod retrace;
mod scope;
mod sizes;
mod source_lines;
mod state;
mod symbolic;
mod table;
mod tracer;
mod while_loop;

use crate::error::Error;
use crate::exported::ExportedProgram;
use crate::module::{Module, copy_tensor};
use crate::program::Entry;
use constraints::{check_stated, second_sizes};
use flambeau_exec::{ExecError, KernelError};
use flambeau_export::model::{
    Argument, InputSpec, Map, ModuleCall, ModuleCallSignature, OutputSpec, ProgramModel, SchemaVersion,
    Signature,
};
use flambeau_export::tree::TreeSpec;
use flambeau_export::write::FileVersion;
use flambeau_export::{ExportCode, ExportError};
use flambeau_ir::IValue;
use flambeau_ir::value::CopyMemo;
use flambeau_tensor::Tensor;
pub use options::{DynamicSize, ExportOptions};
use record::Recorder;
use retrace::{AlternateSizes, check_equal};
use state::State;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
pub use table::DecompositionTable;
use tracer::Tracer;

/// The reason why a node cannot be exported.
#[derive(Debug)]
enum Stop {
    /// The program raised an error, or a limit was exceeded.
    Run(KernelError),
    /// The program cannot be exported.
    Export(ExportError),
}

impl From<KernelError> for Stop {
    fn from(error: KernelError) -> Self {
        Stop::Run(error)
    }
}

impl From<ExportError> for Stop {
    fn from(error: ExportError) -> Self {
        Stop::Export(error)
    }
}

type Res<T> = Result<T, Stop>;

impl Stop {
    /// Returns the error with the calls that were active.
    fn located(self, trace: ExecError) -> Error {
        Error { trace: trace.trace, ..self.unlocated() }
    }
}

impl Stop {
    /// Returns the error without a traceback.
    fn unlocated(self) -> Error {
        match self {
            Stop::Run(e) => Error::from(ExecError::of(&e)),
            Stop::Export(e) => Error::from(e),
        }
    }
}

/// Returns a copy of a tensor with the same strides.
fn copied(tensor: &Tensor) -> Res<Tensor> {
    Ok(copy_tensor(tensor, &mut BTreeMap::new()).map_err(KernelError::from)?)
}

/// Returns the error for something that an exported program cannot do.
#[cold]
fn refused(message: impl Into<String>) -> Stop {
    Stop::Export(ExportError::new(ExportCode::Export, message))
}

impl ExportedProgram {
    /// Exports a function or method: runs it on example arguments and returns the program of the operators that it called
    /// on tensors. The parameters and buffers of the module are those of the exported program, not copies. Sizes of
    /// tensors, and arguments other than tensors, are constants of the exported program.
    ///
    /// # Errors
    /// `E016` if the function does something that an exported program cannot do, `X0002` for errors that it raises, with
    /// a traceback; `X0003` for arguments that do not match its schema.
    pub fn from_entry(
        entry: &Entry,
        args: &[IValue],
        kwargs: &[(&str, IValue)],
    ) -> Result<ExportedProgram, Error> {
        ExportedProgram::from_entry_with(entry, args, kwargs, &ExportOptions::default())
    }

    /// Exports a function or method with options: sizes that may vary.
    ///
    /// # Errors
    /// As [`ExportedProgram::from_entry`]; `E016` also if the program is not the same for all sizes that may vary.
    pub fn from_entry_with(
        entry: &Entry,
        args: &[IValue],
        kwargs: &[(&str, IValue)],
        options: &ExportOptions,
    ) -> Result<ExportedProgram, Error> {
        ExportedProgram::new(entry.session(), export(entry, args, kwargs, options)?)
    }
}

fn export(
    entry: &Entry,
    args: &[IValue],
    kwargs: &[(&str, IValue)],
    options: &ExportOptions,
) -> Result<ProgramModel, Error> {
    let module = entry.receiver().map(|object| Module::new(entry.unit(), object.clone()));
    let state = module.map(State::new).transpose()?;
    let table = match options.in_place {
        true => None,
        false => Some(DecompositionTable::functional(entry.session())?),
    };
    let first = record(entry, state, args, kwargs, options, table.as_ref())?;
    if options.dynamic.is_empty() && first.changed.is_empty() {
        return Ok(first.model);
    }
    let mut others = AlternateSizes::default();
    let mut host = entry.session().host();
    let registry = entry.session().registry();
    let mut resized = |name: &str, value: &IValue| -> Result<IValue, Error> {
        let mut leaves = Vec::new();
        let (spec, names) = named_leaves(name, value, &mut leaves)?;
        let mut own = Vec::with_capacity(leaves.len());
        for (path, leaf) in names.iter().zip(leaves) {
            own.push(match leaf {
                IValue::Tensor(tensor) => {
                    let resized = others.resized(path, &tensor, &options.dynamic, registry, &mut host);
                    IValue::Tensor(resized.map_err(Stop::unlocated)?)
                }
                other => other,
            });
        }
        let whole = spec.unflatten(&mut own.into_iter());
        whole.ok_or_else(|| refused("an argument without a structure").unlocated())
    };
    let params = entry.params();
    let args = params.iter().zip(args).map(|(param, value)| resized(param.name.as_str(), value));
    let args = args.collect::<Result<Vec<_>, Error>>()?;
    let kwargs = kwargs.iter().map(|(name, value)| Ok((*name, resized(name, value)?)));
    let kwargs = kwargs.collect::<Result<Vec<_>, Error>>()?;
    let state = first.module.map(State::new).transpose()?;
    let second = record(entry, state, &args, &kwargs, options, table.as_ref()).map_err(|e| {
        let sizes = others.iter().collect::<Vec<_>>();
        if sizes.is_empty() {
            return e;
        }
        let message = format!(
            "with other sizes, {}, the program fails: {}; sizes that must be equal need one name, and a size that must be a certain \
             number cannot vary",
            second_sizes(sizes.into_iter()),
            e.message
        );
        Error { message, ..e }
    })?;
    if let Some(path) = second.changed.first() {
        let message =
            format!("the program changes the attribute `{path}`, which is not a buffer, in each call");
        return Err(refused(message).unlocated());
    }
    check_equal(&first.model, &second.model, registry).map_err(Stop::unlocated)?;
    Ok(first.model)
}

/// A recorded program.
struct Recorded {
    model: ProgramModel,
    /// The copy of the module after the run.
    module: Option<Module>,
    /// Attributes that are not tensors and that the program has changed.
    changed: Vec<String>,
}

fn record(
    entry: &Entry,
    state: Option<State>,
    args: &[IValue],
    kwargs: &[(&str, IValue)],
    options: &ExportOptions,
    table: Option<&DecompositionTable>,
) -> Result<Recorded, Error> {
    // The copy of all arguments at once preserves tensors that two arguments share.
    let all = args.iter().chain(kwargs.iter().map(|(_, value)| value)).cloned().collect();
    let mut storages = BTreeMap::new();
    let mut copy = |tensor: &Tensor| copy_tensor(tensor, &mut storages);
    let copied = IValue::tuple(all).deep_copy(&mut CopyMemo::default(), &mut copy).map_err(KernelError::from);
    let copied = copied.map_err(|e| Error::from(ExecError::of(&e)))?;
    let (args_copy, kwargs_copy) =
        copied.as_tuple().map_or((&[][..], &[][..]), |t| t.items().split_at(args.len()));
    let kwargs_copy: Vec<(&str, IValue)> =
        kwargs.iter().zip(kwargs_copy).map(|((name, _), value)| (*name, value.clone())).collect();
    let bound = entry.bound(args_copy, &kwargs_copy)?;
    let names: Vec<&str> = entry.params().iter().map(|p| p.name.as_str()).collect();
    let interface = Interface::new(&names, args_copy, &kwargs_copy)?;
    for own in &options.dynamic {
        if !interface.leaves.iter().any(|(path, leaf)| *path == own.input && leaf.is_tensor()) {
            let tensors = interface.leaves.iter().filter(|(_, leaf)| leaf.is_tensor());
            let names: Vec<String> = tensors.map(|(path, _)| format!("`{path}`")).collect();
            let known = match &names[..] {
                [] => "none is".to_owned(),
                names => format!("those are: {}", names.join(", ")),
            };
            return Err(Error::misuse(format!(
                "`{}` is not a tensor among the arguments; {known}",
                own.input
            )));
        }
    }
    let module = state.as_ref().map(|state| state.copy().clone());
    let mut recorder = Recorder::new(entry.session().registry(), state, &options.dynamic);
    recorder.is_functional = table.is_some();
    let mut user = Vec::with_capacity(interface.leaves.len());
    for (path, leaf) in &interface.leaves {
        user.push(recorder.user_input(path, leaf).map_err(Stop::unlocated)?);
    }
    recorder.add_state()?;

    let mut host = entry.session().host();
    host.set_tape(None);
    let inputs = recorder.receiver().into_iter().chain(bound).collect();
    let mut tracer = Tracer::new(entry.unit(), &mut host, recorder, table);
    let results = tracer.run(entry.graph(), entry.schema().name, inputs)?;
    let (out_spec, outputs) = tracer.outputs(&results)?;
    let changed = tracer.write_attributes().map_err(Stop::unlocated)?;
    let mut recorder = tracer.into_recorder();
    check_stated(&recorder.narrowings, &options.dynamic, &recorder.sizes).map_err(Stop::unlocated)?;
    let mutations = recorder.mutations(&user, &interface.leaves).map_err(Stop::unlocated)?;
    let outputs = outputs.into_iter().map(|arg| OutputSpec::UserOutput { arg });
    let specs = mutations.into_iter().chain(outputs).collect();
    let model = finish(recorder, &out_spec, specs, user, &interface)?;
    Ok(Recorded { model, module, changed })
}

/// The arguments as the caller passes them: tree specs, and the leaves with their names.
struct Interface {
    in_spec: TreeSpec,
    leaves: Vec<(String, IValue)>,
    arg_names: Vec<String>,
}

impl Interface {
    fn new(params: &[&str], args: &[IValue], kwargs: &[(&str, IValue)]) -> Result<Interface, ExportError> {
        let mut leaves = Vec::new();
        let mut specs = Vec::new();
        let named = params.iter().copied().zip(args);
        let named = named.chain(kwargs.iter().map(|(name, value)| (*name, value)));
        for (name, value) in named {
            let mut own = Vec::new();
            let (spec, names) = named_leaves(name, value, &mut own)?;
            leaves.extend(names.into_iter().zip(own));
            specs.push((name.to_owned(), spec));
        }
        let kwargs = specs.split_off(args.len());
        let arg_names = params.iter().take(args.len()).map(|&name| name.to_owned());
        let arg_names = arg_names.chain(kwargs.iter().map(|(name, _)| name.clone())).collect();
        let args = specs.into_iter().map(|(_, spec)| spec).collect();
        let in_spec = TreeSpec::tuple(vec![TreeSpec::tuple(args), TreeSpec::dict(kwargs)]);
        Ok(Interface { in_spec, leaves, arg_names })
    }
}

/// Returns the structure of an argument and the names of its leaves, and appends the leaves: `x` for an argument, `d_k` and
/// `t_0` for elements of containers.
fn named_leaves(
    name: &str,
    value: &IValue,
    leaves: &mut Vec<IValue>,
) -> Result<(TreeSpec, Vec<String>), ExportError> {
    let is_named = value.visit(|part| match part {
        IValue::Tuple(tuple) if tuple.named_type().is_some() => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    if is_named.is_break() {
        let message = "a named tuple cannot be an argument of an exported program";
        return Err(ExportError::new(ExportCode::Export, message).in_field(name));
    }
    let spec = TreeSpec::of_value(value, leaves).map_err(|e| e.in_field(name))?;
    let mut paths = Vec::new();
    spec.leaf_paths("", &mut paths);
    let names = paths.iter().map(|path| format!("{name}{path}").replace(['[', ']', '\''], " "));
    let names = names.map(|path| path.split_whitespace().collect::<Vec<_>>().join("_"));
    Ok((spec, names.collect()))
}

/// Returns the recorded program with its outputs.
fn finish(
    recorder: Recorder,
    out_spec: &TreeSpec,
    specs: Vec<OutputSpec>,
    user: Vec<(Argument, InputSpec)>,
    interface: &Interface,
) -> Result<ProgramModel, Error> {
    let is_functional = recorder.is_functional;
    let parts = recorder.finish(specs.iter().map(output_argument).collect());
    let mut graph = parts.graph;
    let mut signature = Signature::default();
    let user = user.into_iter();
    for (arg, spec) in parts.inputs.into_iter().chain(user) {
        graph.inputs.push(arg);
        signature.inputs.push(spec);
    }
    signature.outputs = specs;
    let text = |spec: &TreeSpec| {
        spec.text()
            .ok_or_else(|| Error::from(ExportError::new(ExportCode::TreeSpec, "a tree spec has no text")))
    };
    let own = ModuleCall {
        fqn: String::new(),
        signature: Some(ModuleCallSignature {
            inputs: Vec::new(),
            outputs: Vec::new(),
            in_spec: text(&interface.in_spec)?,
            out_spec: text(out_spec)?,
            forward_arg_names: Some(interface.arg_names.clone()),
        }),
    };
    let called = parts.called.into_iter().map(|fqn| ModuleCall { fqn, signature: None });
    let mut model = ProgramModel::default();
    model.module.module_call_graph = std::iter::once(own).chain(called).collect();
    model.module.graph = graph;
    model.module.signature = signature;
    model.exprs = parts.exprs;
    model.range_constraints = parts.ranges;
    model.opset_version = Map::from_iter([("aten".to_owned(), 10)]);
    model.schema_version = SchemaVersion { major: 8, minor: FileVersion::default().minor() };
    model.verifiers = vec![if is_functional { "ATEN" } else { "TRAINING" }.to_owned()];
    model.state_dict = parts.state_dict;
    model.constants = parts.constants;
    Ok(model)
}

/// Returns the output of the graph for its meaning.
fn output_argument(spec: &OutputSpec) -> Argument {
    match spec {
        OutputSpec::UserOutput { arg } => arg.clone(),
        OutputSpec::LossOutput { arg }
        | OutputSpec::BufferMutation { arg, .. }
        | OutputSpec::ParameterMutation { arg, .. }
        | OutputSpec::GradientToParameter { arg, .. }
        | OutputSpec::GradientToUserInput { arg, .. }
        | OutputSpec::UserInputMutation { arg, .. }
        | OutputSpec::Token { arg } => Argument::Tensor(arg.clone()),
    }
}

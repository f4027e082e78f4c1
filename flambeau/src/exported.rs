//! Exported programs: the part of sessions that the feature `export` adds.
//!
//! An [`ExportedProgram`] is a graph whose inputs are parameters, buffers, constants and the leaves of the arguments. A
//! call flattens the arguments, checks the program's conditions on them, runs the graph like any other program of the
//! session, copies new contents into mutated buffers and arguments, and builds the result.

use crate::error::Error;
use crate::exporter::DecompositionTable;
use crate::program::{Entry, Program};
use crate::session::Session;
use flambeau_archive::Weights;
use flambeau_exec::Host;
use flambeau_export::call::CallSpec;
use flambeau_export::lower::{InputSource, Lowered, Metadata, OutputTarget, lower};
use flambeau_export::model::{Constant, ProgramModel, Signature};
use flambeau_export::read::{ReadOptions, read, read_file};
use flambeau_export::verify::verify;
use flambeau_export::write::{FileVersion, write, write_file};
use flambeau_export::{ExportCode, ExportError};
use flambeau_ir::{Fault, Graph, IValue, OpId};
use flambeau_tensor::Tensor;
use std::cell::OnceCell;
use std::path::Path;
use std::sync::Arc;

/// A program of a `.pt2` file.
#[derive(Clone)]
pub struct ExportedProgram {
    parts: Arc<ExportedState>,
    entry: Entry,
}

/// The state that all copies of a program share.
pub(crate) struct ExportedState {
    pub(crate) model: ProgramModel,
    pub(crate) spec: CallSpec,
    metadata: Metadata,
    /// Values of the graph's inputs that are not arguments, and the leaves of the arguments at the others.
    pub(crate) inputs: Vec<Input>,
    pub(crate) outputs: Vec<Output>,
}

/// The value of an input of the graph.
pub(crate) enum Input {
    /// A parameter, buffer or constant.
    State(String, Tensor),
    /// A leaf of the arguments.
    Leaf(usize),
}

/// The use of an output of the graph.
pub(crate) enum Output {
    /// A leaf of the result.
    Result,
    /// A leaf of the result: the tensor of which the output at this position is the new content.
    Mutated(usize),
    /// The new content of a parameter or buffer.
    State(String, Tensor),
    /// The new content of a leaf of the arguments.
    Leaf(usize),
    /// A gradient of a joint graph, which is not part of the result.
    Gradient,
}

impl Session {
    /// Loads a `.pt2` file.
    ///
    /// # Errors
    /// `A…` and `E…` with record, node and field; `E011` for an operator that is not registered.
    pub fn load_exported(&self, path: impl AsRef<Path>) -> Result<ExportedProgram, Error> {
        let path = path.as_ref();
        let load = || ExportedProgram::new(self, read_file(path, &self.read_options())?);
        load().map_err(|error: Error| error.in_file(path.display()))
    }

    /// Loads a `.pt2` file from memory.
    ///
    /// # Errors
    /// As [`Session::load_exported`].
    pub fn load_exported_bytes(&self, bytes: &[u8]) -> Result<ExportedProgram, Error> {
        ExportedProgram::new(self, read(bytes, &self.read_options())?)
    }

    /// Returns the options for reading `.pt2` files: those for archives.
    #[must_use]
    pub fn read_options(&self) -> ReadOptions {
        let mut options = ReadOptions::default();
        options.archive = self.load_options().limits.clone();
        options.limits = self.exported_limits().clone();
        options.map = self.load_options().map;
        options
    }
}

impl ExportedProgram {
    /// Makes a program of a model that satisfies the rules of exported programs.
    ///
    /// # Errors
    /// As [`Session::load_exported`].
    pub fn new(session: &Session, model: ProgramModel) -> Result<ExportedProgram, Error> {
        let (spec, Lowered { graph, inputs, outputs, metadata }) = checked(session, &model)?;
        let inputs = inputs.into_iter().map(|source| input(&model, source)).collect::<Result<_, _>>()?;
        let outputs = outputs.into_iter().map(|target| output(&model, target)).collect::<Result<_, _>>()?;
        let entry = Program::of_graph(session, Arc::new(graph)).entry("forward")?;
        let parts = Arc::new(ExportedState { model, spec, metadata, inputs, outputs });
        Ok(ExportedProgram { parts, entry })
    }

    /// Checks that [`ExportedProgram::new`] makes a program of a model, which stays with the caller.
    ///
    /// # Errors
    /// As [`ExportedProgram::new`].
    pub fn check(session: &Session, model: &ProgramModel) -> Result<(), Error> {
        let (_, lowered) = checked(session, model)?;
        for source in lowered.inputs {
            input(model, source)?;
        }
        for target in lowered.outputs {
            output(model, target)?;
        }
        Ok(())
    }

    /// Returns model, interface, and the meaning of the graph's inputs and outputs.
    pub(crate) fn parts(&self) -> &ExportedState {
        &self.parts
    }

    /// Returns the program with its graph after a pipeline. The model ([`ExportedProgram::model`]) and written files are
    /// unchanged, and so are its tensors, which are not copied.
    ///
    /// # Errors
    /// As [`Session::optimize`].
    pub fn optimized(&self, pipeline: &str) -> Result<ExportedProgram, Error> {
        let session = self.entry.session();
        let graph = session.optimize(self.graph(), pipeline)?;
        let entry = Program::of_graph(session, graph).entry("forward")?;
        Ok(ExportedProgram { parts: Arc::clone(&self.parts), entry })
    }

    /// Returns the content of the file.
    #[must_use]
    pub fn model(&self) -> &ProgramModel {
        &self.parts.model
    }

    /// Returns the meaning of the graph's inputs and outputs, including those of the file that are constants.
    #[must_use]
    pub fn signature(&self) -> &Signature {
        &self.parts.model.module.signature
    }

    /// Returns the graph: its inputs are parameters, buffers, constants and the leaves of the arguments.
    #[must_use]
    pub fn graph(&self) -> &Arc<Graph> {
        self.entry.graph()
    }

    /// Returns the function that runs the graph on all of its inputs.
    #[must_use]
    pub fn entry(&self) -> &Entry {
        &self.entry
    }

    /// Returns the metadata of the graph's nodes and values in the file.
    #[must_use]
    pub fn metadata(&self) -> &Metadata {
        &self.parts.metadata
    }

    /// Returns the interface of the call.
    #[must_use]
    pub fn call_spec(&self) -> &CallSpec {
        &self.parts.spec
    }

    /// Returns parameters and persistent buffers by name. The tensors are the program's own, not copies.
    #[must_use]
    pub fn state_dict(&self) -> Weights {
        self.parts
            .model
            .state_dict
            .iter()
            .map(|(name, weight)| (name.clone(), weight.tensor.clone()))
            .collect()
    }

    /// Returns a parameter, buffer or constant tensor by name.
    #[must_use]
    pub fn tensor(&self, name: &str) -> Option<&Tensor> {
        state(&self.parts.model, name).ok()
    }

    /// Returns the version of PyTorch whose files are read where the program's own file is; the default for a program that
    /// was not read from a file.
    #[must_use]
    pub fn version(&self) -> FileVersion {
        FileVersion::of_schema(self.parts.model.schema_version)
    }

    /// Writes the program with the current content of its tensors, for a version of PyTorch. The file is replaced
    /// atomically; equal programs have equal files. Example inputs are not written.
    ///
    /// # Errors
    /// `E015` for parts that the version cannot contain, `A0091` if the file cannot be written.
    pub fn save(&self, path: impl AsRef<Path>, version: FileVersion) -> Result<(), Error> {
        Ok(write_file(&self.parts.model, version, self.graph().registry(), path.as_ref())?)
    }

    /// Returns the bytes of the file that [`ExportedProgram::save`] writes.
    ///
    /// # Errors
    /// As [`ExportedProgram::save`].
    pub fn to_bytes(&self, version: FileVersion) -> Result<Vec<u8>, Error> {
        Ok(write(&self.parts.model, version, self.graph().registry(), Vec::new())?)
    }

    /// Calls the program.
    ///
    /// # Errors
    /// `E013` for arguments that do not satisfy the program's conditions, `X0002` for exceptions of the program and
    /// exceeded limits.
    pub fn call(&self, args: &[IValue], kwargs: &[(&str, IValue)]) -> Result<IValue, Error> {
        self.call_on(args, kwargs, &mut self.entry.session().host())
    }

    /// Calls the program on a given host. The call is recorded for gradients if an argument or a parameter requires one.
    ///
    /// # Errors
    /// As [`ExportedProgram::call`].
    pub fn call_on(
        &self,
        args: &[IValue],
        kwargs: &[(&str, IValue)],
        host: &mut Host,
    ) -> Result<IValue, Error> {
        let parts = &*self.parts;
        let leaves = parts.spec.flatten(args, kwargs)?;
        parts.spec.check(&leaves)?;
        let inputs = parts.inputs.iter().map(|input| match input {
            Input::State(_, tensor) => IValue::Tensor(tensor.clone()),
            Input::Leaf(leaf) => leaves[*leaf].clone(),
        });
        let inputs: Vec<IValue> = inputs.collect();
        let result = self.entry.call_on(&inputs, &[], host)?;
        let outputs = match result {
            IValue::Tuple(tuple) if parts.outputs.len() != 1 => tuple.into_items(),
            one if parts.outputs.len() == 1 => vec![one],
            _ => Vec::new(),
        };
        let mut results = Vec::new();
        for (output, value) in parts.outputs.iter().zip(outputs) {
            match output {
                Output::Result => results.push(value),
                Output::Mutated(at) => results.push(match &parts.outputs[*at] {
                    Output::State(_, tensor) => IValue::Tensor(tensor.clone()),
                    Output::Leaf(leaf) => leaves[*leaf].clone(),
                    _ => return Err(internal("an output is not the content of a tensor")),
                }),
                Output::State(name, tensor) => write_back(tensor, &value, name)?,
                Output::Leaf(leaf) => match &leaves[*leaf] {
                    IValue::Tensor(tensor) => write_back(tensor, &value, "an argument")?,
                    _ => return Err(internal("a mutated argument is not a tensor")),
                },
                Output::Gradient => {}
            }
        }
        parts
            .spec
            .unflatten(results)
            .ok_or_else(|| internal("the graph has fewer results than its signature"))
    }
}

/// Verifies a model, and returns the interface of its call and its graph.
fn checked(session: &Session, model: &ProgramModel) -> Result<(CallSpec, Lowered), Error> {
    verify(model, session.registry())?;
    // The table is compiled for programs that call composite operators in regions of automatic mixed precision.
    let table = OnceCell::new();
    let composite = |op: OpId| -> Result<Option<Arc<Graph>>, Error> {
        let table = match table.get() {
            Some(table) => table,
            None => {
                let made = DecompositionTable::core_aten(session)?;
                table.get_or_init(|| made)
            }
        };
        table.inlined(session, op)
    };
    let composites = |op| composite(op).map_err(|e| ExportError::new(ExportCode::Operator, e.to_string()));
    Ok((CallSpec::new(model)?, lower(model, session.registry(), &composites)?))
}

/// Returns what an input of the graph is in a call.
fn input(model: &ProgramModel, source: InputSource) -> Result<Input, ExportError> {
    Ok(match source {
        InputSource::User(leaf) => Input::Leaf(leaf),
        InputSource::Parameter(name) | InputSource::Buffer(name) | InputSource::Constant(name) => {
            let tensor = state(model, &name)?.clone();
            Input::State(name, tensor)
        }
    })
}

/// Returns what becomes of an output of the graph in a call.
fn output(model: &ProgramModel, target: OutputTarget) -> Result<Output, ExportError> {
    Ok(match target {
        OutputTarget::User => Output::Result,
        OutputTarget::Mutated(at) => Output::Mutated(at),
        OutputTarget::Input(leaf) => Output::Leaf(leaf),
        OutputTarget::ParameterGradient(_) | OutputTarget::InputGradient(_) => Output::Gradient,
        OutputTarget::State(name) => {
            let tensor = state(model, &name)?.clone();
            Output::State(name, tensor)
        }
    })
}

/// Returns a parameter, buffer or constant tensor.
fn state<'m>(model: &'m ProgramModel, name: &str) -> Result<&'m Tensor, ExportError> {
    if let Some(weight) = model.state_dict.get(name) {
        return Ok(&weight.tensor);
    }
    match model.constants.get(name) {
        Some(Constant::Tensor(tensor)) => Ok(tensor),
        _ => Err(ExportError::new(
            ExportCode::Weight,
            format!("the file has no tensor `{}`", name.escape_debug()),
        )),
    }
}

/// Copies the new content of a mutated tensor into it.
fn write_back(target: &Tensor, value: &IValue, name: &str) -> Result<(), Error> {
    let IValue::Tensor(new) = value else {
        return Err(internal("the new content of a tensor is not a tensor"));
    };
    target.copy_(new).map_err(|e| Error::new(e.fault(), "X0002", format!("the new content of {name}: {e}")))
}

fn internal(message: &str) -> Error {
    Error::new(Fault::Internal, "X0001", message)
}

impl From<ExportError> for Error {
    fn from(e: ExportError) -> Self {
        let error = Error::new(e.fault(), e.code().as_str(), e.located_message());
        match e.code() {
            ExportCode::Call => Error { class: Some("RuntimeError".to_owned()), ..error },
            _ => error,
        }
    }
}

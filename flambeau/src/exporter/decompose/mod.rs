//! Decompositions of exported programs: `run_decompositions`.
//!
//! The program is recorded again, node by node, without a run: each value has an *example*, a tensor of zeros with the
//! metadata that the program states ([`example`]). A node whose operator neither writes nor is in the table is appended as it
//! is, under its name. Any other becomes what its function or functional variant records on the examples of its operands
//! ([`super::functional`]); no decomposition depends on the elements of tensors. Views are computed on the examples, so that
//! writes to them are found. Subgraphs of higher-order operators are decomposed like the program.
//!
//! Symbolic sizes remain those of the program. A decomposition must hold for all of their values: one that depends on a
//! comparison that the ranges do not decide is an error.

mod example;
mod node;
mod subgraph;

use super::record::Recorder;
use super::symbolic::Symbolic;
use super::table::DecompositionTable;
use super::tracer::Tracer;
use super::{Res, Stop, output_argument, refused};
use crate::error::Error;
use crate::exported::ExportedProgram;
use example::Symbols;
use flambeau_exec::KernelError;
use flambeau_export::model::{
    Argument, Constant, GraphModel, InputSpec, ModuleCall, NodeModel, OutputSpec, ProgramModel, Sym,
};
use flambeau_ir::{CompilationUnit, Fault, IValue};
use flambeau_tensor::Tensor;
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use std::sync::Arc;

impl ExportedProgram {
    /// Returns the program with its operators decomposed: operators that write are replaced by those that do not, and those of
    /// the table by its functions. New contents of buffers, parameters and arguments are outputs, as the signature states.
    /// Parameters, buffers and constants are those of this program, not copies.
    ///
    /// # Errors
    /// `E016` for a write without a functional form, or a decomposition that does not hold for all sizes, with the node.
    pub fn run_decompositions(&self, table: &DecompositionTable) -> Result<ExportedProgram, Error> {
        let session = self.entry().session();
        let model = self.model();
        let mut recorder = Recorder::new(session.registry(), None, &[]);
        recorder.is_functional = true;
        recorder.exprs = model.exprs.clone();
        recorder.sizes.is_fixed = true;
        recorder.lift_from(model.constants.len());
        let numbers = model.exprs.symbols().filter_map(|symbol| {
            symbol.as_str().trim_start_matches(|c: char| !c.is_ascii_digit()).parse::<usize>().ok()
        });
        recorder.marks.unbacked = numbers.max().map_or(0, |last| last.saturating_add(1));
        let symbols = Symbols::new(model, &mut recorder)?;
        let unit = CompilationUnit::new();
        let mut host = session.host();
        host.set_tape(None);
        let budget = host.budget().cloned();
        let tracer = Tracer::new(&unit, &mut host, recorder, Some(table));
        let mut run = Decomposition { tracer, symbols, values: Values::default() };
        let result = match budget {
            Some(budget) => budget.run(|| run.program(model)),
            None => run.program(model),
        };
        ExportedProgram::new(session, result.map_err(Stop::unlocated)?)
    }
}

/// A value of the program: its example, and the number if it is symbolic.
#[derive(Clone)]
struct Value {
    example: IValue,
    symbol: Option<Symbolic>,
}

/// The values of a graph by their names in the program.
type Values = HashMap<String, Value, FxBuildHasher>;

struct Decomposition<'w> {
    tracer: Tracer<'w>,
    symbols: Symbols,
    values: Values,
}

impl Decomposition<'_> {
    fn program(&mut self, model: &ProgramModel) -> Res<ProgramModel> {
        let graph = &model.module.graph;
        let roots = self.inputs(model)?;
        self.nodes(graph)?;
        let outputs = self.outputs(model, &roots)?;
        let mut made = model.clone();
        made.module.module_call_graph =
            model.module.module_call_graph.iter().map(|call| self.module_call(call)).collect();
        made.module.signature.outputs = outputs;
        made.verifiers = vec!["ATEN".to_owned()];
        self.assemble(&mut made);
        Ok(made)
    }

    /// Adds the inputs of the program. Returns the examples of those that a call may write.
    fn inputs(&mut self, model: &ProgramModel) -> Res<Vec<(Tensor, InputSpec)>> {
        let graph = &model.module.graph;
        let mut roots: Vec<(Tensor, InputSpec)> = Vec::new();
        let mut places: HashMap<usize, Tensor, FxBuildHasher> = HashMap::default();
        for (input, spec) in graph.inputs.iter().zip(&model.module.signature.inputs) {
            self.input(graph, input)?;
            let Some(Value { example: IValue::Tensor(example), .. }) =
                input.name().and_then(|name| self.values.get(name)).cloned()
            else {
                continue;
            };
            let recorder = &mut self.tracer.recorder;
            recorder.aliases.input(&example);
            let target = match spec {
                InputSpec::Parameter { target, .. }
                | InputSpec::Buffer { target, .. }
                | InputSpec::TensorConstant { target, .. } => Some(target),
                _ => None,
            };
            if let Some(state) = target.and_then(|target| state_tensor(model, target)) {
                match places.get(&state.storage().address()) {
                    Some(first) => recorder.aliases.share(first, &example),
                    None => drop(places.insert(state.storage().address(), example.clone())),
                }
            }
            roots.push((example, spec.clone()));
        }
        Ok(roots)
    }

    /// Adds an input of the innermost graph.
    fn input(&mut self, graph: &GraphModel, input: &Argument) -> Res<()> {
        let Some(name) = input.name() else {
            self.tracer.recorder.scope().builder.graph.inputs.push(input.clone());
            return Ok(());
        };
        let own = self.tracer.recorder.scope().builder.input_name(name);
        let value = self.define(graph, name, &own, input)?;
        let renamed = match input {
            Argument::SymInt(_) => Argument::SymInt(Sym::Name(own)),
            Argument::SymFloat(_) => Argument::SymFloat(Sym::Name(own)),
            Argument::SymBool(_) => Argument::SymBool(Sym::Name(own)),
            Argument::Tensor(_) => Argument::Tensor(own),
            _ => return Err(refused(format!("the input `{name}` is neither a tensor nor a number"))),
        };
        self.tracer.recorder.scope().builder.graph.inputs.push(renamed);
        self.values.insert(name.to_owned(), value);
        Ok(())
    }

    fn nodes(&mut self, graph: &GraphModel) -> Res<()> {
        for node in &graph.nodes {
            self.node(graph, node).map_err(|stop| at_node(stop, node))?;
        }
        Ok(())
    }

    /// Returns the outputs: those of the program, and the new contents of inputs that it wrote.
    fn outputs(&mut self, model: &ProgramModel, roots: &[(Tensor, InputSpec)]) -> Res<Vec<OutputSpec>> {
        let mut mutations = Vec::new();
        for (example, spec) in roots {
            if !self.tracer.recorder.aliases.is_written(example) {
                continue;
            }
            let arg = self.tracer.recorder.name_of(example)?;
            mutations.push(match spec {
                InputSpec::Parameter { target, .. } => {
                    OutputSpec::ParameterMutation { arg, target: target.clone() }
                }
                InputSpec::Buffer { target, .. } => {
                    OutputSpec::BufferMutation { arg, target: target.clone() }
                }
                InputSpec::UserInput { arg: input } => {
                    OutputSpec::UserInputMutation { arg, target: input.name().unwrap_or_default().to_owned() }
                }
                _ => return Err(refused("the program writes to a constant")),
            });
        }
        let is_mutation = |spec: &OutputSpec| {
            matches!(
                spec,
                OutputSpec::Token { .. }
                    | OutputSpec::BufferMutation { .. }
                    | OutputSpec::ParameterMutation { .. }
                    | OutputSpec::UserInputMutation { .. }
            )
        };
        let (before, after): (Vec<&OutputSpec>, Vec<&OutputSpec>) =
            model.module.signature.outputs.iter().partition(|spec| is_mutation(spec));
        let mut outputs = Vec::new();
        for spec in before {
            outputs.push(self.output(spec)?);
        }
        outputs.append(&mut mutations);
        for spec in after {
            outputs.push(self.output(spec)?);
        }
        Ok(outputs)
    }

    fn output(&mut self, spec: &OutputSpec) -> Res<OutputSpec> {
        let mut spec = spec.clone();
        match &mut spec {
            OutputSpec::UserOutput { arg } => *arg = self.renamed(arg)?,
            OutputSpec::LossOutput { arg }
            | OutputSpec::BufferMutation { arg, .. }
            | OutputSpec::ParameterMutation { arg, .. }
            | OutputSpec::GradientToParameter { arg, .. }
            | OutputSpec::GradientToUserInput { arg, .. }
            | OutputSpec::UserInputMutation { arg, .. }
            | OutputSpec::Token { arg } => *arg = self.name_now(arg)?,
        }
        Ok(spec)
    }

    /// Returns the entry of a submodule. Its interface is dropped if a value of it is no longer in the graph.
    fn module_call(&mut self, call: &ModuleCall) -> ModuleCall {
        let mut call = call.clone();
        if let Some(signature) = &mut call.signature {
            let all = signature.inputs.iter_mut().chain(&mut signature.outputs);
            let mut renamed = all.map(|arg| {
                *arg = self.renamed(arg)?;
                Ok::<(), Stop>(())
            });
            if renamed.any(|result| result.is_err()) {
                call.signature = None;
            }
        }
        call
    }

    /// Puts the recorded graph and the constants that were lifted into the program.
    fn assemble(&mut self, model: &mut ProgramModel) {
        let recorder = &mut self.tracer.recorder;
        let registry = Arc::clone(recorder.registry());
        let mut root = std::mem::take(&mut recorder.scope().builder);
        root.graph.outputs = model.module.signature.outputs.iter().map(output_argument).collect();
        let named = model.module.module_call_graph.iter().filter_map(|call| call.signature.as_ref());
        let named = named.flat_map(|signature| signature.inputs.iter().chain(&signature.outputs));
        let kept = root.graph.outputs.len();
        root.graph.outputs.extend(named.cloned());
        root.remove_unused(|node| super::record::must_run(&registry, node));
        root.graph.outputs.truncate(kept);
        let mut lifted = Vec::new();
        for (arg, target, tensor) in recorder.lifted() {
            lifted.push((Argument::Tensor(arg.clone()), arg.clone(), target.clone()));
            model.constants.insert(target.clone(), Constant::Tensor(tensor.clone()));
        }
        let at =
            model.module.signature.inputs.iter().position(|spec| {
                matches!(spec, InputSpec::UserInput { .. } | InputSpec::ConstantInput { .. })
            });
        let at = at.unwrap_or(model.module.signature.inputs.len());
        for (i, (input, arg, target)) in lifted.into_iter().enumerate() {
            root.graph.inputs.insert(at + i, input);
            model.module.signature.inputs.insert(at + i, InputSpec::TensorConstant { arg, target });
        }
        root.graph.is_single_tensor_return = model.module.graph.is_single_tensor_return;
        model.module.graph = root.graph;
        model.exprs = std::mem::take(&mut recorder.exprs);
    }
}

/// Returns a parameter, buffer or constant of a program.
fn state_tensor<'m>(model: &'m ProgramModel, name: &str) -> Option<&'m Tensor> {
    match (model.state_dict.get(name), model.constants.get(name)) {
        (Some(weight), _) => Some(&weight.tensor),
        (None, Some(Constant::Tensor(tensor))) => Some(tensor),
        _ => None,
    }
}

/// Returns an error with the node at which it happened.
fn at_node(stop: Stop, node: &NodeModel) -> Stop {
    let name = flambeau_export::fx::shown_name(node);
    match stop {
        Stop::Export(e) => Stop::Export(e.at_node(name)),
        Stop::Run(e) if e.fault() == Fault::Limit => Stop::Run(e),
        Stop::Run(e) => {
            let message = format!("the decomposition of `{}` failed: {e}", node.target);
            Stop::Run(KernelError::new(e.fault(), e.class().to_owned(), message))
        }
    }
}

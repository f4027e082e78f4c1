//! Rules of exported programs, those of PyTorch's IR specification and verifier.
//!
//! [`verify`] returns the first violation, which is an error when a program is loaded. [`violations`] lists all, and checks with
//! [`Strictness::Full`] also rules that a program can break and still have a meaning. Each rule is a code:
//!
//! | code | rule |
//! |---|---|
//! | `E006`, `E007`, `E012` | names are unique and defined before their use; required arguments exist |
//! | `E011` | (full) operators are registered, and higher-order operators are among those that the lowering knows |
//! | `E060` | every value has metadata of its kind |
//! | `E061` | nodes call operators, higher-order operators, or functions on symbolic scalars |
//! | `E062` | after decomposition no operator writes to its inputs |
//! | `E063`, `E064` | the inputs of the graph are those of the signature, in order |
//! | `E065`, `E066`, `E067` | parameters, buffers and constants are among the tensors of the file |
//! | `E068`, `E069` | the outputs of the graph are those of the signature: tokens, mutations, results, gradients |
//! | `E070` | a mutation or gradient names an input of its kind |
//! | `E071` | (full) a lifted constant is used |
//! | `E072` | calls of submodules name values of the graph |
//! | `E073` | tree specs have as many leaves as the signature has user inputs and outputs |
//! | `E074` | the verifier is known |
//! | `E075` | no range of a symbol is empty |
//!
//! Every check is linear in the program. Subgraphs are checked like graphs; their nesting is bounded by the reader.

mod graph;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use flambeau_ir::Registry;

use crate::error::quoted;
use crate::expr::Expr;
use crate::fx::{Operators, check};
use crate::model::{
    Argument, Constant, GraphModel, InputSpec, ModuleCallSignature, OutputSpec, ProgramModel, Signature,
    SymInt,
};
use crate::tree::TreeSpec;
use crate::{ExportCode, ExportError};

/// Which rules are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strictness {
    /// The rules that PyTorch checks when it loads a program.
    Load,
    /// All rules.
    Full,
}

/// Checks the rules that a loaded program must satisfy.
///
/// # Errors
///
/// Returns the first violation.
pub fn verify(program: &ProgramModel, registry: &Registry) -> Result<(), ExportError> {
    match violations(program, registry, Strictness::Load, 1).pop() {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

/// Returns the violations of a program, at most `limit`.
pub fn violations(
    program: &ProgramModel,
    registry: &Registry,
    strictness: Strictness,
    limit: usize,
) -> Vec<ExportError> {
    let operators = Operators::new(registry);
    let mut check =
        Check { program, operators, unknown: BTreeSet::new(), strictness, found: Vec::new(), limit };
    check.program();
    check.found
}

/// The violations found so far.
struct Check<'p> {
    program: &'p ProgramModel,
    operators: Operators<'p, 'p>,
    /// Targets of operators that are not known; each is reported once, at its first node.
    unknown: BTreeSet<&'p str>,
    strictness: Strictness,
    found: Vec<ExportError>,
    limit: usize,
}

/// The kinds of outputs of a signature, in the order in which outputs must come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Token,
    Mutation,
    Result,
    Gradient,
}

impl<'p> Check<'p> {
    fn report(&mut self, error: ExportError) {
        if self.found.len() < self.limit {
            self.found.push(error);
        }
    }

    fn violated(&mut self, code: ExportCode, field: &str, message: String) {
        self.report(ExportError::new(code, message).in_field(field));
    }

    fn program(&mut self) {
        let program = self.program;
        let module = &program.module;
        let functional = self.verifiers();
        self.ranges();
        if let Err(error) = check(program, self.operators.registry()) {
            self.report(error.in_field("graph").in_field("graph_module"));
        }
        self.graph(&module.graph, functional, "graph_module.graph");
        self.inputs(&module.graph, &module.signature);
        self.outputs(&module.graph, &module.signature);
        if self.strictness == Strictness::Full {
            self.unused_constants(&module.graph, &module.signature);
        }
        self.module_calls();
    }

    /// Checks the names of the verifiers. Returns whether operators must be functional.
    fn verifiers(&mut self) -> bool {
        let mut functional = self.program.verifiers.is_empty();
        for name in &self.program.verifiers {
            match name.as_str() {
                "TRAINING" => {}
                "ATEN" | "" => functional = true,
                other => {
                    let message = format!("the verifier {} is not known", quoted(other));
                    self.violated(ExportCode::Verifier, "verifiers", message);
                }
            }
        }
        functional
    }

    fn ranges(&mut self) {
        let sizes = input_sizes(self.program);
        for (symbol, range) in &self.program.range_constraints {
            // A size is not negative, so a range of a size without a minimum begins at 0.
            let least = if sizes.contains(symbol.as_str()) { range.min.max(Some(0)) } else { range.min };
            if let (Some(min), Some(max)) = (least, range.max)
                && min > max
            {
                let message = format!("the range of {} is empty: {min} to {max}", quoted(symbol));
                self.violated(ExportCode::Range, "range_constraints", message);
            }
        }
    }

    fn inputs(&mut self, graph: &GraphModel, signature: &Signature) {
        const FIELD: &str = "graph_module.signature.input_specs";
        let (count, specs) = (graph.inputs.len(), signature.inputs.len());
        if count != specs {
            let message = format!("the graph has {count} inputs and the signature {specs}");
            self.violated(ExportCode::InputCount, FIELD, message);
        }
        for (n, (spec, input)) in signature.inputs.iter().zip(&graph.inputs).enumerate() {
            let (wanted, found) = (input_name(spec), input.name());
            if let Some(wanted) = wanted
                && found != Some(wanted)
            {
                let found = found.map_or_else(|| "a constant".to_owned(), quoted);
                let message =
                    format!("input {n} of the graph is {found}, and {} in the signature", quoted(wanted));
                self.violated(ExportCode::InputName, FIELD, message);
            }
            self.target(spec);
        }
    }

    /// Checks that the tensor or object of an input is in the file.
    fn target(&mut self, spec: &InputSpec) {
        let (weights, constants) = (&self.program.state_dict, &self.program.constants);
        let (code, problem) = match spec {
            InputSpec::Parameter { target, .. } => {
                let problem = match weights.get(target) {
                    None => "is not in the state dict",
                    Some(weight) if weight.is_parameter == Some(false) => "is a buffer in the state dict",
                    Some(_) => return,
                };
                (ExportCode::Parameter, format!("the parameter {} {problem}", quoted(target)))
            }
            InputSpec::Buffer { target, persistent, .. } => {
                let problem = match (persistent, weights.contains_key(target)) {
                    (true, false) => "the persistent buffer is not in the state dict",
                    (false, true) => "the buffer is in the state dict but not persistent",
                    (false, false) if !is_tensor(constants.get(target)) => {
                        "the buffer is not among the constants"
                    }
                    _ => return,
                };
                (ExportCode::Buffer, format!("{problem}: {}", quoted(target)))
            }
            InputSpec::TensorConstant { target, .. } if !is_tensor(constants.get(target)) => {
                (ExportCode::Constant, format!("the constants have no tensor {}", quoted(target)))
            }
            InputSpec::CustomObj { target, .. } if !constants.contains_key(target) => {
                (ExportCode::Constant, format!("the constants have no object {}", quoted(target)))
            }
            _ => return,
        };
        self.violated(code, "graph_module.signature.input_specs", problem);
    }

    fn outputs(&mut self, graph: &GraphModel, signature: &Signature) {
        const FIELD: &str = "graph_module.signature.output_specs";
        let (count, specs) = (graph.outputs.len(), signature.outputs.len());
        if count != specs {
            let message = format!("the graph has {count} outputs and the signature {specs}");
            self.violated(ExportCode::OutputCount, FIELD, message);
        }
        let mut before = Rank::Token;
        for (n, (spec, output)) in signature.outputs.iter().zip(&graph.outputs).enumerate() {
            let (rank, wanted) = output_name(spec);
            if let Some(wanted) = wanted
                && output.name() != Some(wanted)
            {
                let found = output.name().map_or_else(|| "a constant".to_owned(), quoted);
                let message =
                    format!("output {n} of the graph is {found}, and {} in the signature", quoted(wanted));
                self.violated(ExportCode::OutputOrder, FIELD, message);
            }
            if rank < before {
                let message = format!("output {n} must come before those of another kind");
                self.violated(ExportCode::OutputOrder, FIELD, message);
            }
            before = before.max(rank);
        }
        self.mutations(signature);
    }

    /// Checks that mutations and gradients name inputs of their kind.
    fn mutations(&mut self, signature: &Signature) {
        let mut parameters = BTreeSet::new();
        let mut buffers = BTreeSet::new();
        let mut inputs = BTreeSet::new();
        for spec in &signature.inputs {
            match spec {
                InputSpec::Parameter { target, .. } => drop(parameters.insert(target.as_str())),
                InputSpec::Buffer { target, .. } => drop(buffers.insert(target.as_str())),
                InputSpec::UserInput { arg } => inputs.extend(arg.name()),
                _ => {}
            }
        }
        for spec in &signature.outputs {
            let (what, target, known) = match spec {
                OutputSpec::BufferMutation { target, .. } => ("buffer", target, &buffers),
                OutputSpec::ParameterMutation { target, .. }
                | OutputSpec::GradientToParameter { target, .. } => ("parameter", target, &parameters),
                OutputSpec::UserInputMutation { target, .. }
                | OutputSpec::GradientToUserInput { target, .. } => ("user input", target, &inputs),
                _ => continue,
            };
            if !known.contains(target.as_str()) {
                let message = format!("an output is for the {what} {}, which does not exist", quoted(target));
                self.violated(ExportCode::Mutation, "graph_module.signature.output_specs", message);
            }
        }
    }

    fn unused_constants(&mut self, graph: &GraphModel, signature: &Signature) {
        let used = graph::used_names(graph);
        for spec in &signature.inputs {
            if let InputSpec::TensorConstant { arg, target } = spec
                && !used.contains(arg.as_str())
            {
                let message = format!("nothing uses the constant {}", quoted(target));
                self.violated(ExportCode::UnusedConstant, "graph_module.signature.input_specs", message);
            }
        }
    }

    fn module_calls(&mut self) {
        let module = &self.program.module;
        let Some(first) = module.module_call_graph.first() else { return };
        if let Some(signature) = first.signature.as_ref().filter(|_| first.fqn.is_empty()) {
            self.trees(signature);
        }
        let mut defined = None;
        for (n, call) in module.module_call_graph.iter().enumerate() {
            let Some(signature) = &call.signature else { continue };
            let names = signature.inputs.iter().chain(&signature.outputs).filter_map(Argument::name);
            for name in names.filter(|name| !name.is_empty()) {
                let defined =
                    defined.get_or_insert_with(|| graph::defined_names(&module.graph, &module.signature));
                if defined.contains(name) {
                    continue;
                }
                let fqn = quoted(&call.fqn);
                let message =
                    format!("the call of {fqn} names the value {}, which does not exist", quoted(name));
                self.violated(
                    ExportCode::ModuleCall,
                    &format!("graph_module.module_call_graph[{n}]"),
                    message,
                );
            }
        }
    }

    /// Compares the tree specs of the program with the number of its user inputs and outputs.
    fn trees(&mut self, call: &ModuleCallSignature) {
        let module = &self.program.module;
        let inputs = module.signature.inputs.iter();
        let inputs =
            inputs.filter(|s| matches!(s, InputSpec::UserInput { .. } | InputSpec::ConstantInput { .. }));
        let outputs = module.signature.outputs.iter();
        let outputs =
            outputs.filter(|s| matches!(s, OutputSpec::UserOutput { .. } | OutputSpec::LossOutput { .. }));
        for (name, text, count, what) in [
            ("in_spec", &call.in_spec, inputs.count(), "user inputs"),
            ("out_spec", &call.out_spec, outputs.count(), "user outputs"),
        ] {
            let field = format!("graph_module.module_call_graph[0].signature.{name}");
            match TreeSpec::parse(text, &module.namedtuple_fields) {
                Err(error) => self.report(error.in_field(&field)),
                Ok(tree) if tree.leaves() != count => {
                    let leaves = tree.leaves();
                    let message = format!("the tree has {leaves} leaves and the signature {count} {what}");
                    self.violated(ExportCode::TreeLeaves, &field, message);
                }
                Ok(_) => {}
            }
        }
    }
}

fn is_tensor(constant: Option<&Constant>) -> bool {
    matches!(constant, Some(Constant::Tensor(_)))
}

/// Returns the symbols that are sizes of inputs.
fn input_sizes(program: &ProgramModel) -> BTreeSet<String> {
    let graph = &program.module.graph;
    let metadata = graph.inputs.iter().filter_map(|input| graph.tensor_values.get(input.name()?));
    let symbols = metadata.flat_map(|meta| &meta.sizes).filter_map(|size| match size {
        SymInt::Expr { expr, .. } if matches!(program.exprs.get(*expr), Expr::Symbol(_)) => {
            Some(program.exprs.to_text(*expr))
        }
        _ => None,
    });
    symbols.collect()
}

/// Returns the name of the input of a graph that a spec stands for, or `None` for a constant.
fn input_name(spec: &InputSpec) -> Option<&str> {
    match spec {
        InputSpec::UserInput { arg } => arg.name(),
        InputSpec::Parameter { arg, .. }
        | InputSpec::Buffer { arg, .. }
        | InputSpec::TensorConstant { arg, .. }
        | InputSpec::Token { arg } => Some(arg),
        InputSpec::CustomObj { arg, .. } => Some(&arg.name),
        InputSpec::ConstantInput { .. } => None,
    }
}

/// Returns the rank of an output, and the name of its value, or `None` for a constant.
fn output_name(spec: &OutputSpec) -> (Rank, Option<&str>) {
    match spec {
        OutputSpec::Token { arg } => (Rank::Token, Some(arg)),
        OutputSpec::BufferMutation { arg, .. }
        | OutputSpec::ParameterMutation { arg, .. }
        | OutputSpec::UserInputMutation { arg, .. } => (Rank::Mutation, Some(arg)),
        OutputSpec::UserOutput { arg } => (Rank::Result, arg.name()),
        OutputSpec::LossOutput { arg } => (Rank::Result, Some(arg)),
        OutputSpec::GradientToParameter { arg, .. } | OutputSpec::GradientToUserInput { arg, .. } => {
            (Rank::Gradient, Some(arg))
        }
    }
}

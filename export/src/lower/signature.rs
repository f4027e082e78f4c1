//! Inputs and outputs of the lowered graph, as the signature states them.

use flambeau_ir::types::{Dim, TensorType};
use flambeau_ir::{SizeRange, Type, ValueId};

use super::{Lowering, Res, arguments};
use crate::call::enforced_range;
use crate::error::quoted;
use crate::expr::{Expr, ExprId};
use crate::model::{Argument, InputSpec, OutputSpec, SymInt};
use crate::{ExportCode, ExportError};

/// Maximum number of symbols with a number in types.
const MAX_SYMBOLS: usize = 64;

/// The source of an input of the graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InputSource {
    /// A parameter, by its name in the state dict.
    Parameter(String),
    /// A buffer, by its name in the state dict, or among the constants.
    Buffer(String),
    /// A tensor among the constants, by its name.
    Constant(String),
    /// A leaf of the arguments, by position.
    User(usize),
}

/// The destination of an output of the graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutputTarget {
    /// A leaf of the result.
    User,
    /// A leaf of the result that is the tensor of which the output at this position is the new content.
    Mutated(usize),
    /// The new content of a parameter or buffer.
    State(String),
    /// The new content of a leaf of the arguments.
    Input(usize),
    /// The gradient of a parameter, in a joint graph.
    ParameterGradient(String),
    /// The gradient of a leaf of the arguments, in a joint graph.
    InputGradient(usize),
}

impl<'m> Lowering<'m> {
    /// Adds the inputs of the graph.
    pub(super) fn inputs(&mut self) -> Res<Vec<InputSource>> {
        let module = &self.model.module;
        let (inputs, specs) = (&module.graph.inputs, &module.signature.inputs);
        if inputs.len() != specs.len() {
            return Err(argument(format!(
                "the graph has {} inputs, its signature {}",
                inputs.len(),
                specs.len()
            )));
        }
        let mut sources = Vec::new();
        let mut leaf = 0;
        for (input, spec) in inputs.iter().zip(specs) {
            let source = match spec {
                InputSpec::Parameter { target, .. } => InputSource::Parameter(target.clone()),
                InputSpec::Buffer { target, .. } => InputSource::Buffer(target.clone()),
                InputSpec::TensorConstant { target, .. } => InputSource::Constant(target.clone()),
                InputSpec::UserInput { .. } | InputSpec::ConstantInput { .. } => {
                    leaf += 1;
                    InputSource::User(leaf - 1)
                }
                InputSpec::CustomObj { target, .. } => {
                    return Err(unsupported(format!("the custom object {} as an input", quoted(target))));
                }
                InputSpec::Token { arg } => {
                    return Err(unsupported(format!("the token {} as an input", quoted(arg))));
                }
            };
            // An input that is a constant has no name, and no value of the graph depends on it.
            let Some(name) = arguments::value_name(input) else { continue };
            let ty = match input {
                Argument::SymInt(_) => Type::INT,
                Argument::SymFloat(_) => Type::FLOAT,
                Argument::SymBool(_) => Type::BOOL,
                Argument::CustomObj { .. } => {
                    return Err(unsupported(format!("the custom object {} as an input", quoted(name))));
                }
                Argument::Tensor(name) if matches!(source, InputSource::User(_)) => self.sized(name),
                _ => Type::TENSOR,
            };
            let value = self.graph.edit().add_input(ty);
            self.define(&module.graph, name, value)?;
            sources.push(source);
        }
        Ok(sources)
    }

    /// Returns the type of a tensor among the arguments, with the sizes that every call checks: numbers, and symbols, which have
    /// the same size in all arguments. dtypes and strides are no conditions of calls.
    fn sized(&mut self, name: &str) -> Type {
        let model = self.model;
        let Some(meta) = model.module.graph.tensor_values.get(name) else { return Type::TENSOR };
        let dim = |size: &SymInt| match size {
            SymInt::Int(n) => Dim::Known(*n),
            SymInt::Expr { expr, .. } => self.symbol(*expr).map_or(Dim::Unknown, Dim::Sym),
        };
        let sizes = meta.sizes.iter().map(dim).collect();
        Type::tensor(TensorType { sizes: Some(sizes), ..TensorType::default() })
    }

    /// Returns the number of a symbol in types, with its range. A call searches the symbols linearly, so only the first ones get
    /// a number.
    fn symbol(&mut self, expr: ExprId) -> Option<i64> {
        if !matches!(self.model.exprs.get(expr), Expr::Symbol(_)) {
            return None;
        }
        if let Some(known) = self.symbols.get(&expr) {
            return Some(*known);
        }
        if self.symbols.len() >= MAX_SYMBOLS {
            return None;
        }
        let symbol = -2 - self.symbols.len() as i64;
        self.symbols.insert(expr, symbol);
        if let Some((min, max)) = enforced_range(self.model, expr) {
            self.graph.edit().set_size_range(SizeRange { symbol, min, max });
        }
        Some(symbol)
    }

    /// Adds the outputs of the graph.
    pub(super) fn outputs(&mut self) -> Res<Vec<OutputTarget>> {
        let module = &self.model.module;
        let (outputs, specs) = (&module.graph.outputs, &module.signature.outputs);
        if outputs.len() != specs.len() {
            let counts = (outputs.len(), specs.len());
            return Err(argument(format!("the graph has {} outputs, its signature {}", counts.0, counts.1)));
        }
        let mutation_of = |name: &str| {
            specs.iter().position(|spec| match spec {
                OutputSpec::BufferMutation { arg, .. }
                | OutputSpec::ParameterMutation { arg, .. }
                | OutputSpec::UserInputMutation { arg, .. } => arg == name,
                _ => false,
            })
        };
        let mut targets = Vec::new();
        for (output, spec) in outputs.iter().zip(specs) {
            targets.push(match spec {
                // A program that returns what it mutated returns the tensor itself.
                OutputSpec::UserOutput { arg } => {
                    arg.name().and_then(mutation_of).map_or(OutputTarget::User, OutputTarget::Mutated)
                }
                OutputSpec::LossOutput { .. } => OutputTarget::User,
                OutputSpec::BufferMutation { target, .. } | OutputSpec::ParameterMutation { target, .. } => {
                    OutputTarget::State(target.clone())
                }
                OutputSpec::UserInputMutation { target, .. } => OutputTarget::Input(self.user_leaf(target)?),
                OutputSpec::GradientToParameter { target, .. } => {
                    OutputTarget::ParameterGradient(target.clone())
                }
                OutputSpec::GradientToUserInput { target, .. } => {
                    OutputTarget::InputGradient(self.user_leaf(target)?)
                }
                OutputSpec::Token { arg } => {
                    return Err(unsupported(format!("the token {} as an output", quoted(arg))));
                }
            });
            let value: ValueId = self.free(output)?;
            self.graph.edit().add_output(value);
        }
        Ok(targets)
    }

    /// Returns the position of a user input among the leaves of the arguments.
    fn user_leaf(&self, name: &str) -> Res<usize> {
        let specs = &self.model.module.signature.inputs;
        let leaves = specs.iter().filter_map(|spec| match spec {
            InputSpec::UserInput { arg } => Some(arguments::value_name(arg)),
            InputSpec::ConstantInput { .. } => Some(None),
            _ => None,
        });
        let found = leaves.into_iter().position(|leaf| leaf == Some(name));
        found.ok_or_else(|| {
            let message = format!("an output mutates {}, which is not an input", quoted(name));
            ExportError::new(ExportCode::UndefinedName, message)
        })
    }
}

fn argument(message: String) -> ExportError {
    ExportError::new(ExportCode::Argument, message)
}

fn unsupported(what: String) -> ExportError {
    ExportError::new(ExportCode::Operator, format!("{what} is not supported"))
}

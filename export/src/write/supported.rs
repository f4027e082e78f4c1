//! The features that the readers of each version know: higher-order operators, functions of Python, kinds of inputs, containers of arguments
//! and results. [`PARTS`] states for each part the first version whose `torch.export.load` reads it, in a process that has only
//! imported `torch`, and whose module then runs. A part that is not in the table is in every version.
//!
//! A program that was read from a file of the version is written as it is: what its writer wrote is of the version.

use super::FileVersion;
use crate::error::quoted;
use crate::fx::{Target, shown_name};
use crate::info::for_each_graph;
use crate::model::{Argument, InputSpec, NodeModel, ProgramModel};
use crate::tree::TreeSpec;
use crate::{ExportCode, ExportError};

/// A part of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part<'p> {
    /// A higher-order operator by its name.
    HigherOrder(&'p str),
    /// A function of Python by its module.
    Module(&'p str),
    /// A number among the arguments that varies from call to call.
    NumberInput,
    /// A container among the arguments by its class.
    InputContainer(&'p str),
    /// A container among the arguments or results by the module of its class.
    Container(&'p str),
}

use FileVersion::{Torch28, Torch215};

/// Parts with the first version that reads and runs them, and what an older version does.
const PARTS: &[(Part<'_>, FileVersion, &str)] = &[
    (
        Part::HigherOrder("while_loop"),
        Torch28,
        "refuses to call it, because it reads the carried values as a list",
    ),
    (Part::HigherOrder("invoke_subgraph"), Torch28, "takes its operands as one list"),
    (
        Part::HigherOrder("wrap_with_autocast"),
        Torch28,
        "finds it only after `import torch._higher_order_ops.wrap`",
    ),
    (
        Part::HigherOrder("wrap_with_set_grad_enabled"),
        Torch28,
        "finds it only after `import torch._higher_order_ops.wrap`",
    ),
    (Part::HigherOrder("associative_scan"), Torch28, "has none"),
    (Part::HigherOrder("auto_functionalized"), Torch28, "has none"),
    (Part::Module("math"), Torch28, "does not resolve functions of `math`"),
    (Part::NumberInput, Torch28, "reads such an input without its name"),
    (Part::InputContainer("collections.OrderedDict"), Torch28, "does not flatten it"),
    (Part::InputContainer("collections.defaultdict"), Torch28, "does not flatten it"),
    (Part::InputContainer("collections.deque"), Torch28, "does not flatten it"),
    (Part::Container("torch.return_types"), Torch215, "has no serialized name for it"),
];

/// Checks that a version reads and runs a program.
///
/// # Errors
/// `E015` with the part, and the node or field that has it.
pub(super) fn check(program: &ProgramModel, version: FileVersion) -> Result<(), ExportError> {
    if program.schema_version.minor == version.minor() {
        return Ok(());
    }
    let lacking: Vec<_> = PARTS.iter().filter(|row| row.1.minor() > version.minor()).copied().collect();
    if lacking.is_empty() {
        return Ok(());
    }
    let check = Check { lacking, version };
    let mut found = Ok(());
    for_each_graph(&program.module.graph, &mut |graph| {
        for node in &graph.nodes {
            if found.is_ok() {
                found = check.node(node);
            }
        }
    });
    found?;
    check.inputs(program)?;
    check.containers(program)
}

struct Check {
    /// The parts that the version lacks.
    lacking: Vec<(Part<'static>, FileVersion, &'static str)>,
    version: FileVersion,
}

impl Check {
    /// Returns an error if the version lacks a part, which `what` describes.
    fn part(&self, part: Part<'_>, what: &str) -> Result<(), ExportError> {
        let Some((_, since, why)) = self.lacking.iter().find(|row| row.0 == part) else { return Ok(()) };
        let (own, since) = (self.version.name(), since.name());
        let message =
            format!("files for PyTorch {own} cannot contain {what}: PyTorch {own} {why}; {since} runs it");
        Err(ExportError::new(ExportCode::Version, message))
    }

    fn node(&self, node: &NodeModel) -> Result<(), ExportError> {
        let target = Target::parse(&node.target);
        let checked = match target {
            Target::HigherOrder(name) => {
                self.part(Part::HigherOrder(name), &format!("the operator {}", quoted(name)))
            }
            Target::Function(path) => {
                let module = path.split('.').next().unwrap_or(path);
                self.part(Part::Module(module), &format!("the function {}", quoted(path)))
            }
            Target::Operator { .. } => Ok(()),
        };
        checked.map_err(|e| e.at_node(shown_name(node)))
    }

    fn inputs(&self, program: &ProgramModel) -> Result<(), ExportError> {
        for (i, spec) in program.module.signature.inputs.iter().enumerate() {
            let InputSpec::UserInput { arg } = spec else { continue };
            if let (Argument::SymInt(_) | Argument::SymFloat(_) | Argument::SymBool(_), Some(name)) =
                (arg, arg.name())
            {
                self.part(Part::NumberInput, &format!("the number {} as an input", quoted(name)))
                    .map_err(|e| e.in_item(i).in_field("graph_module.signature.input_specs"))?;
            }
        }
        Ok(())
    }

    fn containers(&self, program: &ProgramModel) -> Result<(), ExportError> {
        let module = &program.module;
        let Some(call) = module.module_call_graph.first().and_then(|call| call.signature.as_ref()) else {
            return Ok(());
        };
        for (field, text, is_input) in [("in_spec", &call.in_spec, true), ("out_spec", &call.out_spec, false)]
        {
            let mut found = Ok(());
            TreeSpec::parse(text, &module.namedtuple_fields)?.for_each_class(&mut |class| {
                let what = format!("the container {}", quoted(class));
                let of_module = class.rsplit_once('.').map_or("", |(module, _)| module);
                let mut checked = self.part(Part::Container(of_module), &what);
                if is_input {
                    checked = checked.and_then(|()| self.part(Part::InputContainer(class), &what));
                }
                if found.is_ok() {
                    found = checked;
                }
            });
            found.map_err(|e| e.in_field(&format!("graph_module.module_call_graph[0].signature.{field}")))?;
        }
        Ok(())
    }
}

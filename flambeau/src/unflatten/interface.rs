//! Arguments and results of the calls of submodules.
//!
//! A call has the signature that the program keeps for it (`preserve_module_call_signature`), with nested containers, if the
//! region needs nothing else. Otherwise its arguments are the inputs of the region, and its result is the output, a tuple of several, or
//! nothing.

use super::regions::{Region, Regions};
use crate::error::Error;
use crate::exported::ExportedProgram;
use crate::exported_module::{is_name, pack, type_of, unpack};
use flambeau_export::call::CallTrees;
use flambeau_export::lower::constant;
use flambeau_export::model::{Argument, Map, ModuleCallSignature, Sym};
use flambeau_export::tree::TreeSpec;
use flambeau_ir::{Editor, Graph, IValue, Symbol, Type, ValueId};
use hashbrown::{HashMap, HashSet};
use rustc_hash::FxBuildHasher;
use std::sync::Arc;

/// A part of an argument or result: a value of the flat method, or a constant.
#[derive(Clone, Debug)]
pub(super) enum Leaf {
    Value(ValueId),
    Constant(IValue),
}

impl Leaf {
    pub(super) fn value(&self) -> Option<ValueId> {
        match self {
            Leaf::Value(value) => Some(*value),
            Leaf::Constant(_) => None,
        }
    }
}

/// The arguments and results of a call.
#[derive(Clone, Debug)]
pub(super) enum Interface {
    /// Those of the region.
    Flat { inputs: Vec<ValueId>, outputs: Vec<ValueId> },
    /// Those that the program states.
    Kept(Arc<Kept>),
}

/// A signature that the program keeps.
#[derive(Debug)]
pub(super) struct Kept {
    trees: CallTrees,
    names: Vec<String>,
    inputs: Vec<Leaf>,
    outputs: Vec<Leaf>,
}

/// A parameter of a method.
pub(super) struct Parameter {
    pub(super) name: Symbol,
    pub(super) ty: Type,
    /// The structure of the argument; `None` for a single value.
    pub(super) spec: Option<TreeSpec>,
    pub(super) leaves: Vec<Leaf>,
}

/// The signatures that a program keeps for calls of submodules.
pub(super) struct KeptSignatures<'p> {
    /// By path, with the number of the call.
    signatures: HashMap<&'p str, &'p ModuleCallSignature, FxBuildHasher>,
    /// Values of the flat method by name.
    values: HashMap<&'static str, ValueId, FxBuildHasher>,
    field_names: &'p Map<Vec<String>>,
}

impl<'p> KeptSignatures<'p> {
    pub(super) fn new(program: &'p ExportedProgram, graph: &Graph) -> KeptSignatures<'p> {
        let mut values = HashMap::default();
        for value in graph.values_in_order() {
            if let Some(name) = graph.name(value).symbol() {
                values.entry(name.as_str()).or_insert(value);
            }
        }
        let module = &program.model().module;
        let calls = module.module_call_graph.iter();
        let signatures =
            calls.filter_map(|call| Some((call.fqn.as_str(), call.signature.as_ref()?))).collect();
        KeptSignatures { signatures, values, field_names: &module.namedtuple_fields }
    }

    /// Returns the interface of a region whose inputs and outputs are known.
    pub(super) fn interface(&self, regions: &Regions<'_>, region: &Region) -> Interface {
        let flat = || Interface::Flat { inputs: region.inputs.clone(), outputs: region.outputs.clone() };
        self.kept(regions, region).unwrap_or_else(flat)
    }

    fn kept(&self, regions: &Regions<'_>, region: &Region) -> Option<Interface> {
        let frame = region.frame.as_ref()?;
        let name = match frame.call.as_str() {
            "" => frame.path.clone(),
            call => format!("{}@{call}", frame.path),
        };
        let signature = *self.signatures.get(name.as_str())?;
        let trees = CallTrees::parse(signature, self.field_names).ok()?;
        Kept::new(regions.graph, signature, trees, &self.values)?.for_region(regions, region)
    }
}

impl Kept {
    fn new(
        graph: &Graph,
        signature: &ModuleCallSignature,
        trees: CallTrees,
        values: &HashMap<&str, ValueId, FxBuildHasher>,
    ) -> Option<Kept> {
        let leaf = |arg: &Argument| match arg {
            Argument::SymInt(Sym::Value(n)) => Some(Leaf::Constant(IValue::Int(*n))),
            Argument::SymBool(Sym::Value(b)) => Some(Leaf::Constant(IValue::Bool(*b))),
            Argument::SymFloat(Sym::Value(x)) => Some(Leaf::Constant(IValue::Float(*x))),
            _ => match arg.name() {
                Some(name) => values.get(name).copied().map(|value| match graph.constant(value) {
                    Some(constant) => Leaf::Constant(constant),
                    None => Leaf::Value(value),
                }),
                None => constant(arg, Type::ANY).ok().map(|(value, _)| Leaf::Constant(value)),
            },
        };
        let inputs: Vec<Leaf> = signature.inputs.iter().map(leaf).collect::<Option<_>>()?;
        let outputs: Vec<Leaf> = signature.outputs.iter().map(leaf).collect::<Option<_>>()?;
        let takes: usize =
            trees.args.iter().chain(trees.kwargs.iter().map(|(_, spec)| spec)).map(TreeSpec::leaves).sum();
        if takes != inputs.len() || trees.output.leaves() != outputs.len() {
            return None;
        }
        let names = signature.forward_arg_names.clone().unwrap_or_default();
        Some(Kept { trees, names, inputs, outputs })
    }

    /// Returns the interface, if the region needs no other inputs and outputs, and TorchScript has types for these.
    fn for_region(self, regions: &Regions<'_>, region: &Region) -> Option<Interface> {
        let graph = regions.graph;
        let given: HashSet<ValueId, FxBuildHasher> = self.inputs.iter().filter_map(Leaf::value).collect();
        let returned: HashSet<ValueId, FxBuildHasher> = self.outputs.iter().filter_map(Leaf::value).collect();
        let is_complete = given.iter().all(|value| region.follows(regions, *value))
            && region.inputs.iter().all(|value| given.contains(value))
            && region.outputs.iter().all(|value| returned.contains(value))
            && returned.iter().all(|value| given.contains(value) || region.defines(regions, *value));
        let interface = Interface::Kept(Arc::new(self));
        // A structure without a type has an error here.
        (is_complete && interface.parameters(graph).is_ok() && interface.result_type(graph).is_ok())
            .then_some(interface)
    }
}

impl Interface {
    /// Returns the parameters.
    pub(super) fn parameters(&self, graph: &Graph) -> Result<Vec<Parameter>, Error> {
        let mut used: HashSet<String, FxBuildHasher> = HashSet::from_iter(["self".to_owned()]);
        let mut named = |stated: Option<&str>, position: usize| {
            let stated =
                stated.filter(|name| is_name(name)).map_or_else(|| format!("arg{position}"), str::to_owned);
            let (mut name, mut number) = (stated.clone(), position);
            while !used.insert(name.clone()) {
                name = format!("{stated}_{number}");
                number += 1;
            }
            Symbol::new(&name)
        };
        match self {
            Interface::Flat { inputs, .. } => {
                let parameter = |(i, &value): (usize, &ValueId)| Parameter {
                    name: named(graph.name(value).symbol().map(|name| name.as_str()), i),
                    ty: graph.ty(value),
                    spec: None,
                    leaves: vec![Leaf::Value(value)],
                };
                Ok(inputs.iter().enumerate().map(parameter).collect())
            }
            Interface::Kept(kept) => {
                let args = kept.trees.args.iter().enumerate();
                let args = args.map(|(i, spec)| (kept.names.get(i).map(String::as_str), spec));
                let kwargs = kept.trees.kwargs.iter().map(|(name, spec)| (Some(name.as_str()), spec));
                let mut leaves = kept.inputs.iter();
                let parameter = |(i, (name, spec)): (usize, (Option<&str>, &TreeSpec))| {
                    let leaves: Vec<Leaf> = leaves.by_ref().take(spec.leaves()).cloned().collect();
                    let mut types = leaf_types(graph, &leaves).into_iter();
                    let ty = type_of(spec, &mut || types.next().unwrap_or(Type::NONE))?;
                    Ok(Parameter { name: named(name, i), ty, spec: Some(spec.clone()), leaves })
                };
                args.chain(kwargs).enumerate().map(parameter).collect()
            }
        }
    }

    fn result_type(&self, graph: &Graph) -> Result<Type, Error> {
        match self {
            Interface::Flat { .. } => Ok(Type::ANY),
            Interface::Kept(kept) => {
                let mut types = leaf_types(graph, &kept.outputs).into_iter();
                type_of(&kept.trees.output, &mut || types.next().unwrap_or(Type::NONE))
            }
        }
    }

    /// Returns the values of the flat method that a call takes.
    pub(super) fn taken(&self) -> Vec<ValueId> {
        match self {
            Interface::Flat { inputs, .. } => inputs.clone(),
            Interface::Kept(kept) => kept.inputs.iter().filter_map(Leaf::value).collect(),
        }
    }

    /// Returns the values of the flat method that the method returns.
    pub(super) fn results(&self) -> Vec<ValueId> {
        match self {
            Interface::Flat { outputs, .. } => outputs.clone(),
            Interface::Kept(kept) => kept.outputs.iter().filter_map(Leaf::value).collect(),
        }
    }

    /// Inserts nodes that make the arguments of a call.
    pub(super) fn arguments(
        &self,
        edit: &mut Editor<'_>,
        graph: &Graph,
        mut value: impl FnMut(ValueId) -> Result<ValueId, Error>,
    ) -> Result<Vec<ValueId>, Error> {
        let mut arguments = Vec::new();
        for parameter in self.parameters(graph)? {
            let leaves = made(edit, &parameter.leaves, &mut value)?;
            arguments.push(match &parameter.spec {
                Some(spec) => pack(edit, spec, &mut leaves.into_iter())?,
                None => leaves[0],
            });
        }
        Ok(arguments)
    }

    /// Inserts nodes that make the result of the method, and returns it.
    pub(super) fn pack_results(
        &self,
        edit: &mut Editor<'_>,
        mut value: impl FnMut(ValueId) -> Result<ValueId, Error>,
    ) -> Result<ValueId, Error> {
        match self {
            Interface::Flat { outputs, .. } => match outputs.as_slice() {
                [] => Ok(edit.constant(IValue::None)),
                [only] => value(*only),
                several => {
                    let several: Vec<ValueId> =
                        several.iter().map(|v| value(*v)).collect::<Result<_, _>>()?;
                    Ok(edit.tuple(&several))
                }
            },
            Interface::Kept(kept) => {
                let leaves = made(edit, &kept.outputs, &mut value)?;
                pack(edit, &kept.trees.output, &mut leaves.into_iter())
            }
        }
    }

    /// Inserts nodes that take the result of a call apart. Returns the values of the flat method with their new values.
    pub(super) fn unpack_results(
        &self,
        edit: &mut Editor<'_>,
        graph: &Graph,
        result: ValueId,
    ) -> Result<Vec<(ValueId, ValueId)>, Error> {
        match self {
            Interface::Flat { outputs, .. } => Ok(match outputs.as_slice() {
                [] => Vec::new(),
                [only] => vec![(*only, result)],
                several => several.iter().copied().zip(edit.unpack_tuple(result)).collect(),
            }),
            Interface::Kept(kept) => {
                let mut leaves = Vec::new();
                let types = leaf_types(graph, &kept.outputs);
                unpack(edit, &kept.trees.output, result, &types, &mut leaves)?;
                let pairs = kept.outputs.iter().zip(leaves);
                Ok(pairs.filter_map(|(leaf, new)| Some((leaf.value()?, new))).collect())
            }
        }
    }
}

/// Returns the types of leaves.
pub(super) fn leaf_types(graph: &Graph, leaves: &[Leaf]) -> Vec<Type> {
    let of = |leaf: &Leaf| match leaf {
        Leaf::Value(value) => graph.ty(*value),
        Leaf::Constant(value) => value.type_of(),
    };
    leaves.iter().map(of).collect()
}

/// Returns the values of leaves, with nodes for constants.
fn made(
    edit: &mut Editor<'_>,
    leaves: &[Leaf],
    value: &mut impl FnMut(ValueId) -> Result<ValueId, Error>,
) -> Result<Vec<ValueId>, Error> {
    let one = |leaf: &Leaf| match leaf {
        Leaf::Value(of) => value(*of),
        Leaf::Constant(constant) => Ok(edit.constant(constant.clone())),
    };
    leaves.iter().map(one).collect()
}

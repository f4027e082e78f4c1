//! Calls of a module with its hooks, as PyTorch calls modules.
//!
//! A module's class lists methods to run before `forward`, which get the tuple of its inputs and may replace it, and
//! methods to run after `forward`, which get the inputs and the output and may replace the output. For calls of
//! submodules, the archived code contains the calls of their hooks. The call of the root module from outside has no
//! archived code, so this file builds it as a function with plain method calls, which evaluator, inliner and printer
//! handle like any other.

use std::sync::Arc;

use flambeau_ir::attr::{Attr, names};
use flambeau_ir::module::{CompilationUnit, Function};
use flambeau_ir::schema::Argument;
use flambeau_ir::types::is_subtype;
use flambeau_ir::{Editor, FunctionSchema, Graph, Prim, Registry, Symbol, Type, ValueId};

use crate::error::quoted;
use crate::{ArchiveCode, ArchiveError};

/// The name of the function that calls a module with its hooks.
const CALL: &str = "__call__";

/// Returns the function that runs the hooks of `class` and `forward`, or `None` if there are no hooks or one of them is
/// not a compiled method.
///
/// # Errors
///
/// Returns `A0045` if the result of a hook does not match the parameters of `forward` or of the next hook.
pub fn call_with_hooks(
    unit: &CompilationUnit,
    registry: &Arc<Registry>,
    class: Type,
) -> Result<Option<Function>, ArchiveError> {
    let forward = Symbol::new("forward");
    let Some(declared) = unit.class(class) else { return Ok(None) };
    let (before, behind) = (&declared.pre_hooks, &declared.hooks);
    if before.is_empty() && behind.is_empty() {
        return Ok(None);
    }
    let all = before.iter().chain([&forward]).chain(behind);
    if all.clone().any(|&name| unit.method(class, name).is_none()) {
        return Ok(None);
    }
    let Some(called) = unit.method(class, forward) else { return Ok(None) };
    let mut graph = Graph::new(Arc::clone(registry));
    let mut caller = Caller { unit, class, edit: graph.edit() };
    let mut inputs = Vec::new();
    for arg in &called.schema.args {
        let input = caller.edit.add_input(arg.ty);
        caller.edit.set_name(input, arg.name.as_str());
        inputs.push(input);
    }
    let object = inputs[0];
    let mut inputs = inputs.split_off(1);
    for &hook in before {
        let given = caller.tuple(&inputs);
        let result = caller.method(hook, &[object, given])?;
        inputs = caller.replaced_inputs(inputs, result);
    }
    let mut args = vec![object];
    args.extend(&inputs);
    let mut output = caller.method(forward, &args)?;
    for &hook in behind {
        let given = caller.tuple(&inputs);
        let result = caller.method(hook, &[object, given, output])?;
        if caller.ty(result) != Type::NONE {
            output = result;
        }
    }
    caller.edit.add_output(output);
    let name = Symbol::new(&format!("{}.{CALL}", class.annotation()));
    let returns = vec![Argument::new(Symbol::EMPTY, graph.ty(output))];
    let schema = FunctionSchema { name: Symbol::new(CALL), returns, ..(*called.schema).clone() };
    Ok(Some(Function { name, schema: Arc::new(schema), graph: Arc::new(graph) }))
}

struct Caller<'a> {
    unit: &'a CompilationUnit,
    class: Type,
    edit: Editor<'a>,
}

impl Caller<'_> {
    fn ty(&self, value: ValueId) -> Type {
        self.edit.graph().ty(value)
    }

    fn tuple(&mut self, values: &[ValueId]) -> ValueId {
        let types: Vec<Type> = values.iter().map(|&v| self.ty(v)).collect();
        self.edit.value(Prim::TupleConstruct, values, Type::tuple(&types))
    }

    /// Returns the inputs after a hook: unchanged if the result is `None`, the elements of a tuple, or the result as
    /// the only input.
    fn replaced_inputs(&mut self, inputs: Vec<ValueId>, result: ValueId) -> Vec<ValueId> {
        let ty = self.ty(result);
        match ty.as_tuple() {
            Some(tuple) => {
                let node = self.edit.node(Prim::TupleUnpack, &[result], &tuple.elems);
                self.edit.graph().results(node).collect()
            }
            None if ty == Type::NONE => inputs,
            None => vec![result],
        }
    }

    fn method(&mut self, name: Symbol, args: &[ValueId]) -> Result<ValueId, ArchiveError> {
        let refuse = |why: String| {
            let message = format!("hooks of {}: {} {why}", self.class.annotation(), quoted(name.as_str()));
            Err(ArchiveError::new(ArchiveCode::Type, message))
        };
        let Some(method) = self.unit.method(self.class, name) else {
            return refuse("is not a method".to_owned());
        };
        let (params, result) =
            (&method.schema.args, method.schema.returns.first().map_or(Type::NONE, |r| r.ty));
        if params.len() != args.len() {
            return refuse(format!("takes {} arguments, found {}", params.len(), args.len()));
        }
        for (param, &arg) in params.iter().zip(args) {
            let ty = self.ty(arg);
            if !is_subtype(ty, param.ty, self.unit) {
                return refuse(format!("takes {} as `{}`, found {ty}", param.ty, param.name));
            }
        }
        let attrs = self.edit.attrs(vec![(names::name(), Attr::str(name.as_str()))]);
        let node = self.edit.insert(Prim::CallMethod, args, attrs, &[result]);
        Ok(self.edit.graph().result(node, 0))
    }
}

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
/// Returns `A0045` if the parameters or the result of a hook do not match the parameters or the result of `forward` or of the
/// hook before.
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
        let result = caller.hook(hook, object, &inputs, None)?;
        inputs = caller.replaced_inputs(inputs, result);
    }
    let mut args = vec![object];
    args.extend(&inputs);
    let mut output = caller.method(forward, &args)?;
    for &hook in behind {
        let result = caller.hook(hook, object, &inputs, Some(output))?;
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

    /// Calls a hook: one before `forward`, or one behind it with its output.
    fn hook(
        &mut self,
        name: Symbol,
        object: ValueId,
        inputs: &[ValueId],
        output: Option<ValueId>,
    ) -> Result<ValueId, ArchiveError> {
        if let Some(why) = self.mismatch(name, inputs, output) {
            return Err(ArchiveError::new(ArchiveCode::Type, self.signature(name, inputs, output, &why)));
        }
        let given = self.tuple(inputs);
        let args: Vec<ValueId> = [object, given].into_iter().chain(output).collect();
        self.method(name, &args)
    }

    /// Returns why a hook cannot be called, if it cannot.
    fn mismatch(&self, name: Symbol, inputs: &[ValueId], output: Option<ValueId>) -> Option<String> {
        let method = self.unit.method(self.class, name)?;
        let schema = &method.schema;
        let (found, wanted) = (schema.args.len(), 2 + usize::from(output.is_some()));
        if found != wanted {
            return Some(format!(
                "was expected to only have exactly {wanted} inputs but it had {found} inputs."
            ));
        }
        let ty = schema.args[1].ty;
        let shown = ty.annotation();
        let Some(tuple) = ty.as_tuple() else {
            return Some(format!(
                "expected the input argument to be typed as a Tuple but found type: '{shown}' instead."
            ));
        };
        if tuple.elems.len() != inputs.len() {
            return Some(format!(
                "has the wrong number of contained types for the input argument's Tuple. Received type: '{shown}'."
            ));
        }
        let fits = |(&value, &ty): (&ValueId, &Type)| is_subtype(self.ty(value), ty, self.unit);
        if !inputs.iter().zip(&tuple.elems).all(fits) {
            return Some(format!(
                "has the wrong inner types for the input tuple argument. Received type: '{shown}'."
            ));
        }
        match output {
            Some(output) => {
                let (given, ty) = (self.ty(output), schema.args[2].ty);
                (!is_subtype(given, ty, self.unit)).then(|| {
                    format!(
                        "has the wrong type for the output argument. Received type: '{}'. Expected type: '{}'.",
                        ty.annotation(),
                        given.annotation()
                    )
                })
            }
            None => self.wrong_inputs(schema.return_type(), inputs),
        }
    }

    /// Returns why the result of a hook cannot be the inputs of `forward`, if it cannot.
    fn wrong_inputs(&self, result: Type, inputs: &[ValueId]) -> Option<String> {
        let types: Vec<Type> = inputs.iter().map(|&v| self.ty(v)).collect();
        let fits = |found: &[Type]| {
            found.len() == types.len() && found.iter().zip(&types).all(|(&a, &b)| is_subtype(a, b, self.unit))
        };
        let is_tuple = |ty: &Type| ty.as_tuple().is_some();
        let single = types.first().filter(|ty| types.len() == 1 && is_tuple(ty));
        let right = match result.as_tuple() {
            Some(tuple) => fits(&tuple.elems),
            None => result == Type::NONE || fits(&[result]),
        };
        if right {
            return None;
        }
        let mut why = format!("returned the wrong type of: '{}'.", result.annotation());
        if let Some(single) = single {
            let nested = Type::tuple(&[*single]).annotation();
            why += &format!(
                " When forward has a single tuple input argument, the return needs to be 'None' or a nested tuple containing \
                 forward's input tuple argument as in: '{nested}'."
            );
        }
        Some(why)
    }

    /// Describes a wrong hook, with the signature that it must have.
    fn signature(&self, name: Symbol, inputs: &[ValueId], output: Option<ValueId>, why: &str) -> String {
        let class = self.class.annotation().to_string();
        let module = class.rsplit_once('.').map_or(class.as_str(), |(_, last)| last);
        let types: Vec<Type> = inputs.iter().map(|&v| self.ty(v)).collect();
        let all = Type::tuple(&types).annotation();
        let kind = if output.is_some() { "Hook" } else { "Pre-hook" };
        let place = if output.is_some() { "forward hook" } else { "forward pre-hook" };
        let mut text = format!(
            "{kind} '{name}' on module '{module}' {why}\nThis error occurred while scripting the {place} '{name}' on module \
             '{module}'. If you did not want to script this hook remove it from the original NN module before scripting. The \
             hook is expected to have the following signature: "
        );
        text += &match output {
            Some(output) => format!("{name}(self, input: {all}, output: {}).", self.ty(output).annotation()),
            None => {
                let one = match types.as_slice() {
                    [one] if one.as_tuple().is_none() => format!(", '{}',", one.annotation()),
                    _ => String::new(),
                };
                format!("{name}(self, input: {all}) with a return type of either 'None'{one} or '{all}'.")
            }
        };
        text
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

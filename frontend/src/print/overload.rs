//! Forms of operator calls that resolve to the overload of the printed node.
//!
//! Source calls an operator by its name, and the compiler selects the first overload that accepts the arguments. Which
//! one that is depends on the arguments that are written and on those that are written by name. A [`WrittenOperands`] is checked
//! with the compiler's own matching: [`form`] tries PyTorch's form first, then forms with more operands, then forms with
//! operands by name. Some overloads have no form: an earlier overload accepts all their arguments (`aten::pow.int`
//! those of `aten::pow.int_to_int`), or the compiler never selects them (`aten::view.dtype`).

use flambeau_ir::schema::{ArgInfo, FunctionSchema, SchemaCall, match_call};
use flambeau_ir::types::ClassEnv;
use flambeau_ir::{Graph, IValue, NodeId, OpId, Symbol, ValueId};
use smallvec::SmallVec;

use crate::emit::callable_overloads;

/// The operands of a call that are written, in order: the first `written` ones, then the last `outs` ones.
#[derive(Clone, Copy, Debug)]
pub(super) struct WrittenOperands {
    written: usize,
    outs: usize,
    /// Operands from this one on are written by name, and before it those that have to be.
    positional: usize,
}

impl WrittenOperands {
    /// Returns the operands to write, each with the parameter name to write before it.
    pub(super) fn operands(
        self,
        schema: Option<&FunctionSchema>,
        given: usize,
    ) -> impl Iterator<Item = (usize, Option<Symbol>)> + '_ {
        let args = schema.map_or(&[][..], |s| &s.args);
        let first_out = given.min(args.len().max(self.written)).saturating_sub(self.outs).max(self.written);
        (0..self.written).chain(first_out..given).map(move |i| {
            let by_name =
                |a: &&flambeau_ir::schema::Argument| i >= self.positional || a.kwarg_only || a.is_out();
            (i, args.get(i).filter(by_name).map(|a| a.name))
        })
    }
}

/// Returns the form of a node's call. The result is `None` if no form resolves to the overload of the node. Operators
/// that are not registered are called with all operands.
pub(super) fn form(
    g: &Graph,
    node: NodeId,
    schema: Option<&FunctionSchema>,
    classes: &dyn ClassEnv,
) -> Option<WrittenOperands> {
    let given = g.operand_count(node);
    let Some(schema) = schema else {
        return Some(WrittenOperands { written: given, outs: 0, positional: given });
    };
    let (least, most, outs) = necessary(g, node, schema);
    let longer = (least..=most).map(|n| WrittenOperands { written: n, outs, positional: n });
    let named = (0..most).rev().map(|n| WrittenOperands { written: most, outs, positional: n });
    let Some(own) = g.op(node).row() else {
        return Some(WrittenOperands { written: least, outs, positional: least });
    };
    longer.chain(named).find(|&form| resolved(g, node, schema, form, classes) == Some(own))
}

/// Returns the least and the largest number of operands of a call to write, without the `out` operands at the end, and
/// the number of these. Trailing operands that equal their defaults need not be written.
fn necessary(g: &Graph, node: NodeId, schema: &FunctionSchema) -> (usize, usize, usize) {
    let (args, given) = (&schema.args, g.operand_count(node));
    let outs = args.iter().rev().take_while(|a| a.is_out()).count();
    if args.len() < given {
        return (given, given, outs);
    }
    let is_default = |i: usize| {
        let Some(value) = g.operands(node).nth(i).and_then(|v| g.constant(v)) else { return false };
        let found = flambeau_ir::Attr::Value(value);
        args[i].default.clone().is_some_and(|d| flambeau_ir::Attr::Value(d).same(&found))
    };
    let most = (args.len() - outs).min(given);
    let least = (0..=most).rev().find(|&n| n == 0 || !is_default(n - 1)).unwrap_or(most);
    (least, most, outs)
}

/// Returns the overload that the compiler selects for a form of a node's call.
fn resolved(
    g: &Graph,
    node: NodeId,
    schema: &FunctionSchema,
    form: WrittenOperands,
    classes: &dyn ClassEnv,
) -> Option<OpId> {
    let registry = g.registry();
    let types: SmallVec<[ArgInfo; 8]> = g.operands(node).map(|v| as_read(g, v)).collect();
    let (mut args, mut kwargs) = (SmallVec::<[ArgInfo; 8]>::new(), SmallVec::<[(Symbol, ArgInfo); 4]>::new());
    for (i, name) in form.operands(Some(schema), types.len()) {
        match name {
            Some(name) => kwargs.push((name, types[i])),
            None => args.push(types[i]),
        }
    }
    let overloads: SmallVec<[OpId; 16]> = callable_overloads(registry, schema.name).collect();
    let schemas: SmallVec<[&FunctionSchema; 16]> = overloads.iter().map(|&id| registry.schema(id)).collect();
    let call = SchemaCall { receiver: None, args: &args, kwargs: &kwargs };
    match_call(&schemas, call, classes).ok().map(|matched| overloads[matched.schema])
}

/// Returns an operand as the compiler sees it: a literal has the type of its value, which may be narrower than the type
/// of the constant in the graph.
fn as_read(g: &Graph, value: ValueId) -> ArgInfo {
    let is_literal = |c: &IValue| {
        matches!(
            c,
            IValue::None
                | IValue::Bool(_)
                | IValue::Int(_)
                | IValue::Float(_)
                | IValue::Complex(_)
                | IValue::Str(_)
        )
    };
    g.constant(value).filter(is_literal).map_or_else(|| g.ty(value), |c| c.type_of()).into()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use flambeau_ir::module::Function;
    use flambeau_ir::{At, CompilationUnit, Graph, IValue, OpDef, RegistryBuilder, Symbol, Type};

    use crate::FrontendLimits;
    use crate::print::{ReceiverForm, code};

    const OPS: [&str; 5] = [
        "t::pick(Tensor self, int[2] n) -> Tensor",
        "t::pick.other(Tensor self, int k, bool flag=False) -> Tensor",
        "t::pick.same(Tensor self, int k) -> int",
        "t::pick.named(Tensor self, int m) -> Tensor",
        "t::pick.preset(Tensor self, int k=1, *, int last=2) -> Tensor",
    ];

    /// Returns the second line of a function that returns a call of an overload, after it is compiled to the same
    /// operator again, or the message of the error. A constant is passed for each number.
    fn printed(overload: &str, numbers: &[i64]) -> String {
        let mut builder = RegistryBuilder::new();
        builder.add(OPS.map(OpDef::new));
        let registry = builder.build().unwrap();
        let op = registry.lookup(overload).unwrap();
        let mut graph = Graph::new(Arc::clone(&registry));
        let root = graph.root();
        let mut e = graph.edit();
        let mut operands = vec![e.add_input(Type::TENSOR)];
        e.at(At::end(root));
        let wanted = &registry.schema(op).args[1..];
        operands.extend(numbers.iter().zip(wanted).map(|(&n, arg)| match arg.ty {
            Type::BOOL => e.constant(IValue::Bool(n != 0)),
            _ => e.constant(IValue::Int(n)),
        }));
        let result = e.value(op, &operands, registry.schema(op).returns[0].ty);
        e.add_output(result);
        let (unit, function) =
            (CompilationUnit::new(), Function::of_graph(Symbol::new("f"), Arc::new(graph)));
        let printed = match code(&unit, &function, ReceiverForm::Typed) {
            Ok(printed) => printed,
            Err(problem) => return problem.message,
        };
        let again = printed.compile(&unit, &registry, &FrontendLimits::default()).unwrap().graph.clone();
        assert!(again.nodes_deep().any(|n| again.op(n).row() == Some(op)), "{}", printed.text);
        printed.text.lines().nth(1).unwrap_or_default().trim().to_owned()
    }

    #[test]
    fn operands_are_named_where_an_earlier_overload_accepts_their_types() {
        assert_eq!(printed("t::pick.other", &[3, 1]), "return ops.t.pick(arg0, 3, True)");
        // `ops.t.pick(arg0, 3)` calls the first overload: a number is a list of two.
        assert_eq!(printed("t::pick.other", &[3, 0]), "return ops.t.pick(arg0, 3, False)");
        assert_eq!(printed("t::pick.named", &[3]), "return ops.t.pick(arg0, m=3)");
        assert_eq!(printed("t::pick.preset", &[1, 2]), "return ops.t.pick(arg0)");
        assert_eq!(printed("t::pick.preset", &[3, 2]), "return ops.t.pick(arg0, 3, last=2)");
    }

    #[test]
    fn overloads_that_no_call_selects_have_no_form() {
        assert_eq!(printed("t::pick.same", &[3]), "a call of the overload `t::pick.same` has no source form");
    }
}

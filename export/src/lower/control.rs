//! Higher-order operators: their subgraphs become blocks of `prim::If` and `prim::Loop`, or are inlined.
//!
//! | operator | becomes |
//! |---|---|
//! | `cond` | `prim::If` with both subgraphs as blocks |
//! | `while_loop` | `prim::Loop` without a bound; the condition is lowered before the loop and at the end of its body |
//! | `map_impl`, `scan`, `associative_scan` | `prim::Loop` over the slices of the first dimension, whose results are collected in lists and stacked |
//! | `wrap_with_set_grad_enabled` | the subgraph between nodes that switch the recording of gradients |
//! | `wrap_with_autocast` | the subgraph, with conversions of the operands of some operators |
//! | `invoke_subgraph` and other wrappers | the subgraph |
//! | `auto_functionalized` | a call of the operator on copies of the operands that it writes |

use crate::codes::SchemaEnum;
use flambeau_ir::types::{NoClasses, unify};
use flambeau_ir::{IValue, LoweringRole, Prim, Type, ValueId};
use flambeau_tensor as tensor;

use super::{Lowering, Res};
use crate::error::quoted;
use crate::fx::Target;
use crate::model::{Argument, GraphModel, NodeModel};
use crate::scan::{self, Order};
use crate::{ExportCode, ExportError};

/// Wrappers whose first subgraph runs on the operands that follow it. They have no meaning for a run.
const TRANSPARENT: &[&str] =
    &["invoke_subgraph", "strict_mode", "wrap", "tag_activation_checkpoint", "wrap_activation_checkpoint"];

/// Higher-order operators that become control flow or other nodes.
const LOWERED: &[&str] = &[
    "cond",
    "while_loop",
    "map_impl",
    "map",
    scan::NAME,
    "associative_scan",
    "wrap_with_set_grad_enabled",
    "wrap_with_autocast",
    "auto_functionalized",
];

/// Whether the lowering knows a higher-order operator.
pub(crate) fn is_lowered(name: &str) -> bool {
    LOWERED.contains(&name) || TRANSPARENT.contains(&name)
}

/// The parts of a loop over slices.
struct Slices<'m> {
    body: &'m GraphModel,
    /// Initial values of what is carried from slice to slice.
    carried: Vec<ValueId>,
    /// Tensors of which the body sees slices.
    sliced: Vec<ValueId>,
    /// Values that are the same for every slice.
    captured: Vec<ValueId>,
    order: Order,
}

impl<'m> Lowering<'m> {
    /// Lowers a higher-order operator and returns its results.
    pub(super) fn higher_order(&mut self, name: &str, node: &'m NodeModel) -> Res<Vec<ValueId>> {
        let args: Vec<&'m Argument> = node.inputs.iter().map(|input| &input.arg).collect();
        match (name, args.as_slice()) {
            (
                "cond",
                [pred, Argument::Graph { graph: yes, .. }, Argument::Graph { graph: no, .. }, rest @ ..],
            ) => {
                let operands = self.operand_lists(rest)?;
                self.branches(pred, yes, no, &operands)
            }
            (
                "while_loop",
                [
                    Argument::Graph { graph: condition, .. },
                    Argument::Graph { graph: body, .. },
                    carried,
                    rest @ ..,
                ],
            ) => {
                let carried = self.operands(carried)?;
                let captured = self.operand_lists(rest)?;
                self.while_loop(condition, body, carried, &captured)
            }
            ("map_impl" | "map", [Argument::Graph { graph: body, .. }, sliced, rest @ ..]) => {
                let sliced = self.operands(sliced)?;
                let captured = self.operand_lists(rest)?;
                let order = Order::default();
                self.slices(Slices { body, carried: Vec::new(), sliced, captured, order })
            }
            (scan::NAME, [Argument::Graph { graph: body, .. }, init, sliced, rest @ ..]) => {
                let (carried, sliced) = (self.operands(init)?, self.operands(sliced)?);
                let (order, rest) = scan_order(rest)?;
                let captured = self.operand_lists(rest)?;
                self.slices(Slices { body, carried, sliced, captured, order })
            }
            ("associative_scan", [Argument::Graph { graph: body, .. }, sliced, rest @ ..]) => {
                let sliced = self.operands(sliced)?;
                let (order, rest) = scan_order(rest)?;
                if order.dim != 0 || order.is_reversed {
                    let what = "an associative scan in reverse or along another dimension than the first";
                    return Err(unsupported(what.to_owned()));
                }
                let captured = self.operand_lists(rest)?;
                self.associative_scan(body, &sliced, &captured)
            }
            ("wrap_with_set_grad_enabled", [enabled, Argument::Graph { graph: body, .. }, operands @ ..]) => {
                let operands = operands.iter().map(|arg| self.free(arg)).collect::<Res<Vec<_>>>()?;
                self.with_grad_mode(enabled, body, &operands)
            }
            (
                "wrap_with_autocast",
                [device, dtype, enabled, _, Argument::Graph { graph: body, .. }, operands @ ..],
            ) => {
                let operands = operands.iter().map(|arg| self.free(arg)).collect::<Res<Vec<_>>>()?;
                self.with_autocast([device, dtype, enabled], body, &operands)
            }
            ("auto_functionalized", [Argument::Operator(operator), ..]) => {
                self.functionalized(operator, node)
            }
            (name, args) if TRANSPARENT.contains(&name) => self.wrapper(name, args),
            _ => Err(unsupported(format!("the higher-order operator {} with these arguments", quoted(name)))),
        }
    }

    /// Returns the values of several lists of operands, one after another.
    fn operand_lists(&mut self, lists: &[&'m Argument]) -> Res<Vec<ValueId>> {
        let mut all = Vec::new();
        for list in lists {
            all.extend(self.operands(list)?);
        }
        Ok(all)
    }

    fn branches(
        &mut self,
        pred: &'m Argument,
        yes: &'m GraphModel,
        no: &'m GraphModel,
        operands: &[ValueId],
    ) -> Res<Vec<ValueId>> {
        let pred = self.free(pred)?;
        let pred = self.condition(pred)?;
        let node = self.edit().node(Prim::If, &[pred], &[]);
        let outer = self.block;
        let mut types: Vec<Type> = Vec::new();
        for (i, graph) in [yes, no].into_iter().enumerate() {
            let block = self.edit().add_block(node);
            self.block = block;
            let outputs = self.inline(graph, operands)?;
            let own: Vec<Type> = outputs.iter().map(|&v| self.graph.ty(v)).collect();
            if i == 0 {
                types = own;
            } else if types.len() != own.len() {
                return Err(unfit("the branches of a condition have different numbers of results"));
            } else {
                types = types.iter().zip(own).map(|(&a, b)| of_both(a, b)).collect();
            }
            let mut edit = self.edit();
            outputs.into_iter().for_each(|value| edit.add_block_output(block, value));
        }
        self.block = outer;
        let mut edit = self.edit();
        Ok(types.into_iter().map(|ty| edit.add_result(node, ty)).collect())
    }

    fn while_loop(
        &mut self,
        condition: &'m GraphModel,
        body: &'m GraphModel,
        carried: Vec<ValueId>,
        captured: &[ValueId],
    ) -> Res<Vec<ValueId>> {
        let all = |carried: &[ValueId]| [carried, captured].concat();
        let first = self.loop_condition(condition, &all(&carried))?;
        let limit = self.int(i64::MAX);
        let count = carried.len();
        self.loop_node(limit, first, carried, |this, _, current| {
            let next = this.inline(body, &all(current))?;
            if next.len() != count {
                return Err(unfit(format!(
                    "the body of a loop has {} results for {count} values",
                    next.len()
                )));
            }
            let again = this.loop_condition(condition, &all(&next))?;
            Ok((again, next))
        })
    }

    fn loop_condition(&mut self, condition: &'m GraphModel, args: &[ValueId]) -> Res<ValueId> {
        let results = self.inline(condition, args)?;
        match results.as_slice() {
            [only] => self.condition(*only),
            _ => Err(unfit("the condition of a loop does not have one result")),
        }
    }

    /// Inserts a loop. `body` lowers one iteration, given its number and the carried values, at the end of the current
    /// block, and returns the next condition and the next carried values.
    fn loop_node(
        &mut self,
        limit: ValueId,
        condition: ValueId,
        carried: Vec<ValueId>,
        body: impl FnOnce(&mut Self, ValueId, &[ValueId]) -> Res<(ValueId, Vec<ValueId>)>,
    ) -> Res<Vec<ValueId>> {
        let types: Vec<Type> = carried.iter().map(|&v| self.graph.ty(v)).collect();
        let operands: Vec<ValueId> = [limit, condition].into_iter().chain(carried).collect();
        let mut edit = self.edit();
        let node = edit.node(Prim::Loop, &operands, &types);
        let block = edit.add_block(node);
        let trip = edit.add_block_input(block, Type::INT);
        let current: Vec<ValueId> = types.iter().map(|&ty| edit.add_block_input(block, ty)).collect();
        let outer = std::mem::replace(&mut self.block, block);
        let (again, next) = body(self, trip, &current)?;
        let mut edit = self.edit();
        edit.add_block_output(block, again);
        next.into_iter().for_each(|value| edit.add_block_output(block, value));
        self.block = outer;
        Ok(self.graph.results(node).collect())
    }

    /// Returns the size of a dimension.
    fn length(&mut self, tensor: ValueId, dim: i64) -> Res<ValueId> {
        let dim = self.int(dim);
        self.role_value(LoweringRole::Size, &[tensor, dim], Type::INT)
    }

    /// Returns slice `index` of a tensor along a dimension.
    fn slice(&mut self, tensor: ValueId, dim: i64, index: ValueId) -> Res<ValueId> {
        let dim = self.int(dim);
        self.role_value(LoweringRole::Select, &[tensor, dim, index], Type::TENSOR)
    }

    /// Inserts an empty list of tensors.
    fn collector(&mut self) -> ValueId {
        self.edit().value(Prim::ListConstruct, &[], Type::list(Type::TENSOR))
    }

    fn append(&mut self, list: ValueId, item: ValueId) -> Res<()> {
        self.role(LoweringRole::Append, &[list, item], &[Type::list(Type::TENSOR)]).map(drop)
    }

    fn stacked(&mut self, list: ValueId) -> Res<ValueId> {
        let dim = self.int(0);
        self.role_value(LoweringRole::Stack, &[list, dim], Type::TENSOR)
    }

    /// Lowers a loop over slices: the body maps carried values, slices and captured values to the next carried values
    /// and a slice of each further result.
    fn slices(&mut self, parts: Slices<'m>) -> Res<Vec<ValueId>> {
        let Slices { body, carried, sliced, captured, order } = parts;
        let &[first, ..] = sliced.as_slice() else {
            return Err(unfit("there is no tensor to take slices of"));
        };
        let count = carried.len();
        let Some(collected) = body.outputs.len().checked_sub(count) else {
            return Err(unfit("the body of a scan has fewer results than carried values"));
        };
        let limit = self.length(first, order.dim)?;
        let last = match order.is_reversed {
            true => {
                let one = self.int(1);
                Some(self.function("_operator.sub", &[limit, one])?)
            }
            false => None,
        };
        let always = self.constant(IValue::Bool(true), Type::BOOL);
        let lists: Vec<ValueId> = (0..collected).map(|_| self.collector()).collect();
        let mut results = self.loop_node(limit, always, carried, |this, trip, current| {
            let index = match last {
                Some(last) => this.function("_operator.sub", &[last, trip])?,
                None => trip,
            };
            let mut args = current.to_vec();
            for &tensor in &sliced {
                args.push(this.slice(tensor, order.dim, index)?);
            }
            args.extend(&captured);
            let mut next = this.inline(body, &args)?;
            for (item, &list) in next.split_off(count).into_iter().zip(&lists) {
                this.append(list, item)?;
            }
            let again = this.constant(IValue::Bool(true), Type::BOOL);
            Ok((again, next))
        })?;
        for list in lists {
            if order.is_reversed {
                self.role(LoweringRole::Reverse, &[list], &[])?;
            }
            results.push(self.stacked(list)?);
        }
        Ok(results)
    }

    /// Lowers a scan whose first result is the first slice, and whose further results combine the last result with the
    /// next slice.
    fn associative_scan(
        &mut self,
        body: &'m GraphModel,
        sliced: &[ValueId],
        captured: &[ValueId],
    ) -> Res<Vec<ValueId>> {
        let &[first, ..] = sliced else { return Err(unfit("there is no tensor to take slices of")) };
        let zero = self.int(0);
        let mut carried = Vec::new();
        let mut lists = Vec::new();
        for &tensor in sliced {
            let slice = self.slice(tensor, 0, zero)?;
            let list = self.edit().value(Prim::ListConstruct, &[slice], Type::list(Type::TENSOR));
            carried.push(slice);
            lists.push(list);
        }
        let (length, one) = (self.length(first, 0)?, self.int(1));
        let limit = self.function("_operator.sub", &[length, one])?;
        let always = self.constant(IValue::Bool(true), Type::BOOL);
        self.loop_node(limit, always, carried, |this, trip, current| {
            let one = this.int(1);
            let index = this.function("_operator.add", &[trip, one])?;
            let mut args = current.to_vec();
            for &tensor in sliced {
                args.push(this.slice(tensor, 0, index)?);
            }
            args.extend(captured);
            let next = this.inline(body, &args)?;
            if next.len() != current.len() {
                return Err(unfit("the function of a scan has another number of results than operands"));
            }
            for (&item, &list) in next.iter().zip(&lists) {
                this.append(list, item)?;
            }
            let again = this.constant(IValue::Bool(true), Type::BOOL);
            Ok((again, next))
        })?;
        lists.into_iter().map(|list| self.stacked(list)).collect()
    }

    fn with_grad_mode(
        &mut self,
        enabled: &'m Argument,
        body: &'m GraphModel,
        operands: &[ValueId],
    ) -> Res<Vec<ValueId>> {
        let enabled = self.argument(enabled, Type::BOOL)?;
        let before = self.role_value(LoweringRole::GradEnabled, &[], Type::BOOL)?;
        self.role(LoweringRole::SetGradEnabled, &[enabled], &[])?;
        let results = self.inline(body, operands)?;
        self.role(LoweringRole::SetGradEnabled, &[before], &[])?;
        Ok(results)
    }

    /// Inlines the subgraph of a region of automatic mixed precision: operands are converted where PyTorch converts them.
    fn with_autocast(
        &mut self,
        [device, dtype, enabled]: [&'m Argument; 3],
        body: &'m GraphModel,
        operands: &[ValueId],
    ) -> Res<Vec<ValueId>> {
        let region = match (device, dtype, enabled) {
            // Tensors are on the CPU, so regions of other devices convert nothing.
            (Argument::String(device), _, _) if device != "cpu" => self.autocast,
            (_, _, Argument::Bool(false)) => None,
            (_, Argument::ScalarType(dtype), _) => {
                let own = dtype.dtype().map(tensor::DType::scalar_type);
                Some(own.ok_or_else(|| unsupported(format!("autocast to the dtype {}", dtype.name())))?)
            }
            (_, Argument::None, Argument::Bool(true)) => Some(tensor::DType::BF16.scalar_type()),
            _ => {
                return Err(unfit(
                    "the arguments of a region of automatic mixed precision are not constants",
                ));
            }
        };
        let outer = std::mem::replace(&mut self.autocast, region);
        let results = self.inline(body, operands);
        self.autocast = outer;
        results
    }

    /// Inlines the subgraph of a wrapper. Strings and flags before and after it do not change results.
    fn wrapper(&mut self, name: &str, args: &[&'m Argument]) -> Res<Vec<ValueId>> {
        let body = args.iter().find_map(|arg| match arg {
            Argument::Graph { graph, .. } => Some(&**graph),
            _ => None,
        });
        let body = body.ok_or_else(|| unfit(format!("{} has no subgraph", quoted(name))))?;
        let mut operands = Vec::new();
        for arg in args {
            match arg {
                Argument::Graph { .. } | Argument::String(_) => {}
                Argument::Tensors(_) | Argument::SymInts(_) | Argument::OptionalTensors(_) => {
                    operands.extend(self.operands(arg)?);
                }
                _ => operands.push(self.free(arg)?),
            }
        }
        self.inline(body, &operands)
    }

    /// Lowers a call of an operator that writes some of its operands: it runs on copies, which are further results.
    fn functionalized(&mut self, operator: &str, node: &'m NodeModel) -> Res<Vec<ValueId>> {
        let path = operator.strip_prefix("torch.ops.").unwrap_or(operator);
        let op = self.registered(Target::parse(&format!("torch.ops.{path}")), path)?;
        let registry = std::sync::Arc::clone(&self.registry);
        let schema = registry.schema(op);
        let (mut given, mut written) = (Vec::new(), Vec::new());
        for input in node.inputs.iter().skip(1) {
            let index = schema.arg_index(&input.name);
            let index = index.ok_or_else(|| {
                unfit(format!("{} has no parameter {}", schema.full_name(), quoted(&input.name)))
            })?;
            let mut value = self.argument(&input.arg, schema.args[index].ty)?;
            if schema.args[index].is_write() {
                if self.graph.ty(value).is_tensor() {
                    let format = self.constant(IValue::None, Type::NONE);
                    value = self.role_value(LoweringRole::Clone, &[value, format], Type::TENSOR)?;
                }
                written.push(value);
            }
            given.push((index, value));
        }
        let call = self.call(op, &given)?;
        let mut results: Vec<ValueId> = self.graph.results(call).collect();
        // An operator without results has `None` in their place.
        if results.is_empty() && node.outputs.len() > written.len() {
            results.push(self.constant(IValue::None, Type::NONE));
        }
        results.extend(written);
        Ok(results)
    }
}

/// Returns the type of the values of two branches. Sizes and dtypes may differ, or be known of one branch only.
pub(super) fn of_both(a: Type, b: Type) -> Type {
    unify(a, b, false, None, &NoClasses).unwrap_or(Type::ANY)
}

/// Returns the order of a scan and the captured lists among its last arguments.
fn scan_order<'a, 'm>(rest: &'a [&'m Argument]) -> Res<(Order, &'a [&'m Argument])> {
    let (order, count) = scan::order_of(rest.iter().copied())
        .map_err(|name| unsupported(format!("a scan along a dimension that is not a constant, {name},")))?;
    Ok((order, &rest[count..]))
}

#[cold]
fn unfit(message: impl Into<String>) -> ExportError {
    ExportError::new(ExportCode::Argument, message)
}

#[cold]
fn unsupported(what: String) -> ExportError {
    ExportError::new(ExportCode::Operator, format!("{what} is not supported"))
}

//! Operators on numbers and lists of which some are symbolic, in the run of a program.

use super::Res;
use super::classes::{SizeQuery, is_conversion};
use super::symbolic::{Computed, Symbolic};
use super::tracer::{Tracer, needs_value};
use flambeau_exec::{KernelError, run_node};
use flambeau_ir::schema::FunctionSchema;
use flambeau_ir::{Graph, IValue, NodeId, OpId};
use flambeau_tensor::Tensor;

impl Tracer<'_> {
    /// Answers a question about sizes of which some are symbolic.
    pub(super) fn sizes(
        &mut self,
        graph: &Graph,
        node: NodeId,
        asked: SizeQuery,
        tensor: &Tensor,
        args: Vec<IValue>,
        symbols: &[Option<Symbolic>],
    ) -> Res<()> {
        let at = args.get(1).and_then(IValue::as_int);
        if symbols.iter().any(Option::is_some) || asked == SizeQuery::Other {
            return Err(needs_value(graph.op_name(node).as_str()));
        }
        let results = run_node(graph, node, args, self.callees, self.host)?;
        self.recorder.made(&results);
        let symbol = match (asked, at) {
            (SizeQuery::Sizes, None) => {
                let each = (0..tensor.rank()).map(|dim| self.recorder.size_of(tensor, Some(dim)));
                let each: Vec<Option<Symbolic>> = each.collect();
                if each.iter().any(Option::is_some) {
                    self.recorder.set_symbols(&results[0], each);
                }
                None
            }
            (SizeQuery::Sizes, Some(dim)) => {
                let dim = if dim < 0 { dim + tensor.rank() as i64 } else { dim };
                usize::try_from(dim).ok().and_then(|dim| self.recorder.size_of(tensor, Some(dim)))
            }
            (SizeQuery::Length, _) => self.recorder.size_of(tensor, Some(0)),
            _ => self.recorder.size_of(tensor, None),
        };
        self.set(graph, node, results, &[symbol])
    }

    /// Runs an operator on a list with symbolic elements: one that moves elements and does not depend on their values. It
    /// also runs on the positions of the elements, which shows where each element goes.
    pub(super) fn moved(
        &mut self,
        graph: &Graph,
        node: NodeId,
        schema: &FunctionSchema,
        args: Vec<IValue>,
        symbols: &[Option<Symbolic>],
    ) -> Res<()> {
        if schema.name.as_str() == "aten::len" {
            let results = run_node(graph, node, args, self.callees, self.host)?;
            return self.set(graph, node, results, &[]);
        }
        let is_generic = |i: usize| schema.args.get(i).is_some_and(|arg| arg.ty.has_vars());
        if (0..args.len()).any(|i| symbols.get(i).is_some_and(Option::is_some) && !is_generic(i)) {
            return Err(needs_value(&schema.full_name()));
        }
        let mut all: Vec<Option<Symbolic>> = Vec::new();
        let mut positions = Vec::with_capacity(args.len());
        for (i, value) in args.iter().enumerate() {
            let from = all.len() as i64;
            positions.push(match value {
                IValue::List(list) if is_generic(i) => {
                    let own = self.recorder.symbols_of(value).cloned();
                    all.extend(own.unwrap_or_else(|| vec![None; list.len()]));
                    IValue::ints((from..all.len() as i64).collect())
                }
                _ if is_generic(i) => {
                    all.push(symbols.get(i).cloned().flatten());
                    IValue::Int(from)
                }
                other => other.clone(),
            });
        }
        let (written, moved) = (args.clone(), positions.clone());
        let places = run_node(graph, node, positions, self.callees, self.host)?;
        let results = run_node(graph, node, args, self.callees, self.host)?;
        self.recorder.made(&results);
        let symbol_at =
            |place: i64| usize::try_from(place).ok().and_then(|place| all.get(place).cloned()).flatten();
        let mut own = Vec::with_capacity(results.len());
        let changed = written.iter().zip(&moved).zip(&schema.args).filter(|(_, arg)| arg.is_write());
        let changed: Vec<(&IValue, &IValue)> = changed.map(|(pair, _)| pair).collect();
        for (value, places) in results.iter().zip(&places).chain(changed) {
            match (value, places) {
                (IValue::List(_), IValue::List(places)) => {
                    let places = places.to_ints().unwrap_or_default();
                    let each: Vec<Option<Symbolic>> = places.into_iter().map(symbol_at).collect();
                    self.recorder.set_symbols(value, each);
                }
                (_, IValue::Int(place)) => own.push(symbol_at(*place)),
                _ => {}
            }
        }
        self.set(graph, node, results, &own)
    }

    /// Computes a scalar from symbolic scalars.
    pub(super) fn number(
        &mut self,
        graph: &Graph,
        node: NodeId,
        op: OpId,
        schema: &FunctionSchema,
        args: Vec<IValue>,
        symbols: &[Option<Symbolic>],
    ) -> Res<()> {
        let operands = args.clone();
        let results = run_node(graph, node, args, self.callees, self.host)?;
        let made = match &results[..] {
            [value] if is_conversion(schema) && !value.is_bool() => {
                let number = symbols.iter().flatten().next().cloned();
                let number = number.ok_or_else(|| KernelError::internal("a conversion has no operand"))?;
                Computed::Number(self.recorder.converted(number, value)?)
            }
            [value] => self.recorder.python(op, &operands, symbols, value)?,
            _ => Computed::Unknown,
        };
        let symbol = match made {
            Computed::Number(symbol) => symbol,
            Computed::Constant => return self.set(graph, node, results, &[]),
            Computed::Unknown => return Err(needs_value(&schema.full_name())),
        };
        self.set(graph, node, results, &[Some(symbol)])
    }

    /// Reads the element of a tensor as a symbolic number.
    pub(super) fn read(&mut self, graph: &Graph, node: NodeId, args: Vec<IValue>) -> Res<()> {
        let tensor = args.iter().find_map(IValue::as_tensor).cloned();
        let results = run_node(graph, node, args, self.callees, self.host)?;
        let (Some(tensor), [value]) = (tensor, &results[..]) else {
            return Err(KernelError::internal("a read of an element has no tensor or no result").into());
        };
        if self.table.is_some() {
            self.refresh_all(&[IValue::Tensor(tensor.clone())])?;
        }
        let symbol = self.recorder.item(&tensor, value)?;
        self.set(graph, node, results, &[Some(symbol)])
    }
}

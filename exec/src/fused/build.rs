//! Builds a tile program from a pointwise subgraph, using the [`Pointwise`] formulas of its operators.

use super::program::{Chunk, Expression, TileInput, TileProgram, Value, ValueStep};
use super::widen::{self, Narrow};
use crate::pointwise::{Pointwise, TileArg, TileBuilder, TileVal};
use flambeau_ir::attr::names;
use flambeau_ir::{Graph, IValue, NodeId, OpKind, Prim, Type, ValueId};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

/// Maximal number of steps. Longer expressions stay with the machine, because their tiles would not fit into the cache.
const MAX_STEPS: usize = 256;

struct Build<'g> {
    graph: &'g Graph,
    builder: TileBuilder,
    values: HashMap<ValueId, TileArg, FxBuildHasher>,
    inputs: Vec<TileInput>,
    chunks: Vec<Chunk>,
    pieces: u32,
}

/// The tile programs of a group.
pub(super) struct Programs {
    pub(super) program: TileProgram,
    /// The program for rows of which chunks take pieces, if it can compute several pieces at once.
    pub(super) by_row: Option<TileProgram>,
}

pub(super) fn build(graph: &Graph) -> Option<Programs> {
    let mut build = Build {
        graph,
        builder: TileBuilder::new(),
        values: HashMap::default(),
        inputs: Vec::new(),
        chunks: Vec::new(),
        pieces: 0,
    };
    for (i, input) in graph.inputs().enumerate() {
        let ty = graph.ty(input);
        if !(ty.is_tensor() || ty == Type::FLOAT || ty == Type::INT || ty == Type::NUMBER) {
            return None;
        }
        // The elements of an input that is only split are read as pieces.
        let is_split = |u: flambeau_ir::Use| is_chunk(graph, u.user);
        if graph.use_count(input) == 0 || !graph.uses(input).all(is_split) {
            build.input(input, TileInput::Arg(i as u32));
        }
    }
    for node in graph.nodes(graph.root()) {
        build.node(node)?;
        if build.builder.steps().len() > MAX_STEPS {
            return None;
        }
    }
    let mut outputs = Vec::new();
    for output in graph.outputs() {
        outputs.push(build.values.get(&output)?.value()?);
    }
    if !build.builder.conditions_are_masks() {
        return None;
    }
    let is_number = |input: u32| match build.inputs[input as usize] {
        TileInput::Arg(arg) => graph.inputs().nth(arg as usize).is_some_and(|v| !graph.ty(v).is_tensor()),
        TileInput::Piece(_) | TileInput::Whole(_) => false,
    };
    let narrow = Narrow {
        steps: build.builder.steps(),
        outputs: &outputs,
        inputs: &build.inputs,
        chunks: &build.chunks,
        is_number: &is_number,
    };
    let by_row = widen::widened(&narrow)
        .and_then(|wide| TileProgram::of(&wide.expression(), wide.inputs.clone(), build.chunks.clone()));
    let steps: Vec<ValueStep> = build.builder.steps().iter().map(ValueStep::from).collect();
    let outputs: Vec<Value> = outputs.iter().map(|value| Value::from(*value)).collect();
    let program =
        TileProgram::of(&Expression { steps: &steps, outputs: &outputs }, build.inputs, build.chunks)?;
    Some(Programs { program, by_row })
}

fn is_chunk(graph: &Graph, node: NodeId) -> bool {
    matches!(graph.prim(node), Some(Prim::ConstantChunk | Prim::BroadcastingChunk))
}

impl Build<'_> {
    fn input(&mut self, value: ValueId, input: TileInput) {
        self.values.insert(value, TileArg::Lanes(TileVal::Input(self.inputs.len() as u32)));
        self.inputs.push(input);
    }

    fn node(&mut self, node: NodeId) -> Option<()> {
        let graph = self.graph;
        match graph.op(node).kind() {
            OpKind::Prim(Prim::Constant) => {
                let result = graph.result(node, 0);
                let arg = match graph.constant(result).unwrap_or_default() {
                    IValue::None => TileArg::Absent,
                    value => value.as_scalar().map_or(TileArg::Other, TileArg::Number),
                };
                self.values.insert(result, arg);
                Some(())
            }
            OpKind::Prim(Prim::ConstantChunk | Prim::BroadcastingChunk) => self.chunk(node),
            OpKind::Row(row) => {
                let formula = graph.registry().facet::<Pointwise>(row)?;
                let args: Option<Vec<TileArg>> =
                    graph.operands(node).map(|v| self.values.get(&v).copied()).collect();
                let value = formula.build(&mut self.builder, &args?)?;
                if graph.result_count(node) != 1 {
                    return None;
                }
                self.values.insert(graph.result(node, 0), TileArg::Lanes(value));
                Some(())
            }
            _ => None,
        }
    }

    /// Turns the results of a chunk of group inputs into inputs of the program.
    fn chunk(&mut self, node: NodeId) -> Option<()> {
        let graph = self.graph;
        let position = |v: ValueId| Some(graph.inputs().position(|input| input == v)? as u32);
        let args: Vec<u32> = graph.operands(node).map(position).collect::<Option<_>>()?;
        let int = |name| graph.attr(node, name).and_then(|a| a.as_int());
        let (chunks, dim) = (int(names::chunks())?, int(names::dim())?);
        if chunks < 1 || chunks.checked_mul(args.len() as i64) != Some(graph.result_count(node) as i64) {
            return None;
        }
        self.chunks.push(Chunk { args, chunks, dim });
        for result in graph.results(node) {
            self.input(result, TileInput::Piece(self.pieces));
            self.pieces += 1;
        }
        Some(())
    }
}

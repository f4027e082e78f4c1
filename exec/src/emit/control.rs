//! Emission of nodes with blocks (`If`, `Loop`, `GradOf`) and of the function's own block.

use super::conditions::byte_comparison;
use super::iteration::counted_from;
use super::moves::Move;
use super::{Emit, Loc, kind_of, operand};
use crate::bytecode::{CallSite, Opcode, Operand, SiteOp};
use crate::intrinsic::{ScalarKind, ScalarOp};
use flambeau_ir::value::IValue;
use flambeau_ir::{BlockId, NodeId, ValueId};

/// A construct whose blocks are being emitted.
pub(super) struct OpenConstruct {
    pub(super) node: NodeId,
    kind: Kinds,
    /// Registers of the results, and whether each was already reserved for an enclosing construct.
    dests: Vec<(Loc, bool)>,
    /// Values of the enclosing block that died inside: their registers are empty, and become free when the construct
    /// ends.
    pub(super) ended: Vec<ValueId>,
}

enum Kinds {
    If { to_else: Option<u32>, to_end: Option<u32>, blocks: u32 },
    Grad { to_else: Option<u32>, to_end: Option<u32> },
    Loop(Loop),
}

#[derive(Clone)]
struct Loop {
    /// The register of the iteration counter.
    trip: u32,
    /// The register of the limit; `None` if the loop has none.
    max: Option<u32>,
    top: u32,
    exits: Vec<u32>,
    held: Vec<Loc>,
}

/// The condition of a jump.
#[derive(Clone, Copy)]
pub(super) enum Cond {
    Known(bool),
    Word(u32),
    Cmp(ScalarOp, u32, u32),
}

/// Returns the operand kind of a comparison that jumps support.
pub(super) fn comparison(op: ScalarOp) -> Option<ScalarKind> {
    use ScalarOp::*;
    match op {
        IEq | INe | ILt | ILe | IGt | IGe => Some(ScalarKind::Int),
        FEq | FNe | FLt | FLe | FGt | FGe => Some(ScalarKind::Float),
        _ => None,
    }
}

/// Returns the jump that is taken if the comparison yields `sense`, and whether its operands are swapped.
pub(super) fn jump_of(op: ScalarOp, sense: bool) -> (Opcode, bool) {
    use Opcode::*;
    match (op, sense) {
        (ScalarOp::IEq, true) | (ScalarOp::INe, false) => (JIEq, false),
        (ScalarOp::INe, true) | (ScalarOp::IEq, false) => (JINe, false),
        (ScalarOp::ILt, true) => (JILt, false),
        (ScalarOp::IGe, false) => (JILt, false),
        (ScalarOp::IGt, true) | (ScalarOp::ILe, false) => (JILt, true),
        (ScalarOp::ILe, true) | (ScalarOp::IGt, false) => (JILe, false),
        (ScalarOp::IGe, true) | (ScalarOp::ILt, false) => (JILe, true),
        (ScalarOp::FEq, true) | (ScalarOp::FNe, false) => (JFEq, false),
        (ScalarOp::FNe, true) | (ScalarOp::FEq, false) => (JFNe, false),
        (ScalarOp::FLt, true) => (JFLt, false),
        (ScalarOp::FGt, true) => (JFLt, true),
        (ScalarOp::FLe, true) => (JFLe, false),
        (ScalarOp::FGe, true) => (JFLe, true),
        (ScalarOp::FLt, false) => (JFNlt, false),
        (ScalarOp::FGt, false) => (JFNlt, true),
        (ScalarOp::FLe, false) => (JFNle, false),
        (_, _) => (JFNle, true),
    }
}

impl Emit<'_> {
    /// Returns the condition that a value represents.
    fn condition(&mut self, value: ValueId, node: NodeId) -> Cond {
        let def = self.graph.def(value);
        if self.deferred.contains(def) {
            if let Some((op, byte, constant)) = byte_comparison(self.graph, &self.bytes, def) {
                let byte = self.as_word(byte, ScalarKind::Int, node);
                return Cond::Cmp(op, byte, self.word(u64::from(constant)));
            }
            let op = super::conditions::scalar_op(self.graph, def)
                .expect("invariant: deferred nodes are comparisons");
            let (a, b) = (self.graph.operand(def, 0), self.graph.operand(def, 1));
            let kind = comparison(op).expect("invariant: deferred nodes are comparisons");
            return Cond::Cmp(op, self.as_word(a, kind, node), self.as_word(b, kind, node));
        }
        match self.as_word(value, ScalarKind::Bool, node) {
            r if (r as usize) < self.scalars.len() => Cond::Known(self.scalars[r as usize] != 0),
            r => Cond::Word(r),
        }
    }

    /// Emits a jump that is taken if the condition is `sense`; returns its position, or `None` if no jump is necessary.
    fn jump_if(&mut self, node: NodeId, cond: Cond, sense: bool, target: u32) -> Option<u32> {
        let at = self.here();
        match cond {
            Cond::Known(known) if known == sense => self.push(node, Opcode::Jmp, 0, 0, target),
            Cond::Known(_) => return None,
            Cond::Word(r) => {
                let op = if sense { Opcode::JTrue } else { Opcode::JFalse };
                self.push(node, op, r, 0, target);
            }
            Cond::Cmp(op, a, b) => {
                let (op, swapped) = jump_of(op, sense);
                let (a, b) = if swapped { (b, a) } else { (a, b) };
                self.push(node, op, a, b, target);
            }
        }
        Some(at)
    }

    fn patch(&mut self, jump: Option<u32>) {
        let here = self.here();
        if let Some(at) = jump {
            self.instrs[at as usize].c = here;
            self.label = here;
        }
    }

    /// Ends the live ranges of values that die at operand 0 of a node, its condition.
    fn end_condition(&mut self, node: NodeId) {
        let def = self.graph.def(self.graph.operand(node, 0));
        if self.deferred.contains(def) {
            self.end_operands(def, 0..2, false);
        } else {
            self.end_operands(node, 0..1, false);
        }
    }

    // --- If --------------------------------------------------------------------------------------------------------

    pub(super) fn begin_if(&mut self, node: NodeId) {
        let value = self.graph.operand(node, 0);
        let cond = self.condition(value, node);
        let to_else = self.jump_if(node, cond, false, 0);
        self.give_temps();
        self.end_condition(node);
        let dests = self.choose_dests(node);
        let kind = Kinds::If { to_else, to_end: None, blocks: 0 };
        self.opens.push(OpenConstruct { node, kind, dests, ended: Vec::new() });
    }

    pub(super) fn begin_grad(&mut self, node: NodeId) {
        let operands = self.site_operands(node, 0);
        let site = self.add_site(CallSite { work: SiteOp::Nothing, node, operands, dests: 0..0 });
        let any = self.words.take(None);
        self.push(node, Opcode::AnyDefined, any, site, 0);
        let to_else = self.jump_if(node, Cond::Word(any), false, 0);
        self.words.free_register(any);
        let dests = self.choose_dests(node);
        self.opens.push(OpenConstruct {
            node,
            kind: Kinds::Grad { to_else, to_end: None },
            dests,
            ended: Vec::new(),
        });
    }

    /// Chooses registers for the results of a construct before its blocks are emitted: the hinted register, if it is
    /// empty or its value is not live after the construct.
    fn choose_dests(&mut self, node: NodeId) -> Vec<(Loc, bool)> {
        let graph = self.graph;
        let mut dests = Vec::with_capacity(graph.result_count(node));
        for result in graph.results(node) {
            let is_word = kind_of(graph.ty(result)).is_some();
            let hint = self.hints[result];
            let live = &self.live;
            let bank = if is_word { &mut self.words } else { &mut self.values };
            let wanted = hint
                .filter(|&r| bank.is_reserved(r) && bank.owner(r).is_none_or(|p| live.last(p) == Some(node)));
            let register = wanted.unwrap_or_else(|| bank.take(None));
            let was = bank.reserve(register, true);
            dests.push((if is_word { Loc::Word(register) } else { Loc::Value(register) }, was));
        }
        dests
    }

    // --- Loop ------------------------------------------------------------------------------------------------------

    pub(super) fn begin_loop(&mut self, node: NodeId) {
        let graph = self.graph;
        let (max_value, cond) = (graph.operand(node, 0), graph.operand(node, 1));
        let limit = self.as_word(max_value, ScalarKind::Int, node);
        let mut held = std::mem::take(&mut self.temps);
        let known = self.scalars.get(limit as usize).map(|&w| w as i64);
        let cond_word = self.condition(cond, node);
        let dests = self.loop_dests(node);
        let mut moves = Vec::with_capacity(dests.len());
        for (i, &(to, _)) in dests.iter().enumerate() {
            let is_last_use = self.live.is_last_use(node, i + 2);
            moves.push(self.move_of(
                graph.operand(node, i + 2),
                is_last_use,
                to,
                graph.ty(graph.result(node, i)),
            ));
        }
        self.parallel(node, moves);
        let trip = self.words.take(None);
        self.words.reserve(trip, true);
        let zero = self.word(0);
        // A loop over a range counts from its start.
        let start = counted_from(graph, node).map(|start| self.as_word(start, ScalarKind::Int, node));
        if let Some(body) = graph.blocks(node).next().filter(|_| start.is_some()) {
            self.ranges.insert(graph.param(body));
        }
        self.push(node, Opcode::MovS, trip, start.unwrap_or(zero), 0);
        let mut exits = Vec::new();
        match known {
            Some(n) if n > 0 => {}
            Some(_) => exits.extend(self.jump_if(node, Cond::Known(true), true, 0)),
            None => exits.extend(self.jump_if(node, Cond::Cmp(ScalarOp::ILe, limit, zero), true, 0)),
        }
        exits.extend(self.jump_if(node, cond_word, false, 0));
        let end = start.map(|start| {
            let end = self.words.take(None);
            self.words.reserve(end, true);
            self.push(node, Opcode::IAdd, end, start, limit);
            held.push(Loc::Word(end));
            end
        });
        self.give_temps();
        let limit_value = self.limit_in_place(node).filter(|_| end.is_none());
        let held_operand = (0..graph.operand_count(node))
            .find(|&i| self.live.is_last_use(node, i) && Some(graph.operand(node, i)) == limit_value);
        for index in (0..graph.operand_count(node)).filter(|&i| Some(i) != held_operand) {
            self.end_operands(node, index..index + 1, index >= 2);
        }
        let max = (known != Some(i64::MAX)).then_some(end.unwrap_or(limit));
        held.push(Loc::Word(trip));
        self.open_spans(node, &mut held);
        self.label = self.here();
        let body = Loop { trip, max, top: self.label, exits, held };
        let mut ended = Vec::new();
        if let Some(limit) = limit_value.filter(|_| held_operand.is_some()) {
            // A limit of an outer block lives until the construct of that block is done: another branch may read it.
            let outer = self.opens.get_mut(self.depth[limit] as usize);
            outer.map_or(&mut ended, |open| &mut open.ended).push(limit);
        }
        self.opens.push(OpenConstruct { node, kind: Kinds::Loop(body), dests, ended });
    }

    /// Returns the value of a loop's limit if its own register is read at the end of every iteration, so that the
    /// register is occupied for the whole loop.
    fn limit_in_place(&self, node: NodeId) -> Option<ValueId> {
        let value = self.graph.operand(node, 0);
        matches!(self.loc[value], Loc::Word(_)).then_some(value)
    }

    /// Registers for carried values. A value that dies here passes on its register unless the register is reserved for
    /// another value. A value of an outer block keeps its register until the construct of that block is done: another
    /// branch may read it.
    fn loop_dests(&mut self, node: NodeId) -> Vec<(Loc, bool)> {
        let graph = self.graph;
        let limit = self.limit_in_place(node);
        let mut dests = Vec::with_capacity(graph.result_count(node));
        for (i, value) in graph.operands(node).skip(2).enumerate() {
            let result = graph.result(node, i);
            let is_word = kind_of(graph.ty(result)).is_some();
            let is_outer = (self.depth[value] as usize) < self.opens.len();
            let is_last_use = self.live.is_last_use(node, i + 2) && limit != Some(value) && !is_outer;
            let (hint, loc) = (self.hints[result], self.loc[value]);
            let bank = if is_word { &mut self.words } else { &mut self.values };
            let own = match loc {
                Loc::Word(r) if is_word => Some(r),
                Loc::Value(r) if !is_word => Some(r),
                _ => None,
            };
            let adopted = own.filter(|&r| {
                is_last_use && bank.owner(r) == Some(value) && (!bank.is_reserved(r) || hint == Some(r))
            });
            let wanted = || hint.filter(|&r| bank.is_reserved(r) && bank.owner(r).is_none());
            let register = match adopted.or_else(wanted) {
                Some(r) => r,
                None => bank.take(None),
            };
            bank.set_owner(register, None);
            let was = bank.reserve(register, true);
            dests.push((if is_word { Loc::Word(register) } else { Loc::Value(register) }, was));
        }
        dests
    }

    fn end_loop_body(&mut self, block: BlockId, body: &Loop, dests: &[(Loc, bool)]) {
        let graph = self.graph;
        let (node, ret) = (self.opens.last().expect("invariant: inside the loop").node, graph.ret(block));
        let moves = self.output_moves(block, dests, 1);
        let cond_value = graph.operand(ret, 0);
        let mut cond = self.condition(cond_value, ret);
        let written = |r: u32| moves.iter().any(|m| m.to == Loc::Word(r) && m.from != m.to);
        let clobbered = match cond {
            Cond::Known(_) => false,
            Cond::Word(r) => written(r),
            Cond::Cmp(_, a, b) => written(a) || written(b),
        };
        if clobbered {
            // The moves overwrite registers that the condition reads, so it is computed before them.
            let temp = self.words.take(None);
            match cond {
                Cond::Cmp(op, a, b) => self.push(ret, Opcode::of_scalar(op), temp, a, b),
                Cond::Word(r) => self.push(ret, Opcode::MovS, temp, r, 0),
                Cond::Known(_) => {}
            }
            self.temps.push(Loc::Word(temp));
            cond = Cond::Word(temp);
        }
        self.parallel(ret, moves);
        let counts = graph.use_count(graph.result(graph.param(block), 0)) != 0;
        // The jumps belong to the loop, which has a location: they fail when a limit is reached.
        let exit = match body.max {
            None if !counts => {
                self.jump_if(node, cond, true, body.top);
                None
            }
            max => {
                let exit = self.jump_if(node, cond, false, 0);
                let limit = max.unwrap_or_else(|| self.known_word(i64::MAX as u64));
                self.next(node, body.trip, limit, body.top);
                exit
            }
        };
        self.give_temps();
        self.end_condition(ret);
        self.end_operands(ret, 1..graph.operand_count(ret), true);
        for jump in body.exits.iter().copied().chain(exit) {
            self.patch(Some(jump));
        }
    }

    /// Returns the register of a word that is a known constant.
    fn known_word(&self, word: u64) -> u32 {
        *self.word_of.get(&word).expect("invariant: a limit known to be this constant is one")
    }

    // --- blocks ----------------------------------------------------------------------------------------------------

    pub(super) fn enter(&mut self, block: BlockId) {
        let graph = self.graph;
        let Some(owner) = graph.owner(block) else {
            let range = self.site_dests(graph.block_inputs(block));
            self.params = self.operands.drain(range.start as usize..).collect();
            return;
        };
        let open = self.opens.last_mut().expect("invariant: a block's construct is open");
        debug_assert!(open.node == owner);
        let dests: Vec<Loc> = open.dests.iter().map(|d| d.0).collect();
        match &mut open.kind {
            Kinds::If { to_else, blocks, .. } => {
                *blocks += 1;
                if *blocks == 2 {
                    let jump = *to_else;
                    self.patch(jump);
                }
                self.block_hints(block, &dests, 0);
            }
            Kinds::Grad { .. } => self.block_hints(block, &dests, 0),
            Kinds::Loop(body) => {
                let trip = body.trip;
                self.begin_body(block, trip, &dests);
                self.block_hints(block, &dests, 1);
            }
        }
        // Values that are live only in other branches.
        let param = graph.param(block);
        for value in self.live.on_entry(block).to_vec() {
            if graph.def(value) != param {
                self.end(param, value, false);
            }
        }
    }

    fn begin_body(&mut self, block: BlockId, trip: u32, dests: &[Loc]) {
        let graph = self.graph;
        let param = graph.param(block);
        for (input, loc) in graph.block_inputs(block).zip([Loc::Word(trip)].iter().chain(dests)) {
            self.put(input, *loc);
            match *loc {
                Loc::Word(r) => self.words.set_owner(r, Some(input)),
                Loc::Value(r) => self.values.set_owner(r, Some(input)),
                _ => {}
            }
            if graph.use_count(input) == 0
                && *loc != Loc::Word(trip)
                && let Some(r) = self.release(input)
            {
                self.push(param, Opcode::Drop, r, 0, 0);
            }
        }
    }

    /// Returns the moves of a block's outputs (from the `skip`th) to the registers of results.
    fn output_moves(&mut self, block: BlockId, dests: &[(Loc, bool)], skip: usize) -> Vec<Move> {
        let graph = self.graph;
        let (ret, owner) = (graph.ret(block), graph.owner(block).expect("invariant: not the root"));
        let mut moves = Vec::with_capacity(dests.len());
        for (i, (value, &(to, _))) in graph.block_outputs(block).skip(skip).zip(dests).enumerate() {
            let is_last_use = self.live.is_last_use(ret, i + skip);
            moves.push(self.move_of(value, is_last_use, to, graph.ty(graph.result(owner, i))));
        }
        moves
    }

    pub(super) fn leave(&mut self, block: BlockId) {
        let graph = self.graph;
        let ret = graph.ret(block);
        if graph.owner(block).is_none() {
            let operands = self.site_operands(ret, 0);
            let site = self.add_site(CallSite { work: SiteOp::Nothing, node: ret, operands, dests: 0..0 });
            self.push(ret, Opcode::Ret, site, 0, 0);
            return;
        }
        let open = self.opens.last().expect("invariant: a block's construct is open");
        let dests = open.dests.clone();
        if let Kinds::Loop(body) = &open.kind {
            let body = body.clone();
            self.end_loop_body(block, &body, &dests);
            return;
        }
        let moves = self.output_moves(block, &dests, 0);
        self.parallel(ret, moves);
        self.give_temps();
        self.end_operands(ret, 0..graph.operand_count(ret), true);
        let here = self.here();
        let node = self.opens.last().expect("invariant: a block's construct is open").node;
        let open = self.opens.last_mut().expect("invariant: a block's construct is open");
        match &mut open.kind {
            Kinds::If { to_end, blocks: 1, .. } => *to_end = Some(here),
            Kinds::Grad { to_end, .. } => *to_end = Some(here),
            _ => return,
        }
        self.push(node, Opcode::Jmp, 0, 0, 0);
    }

    pub(super) fn done(&mut self, node: NodeId) {
        let open = self.opens.pop().expect("invariant: the construct is open");
        match open.kind {
            Kinds::If { to_else, to_end, .. } => self.end_if(to_else, to_end),
            Kinds::Grad { to_else, to_end } => {
                self.patch(to_else);
                self.constants.push(IValue::None);
                let none = Operand::constant(self.constants.len() as u32 - 1);
                for &(dest, _) in &open.dests {
                    match dest {
                        Loc::Value(r) => self.push(node, Opcode::Load, r, none.0, 0),
                        Loc::Word(r) => self.push(node, Opcode::MovS, r, 0, 0),
                        _ => {}
                    }
                }
                self.patch(to_end);
            }
            Kinds::Loop(body) => {
                self.close_spans(node);
                for held in body.held {
                    if let Loc::Word(r) = held {
                        self.words.reserve(r, false);
                        self.words.set_owner(r, None);
                        self.words.free_register(r);
                    }
                }
            }
        }
        for (result, &(dest, was)) in self.graph.results(node).zip(&open.dests) {
            self.put(result, dest);
            let (bank, r) = match dest {
                Loc::Word(r) => (&mut self.words, r),
                Loc::Value(r) => (&mut self.values, r),
                _ => continue,
            };
            bank.set_owner(r, Some(result));
            bank.reserve(r, was);
            if self.graph.use_count(result) == 0
                && let Some(r) = self.release(result)
            {
                self.push(node, Opcode::Drop, r, 0, 0);
            }
        }
        for value in open.ended {
            self.release(value);
        }
        for value in self.live.after(node).to_vec() {
            self.end(node, value, false);
        }
    }

    /// Ends an `If`; removes a jump over an empty second block.
    fn end_if(&mut self, to_else: Option<u32>, to_end: Option<u32>) {
        if to_end.is_some_and(|jump| jump + 1 == self.here()) {
            self.instrs.pop();
            self.nodes.pop();
            self.patch(to_else);
            return;
        }
        self.patch(to_end);
    }

    /// Returns a site's operand for a value that is read without being moved.
    pub(super) fn peek(&mut self, value: ValueId) -> Operand {
        operand(self.loc[value], kind_of(self.graph.ty(value)), false)
    }
}

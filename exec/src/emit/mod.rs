//! Emission: compiles a verified graph to [`Code`].
//!
//! The analysis [`Liveness`] determines where each value dies; a single walk emits instructions and assigns registers.
//! A register is emptied where its value dies, in the branch where that happens, and is free from there on. The
//! register of a value of an outer block becomes free only at the end of the construct, since another branch may still
//! read it. Registers for results of `If` and `Loop` are reserved before their blocks are emitted. A block computes
//! such a result directly in its register if possible (`hints`), so loop-carried numbers require no moves. Nothing
//! recurses: nesting is a stack of open constructs.

mod conditions;
mod constant_lists;
pub(crate) mod control;
mod dict_lists;
mod iteration;
mod moves;
mod nodes;
mod peephole;
mod regs;
mod spans;
mod tasks;
mod words;
mod write_proofs;

use crate::bailout::BailoutFailures;
use crate::bytecode::{CallSite, Code, Instr, Opcode, Operand, SiteOp};
use crate::callees::Callees;
use crate::counter::NodeCounter;
use crate::error::KernelError;
use crate::intrinsic::{Intrinsic, ScalarKind};
use crate::structural::is_refined;
pub(crate) use conditions::{byte_reads, deferred_comparisons, kind_of};
use constant_lists::InternedStrings;
use control::OpenConstruct;
use flambeau_analysis::Liveness;
use flambeau_ir::value::IValue;
use flambeau_ir::{
    AttrsId, BlockId, Graph, NodeId, NodeSet, Prim, Symbol, Type, ValueId, ValueMap, WalkStep,
    verify::Verified,
};
use hashbrown::HashMap;
use iteration::IteratedSequences;
use regs::Bank;
use rustc_hash::FxBuildHasher;
use spans::{OpenSpan, SpannedLists};
use std::ops::Range;
use std::sync::Arc;
use tasks::TaskPlan;
use write_proofs::WriteProofs;

/// Location of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Loc {
    /// No location: not yet defined, or dead.
    Nowhere,
    /// A register of the scalar bank, constants included.
    Word(u32),
    /// A register of the value bank.
    Value(u32),
    /// A constant of the value bank.
    Constant(u32),
}

impl Loc {
    fn is_register(self) -> bool {
        matches!(self, Loc::Word(_) | Loc::Value(_))
    }
}

/// Converts a location to an operand.
fn operand(loc: Loc, kind: Option<ScalarKind>, is_last_use: bool) -> Operand {
    match loc {
        Loc::Word(r) => Operand::scalar(kind.unwrap_or(ScalarKind::Int), r),
        Loc::Value(r) if is_last_use => Operand::take(r),
        Loc::Value(r) => Operand::copy(r),
        Loc::Constant(c) => Operand::constant(c),
        Loc::Nowhere => Operand::NONE,
    }
}

fn unbox(kind: ScalarKind) -> Opcode {
    match kind {
        ScalarKind::Int => Opcode::UnboxI,
        ScalarKind::Float => Opcode::UnboxF,
        ScalarKind::Bool => Opcode::UnboxB,
    }
}

pub(crate) struct Emit<'g> {
    graph: &'g Graph,
    callees: &'g dyn Callees,
    live: Liveness,
    /// Comparisons that are computed by the branch that uses them.
    deferred: NodeSet,
    /// Reads of bytes of strings, whose results are words.
    bytes: NodeSet,
    tasks: TaskPlan,
    iterated: IteratedSequences,
    /// Lists whose spans are to be emitted before loops.
    spanned: SpannedLists,
    spans: Vec<OpenSpan>,
    /// Nodes whose lists of the contents of a dictionary are not materialized.
    virtual_lists: NodeSet,
    /// Nodes that unpack items of these, which are emitted with the read of the item.
    unpacked: NodeSet,
    /// Parameters of the bodies of loops that count from the start of a range.
    ranges: NodeSet,
    loc: ValueMap<Loc>,
    /// Number of open constructs at the definition of a value with a register.
    depth: ValueMap<u32>,
    /// Preferred register of a value.
    hints: ValueMap<Option<u32>>,
    words: Bank,
    values: Bank,
    temps: Vec<Loc>,
    instrs: Vec<Instr>,
    nodes: Vec<NodeId>,
    sites: Vec<CallSite>,
    operands: Vec<Operand>,
    scalars: Vec<u64>,
    word_of: HashMap<u64, u32, FxBuildHasher>,
    constants: Vec<IValue>,
    interned: InternedStrings,
    params: Vec<Operand>,
    counters: Vec<NodeCounter>,
    profiles: Vec<NodeId>,
    opens: Vec<OpenConstruct>,
    /// The last jump target: the instruction there must not be combined with the one before it.
    label: u32,
}

impl Code {
    /// Compiles a graph without function.
    ///
    /// # Errors
    /// Returns `Misuse` if the graph does not verify. An operator without a kernel is an error only when it runs.
    pub fn compile(graph: &Arc<Graph>, callees: &dyn Callees) -> Result<Code, KernelError> {
        Code::compile_function(graph, Symbol::EMPTY, callees)
    }

    /// Compiles the body of a function.
    ///
    /// # Errors
    /// Returns the errors of [`Code::compile`].
    pub fn compile_function(
        graph: &Arc<Graph>,
        function: Symbol,
        callees: &dyn Callees,
    ) -> Result<Code, KernelError> {
        let verified = Verified::new(Arc::clone(graph), callees.classes())
            .map_err(|e| KernelError::misuse(format!("the graph does not verify: {e}")))?;
        Ok(Code::emit(verified, function, callees))
    }

    /// Compiles a verified graph. The [`Verified`] owns the graph, so the emitted graph is the verified one.
    ///
    /// ```
    /// use flambeau_exec::Code;
    /// use flambeau_ir::{CompilationUnit, Graph, Registry, Symbol, types::NoClasses, verify::Verified};
    /// use std::sync::Arc;
    ///
    /// let graph = Arc::new(Graph::new(Registry::empty()));
    /// let verified = Verified::new(graph, &NoClasses).unwrap();
    /// Code::emit(verified, Symbol::EMPTY, &CompilationUnit::new());
    /// ```
    ///
    /// The graph itself is not enough:
    ///
    /// ```compile_fail,E0308
    /// use flambeau_exec::Code;
    /// use flambeau_ir::{CompilationUnit, Graph, Registry, Symbol};
    /// use std::sync::Arc;
    ///
    /// let graph = Arc::new(Graph::new(Registry::empty()));
    /// Code::emit(graph, Symbol::EMPTY, &CompilationUnit::new());
    /// ```
    pub fn emit(verified: Verified, function: Symbol, callees: &dyn Callees) -> Code {
        let mut emit = Emit::new(verified.graph(), callees);
        emit.run();
        emit.optimize_words();
        let constant_items = constant_lists::items(&mut emit);
        let is_bailout = |site: &u32| matches!(emit.sites[*site as usize].work, SiteOp::BailOut(_));
        let bailouts = (0..emit.sites.len() as u32).filter(is_bailout).collect();
        Code {
            graph: Arc::clone(verified.graph()),
            function,
            n_scalars: emit.words.len(),
            n_values: emit.values.len(),
            n_slots: emit
                .sites
                .iter()
                .filter(|site| site.work.is_kernel())
                .map(|s| s.operands.len())
                .max()
                .unwrap_or(0) as u32,
            instrs: emit.instrs,
            nodes: emit.nodes,
            sites: emit.sites,
            operands: emit.operands,
            scalars: emit.scalars,
            constants: emit.constants,
            constant_items,
            params: emit.params,
            declared: declared(verified.graph()),
            bailouts,
            failed: BailoutFailures::default(),
            counters: emit.counters,
            profiles: emit.profiles,
        }
    }
}

/// Returns the types of inputs, up to the last one that calls must be checked against.
fn declared(graph: &Graph) -> Box<[Type]> {
    let refined = graph.inputs().rposition(|v| is_refined(graph.ty(v)));
    graph.inputs().take(refined.map_or(0, |last| last + 1)).map(|v| graph.ty(v)).collect()
}

impl<'g> Emit<'g> {
    fn new(graph: &'g Graph, callees: &'g dyn Callees) -> Self {
        let bytes = byte_reads(graph);
        let proofs = WriteProofs::new(graph);
        let virtual_lists = dict_lists::virtual_lists(&proofs);
        let deferred = deferred_comparisons(graph, &bytes);
        let mut emit = Emit {
            graph,
            callees,
            live: Liveness::with_deferred(graph, &deferred),
            deferred,
            bytes,
            tasks: TaskPlan::new(graph, callees),
            iterated: iteration::iterated_sequences(&proofs, &virtual_lists),
            spanned: spans::spanned_lists(graph, &virtual_lists),
            spans: Vec::new(),
            virtual_lists,
            unpacked: NodeSet::new(),
            ranges: NodeSet::new(),
            loc: ValueMap::for_values(graph, Loc::Nowhere),
            depth: ValueMap::for_values(graph, 0),
            hints: ValueMap::for_values(graph, None),
            words: Bank::new(0),
            values: Bank::new(0),
            temps: Vec::new(),
            instrs: Vec::new(),
            nodes: Vec::new(),
            sites: Vec::new(),
            operands: Vec::new(),
            scalars: Vec::new(),
            word_of: HashMap::default(),
            constants: Vec::new(),
            interned: InternedStrings::default(),
            params: Vec::new(),
            counters: Vec::new(),
            profiles: Vec::new(),
            opens: Vec::new(),
            label: 0,
        };
        emit.find_constants();
        emit.words = Bank::new(emit.scalars.len());
        emit
    }

    /// Assigns locations to all constants. Number constants are words at the beginning of every frame.
    fn find_constants(&mut self) {
        self.word(0);
        let graph = self.graph;
        let intrinsics = graph.registry().column::<Intrinsic>();
        let mut known: HashMap<(AttrsId, Type), u32, FxBuildHasher> = HashMap::default();
        for node in graph.nodes_deep() {
            if let Some(Intrinsic::Scalar(op)) = intrinsics.of(graph.op(node)) {
                if let Some((_, word)) = conditions::reduced(graph, node, *op) {
                    self.word(word);
                }
                // Convert integer constants that are used as floats.
                for (value, &kind) in graph.operands(node).zip(op.signature().0) {
                    if let (ScalarKind::Float, Some(IValue::Int(i))) = (kind, graph.constant(value)) {
                        self.word((i as f64).to_bits());
                    }
                }
            }
            if let Some((.., constant)) = conditions::byte_comparison(graph, &self.bytes, node) {
                self.word(u64::from(constant));
            }
            if graph.is_prim(node, Prim::Uninitialized) {
                // The word is never read as a value, so any constant will do.
                let value = graph.result(node, 0);
                if kind_of(graph.ty(value)).is_some() {
                    self.loc[value] = Loc::Word(self.word(0));
                }
                continue;
            }
            if !graph.is_prim(node, Prim::Constant) {
                continue;
            }
            let value = graph.result(node, 0);
            let ty = graph.ty(value);
            let held = graph.constant(value).unwrap_or_default();
            if let Some(word) = kind_of(ty).and_then(|k| k.unboxed(&held)) {
                self.loc[value] = Loc::Word(self.word(word));
                continue;
            }
            let index = *known.entry((graph.attrs_id(node), ty)).or_insert_with(|| {
                self.constants.push(self.interned.value(held));
                self.constants.len() as u32 - 1
            });
            self.loc[value] = Loc::Constant(index);
        }
    }

    fn word(&mut self, word: u64) -> u32 {
        let scalars = &mut self.scalars;
        *self.word_of.entry(word).or_insert_with(|| {
            scalars.push(word);
            scalars.len() as u32 - 1
        })
    }

    fn run(&mut self) {
        // The blocks of an operator, which only constructs run.
        let mut ignored: Option<NodeId> = None;
        for step in self.graph.walk(self.graph.root()) {
            match step {
                WalkStep::Done(node) if ignored == Some(node) => ignored = None,
                _ if ignored.is_some() => {}
                WalkStep::Enter(block) => self.enter(block),
                WalkStep::Node(node) => {
                    self.node(node);
                    ignored = Some(node).filter(|&node| self.has_ignored_blocks(node));
                }
                WalkStep::Leave(block) => self.leave(block),
                WalkStep::Done(node) => self.done(node),
            }
        }
    }

    /// Whether a node that was emitted has blocks but is not a construct.
    fn has_ignored_blocks(&self, node: NodeId) -> bool {
        self.graph.blocks(node).next().is_some() && self.opens.last().is_none_or(|open| open.node != node)
    }

    fn here(&self) -> u32 {
        self.instrs.len() as u32
    }

    fn push(&mut self, node: NodeId, op: Opcode, a: u32, b: u32, c: u32) {
        self.push_instr(node, Instr { op, a, b, c, d: 0, e: 0 });
    }

    fn push_instr(&mut self, node: NodeId, instr: Instr) {
        self.instrs.push(instr);
        self.nodes.push(node);
    }

    /// Assigns a register to a value.
    fn define(&mut self, value: ValueId) -> Loc {
        let hint = self.hints[value];
        let kind = kind_of(self.graph.ty(value));
        let loc = match kind.is_some() || self.bytes.contains(self.graph.def(value)) {
            true => Loc::Word(match hint {
                Some(r) if self.words.take_reserved(r, value) => r,
                _ => self.words.take(Some(value)),
            }),
            false => Loc::Value(match hint {
                Some(r) if self.values.take_reserved(r, value) => r,
                _ => self.values.take(Some(value)),
            }),
        };
        self.put(value, loc);
        loc
    }

    /// Records the location of a value of the current block.
    fn put(&mut self, value: ValueId, loc: Loc) {
        self.loc[value] = loc;
        self.depth[value] = self.opens.len() as u32;
    }

    /// Frees a value's register; returns the register if it is of the value bank and belonged to the value.
    fn release(&mut self, value: ValueId) -> Option<u32> {
        match self.loc[value] {
            Loc::Word(r) if r as usize >= self.scalars.len() => {
                self.words.release(r, value);
                None
            }
            Loc::Value(r) => self.values.release(r, value).then_some(r),
            _ => None,
        }
    }

    /// Ends a value's live range at a node. A register of the value bank is emptied unless the node moved its value
    /// out. The register of a value of an outer block becomes free only at the end of the construct.
    fn end(&mut self, node: NodeId, value: ValueId, moved: bool) {
        let full = match self.opens.get_mut(self.depth[value] as usize) {
            None => self.release(value),
            Some(open) => {
                open.ended.push(value);
                self.own_register(value)
            }
        };
        if let Some(register) = full.filter(|_| !moved) {
            self.push(node, Opcode::Drop, register, 0, 0);
        }
    }

    /// Returns the register of the value bank that a value owns.
    fn own_register(&self, value: ValueId) -> Option<u32> {
        match self.loc[value] {
            Loc::Value(r) => (self.values.owner(r) == Some(value)).then_some(r),
            _ => None,
        }
    }

    /// Ends the live ranges of the operands in `range` that die at a node.
    fn end_operands(&mut self, node: NodeId, range: Range<usize>, moved: bool) {
        for index in range {
            if self.live.is_last_use(node, index) {
                self.end(node, self.graph.operand(node, index), moved);
            }
        }
    }

    fn give_temps(&mut self) {
        while let Some(temp) = self.temps.pop() {
            match temp {
                Loc::Word(r) => self.words.free_register(r),
                Loc::Value(r) => self.values.free_register(r),
                _ => {}
            }
        }
    }

    /// Adds the operands of a site, from the node's `skip`th: the last occurrence of a dying value is moved, earlier
    /// ones are copied.
    fn site_operands(&mut self, node: NodeId, skip: usize) -> Range<u32> {
        let graph = self.graph;
        let (start, count) = (self.operands.len(), graph.operand_count(node));
        for value in graph.operands(node).skip(skip) {
            self.operands.push(operand(self.loc[value], kind_of(graph.ty(value)), false));
        }
        for index in (skip..count).rev() {
            if !self.live.is_last_use(node, index) {
                continue;
            }
            let value = graph.operand(node, index);
            if let Some(r) = self.own_register(value) {
                self.operands[start + index - skip] = Operand::take(r);
            }
            self.end(node, value, true);
        }
        self.end_operands(node, 0..skip.min(count), false);
        start as u32..self.operands.len() as u32
    }

    /// Adds the destinations of a site's results.
    fn site_dests(&mut self, results: impl Iterator<Item = ValueId>) -> Range<u32> {
        let start = self.operands.len() as u32;
        for result in results {
            let place = if self.graph.use_count(result) == 0 {
                Operand::NONE
            } else {
                let loc = self.define(result);
                operand(loc, kind_of(self.graph.ty(result)), false)
            };
            self.operands.push(place);
        }
        start..self.operands.len() as u32
    }

    fn add_site(&mut self, site: CallSite) -> u32 {
        self.sites.push(site);
        self.sites.len() as u32 - 1
    }

    /// Emits a node as a call: operands from the `skip`th, then the constants `more`.
    fn call_site(&mut self, node: NodeId, op: Opcode, work: SiteOp, skip: usize, more: Vec<IValue>) {
        let mut operands = self.site_operands(node, skip);
        for value in more {
            self.constants.push(value);
            self.operands.push(Operand::constant(self.constants.len() as u32 - 1));
            operands.end += 1;
        }
        let graph = self.graph;
        let dests = self.site_dests(graph.results(node));
        let site = self.add_site(CallSite { work, node, operands, dests });
        self.push(node, op, site, 0, 0);
    }

    /// Sets the preferred registers of a block's outputs to the destinations of the construct's results.
    fn block_hints(&mut self, block: BlockId, dests: &[Loc], skip: usize) {
        let graph = self.graph;
        for (value, dest) in graph.block_outputs(block).skip(skip).zip(dests) {
            let def = graph.def(value);
            let local = graph.parent(def) == block && !graph.is_prim(def, Prim::Param);
            let same_bank = kind_of(graph.ty(value)).is_some() == matches!(dest, Loc::Word(_));
            if let (true, true, None, Loc::Word(r) | Loc::Value(r)) =
                (local, same_bank, self.hints[value], *dest)
            {
                self.hints[value] = Some(r);
            }
        }
    }
}

//! Emission of nodes without blocks: intrinsics as instructions, everything else as sites.

use super::conditions::{byte_comparison, byte_search, reduced};
use super::moves::Move;
use super::{Emit, Loc, Operand, kind_of};
use crate::bailout::Bailout;
use crate::bytecode::{CallSite, Forked, IDENTIFIED, Instr, Opcode, OperandSource, SiteOp};
use crate::counter::NodeCounter;
use crate::fast_path::FastPath;
use crate::intrinsic::{Intrinsic, ScalarKind, ScalarOp};
use crate::isolation::is_wait;
use crate::kernel::Kernel;
use crate::structural::GuardCheck;
use crate::views::ViewOf;
use crate::{resolve, structural};
use flambeau_ir::types::TypeKind;
use flambeau_ir::value::IValue;
use flambeau_ir::{NodeId, OpKind, Prim, Symbol, Type, ValueId};
use std::ops::Range;
use std::sync::OnceLock;

impl Emit<'_> {
    pub(super) fn node(&mut self, node: NodeId) {
        if self.deferred.contains(node) || self.unpacked.contains(node) {
            return;
        }
        self.join_tasks(node);
        match self.graph.op(node).kind() {
            OpKind::Prim(prim) => self.prim(node, prim),
            OpKind::Row(row) => {
                let intrinsic = self.graph.registry().facet::<Intrinsic>(row).copied();
                if self.virtual_lists.contains(node) {
                    self.dict_sequence(node);
                } else if let Some([text, byte]) = byte_search(self.graph, &self.bytes, node) {
                    self.find_byte(node, text, byte);
                } else if !intrinsic.is_some_and(|i| self.intrinsic(node, i)) {
                    self.kernel(node);
                }
            }
            OpKind::Unknown(_) => self.kernel(node),
        }
        self.give_temps();
    }

    /// Emits the instructions that join tasks before a node.
    fn join_tasks(&mut self, node: NodeId) {
        if self.tasks.syncs.contains(node) {
            self.push(node, Opcode::Sync, 0, 0, 0);
        }
        if is_wait(self.graph, node) {
            let future = self.peek(self.graph.operand(node, 0));
            self.push(node, Opcode::Join, future.0, 0, 0);
        }
    }

    fn operand_values(&self, node: NodeId) -> Vec<ValueId> {
        self.graph.operands(node).collect()
    }

    /// Emits an operator with a kernel. If there is no kernel, the emitted call returns the error at run time.
    fn kernel(&mut self, node: NodeId) {
        let graph = self.graph;
        let found = resolve::kernel(graph, graph.op(node)).cloned();
        let found = found.and_then(|kernel| Ok((kernel, resolve::defaults(graph, node)?)));
        let (kernel, defaults) =
            found.unwrap_or_else(|error| (Kernel::new(move |_| Err(error.clone())), Vec::new()));
        self.call_site(node, Opcode::Op, SiteOp::Kernel(kernel), 0, defaults);
        self.read(node);
        self.transposed(node);
        self.view(node);
        self.fast(node);
    }

    /// Precedes the call of a kernel by the instruction that makes its view, if the operator has one.
    fn view(&mut self, node: NodeId) {
        let graph = self.graph;
        let view = graph.op(node).row().and_then(|row| graph.registry().facet::<ViewOf>(row));
        let (Some(&ViewOf(view)), Some(&call)) = (view, self.instrs.last()) else { return };
        let site = &self.sites[call.a as usize];
        let (operands, dests) = (site.operands.clone(), site.dests.clone());
        let places = |range: &Range<u32>| &self.operands[range.start as usize..range.end as usize];
        let is_number = |place: &Operand| match place.place() {
            OperandSource::Scalar(kind, _) => kind != ScalarKind::Float,
            OperandSource::Const(c) => matches!(self.constants[c as usize], IValue::None | IValue::List(_)),
            _ => false,
        };
        let is_made = call.op == Opcode::Op
            && places(&operands).first().is_some_and(|base| base.register().is_some())
            && places(&operands).iter().skip(1).all(is_number)
            && places(&dests).iter().all(|dest| dest.register().is_some());
        if !is_made || dests.len() != 1 {
            return;
        }
        let site = self.add_site(CallSite { work: SiteOp::View(view), node, operands, dests });
        let at = self.instrs.len() - 1;
        self.instrs.insert(at, Instr { op: Opcode::View, a: site, b: 0, c: 0, d: 0, e: 0 });
        self.nodes.insert(at, node);
    }

    /// Precedes the call of a kernel by its fast path, if the operator has one.
    fn fast(&mut self, node: NodeId) {
        let graph = self.graph;
        let Some(&path) = graph.op(node).row().and_then(|row| graph.registry().facet::<FastPath>(row)) else {
            return;
        };
        let fits = path.arity() == (graph.operand_count(node), graph.result_count(node))
            && (path != FastPath::StrOfInt || graph.ty(graph.operand(node, 0)) == Type::INT);
        if !fits {
            return;
        }
        let Some(call) = self.instrs.pop() else { return };
        self.nodes.pop();
        let fast = Instr { op: Opcode::Fast, a: call.a, b: 0, c: 0, d: path as u8, e: 0 };
        self.instrs.push(self.dict_instruction(path, call.a, node).unwrap_or(fast));
        self.nodes.push(node);
        self.push(node, call.op, call.a, 0, 0);
        self.number_added(node, path);
    }

    /// Returns the instruction of a fast path of a dictionary with integer or string keys and numbers as values.
    fn dict_instruction(&self, path: FastPath, site: u32, node: NodeId) -> Option<Instr> {
        let site = &self.sites[site as usize];
        let operands = &self.operands[site.operands.start as usize..site.operands.end as usize];
        let (word, [int, text]) = match path {
            FastPath::DictGet => {
                (self.operands.get(site.dests.start as usize)?, [Opcode::DictGetI, Opcode::DictGetS])
            }
            FastPath::DictContains => {
                (self.operands.get(site.dests.start as usize)?, [Opcode::DictHasI, Opcode::DictHasS])
            }
            FastPath::DictSet => (operands.get(2)?, [Opcode::DictSetI, Opcode::DictSetS]),
            _ => return None,
        };
        // A dictionary that dies at the node is left to the general path, which drops it.
        let (OperandSource::Scalar(kind, a), OperandSource::Copy(_)) = (word.place(), operands[0].place())
        else {
            return None;
        };
        let (op, c) = match operands[1].place() {
            OperandSource::Scalar(ScalarKind::Int, r) => (int, r),
            OperandSource::Copy(_) | OperandSource::Move(_) | OperandSource::Const(_)
                if self.graph.ty(self.graph.operand(node, 1)) == Type::STR =>
            {
                (text, operands[1].0)
            }
            _ => return None,
        };
        Some(Instr { op, a, b: operands[0].0, c, d: kind as u8, e: 0 })
    }

    /// Precedes the concatenation of a string with the text of an integer by an instruction that makes no string of the integer.
    fn number_added(&mut self, node: NodeId, path: FastPath) {
        if path != FastPath::StrAdd {
            return;
        }
        for index in 0..2 {
            let Some((start, text)) = self.fast_before(node, index, FastPath::StrOfInt) else { continue };
            let number = self.operands[self.sites[text.a as usize].operands.start as usize];
            if let OperandSource::Scalar(ScalarKind::Int, b) = number.place() {
                let (a, e) = (self.instrs[start + 2].a, u8::from(index == 0));
                self.instrs.insert(start, Instr { op: Opcode::StrAddInt, a, b, c: 0, d: 0, e });
                self.nodes.insert(start, node);
            }
            return;
        }
    }

    /// Returns the position and the first instruction of the fast path that computes an operand of the last node, if it
    /// directly precedes the fast path of that node, which is its only user.
    fn fast_before(&self, node: NodeId, operand: usize, path: FastPath) -> Option<(usize, Instr)> {
        let (graph, start) = (self.graph, self.instrs.len().checked_sub(4)?);
        let (value, first) = (graph.operand(node, operand), self.instrs[start]);
        let follows = (self.label as usize) <= start
            && first.op == Opcode::Fast
            && first.d == path as u8
            && self.nodes[start] == graph.def(value)
            && graph.use_count(value) == 1;
        follows.then_some((start, first))
    }

    /// Whether all users of a value only read it.
    fn only_read(&self, value: ValueId) -> bool {
        let graph = self.graph;
        graph.uses(value).all(|u| {
            let Some(row) = graph.op(u.user).row() else { return false };
            let registry = graph.registry();
            registry.facet::<FastPath>(row).is_some_and(|path| path.only_reads(u.index as usize))
                || registry.facet::<Intrinsic>(row).is_some_and(|intrinsic| intrinsic.only_reads())
        })
    }

    fn prim(&mut self, node: NodeId, prim: Prim) {
        match prim {
            Prim::Constant | Prim::Param | Prim::Return => {}
            Prim::Uninitialized if matches!(self.loc[self.graph.result(node, 0)], Loc::Word(_)) => {}
            Prim::If => self.begin_if(node),
            Prim::Loop => self.begin_loop(node),
            Prim::GradOf => self.begin_grad(node),
            Prim::UncheckedCast | Prim::UncheckedUnwrapOptional | Prim::Annotate => self.transfer(node),
            Prim::GetAttr if self.get_slot(node) => {}
            Prim::SetAttr if self.set_slot(node) => {}
            Prim::CallFunction => match resolve::callee(self.graph, node) {
                Ok(name) => self.call(node, SiteOp::Function(name), 1),
                Err(error) => self.failing(node, error),
            },
            Prim::CallMethod => match resolve::name_attr(self.graph, node) {
                Ok(name) => self.call(node, self.static_method(node, name), 0),
                Err(error) => self.failing(node, error),
            },
            Prim::Enter => self.call(node, SiteOp::Enter, 0),
            Prim::Exit => self.call(node, SiteOp::Exit, 0),
            Prim::Profile if self.graph.operand_count(node) == 0 && self.graph.result_count(node) == 0 => {
                let counter = self.counters.len() as u32;
                self.counters.push(NodeCounter::new(node));
                self.push(node, Opcode::Count, counter, 0, 0);
            }
            Prim::Profile if self.graph.operand_count(node) == 1 && self.graph.result_count(node) == 1 => {
                let (at, value) = (self.profiles.len() as u32, self.peek(self.graph.operand(node, 0)));
                self.profiles.push(node);
                self.push(node, Opcode::Observe, at, value.0, 0);
                self.transfer(node);
            }
            Prim::AwaitableWait => self.call(node, SiteOp::Await, 0),
            prim if structural::is_control(prim) => self.with_subgraph(node, prim),
            prim => self.call_site(node, Opcode::Op, SiteOp::Prim(prim), 0, Vec::new()),
        }
    }

    fn call(&mut self, node: NodeId, work: SiteOp, skip: usize) {
        self.call_site(node, Opcode::Call, work, skip, Vec::new());
    }

    /// Emits a call that returns `error` when it is executed.
    fn failing(&mut self, node: NodeId, error: crate::KernelError) {
        let work = SiteOp::Kernel(Kernel::new(move |_| Err(error.clone())));
        self.call_site(node, Opcode::Op, work, 0, Vec::new());
    }

    /// Returns the function of a method if the class is statically known. Methods of interfaces are resolved at the
    /// call.
    fn static_method(&self, node: NodeId, name: Symbol) -> SiteOp {
        let class = self.graph.operands(node).next().map(|v| self.graph.ty(v));
        let function = class
            .filter(|c| matches!(c.kind(), TypeKind::Class(_)))
            .and_then(|class| self.callees.method(class, name));
        function.map_or(SiteOp::Method(name), SiteOp::Function)
    }

    fn with_subgraph(&mut self, node: NodeId, prim: Prim) {
        let graph = self.graph;
        let body = match resolve::subgraph(graph, node) {
            Ok(body) => body,
            Err(error) => return self.failing(node, error),
        };
        let work = match prim {
            Prim::Fork => SiteOp::Fork(Box::new(Forked {
                body,
                code: OnceLock::new(),
                elem: graph.results(node).next().and_then(|v| graph.ty(v).future_elem()).unwrap_or(Type::ANY),
                concurrent: self.tasks.concurrent.contains(node),
            })),
            Prim::BailOut => {
                let work = SiteOp::BailOut(Box::new(Bailout::new(body, GuardCheck::of(graph, node))));
                return self.call_site(node, Opcode::BailOut, work, 0, Vec::new());
            }
            Prim::FusionGroup => match crate::fused::FusedGroup::compile(&body) {
                Some(group) => {
                    let work = SiteOp::Fused(Box::new(group));
                    return self.call_site(node, Opcode::Fused, work, 0, Vec::new());
                }
                None => SiteOp::Subgraph(body, OnceLock::new()),
            },
            _ => SiteOp::Subgraph(body, OnceLock::new()),
        };
        self.call(node, work, 0);
    }

    /// Emits a change of a value's static type; no instruction is necessary if the value can keep its register.
    fn transfer(&mut self, node: NodeId) {
        let graph = self.graph;
        let (from, to) = (graph.operand(node, 0), graph.result(node, 0));
        let (kind, to_kind) = (kind_of(graph.ty(from)), kind_of(graph.ty(to)));
        let loc = self.loc[from];
        match loc {
            // Constants have no owner, so both values share the location.
            Loc::Constant(_) if to_kind.is_none() => return self.put(to, loc),
            Loc::Word(r) if (r as usize) < self.scalars.len() && kind == to_kind => return self.put(to, loc),
            _ => {}
        }
        if graph.use_count(to) == 0 {
            return self.end_operands(node, 0..1, false);
        }
        let is_last_use = self.live.is_last_use(node, 0);
        self.end_operands(node, 0..1, true);
        let dest = self.define(to);
        if dest != loc {
            self.emit_move(node, Move { from: loc, kind, is_last_use, to: dest, to_kind });
        }
    }

    // --- intrinsics ------------------------------------------------------------------------------------------------

    /// Returns a register that holds the value as a word of a kind, converted into a temporary register if necessary.
    pub(super) fn as_word(&mut self, value: ValueId, kind: ScalarKind, node: NodeId) -> u32 {
        let own = kind_of(self.graph.ty(value));
        let from = self.loc[value];
        if let Loc::Word(r) = from {
            if let (Some(ScalarKind::Int), ScalarKind::Float, Some(&word)) =
                (own, kind, self.scalars.get(r as usize))
                && let Some(&converted) = self.word_of.get(&(word as i64 as f64).to_bits())
            {
                return converted;
            }
            let op = match (own, kind) {
                (Some(ScalarKind::Int), ScalarKind::Float) => ScalarOp::IToF,
                (Some(ScalarKind::Bool), ScalarKind::Float) => ScalarOp::BToF,
                (Some(ScalarKind::Int), ScalarKind::Bool) => ScalarOp::IToB,
                _ => return r,
            };
            let temp = self.words.take(None);
            self.temps.push(Loc::Word(temp));
            self.push(node, Opcode::of_scalar(op), temp, r, 0);
            return temp;
        }
        let temp = self.words.take(None);
        self.temps.push(Loc::Word(temp));
        self.emit_move(
            node,
            Move { from, kind: own, is_last_use: false, to: Loc::Word(temp), to_kind: Some(kind) },
        );
        temp
    }

    /// Emits a node as an instruction; returns whether that is possible.
    fn intrinsic(&mut self, node: NodeId, intrinsic: Intrinsic) -> bool {
        let graph = self.graph;
        let args = self.operand_values(node);
        match intrinsic {
            Intrinsic::Scalar(op) => self.scalar(node, op, &args),
            Intrinsic::Convert(to) if args.len() == 1 => {
                let conversion = kind_of(graph.ty(args[0])).and_then(|from| from.conversion(to));
                conversion.is_some_and(|op| self.scalar(node, op, &args))
            }
            Intrinsic::RangeElement if args.len() == 3 => self.range_element(node, &args),
            Intrinsic::RangeLength if args.len() == 3 => self.range_length(node, &args),
            Intrinsic::ListLen if args.len() == 1 => self.list_len(node, args[0]),
            Intrinsic::ListGet if args.len() == 2 => self.list_get(node, args[0], args[1]),
            Intrinsic::ListSet if args.len() == 3 => self.list_set(node, &args),
            Intrinsic::ListAppend if args.len() == 2 => self.list_append(node, args[0], args[1]),
            Intrinsic::Is | Intrinsic::IsNot if args.len() == 2 => {
                if graph.ty(graph.result(node, 0)) != Type::BOOL {
                    return false;
                }
                let op = if intrinsic == Intrinsic::Is { Opcode::Is } else { Opcode::IsNot };
                self.word_of_pair(node, op, args[0], args[1])
            }
            Intrinsic::StrLen if args.len() == 1 => self.str_len(node, args[0]),
            Intrinsic::StrGet if args.len() == 2 => self.str_get(node, args[0], args[1]),
            Intrinsic::StrEqual | Intrinsic::StrNotEqual if args.len() == 2 => {
                if args.iter().any(|v| graph.ty(*v) != Type::STR)
                    || graph.ty(graph.result(node, 0)) != Type::BOOL
                {
                    return false;
                }
                let op = if intrinsic == Intrinsic::StrEqual { Opcode::StrEq } else { Opcode::StrNe };
                match byte_comparison(graph, &self.bytes, node) {
                    Some((op, byte, constant)) => self.compare_byte(node, op, byte, constant),
                    None => self.word_of_pair(node, op, args[0], args[1]),
                }
            }
            _ => false,
        }
    }

    /// Returns the register of a node's only result, a word; a temporary register if the result is unused.
    fn result_word(&mut self, node: NodeId) -> u32 {
        let result = self.graph.result(node, 0);
        if self.graph.use_count(result) != 0
            && let Loc::Word(r) = self.define(result)
        {
            return r;
        }
        let temp = self.words.take(None);
        self.temps.push(Loc::Word(temp));
        temp
    }

    fn scalar(&mut self, node: NodeId, op: ScalarOp, args: &[ValueId]) -> bool {
        let (kinds, kind) = op.signature();
        let graph = self.graph;
        if let (Some((op, word)), &[value, _]) = (reduced(graph, node, op), args)
            && kind_of(graph.ty(value)) == Some(ScalarKind::Int)
            && graph.ty(graph.result(node, 0)) == Type::INT
        {
            let (value, word) = (self.as_word(value, ScalarKind::Int, node), self.word(word));
            self.end_operands_that(node, |loc| matches!(loc, Loc::Word(_)));
            let dest = self.result_word(node);
            if !self.paired(node, op, dest, args, [value, word]) {
                self.push(node, Opcode::of_scalar(op), dest, value, word);
            }
            return true;
        }
        let unfit = |(&v, &k): (&ValueId, &ScalarKind)| {
            k != ScalarKind::Float && kind_of(graph.ty(v)) == Some(ScalarKind::Float)
        };
        if args.len() != kinds.len()
            || kind_of(graph.ty(graph.result(node, 0))) != Some(kind)
            || args.iter().zip(kinds).any(unfit)
        {
            return false;
        }
        let mut words = [0; 2];
        for (i, (&value, &kind)) in args.iter().zip(kinds).enumerate() {
            words[i] = self.as_word(value, kind, node);
        }
        // Words are read before the result is written, so the result may take the register of a dying operand.
        self.end_operands_that(node, |loc| matches!(loc, Loc::Word(_)));
        let dest = self.result_word(node);
        if !self.paired(node, op, dest, args, words) {
            self.push(node, Opcode::of_scalar(op), dest, words[0], words[1]);
        }
        self.end_operands_that(node, |loc| !matches!(loc, Loc::Word(_)));
        true
    }

    /// Whether a value is the first input of a block.
    fn is_count(&self, value: ValueId) -> bool {
        let block = self.graph.parent(self.graph.def(value));
        self.graph.block_inputs(block).next() == Some(value)
    }

    /// Emits `start + index * step`: a sum if the step is the constant 1.
    fn range_element(&mut self, node: NodeId, args: &[ValueId]) -> bool {
        if args.iter().any(|v| kind_of(self.graph.ty(*v)) != Some(ScalarKind::Int)) {
            return false;
        }
        if self.ranges.contains(self.graph.def(args[0])) && self.is_count(args[0]) {
            // The loop counts from the start, so the register of its count holds the element.
            let element = self.loc[args[0]];
            self.end_operands(node, 0..3, false);
            self.put(self.graph.result(node, 0), element);
            return true;
        }
        let [index, start, step] =
            [args[0], args[1], args[2]].map(|v| self.as_word(v, ScalarKind::Int, node));
        let is_one = self.scalars.get(step as usize) == Some(&1);
        if !is_one && u8::try_from(start).is_err() {
            return false;
        }
        self.end_operands_that(node, |loc| matches!(loc, Loc::Word(_)));
        let dest = self.result_word(node);
        if is_one {
            self.push(node, Opcode::IAdd, dest, index, start);
        } else {
            self.push(node, Opcode::IMulAdd, dest, index, step);
            self.small_fields(start as u8, 0);
        }
        self.end_operands_that(node, |loc| !matches!(loc, Loc::Word(_)));
        true
    }

    /// Emits the length of a range whose step is the constant 1 or -1.
    fn range_length(&mut self, node: NodeId, args: &[ValueId]) -> bool {
        let graph = self.graph;
        if args.iter().any(|v| kind_of(graph.ty(*v)) != Some(ScalarKind::Int)) {
            return false;
        }
        let (low, high) = match graph.constant(args[2]).and_then(|step| step.as_int()) {
            Some(1) => (args[0], args[1]),
            Some(-1) => (args[1], args[0]),
            _ => return false,
        };
        let [low, high] = [low, high].map(|v| self.as_word(v, ScalarKind::Int, node));
        self.end_operands(node, 0..3, false);
        let dest = self.result_word(node);
        self.push(node, Opcode::IDistance, dest, low, high);
        true
    }

    /// Emits an instruction that computes a word from two values.
    fn word_of_pair(&mut self, node: NodeId, op: Opcode, a: ValueId, b: ValueId) -> bool {
        let (a, b) = (self.peek(a), self.peek(b));
        let dest = self.result_word(node);
        self.push(node, op, dest, a.0, b.0);
        self.end_operands(node, 0..2, false);
        true
    }

    /// Ends the live ranges of dying operands whose location satisfies `is_such`.
    fn end_operands_that(&mut self, node: NodeId, is_such: fn(Loc) -> bool) {
        for index in 0..self.graph.operand_count(node) {
            if is_such(self.loc[self.graph.operand(node, index)]) {
                self.end_operands(node, index..index + 1, false);
            }
        }
    }

    /// Returns element kind and type of a list.
    fn list_kind(&self, list: ValueId) -> Option<(Option<ScalarKind>, Type)> {
        let elem = self.graph.ty(list).list_elem()?;
        Some((kind_of(elem), elem))
    }

    fn list_len(&mut self, node: NodeId, list: ValueId) -> bool {
        if self.list_kind(list).is_none() || self.graph.ty(self.graph.result(node, 0)) != Type::INT {
            return false;
        }
        let from = self.peek(list);
        let dest = self.result_word(node);
        let op = if self.virtual_list(list).is_some() { Opcode::DictLen } else { Opcode::ListLen };
        self.push(node, op, dest, from.0, 0);
        self.end_operands(node, 0..1, false);
        true
    }

    fn list_get(&mut self, node: NodeId, list: ValueId, index: ValueId) -> bool {
        if let Some(contents) = self.virtual_list(list) {
            self.dict_get(node, contents, index);
            return true;
        }
        let Some((kind, _)) = self.list_kind(list) else { return false };
        let result = self.graph.result(node, 0);
        if kind_of(self.graph.ty(result)) != kind || self.graph.use_count(result) == 0 {
            return false;
        }
        let from = self.peek(list);
        let at = self.as_word(index, ScalarKind::Int, node);
        let op = match kind {
            Some(ScalarKind::Int) => Opcode::ListGetI,
            Some(ScalarKind::Float) => Opcode::ListGetF,
            Some(ScalarKind::Bool) => Opcode::ListGetB,
            None => Opcode::ListGetV,
        };
        let outer = kind.and_then(|_| self.row_before(list));
        let (Loc::Word(dest) | Loc::Value(dest)) = self.define(result) else { return false };
        let start = self.instrs.len();
        match kind.and_then(|kind| self.span_get(list, kind, dest, at)) {
            Some(get) => self.push_instr(node, get),
            None => self.push(node, op, dest, from.0, at),
        }
        self.end_operands(node, 0..2, false);
        if let (Some(outer), Some(kind), Ok(inner)) = (outer, kind, u8::try_from(at)) {
            self.nested_get(node, start, outer, (dest, inner, kind));
        }
        true
    }

    fn str_len(&mut self, node: NodeId, text: ValueId) -> bool {
        if self.graph.ty(text) != Type::STR || self.graph.ty(self.graph.result(node, 0)) != Type::INT {
            return false;
        }
        let from = self.peek(text);
        let dest = self.result_word(node);
        self.push(node, Opcode::StrLen, dest, from.0, 0);
        self.end_operands(node, 0..1, false);
        true
    }

    fn str_get(&mut self, node: NodeId, text: ValueId, index: ValueId) -> bool {
        let result = self.graph.result(node, 0);
        let is_byte = self.bytes.contains(node);
        if self.graph.ty(text) != Type::STR
            || kind_of(self.graph.ty(index)) != Some(ScalarKind::Int)
            || self.graph.use_count(result) == 0
        {
            return false;
        }
        let from = self.peek(text);
        let at = self.as_word(index, ScalarKind::Int, node);
        let (Loc::Word(dest) | Loc::Value(dest)) = self.define(result) else { return false };
        self.push(node, if is_byte { Opcode::StrByte } else { Opcode::StrGet }, dest, from.0, at);
        // Strings of one byte are shared, so that one whose identity is observable must be another.
        self.small_fields(0, if is_byte || self.only_read(result) { 0 } else { IDENTIFIED });
        self.end_operands(node, 0..2, false);
        true
    }

    /// Emits the search for a byte of a string in a constant.
    fn find_byte(&mut self, node: NodeId, text: ValueId, byte: ValueId) {
        let (text, byte) = (self.peek(text), self.as_word(byte, ScalarKind::Int, node));
        self.end_operands(node, 0..4, false);
        let dest = self.result_word(node);
        self.push(node, Opcode::StrFind, dest, text.0, byte);
    }

    /// Emits the comparison of a byte of a string with a constant.
    fn compare_byte(&mut self, node: NodeId, op: ScalarOp, byte: ValueId, constant: u8) -> bool {
        let (byte, constant) = (self.as_word(byte, ScalarKind::Int, node), self.word(u64::from(constant)));
        self.end_operands(node, 0..2, false);
        let dest = self.result_word(node);
        self.push(node, Opcode::of_scalar(op), dest, byte, constant);
        true
    }

    fn list_set(&mut self, node: NodeId, args: &[ValueId]) -> bool {
        let Some((kind, _)) = self.list_kind(args[0]) else { return false };
        let results = self.graph.results(node).any(|r| self.graph.use_count(r) != 0);
        if results || kind_of(self.graph.ty(args[2])) != kind {
            return false;
        }
        let list = self.peek(args[0]);
        let at = self.as_word(args[1], ScalarKind::Int, node);
        match kind {
            Some(kind) => {
                let word = self.as_word(args[2], kind, node);
                let op = match kind {
                    ScalarKind::Int => Opcode::ListSetI,
                    ScalarKind::Float => Opcode::ListSetF,
                    ScalarKind::Bool => Opcode::ListSetB,
                };
                match self.span_set(args[0], kind, at, word) {
                    Some(set) => self.push_instr(node, set),
                    None => self.push(node, op, list.0, at, word),
                }
            }
            None => {
                let (value, moved) = self.stored(node, 2);
                self.push(node, Opcode::ListSetV, list.0, at, value.0);
                self.end_operands(node, 2..3, moved);
                self.end_operands(node, 0..2, false);
                return true;
            }
        }
        self.end_operands(node, 0..args.len(), false);
        true
    }

    /// Returns where an operand is that a container keeps, and whether it is moved there: a value that dies at the node,
    /// and is no other operand of it, need not be counted.
    pub(super) fn stored(&mut self, node: NodeId, index: usize) -> (Operand, bool) {
        let value = self.graph.operand(node, index);
        let occurs_once = self.graph.operands(node).filter(|other| *other == value).count() == 1;
        match self.own_register(value) {
            Some(r) if occurs_once && self.live.is_last_use(node, index) => (Operand::take(r), true),
            _ => (self.peek(value), false),
        }
    }

    fn list_append(&mut self, node: NodeId, list: ValueId, value: ValueId) -> bool {
        let Some((kind, _)) = self.list_kind(list) else { return false };
        let results = self.graph.results(node).any(|r| self.graph.use_count(r) != 0);
        if results || kind_of(self.graph.ty(value)) != kind {
            return false;
        }
        let to = self.peek(list);
        match kind {
            Some(kind) => {
                let word = self.as_word(value, kind, node);
                let op = match kind {
                    ScalarKind::Int => Opcode::AppendI,
                    ScalarKind::Float => Opcode::AppendF,
                    ScalarKind::Bool => Opcode::AppendB,
                };
                self.push(node, op, to.0, word, 0);
            }
            None => {
                let (operand, moved) = self.stored(node, 1);
                self.push(node, Opcode::AppendV, to.0, operand.0, 0);
                self.end_operands(node, 1..2, moved);
                self.end_operands(node, 0..1, false);
                return true;
            }
        }
        self.end_operands(node, 0..2, false);
        true
    }

    /// Returns the previous instruction if it reads a list from a list for the next instruction only.
    fn row_before(&self, list: ValueId) -> Option<Instr> {
        let before = self.before().filter(|before| before.op == Opcode::ListGetV)?;
        let follows = self.nodes.last() == Some(&self.graph.def(list)) && self.graph.use_count(list) == 1;
        (follows && self.loc[list] == Loc::Value(before.a)).then_some(before)
    }

    /// Precedes the read of a list (`outer`) and of its element, from position `start`, by an instruction that does both
    /// without counting a reference to the inner list.
    fn nested_get(
        &mut self,
        node: NodeId,
        start: usize,
        outer: Instr,
        (dest, inner, kind): (u32, u8, ScalarKind),
    ) {
        let skipped = self.instrs.len() + 1 - start;
        let Some(field) = u8::try_from(skipped << 2).ok() else { return };
        let at = start - 1;
        let both = Instr {
            op: Opcode::ListGetNested,
            a: dest,
            b: outer.b,
            c: outer.c,
            d: inner,
            e: field | kind as u8,
        };
        self.instrs.insert(at, both);
        self.nodes.insert(at, node);
    }

    // --- attributes ------------------------------------------------------------------------------------------------

    fn slot_of(&self, node: NodeId) -> Option<u32> {
        let class = self.graph.ty(self.graph.operand(node, 0));
        let name = resolve::name_attr(self.graph, node).ok()?;
        matches!(class.kind(), TypeKind::Class(_)).then(|| self.callees.slot(class, name))?.map(|s| s as u32)
    }

    fn get_slot(&mut self, node: NodeId) -> bool {
        let (object, result) = (self.graph.operand(node, 0), self.graph.result(node, 0));
        let Some(slot) = self.slot_of(node) else { return false };
        if self.graph.use_count(result) == 0 {
            return false;
        }
        let from = self.peek(object);
        match (self.define(result), kind_of(self.graph.ty(result))) {
            (Loc::Word(dest), Some(kind)) => {
                self.push(node, Opcode::GetWord, dest, from.0, slot);
                self.small_fields(kind as u8, 0);
            }
            (Loc::Value(dest), _) => self.push(node, Opcode::GetSlot, dest, from.0, slot),
            _ => return false,
        }
        self.end_operands(node, 0..1, false);
        true
    }

    fn set_slot(&mut self, node: NodeId) -> bool {
        let Some(slot) = self.slot_of(node) else { return false };
        let to = self.peek(self.graph.operand(node, 0));
        let (from, moved) = self.stored(node, 1);
        self.push(node, Opcode::SetSlot, to.0, slot, from.0);
        self.end_operands(node, 1..2, moved);
        self.end_operands(node, 0..1, false);
        true
    }
}

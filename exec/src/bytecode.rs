//! Bytecode: a graph as a flat sequence of instructions over two register banks.
//!
//! - The **scalar bank** holds untagged 64-bit words: integers, bits of f64, booleans. A value is kept there if its
//!   static type is int, float or bool. The first words of a frame are the code's number constants.
//! - The **value bank** holds [`IValue`]s: everything else. A value is moved out of its register at its last use, so
//!   its memory is freed or reused as early as the program allows.
//!
//! An instruction has 16 bytes: an opcode, three 32-bit fields and two 8-bit ones. A field that may refer to either
//! bank or to a constant is an [`Operand`]. Calls of kernels and functions have any number of operands, which are in a
//! side table.

use crate::bailout::{Bailout, BailoutFailures};
use crate::counter::NodeCounter;
use crate::intrinsic::{ScalarKind, ScalarOp, TransposedProduct, for_each_operation};
use crate::kernel::Kernel;
use crate::views::ViewFunction;
use flambeau_ir::value::{IValue, ListItems};
use flambeau_ir::{Graph, NodeId, Prim, Symbol, Type};
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// Defines [`Opcode`] from the tables of operations and the instructions that are in no table. The row `IAdd(…)`, the
/// pair `IAddMul = IAdd, IMul;` and the instruction `MovS` expand to
///
/// ```text
/// pub enum Opcode { IAdd, …, IAddMul, …, MovS, … }
/// // in `of_scalar`:  ScalarOp::IAdd => Opcode::IAdd,
/// // in `kind`:       Opcode::IAdd => OpcodeKind::Scalar(ScalarOp::IAdd),
/// //                  Opcode::IAddMul => OpcodeKind::Pair([ScalarOp::IAdd, ScalarOp::IMul]),
/// //                  Opcode::MovS => OpcodeKind::Special(SpecialOpcode::MovS),
/// // in `of_pair`:    [ScalarOp::IAdd, ScalarOp::IMul] => Some(Opcode::IAddMul),
/// ```
///
/// and the other combinations as the pair does.
macro_rules! opcodes {
    ([$($(#[$doc:meta])* $special:ident,)*] {
        { $($pair:ident = $p1:ident, $p2:ident;)* }
        { $($right:ident = $r1:ident, $r2:ident;)* }
        { $($triple:ident = $t1:ident, $t2:ident, $t3:ident;)* }
        { $($test:ident = $o:ident, $compare:ident;)* }
     }
     $($name:ident($($p:ident: $t:ty),*) -> $r:ty = $body:expr;)*) => {
        /// The operation of an instruction. `a`, `b`, `c` are its 32-bit fields, `d` and `e` its 8-bit fields; `s[..]`
        /// is the scalar bank, `v[..]` the value bank.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        #[allow(missing_docs, reason = "operations and their combinations are documented in the tables of intrinsics")]
        pub enum Opcode {
            $($name,)*
            $($pair,)*
            $($right,)*
            $($triple,)*
            $($test,)*
            $($(#[$doc])* $special,)*
        }

        /// The opcodes that are in no table of operations.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs, reason = "documented as variants of `Opcode`")]
        pub enum SpecialOpcode {
            $($special,)*
        }

        /// The kind of an opcode. Code that must handle every instruction matches on it exhaustively, so that it does not compile
        /// with an opcode that it does not know.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum OpcodeKind {
            /// `s[a] = operation(s[b], s[c])`.
            Scalar(ScalarOp),
            /// `s[a] = second(first(s[b], s[c]), s[d])`; `c` is `b` if the first operation is unary.
            Pair([ScalarOp; 2]),
            /// `s[a] = second(s[d], first(s[b], s[c]))`.
            RightPair([ScalarOp; 2]),
            /// `s[a] = third(second(first(s[b], s[c]), s[d]), s[e])`.
            Triple([ScalarOp; 3]),
            /// `s[a] = operation(s[b], s[d])`; jumps to `c` if `comparison(s[a], s[e])`.
            Test([ScalarOp; 2]),
            /// An opcode of its own.
            Special(SpecialOpcode),
        }

        impl Opcode {
            /// Returns the kind of the opcode.
            pub fn kind(self) -> OpcodeKind {
                match self {
                    $(Opcode::$name => OpcodeKind::Scalar(ScalarOp::$name),)*
                    $(Opcode::$pair => OpcodeKind::Pair([ScalarOp::$p1, ScalarOp::$p2]),)*
                    $(Opcode::$right => OpcodeKind::RightPair([ScalarOp::$r1, ScalarOp::$r2]),)*
                    $(Opcode::$triple => {
                        OpcodeKind::Triple([ScalarOp::$t1, ScalarOp::$t2, ScalarOp::$t3])
                    })*
                    $(Opcode::$test => OpcodeKind::Test([ScalarOp::$o, ScalarOp::$compare]),)*
                    $(Opcode::$special => OpcodeKind::Special(SpecialOpcode::$special),)*
                }
            }

            /// Returns the opcode of a scalar operation.
            pub fn of_scalar(op: ScalarOp) -> Opcode {
                match op { $(ScalarOp::$name => Opcode::$name),* }
            }

            /// Returns the opcode of a pair, if there is one.
            pub fn of_pair(operations: [ScalarOp; 2]) -> Option<Opcode> {
                match operations {
                    $([ScalarOp::$p1, ScalarOp::$p2] => Some(Opcode::$pair),)*
                    _ => None,
                }
            }

            /// Returns the opcode of a right pair, if there is one.
            pub fn of_right_pair(operations: [ScalarOp; 2]) -> Option<Opcode> {
                match operations {
                    $([ScalarOp::$r1, ScalarOp::$r2] => Some(Opcode::$right),)*
                    _ => None,
                }
            }

            /// Returns the opcode of a triple, if there is one.
            pub fn of_triple(operations: [ScalarOp; 3]) -> Option<Opcode> {
                match operations {
                    $([ScalarOp::$t1, ScalarOp::$t2, ScalarOp::$t3] => Some(Opcode::$triple),)*
                    _ => None,
                }
            }

            /// Returns the opcode of a test by its operation and comparison, if there is one.
            pub fn of_test(operations: [ScalarOp; 2]) -> Option<Opcode> {
                match operations {
                    $([ScalarOp::$o, ScalarOp::$compare] => Some(Opcode::$test),)*
                    _ => None,
                }
            }
        }
    };
}
for_each_operation! {
    opcodes
    /// Jumps to `c`.
    Jmp,
    /// Jumps to `c` if `s[a]`.
    JTrue,
    /// Jumps to `c` if not `s[a]`.
    JFalse,
    /// Jumps to `c` if the integers `s[a] == s[b]`.
    JIEq,
    /// … `!=`.
    JINe,
    /// … `<`.
    JILt,
    /// … `<=`.
    JILe,
    /// Jumps to `c` if the f64 values `s[a] == s[b]`.
    JFEq,
    /// … not `==`.
    JFNe,
    /// … `<`.
    JFLt,
    /// … `<=`.
    JFLe,
    /// … not `<` (jumps if unordered).
    JFNlt,
    /// … not `<=` (jumps if unordered).
    JFNle,
    /// `s[a] += 1`; jumps to `c` if `s[a] < s[b]`.
    Next,
    /// The integers `s[a] += s[b]`, then `s[d] += 1`; jumps to `c` if `s[d] < s[e]`.
    IAddNext,
    /// The f64 values `s[a] += s[b]`, then as `IAddNext`.
    FAddNext,
    /// The integers `s[a] += s[b]`; jumps to `c` if the integers `s[d] == s[e]`.
    IAddJIEq,
    /// … `!=`.
    IAddJINe,
    /// … `<`.
    IAddJILt,
    /// … `<=`.
    IAddJILe,
    /// `s[a] = s[b]`.
    MovS,
    /// `s[a] = s[b]`, then `s[c] = s[d]`.
    MovPair,
    /// `v[a] = take(v[b])`.
    MovV,
    /// `v[a] = operand b`.
    Load,
    /// `s[a] = operand b`, an integer.
    UnboxI,
    /// `s[a] = operand b`, a float.
    UnboxF,
    /// `s[a] = operand b`, a bool.
    UnboxB,
    /// Clears `v[a]`.
    Drop,
    /// Adds 1 to counter `a`.
    Count,
    /// Passes `operand b` to the observer, as the value of profiling node `a`.
    Observe,
    /// `s[a]` = length of the list `operand b`.
    ListLen,
    /// `s[a]` = element `s[c]` of the list `v[b]` of integers.
    ListGetI,
    /// … of f64.
    ListGetF,
    /// … of bools.
    ListGetB,
    /// `v[a]` = element `s[c]` of the list `v[b]`.
    ListGetV,
    /// The end of a loop over the list `operand b`, whose length the loop does not change: `s[d] += 1`. If there is an element
    /// `s[d]`, `s[a]` = this element, a number of kind `e`, and jumps to `c`. The instruction before `c` reads the same element:
    /// jumps there instead in case of an error.
    ListNext,
    /// … `v[a]` = this element.
    ListNextV,
    /// The end of a loop over up to [`MAX_READS`] sequences: as `ListNext`, where `a` instructions before `c` read the elements at `s[d]` of
    /// lists, strings and dictionaries, in registers of any bank. There is a next element if all have one.
    EachNext,
    /// Element `s[b]` of the list `v[a]` of integers = `s[c]`.
    ListSetI,
    /// … of f64.
    ListSetF,
    /// … of bools.
    ListSetB,
    /// Element `s[b]` of the list `v[a]` = `operand c`.
    ListSetV,
    /// Before a loop that accesses the list `v[b]`, of numbers of kind `e`, by element only: `s[a]` = address of the elements and
    /// `s[a + 1]` = their number, or zeros if another handle may exist. Both words are the *span* `a` of the list.
    Span,
    /// `s[a]` = element `s[c]` of the list `v[d]` of integers or f64 with the span `b`; `e` is the kind of the number.
    SpanGet,
    /// … of bools.
    SpanGetB,
    /// Element `s[b]` of the list `v[d]` of integers or f64 with the span `a` = `s[c]`, a number of kind `e`.
    SpanSet,
    /// … of bools.
    SpanSetB,
    /// As [`ListNext`](Self::ListNext), over the list of integers or f64 with the span `b`; the instruction before `c` names the list.
    SpanNext,
    /// … of bools.
    SpanNextB,
    /// Appends `s[b]` to the list `v[a]` of integers.
    AppendI,
    /// … of f64.
    AppendF,
    /// … of bools.
    AppendB,
    /// Appends `operand b` to the list `v[a]`.
    AppendV,
    /// `s[a]` = whether operands `b` and `c` are identical (`is`).
    Is,
    /// `s[a]` = whether operands `b` and `c` are not identical.
    IsNot,
    /// `s[a]` = number of bytes of the string `operand b`.
    StrLen,
    /// `s[a]` = byte `s[c]` of the string `operand b`, as an integer.
    StrByte,
    /// `v[a]` = the string of byte `s[c]` of the string `operand b`: a shared one, or with [`IDENTIFIED`] in `e` a new one.
    StrGet,
    /// `s[a]` = whether the strings `operand b` and `operand c` are equal.
    StrEq,
    /// … not equal.
    StrNe,
    /// `s[a]` = position of the byte `s[c]` in the string `operand b`, or -1.
    StrFind,
    /// The end of a loop over the string `operand b`: `s[d] += 1`. If there is a byte `s[d]`, `s[a]` = this byte, and jumps to
    /// `c`. The instruction before `c` reads the same byte.
    StrNext,
    /// … `v[a]` = the string of this byte, as `StrGet`.
    StrNextV,
    /// `v[a]` = slot `c` of the object `v[b]`.
    GetSlot,
    /// Slot `b` of the object `v[a]` = `operand c`.
    SetSlot,
    /// Runs the kernel or structural operator of site `a`.
    Op,
    /// `s[a]` = element `s[d]` of the list that is element `s[c]` of the list `operand b`; the low two bits of `e`
    /// are the kind of the number. On success, skips the instructions that do the same separately; their number is
    /// in the other bits of `e`.
    ListGetNested,
    /// Tries the fast path `d` of site `a`; on success, skips the next instruction, which performs the site.
    Fast,
    /// `s[a]` = value of the integer key `s[c]` in the dictionary `v[b]`, a number of kind `d`. On success, skips the next
    /// instruction, which performs the site; so do the other instructions on dictionaries.
    DictGetI,
    /// … of the string key `operand c`.
    DictGetS,
    /// `s[a]` = whether the integer key `s[c]` is in the dictionary `v[b]`.
    DictHasI,
    /// … the string key `operand c`.
    DictHasS,
    /// Value of the integer key `s[c]` in the dictionary `v[b]` = `s[a]`, a number of kind `d`.
    DictSetI,
    /// … of the string key `operand c`.
    DictSetS,
    /// `v[a]` = the dictionary `operand b`, whose entries have positions from 0 without gaps then.
    DictSeq,
    /// `s[a]` = number of entries of the dictionary `v[b]`.
    DictLen,
    /// `s[a]` = key of the entry at position `s[c]` of the dictionary `v[b]`, or with [`DICT_VALUE`] in `e` its value, a number of
    /// kind `d`.
    DictAt,
    /// … `v[a]` = the key or value.
    DictAtV,
    /// Stores the concatenation of the string operand of site `a` with the text of the integer `s[b]` as the site's result; the
    /// text of the integer comes first if `e`. On success, skips the next four instructions, which make a string of the
    /// integer and concatenate.
    StrAddInt,
    /// `s[a]` = slot `c` of the object `operand b`, a number of kind `d`.
    GetWord,
    /// Reads an element of a 1-d tensor as a number: combines site `a` (select) and site `b` (conversion of a
    /// one-element tensor). On success, skips the next two instructions, which perform these sites separately.
    Read,
    /// Computes the product of site `a` with its second operand transposed, without a view. On success, skips the next two
    /// instructions, which make the view and multiply.
    Transposed,
    /// Makes the view of site `a` without its kernel; on success, skips the next instruction, which calls the kernel.
    View,
    /// Runs the fusion group of site `a`.
    Fused,
    /// `s[a]` = whether any operand of site `b` is a defined gradient.
    AnyDefined,
    /// Stores the first operand of site `a` as the site's result, or continues with the site's bail-out.
    BailOut,
    /// Performs the call of site `a`.
    Call,
    /// Suspends the frame until all tasks that it started are complete.
    Sync,
    /// Suspends the frame until the future `operand a` is complete.
    Join,
    /// Ends the frame with the operands of site `a` as results.
    Ret,
}

impl Opcode {
    /// Returns the scalar operation of an opcode.
    pub fn scalar(self) -> Option<ScalarOp> {
        match self.kind() {
            OpcodeKind::Scalar(op) => Some(op),
            _ => None,
        }
    }

    /// Whether the instruction computes `s[a]` from words and does nothing else.
    pub fn is_operation(self) -> bool {
        use OpcodeKind::{Pair, RightPair, Scalar, Special, Test, Triple};
        match self.kind() {
            Scalar(_) | Pair(_) | RightPair(_) | Triple(_) => true,
            Test(_) | Special(_) => false,
        }
    }

    /// Whether the instruction, which computes `s[a]` from words, may fail.
    pub(crate) fn may_fail(self) -> bool {
        use OpcodeKind::{Pair, RightPair, Scalar, Special, Test, Triple};
        match self.kind() {
            Scalar(op) | Pair([_, op]) | RightPair([_, op]) | Triple([.., op]) | Test([op, _]) => {
                op.may_fail()
            }
            Special(_) => true,
        }
    }

    /// Whether the instruction computes a condition, and may perform a test of it; see [`TESTS`].
    pub(crate) fn may_test(self) -> bool {
        use Opcode::{DictHasI, DictHasS, Is, IsNot, ListGetB, SpanGetB, StrEq, StrNe};
        matches!(self, DictHasI | DictHasS | Is | IsNot | ListGetB | SpanGetB | StrEq | StrNe)
    }

    /// Whether the next instruction may follow. Also of a call, which continues there.
    pub fn falls_through(self) -> bool {
        !matches!(self, Opcode::Jmp | Opcode::Ret)
    }

    /// Whether field `c` is a jump target.
    pub fn is_jump(self) -> bool {
        use SpecialOpcode::*;
        match self.kind() {
            OpcodeKind::Test(_) => true,
            OpcodeKind::Special(op) => matches!(
                op,
                Jmp | JTrue
                    | JFalse
                    | JIEq
                    | JINe
                    | JILt
                    | JILe
                    | JFEq
                    | JFNe
                    | JFLt
                    | JFLe
                    | JFNlt
                    | JFNle
                    | Next
                    | IAddNext
                    | FAddNext
                    | ListNext
                    | ListNextV
                    | SpanNext
                    | SpanNextB
                    | EachNext
                    | StrNext
                    | StrNextV
                    | IAddJIEq
                    | IAddJINe
                    | IAddJILt
                    | IAddJILe
            ),
            _ => false,
        }
    }
}

/// One instruction.
#[derive(Clone, Copy, Debug)]
pub struct Instr {
    /// The opcode.
    pub op: Opcode,
    /// The first field: usually the destination.
    pub a: u32,
    /// The second field.
    pub b: u32,
    /// The third field.
    pub c: u32,
    /// The fourth field: a register of the scalar bank below 256, or a number that the opcode states.
    pub d: u8,
    /// The fifth field, like `d`; of opcodes with [`Opcode::may_test`] flags.
    pub e: u8,
}

const _: () = assert!(size_of::<Instr>() == 16);

/// In field `e` of an instruction that makes the string of a byte: the identity of the string is observable, so it is a new one.
pub(crate) const IDENTIFIED: u8 = 1;
/// In field `e` of [`Opcode::DictAt`] and [`Opcode::DictAtV`]: the value of the entry, not its key.
pub(crate) const DICT_VALUE: u8 = 1;
/// In field `e` of an instruction that computes a condition: the instruction behind those that it skips tests the condition, and
/// is performed at once.
pub(crate) const TESTS: u8 = 2;

const TAG: u32 = 29;
const INDEX: u32 = (1 << TAG) - 1;

/// A source or destination of a value: 3 bits of kind, 29 bits of index. [`Operand::place`] decodes it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Operand(pub(crate) u32);

/// A decoded [`Operand`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperandSource {
    /// A copy of a register of the value bank; as a destination, that register.
    Copy(u32),
    /// The contents of a register of the value bank, which becomes `None`.
    Move(u32),
    /// A constant of the value bank.
    Const(u32),
    /// A word of the scalar bank.
    Scalar(ScalarKind, u32),
    /// No value; as a destination, drops the result.
    Nowhere,
}

impl Operand {
    pub(crate) const NONE: Operand = Operand(u32::MAX);

    fn tagged(tag: u32, index: u32) -> Operand {
        assert!(index < INDEX, "invariant: fewer than 2^29 registers");
        Operand(tag << TAG | index)
    }

    /// Returns the operand for a copy of a register, or for the register as a destination.
    pub fn copy(register: u32) -> Operand {
        Self::tagged(0, register)
    }

    /// Returns the operand that moves a value out of a register.
    pub fn take(register: u32) -> Operand {
        Self::tagged(1, register)
    }

    /// Returns the operand that copies what this operand moves.
    pub(crate) fn copied(self) -> Operand {
        if self.0 >> TAG == 1 { Operand::copy(self.0 & INDEX) } else { self }
    }

    /// Returns the operand for a constant.
    pub fn constant(index: u32) -> Operand {
        Self::tagged(2, index)
    }

    /// Returns the operand for a word of the scalar bank.
    pub fn scalar(kind: ScalarKind, register: u32) -> Operand {
        Self::tagged(3 + kind as u32, register)
    }

    /// Returns the register of the value bank that the operand refers to, if any.
    #[inline(always)]
    pub(crate) fn register(self) -> Option<u32> {
        if self.0 >> TAG <= 1 { Some(self.0 & INDEX) } else { None }
    }

    /// Decodes the operand.
    #[inline]
    pub fn place(self) -> OperandSource {
        let index = self.0 & INDEX;
        match self.0 >> TAG {
            0 => OperandSource::Copy(index),
            1 => OperandSource::Move(index),
            2 => OperandSource::Const(index),
            3 => OperandSource::Scalar(ScalarKind::Int, index),
            4 => OperandSource::Scalar(ScalarKind::Float, index),
            5 => OperandSource::Scalar(ScalarKind::Bool, index),
            _ => OperandSource::Nowhere,
        }
    }
}

/// The operation of a site.
pub(crate) enum SiteOp {
    /// A kernel.
    Kernel(Kernel),
    /// A structural operator without control flow.
    Prim(Prim),
    /// A function of the program.
    Function(Symbol),
    /// A method of the class of the first operand.
    Method(Symbol),
    /// `__enter__` of the first operand.
    Enter,
    /// `__exit__` of the object entered last.
    Exit,
    /// The subgraph, compiled at first use.
    Subgraph(Arc<Graph>, OnceLock<Arc<Code>>),
    /// The subgraph as a task.
    Fork(Box<Forked>),
    /// Evaluation of an awaitable, unless its value is available.
    Await,
    /// The subgraph instead of the rest of this frame, unless the first operand fits the type.
    BailOut(Box<Bailout>),
    /// A fused pointwise subgraph.
    Fused(Box<crate::fused::FusedGroup>),
    /// A product with the second operand transposed.
    Transposed(TransposedProduct),
    /// A view.
    View(ViewFunction),
    /// No operation: the site only holds operands.
    Nothing,
}

/// The task of a fork.
pub(crate) struct Forked {
    pub(crate) body: Arc<Graph>,
    pub(crate) code: OnceLock<Arc<Code>>,
    /// The type of the future's value.
    pub(crate) elem: Type,
    /// Whether the task may run concurrently with its frame.
    pub(crate) concurrent: bool,
}

impl SiteOp {
    /// Whether the operation needs only its arguments, not a frame.
    pub(crate) fn is_kernel(&self) -> bool {
        matches!(self, SiteOp::Kernel(_) | SiteOp::Prim(_))
    }
}

/// A call with any number of operands and results.
pub(crate) struct CallSite {
    pub(crate) work: SiteOp,
    pub(crate) node: NodeId,
    pub(crate) operands: Range<u32>,
    pub(crate) dests: Range<u32>,
}

/// Maximal number of elements that the end of a loop fetches ([`Opcode::EachNext`]), hence also of the sequences that it iterates over.
pub(crate) const MAX_READS: usize = 4;

/// A compiled graph.
pub struct Code {
    pub(crate) graph: Arc<Graph>,
    pub(crate) function: Symbol,
    pub(crate) instrs: Vec<Instr>,
    /// Per instruction, its node.
    pub(crate) nodes: Vec<NodeId>,
    pub(crate) sites: Vec<CallSite>,
    pub(crate) operands: Vec<Operand>,
    /// Number constants: the initial first words of a frame.
    pub(crate) scalars: Vec<u64>,
    pub(crate) constants: Vec<IValue>,
    /// Per constant, the elements of a list that nothing but instructions reading elements refers to: they need no lock. Empty if
    /// there is no such list.
    pub(crate) constant_items: Box<[Option<ListItems>]>,
    /// Destinations of the arguments.
    pub(crate) params: Vec<Operand>,
    /// Declared types of the inputs, up to the last that states more than the kind of value; mostly empty.
    pub(crate) declared: Box<[Type]>,
    /// Sites of bail-outs, in program order.
    pub(crate) bailouts: Box<[u32]>,
    pub(crate) failed: BailoutFailures,
    pub(crate) counters: Vec<NodeCounter>,
    /// The `prim::profile` of values.
    pub(crate) profiles: Vec<NodeId>,
    pub(crate) n_scalars: u32,
    pub(crate) n_values: u32,
    /// Maximal number of operands of a kernel's site.
    pub(crate) n_slots: u32,
}

impl Code {
    /// Returns the graph it was compiled from.
    pub fn graph(&self) -> &Arc<Graph> {
        &self.graph
    }

    /// Returns the function whose body it is; empty for a graph without function.
    pub fn function(&self) -> Symbol {
        self.function
    }

    /// Returns the instructions.
    pub fn instrs(&self) -> &[Instr] {
        &self.instrs
    }

    /// Returns the elements of an operand that is a constant list and only read, so that no lock is needed.
    #[inline(always)]
    pub(crate) fn constant_items(&self, operand: Operand) -> Option<&ListItems> {
        match operand.place() {
            OperandSource::Const(c) => self.constant_items.get(c as usize)?.as_ref(),
            _ => None,
        }
    }

    /// Returns the number of registers of a frame: words, values.
    pub fn registers(&self) -> (usize, usize) {
        (self.n_scalars as usize, self.n_values as usize)
    }

    /// Returns the heap size of the code's tables, in bytes.
    pub fn heap_bytes(&self) -> usize {
        self.instrs.capacity() * (size_of::<Instr>() + size_of::<NodeId>())
            + self.sites.capacity() * size_of::<CallSite>()
            + self.operands.capacity() * size_of::<Operand>()
            + self.scalars.capacity() * size_of::<u64>()
            + self.constants.capacity() * size_of::<IValue>()
            + self
                .constant_items
                .iter()
                .flatten()
                .map(|items| items.len() * size_of::<IValue>())
                .sum::<usize>()
    }
}

impl fmt::Debug for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.place().fmt(f)
    }
}

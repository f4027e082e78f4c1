//! The stack machine that reads pickles.
//!
//! The machine has an explicit stack and calls nothing, so nesting needs stack entries but no native stack. Every
//! opcode respects the open marks: values below the innermost mark belong to an outer construction and cannot be popped
//! by an inner one. Lengths in the stream are checked against the remaining bytes before anything is allocated.

use std::collections::BTreeMap;

use super::value::{
    CallId, DictId, GlobalId, ListId, ObjectId, Pickle, PickleId, PickledCall, PickledObject, PoolRange,
    Value,
};
use super::{Global, PickleOp, Support, allow};
use crate::error::quoted;
use crate::{ArchiveCode, ArchiveError, ArchiveLimits};

const HIGHEST_PROTOCOL: u8 = 5;

/// Reads one pickle that extends over all of `bytes`.
///
/// # Errors
///
/// Returns `A0020` to `A0029` if the pickle is invalid and `A0090` if `limits` are exceeded, with the offset of the
/// opcode in `bytes`.
pub fn read_pickle(bytes: &[u8], limits: &ArchiveLimits) -> Result<Pickle, ArchiveError> {
    if bytes.len() > limits.pickle_bytes || u32::try_from(bytes.len()).is_err() {
        return Err(ArchiveError::new(
            ArchiveCode::Limit,
            format!("pickle too large: {} bytes", bytes.len()),
        ));
    }
    let mut machine = Machine::new(bytes, limits);
    loop {
        machine.op_at = machine.at;
        match machine.step() {
            Ok(Step::Go) => {}
            Ok(Step::Stop) => return Ok(machine.out),
            Err(e) => return Err(e.at(machine.op_at as u64)),
        }
    }
}

enum Step {
    Go,
    Stop,
}

type Done = Result<(), ArchiveError>;

struct Machine<'a> {
    bytes: &'a [u8],
    limits: &'a ArchiveLimits,
    at: usize,
    op_at: usize,
    ops: u64,
    stack: Vec<PickleId>,
    /// Stack heights at the open marks, ascending.
    marks: Vec<u32>,
    memo: Memo,
    global_ids: BTreeMap<String, GlobalId>,
    out: Pickle,
}

impl<'a> Machine<'a> {
    fn new(bytes: &'a [u8], limits: &'a ArchiveLimits) -> Self {
        Machine {
            bytes,
            limits,
            at: 0,
            op_at: 0,
            ops: 0,
            stack: Vec::new(),
            marks: Vec::new(),
            memo: Memo::default(),
            global_ids: BTreeMap::new(),
            out: Pickle::empty(),
        }
    }

    fn step(&mut self) -> Result<Step, ArchiveError> {
        let byte = self.take(1)?[0];
        let Some(op) = PickleOp::from_byte(byte) else {
            return Err(ArchiveError::new(
                ArchiveCode::UnknownOpcode,
                format!("unknown opcode 0x{byte:02x}"),
            ));
        };
        if op.support() == Support::Refused {
            return Err(ArchiveError::new(
                ArchiveCode::UnsupportedOpcode,
                format!("the opcode {op} is not supported"),
            ));
        }
        self.ops += 1;
        if self.ops > self.limits.pickle_ops {
            return Err(limit(format!("more than {} opcodes", self.limits.pickle_ops)));
        }
        match op {
            PickleOp::STOP => return self.stop().map(|()| Step::Stop),
            PickleOp::PROTO => self.proto()?,
            PickleOp::FRAME => self.frame()?,
            PickleOp::MARK | PickleOp::POP | PickleOp::POP_MARK | PickleOp::DUP => self.stack_op(op)?,
            PickleOp::PUT
            | PickleOp::BINPUT
            | PickleOp::LONG_BINPUT
            | PickleOp::MEMOIZE
            | PickleOp::GET
            | PickleOp::BINGET
            | PickleOp::LONG_BINGET => {
                self.memo_op(op)?;
            }
            PickleOp::EMPTY_TUPLE
            | PickleOp::TUPLE
            | PickleOp::TUPLE1
            | PickleOp::TUPLE2
            | PickleOp::TUPLE3 => self.tuple_op(op)?,
            PickleOp::EMPTY_LIST | PickleOp::LIST | PickleOp::APPEND | PickleOp::APPENDS => {
                self.list_op(op)?
            }
            PickleOp::EMPTY_DICT | PickleOp::DICT | PickleOp::SETITEM | PickleOp::SETITEMS => {
                self.dict_op(op)?
            }
            PickleOp::GLOBAL | PickleOp::STACK_GLOBAL => self.global_op(op)?,
            PickleOp::REDUCE => self.reduce()?,
            PickleOp::NEWOBJ => self.new_object()?,
            PickleOp::BUILD => self.build()?,
            PickleOp::BINPERSID | PickleOp::PERSID => self.persistent(op)?,
            _ => self.literal(op)?,
        }
        Ok(Step::Go)
    }

    // Control opcodes.

    fn proto(&mut self) -> Done {
        let protocol = self.take(1)?[0];
        if self.op_at != 0 {
            return Err(ArchiveError::new(
                ArchiveCode::Protocol,
                "the opcode PROTO is not the first one of the pickle",
            ));
        }
        if protocol > HIGHEST_PROTOCOL {
            return Err(ArchiveError::new(ArchiveCode::Protocol, format!("protocol {protocol} is unknown")));
        }
        Ok(())
    }

    /// Frames are a hint for readers of streams. Here a frame must only end inside the pickle.
    fn frame(&mut self) -> Done {
        let len = self.u64()?;
        match usize::try_from(len).ok().filter(|&n| n <= self.bytes.len() - self.at) {
            Some(_) => Ok(()),
            None => Err(ends(format!("a frame of {len} bytes"))),
        }
    }

    fn stop(&mut self) -> Done {
        if self.stack.len() != 1 || !self.marks.is_empty() {
            let message =
                format!("the pickle ends with {} values and {} marks", self.stack.len(), self.marks.len());
            return Err(ArchiveError::new(ArchiveCode::Stack, message));
        }
        if self.at != self.bytes.len() {
            let left = self.bytes.len() - self.at;
            return Err(ArchiveError::new(
                ArchiveCode::Trailing,
                format!("{left} bytes follow the end of the pickle"),
            ));
        }
        self.out.root = self.stack[0];
        Ok(())
    }

    fn stack_op(&mut self, op: PickleOp) -> Done {
        match op {
            PickleOp::MARK => self.marks.push(self.stack.len() as u32),
            PickleOp::POP if self.marks.last().is_some_and(|&m| m as usize == self.stack.len()) => {
                self.marks.pop();
            }
            PickleOp::POP => {
                self.pop()?;
            }
            PickleOp::POP_MARK => {
                let from = self.mark()?;
                self.stack.truncate(from);
            }
            _ => {
                let top = self.top()?;
                self.stack.push(top);
            }
        }
        Ok(())
    }

    fn memo_op(&mut self, op: PickleOp) -> Done {
        let index = match op {
            PickleOp::PUT | PickleOp::GET => self.decimal_index()?,
            PickleOp::BINPUT | PickleOp::BINGET => u32::from(self.take(1)?[0]),
            PickleOp::LONG_BINPUT | PickleOp::LONG_BINGET => self.u32()?,
            _ => self.memo.len as u32,
        };
        if matches!(op, PickleOp::GET | PickleOp::BINGET | PickleOp::LONG_BINGET) {
            let id = self.memo.get(index).ok_or_else(|| {
                ArchiveError::new(ArchiveCode::Memo, format!("memo entry {index} was never written"))
            })?;
            self.stack.push(id);
        } else {
            let id = self.top()?;
            self.memo.put(index, id);
            if self.memo.len > self.limits.memo_entries {
                return Err(limit(format!("more than {} memo entries", self.limits.memo_entries)));
            }
        }
        Ok(())
    }

    // Containers.

    fn tuple_op(&mut self, op: PickleOp) -> Done {
        let count = match op {
            PickleOp::EMPTY_TUPLE => 0,
            PickleOp::TUPLE1 => 1,
            PickleOp::TUPLE2 => 2,
            PickleOp::TUPLE3 => 3,
            _ => {
                let from = self.mark()?;
                self.stack.len() - from
            }
        };
        let from =
            self.stack.len().checked_sub(count).filter(|&f| f >= self.floor()).ok_or_else(underflow)?;
        let start =
            u32::try_from(self.out.items.len()).map_err(|_| limit("more than 2^32 tuple items".into()))?;
        self.out.items.extend_from_slice(&self.stack[from..]);
        self.stack.truncate(from);
        self.push(Value::Tuple(PoolRange { start, len: count as u32 }))
    }

    fn list_op(&mut self, op: PickleOp) -> Done {
        match op {
            PickleOp::EMPTY_LIST | PickleOp::LIST => {
                let from = if op == PickleOp::LIST { self.mark()? } else { self.stack.len() };
                let items = self.stack.split_off(from);
                let id = ListId::new(self.out.lists.len());
                self.out.lists.push(items);
                self.push(Value::List(id))
            }
            _ => {
                let from = if op == PickleOp::APPENDS { self.mark()? } else { self.top_height()? };
                let target = self.target(from)?;
                let Value::List(list) = self.out.get(target) else {
                    return Err(self.operand(op, "a list", target));
                };
                self.out.lists[list.index()].extend_from_slice(&self.stack[from..]);
                self.stack.truncate(from);
                Ok(())
            }
        }
    }

    fn dict_op(&mut self, op: PickleOp) -> Done {
        let from = match op {
            PickleOp::EMPTY_DICT => self.stack.len(),
            PickleOp::DICT | PickleOp::SETITEMS => self.mark()?,
            _ => self.stack.len().checked_sub(2).filter(|&f| f >= self.floor()).ok_or_else(underflow)?,
        };
        if !(self.stack.len() - from).is_multiple_of(2) {
            return Err(ArchiveError::new(ArchiveCode::Stack, format!("{op} has a key without a value")));
        }
        let dict = if matches!(op, PickleOp::EMPTY_DICT | PickleOp::DICT) {
            self.out.dicts.push(Vec::new());
            DictId::new(self.out.dicts.len() - 1)
        } else {
            let target = self.target(from)?;
            match self.out.get(target) {
                Value::Dict(dict) => dict,
                Value::Call(call) if self.is_ordered_dict(call) => {
                    let next = DictId::new(self.out.dicts.len());
                    let dict = *self.out.ordered.entry(call).or_insert(next);
                    if dict == next {
                        self.out.dicts.push(Vec::new());
                    }
                    dict
                }
                _ => return Err(self.operand(op, "a dict", target)),
            }
        };
        let pairs = self.stack[from..].chunks_exact(2).map(|pair| (pair[0], pair[1]));
        self.out.dicts[dict.index()].extend(pairs);
        self.stack.truncate(from);
        if matches!(op, PickleOp::EMPTY_DICT | PickleOp::DICT) {
            self.push(Value::Dict(dict))
        } else {
            Ok(())
        }
    }

    fn is_ordered_dict(&self, call: CallId) -> bool {
        *self.out.global(self.out.call(call).function) == Global::OrderedDict
    }

    // Names, calls and objects.

    fn global_op(&mut self, op: PickleOp) -> Done {
        let (module, name) = if op == PickleOp::GLOBAL {
            let module = self.line()?;
            let name = self.line()?;
            (utf8(module)?.to_owned(), utf8(name)?.to_owned())
        } else {
            let name = self.pop()?;
            let module = self.pop()?;
            match (self.out.as_text(module), self.out.as_text(name)) {
                (Some(m), Some(n)) => (m.to_owned(), n.to_owned()),
                _ => return Err(self.operand(op, "two strings", module)),
            }
        };
        let key = format!("{module}\n{name}");
        let id = match self.global_ids.get(&key) {
            Some(&id) => id,
            None => {
                let global = allow::look_up(&module, &name).ok_or_else(|| {
                    let shown = quoted(&format!("{module}.{name}"));
                    ArchiveError::new(
                        ArchiveCode::Global,
                        format!("the pickle names {shown}, which is not allowed"),
                    )
                })?;
                let id = GlobalId::new(self.out.globals.len());
                self.out.globals.push(global);
                self.global_ids.insert(key, id);
                id
            }
        };
        self.push(Value::Global(id))
    }

    fn reduce(&mut self) -> Done {
        let args = self.pop()?;
        let target = self.pop()?;
        let Value::Global(function) = self.out.get(target) else {
            return Err(self.operand(PickleOp::REDUCE, "a global", target));
        };
        let global = self.out.global(function);
        if !global.is_callable() {
            return Err(self.operand(PickleOp::REDUCE, "a callable global", target));
        }
        let bare_value = matches!(global, Global::Class(_));
        if !bare_value && !matches!(self.out.get(args), Value::Tuple(_)) {
            return Err(self.operand(PickleOp::REDUCE, "a tuple of arguments", args));
        }
        let id = CallId::new(self.out.calls.len());
        self.out.calls.push(PickledCall { function, args });
        self.push(Value::Call(id))
    }

    fn new_object(&mut self) -> Done {
        let args = self.pop()?;
        let target = self.pop()?;
        if self.out.as_tuple(args).is_none_or(|items| !items.is_empty()) {
            return Err(self.operand(PickleOp::NEWOBJ, "an empty tuple of arguments", args));
        }
        let Value::Global(class) = self.out.get(target) else {
            return Err(self.operand(PickleOp::NEWOBJ, "a class", target));
        };
        if !matches!(self.out.global(class), Global::Class(_)) {
            return Err(self.operand(PickleOp::NEWOBJ, "a class of the archive", target));
        }
        let id = ObjectId::new(self.out.objects.len());
        self.out.objects.push(PickledObject { class, state: None });
        self.push(Value::Object(id))
    }

    fn build(&mut self) -> Done {
        let state = self.pop()?;
        let target = self.top()?;
        let object = match self.out.get(target) {
            Value::Object(object) => object,
            // Attributes of an ordered dict (`_metadata` of a state dict) are ignored.
            Value::Call(call) if self.is_ordered_dict(call) => return Ok(()),
            _ => return Err(self.operand(PickleOp::BUILD, "an object", target)),
        };
        let slot = &mut self.out.objects[object.index()].state;
        if slot.is_some() {
            return Err(ArchiveError::new(ArchiveCode::Operand, "an object is built twice"));
        }
        *slot = Some(state);
        Ok(())
    }

    fn persistent(&mut self, op: PickleOp) -> Done {
        if op == PickleOp::PERSID {
            let text = self.line()?;
            let text = utf8(text)?;
            let span = self.intern_text(text)?;
            self.push(Value::Text(span))?;
        }
        let id = self.pop()?;
        self.push(Value::Persistent(id))
    }

    // Literals.

    fn literal(&mut self, op: PickleOp) -> Done {
        let value = match op {
            PickleOp::NONE => Value::None,
            PickleOp::NEWTRUE => Value::Bool(true),
            PickleOp::NEWFALSE => Value::Bool(false),
            PickleOp::BININT => Value::Int(i64::from(self.u32()?.cast_signed())),
            PickleOp::BININT1 => Value::Int(i64::from(self.take(1)?[0])),
            PickleOp::BININT2 => Value::Int(i64::from(u16::from_le_bytes(self.array()?))),
            PickleOp::LONG1 => {
                let len = usize::from(self.take(1)?[0]);
                Value::Int(long(self.take(len)?)?)
            }
            PickleOp::LONG4 => {
                let len = self.u32()?.cast_signed();
                let len = usize::try_from(len).map_err(|_| bad_literal("an int of negative length"))?;
                Value::Int(long(self.take(len)?)?)
            }
            PickleOp::INT | PickleOp::LONG => decimal(self.line()?)?,
            PickleOp::FLOAT => Value::Float(float(self.line()?)?),
            PickleOp::BINFLOAT => Value::Float(f64::from_be_bytes(self.array()?)),
            PickleOp::UNICODE => {
                let line = self.line()?;
                let text = raw_unicode_escape(line)?;
                Value::Text(self.intern_text(&text)?)
            }
            PickleOp::SHORT_BINUNICODE | PickleOp::BINUNICODE | PickleOp::BINUNICODE8 => {
                let bytes = self.counted(op)?;
                Value::Text(self.intern_text(utf8(bytes)?)?)
            }
            PickleOp::SHORT_BINBYTES | PickleOp::BINBYTES | PickleOp::BINBYTES8 => {
                let bytes = self.counted(op)?;
                let start = self.out.blob.len() as u32;
                self.out.blob.extend_from_slice(bytes);
                Value::Bytes(PoolRange { start, len: bytes.len() as u32 })
            }
            other => {
                return Err(ArchiveError::new(
                    ArchiveCode::UnsupportedOpcode,
                    format!("the opcode {other} is not supported"),
                ));
            }
        };
        self.push(value)
    }

    /// Reads the bytes of a string with a length prefix of one, four or eight bytes.
    fn counted(&mut self, op: PickleOp) -> Result<&'a [u8], ArchiveError> {
        let len = match op {
            PickleOp::SHORT_BINUNICODE | PickleOp::SHORT_BINBYTES => u64::from(self.take(1)?[0]),
            PickleOp::BINUNICODE | PickleOp::BINBYTES => u64::from(self.u32()?),
            _ => self.u64()?,
        };
        match usize::try_from(len) {
            Ok(n) if n <= self.limits.text_bytes => self.take(n),
            Ok(n) if n <= self.bytes.len() - self.at => Err(limit(format!("string too long: {n} bytes"))),
            _ => Err(ends(format!("a string of {len} bytes"))),
        }
    }

    /// Appends `text` to the pool. The pool is at most twice as long as the pickle.
    fn intern_text(&mut self, text: &str) -> Result<PoolRange, ArchiveError> {
        let start = u32::try_from(self.out.text.len()).map_err(|_| limit("4 GiB of text".into()))?;
        let len = u32::try_from(text.len()).map_err(|_| limit("4 GiB of text".into()))?;
        self.out.text.push_str(text);
        Ok(PoolRange { start, len })
    }

    // The stack.

    fn push(&mut self, value: Value) -> Done {
        let id = PickleId::new(self.out.values.len());
        self.out.values.push(value);
        self.out.offsets.push(self.op_at as u32);
        self.stack.push(id);
        Ok(())
    }

    /// Returns the stack height of the innermost mark; values below it belong to an outer construction.
    fn floor(&self) -> usize {
        self.marks.last().map_or(0, |&m| m as usize)
    }

    fn top(&self) -> Result<PickleId, ArchiveError> {
        self.stack[self.floor()..].last().copied().ok_or_else(underflow)
    }

    fn pop(&mut self) -> Result<PickleId, ArchiveError> {
        let top = self.top()?;
        self.stack.pop();
        Ok(top)
    }

    /// Removes the innermost mark and returns its stack height.
    fn mark(&mut self) -> Result<usize, ArchiveError> {
        let mark =
            self.marks.pop().ok_or_else(|| ArchiveError::new(ArchiveCode::Stack, "no mark on the stack"))?;
        Ok(mark as usize)
    }

    /// Returns the height of the top of the stack, from which one value is popped.
    fn top_height(&self) -> Result<usize, ArchiveError> {
        self.top().map(|_| self.stack.len() - 1)
    }

    /// Returns the value below height `from`, the container that the values above are added to.
    fn target(&self, from: usize) -> Result<PickleId, ArchiveError> {
        from.checked_sub(1).filter(|&i| i >= self.floor()).map(|i| self.stack[i]).ok_or_else(underflow)
    }

    fn operand(&self, op: PickleOp, wanted: &str, got: PickleId) -> ArchiveError {
        ArchiveError::new(
            ArchiveCode::Operand,
            format!("{op} expects {wanted}, but found {}", self.out.get(got).kind()),
        )
    }

    // The bytes.

    fn take(&mut self, count: usize) -> Result<&'a [u8], ArchiveError> {
        let rest = &self.bytes[self.at..];
        let Some(taken) = rest.get(..count) else {
            return Err(ends(format!("{count} more bytes are needed, {} are left", rest.len())));
        };
        self.at += count;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], ArchiveError> {
        let taken = self.take(N)?;
        Ok(taken.try_into().expect("invariant: take returns as many bytes as asked"))
    }

    fn u32(&mut self) -> Result<u32, ArchiveError> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, ArchiveError> {
        self.array().map(u64::from_le_bytes)
    }

    /// Reads the bytes up to the end of the line and skips the line end.
    fn line(&mut self) -> Result<&'a [u8], ArchiveError> {
        let rest = &self.bytes[self.at..];
        let len = rest.iter().position(|&b| b == b'\n').ok_or_else(|| ends("a line has no end".into()))?;
        if len > self.limits.text_bytes {
            return Err(limit(format!("line too long: {len} bytes")));
        }
        self.at += len + 1;
        Ok(rest[..len].strip_suffix(b"\r").unwrap_or(&rest[..len]))
    }

    fn decimal_index(&mut self) -> Result<u32, ArchiveError> {
        let line = self.line()?;
        let digits = std::str::from_utf8(line).ok().filter(|s| !s.starts_with('+'));
        digits.and_then(|s| s.parse().ok()).ok_or_else(|| bad_literal("a memo index is not a number"))
    }
}

/// The memo. Picklers number entries from 0 without gaps, so these are in a vector. Other indices are in a map, so that
/// an index of four billion costs one entry.
#[derive(Default)]
struct Memo {
    dense: Vec<PickleId>,
    sparse: BTreeMap<u32, PickleId>,
    len: usize,
}

impl Memo {
    fn get(&self, index: u32) -> Option<PickleId> {
        self.dense.get(index as usize).or_else(|| self.sparse.get(&index)).copied()
    }

    fn put(&mut self, index: u32, id: PickleId) {
        let at = index as usize;
        if at < self.dense.len() {
            self.dense[at] = id;
        } else if at == self.dense.len() && !self.sparse.contains_key(&index) {
            self.dense.push(id);
            self.len += 1;
        } else if self.sparse.insert(index, id).is_none() {
            self.len += 1;
        }
    }
}

/// Decodes a little-endian two's complement integer of any length that fits 64 bits.
fn long(bytes: &[u8]) -> Result<i64, ArchiveError> {
    let (low, high) = bytes.split_at(bytes.len().min(8));
    let negative = bytes.last().is_some_and(|&b| b >= 0x80);
    let fill = if negative { 0xff } else { 0 };
    let mut word = [fill; 8];
    word[..low.len()].copy_from_slice(low);
    let value = i64::from_le_bytes(word);
    if high.iter().any(|&b| b != fill) || (value < 0) != negative {
        return Err(bad_literal("an int does not fit 64 bits"));
    }
    Ok(value)
}

/// Parses the text form of an integer, or of the booleans `00` and `01` of protocol 0.
fn decimal(line: &[u8]) -> Result<Value, ArchiveError> {
    match line {
        b"00" => return Ok(Value::Bool(false)),
        b"01" => return Ok(Value::Bool(true)),
        _ => {}
    }
    let text = std::str::from_utf8(line).map_err(|_| bad_literal("an int is not a number"))?;
    let text = text.strip_suffix('L').unwrap_or(text);
    text.parse().map(Value::Int).map_err(|_| bad_literal("an int is not a number of 64 bits"))
}

fn float(line: &[u8]) -> Result<f64, ArchiveError> {
    let text = std::str::from_utf8(line).ok();
    text.and_then(|t| t.parse().ok()).ok_or_else(|| bad_literal("a float is not a number"))
}

/// Decodes a string of protocol 0: `\uXXXX` and `\UXXXXXXXX` are escapes, every other byte is the character of its
/// number.
fn raw_unicode_escape(line: &[u8]) -> Result<String, ArchiveError> {
    let bad = || bad_literal("a string has a broken escape");
    let mut out = String::with_capacity(line.len());
    let mut at = 0;
    while at < line.len() {
        let digits = match &line[at..] {
            [b'\\', b'u', ..] => 4,
            [b'\\', b'U', ..] => 8,
            [byte, ..] => {
                out.push(char::from(*byte));
                at += 1;
                continue;
            }
            [] => break,
        };
        let hex = line.get(at + 2..at + 2 + digits).ok_or_else(bad)?;
        let hex = std::str::from_utf8(hex)
            .ok()
            .filter(|h| h.bytes().all(|b| b.is_ascii_hexdigit()))
            .ok_or_else(bad)?;
        let code = u32::from_str_radix(hex, 16).map_err(|_| bad())?;
        out.push(char::from_u32(code).ok_or_else(bad)?);
        at += 2 + digits;
    }
    Ok(out)
}

fn utf8(bytes: &[u8]) -> Result<&str, ArchiveError> {
    std::str::from_utf8(bytes).map_err(|_| bad_literal("a string is not UTF-8"))
}

fn bad_literal(message: &str) -> ArchiveError {
    ArchiveError::new(ArchiveCode::Literal, message)
}

fn underflow() -> ArchiveError {
    ArchiveError::new(ArchiveCode::Stack, "too few values on the stack")
}

fn ends(message: String) -> ArchiveError {
    ArchiveError::new(ArchiveCode::PickleEnd, format!("the pickle ends too early: {message}"))
}

fn limit(message: String) -> ArchiveError {
    ArchiveError::new(ArchiveCode::Limit, message)
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;

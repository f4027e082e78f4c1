//! A writer of pickles in the format of PyTorch: protocol 2, with strings and globals memoized by value.
//!
//! The interface is at the level of single opcodes; the layout of a module in a pickle is defined by the caller. The
//! output is deterministic. Memo entries are numbered in creation order, as in Python's pickler.

use std::collections::BTreeMap;

use super::PickleOp;

/// A memo entry, which can be recalled by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MemoId(u32);

/// Appends opcodes to a pickle.
#[derive(Debug)]
pub struct PickleWriter {
    out: Vec<u8>,
    remembered: u32,
    texts: BTreeMap<String, MemoId>,
    globals: BTreeMap<(String, String), MemoId>,
}

impl Default for PickleWriter {
    fn default() -> Self {
        PickleWriter::new()
    }
}

impl PickleWriter {
    /// Creates an empty pickle of protocol 2.
    pub fn new() -> Self {
        PickleWriter {
            out: vec![PickleOp::PROTO as u8, 2],
            remembered: 0,
            texts: BTreeMap::new(),
            globals: BTreeMap::new(),
        }
    }

    /// Pushes `None`.
    pub fn none(&mut self) {
        self.op(PickleOp::NONE);
    }

    /// Pushes a boolean.
    pub fn bool(&mut self, value: bool) {
        self.op(if value { PickleOp::NEWTRUE } else { PickleOp::NEWFALSE });
    }

    /// Pushes an integer in the shortest form that PyTorch uses.
    pub fn int(&mut self, value: i64) {
        if let Ok(byte) = u8::try_from(value) {
            self.op_with(PickleOp::BININT1, &[byte]);
        } else if let Ok(short) = u16::try_from(value) {
            self.op_with(PickleOp::BININT2, &short.to_le_bytes());
        } else if let Ok(word) = i32::try_from(value) {
            self.op_with(PickleOp::BININT, &word.to_le_bytes());
        } else {
            self.op_with(PickleOp::LONG1, &[8]);
            self.out.extend_from_slice(&value.to_le_bytes());
        }
    }

    /// Pushes a float.
    pub fn float(&mut self, value: f64) {
        self.op_with(PickleOp::BINFLOAT, &value.to_be_bytes());
    }

    /// Pushes a string; a repeated string is recalled from the memo.
    pub fn text(&mut self, value: &str) {
        if let Some(&id) = self.texts.get(value) {
            return self.recall(id);
        }
        match u32::try_from(value.len()) {
            Ok(len) => self.op_with(PickleOp::BINUNICODE, &len.to_le_bytes()),
            Err(_) => self.op_with(PickleOp::BINUNICODE8, &(value.len() as u64).to_le_bytes()),
        }
        self.out.extend_from_slice(value.as_bytes());
        let id = self.remember();
        self.texts.insert(value.to_owned(), id);
    }

    /// Pushes a global; a repeated global is recalled from the memo.
    pub fn global(&mut self, module: &str, name: &str) {
        let key = (module.to_owned(), name.to_owned());
        if let Some(&id) = self.globals.get(&key) {
            return self.recall(id);
        }
        self.op_with(PickleOp::GLOBAL, module.as_bytes());
        self.out.push(b'\n');
        self.out.extend_from_slice(name.as_bytes());
        self.out.push(b'\n');
        let id = self.remember();
        self.globals.insert(key, id);
    }

    /// Pushes a class of the archive's code, by qualified name.
    pub fn class(&mut self, qualified: &str) {
        let (module, name) = qualified.rsplit_once('.').unwrap_or(("__torch__", qualified));
        self.global(module, name);
    }

    /// Stores the top of the stack in a new memo entry.
    pub fn remember(&mut self) -> MemoId {
        let id = self.remembered;
        self.remembered += 1;
        match u8::try_from(id) {
            Ok(byte) => self.op_with(PickleOp::BINPUT, &[byte]),
            Err(_) => self.op_with(PickleOp::LONG_BINPUT, &id.to_le_bytes()),
        }
        MemoId(id)
    }

    /// Pushes the value of a memo entry.
    pub fn recall(&mut self, id: MemoId) {
        match u8::try_from(id.0) {
            Ok(byte) => self.op_with(PickleOp::BINGET, &[byte]),
            Err(_) => self.op_with(PickleOp::LONG_BINGET, &id.0.to_le_bytes()),
        }
    }

    /// Pushes a mark, which starts a tuple or the items of a list or dict.
    pub fn mark(&mut self) {
        self.op(PickleOp::MARK);
    }

    /// Replaces everything above the mark by a tuple.
    pub fn tuple(&mut self) {
        self.op(PickleOp::TUPLE);
    }

    /// Replaces the last `count` values by a tuple, without a mark.
    ///
    /// # Panics
    ///
    /// Panics if `count` is above 3.
    pub fn short_tuple(&mut self, count: usize) {
        let ops = [PickleOp::EMPTY_TUPLE, PickleOp::TUPLE1, PickleOp::TUPLE2, PickleOp::TUPLE3];
        self.op(ops[count]);
    }

    /// Pushes an empty list.
    pub fn empty_list(&mut self) {
        self.op(PickleOp::EMPTY_LIST);
    }

    /// Appends everything above the mark to the list below it.
    pub fn appends(&mut self) {
        self.op(PickleOp::APPENDS);
    }

    /// Pushes an empty dict.
    pub fn empty_dict(&mut self) {
        self.op(PickleOp::EMPTY_DICT);
    }

    /// Adds the keys and values above the mark to the dict below it.
    pub fn set_items(&mut self) {
        self.op(PickleOp::SETITEMS);
    }

    /// Calls the global below the top with the argument tuple on top.
    pub fn reduce(&mut self) {
        self.op(PickleOp::REDUCE);
    }

    /// Replaces the class on top of the stack by an instance. The state is pushed next, then [`PickleWriter::build`] is
    /// called.
    pub fn new_object(&mut self) {
        self.op(PickleOp::EMPTY_TUPLE);
        self.op(PickleOp::NEWOBJ);
    }

    /// Sets the value on top as the state of the object below it.
    pub fn build(&mut self) {
        self.op(PickleOp::BUILD);
    }

    /// Replaces the persistent id on top by a persistent reference.
    pub fn persistent(&mut self) {
        self.op(PickleOp::BINPERSID);
    }

    /// Ends the pickle and returns its bytes.
    pub fn finish(mut self) -> Vec<u8> {
        self.op(PickleOp::STOP);
        self.out
    }

    fn op(&mut self, op: PickleOp) {
        self.out.push(op as u8);
    }

    fn op_with(&mut self, op: PickleOp, bytes: &[u8]) {
        self.out.push(op as u8);
        self.out.extend_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Global, Pickle, Value, read_pickle};
    use super::*;
    use crate::ArchiveLimits;
    use crate::zip::ZipReader;

    #[test]
    fn an_empty_constant_table_is_pytorchs() {
        let mut w = PickleWriter::new();
        w.short_tuple(0);
        assert_eq!(w.finish(), b"\x80\x02).");
    }

    #[test]
    fn numbers_come_back() {
        let ints =
            [0, 255, 256, 65535, 65536, -1, i64::from(i32::MIN), i64::from(i32::MAX) + 1, i64::MIN, i64::MAX];
        let floats = [0.0, -0.0, 1e300, f64::INFINITY];
        let mut w = PickleWriter::new();
        w.mark();
        ints.iter().for_each(|&i| w.int(i));
        floats.iter().for_each(|&f| w.float(f));
        w.tuple();
        let p = read_pickle(&w.finish(), &ArchiveLimits::default()).expect("a pickle");
        let items = p.as_tuple(p.root()).expect("a tuple");
        for (&id, int) in items.iter().zip(ints) {
            assert_eq!(p.get(id), Value::Int(int));
        }
        for (&id, float) in items[ints.len()..].iter().zip(floats) {
            let Value::Float(f) = p.get(id) else { panic!("a float") };
            assert_eq!(f.to_bits(), float.to_bits());
        }
    }

    #[test]
    fn more_than_a_byte_of_memo() {
        let mut w = PickleWriter::new();
        w.mark();
        (0..300).for_each(|i| w.text(&format!("s{i}")));
        w.text("s299");
        w.text("s3");
        w.tuple();
        let p = read_pickle(&w.finish(), &ArchiveLimits::default()).expect("a pickle");
        let items = p.as_tuple(p.root()).expect("a tuple");
        assert_eq!((items[300], items[301]), (items[299], items[3]));
    }

    /// Writes a pickle of PyTorch again in its conventions. Test data is shallow, so this may recurse.
    fn rewrite(
        p: &Pickle,
        id: super::super::PickleId,
        w: &mut PickleWriter,
        seen: &mut BTreeMap<usize, MemoId>,
    ) {
        if let Some(&memo) = seen.get(&id.index()) {
            return w.recall(memo);
        }
        match p.get(id) {
            Value::None => w.none(),
            Value::Bool(b) => w.bool(b),
            Value::Int(i) => w.int(i),
            Value::Float(f) => w.float(f),
            Value::Text(s) => w.text(p.text(s)),
            Value::Bytes(_) => panic!("PyTorch writes none"),
            Value::Tuple(s) => {
                let items = p.tuple(s);
                // All nonempty tuples of a tensor's description are written with a mark.
                let short = items.is_empty();
                if !short {
                    w.mark();
                }
                items.iter().for_each(|&i| rewrite(p, i, w, seen));
                if short { w.short_tuple(items.len()) } else { w.tuple() }
            }
            Value::List(l) => {
                w.empty_list();
                w.mark();
                p.list(l).iter().for_each(|&i| rewrite(p, i, w, seen));
                w.appends();
            }
            Value::Dict(d) => {
                w.empty_dict();
                w.mark();
                for &(k, v) in p.dict(d) {
                    rewrite(p, k, w, seen);
                    rewrite(p, v, w, seen);
                }
                w.set_items();
            }
            Value::Global(g) => match p.global(g) {
                Global::Class(name) => w.class(name),
                Global::RebuildTensor => w.global("torch._utils", "_rebuild_tensor_v2"),
                Global::OrderedDict => w.global("collections", "OrderedDict"),
                Global::Storage(kind) => w.global("torch", &format!("{kind:?}Storage")),
                other => panic!("{other:?}"),
            },
            Value::Object(o) => {
                let object = p.object(o);
                let Global::Class(name) = p.global(object.class) else { panic!("a class") };
                w.class(name);
                w.new_object();
                rewrite(p, object.state.expect("built"), w, seen);
                w.build();
                seen.insert(id.index(), w.remember());
            }
            Value::Call(c) => {
                let call = p.call(c);
                match p.global(call.function) {
                    Global::RebuildTensor => w.global("torch._utils", "_rebuild_tensor_v2"),
                    Global::OrderedDict => w.global("collections", "OrderedDict"),
                    other => panic!("{other:?}"),
                }
                rewrite(p, call.args, w, seen);
                w.reduce();
                if *p.global(call.function) == Global::RebuildTensor {
                    seen.insert(id.index(), w.remember());
                }
            }
            Value::Persistent(inner) => {
                rewrite(p, inner, w, seen);
                w.persistent();
                seen.insert(id.index(), w.remember());
            }
        }
    }

    #[test]
    fn pytorchs_pickles_are_written_again() {
        for bytes in
            [&include_bytes!("../../tests/data/lstm.pt")[..], include_bytes!("../../tests/data/dtypes.pt")]
        {
            let zip = ZipReader::open(bytes, &ArchiveLimits::default()).expect("an archive");
            let pickle = zip.read(zip.require("data.pkl").expect("it is there")).expect("whole");
            let p = read_pickle(&pickle, &ArchiveLimits::default()).expect("a pickle");
            let mut w = PickleWriter::new();
            rewrite(&p, p.root(), &mut w, &mut BTreeMap::new());
            assert!(w.finish() == *pickle);
        }
    }
}

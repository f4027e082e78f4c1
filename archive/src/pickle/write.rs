//! Writing pickles as PyTorch writes them: protocol 2, strings and globals remembered by value.
//!
//! This is the level of single operations; what a module looks like in a pickle is decided above. The same calls give
//! the same bytes. Entries of the memo are numbered in the order they are made, as picklers do.

use std::collections::BTreeMap;

use super::Op;

/// An entry of the memo: something written before that can be written again by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MemoId(u32);

/// Appends operations to a pickle.
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
    /// An empty pickle of protocol 2.
    pub fn new() -> Self {
        PickleWriter {
            out: vec![Op::PROTO as u8, 2],
            remembered: 0,
            texts: BTreeMap::new(),
            globals: BTreeMap::new(),
        }
    }

    /// `None`.
    pub fn none(&mut self) {
        self.op(Op::NONE);
    }

    /// A boolean.
    pub fn bool(&mut self, value: bool) {
        self.op(if value { Op::NEWTRUE } else { Op::NEWFALSE });
    }

    /// An integer, in the shortest of the forms PyTorch uses.
    pub fn int(&mut self, value: i64) {
        if let Ok(byte) = u8::try_from(value) {
            self.op_with(Op::BININT1, &[byte]);
        } else if let Ok(short) = u16::try_from(value) {
            self.op_with(Op::BININT2, &short.to_le_bytes());
        } else if let Ok(word) = i32::try_from(value) {
            self.op_with(Op::BININT, &word.to_le_bytes());
        } else {
            self.op_with(Op::LONG1, &[8]);
            self.out.extend_from_slice(&value.to_le_bytes());
        }
    }

    /// A float.
    pub fn float(&mut self, value: f64) {
        self.op_with(Op::BINFLOAT, &value.to_be_bytes());
    }

    /// A string; the second time only its number in the memo.
    pub fn text(&mut self, value: &str) {
        if let Some(&id) = self.texts.get(value) {
            return self.recall(id);
        }
        match u32::try_from(value.len()) {
            Ok(len) => self.op_with(Op::BINUNICODE, &len.to_le_bytes()),
            Err(_) => self.op_with(Op::BINUNICODE8, &(value.len() as u64).to_le_bytes()),
        }
        self.out.extend_from_slice(value.as_bytes());
        let id = self.remember();
        self.texts.insert(value.to_owned(), id);
    }

    /// A global; the second time only its number in the memo.
    pub fn global(&mut self, module: &str, name: &str) {
        let key = (module.to_owned(), name.to_owned());
        if let Some(&id) = self.globals.get(&key) {
            return self.recall(id);
        }
        self.op_with(Op::GLOBAL, module.as_bytes());
        self.out.push(b'\n');
        self.out.extend_from_slice(name.as_bytes());
        self.out.push(b'\n');
        let id = self.remember();
        self.globals.insert(key, id);
    }

    /// A class of the archive's code, by qualified name.
    pub fn class(&mut self, qualified: &str) {
        let (module, name) = qualified.rsplit_once('.').unwrap_or(("__torch__", qualified));
        self.global(module, name);
    }

    /// Makes the top of the stack an entry of the memo.
    pub fn remember(&mut self) -> MemoId {
        let id = self.remembered;
        self.remembered += 1;
        match u8::try_from(id) {
            Ok(byte) => self.op_with(Op::BINPUT, &[byte]),
            Err(_) => self.op_with(Op::LONG_BINPUT, &id.to_le_bytes()),
        }
        MemoId(id)
    }

    /// What was remembered as `id`, again.
    pub fn recall(&mut self, id: MemoId) {
        match u8::try_from(id.0) {
            Ok(byte) => self.op_with(Op::BINGET, &[byte]),
            Err(_) => self.op_with(Op::LONG_BINGET, &id.0.to_le_bytes()),
        }
    }

    /// Begins a tuple, or the items of a list or dict.
    pub fn mark(&mut self) {
        self.op(Op::MARK);
    }

    /// The tuple of everything since the mark.
    pub fn tuple(&mut self) {
        self.op(Op::TUPLE);
    }

    /// The tuple of the last `count` values: 0 to 3, without a mark.
    ///
    /// # Panics
    /// If `count` is above 3.
    pub fn short_tuple(&mut self, count: usize) {
        let ops = [Op::EMPTY_TUPLE, Op::TUPLE1, Op::TUPLE2, Op::TUPLE3];
        self.op(ops[count]);
    }

    /// An empty list.
    pub fn empty_list(&mut self) {
        self.op(Op::EMPTY_LIST);
    }

    /// Adds everything since the mark to the list below it.
    pub fn appends(&mut self) {
        self.op(Op::APPENDS);
    }

    /// An empty dict.
    pub fn empty_dict(&mut self) {
        self.op(Op::EMPTY_DICT);
    }

    /// Adds the keys and values since the mark to the dict below it.
    pub fn set_items(&mut self) {
        self.op(Op::SETITEMS);
    }

    /// Calls the global below the top with the arguments on top.
    pub fn reduce(&mut self) {
        self.op(Op::REDUCE);
    }

    /// An instance of the class on top of the stack; its state is to follow, then [`PickleWriter::build`].
    pub fn new_object(&mut self) {
        self.op(Op::EMPTY_TUPLE);
        self.op(Op::NEWOBJ);
    }

    /// Gives the state on top to the object below it.
    pub fn build(&mut self) {
        self.op(Op::BUILD);
    }

    /// What the persistent id on top stands for.
    pub fn persistent(&mut self) {
        self.op(Op::BINPERSID);
    }

    /// Ends the pickle.
    pub fn finish(mut self) -> Vec<u8> {
        self.op(Op::STOP);
        self.out
    }

    fn op(&mut self, op: Op) {
        self.out.push(op as u8);
    }

    fn op_with(&mut self, op: Op, bytes: &[u8]) {
        self.out.push(op as u8);
        self.out.extend_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Global, Pickle, Value, read_pickle};
    use super::*;
    use crate::Limits;
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
        let p = read_pickle(&w.finish(), &Limits::default()).expect("a pickle");
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
        let p = read_pickle(&w.finish(), &Limits::default()).expect("a pickle");
        let items = p.as_tuple(p.root()).expect("a tuple");
        assert_eq!((items[300], items[301]), (items[299], items[3]));
    }

    /// Writes a pickle of PyTorch again by its conventions. Test data is shallow, so this may recurse.
    fn rewrite(
        p: &Pickle,
        id: super::super::ValueId,
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
                // All tuples of a tensor's description are written with a mark, but for empty ones.
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
            let zip = ZipReader::open(bytes, &Limits::default()).expect("an archive");
            let pickle = zip.read(zip.require("data.pkl").expect("it is there")).expect("whole");
            let p = read_pickle(&pickle, &Limits::default()).expect("a pickle");
            let mut w = PickleWriter::new();
            rewrite(&p, p.root(), &mut w, &mut BTreeMap::new());
            assert!(w.finish() == *pickle);
        }
    }
}

//! Tests of each opcode by itself, and of shapes that overflow careless machines.

use super::*;
use crate::Fault;

fn read(bytes: &[u8]) -> Result<Pickle, ArchiveError> {
    read_pickle(bytes, &ArchiveLimits::default())
}

/// Reads `body` followed by `STOP`.
fn ok(body: &[u8]) -> Pickle {
    let mut bytes = body.to_vec();
    bytes.push(b'.');
    read(&bytes).expect("a pickle")
}

fn fails(body: &[u8], code: ArchiveCode) -> ArchiveError {
    let mut bytes = body.to_vec();
    bytes.push(b'.');
    let e = read(&bytes).expect_err("no pickle");
    assert_eq!(e.code(), code, "{e}");
    e
}

/// Formats a value with its parts.
fn show(p: &Pickle, id: PickleId) -> String {
    let all = |ids: &[PickleId]| ids.iter().map(|&i| show(p, i)).collect::<Vec<_>>().join(" ");
    match p.get(id) {
        Value::None => "None".into(),
        Value::Bool(b) => b.to_string(),
        Value::Int(i) => i.to_string(),
        Value::Float(f) => format!("{f:?}"),
        Value::Text(s) => format!("{:?}", p.text(s)),
        Value::Bytes(s) => format!("{:?}", p.bytes(s)),
        Value::Tuple(s) => format!("({})", all(p.tuple(s))),
        Value::List(l) => format!("[{}]", all(p.list(l))),
        Value::Dict(d) => {
            let pairs: Vec<_> =
                p.dict(d).iter().map(|&(k, v)| format!("{}:{}", show(p, k), show(p, v))).collect();
            format!("{{{}}}", pairs.join(" "))
        }
        Value::Global(g) => format!("{:?}", p.global(g)),
        Value::Object(o) => {
            let object = p.object(o);
            let state = object.state.map_or("-".into(), |s| show(p, s));
            format!("object({:?}, {state})", p.global(object.class))
        }
        Value::Call(c) => format!("call({:?}, {})", p.global(p.call(c).function), show(p, p.call(c).args)),
        Value::Persistent(i) => format!("persistent({})", show(p, i)),
    }
}

fn shown(body: &[u8]) -> String {
    let p = ok(body);
    show(&p, p.root())
}

#[test]
fn literals() {
    for (body, text) in [
        (&b"N"[..], "None"),
        (b"\x88", "true"),
        (b"\x89", "false"),
        (b"I01\n", "true"),
        (b"I00\n", "false"),
        (b"I-7\n", "-7"),
        (b"K\xff", "255"),
        (b"M\x01\x02", "513"),
        (b"J\xff\xff\xff\xff", "-1"),
        (b"L123L\n", "123"),
        (b"\x8a\x00", "0"),
        (b"\x8a\x01\xff", "-1"),
        (b"\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x80", "-9223372036854775808"),
        (b"\x8a\x09\xff\xff\xff\xff\xff\xff\xff\x7f\x00", "9223372036854775807"),
        (b"\x8b\x02\x00\x00\x00\x34\x12", "4660"),
        (b"F1.5\n", "1.5"),
        (b"Fnan\n", "NaN"),
        (b"G\xbf\xf0\x00\x00\x00\x00\x00\x00", "-1.0"),
        (b"X\x02\x00\x00\x00hi", "\"hi\""),
        (b"\x8c\x02\xc3\xa9", "\"é\""),
        (b"\x8d\x01\x00\x00\x00\x00\x00\x00\x00z", "\"z\""),
        (b"Va\\u00e9\\U0001f600\xe9\\x\n", "\"aé😀é\\\\x\""),
        (b"C\x02\x00\xff", "[0, 255]"),
        (b"B\x01\x00\x00\x00\x07", "[7]"),
        (b"\x8e\x01\x00\x00\x00\x00\x00\x00\x00\x07", "[7]"),
    ] {
        assert_eq!(shown(body), text, "{body:?}");
    }
}

#[test]
fn literals_out_of_range_or_shape() {
    fails(b"\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x80\x00", ArchiveCode::Literal);
    fails(b"\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x01", ArchiveCode::Literal);
    fails(b"\x8b\xff\xff\xff\xff", ArchiveCode::Literal);
    fails(b"I12a\n", ArchiveCode::Literal);
    fails(b"L99999999999999999999L\n", ArchiveCode::Literal);
    fails(b"Fone\n", ArchiveCode::Literal);
    fails(b"X\x01\x00\x00\x00\xff", ArchiveCode::Literal);
    fails(b"V\\ud800\n", ArchiveCode::Literal);
    fails(b"V\\u+123\n", ArchiveCode::Literal);
    fails(b"X\xff\xff\xff\xffa", ArchiveCode::PickleEnd);
    fails(b"\x8d\xff\xff\xff\xff\xff\xff\xff\xffa", ArchiveCode::PickleEnd);
    fails(b"I12", ArchiveCode::PickleEnd);
}

#[test]
fn containers() {
    for (body, text) in [
        (&b")"[..], "()"),
        (b"(t", "()"),
        (b"(NN\x88t", "(None None true)"),
        (b"N\x85", "(None)"),
        (b"K\x01K\x02\x86", "(1 2)"),
        (b"K\x01K\x02K\x03\x87", "(1 2 3)"),
        (b"]", "[]"),
        (b"(K\x01l", "[1]"),
        (b"]K\x01aK\x02a", "[1 2]"),
        (b"](K\x01K\x02e", "[1 2]"),
        (b"}", "{}"),
        (b"(K\x01Nd", "{1:None}"),
        (b"}K\x01Ns", "{1:None}"),
        (b"}(K\x01NK\x02Nu", "{1:None 2:None}"),
        (b"}K\x01NsK\x01\x88s", "{1:None 1:true}"),
    ] {
        assert_eq!(shown(body), text, "{body:?}");
    }
    fails(b"NK\x01a", ArchiveCode::Operand);
    fails(b"K\x05(K\x01e", ArchiveCode::Operand);
    fails(b"NK\x01Ns", ArchiveCode::Operand);
    fails(b"}(K\x01u", ArchiveCode::Stack);
    fails(b"\x85", ArchiveCode::Stack);
    fails(b"t", ArchiveCode::Stack);
    fails(b"(N\x86", ArchiveCode::Stack);
}

#[test]
fn stack_and_memo() {
    assert_eq!(shown(b"K\x01K\x020"), "1");
    assert_eq!(shown(b"K\x01(0"), "1", "POP takes a mark that is on top");
    assert_eq!(shown(b"K\x01(NNN1"), "1");
    assert_eq!(shown(b"N2\x86"), "(None None)");
    assert_eq!(shown(b"K\x01q\x00h\x00\x86"), "(1 1)");
    assert_eq!(shown(b"K\x01p0\ng0\n\x86"), "(1 1)");
    assert_eq!(shown(b"K\x01r\xff\xff\xff\xffj\xff\xff\xff\xff\x86"), "(1 1)");
    assert_eq!(shown(b"K\x01\x94K\x02\x94h\x00h\x01\x86\x87"), "(1 2 (1 2))");
    assert_eq!(shown(b"K\x01q\x000K\x02q\x000h\x00"), "2", "a memo entry can be written again");
    fails(b"h\x07", ArchiveCode::Memo);
    fails(b"q\x00", ArchiveCode::Stack);
    fails(b"g-1\n", ArchiveCode::Literal);
    fails(b"1", ArchiveCode::Stack);
    fails(b"NN", ArchiveCode::Stack);
    fails(b"N(", ArchiveCode::Stack);
    fails(b"", ArchiveCode::Stack);
    fails(b"K\x01(\x85", ArchiveCode::Stack);
    fails(b"](a", ArchiveCode::Stack);
}

#[test]
fn names_calls_and_objects() {
    assert_eq!(shown(b"ctorch\nFloatStorage\n"), "Storage(Float)");
    assert_eq!(shown(b"\x8c\x05torch\x8c\x06device\x93"), "Device");
    assert_eq!(shown(b"ctorch\ndevice\n\x8c\x03cpu\x85R"), "call(Device, (\"cpu\"))");
    assert_eq!(shown(b"c__torch__\nColor\nK\x02R"), "call(Class(\"__torch__.Color\"), 2)");
    assert_eq!(shown(b"c__torch__\nM\n)\x81"), "object(Class(\"__torch__.M\"), -)");
    assert_eq!(shown(b"c__torch__\nM\n)\x81}b"), "object(Class(\"__torch__.M\"), {})");
    assert_eq!(shown(b"K\x07Q"), "persistent(7)");
    assert_eq!(shown(b"Pkey\n"), "persistent(\"key\")");
    let e = fails(b"cos\nsystem\n", ArchiveCode::Global);
    assert_eq!(e.to_string(), "A0026: the pickle names `os.system`, which is not allowed (byte 0)");
    fails(b"\x8c\x02os\x8c\x06system\x93", ArchiveCode::Global);
    fails(b"K\x01K\x02\x93", ArchiveCode::Operand);
    fails(b"ctorch\nFloatStorage\n)R", ArchiveCode::Operand);
    fails(b"ctorch\ndevice\nNR", ArchiveCode::Operand);
    fails(b"N)R", ArchiveCode::Operand);
    fails(b"R", ArchiveCode::Stack);
    fails(b"N)\x81", ArchiveCode::Operand);
    fails(b"ctorch\ndevice\n)\x81", ArchiveCode::Operand);
    fails(b"c__torch__\nM\nN\x85\x81", ArchiveCode::Operand);
    fails(b"N}b", ArchiveCode::Operand);
    fails(b"c__torch__\nM\n)\x81}b}b", ArchiveCode::Operand);
    fails(b"c\xff\nx\n", ArchiveCode::Literal);
}

#[test]
fn protocol_frame_and_end() {
    for protocol in 0..=5 {
        assert_eq!(shown(&[0x80, protocol, b'N']), "None");
    }
    fails(b"\x80\x06N", ArchiveCode::Protocol);
    fails(b"N\x80\x02", ArchiveCode::Protocol);
    assert_eq!(shown(b"\x80\x04\x95\x02\x00\x00\x00\x00\x00\x00\x00N"), "None");
    fails(b"\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\xffN", ArchiveCode::PickleEnd);
    assert_eq!(read(b"N.x").expect_err("more").code(), ArchiveCode::Trailing);
    assert_eq!(read(b"\x80").expect_err("cut").code(), ArchiveCode::PickleEnd);
    assert_eq!(read(b"").expect_err("nothing").code(), ArchiveCode::PickleEnd);
    assert_eq!(read(b"N").expect_err("no end").code(), ArchiveCode::PickleEnd);
    assert_eq!(read(b"\xfe.").expect_err("no operation").code(), ArchiveCode::UnknownOpcode);
}

#[test]
fn refused_operations_are_named() {
    for &op in PickleOp::ALL.iter().filter(|op| op.support() == Support::Refused) {
        let e = read(&[b'N', op as u8]).expect_err("refused");
        assert_eq!(
            (e.code(), e.fault(), e.offset()),
            (ArchiveCode::UnsupportedOpcode, Fault::Unsupported, Some(1))
        );
        assert!(e.message().contains(&op.to_string()), "{e}");
    }
    for byte in 0..=255_u8 {
        assert_eq!(PickleOp::from_byte(byte).map(|op| op as u8).unwrap_or(byte), byte);
    }
}

#[test]
fn sharing_and_cycles_stay() {
    let p = ok(b"]q\x00K\x01ah\x00\x86");
    let items = p.as_tuple(p.root()).expect("a tuple");
    assert_eq!(items[0], items[1]);
    let p = ok(b"]q\x00h\x00a");
    let Value::List(list) = p.get(p.root()) else { panic!("a list") };
    assert_eq!(p.list(list), [p.root()]);
    let p = ok(b"}q\x00K\x01h\x00s");
    let Value::Dict(dict) = p.get(p.root()) else { panic!("a dict") };
    assert_eq!(p.dict(dict)[0].1, p.root());
}

#[test]
fn a_million_levels() {
    let deep = 1_000_000;
    let mut tuples = vec![b'N'];
    tuples.extend(std::iter::repeat_n(0x85, deep));
    let p = ok(&tuples);
    assert_eq!(p.len(), deep + 1);
    let mut lists = vec![b']'; deep];
    lists.extend(std::iter::repeat_n(b'a', deep - 1));
    assert_eq!(ok(&lists).len(), deep);
    let marks = vec![b'('; deep];
    fails(&marks, ArchiveCode::Stack);
    let mut persistent = vec![b'N'];
    persistent.extend(std::iter::repeat_n(b'Q', deep));
    assert_eq!(ok(&persistent).len(), deep + 1);
}

#[test]
fn limits_hold() {
    let limits = ArchiveLimits { pickle_ops: 3, ..ArchiveLimits::default() };
    assert_eq!(read_pickle(b"NNN.", &limits).expect_err("many").code(), ArchiveCode::Limit);
    let limits = ArchiveLimits { text_bytes: 2, ..ArchiveLimits::default() };
    assert_eq!(read_pickle(b"\x8c\x03abc.", &limits).expect_err("long").code(), ArchiveCode::Limit);
    let limits = ArchiveLimits { memo_entries: 1, ..ArchiveLimits::default() };
    assert_eq!(read_pickle(b"N\x94\x94.", &limits).expect_err("many").code(), ArchiveCode::Limit);
    let limits = ArchiveLimits { pickle_bytes: 1, ..ArchiveLimits::default() };
    assert_eq!(read_pickle(b"N.", &limits).expect_err("big").fault(), Fault::Limit);
}

/// A pickle truncated at any position, or with any byte replaced, does not cause a panic.
#[test]
fn damaged_pickles_are_answered() {
    let whole = b"\x80\x02c__torch__\nM\n)\x81}(X\x01\x00\x00\x00wq\x01](K\x01K\x02e\x86R\x85Q\x8c\x01au b.";
    for end in 0..whole.len() {
        let _ = crate::fuzz::fuzz_pickle(&whole[..end]);
    }
    let mut bytes = whole.to_vec();
    for at in 0..bytes.len() {
        let old = bytes[at];
        for new in 0..=255 {
            bytes[at] = new;
            let _ = crate::fuzz::fuzz_pickle(&bytes);
        }
        bytes[at] = old;
    }
}

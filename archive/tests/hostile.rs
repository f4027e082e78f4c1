//! Hand-made hostile archives. Each is rejected with the code of the rule it breaks and the location, in bounded time
//! and without the memory it declares.

use std::sync::Arc;
use std::time::{Duration, Instant};

use flambeau_archive::zip::{ZipReader, ZipWriter};
use flambeau_archive::{ArchiveCode, LoadError, LoadOptions, LoadedModule, load, load_weights};
use flambeau_ir::{IValue, Registry, RegistryBuilder};

/// Time limit for each archive.
const TIME_LIMIT: Duration = Duration::from_secs(5);

const CODE: &str = "class M(Module):\n  __parameters__ = []\n  __buffers__ = [\"t\", ]\n  t : Tensor\n";

fn registry() -> Arc<Registry> {
    RegistryBuilder::new().build().unwrap_or_else(|e| panic!("{e:?}"))
}

// --- pickles ---------------------------------------------------------------------------------------------------------

fn text(value: &str) -> Vec<u8> {
    [b"X", &(value.len() as u32).to_le_bytes()[..], value.as_bytes()].concat()
}

fn int(value: i64) -> Vec<u8> {
    [b"\x8a\x08", &value.to_le_bytes()[..]].concat()
}

fn ints(values: &[i64]) -> Vec<u8> {
    let items: Vec<u8> = values.iter().flat_map(|&v| int(v)).collect();
    [b"(", &items[..], b"t"].concat()
}

/// The description of a tensor in a pickle.
#[derive(Clone, Copy)]
struct TensorRecord<'a> {
    class: &'a str,
    key: &'a str,
    numel: i64,
    offset: i64,
    sizes: &'a [i64],
    strides: &'a [i64],
}

/// Two floats that fill their storage.
const VALID: TensorRecord<'static> =
    TensorRecord { class: "FloatStorage", key: "0", numel: 2, offset: 0, sizes: &[2], strides: &[1] };

impl TensorRecord<'_> {
    fn pickle(&self) -> Vec<u8> {
        let storage =
            [&b"("[..], &text("storage"), format!("ctorch\n{}\n", self.class).as_bytes(), &text(self.key)]
                .concat();
        let storage = [&storage[..], &text("cpu"), &int(self.numel), b"tQ"].concat();
        let parts = [int(self.offset), ints(self.sizes), ints(self.strides)].concat();
        let hooks = b"\x89ccollections\nOrderedDict\n)RtR";
        [b"ctorch._utils\n_rebuild_tensor_v2\n(", &storage[..], &parts, hooks].concat()
    }
}

/// Returns a pickle of an object of class `M` with one attribute.
fn object(value: &[u8]) -> Vec<u8> {
    [b"\x80\x02c__torch__\nM\n)\x81}", &text("t")[..], value, b"sb."].concat()
}

// --- archives --------------------------------------------------------------------------------------------------------

/// Returns an archive with these records and with defaults for the required ones that are not given.
fn archive(records: &[(&str, &[u8])]) -> Vec<u8> {
    let always: [(&str, &[u8]); 5] = [
        ("data.pkl", b""),
        ("data/0", &[0; 8]),
        ("code/__torch__.py", CODE.as_bytes()),
        ("constants.pkl", b"\x80\x02)."),
        ("version", b"3\n"),
    ];
    let mut out = ZipWriter::new(Vec::new(), "m");
    let given = |name: &str| records.iter().any(|(n, _)| *n == name);
    let rest = always.iter().filter(|(name, _)| !given(name));
    for (name, bytes) in rest.chain(records) {
        out.store(name, bytes).expect("the memory suffices");
    }
    out.finish().expect("the memory suffices")
}

fn with_tensor(tensor: TensorRecord<'_>) -> Vec<u8> {
    archive(&[("data.pkl", &object(&tensor.pickle()))])
}

fn loaded(bytes: &[u8]) -> Result<LoadedModule, LoadError> {
    let begun = Instant::now();
    let result = load(bytes, &registry(), &LoadOptions::default());
    assert!(begun.elapsed() < TIME_LIMIT, "it took {:?}", begun.elapsed());
    result
}

/// Error code, record, and whether there is an offset or source location.
type Place = (&'static str, String, bool);

fn refused(bytes: &[u8]) -> Place {
    match loaded(bytes).expect_err("refused") {
        LoadError::Archive(e) => {
            (e.code().as_str(), e.record().unwrap_or_default().to_owned(), e.offset().is_some())
        }
        LoadError::Code(d) => {
            let record = d.primary.as_ref().map(|l| l.at.source.name.clone()).unwrap_or_default();
            ("code", record, d.primary.is_some())
        }
    }
}

fn at(code: ArchiveCode, record: &str, has_offset: bool) -> Place {
    (code.as_str(), record.to_owned(), has_offset)
}

/// Returns the peak memory of this process in kB, where the system provides it.
fn peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[test]
fn views_outside_their_storage_are_refused() {
    let plain = with_tensor(VALID);
    let module = loaded(&plain).expect("it is in order");
    assert_eq!(module.root.get(0).as_tensor().expect("a tensor").sizes(), [2]);
    let cases: [(TensorRecord<'_>, ArchiveCode); 14] = [
        (TensorRecord { sizes: &[3], ..VALID }, ArchiveCode::Geometry),
        (TensorRecord { offset: 1, ..VALID }, ArchiveCode::Geometry),
        (TensorRecord { offset: -1, ..VALID }, ArchiveCode::Geometry),
        (TensorRecord { offset: i64::MAX, ..VALID }, ArchiveCode::Geometry),
        (TensorRecord { sizes: &[-1], ..VALID }, ArchiveCode::Geometry),
        (TensorRecord { sizes: &[i64::MIN], ..VALID }, ArchiveCode::Geometry),
        (TensorRecord { strides: &[2], ..VALID }, ArchiveCode::Geometry),
        (TensorRecord { strides: &[-1], ..VALID }, ArchiveCode::Geometry),
        (TensorRecord { sizes: &[1 << 62], strides: &[1 << 62], ..VALID }, ArchiveCode::Geometry),
        (TensorRecord { sizes: &[1 << 40, 1 << 40], strides: &[0, 0], ..VALID }, ArchiveCode::Geometry),
        (TensorRecord { sizes: &[2, 2], strides: &[1], ..VALID }, ArchiveCode::Geometry),
        (TensorRecord { numel: i64::MAX, ..VALID }, ArchiveCode::Storage),
        (TensorRecord { numel: -2, ..VALID }, ArchiveCode::Storage),
        (TensorRecord { class: "DoubleStorage", ..VALID }, ArchiveCode::Storage),
    ];
    for (n, (tensor, code)) in cases.into_iter().enumerate() {
        assert_eq!(refused(&with_tensor(tensor)), at(code, "data.pkl", true), "case {n}");
    }
    // A tensor without elements cannot exceed its storage, but its other sizes are bounded.
    let endless = TensorRecord { sizes: &[0, 1 << 40], strides: &[1, 1], ..VALID };
    assert_eq!(refused(&with_tensor(endless)), at(ArchiveCode::Geometry, "data.pkl", true));
    let empty = TensorRecord { sizes: &[0, 1 << 20], strides: &[1, 1], ..VALID };
    assert_eq!(
        loaded(&with_tensor(empty)).expect("fine").root.get(0).as_tensor().map(|t| t.numel()),
        Some(0)
    );
}

/// A tensor of 2^40 elements that are all the same one allocates no memory for them.
#[test]
fn repeated_elements_are_kept_once() {
    let before = peak();
    let wide = TensorRecord { sizes: &[1 << 30, 1 << 10], strides: &[0, 0], ..VALID };
    let module = loaded(&with_tensor(wide)).expect("it is in order");
    let tensor = module.root.get(0);
    assert_eq!(tensor.as_tensor().map(|t| (t.numel(), t.storage().nbytes())), Some((1 << 40, 8)));
    if let (Some(before), Some(after)) = (before, peak()) {
        assert!(after - before < 200_000, "{} kB", after - before);
    }
}

#[test]
fn declared_storages_must_match_their_records() {
    let both = |second: TensorRecord<'_>| {
        let code = CODE.replace("[\"t\", ]", "[\"t\", \"u\", ]") + "  u : Tensor\n";
        let mut pickle = object(&VALID.pickle());
        pickle.truncate(pickle.len() - 2);
        pickle.extend([&text("u")[..], &second.pickle(), b"sb."].concat());
        archive(&[("data.pkl", &pickle), ("code/__torch__.py", code.as_bytes())])
    };
    // A storage seen with two dtypes is one storage.
    let long = TensorRecord { class: "LongStorage", numel: 1, sizes: &[1], ..VALID };
    let module = loaded(&both(long)).expect("it fits");
    let (t, u) = (module.root.get(0), module.root.get(1));
    let pair = t.as_tensor().zip(u.as_tensor()).expect("tensors");
    assert!(pair.0.shares_storage(pair.1));
    let larger = TensorRecord { class: "LongStorage", ..VALID };
    assert_eq!(refused(&both(larger)), at(ArchiveCode::Storage, "data.pkl", true));
    let missing = TensorRecord { key: "7", ..VALID };
    assert_eq!(refused(&with_tensor(missing)), at(ArchiveCode::Missing, "data.pkl", true));
    for key in ["../0", "/0", "0/../0", "..\\0", "0\0", ""] {
        let place = refused(&with_tensor(TensorRecord { key, ..VALID }));
        assert_eq!(place.0, ArchiveCode::Missing.as_str(), "{key:?}: {place:?}");
    }
    let good = object(&VALID.pickle());
    for bytes in [&[0; 7][..], &[], &[0; 9]] {
        let short = archive(&[("data.pkl", &good), ("data/0", bytes)]);
        assert_eq!(refused(&short), at(ArchiveCode::Storage, "data.pkl", true), "{} bytes", bytes.len());
    }
}

#[test]
fn unsafe_and_malformed_pickles_are_refused() {
    let pickle = |bytes: &[u8]| archive(&[("data.pkl", bytes)]);
    let value = |bytes: &[u8]| pickle(&object(bytes));
    let cases: [(Vec<u8>, ArchiveCode); 11] = [
        (value(b"cos\nsystem\nX\x02\x00\x00\x00ls\x85R"), ArchiveCode::Global),
        (value(b"c__builtin__\neval\nX\x01\x00\x00\x001\x85R"), ArchiveCode::Global),
        (value(b"\x8c\x08builtins\x8c\x04exec\x93X\x01\x00\x00\x001\x85R"), ArchiveCode::Global),
        (value(b"h\x09"), ArchiveCode::Memo),
        (value(b"X\xff\xff\xff\xffx"), ArchiveCode::PickleEnd),
        (value(b"\x8d\xff\xff\xff\xff\xff\xff\xff\x7fx"), ArchiveCode::PickleEnd),
        (value(b"\x8b\xff\xff\xff\x7f\x00"), ArchiveCode::PickleEnd),
        (value(b"\x96\xff\xff\xff\xff\xff\xff\xff\xff"), ArchiveCode::UnsupportedOpcode),
        (value(b"]r\xff\xff\xff\xffj\xff\xff\xff\xffa"), ArchiveCode::Type),
        (value(b"}q\x00X\x01\x00\x00\x00kh\x00s"), ArchiveCode::Type),
        (pickle(b"\x80\x02c__torch__\nM\n)\x81q\x00}X\x01\x00\x00\x00th\x00sb."), ArchiveCode::Cycle),
    ];
    for (n, (bytes, code)) in cases.into_iter().enumerate() {
        assert_eq!(refused(&bytes), at(code, "data.pkl", true), "case {n}");
    }
    assert_eq!(refused(&pickle(b"\x80\x02).")), at(ArchiveCode::Root, "data.pkl", false));
    // Lists, dicts and objects that contain themselves, where any type is allowed.
    let any = CODE.replace("t : Tensor", "t : Any");
    let free = |pickle: &[u8]| archive(&[("data.pkl", pickle), ("code/__torch__.py", any.as_bytes())]);
    for cycle in [
        &object(b"]r\xff\xff\xff\xffj\xff\xff\xff\xffa")[..],
        &object(b"}q\x00X\x01\x00\x00\x00kh\x00s"),
        b"\x80\x02c__torch__\nM\n)\x81q\x00}X\x01\x00\x00\x00th\x00sb.",
    ] {
        assert_eq!(refused(&free(cycle)), at(ArchiveCode::Cycle, "data.pkl", true));
    }
    let marks = vec![b'('; 1 << 20];
    assert_eq!(refused(&pickle(&marks)), at(ArchiveCode::PickleEnd, "data.pkl", true));
    let deep = [&vec![b']'; 1 << 20][..], &vec![b'a'; (1 << 20) - 1]].concat();
    assert_eq!(refused(&free(&object(&deep))).0, ArchiveCode::Limit.as_str());
}

#[test]
fn code_and_data_agree() {
    let good = object(&VALID.pickle());
    let code = |text: &str| archive(&[("data.pkl", &good), ("code/__torch__.py", text.as_bytes())]);
    let method =
        |body: &str| code(&format!("{CODE}  def forward(self: __torch__.M) -> Tensor:\n    return {body}\n"));
    // The table of constants is an empty tuple.
    assert_eq!(refused(&method("CONSTANTS.c0")), ("code", "code/__torch__.py".to_owned(), true));
    assert_eq!(refused(&method("CONSTANTS.c99999999999999999999")).0, "code");
    let constants = |bytes: &[u8]| archive(&[("data.pkl", &good), ("constants.pkl", bytes)]);
    assert_eq!(refused(&constants(b"\x80\x02N.")).1, "constants.pkl");
    assert_eq!(
        refused(&constants(b"\x80\x02cos\nsystem\n.")),
        at(ArchiveCode::Global, "constants.pkl", true)
    );
    assert_eq!(refused(&constants(b"")), at(ArchiveCode::PickleEnd, "constants.pkl", true));
    let lacking = code("class N(Module):\n  __parameters__ = []\n");
    assert_eq!(refused(&lacking), at(ArchiveCode::Class, "data.pkl", true));
    let fewer = code("class M(Module):\n  __parameters__ = []\n  __buffers__ = []\n");
    assert_eq!(refused(&fewer), at(ArchiveCode::Attribute, "data.pkl", true));
    let more = code(&format!("{CODE}  u : Tensor\n"));
    assert_eq!(refused(&more), at(ArchiveCode::Attribute, "data.pkl", true));
    let other = code(&CODE.replace("t : Tensor", "t : int"));
    assert_eq!(refused(&other), at(ArchiveCode::Type, "data.pkl", true));
    let own = code(&CODE.replace("t : Tensor", "t : __torch__.M"));
    assert_eq!(refused(&own), at(ArchiveCode::Class, "code/__torch__.py", true));
    let absent = code(&CODE.replace("t : Tensor", "t : __torch__.far.Away"));
    assert_eq!(refused(&absent), at(ArchiveCode::Class, "code/__torch__.py", true));
}

/// Files may import each other; classes that contain each other are an error.
#[test]
fn import_cycles() {
    let good = object(&VALID.pickle());
    let a = "import __torch__.b\nclass A(Module):\n  __parameters__ = []\n  __buffers__ = []\n  b : __torch__.b.B\n";
    let b = "import __torch__.a\nclass B(Module):\n  __parameters__ = []\n  __buffers__ = []\n  a : __torch__.a.A\n";
    let root = format!("import __torch__.a\n{CODE}");
    let files: [(&str, &[u8]); 4] = [
        ("data.pkl", &good),
        ("code/__torch__.py", root.as_bytes()),
        ("code/__torch__/a.py", a.as_bytes()),
        ("code/__torch__/b.py", b.as_bytes()),
    ];
    loaded(&archive(&files)).expect("no object contains itself");
    let held = root.replace("t : Tensor", "t : __torch__.a.A");
    let files = [files[0], ("code/__torch__.py", held.as_bytes()), files[2], files[3]];
    assert_eq!(refused(&archive(&files)), at(ArchiveCode::Class, "code/__torch__/b.py", true));
    let named = "class T(NamedTuple):\n  t : __torch__.T\n";
    let files: [(&str, &[u8]); 2] =
        [("data.pkl", &good), ("code/__torch__.py", &[named.as_bytes(), CODE.as_bytes()].concat())];
    loaded(&archive(&files)).expect("nothing of it is needed");
    let missing = format!("import __torch__.nowhere\n{CODE}");
    let files: [(&str, &[u8]); 2] = [("data.pkl", &good), ("code/__torch__.py", missing.as_bytes())];
    loaded(&archive(&files)).expect("nothing of it is needed");
}

#[test]
fn damaged_records_are_refused() {
    let good = with_tensor(VALID);
    // Damage the data of a storage; its checksum in directory and descriptor stays.
    let data =
        ZipReader::open(&good, &Default::default()).and_then(|zip| Ok(zip.require("data/0")?.data_range()));
    let mut wrong = good.clone();
    wrong[data.expect("it is there").start] ^= 1;
    assert_eq!(refused(&wrong), at(ArchiveCode::Checksum, "data/0", false));
    // Record names are case-sensitive.
    let other = archive(&[("data.pkl", &object(&VALID.pickle())), ("DATA.PKL", b"x")]);
    loaded(&other).expect("another record");
    // A deflated record of zeros.
    let mut out = ZipWriter::new(Vec::new(), "m");
    out.deflate("constants.pkl", &vec![0; 64 << 20]).expect("the memory suffices");
    out.store("version", b"3\n").expect("the memory suffices");
    let before = peak();
    assert_eq!(
        refused(&out.finish().expect("the memory suffices")),
        at(ArchiveCode::Limit, "constants.pkl", false)
    );
    if let (Some(before), Some(after)) = (before, peak()) {
        assert!(after - before < 200_000, "{} kB", after - before);
    }
    for (records, code, record) in [
        (&[("version", &b"\xff\xfe"[..])][..], ArchiveCode::Version, "version"),
        (&[("version", b"3.5")], ArchiveCode::Version, "version"),
        (&[("byteorder", b"pdp")], ArchiveCode::Text, "byteorder"),
    ] {
        assert_eq!(refused(&archive(records)), at(code, record, false));
    }
    let pickle = object(&VALID.pickle());
    let big =
        archive(&[("data.pkl", &pickle), ("data/0", &[63, 128, 0, 0, 64, 0, 0, 0]), ("byteorder", b"big")]);
    let module = loaded(&big).expect("the other order");
    let IValue::Tensor(t) = module.root.get(0) else { panic!("a tensor") };
    assert_eq!(t.to_vec::<f32>().expect("floats"), [1.0, 2.0]);
}

/// Returns a zip file with one record whose zip64 extra field has the sizes and offset `extra`.
fn with_extra(extra: [u64; 3], entries: u64) -> Vec<u8> {
    let name = b"m/version";
    let body = b"3\n";
    let mut out = Vec::new();
    out.extend(b"PK\x03\x04\x2d\x00\x00\x00\x00\x00\x00\x00\x00\x00");
    out.extend(0_u32.to_le_bytes());
    out.extend([(body.len() as u32).to_le_bytes(), (body.len() as u32).to_le_bytes()].concat());
    out.extend([(name.len() as u16).to_le_bytes(), [0, 0]].concat());
    out.extend([&name[..], body].concat());
    let directory = out.len() as u64;
    out.extend(b"PK\x01\x02\x2d\x00\x2d\x00\x00\x00\x00\x00\x00\x00\x00\x00");
    out.extend(0_u32.to_le_bytes());
    out.extend([0xff; 8]);
    out.extend([(name.len() as u16).to_le_bytes(), 28_u16.to_le_bytes()].concat());
    out.extend([0; 10]);
    out.extend([0xff; 4]);
    out.extend(name);
    out.extend([1_u16.to_le_bytes(), 24_u16.to_le_bytes()].concat());
    out.extend(extra.iter().flat_map(|v| v.to_le_bytes()));
    let size = out.len() as u64 - directory;
    let end = out.len() as u64;
    out.extend(b"PK\x06\x06");
    out.extend(44_u64.to_le_bytes());
    out.extend([0x2d, 0, 0x2d, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    out.extend([entries, entries, size, directory].iter().flat_map(|v| v.to_le_bytes()));
    out.extend(b"PK\x06\x07\x00\x00\x00\x00");
    out.extend(end.to_le_bytes());
    out.extend([1, 0, 0, 0]);
    out.extend(b"PK\x05\x06\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00");
    out
}

#[test]
fn overflowing_sizes_are_refused() {
    let honest = with_extra([2, 2, 0], 1);
    // Reading fails only at the checksum, which is zero.
    assert_eq!(refused(&honest).0, ArchiveCode::Checksum.as_str());
    for (extra, entries) in [
        ([u64::MAX, u64::MAX, 0], 1),
        ([1 << 63, 2, 0], 1),
        ([2, 1 << 40, 0], 1),
        ([2, 2, u64::MAX], 1),
        ([2, 2, 1 << 40], 1),
        ([2, 2, 0], u64::MAX),
        ([2, 2, 0], 1 << 40),
        ([2, 2, 0], 2),
    ] {
        let (code, _, _) = refused(&with_extra(extra, entries));
        let known = [
            ArchiveCode::Directory,
            ArchiveCode::LocalHeader,
            ArchiveCode::Overlap,
            ArchiveCode::NotZip,
            ArchiveCode::Limit,
        ];
        assert!(known.iter().any(|k| k.as_str() == code), "{extra:?} {entries}: {code}");
    }
}

/// Invalid safetensors headers, in addition to the unit tests of the reader.
#[test]
fn wrong_headers_of_weights_are_refused() {
    let file =
        |length: u64, header: &str, data: &[u8]| [&length.to_le_bytes(), header.as_bytes(), data].concat();
    let of = |header: &str, data: &[u8]| file(header.len() as u64, header, data);
    let code = |bytes: &[u8]| load_weights(bytes, &Default::default()).expect_err("refused").code();
    assert_eq!(code(&file(1 << 62, "{}", &[])), ArchiveCode::NotZip);
    assert_eq!(code(&file(3, "{}", &[])), ArchiveCode::NotZip);
    assert_eq!(code(&of("{\"a\":1}", &[])), ArchiveCode::TensorKind);
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(code(&of(&deep, &[])), ArchiveCode::Text);
    let wide =
        r#"{"a":{"dtype":"F64","shape":[9223372036854775807],"data_offsets":[0,18446744073709551615]}}"#;
    assert_eq!(code(&of(wide, &[])), ArchiveCode::Storage);
    let gap = r#"{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}}"#;
    assert_eq!(code(&of(gap, &[0; 3])), ArchiveCode::Overlap);
    let same = r#"{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}"#;
    assert_eq!(code(&of(same, &[0])), ArchiveCode::Overlap);
}

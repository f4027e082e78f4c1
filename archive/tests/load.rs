//! Loads archives of PyTorch and compares them with the content that PyTorch reports.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use flambeau_archive::{LoadError, LoadOptions, LoadedModule, load, load_file};
use flambeau_ir::module::AttributeKind;
use flambeau_ir::value::Object;
use flambeau_ir::{IValue, Registry, RegistryBuilder, Type};
use flambeau_tensor::{Scalar, Tensor};

fn data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn registry() -> Arc<Registry> {
    RegistryBuilder::new().build().unwrap_or_else(|e| panic!("{e:?}"))
}

/// Options that load only objects. Code is tested where operators are available.
fn options() -> LoadOptions {
    let mut options = LoadOptions::default();
    options.code = false;
    options
}

fn objects(name: &str) -> LoadedModule {
    load_file(&data(name), &registry(), &options()).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// Formats a number as Python does.
fn python(value: Scalar) -> String {
    let float = |x: f64| match x {
        x if x.is_infinite() => (if x > 0.0 { "inf" } else { "-inf" }).to_owned(),
        x => format!("{x:?}"),
    };
    match value {
        Scalar::Bool(b) => (if b { "True" } else { "False" }).to_owned(),
        Scalar::Int(i) => i.to_string(),
        Scalar::Float(x) => float(x),
        Scalar::Complex(z) if z.re == 0.0 => format!("{}j", z.im as i64),
        Scalar::Complex(z) => format!("({}+{}j)", z.re as i64, z.im as i64),
    }
}

fn describe_tensor(out: &mut String, path: &str, tensor: &Tensor) {
    let elements: Vec<_> = tensor.to_scalars().expect("readable").into_iter().map(python).collect();
    let (sizes, strides) = (tensor.sizes(), tensor.strides());
    let name = tensor.dtype().name();
    let _ = writeln!(out, "{path}: tensor {name} {sizes:?} {strides:?} [{}]", elements.join(", "));
}

/// Describes parameters, buffers, then submodules: the order of the recorded text.
fn describe(module: &LoadedModule, object: &Object, path: &str, out: &mut String) {
    let class = module.unit.class(object.class()).expect("declared");
    for kind in [AttributeKind::Parameter, AttributeKind::Buffer] {
        for (slot, attribute) in class.attributes.iter().enumerate().filter(|(_, a)| a.kind == kind) {
            if let IValue::Tensor(tensor) = object.get(slot) {
                describe_tensor(out, &format!("{path}.{}", attribute.name), &tensor);
            }
        }
    }
    for (slot, attribute) in class.attributes.iter().enumerate() {
        if let IValue::Object(inner) = object.get(slot) {
            describe(module, &inner, &format!("{path}.{}", attribute.name), out);
        }
    }
}

#[test]
fn tensors_are_those_of_pytorch() {
    for name in ["lstm", "nested", "dtypes", "shared", "traced"] {
        let module = objects(&format!("{name}.pt"));
        let mut out = String::new();
        describe(&module, &module.root, "self", &mut out);
        let expected = std::fs::read_to_string(data(&format!("{name}.txt"))).expect("recorded");
        assert_eq!(out, expected, "{name}");
    }
}

#[test]
fn mapped_modules_equal_copied_ones() {
    let mut options = options();
    options.map = true;
    let mapped = load_file(&data("nested.pt"), &registry(), &options).expect("a module");
    let mut out = String::new();
    describe(&mapped, &mapped.root, "self", &mut out);
    assert_eq!(out, std::fs::read_to_string(data("nested.txt")).expect("recorded"));
}

#[test]
fn containers_have_their_types() {
    let module = objects("containers.pt");
    let text = |name: &str| {
        let value = module.attribute(name).unwrap_or_else(|| panic!("{name}"));
        (value.type_of().annotation_str(), format!("{value:?}"))
    };
    for (name, ty) in [
        ("ints", "List[int]"),
        ("floats", "List[float]"),
        ("bools", "List[bool]"),
        ("strings", "List[str]"),
        ("tensors", "List[Tensor]"),
        ("nested", "List[List[int]]"),
        ("table", "Dict[str, int]"),
        ("by_int", "Dict[int, Tensor]"),
        ("pair", "Tuple[int, str, float]"),
        ("maybe", "NoneType"),
        ("some", "int"),
        ("dev", "Device"),
        ("cplx", "complex"),
    ] {
        assert_eq!(text(name).0, ty, "{name}");
    }
    let int = |name: &str| module.attribute(name).and_then(|v| v.as_int());
    assert_eq!((int("big"), int("negative"), int("some")), (Some(1 << 40), Some(-5), Some(7)));
    let nested = module.attribute("nested").and_then(|v| v.as_list().map(|l| l.to_vec())).expect("a list");
    assert_eq!(nested[0].as_list().and_then(|l| l.to_ints()), Some(vec![1]));
    assert_eq!(nested[1].type_of(), Type::list(Type::INT));
    let strings = module.attribute("strings").and_then(|v| v.as_list().map(|l| l.to_vec())).expect("a list");
    assert_eq!(strings[0].as_str().and_then(|s| s.to_str()), Some("é"));
}

#[test]
fn sharing_is_preserved() {
    let module = objects("shared.pt");
    let tensor = |name: &str| module.attribute(name).and_then(|v| v.as_tensor().cloned()).expect("a tensor");
    assert!(tensor("w").ptr_eq(&tensor("tied")));
    assert!(tensor("whole").ptr_eq(&tensor("same")));
    assert!(tensor("whole").shares_storage(&tensor("matrix")));
}

#[test]
fn classes_of_every_kind() {
    let module = objects("classes.pt");
    let point = module.attribute("point").expect("an attribute");
    assert_eq!(point.type_of().annotation_str(), "__torch__.Point");
    let colour = module.attribute("colour").expect("an attribute");
    let colour = colour.as_enum().expect("a member");
    assert_eq!((colour.name().as_str(), colour.value().as_int()), ("GREEN", Some(2)));
    assert_eq!(module.unit.enumerations().count(), 1);
    let counter = module.attribute("counter.n").and_then(|v| v.as_int());
    assert_eq!(counter, Some(3));
    let step = module.attribute("step").expect("an attribute");
    assert_eq!(step.type_of().annotation_str(), "__torch__.Plain");
    assert_eq!(module.unit.interfaces().count(), 1);
}

/// Returns the archive with `old` replaced by `new` in one record.
fn patched(name: &str, record: &str, old: &[u8], new: &[u8]) -> Vec<u8> {
    use flambeau_archive::zip::{ZipReader, ZipWriter};
    let bytes = std::fs::read(data(name)).expect("test data");
    let zip = ZipReader::open(&bytes, &Default::default()).expect("an archive");
    let mut out = ZipWriter::new(Vec::new(), "patched");
    for entry in zip.records() {
        let mut bytes = zip.read(entry).expect("whole").into_owned();
        if entry.name() == record {
            let at = bytes.windows(old.len()).position(|w| w == old).expect("it is there");
            bytes.splice(at..at + old.len(), new.iter().copied());
        }
        out.store(entry.name(), &bytes).expect("the memory suffices");
    }
    out.finish().expect("the memory suffices")
}

fn refused(bytes: &[u8]) -> LoadError {
    load(bytes, &registry(), &options()).expect_err("refused")
}

#[test]
fn errors_name_the_path_to_the_value() {
    let code = "code/__torch__.py";
    let e = refused(&patched("nested.pt", code, b"scale : float", b"scale : int"));
    assert!(e.to_string().contains("self.a.scale: expected int, found float"), "{e}");
    assert_eq!(e.code(), "A0045");
    let e = refused(&patched("containers.pt", code, b"List[List[int]]", b"List[int]"));
    assert!(e.to_string().contains("self.nested"), "{e}");
    let e = refused(&patched("nested.pt", code, b"  steps : int\n", b""));
    assert_eq!(e.code(), "A0042");
    let e = refused(&patched("nested.pt", code, b"  steps : int\n", b"  steps : int\n  more : int\n"));
    assert_eq!(e.code(), "A0042");
    let e = refused(&patched("nested.pt", code, b"class Block(Module)", b"class Bloc(Module)"));
    assert_eq!(e.code(), "A0041");
    let e = refused(&patched("classes.pt", code, b"GREEN = 2", b"GREEN = 9"));
    assert_eq!(e.code(), "A0044");
    let e = refused(&patched("nested.pt", code, b"    return ", b"    return ("));
    assert!(matches!(e, LoadError::Code(_)), "{e}");
}

/// `self.v` is an empty list (`]`) inside `depth - 1` lists.
#[test]
fn depth_is_bounded() {
    let class = b"class M(Module):\n  __parameters__ = []\n  __buffers__ = []\n  v : Any\n";
    let archive = |depth: usize| {
        let mut pickle = b"\x80\x02c__torch__\nM\n)\x81}(X\x01\x00\x00\x00v".to_vec();
        pickle.extend(std::iter::repeat_n(b']', depth));
        pickle.extend(std::iter::repeat_n(b'a', depth - 1));
        pickle.extend(b"ub.");
        let mut out = flambeau_archive::zip::ZipWriter::new(Vec::new(), "m");
        for (name, bytes) in [
            ("data.pkl", &pickle[..]),
            ("constants.pkl", b"\x80\x02)."),
            ("code/__torch__.py", class),
            ("version", b"3\n"),
        ] {
            out.store(name, bytes).expect("the memory suffices");
        }
        out.finish().expect("the memory suffices")
    };
    assert_eq!(refused(&archive(100_000)).code(), "A0090");
    assert!(load(&archive(900), &registry(), &options()).is_ok());
    let mut lifted = options();
    lifted.limits = flambeau_archive::ArchiveLimits::trusted();
    assert!(load(&archive(200_000), &registry(), &lifted).is_ok());
}

/// A small deterministic random number generator.
struct Random(u64);

impl Random {
    fn roll(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % below
    }
}

/// Damages records and repacks them with correct checksums, so that the damage gets past the container.
#[test]
fn damaged_archives_do_not_panic() {
    use flambeau_archive::zip::{ZipReader, ZipWriter};
    let mut random = Random(7);
    let mut loaded = 0;
    for name in ["containers.pt", "classes.pt", "nested.pt", "constants.pt"] {
        let bytes = std::fs::read(data(name)).expect("test data");
        let zip = ZipReader::open(&bytes, &Default::default()).expect("an archive");
        let records: Vec<_> = zip
            .records()
            .iter()
            .filter(|r| !r.name().ends_with("debug_pkl"))
            .map(|r| (r.name(), zip.read(r).expect("whole").into_owned()))
            .collect();
        let targets: Vec<_> = (0..records.len())
            .filter(|&i| records[i].0.ends_with(".pkl") || records[i].0.ends_with(".py"))
            .collect();
        for _ in 0..700 {
            let target = targets[random.roll(targets.len())];
            let mut damaged = records[target].1.clone();
            for _ in 0..1 + random.roll(3) {
                let at = random.roll(damaged.len());
                match random.roll(4) {
                    0 => damaged[at] = random.roll(256) as u8,
                    1 => damaged[at] ^= 1 << random.roll(8),
                    2 => drop(damaged.drain(at..(at + random.roll(9)).min(damaged.len()))),
                    _ => {
                        let end = (at + random.roll(30)).min(damaged.len());
                        let copy = damaged[at..end].to_vec();
                        let to = random.roll(damaged.len());
                        damaged.splice(to..to, copy);
                    }
                }
                if damaged.is_empty() {
                    damaged.push(b'.');
                }
            }
            let mut out = ZipWriter::new(Vec::new(), "m");
            for (i, (name, bytes)) in records.iter().enumerate() {
                out.store(name, if i == target { &damaged } else { bytes }).expect("the memory suffices");
            }
            let bytes = out.finish().expect("the memory suffices");
            loaded += usize::from(flambeau_archive::fuzz::fuzz_load(&bytes, &registry(), false));
        }
    }
    assert!((100..2500).contains(&loaded), "{loaded} of 2800 load");
}

/// Loads the archive and writes it again with its code and constants.
fn rewritten(name: &str) -> (LoadedModule, Vec<u8>) {
    use flambeau_archive::{CodeFile, SaveModule, save, zip::ZipReader};
    let bytes = std::fs::read(data(name)).expect("test data");
    let module = load(&bytes, &registry(), &options()).expect("a module");
    let zip = ZipReader::open(&bytes, &Default::default()).expect("an archive");
    let code: Vec<_> = zip
        .records()
        .iter()
        .filter(|r| r.name().ends_with(".py"))
        .map(|r| CodeFile {
            record: r.name().to_owned(),
            text: String::from_utf8(zip.read(r).expect("whole").into_owned()).expect("text"),
            origins: Vec::new(),
        })
        .collect();
    let saved = SaveModule {
        name: &module.name,
        root: &module.root,
        unit: &module.unit,
        constants: &module.constants,
        code: &code,
        version: module.version,
        extra_files: &module.extra_files,
        states: &Default::default(),
    };
    let out = save(&saved, Vec::new()).expect("the memory suffices");
    (module.clone(), out)
}

#[test]
fn saved_values_load_back() {
    use flambeau_archive::zip::ZipReader;
    for name in
        ["lstm", "nested", "shared", "containers", "dtypes", "classes", "constants", "function", "normed"]
    {
        let file = format!("{name}.pt");
        let (first, bytes) = rewritten(&file);
        let second = load(&bytes, &registry(), &options()).unwrap_or_else(|e| panic!("{name}: {e}"));
        let [mut a, mut b] = [String::new(), String::new()];
        describe(&first, &first.root, "self", &mut a);
        describe(&second, &second.root, "self", &mut b);
        assert_eq!(a, b, "{name}");
        let original = std::fs::read(data(&file)).expect("test data");
        let theirs = ZipReader::open(&original, &Default::default()).expect("an archive");
        let ours = ZipReader::open(&bytes, &Default::default()).expect("an archive");
        for record in ours.records().iter().filter(|r| r.name() != ".data/serialization_id") {
            // PyTorch does not memoize objects of the program's own classes that only the module holds.
            if name == "classes" && record.name() == "data.pkl" {
                continue;
            }
            let theirs =
                theirs.read(theirs.require(record.name()).expect("PyTorch wrote it")).expect("whole");
            assert!(*ours.read(record).expect("whole") == *theirs, "{name}: {}", record.name());
        }
        assert_eq!(bytes, rewritten(&file).1, "{name}: the same bytes twice");
    }
}

/// The operators that the code of the test archives calls, as PyTorch declares them.
const OPERATORS: &str = "\
aten::mm(Tensor self, Tensor mat2) -> Tensor
aten::t(Tensor(a) self) -> Tensor(a)
aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
aten::add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor
aten::add.int(int a, int b) -> int
aten::mul.Tensor(Tensor self, Tensor other) -> Tensor
aten::mul.Scalar(Tensor self, Scalar other) -> Tensor
aten::chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]
aten::sigmoid(Tensor self) -> Tensor
aten::tanh(Tensor self) -> Tensor
aten::linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor
aten::sum(Tensor self, *, ScalarType? dtype=None) -> Tensor
aten::gt.Scalar(Tensor self, Scalar other) -> Tensor
aten::Bool.Tensor(Tensor a) -> bool
aten::eq.enum(AnyEnumType a, AnyEnumType b) -> bool
aten::len.t(t[] a) -> int
aten::__getitem__.Dict_str(Dict(str, t) self, str key) -> t(*)
";

/// Loads the archive with its methods compiled.
fn compiled(name: &str) -> LoadedModule {
    let mut builder = RegistryBuilder::new();
    builder.declare(OPERATORS);
    let registry = builder.build().unwrap_or_else(|e| panic!("{e:?}"));
    load_file(&data(name), &registry, &LoadOptions::default()).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn graph(module: &LoadedModule, method: &str) -> String {
    let function = module.method(method).unwrap_or_else(|| panic!("no {method}"));
    flambeau_ir::verify::verify(&function.graph).unwrap_or_else(|e| panic!("{method}: {e:?}"));
    function.graph.to_text(Default::default())
}

#[test]
fn code_is_compiled() {
    for name in
        ["lstm", "nested", "shared", "containers", "dtypes", "classes", "function", "traced", "constants"]
    {
        let module = compiled(&format!("{name}.pt"));
        for function in module.unit.functions() {
            flambeau_ir::verify::verify(&function.graph)
                .unwrap_or_else(|e| panic!("{}: {e:?}", function.name));
        }
        assert!(module.method("forward").is_some(), "{name}");
    }
    let lstm = graph(&compiled("lstm.pt"), "forward");
    assert!(lstm.contains("prim::GetAttr[name=\"w_ih\"]") && lstm.contains("aten::chunk"), "{lstm}");
    let nested = compiled("nested.pt");
    assert!(graph(&nested, "forward").contains("prim::CallMethod[name=\"helper\"]"));
    assert!(nested.method("helper").is_some());
    let classes = graph(&compiled("classes.pt"), "forward");
    assert!(classes.contains("prim::CallMethod[name=\"bump\"]"), "{classes}");
    let constants = graph(&compiled("constants.pt"), "forward");
    assert!(constants.contains("prim::Constant"), "{constants}");
}

#[test]
fn errors_in_code_show_its_position() {
    let record = "code/__torch__.py";
    for (old, new) in [
        (&b"torch.sigmoid(f)"[..], &b"torch.sigmoid(undefined)"[..]),
        (b"self.w_ih", b"self.w_oh"),
        (b"x: Tensor", b"x: Banana"),
    ] {
        let bytes = patched("lstm.pt", record, old, new);
        let mut builder = RegistryBuilder::new();
        builder.declare(OPERATORS);
        let registry = builder.build().unwrap_or_else(|e| panic!("{e:?}"));
        match load(&bytes, &registry, &LoadOptions::default()).expect_err("refused") {
            LoadError::Code(diagnostic) => {
                let place = diagnostic.primary.as_ref().map(|l| l.at.source.name.clone());
                assert_eq!(place.as_deref(), Some(record), "{diagnostic}");
            }
            LoadError::Archive(e) => panic!("{e}"),
        }
    }
}

//! One program in each layout: the flat file that PyTorch 2.6 wrote, and the archives that 2.8 and 2.9 would write for it.

use std::fmt::Write as _;

use flambeau_export::codes::SchemaEnum;
use flambeau_export::container::{Container, FileLayout};
use flambeau_export::model::{Constant, ScalarType};
use flambeau_export::read::{ReadOptions, is_exported, read, read_file};
use flambeau_export::{ExportCode, ProgramModel};
use flambeau_tensor::{DType, Layout, Tensor};

use super::{PROGRAM, container, edited, open, recorded, records, replaced, text_of};

/// The records that every archive has besides program and data.
const FIXED: [(&str, &[u8]); 4] = [
    ("archive_format", b"pt2"),
    ("archive_version", b"0"),
    (".data/version", b"6"),
    ("byteorder", b"little"),
];

/// Returns a recorded program in the layout of 2.8.
fn pickled(name: &str) -> Vec<u8> {
    let all = records(recorded(name).bytes);
    let json = replaced(&text_of(recorded(name).bytes, PROGRAM), "\"minor\": 2", "\"minor\": 8");
    let part = |from: &str| all.iter().find(|(n, _)| n == from).expect("a record").1.as_slice();
    let data = [
        ("models/model.json", json.as_bytes()),
        ("data/weights/model.pt", part("serialized_state_dict.pt")),
        ("data/constants/model.pt", part("serialized_constants.pt")),
        ("data/sample_inputs/model.pt", part("serialized_example_inputs.pt")),
    ];
    container("archive", data.into_iter().chain(FIXED))
}

/// Returns a tensor over all elements of a tensor's storage.
fn flat(tensor: &Tensor) -> Tensor {
    let length = (tensor.storage().nbytes() / tensor.dtype().size()) as i64;
    let layout = Layout::contiguous(&[length]).expect("a layout");
    Tensor::from_storage(tensor.storage().clone(), tensor.dtype(), layout).expect("a tensor")
}

fn bytes_of(tensor: &Tensor) -> Vec<u8> {
    let flat = flat(tensor);
    match tensor.dtype() {
        DType::F32 => flat.to_vec::<f32>().expect("floats").iter().flat_map(|v| v.to_le_bytes()).collect(),
        DType::I64 => flat.to_vec::<i64>().expect("integers").iter().flat_map(|v| v.to_le_bytes()).collect(),
        other => panic!("{other:?}"),
    }
}

/// Raw records and their table, one record per storage.
struct Table {
    folder: &'static str,
    prefix: &'static str,
    records: Vec<(String, Vec<u8>)>,
    storages: Vec<Tensor>,
    rows: Vec<String>,
}

impl Table {
    fn new(folder: &'static str, prefix: &'static str) -> Table {
        Table { folder, prefix, records: Vec::new(), storages: Vec::new(), rows: Vec::new() }
    }

    fn add(&mut self, name: &str, tensor: &Tensor, is_param: bool) {
        let known = self.storages.iter().position(|t| t.shares_storage(tensor));
        let n = known.unwrap_or_else(|| {
            let record = format!("data/{}/{}{}", self.folder, self.prefix, self.storages.len());
            self.records.push((record, bytes_of(tensor)));
            self.storages.push(tensor.clone());
            self.storages.len() - 1
        });
        let ints = |values: &[i64]| {
            let items: Vec<String> = values.iter().map(|v| format!("{{\"as_int\": {v}}}")).collect();
            format!("[{}]", items.join(", "))
        };
        let dtype = if tensor.dtype() == DType::F32 { ScalarType::F32 } else { ScalarType::I64 };
        self.rows.push(format!(
            "\"{name}\": {{\"path_name\": \"{}{n}\", \"is_param\": {is_param}, \"use_pickle\": false, \"tensor_meta\": \
             {{\"dtype\": {}, \"sizes\": {}, \"requires_grad\": {is_param}, \"device\": {{\"type\": \"cpu\", \"index\": \
             null}}, \"strides\": {}, \"storage_offset\": {{\"as_int\": {}}}, \"layout\": 7}}}}",
            self.prefix,
            dtype.number(),
            ints(tensor.sizes()),
            ints(tensor.strides()),
            tensor.offset()
        ));
    }

    fn json(&self) -> String {
        format!("{{\"config\": {{{}}}}}", self.rows.join(", "))
    }
}

/// Returns a recorded program in the layout of 2.9. `change` may change the tables.
fn raw(name: &str, change: impl Fn(&mut Table, &mut Table)) -> Vec<u8> {
    let program = open(recorded(name).bytes).expect("a program");
    let (mut weights, mut constants) = (Table::new("weights", "weight_"), Table::new("constants", "tensor_"));
    for (name, weight) in &program.state_dict {
        weights.add(name, &weight.tensor, name.ends_with("weight") || name.ends_with("bias"));
    }
    for (name, constant) in &program.constants {
        if let Constant::Tensor(tensor) = constant {
            constants.add(name, tensor, false);
        }
    }
    change(&mut weights, &mut constants);
    let json = replaced(&text_of(recorded(name).bytes, PROGRAM), "\"minor\": 2", "\"minor\": 14");
    let mut all = vec![("models/model.json".to_owned(), json.into_bytes())];
    for table in [weights, constants] {
        let name = format!("data/{0}/model_{0}_config.json", table.folder);
        let json = table.json().into_bytes();
        all.extend(table.records);
        all.push((name, json));
    }
    let all = all.iter().map(|(n, b)| (n.as_str(), b.as_slice()));
    container("other_root", all.chain(FIXED))
}

/// Returns the tensors of a program with everything that a layout must preserve.
fn described(program: &ProgramModel) -> String {
    let mut out = String::new();
    let weights = program.state_dict.iter().map(|(name, weight)| (name, &weight.tensor));
    let constants = program.constants.iter().filter_map(|(name, constant)| match constant {
        Constant::Tensor(tensor) => Some((name, tensor)),
        Constant::Object { .. } => None,
    });
    for (name, t) in weights.chain(constants) {
        let grad = t.requires_grad();
        let _ =
            writeln!(out, "{name} {:?} {:?} {:?} {} {grad}", t.dtype(), t.sizes(), t.strides(), t.offset());
        let _ = writeln!(out, "  {:?}", bytes_of(t));
    }
    out
}

#[test]
fn every_layout_has_the_same_tensors() {
    let original = open(recorded("layers").bytes).expect("a program");
    let wanted = described(&original);
    for (bytes, layout, minor) in [
        (recorded("layers").bytes.to_vec(), FileLayout::Flat, 2),
        (pickled("layers"), FileLayout::Pickled, 8),
        (raw("layers", |_, _| {}), FileLayout::Raw, 14),
    ] {
        let container = Container::open(&bytes, None, &ReadOptions::default()).expect("a container");
        assert_eq!(container.layout(), layout);
        let program = open(&bytes).unwrap_or_else(|e| panic!("{layout:?}: {e}"));
        assert_eq!(described(&program), wanted, "{layout:?}");
        assert_eq!((program.schema_version.major, program.schema_version.minor), (8, minor));
        let [first, second] = ["first.weight", "second.weight"].map(|name| &program.state_dict[name].tensor);
        assert!(first.shares_storage(second), "tied weights have one storage");
        let has_examples = layout != FileLayout::Raw;
        assert_eq!(program.has_example_inputs, has_examples);
        let is_parameter = (layout == FileLayout::Raw).then_some(true);
        assert_eq!(program.state_dict["first.bias"].is_parameter, is_parameter);
    }
}

#[test]
fn weights_of_mapped_files_are_shared_and_equal() {
    let folder = std::env::temp_dir();
    for (n, bytes) in [pickled("layers"), raw("layers", |_, _| {})].into_iter().enumerate() {
        let path = folder.join(format!("flambeau-layout-{}-{n}.pt2", std::process::id()));
        std::fs::write(&path, &bytes).expect("the disk has space");
        let mut options = ReadOptions::default();
        let copied = read_file(&path, &options).expect("a program");
        options.map = true;
        let mapped = read_file(&path, &options).expect("a program");
        std::fs::remove_file(&path).expect("it was there");
        assert_eq!(described(&mapped), described(&copied));
    }
}

#[test]
fn several_programs_are_selected_by_name() {
    let json = text_of(recorded("branches").bytes, PROGRAM);
    let empty = b"{\"config\": {}}";
    let file = |names: &[&str]| {
        let mut all = Vec::new();
        for name in names {
            all.push((format!("models/{name}.json"), json.as_bytes()));
            all.push((format!("data/weights/{name}_weights_config.json"), &empty[..]));
            all.push((format!("data/constants/{name}_constants_config.json"), &empty[..]));
        }
        let all: Vec<(&str, &[u8])> = all.iter().map(|(n, b)| (n.as_str(), *b)).collect();
        container("archive", all.into_iter().chain(FIXED))
    };
    let named = |bytes: &[u8], model: Option<&str>| {
        let mut options = ReadOptions::default();
        options.model = model.map(str::to_owned);
        read(bytes, &options).map(|_| ()).map_err(|e| e.code())
    };
    let selecting = |model: &str| {
        let mut options = ReadOptions::default();
        options.model = Some(model.to_owned());
        options
    };
    let limits = ReadOptions::default().archive;
    let two = file(&["draft", "final"]);
    assert_eq!(Container::open(&two, None, &selecting("final")).expect("one").models(), ["draft", "final"]);
    assert_eq!(named(&two, Some("final")), Ok(()));
    assert_eq!(named(&two, Some("other")), Err(ExportCode::Layout));
    assert_eq!(named(&two, None), Err(ExportCode::Layout), "neither is called `model`");
    assert_eq!(named(&file(&["only"]), None), Ok(()));
    assert_eq!(named(&file(&["a", "model"]), None), Ok(()));
    assert!(is_exported(&two, &limits) && !is_exported(b"PK", &limits));
    // PyTorch writes the other records if it cannot save the program.
    let incomplete = open(&file(&[])).expect_err("there is no program");
    assert_eq!(incomplete.code(), ExportCode::Layout);
    let message = incomplete.located_message();
    assert!(message.contains("incomplete") && message.contains("`models/model.json`"), "{message}");
}

#[test]
fn raw_weights_must_agree_with_their_records() {
    let code = |change: &dyn Fn(&mut Table)| match open(&raw("layers", |weights, _| change(weights))) {
        Ok(_) => None,
        Err(e) => Some((e.code().as_str(), e.field().to_owned())),
    };
    let at = |code: &'static str, field: &str| Some((code, field.to_owned()));
    let shorten = |by: usize| move |t: &mut Table| t.records[0].1.truncate(36 - by);
    assert_eq!(code(&|_| {}), None);
    assert_eq!(code(&shorten(1)), at("E008", "config.first.weight"));
    assert_eq!(code(&shorten(4)), at("E008", "config.first.weight"));
    // An empty record stands for zeros.
    assert_eq!(code(&shorten(36)), None);
    let row = |old: &'static str, new: &'static str| {
        move |t: &mut Table| t.rows[0] = replaced(&t.rows[0], old, new)
    };
    assert_eq!(code(&row("weight_0", "weight_9")), at("A0011", "config.first.weight"));
    assert_eq!(code(&row("weight_0", "../weights/weight_0")), at("A0011", "config.first.weight"));
    assert_eq!(
        code(&row("\"as_int\": 3", "\"as_int\": 4611686018427387904")),
        at("E008", "config.first.weight")
    );
    assert_eq!(code(&row("\"as_int\": 3", "\"as_int\": -3")), at("E008", "config.first.weight"));
    assert_eq!(code(&row("\"layout\": 7", "\"layout\": 1")), at("A0032", "config.first.weight"));
    assert_eq!(code(&row("\"dtype\": 7", "\"dtype\": 29")), at("A0032", "config.first.weight"));
    assert_eq!(
        code(&row("\"dtype\": 7", "\"dtype\": 99")),
        at("E004", "config.first.weight.tensor_meta.dtype")
    );
    let symbol = "\"as_expr\": {\"expr_str\": \"Symbol('s0')\", \"hint\": null}";
    let symbolic = move |t: &mut Table| t.rows[0] = replaced(&t.rows[0], "\"as_int\": 3", symbol);
    assert_eq!(code(&symbolic), at("E008", "config.first.weight.sizes"));
    let pickle = row("\"use_pickle\": false", "\"use_pickle\": true");
    assert_eq!(code(&pickle), at("A0001", "config.first.weight"), "the record is no file of torch.save");
    assert_eq!(code(&|t: &mut Table| t.rows.push(t.rows[0].clone())), at("E006", "config.first.weight"));
}

/// Zeros of a huge size are refused before memory is allocated.
#[test]
fn weights_without_elements_are_limited() {
    let huge = |t: &mut Table| {
        t.records[0].1.clear();
        t.rows[0] = replaced(&t.rows[0], "\"as_int\": 3", "\"as_int\": 1000000000");
    };
    let error = open(&raw("layers", |weights, _| huge(weights))).expect_err("too large");
    assert_eq!(error.code(), ExportCode::Limit);
}

/// A record that is an archive itself shares the budget of the file for inflated bytes: one budget per archive would multiply.
#[test]
fn archives_within_a_file_share_its_budget() {
    use flambeau_archive::ArchiveLimits;
    use flambeau_archive::zip::{ZipReader, ZipWriter};

    let all = records(recorded("layers").bytes);
    let weights = all.iter().find(|(name, _)| name == "serialized_state_dict.pt").expect("weights");
    let stored = ZipReader::open(&weights.1, &ArchiveLimits::default()).expect("an archive");
    let mut deflated = ZipWriter::new(Vec::new(), "archive");
    let mut total = 0;
    for record in stored.records() {
        let content = stored.read(record).expect("whole");
        total += content.len() as u64;
        deflated.deflate(record.name(), &content).expect("the memory suffices");
    }
    let deflated = deflated.finish().expect("the memory suffices");
    // The weights are the constants, too.
    let is_state = |name: &str| name == "serialized_state_dict.pt" || name == "serialized_constants.pt";
    let parts =
        all.iter().map(|(name, bytes)| (name.as_str(), if is_state(name) { &deflated } else { bytes }));
    let bytes = container("", parts.map(|(name, bytes)| (name, bytes.as_slice())));
    let code_within = |inflated_bytes: u64| {
        let mut options = ReadOptions::default();
        (options.archive.inflated_bytes, options.archive.inflated_per_byte) = (inflated_bytes, 0);
        read(&bytes, &options).map_err(|e| e.code().as_str()).err()
    };
    assert_eq!(code_within(2 * total), None);
    // Enough for each archive by itself, and not for both.
    assert_eq!(code_within(total), Some("A0090"));
}

#[test]
fn another_format_version_or_schema_is_refused() {
    for (name, content, code) in
        [("archive_format", &b"pt3"[..], ExportCode::Layout), ("archive_version", b"1", ExportCode::Schema)]
    {
        let all = FIXED.map(|(n, b)| if n == name { (n, content) } else { (n, b) });
        let bytes = container("archive", all);
        assert_eq!(open(&bytes).expect_err(name).code(), code);
    }
    // The new version explains why the rest of the program is not understood.
    let other = edited("layers", |json| {
        let json = replaced(&json, "\"major\": 8", "\"major\": 9");
        replaced(&json, "\"input_specs\"", "\"specs\"")
    });
    let error = open(&other).expect_err("another version");
    assert_eq!((error.code(), error.field()), (ExportCode::Schema, "schema_version"));
    assert!(error.message().contains("9.2"), "{error}");
}

#[test]
fn unknown_fields_are_kept() {
    let bytes = edited("layers", |json| {
        let json = replaced(&json, "{\"target\":", "{\"color\": {\"a\": [1, \"}\"]}, \"target\":");
        replaced(&json, "\"opset_version\"", "\"later\": null, \"opset_version\"")
    });
    let program = open(&bytes).expect("a program");
    let found: Vec<_> =
        program.unknown.iter().map(|u| (u.object, u.name.as_str(), u.value.as_str())).collect();
    assert_eq!(found, [("Node", "color", "{\"a\": [1, \"}\"]}"), ("ExportedProgram", "later", "null")]);
}

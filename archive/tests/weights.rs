//! Tensors without code: files of `torch.save`, and files written by this crate.

use std::path::{Path, PathBuf};

use flambeau_archive::zip::{ZipReader, ZipWriter};
use flambeau_archive::{
    ArchiveCode, ArchiveLimits, Weights, has_code, has_code_file, load_weights, load_weights_file,
    replace_file, save_safetensors, save_state_dict,
};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn weights(name: &str) -> Weights {
    load_weights_file(&data(name), false, &ArchiveLimits::default()).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn names(weights: &Weights) -> Vec<&str> {
    weights.keys().map(String::as_str).collect()
}

#[test]
fn state_dicts_and_checkpoints() {
    let nested = weights("nested.weights.pt");
    assert_eq!(names(&nested), ["count", "a.lin.weight", "b.lin.weight", "again.lin.weight"]);
    assert!(nested["a.lin.weight"].shares_storage(&nested["again.lin.weight"]));
    let checkpoint = weights("checkpoint.weights.pt");
    assert_eq!(names(&checkpoint), ["model.w", "model.tail", "all.0", "all.1.0"]);
    assert!(checkpoint["model.tail"].shares_storage(&checkpoint["model.w"]));
    assert_eq!(checkpoint["model.tail"].to_vec::<f64>().expect("floats"), [2.0, 3.0, 4.0, 5.0]);
    let single = weights("single.weights.pt");
    assert_eq!((names(&single), single[""].requires_grad()), (vec![""], true));
}

#[test]
fn archives_with_code_are_recognized() {
    let limits = ArchiveLimits::default();
    for (name, expected) in
        [("single.weights.pt", false), ("checkpoint.weights.pt", false), ("lstm.pt", true)]
    {
        let bytes = std::fs::read(data(name)).expect("test data");
        assert_eq!(has_code(&bytes, &limits), expected, "{name}");
        assert_eq!(has_code_file(&data(name), &limits), Ok(expected), "{name}");
        assert!(!has_code(&bytes[..bytes.len() / 2], &limits), "{name}");
    }
    assert!(!has_code(b"", &limits));
    let mut none = limits.clone();
    none.records = 0;
    assert_eq!(has_code_file(&data("lstm.pt"), &none), Ok(false));
    assert_eq!(has_code_file(&data("absent.pt"), &none).expect_err("no file").code(), ArchiveCode::Io);
}

#[test]
fn mapped_weights_equal_copied_ones() {
    let copied = weights("checkpoint.weights.pt");
    let mapped =
        load_weights_file(&data("checkpoint.weights.pt"), true, &ArchiveLimits::default()).expect("mapped");
    assert_eq!(names(&copied), names(&mapped));
    for (name, tensor) in &mapped {
        assert_eq!(tensor.to_bytes().expect("readable"), copied[name].to_bytes().expect("readable"));
    }
}

#[test]
fn saved_values_load_back() {
    for name in ["nested.weights.pt", "checkpoint.weights.pt"] {
        let old = weights(name);
        let bytes = save_state_dict(&old, Vec::new()).expect("the memory suffices");
        assert_eq!(
            bytes,
            save_state_dict(&old, Vec::new()).expect("the memory suffices"),
            "the same bytes again"
        );
        let new = load_weights(&bytes, &ArchiveLimits::default()).expect("as written");
        let flat = save_safetensors(&old, Vec::new()).expect("the memory suffices");
        let flat = load_weights(&flat, &ArchiveLimits::default()).expect("as written");
        assert_eq!(names(&new), names(&old));
        for (name, tensor) in &old {
            for back in [&new[name], &flat[name]] {
                assert_eq!((back.sizes(), back.dtype()), (tensor.sizes(), tensor.dtype()));
                assert_eq!(back.to_bytes().expect("readable"), tensor.to_bytes().expect("readable"));
            }
        }
    }
}

#[test]
fn checkpoints_with_unknown_names_are_refused() {
    let bytes = std::fs::read(data("single.weights.pt")).expect("test data");
    let zip = ZipReader::open(&bytes, &ArchiveLimits::default()).expect("an archive");
    let mut out = ZipWriter::new(Vec::new(), "x");
    for record in zip.records() {
        let mut content = zip.read(record).expect("whole").into_owned();
        if record.name() == "data.pkl" {
            let old = b"ctorch._utils\n_rebuild_parameter\n";
            let at = content.windows(old.len()).position(|w| w == old).expect("it is there");
            content.splice(at..at + old.len(), *b"cos\nsystem\n");
        }
        out.store(record.name(), &content).expect("the memory suffices");
    }
    let error = load_weights(&out.finish().expect("the memory suffices"), &ArchiveLimits::default())
        .expect_err("refused");
    assert_eq!((error.code(), error.record()), (ArchiveCode::Global, Some("data.pkl")));
}

#[test]
fn files_are_replaced_atomically() {
    use std::io::Write as _;
    let folder = std::env::temp_dir().join(format!("flambeau-replace-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join("weights.pt");
    let failing = flambeau_archive::ArchiveError::new(ArchiveCode::Value, "no");
    let write = |text: &'static str| {
        move |mut out: std::io::BufWriter<std::fs::File>| {
            out.write_all(text.as_bytes()).expect("the memory suffices");
            Ok(out)
        }
    };
    replace_file(&path, write("old")).expect("written");
    let error = replace_file(&path, |mut out| {
        out.write_all(b"half").expect("the memory suffices");
        Err(failing.clone())
    });
    assert_eq!(error.expect_err("the failure of the function"), failing);
    assert_eq!(std::fs::read_to_string(&path).expect("there"), "old");
    replace_file(&path, write("new")).expect("written");
    assert_eq!(std::fs::read_to_string(&path).expect("there"), "new");
    assert_eq!(std::fs::read_dir(&folder).expect("there").count(), 1, "no parts stay behind");
    std::fs::remove_dir_all(&folder).expect("removed");
    assert_eq!(replace_file(&path, write("x")).expect_err("no folder").code(), ArchiveCode::Io);
}

/// Files of `torch.save` with sparse or meta tensors, or in the old format, are rejected with an error that names the
/// kind.
#[test]
fn unsupported_tensors_and_files_are_named() {
    let pickled = |pickle: &[u8]| {
        let mut out = ZipWriter::new(Vec::new(), "x");
        out.store("data.pkl", pickle).expect("the memory suffices");
        out.store("version", b"3\n").expect("the memory suffices");
        load_weights(&out.finish().expect("the memory suffices"), &ArchiveLimits::default())
            .expect_err("refused")
    };
    let sparse = b"\x80\x02}X\x01\x00\x00\x00sctorch._utils\n_rebuild_sparse_tensor\n\
        ctorch.serialization\n_get_layout\nX\x10\x00\x00\x00torch.sparse_coo\x85R(K\x01t\x86Rs.";
    let meta = b"\x80\x02}X\x01\x00\x00\x00mctorch._utils\n_rebuild_meta_tensor_no_storage\n\
        (ctorch\nfloat32\nK\x02\x85K\x01\x85\x89tRs.";
    for (pickle, what) in [(&sparse[..], "_rebuild_sparse_tensor"), (meta, "_rebuild_meta_tensor_no_storage")]
    {
        let error = pickled(pickle);
        assert_eq!(
            (error.fault(), error.record()),
            (flambeau_archive::Fault::Unsupported, Some("data.pkl")),
            "{error}"
        );
        assert!(error.to_string().contains(what), "{error}");
    }
    let old = b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80\x02M\xe9\x03.";
    let error = load_weights(old, &ArchiveLimits::default()).expect_err("refused");
    assert_eq!(error.code(), ArchiveCode::NotZip);
    assert!(error.to_string().contains("torch.save"), "{error}");
}

/// Views of a storage as several dtypes share it after loading. A storage size that is not a multiple of each element
/// size is rejected.
#[test]
fn one_storage_with_several_dtypes_is_saved_once() {
    use flambeau_tensor::{DType, Layout, Storage, Tensor};
    let of = |storage: &Storage, dtype: DType, sizes: &[i64]| {
        let layout = Layout::contiguous(sizes).expect("small");
        Tensor::from_storage(storage.clone(), dtype, layout).expect("it fits")
    };
    let both = |bytes: &[u8]| {
        let storage = Storage::from_bytes(bytes).expect("the memory suffices");
        let mut weights = Weights::default();
        weights.insert("float".into(), of(&storage, DType::F32, &[1]));
        weights.insert("bytes".into(), of(&storage, DType::U8, &[bytes.len() as i64]));
        save_state_dict(&weights, Vec::new())
    };
    let back = load_weights(&both(&[0, 0, 128, 63]).expect("the memory suffices"), &ArchiveLimits::default())
        .expect("as written");
    assert_eq!(back["float"].to_vec::<f32>().expect("floats"), [1.0]);
    assert_eq!(back["bytes"].to_vec::<u8>().expect("bytes"), [0, 0, 128, 63]);
    assert!(back["float"].shares_storage(&back["bytes"]));
    assert_eq!(both(&[0, 0, 128, 63, 7]).expect_err("no whole number").code(), ArchiveCode::Value);
}

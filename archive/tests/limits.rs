//! Each limit on reading an archive is exceeded once; the error names the record and its location.

use std::path::Path;
use std::sync::Arc;

use flambeau_archive::zip::{ZipReader, ZipWriter};
use flambeau_archive::{ArchiveLimits, LoadError, LoadOptions, load};
use flambeau_ir::{Registry, RegistryBuilder};

fn registry() -> Arc<Registry> {
    RegistryBuilder::new().build().unwrap_or_else(|e| panic!("{e:?}"))
}

fn nested() -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/nested.pt");
    std::fs::read(path).expect("test data")
}

/// Returns error code, record, and whether there is an offset.
fn refused(bytes: &[u8], limits: ArchiveLimits) -> (&'static str, String, bool) {
    let mut options = LoadOptions::default();
    (options.code, options.limits) = (false, limits);
    match load(bytes, &registry(), &options).expect_err("refused") {
        LoadError::Archive(e) => {
            (e.code().as_str(), e.record().unwrap_or_default().to_owned(), e.offset().is_some())
        }
        other => panic!("{other}"),
    }
}

/// Sets one limit to a small value.
type Tighten = fn(&mut ArchiveLimits);

#[test]
fn every_limit_is_respected() {
    let cases: [(Tighten, &str, bool); 10] = [
        (|l| l.records = 3, "", false),
        (|l| l.name_bytes = 5, "", true),
        (|l| (l.inflated_bytes, l.inflated_per_byte) = (10, 0), "code/__torch__.py", false),
        (|l| l.source_bytes = 10, "code/__torch__.py", false),
        (|l| l.pickle_bytes = 10, "data.pkl", false),
        (|l| l.pickle_ops = 10, "data.pkl", true),
        (|l| l.memo_entries = 2, "data.pkl", true),
        (|l| l.text_bytes = 3, "data.pkl", true),
        (|l| l.depth = 1, "data.pkl", true),
        (|l| l.tensor_rank = 1, "data.pkl", true),
    ];
    for (n, (tighten, record, has_offset)) in cases.into_iter().enumerate() {
        let mut limits = ArchiveLimits::default();
        tighten(&mut limits);
        assert_eq!(refused(&nested(), limits), ("A0090", record.to_owned(), has_offset), "case {n}");
    }
    let mut limits = ArchiveLimits::default();
    (limits.ratio_free_bytes, limits.ratio) = (0, 1);
    assert_eq!(refused(&nested(), limits).0, "A0090", "the ratio");
    // The inflated size limit grows with the archive. The records of this archive are stored uncompressed.
    let mut options = LoadOptions::default();
    (options.code, options.limits.inflated_bytes, options.limits.inflated_per_byte) = (false, 0, 1);
    load(&nested(), &registry(), &options).expect("no longer than the archive");
}

/// Returns the archive with one record changed.
fn changed(name: &str, change: impl Fn(&mut Vec<u8>)) -> Vec<u8> {
    let bytes = nested();
    let zip = ZipReader::open(&bytes, &ArchiveLimits::default()).expect("an archive");
    let mut out = ZipWriter::new(Vec::new(), "nested");
    for record in zip.records() {
        let mut content = zip.read(record).expect("whole").into_owned();
        if record.name() == name {
            change(&mut content);
        }
        out.store(record.name(), &content).expect("the memory suffices");
    }
    out.finish().expect("the memory suffices")
}

#[test]
fn truncated_and_cyclic_input_is_reported() {
    let short = changed("data/1", |bytes| bytes.truncate(8));
    assert_eq!(refused(&short, ArchiveLimits::default()), ("A0030", "data.pkl".to_owned(), true));
    let cut = changed("data.pkl", |bytes| bytes.truncate(60));
    assert_eq!(refused(&cut, ArchiveLimits::default()).1, "data.pkl");
    // A list that contains itself, for an attribute of any type.
    let circle = changed("data.pkl", |bytes| *bytes = b"\x80\x02]q\x00h\x00a.".to_vec());
    assert_eq!(refused(&circle, ArchiveLimits::default()), ("A0043", "data.pkl".to_owned(), true));
}

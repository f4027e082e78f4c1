//! Tests of the reader against the writer, against files of PyTorch, and against damaged files.

use super::*;
use crate::{ArchiveCode, ArchiveLimits};

const LSTM: &[u8] = include_bytes!("../../tests/data/lstm.pt");

fn small() -> Vec<u8> {
    let mut w = ZipWriter::new(Vec::new(), "net");
    w.store("data/0", &[7; 100]).expect("the memory suffices");
    w.deflate("code/a.py", "x = 1\n".repeat(100).as_bytes()).expect("the memory suffices");
    w.store("version", b"3\n").expect("the memory suffices");
    w.finish().expect("the memory suffices")
}

fn open(bytes: &[u8]) -> Result<ZipReader<'_>, crate::ArchiveError> {
    ZipReader::open(bytes, &ArchiveLimits::default())
}

fn refused(bytes: &[u8], code: ArchiveCode) {
    let e = open(bytes).expect_err("refused");
    assert_eq!(e.code(), code, "{e}");
}

/// Returns the offset of the `n`-th occurrence of `needle`, counted from 0.
fn find(bytes: &[u8], needle: &[u8], n: usize) -> usize {
    bytes.windows(needle.len()).enumerate().filter(|(_, w)| *w == needle).nth(n).expect("it is there").0
}

#[test]
fn written_files_read_back() {
    let bytes = small();
    let zip = open(&bytes).expect("an archive");
    assert_eq!(zip.top_folder(), "net");
    let names: Vec<_> = zip.records().iter().map(Record::name).collect();
    assert_eq!(names, ["data/0", "code/a.py", "version"]);
    let code = zip.find("code/a.py").expect("it was written");
    assert_eq!(code.method(), Method::Deflated);
    assert_eq!(&*zip.read(code).expect("whole"), "x = 1\n".repeat(100).as_bytes());
    let data = zip.require("data/0").expect("it was written");
    assert_eq!(data.data_range().start % 64, 0);
    assert_eq!(zip.require("nope").expect_err("it was not").code(), ArchiveCode::Missing);
    assert_eq!(bytes, small());
}

#[test]
fn only_a_reader_that_expects_a_flat_container_opens_one() {
    let mut w = ZipWriter::flat(Vec::new());
    w.store("program.json", b"{}").expect("the memory suffices");
    w.store("extra_files/a", b"1").expect("the memory suffices");
    let bytes = w.finish().expect("the memory suffices");
    refused(&bytes, ArchiveCode::RecordName);
    let zip =
        ZipReader::open_flat_or_rooted(&bytes, "program.json", &ArchiveLimits::default()).expect("flat");
    assert_eq!(zip.top_folder(), "");
    assert!(zip.find("program.json").is_some() && zip.find("extra_files/a").is_some());
    let rooted = small();
    let zip =
        ZipReader::open_flat_or_rooted(&rooted, "program.json", &ArchiveLimits::default()).expect("rooted");
    assert!(zip.top_folder() == "net" && zip.find("version").is_some());
}

#[test]
fn exported_programs_are_recognized_where_modules_are_expected() {
    let mut w = ZipWriter::flat(Vec::new());
    w.store("serialized_exported_program.json", b"{}").expect("the memory suffices");
    refused(&w.finish().expect("the memory suffices"), ArchiveCode::Value);
    let mut w = ZipWriter::new(Vec::new(), "archive");
    w.store("archive_format", b"pt2").expect("the memory suffices");
    let bytes = w.finish().expect("the memory suffices");
    let error = crate::Archive::open(&bytes, &ArchiveLimits::default()).expect_err("no module");
    assert_eq!(error.code(), ArchiveCode::Value);
}

#[test]
fn pytorchs_bytes_are_reproduced() {
    let zip = open(LSTM).expect("an archive");
    let mut w = ZipWriter::new(Vec::new(), zip.top_folder());
    for record in zip.records() {
        let bytes = zip.read(record).expect("whole");
        match record.method() {
            Method::Stored => w.store(record.name(), &bytes).expect("the memory suffices"),
            // Compressors differ, so deflated records are compared after inflating.
            Method::Deflated => w.deflate(record.name(), &bytes).expect("the memory suffices"),
        }
    }
    let again = w.finish().expect("the memory suffices");
    let (a, b) = (open(LSTM).expect("an archive"), open(&again).expect("an archive"));
    for (x, y) in a.records().iter().zip(b.records()) {
        assert_eq!((x.name(), x.crc(), x.method()), (y.name(), y.crc(), y.method()));
    }
    let first = find(LSTM, b"code/", 0);
    assert_eq!(LSTM[..first], again[..first], "up to the first deflated record all bytes are the same");
}

#[test]
fn many_records_need_zip64() {
    let mut w = ZipWriter::new(Vec::new(), "m");
    for n in 0..70_000 {
        w.store(&format!("data/{n}"), b"").expect("the memory suffices");
    }
    let bytes = w.finish().expect("the memory suffices");
    refused(&bytes, ArchiveCode::Limit);
    let zip = ZipReader::open(&bytes, &ArchiveLimits::trusted()).expect("an archive");
    assert_eq!(zip.records().len(), 70_000);
    assert!(zip.find("data/69999").is_some());
}

#[test]
fn bytes_around_the_archive_are_refused() {
    let bytes = small();
    refused(b"", ArchiveCode::NotZip);
    refused(&[b'x'; 4096], ArchiveCode::NotZip);
    refused(&[&bytes[..], b"junk"].concat(), ArchiveCode::NotZip);
    refused(&[b"junk", &bytes[..]].concat(), ArchiveCode::Directory);
    refused(&bytes[..bytes.len() - 1], ArchiveCode::NotZip);
    let mut comment = bytes.clone();
    let at = comment.len() - 2;
    comment[at] = 2;
    refused(&comment, ArchiveCode::NotZip);
    comment.extend_from_slice(b"hi");
    refused(&comment, ArchiveCode::NotZip);
}

#[test]
fn contradicting_headers_are_refused() {
    let bytes = small();
    let with = |at: usize, value: u8| {
        let mut changed = bytes.clone();
        changed[at] = value;
        changed
    };
    let local = find(&bytes, b"net/data/0", 0);
    let central = find(&bytes, b"net/data/0", 1) - 46;
    let end = bytes.len() - 22;
    refused(&with(local, b'm'), ArchiveCode::LocalHeader);
    refused(&with(local - 30 + 6, 0), ArchiveCode::LocalHeader);
    refused(&with(local - 30 + 8, 8), ArchiveCode::LocalHeader);
    refused(&with(central + 16, bytes[central + 16] ^ 1), ArchiveCode::LocalHeader);
    refused(&with(central + 24, 99), ArchiveCode::Directory);
    refused(&with(central + 8, 9), ArchiveCode::Encrypted);
    refused(&with(central + 10, 12), ArchiveCode::Compression);
    refused(&with(central + 42, 1), ArchiveCode::LocalHeader);
    refused(&with(central, b'Q'), ArchiveCode::Directory);
    refused(&with(end + 10, 2), ArchiveCode::Directory);
    refused(&with(end + 4, 1), ArchiveCode::Directory);
}

#[test]
fn record_names_cannot_leave_the_archive() {
    for name in ["../x", "a/../b", "a//b", "./a", "a\\b", "a\0b", "a\u{7f}"] {
        let mut w = ZipWriter::new(Vec::new(), "net");
        w.store(name, b"").expect("the memory suffices");
        let bytes = w.finish().expect("the memory suffices");
        refused(&bytes, ArchiveCode::RecordName);
    }
    let mut w = ZipWriter::new(Vec::new(), "");
    w.store("etc/passwd", b"").expect("the memory suffices");
    refused(&w.finish().expect("the memory suffices"), ArchiveCode::RecordName);
    let mut twice = ZipWriter::new(Vec::new(), "net");
    twice.store("a", b"1").expect("the memory suffices");
    twice.store("a", b"2").expect("the memory suffices");
    refused(&twice.finish().expect("the memory suffices"), ArchiveCode::Duplicate);
    let limits = ArchiveLimits { name_bytes: 3, ..ArchiveLimits::default() };
    assert_eq!(ZipReader::open(&small(), &limits).expect_err("long names").code(), ArchiveCode::Limit);
}

#[test]
fn overlapping_records_are_refused() {
    // The second directory entry refers to the first record and takes its name.
    let mut w = ZipWriter::new(Vec::new(), "n");
    w.store("a", b"1").expect("the memory suffices");
    w.store("b", b"1").expect("the memory suffices");
    let mut bytes = w.finish().expect("the memory suffices");
    let central = find(&bytes, b"n/b", 1) - 46;
    bytes[central + 42..central + 46].copy_from_slice(&[0; 4]);
    bytes[central + 48] = b'a';
    refused(&bytes, ArchiveCode::Overlap);
}

#[test]
fn checksums_are_verified_on_read() {
    let bytes = small();
    let mut changed = bytes.clone();
    let data = open(&bytes).expect("an archive").find("data/0").expect("it is there").data_range();
    changed[data.start] ^= 1;
    let zip = open(&changed).expect("headers are fine");
    let record = zip.find("data/0").expect("it is there");
    assert_eq!(zip.read(record).expect_err("damaged").code(), ArchiveCode::Checksum);
    let code = open(&bytes).expect("an archive").find("code/a.py").expect("it is there").data_range();
    let mut changed = bytes.clone();
    changed[code.start] = 7;
    let zip = open(&changed).expect("headers are fine");
    let record = zip.find("code/a.py").expect("it is there");
    assert_eq!(zip.read(record).expect_err("damaged").code(), ArchiveCode::Inflate);
}

#[test]
fn zip_bombs_are_not_inflated() {
    let mut w = ZipWriter::new(Vec::new(), "n");
    w.deflate("data/0", &vec![0; 8 << 20]).expect("the memory suffices");
    let bytes = w.finish().expect("the memory suffices");
    let zip = open(&bytes).expect("headers are fine");
    let record = zip.find("data/0").expect("it is there");
    assert_eq!(zip.read(record).expect_err("a bomb").code(), ArchiveCode::Limit);
    for ratio in [0, 1, 1000] {
        let zip = ZipReader::open(&bytes, &ArchiveLimits { ratio, ..ArchiveLimits::default() })
            .expect("headers are fine");
        let record = zip.find("data/0").expect("it is there");
        assert_eq!(zip.read(record).expect_err("a bomb").code(), ArchiveCode::Limit, "{ratio}");
    }
    let limits = ArchiveLimits { ratio: 5000, inflated_bytes: 12 << 20, ..ArchiveLimits::default() };
    let zip = ZipReader::open(&bytes, &limits).expect("headers are fine");
    let record = zip.find("data/0").expect("it is there");
    assert_eq!(zip.read(record).expect("within bounds").len(), 8 << 20);
    assert_eq!(zip.read(record).expect_err("together too much").code(), ArchiveCode::Limit);
}

/// A wrong size in both directory and descriptor is detected when inflating.
#[test]
fn wrong_sizes_are_refused() {
    let bytes = small();
    let central = find(&bytes, b"net/code/a.py", 1) - 46;
    let descriptor = find(&bytes, b"PK\x07\x08", 1);
    for size in [0_u32, 599, 601, 1 << 19] {
        let mut changed = bytes.clone();
        changed[central + 24..central + 28].copy_from_slice(&size.to_le_bytes());
        changed[descriptor + 12..descriptor + 16].copy_from_slice(&size.to_le_bytes());
        let zip = open(&changed).expect("headers agree");
        let record = zip.find("code/a.py").expect("it is there");
        assert_eq!(zip.read(record).expect_err("a lie").code(), ArchiveCode::Inflate, "{size}");
    }
}

#[test]
fn damaged_archives_do_not_panic() {
    let whole = small();
    for end in 0..whole.len() {
        assert!(!crate::fuzz::fuzz_zip(&whole[..end]));
    }
    let mut bytes = whole.clone();
    for at in 0..bytes.len() {
        let old = bytes[at];
        for new in [0, 1, 0x7f, 0x80, 0xff, old ^ 1, old ^ 0x10] {
            bytes[at] = new;
            let _ = crate::fuzz::fuzz_zip(&bytes);
        }
        bytes[at] = old;
    }
}

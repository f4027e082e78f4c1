//! Damaged, hostile or invalid archives and IR text.

use super::{data, file, refused, run};

const ARCHIVE: &str = "tests/data/lstm_cell_function.pt";

/// Nesting that would overflow the stack if readers recursed.
const DEEP: usize = 100_000;

#[test]
fn truncated_archives() {
    let whole = std::fs::read(data(ARCHIVE)).expect("the archive is there");
    for length in [0, 1, 4, 100, whole.len() / 2, whole.len() - 30, whole.len() - 1] {
        let path = file("truncated", "cut.pt", &whole[..length]);
        for command in ["verify", "print", "run"] {
            refused(&[command, &path], &["[A00", "cut.pt: "]);
        }
    }
}

#[test]
fn corrupted_archives() {
    let whole = std::fs::read(data(ARCHIVE)).expect("the archive is there");
    let mut seen = 0;
    for at in (0..whole.len()).step_by(61) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0xff;
        let path = file("corrupted", "flipped.pt", &bytes);
        // Padding and unused records may have any content.
        let ran = run(&["verify", &path]);
        assert!(matches!(ran.code, Some(0 | 1)), "byte {at}: {:?}: {}", ran.code, ran.err);
        if ran.code == Some(1) {
            seen += 1;
            assert!(ran.out.is_empty() && ran.err.contains('['), "byte {at}: {}", ran.err);
        }
    }
    assert!(seen >= 10, "only {seen} damaged archives were refused");
}

/// Returns the checksum of a zip record.
fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = !0u32;
    for &byte in bytes {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0xEDB8_8320 & (crc & 1).wrapping_neg());
        }
    }
    !crc
}

/// Returns a zip file of stored records.
fn zip(records: &[(&str, &[u8])]) -> Vec<u8> {
    let (mut out, mut directory) = (Vec::new(), Vec::new());
    for (name, bytes) in records {
        let offset = out.len() as u32;
        let mut common = Vec::new();
        common.extend_from_slice(&[20, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        common.extend_from_slice(&crc32(bytes).to_le_bytes());
        common.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        common.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        common.extend_from_slice(&(name.len() as u16).to_le_bytes());
        common.extend_from_slice(&[0, 0]);
        out.extend_from_slice(b"PK\x03\x04");
        out.extend_from_slice(&common);
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(bytes);
        directory.extend_from_slice(b"PK\x01\x02\x14\x00");
        directory.extend_from_slice(&common);
        directory.extend_from_slice(&[0; 10]);
        directory.extend_from_slice(&offset.to_le_bytes());
        directory.extend_from_slice(name.as_bytes());
    }
    let start = out.len() as u32;
    out.extend_from_slice(&directory);
    out.extend_from_slice(b"PK\x05\x06\0\0\0\0");
    for _ in 0..2 {
        out.extend_from_slice(&(records.len() as u16).to_le_bytes());
    }
    out.extend_from_slice(&(directory.len() as u32).to_le_bytes());
    out.extend_from_slice(&start.to_le_bytes());
    out.extend_from_slice(&[0, 0]);
    out
}

fn pickled(name: &str, pickle: &[u8]) -> String {
    let bytes = zip(&[("m/version", b"3\n"), ("m/data.pkl", pickle), ("m/constants.pkl", b"\x80\x02).")]);
    file("pickles", name, bytes)
}

#[test]
fn hostile_pickles() {
    let call = pickled("call.pt", b"\x80\x02cos\nsystem\nX\x02\x00\x00\x00ls\x85R.");
    refused(&["run", &call], &["A0026", "os.system", "record `data.pkl`, byte 2"]);
    let mut nested = b"\x80\x02)".to_vec();
    nested.extend(std::iter::repeat_n(0x85, DEEP));
    nested.push(b'.');
    refused(&["verify", &pickled("nested.pt", &nested)], &["A0090", "nested deeper"]);
    let mut marks = b"\x80\x02".to_vec();
    marks.extend(std::iter::repeat_n(b'(', DEEP));
    marks.extend(std::iter::repeat_n(b't', DEEP));
    marks.push(b'.');
    refused(&["verify", &pickled("marks.pt", &marks)], &["A0090"]);
    refused(&["verify", &pickled("cut.pt", b"\x80\x02cos\nsys")], &["A0020", "record `data.pkl`"]);
    let empty = file("pickles", "empty.pt", zip(&[("m/version", b"3\n")]));
    refused(&["verify", &empty], &["A0011"]);
}

#[test]
fn wrong_graphs() {
    let ir = |name: &str, text: &str| file("graphs", name, text);
    let dangling = ir("dangling.ir", "graph(%x : Tensor):\n  %y : Tensor = aten::relu(%z)\n  return (%y)\n");
    for command in ["verify", "print", "opt", "alias", "shapes", "run"] {
        refused(&[command, &dangling], &["T005", "`%z`", "dangling.ir:2:28"]);
    }
    let types = ir("types.ir", "graph(%x : int):\n  %y : Tensor = aten::relu(%x)\n  return (%y)\n");
    refused(&["verify", &types], &["V041", "types.ir: ", "aten::relu", "^^^^"]);
    let twice = ir("twice.ir", "graph(%x : int):\n  %x : int = prim::Constant[value=1]()\n  return (%x)\n");
    refused(&["verify", &twice], &["T006", "twice.ir:2"]);
    let later = ir(
        "later.ir",
        "graph():\n  %y : int = aten::neg(%x)\n  %x : int = prim::Constant[value=1]()\n  return (%y)\n",
    );
    refused(&["verify", &later], &["%x"]);
    refused(&["verify", &ir("cut.ir", "graph(%x : int):\n  %y : int = aten::")], &["[T0", "cut.ir:2"]);
    refused(&["verify", &ir("bytes.ir", "graph(\u{0}")], &["[T0"]);
    let bytes = file("graphs", "utf8.ir", b"graph(\xff");
    refused(&["verify", &bytes], &["T0000", "byte 6"]);
}

#[test]
fn deep_graphs() {
    let deep = |name: &str, text: String| file("deep_graphs", name, text);
    let blocks = deep(
        "blocks.ir",
        format!(
            "graph(%c : bool):\n{}{}  return ()\n",
            "prim::If(%c)\nblock0():\n".repeat(DEEP),
            "-> ()\nblock1():\n-> ()\n".repeat(DEEP)
        ),
    );
    // Nested blocks are valid; only their text would be mostly indentation.
    for command in ["verify", "shapes"] {
        let ran = run(&[command, &blocks]);
        assert_eq!(ran.code, Some(0), "{command}: {}", ran.err);
    }
    refused(&["print", &blocks], &["bytes of indentation"]);
    let ty = deep("type.ir", format!("graph(%c : Tensor{}):\n  return (%c)\n", "[]".repeat(DEEP)));
    refused(&["verify", &ty], &["T004", "type.ir:1"]);
    let tuple = format!("graph(%c : {}int{}):\n  return (%c)\n", "(".repeat(DEEP), ")".repeat(DEEP));
    refused(&["verify", &deep("tuple.ir", tuple)], &["T004"]);
    let value = format!(
        "graph():\n  %c : int[] = prim::Constant[value={}{}]()\n  return (%c)\n",
        "[".repeat(DEEP),
        "]".repeat(DEEP)
    );
    refused(&["verify", &deep("value.ir", value)], &["T002", "value.ir:2"]);
}

#[test]
fn unrecognized_files() {
    refused(&["print", "no/such/file.py"], &["no/such/file.py"]);
    refused(&["print", env!("CARGO_MANIFEST_DIR")], &["reading"]);
}

//! The safetensors format: a JSON header with names, dtypes, sizes and offsets, followed by the bytes of the tensors.
//!
//! The header is checked like an archive: the byte ranges must be within the file, not overlap, leave no gaps, and have
//! exactly the size that dtype and sizes require. Data is little-endian.

use std::io::Write;
use std::sync::Arc;

use flambeau_tensor::{DType, Layout, Storage, Tensor, TensorError};
use serde_json::{Map, Value};

use crate::error::quoted;
use crate::map::Mapping;
use crate::weights::Weights;
use crate::{ArchiveCode, ArchiveError, ArchiveLimits};

/// Names of the dtypes in headers.
const DTYPES: [(&str, DType); 12] = [
    ("BOOL", DType::Bool),
    ("U8", DType::U8),
    ("I8", DType::I8),
    ("I16", DType::I16),
    ("I32", DType::I32),
    ("I64", DType::I64),
    ("F16", DType::F16),
    ("BF16", DType::BF16),
    ("F32", DType::F32),
    ("F64", DType::F64),
    ("C64", DType::C64),
    ("C128", DType::C128),
];

/// Size in bytes of the header length.
const LENGTH: usize = 8;
/// Alignment in bytes of the data section, to which the header is padded.
const ALIGNMENT: usize = 64;

/// The description of a tensor in the header, checked against the size of the file.
struct Entry {
    name: String,
    dtype: DType,
    sizes: Vec<i64>,
    /// Byte offset of the data in the file.
    start: usize,
    end: usize,
}

/// First bytes of files in the old `torch.save` format, pickles without a container: protocol opcode and magic number.
const OLD_PICKLE: &[u8] = b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";

/// Reads the tensors in `bytes`. Shares them with `mapping` (of the same file) if they are aligned.
pub(crate) fn read(
    bytes: &[u8],
    mapping: Option<&Arc<Mapping>>,
    limits: &ArchiveLimits,
) -> Result<Weights, ArchiveError> {
    let unrecognized = |message: &str| ArchiveError::new(ArchiveCode::NotZip, message).at(0);
    let (length, rest) = bytes
        .split_first_chunk::<LENGTH>()
        .ok_or_else(|| unrecognized("neither a zip file nor safetensors: too short for either"))?;
    let length = usize::try_from(u64::from_le_bytes(*length)).ok().filter(|&n| n <= rest.len());
    let header = length.map(|n| &rest[..n]).filter(|h| h.first() == Some(&b'{'));
    let header = header.ok_or_else(|| match bytes.starts_with(OLD_PICKLE) {
        true => unrecognized(
            "a file in the old format of `torch.save` without zip; load it in PyTorch and save it again",
        ),
        false => unrecognized("neither a zip file nor safetensors"),
    })?;
    if header.len() > limits.source_bytes {
        return Err(ArchiveError::new(
            ArchiveCode::Limit,
            format!("header too large: {} bytes", header.len()),
        ));
    }
    let entries = entries(header, LENGTH + header.len(), bytes.len(), limits)?;
    let mut out = Weights::default();
    for entry in entries {
        let in_record =
            |e: TensorError| ArchiveError::new(ArchiveCode::Geometry, e.to_string()).in_record(&entry.name);
        let raw = &bytes[entry.start..entry.end];
        let shared = mapping
            .filter(|_| (raw.as_ptr() as usize).is_multiple_of(entry.dtype.size().max(16)))
            .and_then(|mapping| mapping.share(entry.start..entry.end));
        let storage = match shared {
            Some(shared) => Storage::foreign(shared),
            None => Storage::from_bytes(raw),
        };
        let layout = Layout::contiguous(&entry.sizes).map_err(in_record)?;
        let tensor =
            Tensor::from_storage(storage.map_err(in_record)?, entry.dtype, layout).map_err(in_record)?;
        out.insert(entry.name.clone(), tensor);
    }
    Ok(out)
}

/// Returns the entries of a header in the order of their data, which starts at `start` and must extend to `end`.
fn entries(
    header: &[u8],
    start: usize,
    end: usize,
    limits: &ArchiveLimits,
) -> Result<Vec<Entry>, ArchiveError> {
    let malformed = |message: String| ArchiveError::new(ArchiveCode::Text, message).at(LENGTH as u64);
    let json: Map<String, Value> = serde_json::from_slice(header)
        .map_err(|e| malformed(format!("the header is not a JSON object: {e}")))?;
    if json.len() > limits.records {
        return Err(ArchiveError::new(ArchiveCode::Limit, format!("more than {} tensors", limits.records)));
    }
    let mut entries = Vec::with_capacity(json.len());
    for (name, value) in json {
        if name != "__metadata__" {
            entries.push(entry(name, &value, start, limits)?);
        }
    }
    entries.sort_by_key(|e| (e.start, e.end));
    let mut at = start;
    for entry in &entries {
        if entry.start != at {
            let message = format!("the data starts at byte {}, expected byte {at}", entry.start);
            return Err(ArchiveError::new(ArchiveCode::Overlap, message).in_record(&entry.name));
        }
        at = entry.end;
    }
    if at != end {
        let message = format!("the tensors end at byte {at} of {end}");
        return Err(ArchiveError::new(ArchiveCode::Overlap, message));
    }
    Ok(entries)
}

fn entry(name: String, value: &Value, start: usize, limits: &ArchiveLimits) -> Result<Entry, ArchiveError> {
    let malformed = |code, message: String| Err(ArchiveError::new(code, message).in_record(&name));
    let text = value["dtype"].as_str().unwrap_or_default();
    let Some(&(_, dtype)) = DTYPES.iter().find(|(n, _)| *n == text) else {
        return malformed(
            ArchiveCode::TensorKind,
            format!("tensors of type {} are not supported", quoted(text)),
        );
    };
    let numbers = |key: &str| -> Option<Vec<usize>> {
        value[key].as_array()?.iter().map(|n| usize::try_from(n.as_u64()?).ok()).collect()
    };
    let (Some(sizes), Some(offsets)) = (numbers("shape"), numbers("data_offsets")) else {
        return malformed(ArchiveCode::Text, "shape and data_offsets must be lists of numbers".to_owned());
    };
    if sizes.len() > limits.tensor_rank {
        return malformed(
            ArchiveCode::Limit,
            format!("a tensor of {} dimensions exceeds the limit", sizes.len()),
        );
    }
    let bytes = sizes.iter().try_fold(dtype.size(), |n, &size| n.checked_mul(size));
    let places = match offsets[..] {
        [from, to] if from <= to => start.checked_add(from).zip(start.checked_add(to)),
        _ => None,
    };
    match (places, bytes) {
        (Some((from, to)), Some(bytes)) if to - from == bytes => {
            let sizes = sizes.into_iter().map(|size| size as i64).collect();
            Ok(Entry { name, dtype, sizes, start: from, end: to })
        }
        _ => malformed(ArchiveCode::Storage, "data_offsets do not match dtype and shape".to_owned()),
    }
}

/// Writes tensors in the safetensors format. The output is deterministic. Wider dtypes come first, so every tensor is
/// aligned.
///
/// # Errors
///
/// Returns `A0032` if the format does not support a dtype, and `A0091` if `out` fails.
pub fn save_safetensors<W: Write>(weights: &Weights, mut out: W) -> Result<W, ArchiveError> {
    let io_error = |e: std::io::Error| ArchiveError::new(ArchiveCode::Io, format!("cannot write: {e}"));
    let mut order: Vec<_> = weights.iter().collect();
    order.sort_by(|(a, s), (b, t)| t.dtype().size().cmp(&s.dtype().size()).then(a.cmp(b)));
    let mut header = Map::new();
    let mut at = 0;
    for (name, tensor) in &order {
        let Some((dtype, _)) = DTYPES.iter().find(|(_, d)| *d == tensor.dtype()) else {
            let message = format!("the safetensors format does not support {}", tensor.dtype().name());
            return Err(ArchiveError::new(ArchiveCode::TensorKind, message).in_record(name));
        };
        let to = at + tensor.numel() * tensor.dtype().size();
        let entry = serde_json::json!({
            "dtype": dtype, "shape": tensor.sizes(), "data_offsets": [at, to],
        });
        header.insert((*name).clone(), entry);
        at = to;
    }
    let mut header = Value::Object(header).to_string();
    let padded = (LENGTH + header.len()).next_multiple_of(ALIGNMENT) - LENGTH;
    header.extend(std::iter::repeat_n(' ', padded - header.len()));
    out.write_all(&(header.len() as u64).to_le_bytes()).map_err(io_error)?;
    out.write_all(header.as_bytes()).map_err(io_error)?;
    for (name, tensor) in order {
        let bytes = tensor.to_bytes();
        let bytes =
            bytes.map_err(|e| ArchiveError::new(ArchiveCode::Limit, e.to_string()).in_record(name))?;
        out.write_all(&bytes).map_err(io_error)?;
    }
    out.flush().map_err(io_error)?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(header: &str, data: &[u8]) -> Vec<u8> {
        [&(header.len() as u64).to_le_bytes(), header.as_bytes(), data].concat()
    }

    fn refused(bytes: &[u8]) -> ArchiveCode {
        read(bytes, None, &ArchiveLimits::default()).expect_err("refused").code()
    }

    #[test]
    fn written_files_read_back() {
        let mut weights = Weights::default();
        let t = |dtype, sizes: &[i64], bytes: &[u8]| {
            let storage = Storage::from_bytes(bytes).expect("the memory suffices");
            Tensor::from_storage(storage, dtype, Layout::contiguous(sizes).expect("small")).expect("fits")
        };
        weights.insert("mask".into(), t(DType::Bool, &[3], &[1, 0, 1]));
        weights.insert("w".into(), t(DType::F32, &[1, 2], &[0, 0, 128, 63, 0, 0, 0, 64]));
        weights.insert("none".into(), t(DType::I64, &[0, 4], &[]));
        let bytes = save_safetensors(&weights, Vec::new()).expect("the memory suffices");
        assert_eq!(bytes, save_safetensors(&weights, Vec::new()).expect("the memory suffices"));
        let back = read(&bytes, None, &ArchiveLimits::default()).expect("as written");
        assert_eq!(back.keys().map(String::as_str).collect::<Vec<_>>(), ["none", "w", "mask"]);
        assert_eq!(back["w"].to_vec::<f32>().expect("floats"), [1.0, 2.0]);
        assert_eq!((back["none"].sizes(), back["mask"].dtype()), (&[0, 4][..], DType::Bool));
    }

    #[test]
    fn wrong_headers_are_refused() {
        let one = |dtype: &str, shape: &str, offsets: &str, data: &[u8]| {
            let header = format!(r#"{{"a":{{"dtype":"{dtype}","shape":{shape},"data_offsets":{offsets}}}}}"#);
            refused(&file(&header, data))
        };
        assert_eq!(one("F32", "[2]", "[0,4]", &[0; 4]), ArchiveCode::Storage);
        assert_eq!(one("F32", "[1]", "[4,0]", &[0; 4]), ArchiveCode::Storage);
        assert_eq!(one("F32", "[4611686018427387904, 4]", "[0,0]", &[]), ArchiveCode::Storage);
        assert_eq!(one("F32", "[1]", "[0,4]", &[0; 5]), ArchiveCode::Overlap);
        assert_eq!(one("F32", "[2]", "[0,8]", &[0; 4]), ArchiveCode::Overlap);
        assert_eq!(one("U8", "[1]", "[1,2]", &[0; 2]), ArchiveCode::Overlap);
        assert_eq!(one("F8_E4M3", "[1]", "[0,1]", &[0]), ArchiveCode::TensorKind);
        assert_eq!(one("F32", "[-1]", "[0,4]", &[0; 4]), ArchiveCode::Text);
        let many = vec!["1"; 65].join(",");
        assert_eq!(one("U8", &format!("[{many}]"), "[0,1]", &[0]), ArchiveCode::Limit);
        assert_eq!(refused(&file("{", &[])), ArchiveCode::Text);
        assert_eq!(refused(&u64::MAX.to_le_bytes()), ArchiveCode::NotZip);
        assert_eq!(refused(b"short"), ArchiveCode::NotZip);
        let twice = r#"{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},
            "b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}"#;
        assert_eq!(refused(&file(twice, &[0])), ArchiveCode::Overlap);
    }
}

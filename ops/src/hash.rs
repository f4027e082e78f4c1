//! `hash()`: produces the same numbers as PyTorch built with libstdc++, so that programs that print hashes or branch on
//! them behave alike.

use flambeau_exec::KernelError;
use flambeau_ir::value::IValue;
use flambeau_tensor::{Device, DeviceKind};

/// Returns the hash of a value; tuples combine the hashes of their items.
pub(crate) fn hash(value: &IValue) -> Result<i64, KernelError> {
    enum Step {
        Value(IValue),
        Combine(usize),
    }
    let mut steps = vec![Step::Value(value.clone())];
    let mut done: Vec<u64> = Vec::new();
    while let Some(step) = steps.pop() {
        match step {
            Step::Combine(n) => {
                let items = done.split_off(done.len() - n);
                done.push(items.into_iter().fold(0, combine));
            }
            Step::Value(IValue::Tuple(t)) => {
                steps.push(Step::Combine(t.items().len()));
                steps.extend(t.items().iter().rev().cloned().map(Step::Value));
            }
            Step::Value(plain) => done.push(hash_plain(&plain)?),
        }
    }
    Ok(done.pop().expect("invariant: one value in, one hash out") as i64)
}

fn hash_plain(value: &IValue) -> Result<u64, KernelError> {
    Ok(match value {
        IValue::None => 0,
        IValue::Bool(b) => u64::from(*b),
        IValue::Int(i) => *i as u64,
        IValue::Float(x) if *x == 0.0 => 0,
        IValue::Float(x) => bytes(&x.to_le_bytes()),
        IValue::Str(s) => bytes(s.as_bytes()),
        IValue::Tensor(t) => t.id() as u64,
        IValue::Device(d) => device(*d),
        IValue::Enum(_) => value.hash_value()? as u64,
        other => {
            let ty = other.type_of().annotation_str();
            return Err(KernelError::input(format!("unhashable type: '{ty}'")));
        }
    })
}

fn device(d: Device) -> u64 {
    let kind: u64 = match d.kind {
        DeviceKind::Cpu => 0,
        DeviceKind::Cuda => 1,
        DeviceKind::Meta => 14,
    };
    (kind << 16) | u64::from(d.index.unwrap_or(0xff))
}

fn combine(seed: u64, hash: u64) -> u64 {
    let mixed = hash.wrapping_add(0x9e37_79b9).wrapping_add(seed << 6).wrapping_add(seed >> 2);
    seed ^ mixed
}

/// MurmurHash64A with the seed of libstdc++.
fn bytes(data: &[u8]) -> u64 {
    const MUL: u64 = 0xc6a4_a793_5bd1_e995;
    const SEED: u64 = 0xc70f_6907;
    let mix = |v: u64| v ^ (v >> 47);
    let (words, tail) = data.as_chunks::<8>();
    let mut hash = SEED ^ (data.len() as u64).wrapping_mul(MUL);
    for word in words {
        let data = mix(u64::from_le_bytes(*word).wrapping_mul(MUL)).wrapping_mul(MUL);
        hash = (hash ^ data).wrapping_mul(MUL);
    }
    if !tail.is_empty() {
        let last = tail.iter().rev().fold(0u64, |v, &b| (v << 8) | u64::from(b));
        hash = (hash ^ last).wrapping_mul(MUL);
    }
    mix(mix(hash).wrapping_mul(MUL))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_hashes() {
        let of = |v: IValue| hash(&v).unwrap();
        assert_eq!(of(IValue::str("a")), 4993892634952068459);
        assert_eq!(of(IValue::str("")), 6142509188972423790);
        assert_eq!(of(IValue::str("hello world")), 5577293430985752569);
        assert_eq!(of(IValue::Float(5.0)), 7963867358345340974);
        assert_eq!(of(IValue::Float(-0.0)), 0);
        assert_eq!(of(IValue::Int(-1)), -1);
        assert_eq!(of(IValue::tuple(vec![IValue::Int(1), IValue::Int(2)])), 175247769363);
        assert_eq!(of(IValue::tuple(vec![IValue::Int(1), IValue::str("a")])), 4993892805569072552);
        assert_eq!(of(IValue::tuple(vec![])), 0);
        assert_eq!(of(IValue::Device(Device::CPU)), 255);
        assert!(hash(&IValue::ints(vec![])).is_err());
    }
}

//! Devices, layouts and memory formats: names and integers of PyTorch. Only the CPU executes here; the other
//! devices exist because programs and archives name them.

use std::fmt;

use crate::error::{Result, TensorError};

/// The kind of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeviceKind {
    /// The processor: the only one that executes.
    Cpu,
    /// A graphics processor, by name only.
    Cuda,
    /// Shapes without data, by name only.
    Meta,
}

/// A device: its kind and, if given, its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Device {
    /// The kind.
    pub kind: DeviceKind,
    /// The number after the colon.
    pub index: Option<u8>,
}

/// The kinds of devices that PyTorch has.
const KNOWN: [&str; 21] = [
    "cpu",
    "cuda",
    "ipu",
    "xpu",
    "mkldnn",
    "opengl",
    "opencl",
    "ideep",
    "hip",
    "ve",
    "fpga",
    "maia",
    "xla",
    "lazy",
    "vulkan",
    "mps",
    "meta",
    "hpu",
    "mtia",
    "privateuseone",
    "ort",
];

impl Device {
    /// The processor, without a number.
    pub const CPU: Device = Device { kind: DeviceKind::Cpu, index: None };

    /// Reads `"cpu"`, `"cpu:0"`, `"cuda:1"`, `"meta"`.
    pub fn parse(text: &str) -> Result<Device> {
        let bad = || TensorError::value(format!("Invalid device string: '{text}'"));
        let (kind, index) = match text.split_once(':') {
            Some((kind, index)) => {
                let plain =
                    index.bytes().all(|b| b.is_ascii_digit()) && (index == "0" || !index.starts_with('0'));
                (kind, Some(index.parse::<u8>().ok().filter(|i| plain && *i < 128).ok_or_else(bad)?))
            }
            None => (text, None),
        };
        let kind = match kind {
            "cpu" => DeviceKind::Cpu,
            "cuda" => DeviceKind::Cuda,
            "meta" => DeviceKind::Meta,
            _ => return Err(bad()),
        };
        Ok(Device { kind, index })
    }

    /// Whether PyTorch knows a device of this name, be it one that tensors cannot be on here.
    pub fn is_known(text: &str) -> bool {
        let (kind, index) = text.split_once(':').unwrap_or((text, "0"));
        KNOWN.contains(&kind) && Device::parse(&format!("cpu:{index}")).is_ok()
    }

    /// Whether tensors on it can be computed with here.
    pub fn is_cpu(self) -> bool {
        self.kind == DeviceKind::Cpu
    }

    /// The kind's name: `"cpu"`.
    pub fn type_name(self) -> &'static str {
        match self.kind {
            DeviceKind::Cpu => "cpu",
            DeviceKind::Cuda => "cuda",
            DeviceKind::Meta => "meta",
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.type_name())?;
        match self.index {
            Some(index) => write!(f, ":{index}"),
            None => Ok(()),
        }
    }
}

impl std::str::FromStr for Device {
    type Err = TensorError;

    fn from_str(text: &str) -> Result<Device> {
        Device::parse(text)
    }
}

/// PyTorch's `Layout`: only strided tensors exist here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i64)]
pub enum TensorLayout {
    /// Dense with strides.
    Strided = 0,
    /// Coordinates (named only).
    Sparse = 1,
    /// Compressed rows (named only).
    SparseCsr = 2,
    /// oneDNN's own (named only).
    Mkldnn = 3,
}

impl TensorLayout {
    /// From PyTorch's integer.
    pub fn from_number(number: i64) -> Option<TensorLayout> {
        [TensorLayout::Strided, TensorLayout::Sparse, TensorLayout::SparseCsr, TensorLayout::Mkldnn]
            .into_iter()
            .find(|layout| *layout as i64 == number)
    }
}

/// PyTorch's `MemoryFormat`: which stride order a fresh tensor gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i64)]
pub enum MemoryFormat {
    /// Row-major.
    Contiguous = 0,
    /// As the input, if that is dense and without overlap.
    Preserve = 1,
    /// Batch, height, width, channels (rank 4).
    ChannelsLast = 2,
    /// Batch, depth, height, width, channels (rank 5).
    ChannelsLast3d = 3,
}

impl MemoryFormat {
    /// From PyTorch's integer.
    pub fn from_number(number: i64) -> Option<MemoryFormat> {
        use MemoryFormat::*;
        [Contiguous, Preserve, ChannelsLast, ChannelsLast3d].into_iter().find(|f| *f as i64 == number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_read_and_print() {
        for text in ["cpu", "cpu:0", "cuda:1", "meta", "cuda:127"] {
            assert_eq!(Device::parse(text).unwrap().to_string(), text);
        }
        for text in ["", "cpu:", "cpu:x", "gpu", "cuda:01", "cuda:-1", "cuda:+1", "cuda:999", "cpu:0:0"] {
            assert!(Device::parse(text).is_err(), "{text}");
        }
    }
}

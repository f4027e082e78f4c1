//! Devices, layouts and memory formats: names and integers of PyTorch.
//!
//! Only the CPU executes here. The other devices exist because programs and archives name them.

use std::fmt;

use crate::error::{Result, TensorError};

/// The kind of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeviceKind {
    /// The CPU, the only device that executes.
    Cpu,
    /// A CUDA GPU, by name only.
    Cuda,
    /// Shapes without data, by name only.
    Meta,
}

/// A device: its kind and, optionally, its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Device {
    /// The kind.
    pub kind: DeviceKind,
    /// The number after the colon.
    pub index: Option<u8>,
}

/// Names of the device kinds of PyTorch.
const DEVICE_NAMES: [&str; 20] = [
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
];

/// A name of archives of older versions.
const OLD_NAME: &str = "ort";

impl Device {
    /// The CPU, without a number.
    pub const CPU: Device = Device { kind: DeviceKind::Cpu, index: None };

    /// Parses `"cpu"`, `"cpu:0"`, `"cuda:1"`, `"meta"`.
    ///
    /// # Errors
    /// Returns [`TensorError::Value`] if the text is not one of these forms.
    pub fn parse(text: &str) -> Result<Device> {
        let bad = || TensorError::value(format!("Invalid device string: '{text}'"));
        let (kind, index) = match text.split_once(':') {
            Some((kind, index)) => {
                let is_decimal =
                    index.bytes().all(|b| b.is_ascii_digit()) && (index == "0" || !index.starts_with('0'));
                (kind, Some(index.parse::<u8>().ok().filter(|i| is_decimal && *i < 128).ok_or_else(bad)?))
            }
            None => (text, None),
        };
        let kind = match kind {
            "cpu" => DeviceKind::Cpu,
            "cuda" => DeviceKind::Cuda,
            "meta" => DeviceKind::Meta,
            "" if text.is_empty() => return Err(TensorError::value("Device string must not be empty")),
            known if DEVICE_NAMES.contains(&known) || known == OLD_NAME => {
                return Err(TensorError::value(format!("devices of the type `{known}` are not supported")));
            }
            name if !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphabetic() || b == b'_') => {
                return Err(TensorError::value(format!(
                    "Expected one of {} device type at start of device string: {kind}",
                    DEVICE_NAMES.join(", ")
                )));
            }
            _ => return Err(bad()),
        };
        Ok(Device { kind, index })
    }

    /// Returns whether PyTorch has a device of this name, including devices that are not available here.
    pub fn is_known(text: &str) -> bool {
        let (kind, index) = text.split_once(':').unwrap_or((text, "0"));
        (DEVICE_NAMES.contains(&kind) || kind == OLD_NAME) && Device::parse(&format!("cpu:{index}")).is_ok()
    }

    /// Returns whether tensors on this device can be computed with here.
    pub fn is_cpu(self) -> bool {
        self.kind == DeviceKind::Cpu
    }

    /// Returns the kind's name, such as `"cpu"`.
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
    /// Coordinates (by name only).
    Sparse = 1,
    /// Compressed rows (by name only).
    SparseCsr = 2,
    /// oneDNN's format (by name only).
    Mkldnn = 3,
}

impl TensorLayout {
    /// Returns the layout with PyTorch's integer.
    pub fn from_number(number: i64) -> Option<TensorLayout> {
        [TensorLayout::Strided, TensorLayout::Sparse, TensorLayout::SparseCsr, TensorLayout::Mkldnn]
            .into_iter()
            .find(|layout| *layout as i64 == number)
    }
}

/// PyTorch's `MemoryFormat`: the stride order of a fresh tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i64)]
pub enum MemoryFormat {
    /// Row-major.
    Contiguous = 0,
    /// The input's strides, if it is dense and without overlap.
    Preserve = 1,
    /// Batch, height, width, channels (rank 4).
    ChannelsLast = 2,
    /// Batch, depth, height, width, channels (rank 5).
    ChannelsLast3d = 3,
}

impl MemoryFormat {
    /// Returns the memory format with PyTorch's integer.
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

//! Operands of in-place operators that share memory with the tensor that is written.
//!
//! PyTorch refuses most of them, because what an element is then depends on the order in which elements are visited. Which
//! operators refuse what is recorded in `in_place.txt` by `tests/oracle/overlaps.py`: an operator that is not listed
//! refuses an operand that shares some of the memory (and is not the tensor itself, element for element). Where PyTorch
//! cannot tell whether two tensors share elements, because one of them has gaps, it computes in its own order; here such an
//! operand is read as it was before the call.
//!
//! The check compares storages first: it costs O(rank), and only for operands in the storage that is written.

use flambeau_exec::KernelError;
use flambeau_ir::IValue;
use flambeau_tensor::{Tensor, TensorError, loops};
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// What an in-place operator refuses.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct InPlaceRules {
    /// Results of another dtype.
    pub(crate) exact: bool,
    /// Nothing that shares some of the memory: such an operand is read as it was before the call.
    pub(crate) mixed: bool,
    /// Also an operand that is the tensor itself.
    pub(crate) whole: bool,
}

impl InPlaceRules {
    /// The rules of an operator: full name with the `_`, and overload.
    pub(crate) fn of(name: &str, overload: &str) -> InPlaceRules {
        static ROWS: OnceLock<BTreeMap<&'static str, InPlaceRules>> = OnceLock::new();
        let rows = ROWS.get_or_init(|| {
            let row = |line: &'static str| {
                let (name, flags) = line.split_once(' ').unwrap_or((line, ""));
                let has = |flag: &str| flags.split(' ').any(|f| f == flag);
                (name, InPlaceRules { exact: false, mixed: has("mixed"), whole: has("whole") })
            };
            include_str!("in_place.txt").lines().map(row).collect()
        });
        let full = if overload.is_empty() { name.to_owned() } else { format!("{name}.{overload}") };
        rows.get(full.as_str()).copied().unwrap_or_default()
    }

    /// An error if an operand shares memory with argument 0 in a way that the operator refuses.
    pub(crate) fn check(self, args: &[IValue]) -> Result<(), KernelError> {
        let Some((IValue::Tensor(target), operands)) = args.split_first() else { return Ok(()) };
        if self.mixed && !self.whole {
            return Ok(());
        }
        for operand in operands {
            match operand {
                IValue::Tensor(operand) => self.check_operand(target, operand)?,
                IValue::List(list) => {
                    let shared = list
                        .read()
                        .iter()
                        .filter_map(|item| item.as_tensor().cloned())
                        .try_for_each(|operand| self.check_operand(target, &operand));
                    shared?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn check_operand(self, target: &Tensor, operand: &Tensor) -> Result<(), KernelError> {
        if !target.shares_storage(operand) {
            return Ok(());
        }
        match loops::is_shared(target, operand)? && self.whole {
            true => Err(TensorError::PartialOverlap.into()),
            false => Ok(()),
        }
    }
}

//! Overlap checks of in-place operators: operands that share memory with the written tensor.
//!
//! PyTorch rejects most of them, because results would depend on the order in which elements are visited.
//! `in_place.txt`, recorded by `tests/oracle/overlaps.py`, lists the exceptions. An operator that is not listed rejects
//! an operand that overlaps the tensor partially, but not the tensor itself. If PyTorch cannot decide whether two
//! tensors overlap, because one of them has gaps, it computes in its own order; here such an operand is read with its
//! values before the call.
//!
//! The check compares storages first, so it costs O(rank) and only for operands in the written storage.

use crate::synonyms::canonical;
use flambeau_exec::KernelError;
use flambeau_ir::IValue;
use flambeau_tensor::{Tensor, TensorError, loops};
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// Restrictions of an in-place operator.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct InPlaceRules {
    /// Rejects results of another dtype.
    pub(crate) exact: bool,
    /// Permits operands that overlap the tensor partially; they are read with their values before the call.
    pub(crate) mixed: bool,
    /// Rejects operands that are the tensor itself.
    pub(crate) whole: bool,
}

impl InPlaceRules {
    /// Returns the rules of an operator, by full name including the `_`, and overload. Synonyms have the rules of their
    /// canonical operator.
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
        let name = canonical(name);
        let full = if overload.is_empty() { name.into_owned() } else { format!("{name}.{overload}") };
        rows.get(full.as_str()).copied().unwrap_or_default()
    }

    /// Returns an error if an operand overlaps argument 0 in a way that the operator rejects.
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

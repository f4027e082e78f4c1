//! Printing of constants as literals, and the table of constants without a literal.

use std::ops::ControlFlow;

use flambeau_ir::IValue;
use flambeau_ir::value::{PrintStyle, print_value_with};
use flambeau_tensor::compare::bitwise_equal;
use hashbrown::HashTable;
use rustc_hash::FxHasher;
use std::hash::{Hash, Hasher};

use super::{Printer, Res, unprintable};

/// The values that source refers to as `CONSTANTS.cN`.
#[derive(Default)]
pub(super) struct ConstantTable {
    values: Vec<IValue>,
    index: HashTable<usize>,
}

/// Returns a hash that is the same for equal constants. Tensors are hashed by dtype and sizes, which is cheap for large
/// ones.
fn fingerprint(value: &IValue) -> u64 {
    let mut h = FxHasher::default();
    match value {
        IValue::Tensor(t) => (t.dtype() as u8, t.sizes()).hash(&mut h),
        IValue::Str(s) => s.as_bytes().hash(&mut h),
        other => other.identity().hash(&mut h),
    }
    h.finish()
}

fn same(a: &IValue, b: &IValue) -> bool {
    match (a, b) {
        (IValue::Tensor(a), IValue::Tensor(b)) => {
            a.dtype() == b.dtype() && a.sizes() == b.sizes() && bitwise_equal(a, b).unwrap_or(false)
        }
        (IValue::Str(a), IValue::Str(b)) => a == b,
        _ => a.is_same(b),
    }
}

impl ConstantTable {
    /// Returns the index of a constant in the table; adds the constant if it is new.
    fn number(&mut self, value: &IValue) -> usize {
        let hash = fingerprint(value);
        if let Some(&found) = self.index.find(hash, |&i| same(&self.values[i], value)) {
            return found;
        }
        let number = self.values.len();
        self.values.push(value.clone());
        let values = &self.values;
        self.index.insert_unique(hash, number, |&i| fingerprint(&values[i]));
        number
    }

    pub(super) fn values(&self) -> &[IValue] {
        &self.values
    }

    pub(super) fn into_values(self) -> Vec<IValue> {
        self.values
    }
}

/// Returns true if the value has no literal.
fn needs_table(value: &IValue) -> bool {
    match value {
        IValue::Tensor(_) | IValue::Object(_) => true,
        // String literals are limited to ASCII.
        IValue::Str(s) => !s.as_bytes().is_ascii(),
        _ => false,
    }
}

impl Printer<'_> {
    /// Returns a constant as source.
    pub(super) fn constant(&mut self, value: &IValue) -> Res<String> {
        let odd = value.visit(|part| match part {
            IValue::Future(_) | IValue::Host(_) | IValue::Uninitialized => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        });
        if odd.is_break() {
            return Err(unprintable(&format!("a constant of type {}", value.type_of().annotation())));
        }
        let mut text = String::new();
        let written = print_value_with(&mut text, value, PrintStyle::Exact, &mut |out, part| {
            if needs_table(part) {
                write!(out, "CONSTANTS.c{}", self.constants.number(part))?;
                return Ok(true);
            }
            match part {
                IValue::Tuple(t) => {
                    if let Some(named) = t.named_type() {
                        out.write_str(&self.type_source(named))?;
                    }
                    Ok(false)
                }
                IValue::Enum(e) => {
                    write!(out, "{}.{}", self.type_source(e.ty()), e.name())?;
                    Ok(true)
                }
                IValue::Function(name) => {
                    self.need(super::Definition::Function(*name));
                    Ok(false)
                }
                _ => Ok(false),
            }
        });
        written.map_err(|_| unprintable("a constant"))?;
        Ok(text)
    }
}

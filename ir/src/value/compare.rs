//! Identity, equality and hashes of values.

use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::LazyLock;

use hashbrown::DefaultHashBuilder;
use rustc_hash::FxBuildHasher;

use super::{IValue, ListItems, ValueError};

impl IValue {
    /// The operator `is`: scalars and enum members by value, shared values by identity.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::None, Self::None) | (Self::Uninitialized, Self::Uninitialized) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Int(a), Self::Int(b)) => a == b,
            (Self::Float(a), Self::Float(b)) => a == b,
            (Self::Complex(a), Self::Complex(b)) => a == b,
            (Self::Device(a), Self::Device(b)) => a == b,
            (Self::Function(a), Self::Function(b)) => a == b,
            (Self::Enum(a), Self::Enum(b)) => a.same_member(b),
            _ => {
                std::mem::discriminant(self) == std::mem::discriminant(other)
                    && self.identity().is_some()
                    && self.identity() == other.identity()
            }
        }
    }

    /// The operator `==`: containers by contents (a container equals itself, whatever it contains), objects by
    /// identity. Numbers of different kinds are not equal. Tensors are comparable only if each has one element.
    ///
    /// # Errors
    /// Returns [`ValueError::AmbiguousTensor`] if a tensor does not have exactly one element, and
    /// [`ValueError::Tensor`] if a tensor cannot be read.
    pub fn equals(&self, other: &Self) -> Result<bool, ValueError> {
        let mut todo = vec![(self.clone(), other.clone())];
        let mut assumed: hashbrown::HashSet<(usize, usize), FxBuildHasher> = hashbrown::HashSet::default();
        while let Some((a, b)) = todo.pop() {
            match equal_here(&a, &b)? {
                Some(true) => continue,
                Some(false) => return Ok(false),
                None => {}
            }
            // A pair that occurs again is already being compared: a cycle, or shared contents.
            if let (Some(x), Some(y)) = (a.identity(), b.identity())
                && (x == y || !assumed.insert((x, y)))
            {
                continue;
            }
            match (&a, &b) {
                (Self::Dict(x), Self::Dict(y)) => {
                    let (x, y) = (x.to_vec(), y.copy());
                    if x.len() != y.len() {
                        return Ok(false);
                    }
                    for (key, value) in x {
                        match y.get(&key)? {
                            Some(found) => todo.push((value, found)),
                            None => return Ok(false),
                        }
                    }
                }
                _ => {
                    let (x, y) = (a.sub_values(), b.sub_values());
                    if x.len() != y.len() {
                        return Ok(false);
                    }
                    todo.extend(x.into_iter().zip(y).rev());
                }
            }
        }
        Ok(true)
    }

    /// Whether the value can be a dictionary key.
    #[must_use]
    pub fn is_hashable(&self) -> bool {
        matches!(self, Self::Int(_) | Self::Str(_))
            || self.hash_into(&mut FxBuildHasher.build_hasher()).is_ok()
    }

    /// Returns the hash of a dictionary key that is neither an integer nor a string.
    pub(super) fn other_key_hash(&self) -> Result<u64, ValueError> {
        let mut state = SEEDS.others.build_hasher();
        self.hash_into(&mut state)?;
        Ok(state.finish())
    }

    /// Hashes a value: equal keys of dictionaries have equal hashes.
    fn hash_into(&self, state: &mut impl Hasher) -> Result<(), ValueError> {
        if let Self::Int(i) = self {
            i.hash(state);
            return Ok(());
        }
        std::mem::discriminant(self).hash(state);
        // Adding zero maps -0.0 to 0.0.
        let bits = |x: f64| (x + 0.0).to_bits();
        match self {
            Self::None => {}
            Self::Bool(b) => b.hash(state),
            Self::Float(x) => bits(*x).hash(state),
            Self::Complex(z) => (bits(z.re), bits(z.im)).hash(state),
            Self::Str(s) => s.as_bytes().hash(state),
            Self::Tensor(t) => t.id().hash(state),
            Self::Device(d) => d.hash(state),
            Self::Enum(e) => (e.ty(), e.name()).hash(state),
            _ => return Err(ValueError::Unhashable(self.tag())),
        }
        Ok(())
    }

    /// The function `hash()`: equal values have equal hashes within one process; a tuple is hashed by its items.
    ///
    /// # Errors
    /// Returns [`ValueError::Unhashable`] if the value, or an item of a tuple, is of a kind without a hash.
    pub fn hash_value(&self) -> Result<i64, ValueError> {
        let mut state = FxBuildHasher.build_hasher();
        let mut todo = vec![self.clone()];
        while let Some(value) = todo.pop() {
            if let Self::Tuple(t) = &value {
                t.items().len().hash(&mut state);
                todo.extend(t.items().iter().rev().cloned());
            } else {
                let mut own = FxBuildHasher.build_hasher();
                value.hash_into(&mut own)?;
                own.finish().hash(&mut state);
            }
        }
        Ok(state.finish() as i64)
    }
}

/// Seeds of the hashes of dictionary keys, drawn once per process, so that keys that come from outside cannot be chosen to
/// have equal hashes. The function `hash()` has no seed: its results may be printed.
struct KeySeeds {
    ints: [u64; 2],
    others: DefaultHashBuilder,
}

static SEEDS: LazyLock<KeySeeds> = LazyLock::new(|| {
    let others = DefaultHashBuilder::default();
    // An odd factor, so that no bit of the key is lost.
    KeySeeds { ints: [others.hash_one(0), others.hash_one(1) | 1], others }
});

/// Returns the hash of an integer as a dictionary key: the two halves of a product of 128 bits.
#[inline]
pub(super) fn hash_int(i: i64) -> u64 {
    let [offset, factor] = SEEDS.ints;
    let product = u128::from(i as u64 ^ offset) * u128::from(factor);
    product as u64 ^ (product >> 64) as u64
}

/// Returns the hash of the bytes of a string as a dictionary key.
pub(super) fn hash_bytes(bytes: &[u8]) -> u64 {
    SEEDS.others.hash_one(bytes)
}

/// Returns the result if it can be determined without comparing contents element by element as values.
fn equal_here(a: &IValue, b: &IValue) -> Result<Option<bool>, ValueError> {
    Ok(Some(match (a, b) {
        (IValue::Str(x), IValue::Str(y)) => x == y,
        (IValue::Tensor(x), IValue::Tensor(y)) => {
            if x.ptr_eq(y) && x.numel() != 1 {
                return Ok(Some(true));
            }
            if x.numel() != 1 || y.numel() != 1 {
                let n = x.numel().max(y.numel());
                return Err(ValueError::AmbiguousTensor(if n == 0 {
                    "no values"
                } else {
                    "more than one value"
                }));
            }
            x.item()? == y.item()?
        }
        (IValue::List(x), IValue::List(y)) => {
            if x.ptr_eq(y) {
                return Ok(Some(true));
            }
            // Locks are taken in the order of addresses, so that `a == b` and `b == a` on two threads cannot wait for each
            // other.
            let (x, y) = if a.identity() < b.identity() {
                let x = x.read();
                (x, y.read())
            } else {
                let y = y.read();
                (x.read(), y)
            };
            match (&*x, &*y) {
                (ListItems::Ints(x), ListItems::Ints(y)) => x == y,
                (ListItems::Floats(x), ListItems::Floats(y)) => x == y,
                (ListItems::Bools(x), ListItems::Bools(y)) => x == y,
                _ => return Ok(None),
            }
        }
        (IValue::Tuple(x), IValue::Tuple(y)) if !x.ptr_eq(y) => return Ok(None),
        (IValue::Dict(x), IValue::Dict(y)) if !x.ptr_eq(y) => return Ok(None),
        _ => a.is_same(b),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Type;

    #[test]
    fn identity_and_equality() {
        let a = IValue::ints(vec![1, 2]);
        let b = IValue::ints(vec![1, 2]);
        assert!(!a.is_same(&b) && a.is_same(&a.clone()));
        assert_eq!(a.equals(&b), Ok(true));
        assert_eq!(IValue::Int(1).equals(&IValue::Float(1.0)), Ok(false));
        let mixed = IValue::list(Type::ANY, vec![IValue::Int(1), IValue::Int(2)]);
        assert_eq!(a.equals(&mixed), Ok(true));
        let pair = |x| IValue::tuple(vec![IValue::str("k"), x]);
        assert_eq!(pair(a.clone()).equals(&pair(b)), Ok(true));
        assert_eq!(pair(a).equals(&pair(IValue::None)), Ok(false));
        assert_eq!(pair(IValue::Int(1)).hash_value(), pair(IValue::Int(1)).hash_value());
        assert!(IValue::ints(vec![]).hash_value().is_err());
    }
}

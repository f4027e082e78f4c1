//! Argument specs: the metadata of a call's arguments as a short sequence of words, with a hash.
//!
//! Two calls with equal specs satisfy the same assumptions, so the spec is the key under which the plan that
//! was found for a call is remembered. The words are written and hashed in one pass over the arguments. A spec describes
//!
//! - a tensor: dtype, device, rank, sizes, strides and whether it requires a gradient;
//! - a tuple: its members, up to [`MAX_DEPTH`]; the spec of deeper tuples is *truncated*;
//! - any other value: its kind, so that the presence of optionals and the types of numbers are included.
//!
//! Values of numbers, strings and containers are not part of it. The first word states whether gradients are enabled.
//!
//! A repeated call is not described at all: [`CompleteArgumentSpec::matches`] compares its arguments with the words of a former
//! call, which takes a few nanoseconds per tensor and neither hashes nor allocates.

use flambeau_ir::IValue;
use flambeau_tensor::{DeviceKind, Tensor};
use smallvec::SmallVec;

/// Maximum nesting of tuples whose members are described. A spec with a deeper tuple is truncated: of that tuple it has the kind
/// only, so equal specs do not imply equal assumptions.
const MAX_DEPTH: u32 = 4;

type Words = SmallVec<[u64; 24]>;

/// The description of the arguments of one call, with sizes and strides, as in TorchScript. See the [module](self).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompleteArgumentSpec {
    hash: u64,
    words: Words,
    is_truncated: bool,
}

/// A description without sizes and strides, as in TorchScript: the properties that select a separate profile, such as
/// dtypes and ranks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ArgumentSpec(Words);

impl CompleteArgumentSpec {
    /// Describes arguments.
    #[must_use]
    pub fn of(args: &[IValue], grad_enabled: bool) -> CompleteArgumentSpec {
        let mut sink = Full { hash: 0, words: Words::new(), is_truncated: false };
        describe(args, grad_enabled, &mut sink);
        CompleteArgumentSpec { hash: finish(sink.hash), words: sink.words, is_truncated: sink.is_truncated }
    }

    /// Returns whether tuples are nested so deeply that the spec does not describe all members. Calls with equal specs satisfy the
    /// same assumptions unless the specs are truncated.
    #[must_use]
    pub fn is_truncated(&self) -> bool {
        self.is_truncated
    }

    /// Returns the words that describe the arguments, for [`matches_value`]. `None` if the spec is truncated, or
    /// for calls in the other mode of gradients.
    #[inline]
    pub(crate) fn argument_words(&self, grad_enabled: bool) -> Option<&[u64]> {
        let (&grad, words) = self.words.split_first()?;
        (!self.is_truncated && grad == u64::from(grad_enabled)).then_some(words)
    }

    /// Returns whether arguments have this description, and it is not truncated.
    #[inline]
    #[must_use]
    pub fn matches(&self, args: &[IValue], grad_enabled: bool) -> bool {
        let Some(mut rest) = self.argument_words(grad_enabled) else { return false };
        args.iter().all(|arg| matches_value(arg, &mut rest)) && rest.is_empty()
    }

    /// Returns the hash of the description.
    #[must_use]
    pub fn hash(&self) -> u64 {
        self.hash
    }
}

impl ArgumentSpec {
    /// Returns the words of the description.
    pub(crate) fn words(&self) -> &[u64] {
        &self.0
    }

    /// Returns the description with these words.
    pub(crate) fn of_words(words: &[u64]) -> ArgumentSpec {
        ArgumentSpec(words.into())
    }

    /// Returns whether gradients are enabled in calls of this kind.
    pub(crate) fn grad_enabled(&self) -> bool {
        self.0.first() == Some(&1)
    }

    /// Describes arguments.
    #[must_use]
    pub fn of(args: &[IValue], grad_enabled: bool) -> ArgumentSpec {
        let mut sink = Kinds(Words::new());
        describe(args, grad_enabled, &mut sink);
        ArgumentSpec(sink.0)
    }
}

/// Receiver of a description.
trait SpecSink {
    fn kind(&mut self, word: u64);
    fn size(&mut self, word: u64);
    fn truncate(&mut self) {}
}

struct Full {
    hash: u64,
    words: Words,
    is_truncated: bool,
}

impl SpecSink for Full {
    #[inline]
    fn kind(&mut self, word: u64) {
        // The multiplier of FxHash.
        self.hash = (self.hash.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
        self.words.push(word);
    }

    #[inline]
    fn size(&mut self, word: u64) {
        self.kind(word);
    }

    fn truncate(&mut self) {
        self.is_truncated = true;
    }
}

/// Spreads the high bits, which depend on all words, over the low ones, which select a slot of a table.
fn finish(hash: u64) -> u64 {
    hash ^ (hash >> 32)
}

struct Kinds(Words);

impl SpecSink for Kinds {
    fn kind(&mut self, word: u64) {
        self.0.push(word);
    }

    fn size(&mut self, _: u64) {}
}

#[inline]
fn describe(args: &[IValue], grad_enabled: bool, sink: &mut impl SpecSink) {
    sink.kind(u64::from(grad_enabled));
    args.iter().for_each(|arg| value(arg, 0, sink));
}

fn value(arg: &IValue, depth: u32, sink: &mut impl SpecSink) {
    match arg {
        IValue::Tensor(t) => tensor(t, sink),
        IValue::Tuple(t) if depth < MAX_DEPTH => {
            sink.kind(tuple_word(t.items().len()));
            t.items().iter().for_each(|item| value(item, depth + 1, sink));
        }
        other => {
            sink.kind(head(tag(other)));
            if let IValue::Tuple(_) = other {
                sink.truncate();
            }
        }
    }
}

fn tag(value: &IValue) -> ValueTag {
    match value {
        IValue::Tensor(_) => ValueTag::Tensor,
        IValue::Tuple(_) => ValueTag::Tuple,
        IValue::None => ValueTag::None,
        IValue::Bool(_) => ValueTag::Bool,
        IValue::Int(_) => ValueTag::Int,
        IValue::Float(_) => ValueTag::Float,
        IValue::Complex(_) => ValueTag::Complex,
        IValue::Str(_) => ValueTag::Str,
        _ => ValueTag::Other,
    }
}

fn tuple_word(len: usize) -> u64 {
    head(ValueTag::Tuple) | (len as u64) << 8
}

/// Kinds of values, in the lowest byte of their first word.
#[derive(Clone, Copy)]
enum ValueTag {
    None,
    Bool,
    Int,
    Float,
    Complex,
    Str,
    Tensor,
    Tuple,
    Other,
}

fn head(tag: ValueTag) -> u64 {
    tag as u64
}

/// Compares a value with the words at the start of `rest`, and removes them from it.
#[inline(always)]
pub(crate) fn matches_value(arg: &IValue, rest: &mut &[u64]) -> bool {
    match arg {
        IValue::Tensor(t) => matches_tensor(t, rest),
        _ => matches_other(arg, 0, rest),
    }
}

// Inlined where arguments are bound: a call costs as much as the comparison.
#[inline(always)]
fn matches_tensor(t: &Tensor, rest: &mut &[u64]) -> bool {
    let layout = t.layout();
    let (sizes, strides) = (layout.sizes(), layout.strides());
    let Some((own, after)) = rest.split_at_checked(1 + sizes.len() + strides.len()) else { return false };
    *rest = after;
    let (known_sizes, known_strides) = own[1..].split_at(sizes.len());
    own[0] == first_word(t, sizes.len())
        && same_words(known_sizes, sizes)
        && same_words(known_strides, strides)
}

/// Compares word by word: most tensors have few dimensions, for which a call of `memcmp` costs more.
#[inline]
fn same_words(words: &[u64], dims: &[i64]) -> bool {
    words.iter().zip(dims).fold(true, |same, (&word, &dim)| same & (word == dim as u64))
}

#[inline(never)]
fn matches_other(arg: &IValue, depth: u32, rest: &mut &[u64]) -> bool {
    let mut next = |word: u64| {
        let Some((&first, after)) = rest.split_first() else { return false };
        *rest = after;
        first == word
    };
    match arg {
        IValue::Tensor(t) => matches_tensor(t, rest),
        IValue::Tuple(t) if depth < MAX_DEPTH => {
            next(tuple_word(t.items().len()))
                && t.items().iter().all(|item| matches_other(item, depth + 1, rest))
        }
        other => next(head(tag(other))),
    }
}

/// The first word of a tensor: tag, dtype, kind of device, index of device or 255 (8 bits each), rank (16 bits), then
/// a bit for the gradient.
#[inline]
fn first_word(t: &Tensor, rank: usize) -> u64 {
    let device = t.device();
    let kind = match device.kind {
        DeviceKind::Cpu => 0,
        DeviceKind::Cuda => 1,
        DeviceKind::Meta => 2,
    };
    head(ValueTag::Tensor)
        | (t.dtype() as u64) << 8
        | kind << 16
        | u64::from(device.index.unwrap_or(u8::MAX)) << 24
        | (rank as u64 & 0xffff) << 32
        | u64::from(t.requires_grad()) << 48
}

#[inline]
fn tensor(t: &Tensor, sink: &mut impl SpecSink) {
    let layout = t.layout();
    sink.kind(first_word(t, layout.rank()));
    layout.sizes().iter().chain(layout.strides()).for_each(|&n| sink.size(n as u64));
}

#[cfg(test)]
mod tests {
    use super::*;
    use flambeau_tensor::DType;

    fn tensor(sizes: &[i64]) -> Tensor {
        let n = sizes.iter().product::<i64>() as usize;
        Tensor::from_vec(vec![0.0f32; n], sizes).unwrap()
    }

    fn spec(args: &[IValue]) -> CompleteArgumentSpec {
        CompleteArgumentSpec::of(args, true)
    }

    #[test]
    fn every_property_is_part_of_the_key() {
        let x = || IValue::Tensor(tensor(&[2, 3]));
        let base = spec(&[x(), IValue::Int(1)]);
        assert_eq!(base, spec(&[x(), IValue::Int(2)]), "numbers are described by their type");
        let grad = tensor(&[2, 3]);
        grad.set_requires_grad(true);
        let turned = tensor(&[3, 2]).transpose(0, 1).unwrap();
        let long = Tensor::from_vec(vec![0i64; 6], &[2, 3]).unwrap();
        assert_eq!(long.dtype(), DType::I64);
        let others = [
            spec(&[IValue::Tensor(tensor(&[3, 2])), IValue::Int(1)]),
            spec(&[IValue::Tensor(tensor(&[6])), IValue::Int(1)]),
            spec(&[IValue::Tensor(grad), IValue::Int(1)]),
            spec(&[IValue::Tensor(turned), IValue::Int(1)]),
            spec(&[IValue::Tensor(long), IValue::Int(1)]),
            spec(&[IValue::None, IValue::Int(1)]),
            spec(&[x(), IValue::None]),
            spec(&[x(), IValue::Float(1.0)]),
            spec(&[x()]),
            spec(&[IValue::tuple(vec![x(), IValue::Int(1)])]),
            CompleteArgumentSpec::of(&[x(), IValue::Int(1)], false),
        ];
        assert!(base.matches(&[x(), IValue::Int(2)], true) && !base.matches(&[x(), IValue::Int(2)], false));
        assert!(!base.matches(&[x()], true) && !base.matches(&[x(), IValue::Int(1), IValue::Int(1)], true));
        for (i, other) in others.iter().enumerate() {
            assert!(!other.matches(&[x(), IValue::Int(1)], true), "{i}");
            assert_ne!(&base, other, "{i}");
            assert_ne!(base.hash(), other.hash(), "{i}");
        }
    }

    #[test]
    fn strides_that_sizes_do_not_determine_are_part_of_the_key() {
        for (sizes, strides) in [([3, 0], [[1, 1], [0, 1]]), ([1, 3], [[3, 1], [7, 1]])] {
            let of =
                |strides| spec(&[IValue::Tensor(tensor(&[8]).as_strided(&sizes, strides, None).unwrap())]);
            assert_ne!(of(&strides[0]), of(&strides[1]), "{sizes:?}");
        }
    }

    #[test]
    fn specs_of_deep_tuples_are_truncated() {
        let nested = |depth| {
            let inner = IValue::tuple(vec![IValue::Tensor(tensor(&[2]))]);
            spec(&[(0..depth).fold(inner, |value, _| IValue::tuple(vec![value]))])
        };
        assert!(!nested(3).is_truncated() && nested(4).is_truncated());
    }

    #[test]
    fn kinds_ignore_sizes_and_strides() {
        let kinds = |t: Tensor| ArgumentSpec::of(&[IValue::Tensor(t)], true);
        assert_eq!(kinds(tensor(&[2, 3])), kinds(tensor(&[4, 1])));
        assert_eq!(kinds(tensor(&[2, 3])), kinds(tensor(&[3, 2]).transpose(0, 1).unwrap()));
        assert_ne!(kinds(tensor(&[2, 3])), kinds(tensor(&[6])));
    }
}

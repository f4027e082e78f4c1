//! Samples: generators of operator arguments for tests, and tolerances for comparing results.
//!
//! One description serves the completeness test, trials of rewrite rules, and fuzzers. All choices come from a [`Gen`],
//! which reads a byte string (so that a fuzzer's mutations are meaningful) and then a pseudorandom sequence. The same
//! source yields the same arguments on every machine.

use flambeau_ir::Facet;
use flambeau_ir::schema::FunctionSchema;
use flambeau_ir::types::TypeKind;
use flambeau_ir::value::{IValue, List};
use flambeau_ir::{Symbol, Type};
use flambeau_tensor::{DType, Device, Layout, Scalar, Tensor};
use std::sync::Arc;

/// A deterministic source of choices.
#[derive(Clone)]
pub struct Gen<'a> {
    bytes: &'a [u8],
    state: u64,
}

impl<'a> Gen<'a> {
    /// Creates a source from a seed.
    pub fn from_seed(seed: u64) -> Gen<'static> {
        Gen { bytes: &[], state: seed }
    }

    /// Creates a source from bytes; after the last byte, choices are pseudorandom.
    pub fn from_bytes(bytes: &'a [u8]) -> Self {
        Gen { bytes, state: bytes.len() as u64 }
    }

    /// Returns 64 bits.
    pub fn bits(&mut self) -> u64 {
        if let Some((now, rest)) = self.bytes.split_first_chunk::<8>() {
            self.bytes = rest;
            return u64::from_le_bytes(*now);
        }
        // SplitMix64: a counter and a mixing function.
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Returns a number below `n` (0 if `n` is 0). Consumes only one byte if that suffices.
    pub fn below(&mut self, n: usize) -> usize {
        if n <= 1 {
            return 0;
        }
        if n <= 256
            && let Some((&b, rest)) = self.bytes.split_first()
        {
            self.bytes = rest;
            return usize::from(b) % n;
        }
        (self.bits() % n as u64) as usize
    }

    /// Returns an integer from `lo` to `hi`, inclusive.
    pub fn int(&mut self, lo: i64, hi: i64) -> i64 {
        let span = hi.wrapping_sub(lo).wrapping_add(1) as u64;
        if span == 0 {
            return self.bits() as i64;
        }
        let offset = if span <= 256 { self.below(span as usize) as u64 } else { self.bits() % span };
        lo.wrapping_add(offset as i64)
    }

    /// Returns a boolean.
    pub fn flag(&mut self) -> bool {
        self.below(2) == 1
    }

    /// Returns true with probability 1/`n`.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// Returns an f64 from `lo` to `hi` in 2^24 steps, so that it is exact in f32 for small integer ranges.
    pub fn float(&mut self, lo: f64, hi: f64) -> f64 {
        lo + (hi - lo) * ((self.bits() >> 40) as f64 / (1u64 << 24) as f64)
    }

    /// Returns one of several items.
    pub fn pick<'t, T>(&mut self, of: &'t [T]) -> &'t T {
        &of[self.below(of.len())]
    }
}

/// Element types: f32 and f64.
pub const FLOATS: &[DType] = &[DType::F32, DType::F64];
/// Element types: all floats, including f16 and bf16.
pub const ALL_FLOATS: &[DType] = &[DType::F32, DType::F64, DType::F16, DType::BF16];
/// Element types: integers.
pub const INTS: &[DType] = &[DType::I64, DType::I32, DType::I16, DType::I8, DType::U8];
/// Element types: complex numbers.
pub const COMPLEXES: &[DType] = &[DType::C64, DType::C128];
/// Element types: floats and integers.
pub const NUMBERS: &[DType] =
    &[DType::F32, DType::F64, DType::I64, DType::I32, DType::U8, DType::F16, DType::BF16];

/// Distribution of tensor elements.
#[derive(Clone, Debug)]
pub struct ElementDistribution {
    /// Element types.
    pub dtypes: Vec<DType>,
    /// Smallest value (clamped to the type's range).
    pub lo: f64,
    /// Largest value.
    pub hi: f64,
    /// Whether NaN, infinities and signed zeros are included occasionally.
    pub special: bool,
}

impl Default for ElementDistribution {
    fn default() -> Self {
        ElementDistribution { dtypes: FLOATS.to_vec(), lo: -3.0, hi: 3.0, special: false }
    }
}

/// Draws a tensor; sometimes with transposed strides.
///
/// # Panics
/// Panics if a size is negative, or memory is exhausted.
pub fn tensor(g: &mut Gen<'_>, sizes: &[i64], dtype: DType, elements: &ElementDistribution) -> Tensor {
    let n: i64 = sizes.iter().product();
    let signed = if dtype.is_signed() { elements.lo } else { elements.lo.max(0.0) };
    let whole = dtype.is_integral(true);
    let values: Vec<Scalar> = (0..n)
        .map(|_| {
            if elements.special && !whole && g.one_in(8) {
                return Scalar::Float(*g.pick(&[f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0]));
            }
            let x = g.float(signed, elements.hi);
            if dtype.is_complex() {
                return Scalar::Complex(flambeau_tensor::Complex::new(x, g.float(signed, elements.hi)));
            }
            if whole { Scalar::Int(x.floor() as i64) } else { Scalar::Float(x) }
        })
        .collect();
    // The same sizes with strides in reverse order.
    let turned = sizes.len() >= 2 && g.one_in(4);
    let made = if turned {
        let mut strides = vec![1i64; sizes.len()];
        let mut step = 1;
        for (stride, size) in strides.iter_mut().zip(sizes) {
            *stride = step;
            step *= size.max(&1);
        }
        Tensor::from_scalars(&values, &[n], dtype).and_then(|flat| {
            let layout = Layout::new(sizes, &strides, 0)?;
            Tensor::from_storage(flat.storage().clone(), dtype, layout)
        })
    } else {
        Tensor::from_scalars(&values, sizes, dtype)
    };
    made.expect("invariant: sample tensors are small and well formed")
}

/// Draws sizes of a tensor: rank `min_rank` to `max_rank`, each size 1 to 4, occasionally 0.
pub fn shape(g: &mut Gen<'_>, min_rank: usize, max_rank: usize) -> Vec<i64> {
    let rank = min_rank + g.below(max_rank - min_rank + 1);
    (0..rank).map(|_| if g.one_in(24) { 0 } else { g.int(1, 4) }).collect()
}

/// Draws a shape that broadcasts to `full`.
pub fn broadcastable(g: &mut Gen<'_>, full: &[i64]) -> Vec<i64> {
    let lead = if g.one_in(4) { g.below(full.len() + 1) } else { 0 };
    full[lead..].iter().map(|&n| if g.one_in(4) { 1 } else { n }).collect()
}

type SampleFn = Arc<dyn Fn(&mut Gen<'_>) -> Vec<IValue> + Send + Sync>;

/// Maximal difference of two results.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// Relative to the larger magnitude.
    pub relative: f64,
    /// Absolute difference.
    pub absolute: f64,
}

impl Tolerance {
    /// Bitwise equality.
    pub const EXACT: Tolerance = Tolerance { relative: 0.0, absolute: 0.0 };
}

/// Generates arguments of an operator.
#[derive(Clone)]
pub struct Sample {
    make: SampleKind,
    elements: ElementDistribution,
    broadcast: bool,
    min_rank: usize,
    max_rank: usize,
    extra: Vec<IValue>,
    same_dtype: bool,
    /// Maximal difference between results of kernels and recorded results.
    pub tolerance: Tolerance,
    /// Whether gradients may be checked by finite differences on these arguments.
    pub differentiable: bool,
}

#[derive(Clone)]
enum SampleKind {
    Tensors(usize),
    Args(SampleFn),
    Schema,
}

impl Facet for Sample {
    const NAME: &'static str = "sample";
}

impl Sample {
    fn of(make: SampleKind) -> Sample {
        Sample {
            make,
            elements: ElementDistribution::default(),
            broadcast: false,
            min_rank: 0,
            max_rank: 3,
            extra: Vec::new(),
            same_dtype: true,
            tolerance: Tolerance { relative: 1e-5, absolute: 1e-6 },
            differentiable: true,
        }
    }

    /// `n` tensors of one shape, then defaults for the remaining arguments.
    pub fn tensors(n: usize) -> Sample {
        Sample::of(SampleKind::Tensors(n))
    }

    /// Leading arguments from a function, then defaults for the remaining ones.
    pub fn args(make: impl Fn(&mut Gen<'_>) -> Vec<IValue> + Send + Sync + 'static) -> Sample {
        Sample::of(SampleKind::Args(Arc::new(make)))
    }

    /// Arguments drawn from the schema's types alone.
    pub fn by_schema() -> Sample {
        Sample::of(SampleKind::Schema)
    }

    /// Draws tensors of different shapes that broadcast together.
    pub fn broadcast(mut self) -> Sample {
        self.broadcast = true;
        self
    }

    /// Sets the element types.
    pub fn dtypes(mut self, dtypes: &[DType]) -> Sample {
        self.elements.dtypes = dtypes.to_vec();
        self
    }

    /// Sets the element types to f32 and f64.
    pub fn floats(self) -> Sample {
        self.dtypes(FLOATS)
    }

    /// Sets the element types to integers.
    pub fn ints(self) -> Sample {
        self.dtypes(INTS)
    }

    /// Sets the element types to floats and integers.
    pub fn numbers(self) -> Sample {
        self.dtypes(NUMBERS)
    }

    /// Sets the element type to bool.
    pub fn bools(self) -> Sample {
        self.dtypes(&[DType::Bool])
    }

    /// Allows the tensors of one call to have different element types.
    pub fn mixed_dtypes(mut self) -> Sample {
        self.same_dtype = false;
        self
    }

    /// Sets the range of elements.
    pub fn range(mut self, lo: f64, hi: f64) -> Sample {
        self.elements.lo = lo;
        self.elements.hi = hi;
        self
    }

    /// Includes NaN, infinities and signed zeros.
    pub fn special(mut self) -> Sample {
        self.elements.special = true;
        self
    }

    /// Sets the range of ranks.
    pub fn rank(mut self, min: usize, max: usize) -> Sample {
        self.min_rank = min;
        self.max_rank = max.max(min);
        self
    }

    /// Adds arguments after the drawn ones.
    pub fn then(mut self, args: impl IntoIterator<Item = IValue>) -> Sample {
        self.extra.extend(args);
        self
    }

    /// Sets the tolerance.
    pub fn tolerance(mut self, relative: f64, absolute: f64) -> Sample {
        self.tolerance = Tolerance { relative, absolute };
        self
    }

    /// Requires exact results.
    pub fn exact(mut self) -> Sample {
        self.tolerance = Tolerance::EXACT;
        self
    }

    /// Disables the gradient check by finite differences.
    pub fn not_differentiable(mut self) -> Sample {
        self.differentiable = false;
        self
    }

    /// Returns the distribution of elements.
    pub fn elements(&self) -> &ElementDistribution {
        &self.elements
    }

    /// Generates a complete argument list for a schema.
    pub fn make(&self, schema: &FunctionSchema, g: &mut Gen<'_>) -> Vec<IValue> {
        let args = match &self.make {
            SampleKind::Tensors(n) => {
                let full = shape(g, self.min_rank, self.max_rank);
                self.draw_tensors(*n, full, g)
            }
            SampleKind::Args(make) => make(g),
            SampleKind::Schema => Vec::new(),
        };
        self.completed(args, schema, g)
    }

    /// Like [`Sample::make`], with the shape of the tensors from `sizes`, called with the rank. Returns `None` if a
    /// function generates the arguments, since it chooses the shapes itself.
    pub fn make_sized(
        &self,
        schema: &FunctionSchema,
        g: &mut Gen<'_>,
        sizes: &mut dyn FnMut(&mut Gen<'_>, usize) -> Vec<i64>,
    ) -> Option<Vec<IValue>> {
        let SampleKind::Tensors(n) = self.make else { return None };
        let rank = self.min_rank + g.below(self.max_rank - self.min_rank + 1);
        let full = sizes(g, rank);
        let args = self.draw_tensors(n, full, g);
        Some(self.completed(args, schema, g))
    }

    /// Appends the arguments after the drawn ones: those of [`Sample::then`], then defaults.
    fn completed(&self, mut args: Vec<IValue>, schema: &FunctionSchema, g: &mut Gen<'_>) -> Vec<IValue> {
        args.extend(self.extra.iter().map(fresh));
        for (i, arg) in schema.args.iter().enumerate().skip(args.len()) {
            let default = match &self.make {
                SampleKind::Schema if g.flag() => None,
                _ => default_of(schema, i),
            };
            args.push(default.unwrap_or_else(|| self.draw(arg.ty, g)));
        }
        args
    }

    fn draw_tensors(&self, n: usize, full: Vec<i64>, g: &mut Gen<'_>) -> Vec<IValue> {
        let dtype = *g.pick(&self.elements.dtypes);
        let which_full = g.below(n);
        (0..n)
            .map(|i| {
                let sizes =
                    if self.broadcast && i != which_full { broadcastable(g, &full) } else { full.clone() };
                let dtype = if self.same_dtype { dtype } else { *g.pick(&self.elements.dtypes) };
                IValue::Tensor(tensor(g, &sizes, dtype, &self.elements))
            })
            .collect()
    }

    /// Draws a value of a type; `None` for types without literals (objects, functions).
    pub fn draw(&self, ty: Type, g: &mut Gen<'_>) -> IValue {
        match ty.kind() {
            TypeKind::Tensor(_) | TypeKind::Any => {
                let sizes = shape(g, self.min_rank, self.max_rank);
                let dtype = *g.pick(&self.elements.dtypes);
                IValue::Tensor(tensor(g, &sizes, dtype, &self.elements))
            }
            TypeKind::Int | TypeKind::SymInt => IValue::Int(g.int(-2, 3)),
            TypeKind::Float => IValue::Float(g.float(self.elements.lo, self.elements.hi)),
            TypeKind::Number if g.flag() => IValue::Int(g.int(-2, 3)),
            TypeKind::Number => IValue::Float(g.float(self.elements.lo, self.elements.hi)),
            TypeKind::Bool => IValue::Bool(g.flag()),
            TypeKind::Complex => {
                IValue::complex(flambeau_tensor::Complex::new(g.float(-3.0, 3.0), g.float(-3.0, 3.0)))
            }
            TypeKind::Str => IValue::str(["", "a", "sum", "hello world", "é"][g.below(5)]),
            TypeKind::Device => IValue::Device(Device::CPU),
            TypeKind::Optional(_) if g.one_in(3) => IValue::None,
            TypeKind::Optional(inner) => self.draw(*inner, g),
            TypeKind::List(elem) => {
                let n = g.below(4);
                let items = (0..n).map(|_| self.draw(*elem, g)).collect();
                IValue::List(List::from_values(*elem, items))
            }
            TypeKind::Tuple(t) => IValue::tuple(t.elems.iter().map(|&e| self.draw(e, g)).collect()),
            TypeKind::Dict(k, v) => {
                let dict = flambeau_ir::value::Dict::new(*k, *v);
                for _ in 0..g.below(4) {
                    let (key, value) = (self.draw(*k, g), self.draw(*v, g));
                    // Unhashable keys leave the dictionary empty.
                    let _ = dict.insert(key, value);
                }
                IValue::Dict(dict)
            }
            TypeKind::Var(name) if *name != Symbol::EMPTY => IValue::Int(g.int(-2, 3)),
            _ => IValue::None,
        }
    }
}

/// Returns an unshared copy of an argument's default.
fn default_of(schema: &FunctionSchema, i: usize) -> Option<IValue> {
    schema.args.get(i)?.default.as_ref().map(fresh)
}

/// Copies containers, so that samples do not share them.
fn fresh(value: &IValue) -> IValue {
    match value {
        IValue::List(l) => IValue::List(l.copy()),
        IValue::Dict(d) => IValue::Dict(d.copy()),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_source_gives_the_same_choices() {
        let draw = |mut g: Gen<'_>| (g.below(10), g.int(-5, 5), g.float(0.0, 1.0), g.bits());
        assert_eq!(draw(Gen::from_seed(3)), draw(Gen::from_seed(3)));
        assert_eq!(draw(Gen::from_bytes(b"abc")), draw(Gen::from_bytes(b"abc")));
        assert_ne!(draw(Gen::from_seed(3)), draw(Gen::from_seed(4)));
    }

    #[test]
    fn generated_shapes_broadcast() {
        let mut g = Gen::from_seed(1);
        for _ in 0..200 {
            let full = shape(&mut g, 0, 4);
            let part = broadcastable(&mut g, &full);
            assert!(flambeau_tensor::expandable(&part, &full), "{part:?} to {full:?}");
        }
    }
}

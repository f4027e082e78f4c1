//! Property tests of types, on random types.

use flambeau_tensor::{DType, Device};

use super::{
    Dim, NamedField, NoClasses, NoNames, TensorType, Type, is_subtype, parse_ir_type, read_annotation, unify,
};
use crate::symbol::Symbol;

/// A random number generator with a fixed seed, so that every run tests the same types.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }

    fn maybe<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        (self.below(2) == 0).then(|| make(self))
    }

    fn tensor(&mut self) -> Type {
        let dtype = self.maybe(|r| DType::ALL[r.below(12) as usize]);
        let dim = |r: &mut Self| if r.below(4) == 0 { Dim::Unknown } else { Dim::Known(r.below(5) as i64) };
        // Without an element type, the text does not distinguish rank zero from unknown rank.
        let least = u64::from(dtype.is_none());
        let sizes = self.maybe(|r| (0..least + r.below(3)).map(|_| dim(r)).collect::<Box<[Dim]>>());
        let rank = sizes.as_ref().map_or(0, |s| s.len());
        let strides = if rank > 0 {
            self.maybe(|r| (0..rank).map(|_| Some(r.below(9) as i64)).collect())
        } else {
            None
        };
        Type::tensor(TensorType {
            dtype,
            sizes,
            strides,
            device: self.maybe(|r| {
                if r.below(2) == 0 { Device::CPU } else { Device::parse("cuda:1").expect("a device") }
            }),
            requires_grad: self.maybe(|r| r.below(2) == 0),
            undefined: self.below(8) == 0,
        })
    }

    fn ty(&mut self, depth: u32) -> Type {
        const PLAIN: [Type; 12] = [
            Type::INT,
            Type::FLOAT,
            Type::BOOL,
            Type::STR,
            Type::COMPLEX,
            Type::NUMBER,
            Type::NONE,
            Type::ANY,
            Type::DEVICE,
            Type::GENERATOR,
            Type::TENSOR,
            Type::UNIT,
        ];
        if depth == 0 {
            return PLAIN[self.below(12) as usize];
        }
        let inner = |r: &mut Self| r.ty(depth - 1);
        match self.below(13) {
            0 | 1 => self.tensor(),
            2 | 3 => Type::list(inner(self)),
            4 => Type::dict(PLAIN[self.below(5) as usize], inner(self)),
            5 | 6 => Type::tuple(&(0..self.below(4)).map(|_| inner(self)).collect::<Vec<_>>()),
            7 => Type::optional(inner(self)),
            8 => Type::union(&(0..2 + self.below(3)).map(|_| inner(self)).collect::<Vec<_>>()),
            9 => Type::future(inner(self)),
            10 => Type::class(Symbol::new(&format!("__torch__.m.C{}", self.below(3))), 0),
            11 => {
                let field = |r: &mut Self, i: u64| {
                    let default = r.maybe(|_| Symbol::new("annotate(List[int], [])"));
                    (NamedField { name: Symbol::new(&format!("f{i}")), default }, r.ty(depth - 1))
                };
                let fields: Vec<_> = (0..1 + self.below(3)).map(|i| field(self, i)).collect();
                Type::named_tuple(Symbol::EMPTY, &fields)
            }
            _ => PLAIN[self.below(12) as usize],
        }
    }
}

/// Returns whether the type contains tuples with field names.
fn has_fields(ty: Type) -> bool {
    ty.as_tuple().is_some_and(|t| t.named.is_some()) || ty.kind().contained().into_iter().any(has_fields)
}

#[test]
fn printed_types_read_back() {
    let mut random = Random(1);
    for _ in 0..20_000 {
        let ty = random.ty(4);
        let text = ty.to_string();
        if has_fields(ty) && text.contains("Union(") {
            // Members that differ only in field names have the same text.
            continue;
        }
        let (read, end) = parse_ir_type(&text, 0).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!((read.to_string(), end), (text.clone(), text.len()));
        // A fully printed type parses back to itself. Inside dictionaries, tensors and tuples lose their properties,
        // and strides are printed only if all are known.
        let partial = ty.as_tensor().is_some_and(|t| t.strides.is_some() && t.concrete_strides().is_none());
        if (ty.erase_shapes() == ty && !has_fields(ty)) || (ty.is_tensor() && !partial) {
            assert_eq!(read, ty, "{text}");
        }
        let annotation = ty.annotation_str();
        if !has_fields(ty) {
            let read = read_annotation(&annotation, &NoNames).unwrap_or_else(|e| panic!("{annotation}: {e}"));
            assert_eq!(read, ty.erase_shapes(), "{annotation}");
        }
    }
}

#[test]
fn subtyping_and_unification_are_consistent() {
    let mut random = Random(2);
    let sub = |a, b| is_subtype(a, b, &NoClasses);
    let mut related = 0;
    for _ in 0..30_000 {
        let (a, b, c) = (random.ty(2), random.ty(2), random.ty(1));
        assert!(sub(a, a) && sub(a, Type::ANY) && sub(a, Type::optional(a)), "{a}");
        assert_eq!(a.erase_shapes().erase_shapes(), a.erase_shapes());
        if sub(a, b) {
            related += 1;
            // `Scalar` and the union of its alternatives are mutual subtypes but distinct types, so transitivity may
            // fail for them.
            let plain = |t: Type| !t.to_string().contains("Scalar");
            assert!(!sub(b, c) || sub(a, c) || ![a, b, c].iter().all(|&t| plain(t)), "{a} <: {b} <: {c}");
            let met = unify(a, b, false, None, &NoClasses);
            assert!(met == Some(b) || met.is_some_and(|m| sub(b, m) && sub(m, b)), "{a} and {b}: {met:?}");
        }
        let met = unify(a, b, true, None, &NoClasses).unwrap_or_else(|| panic!("{a} and {b}"));
        let whole = |t: Type| t.erase_shapes();
        assert!(sub(whole(a), whole(met)) && sub(whole(b), whole(met)), "{a} and {b} meet at {met}");
    }
    assert!(related > 500, "{related}");
}

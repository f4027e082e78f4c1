//! Operators whose semantics changed, for archives of older format versions.
//!
//! The format version determines the schemas and semantics of operators. Integer `div` truncated before version 4.
//! `full` without a dtype returned floats before version 5. `linspace` and `logspace` had a default number of steps
//! before versions 8 and 9. `gelu` had no `approximate` argument before version 10. Calls in such archives are matched
//! against the overloads of their version, which are TorchScript functions over the current operators (below). The
//! functions replace current overloads by name. An alias such as `divide` is not affected and keeps the current
//! semantics, as in PyTorch. `tests/oracle/upgrades.py` determines the meaning of calls in each version with PyTorch
//! and lists the changes; changes that are listed there but not here have no effect.

use std::sync::Arc;

use flambeau_frontend::{CompileSession, NativeResolver, Overload, SourceFile};
use flambeau_ir::{Diagnostic, Registry, Source, Symbol};

/// An overload of an operator in older versions: the function below that has its schema and semantics.
struct FormerOverload {
    name: &'static str,
    overload: &'static str,
    /// The first version that does not have it.
    since: u64,
    function: &'static str,
}

const fn former(
    name: &'static str,
    overload: &'static str,
    since: u64,
    function: &'static str,
) -> FormerOverload {
    FormerOverload { name, overload, since, function }
}

const FORMER_OVERLOADS: [FormerOverload; 12] = [
    former("aten::div", "Tensor", 4, "div_tensor"),
    former("aten::div", "Scalar", 4, "div_scalar"),
    former("aten::div", "out", 4, "div_out"),
    former("aten::div_", "Tensor", 4, "div_tensor_"),
    former("aten::div_", "Scalar", 4, "div_scalar_"),
    former("aten::full", "", 5, "full"),
    former("aten::linspace", "", 8, "linspace"),
    former("aten::linspace", "out", 8, "linspace_out"),
    former("aten::logspace", "", 9, "logspace"),
    former("aten::logspace", "out", 9, "logspace_out"),
    former("aten::gelu", "", 10, "gelu"),
    former("aten::gelu", "out", 10, "gelu_out"),
];

const SOURCE: &str = r#"
def div_tensor(self: Tensor, other: Tensor) -> Tensor:
    if self.is_floating_point() or other.is_floating_point():
        return torch.div(self, other)
    return torch.div(self, other, rounding_mode="trunc")

def div_scalar(self: Tensor, other: number) -> Tensor:
    if self.is_floating_point() or isinstance(other, float):
        return torch.div(self, other)
    return torch.div(self, other, rounding_mode="trunc")

def div_out(self: Tensor, other: Tensor, *, out: Tensor) -> Tensor:
    if self.is_floating_point() or other.is_floating_point() or out.is_floating_point():
        return torch.div(self, other, out=out)
    return torch.div(self, other, rounding_mode="trunc", out=out)

def div_tensor_(self: Tensor, other: Tensor) -> Tensor:
    if self.is_floating_point() or other.is_floating_point():
        return self.div_(other)
    return self.div_(other, rounding_mode="trunc")

def div_scalar_(self: Tensor, other: number) -> Tensor:
    if self.is_floating_point() or isinstance(other, float):
        return self.div_(other)
    return self.div_(other, rounding_mode="trunc")

def full(size: List[int], fill_value: number, *, dtype: Optional[int]=None, layout: Optional[int]=None,
         device: Optional[Device]=None, pin_memory: Optional[bool]=None) -> Tensor:
    if dtype is None:
        return torch.full(size, float(fill_value), layout=layout, device=device, pin_memory=pin_memory)
    return torch.full(size, fill_value, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory)

def linspace(start: number, end: number, steps: Optional[int]=None, *, dtype: Optional[int]=None,
             layout: Optional[int]=None, device: Optional[Device]=None, pin_memory: Optional[bool]=None) -> Tensor:
    return torch.linspace(start, end, 100 if steps is None else steps, dtype=dtype, layout=layout, device=device,
                          pin_memory=pin_memory)

def linspace_out(start: number, end: number, steps: Optional[int]=None, *, out: Tensor) -> Tensor:
    return torch.linspace(start, end, 100 if steps is None else steps, out=out)

def logspace(start: number, end: number, steps: Optional[int]=None, base: float=10.0, *, dtype: Optional[int]=None,
             layout: Optional[int]=None, device: Optional[Device]=None, pin_memory: Optional[bool]=None) -> Tensor:
    return torch.logspace(start, end, 100 if steps is None else steps, base, dtype=dtype, layout=layout,
                          device=device, pin_memory=pin_memory)

def logspace_out(start: number, end: number, steps: Optional[int]=None, base: float=10.0, *,
                 out: Tensor) -> Tensor:
    return torch.logspace(start, end, 100 if steps is None else steps, base, out=out)

def gelu(self: Tensor) -> Tensor:
    return torch.gelu(self)

def gelu_out(self: Tensor, *, out: Tensor) -> Tensor:
    return torch.gelu(self, out=out)
"#;

/// Returns the first format version in which an operator has its current semantics: the version that code which calls it needs
/// at least, as PyTorch computes it.
pub fn version_of_operator(name: Symbol) -> u64 {
    let changes = FORMER_OVERLOADS.iter().filter(|former| name == former.name).map(|former| former.since);
    changes.fold(OLDEST_WRITTEN, u64::max)
}

/// The version of code without operators that changed.
const OLDEST_WRITTEN: u64 = 3;

/// Returns the overloads that replace the current ones of `name` in archives of `version`.
///
/// # Errors
///
/// Returns the diagnostic of an overload that cannot be compiled with the operators of `registry`.
pub(crate) fn former_overloads(
    registry: &Arc<Registry>,
    name: Symbol,
    version: u64,
) -> Result<Vec<Overload>, Box<Diagnostic>> {
    let found: Vec<_> = FORMER_OVERLOADS.iter().filter(|f| name == f.name && f.since > version).collect();
    if found.is_empty() {
        return Ok(Vec::new());
    }
    let session = CompileSession::new(
        Arc::clone(registry),
        &NativeResolver,
        flambeau_frontend::FrontendLimits::default(),
    );
    let file = SourceFile::new(Source::new("<upgrades>", SOURCE), &Default::default());
    session.declare_source(&file).map_err(|problems| {
        let first = problems.into_iter().next();
        Box::new(first.expect("invariant: a failure has an error"))
    })?;
    let compiled = |f: &FormerOverload| {
        let function = session.compile(Symbol::new(f.function))?;
        Ok(Overload { replaces: Some(Symbol::new(f.overload)), function })
    };
    found.into_iter().map(compiled).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPERATORS: &str = "\
        aten::div.Tensor(Tensor self, Tensor other) -> Tensor\n\
        aten::div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor\n\
        aten::is_floating_point(Tensor self) -> bool\n\
        aten::gelu(Tensor self, *, str approximate=\"none\") -> Tensor\n\
        aten::gelu.out(Tensor self, *, str approximate=\"none\", Tensor(a!) out) -> Tensor(a!)\n";

    #[test]
    fn operators_need_the_version_of_their_last_change() {
        let of = |name| version_of_operator(Symbol::new(name));
        assert_eq!([of("aten::add"), of("aten::div"), of("aten::full"), of("aten::gelu")], [3, 4, 5, 10]);
    }

    #[test]
    fn former_overloads_are_those_of_old_versions() {
        let mut builder = flambeau_ir::RegistryBuilder::new();
        builder.declare(OPERATORS);
        let registry = builder.build().unwrap_or_else(|e| panic!("{e:?}"));
        let found = |name, version| former_overloads(&registry, Symbol::new(name), version);
        assert_eq!(found("aten::gelu", 9).expect("compiled").len(), 2);
        assert_eq!(found("aten::gelu", 10).expect("nothing").len(), 0);
        assert_eq!(found("aten::add", 1).expect("nothing").len(), 0);
        let lacking = found("aten::div", 3).expect_err("in place it cannot be computed");
        assert!(lacking.to_string().contains("aten::div"), "{lacking}");
    }
}

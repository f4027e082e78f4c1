//! Generates `docs/ops.md` from the registry.

use crate::matrix::Exception;
use flambeau_exec::{Intrinsic, Kernel};
use flambeau_ir::{Doc, OpId, Registry, Symbol};
use std::fmt::Write;

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/ops.md");

const HEAD: &str = "\
# Operators

Generated from the registry by `FLAMBEAU_BLESS=1 cargo test -p flambeau-ops --test complete`.

Every operator that TorchScript registers is declared, so programs that name it compile, print and can be analysed. The
operators below can also be run. Of an operator with several overloads, those that can be run are listed (`·` is the one
without a name); facts beside the kernel: **s** shape, **d** dtype, **f** fused formula, **i** instruction of the machine,
**r** rewrite rules.
";

const EXCEPTED: &str = "
## Exceptions

Every operator with a kernel is tested on samples: it must succeed on some, its results must have the declared types and the
sizes and dtypes that its rules predict, and it may share and write memory only as declared
(`ops/tests/complete/matrix.rs`). An operator that is differentiable in PyTorch is differentiable here, with respect to the same
arguments (`ops/tests/complete/gradients.rs`). An exception states its reason and the work that would remove it; an exception
that is no longer needed fails the tests.
";

/// Returns the letters of an operator's facts.
fn facts(registry: &Registry, id: OpId) -> String {
    let letters = [("shape", 's'), ("dtype", 'd'), ("pointwise", 'f'), ("intrinsic", 'i'), ("rules", 'r')];
    let stated: Vec<&str> = registry.facets_of(id).collect();
    letters.iter().filter(|(name, _)| stated.contains(name)).map(|(_, letter)| *letter).collect()
}

/// Returns the first paragraph of a text as a table cell.
fn cell(text: &str) -> String {
    text.split("\n\n").next().unwrap_or_default().replace('\n', " ").replace('|', "\\|")
}

fn line(registry: &Registry, name: Symbol, out: &mut String) {
    let all = registry.overloads(name);
    let run: Vec<OpId> = all.iter().copied().filter(|&id| registry.facet::<Kernel>(id).is_some()).collect();
    let Some(&first) = run.first() else { return };
    // The functional overload has the operator's documentation; variants only name it.
    let described = run.iter().find(|&&id| !registry.schema(id).overload.as_str().ends_with("out"));
    let doc = registry.facet::<Doc>(*described.unwrap_or(&first)).map_or("", |d| d.0);
    let overload = |&id: &OpId| match registry.schema(id).overload.as_str() {
        "" => "·".to_owned(),
        name => format!("`{name}`"),
    };
    let overloads: Vec<String> = run.iter().map(overload).collect();
    let mut letters: Vec<char> =
        run.iter().flat_map(|&id| facts(registry, id).chars().collect::<Vec<_>>()).collect();
    letters.sort_unstable();
    letters.dedup();
    let letters: String = letters.into_iter().collect();
    writeln!(out, "| `{name}` | {} | {letters} | {} |", overloads.join(" "), cell(doc))
        .expect("a string takes all");
}

fn page(registry: &Registry) -> String {
    let mut names: Vec<Symbol> = registry.ids().map(|id| registry.schema(id).name).collect();
    names.sort_unstable_by_key(|name| name.as_str());
    names.dedup();
    let mut out = HEAD.to_owned();
    let kernels = registry.column::<Kernel>().iter().count();
    let intrinsics = registry.column::<Intrinsic>().iter().count();
    let text = format!(
        "\n{} overloads are declared under {} names; {kernels} overloads can be run, {intrinsics} of them as instructions.\n",
        registry.len(),
        names.len()
    );
    out.push_str(&text);
    let mut namespace = "";
    for name in names {
        let of = name.as_str().split("::").next().unwrap_or_default();
        let mut lines = String::new();
        line(registry, name, &mut lines);
        if !lines.is_empty() && of != namespace {
            namespace = of;
            out.push_str(&format!(
                "\n## {of}\n\n| operator | overloads | facts | what it does |\n|---|---|---|---|\n"
            ));
        }
        out.push_str(&lines);
    }
    out.push_str(EXCEPTED);
    if crate::matrix::EXCEPTIONS.is_empty() && crate::gradients::WITHOUT.is_empty() {
        out.push_str("\nThere are none.\n");
    }
    for exception in crate::matrix::EXCEPTIONS.iter().chain(crate::gradients::WITHOUT) {
        let Exception { op, check, why, needed } = exception;
        writeln!(out, "\n**`{op}`: {check}.** Why: {why}. Needed: {needed}.").expect("a string takes all");
    }
    out
}

#[test]
fn docs_ops_is_up_to_date() {
    let page = page(&flambeau_ops::registry());
    if std::env::var_os("FLAMBEAU_BLESS").is_some_and(|v| v == "1") {
        std::fs::write(PATH, &page).expect("docs/ops.md can be written");
        return;
    }
    let found = std::fs::read_to_string(PATH).unwrap_or_default();
    assert!(found == page, "docs/ops.md is stale: run with FLAMBEAU_BLESS=1");
}

//! Operator overloads and library functions that are written in TorchScript.
//!
//! Some overloads are one line of source over other operators: a number as the left operand of a tensor operator,
//! tensor properties. They are kept as source, compiled when a call first needs the name, and inlined at the call.

use std::sync::Arc;

use flambeau_ir::{Source, Symbol};

use super::fun::SourceFile;
use super::session::{CompileSession, Overload};
use crate::tree::TreeId;

/// Namespaces and the sources of their overloads.
const SOURCES: [(&str, &str); 2] =
    [("aten", include_str!("../library/aten.py")), ("prim", include_str!("../library/prim.py"))];

/// Functions whose number of results depends on flags that must be constants at the call: each flag with its argument
/// position. The library has one definition per combination; its name ends in the names of the flags that are true.
const FLAGS: [(&str, &[(&str, usize)]); 11] = [
    ("torch.nn.functional.max_pool1d", &[("return_indices", 6)]),
    ("torch.nn.functional.max_pool2d", &[("return_indices", 6)]),
    ("torch.nn.functional.max_pool3d", &[("return_indices", 6)]),
    ("torch.nn.functional.adaptive_max_pool1d", &[("return_indices", 2)]),
    ("torch.nn.functional.adaptive_max_pool2d", &[("return_indices", 2)]),
    ("torch.nn.functional.adaptive_max_pool3d", &[("return_indices", 2)]),
    ("torch.nn.functional.fractional_max_pool2d", &[("return_indices", 4)]),
    ("torch.nn.functional.fractional_max_pool3d", &[("return_indices", 4)]),
    ("torch.lu", &[("get_infos", 2)]),
    ("torch.unique", &[("return_inverse", 2), ("return_counts", 3)]),
    ("torch.unique_consecutive", &[("return_inverse", 1), ("return_counts", 2)]),
];

/// The context managers of `torch`: the namespace of a class, the module that defines it, and the source.
const CLASSES: [(&str, &str, &str); 7] = [
    ("torch.", "torch.autograd.grad_mode", include_str!("../library/classes.py")),
    ("torch.autograd.profiler.", "torch.autograd.profiler", PROFILER),
    ("torch.profiler.", "torch.autograd.profiler", PROFILER),
    ("torch.cuda.amp.", "torch.cuda.amp.autocast_mode", include_str!("../library/cuda_autocast.py")),
    ("torch.cpu.amp.", "torch.cpu.amp.autocast_mode", include_str!("../library/cpu_autocast.py")),
    ("torch.amp.", "torch.amp.autocast_mode", AUTOCAST),
    ("torch.", "torch.amp.autocast_mode", AUTOCAST),
];

/// Mixed precision for another device has no effect, because all tensors are on the CPU. For the CPU, the classes refuse
/// it when they are created.
const AUTOCAST: &str = include_str!("../library/autocast.py");

/// Regions of a profile have no effect: there is no profiler of PyTorch's kind.
const PROFILER: &str = include_str!("../library/profiler.py");

/// The types that replace `Scalar` in the sources.
const SCALARS: [&str; 3] = ["float", "int", "complex"];

/// Compiles all overloads of `name` that are written in TorchScript.
pub(crate) fn compile(session: &CompileSession<'_>, name: Symbol) -> Vec<Overload> {
    let text = SOURCES.iter().find(|(ns, _)| *ns == name.ns()).map_or("", |(_, text)| text);
    let header = format!("def {}(", name.base());
    let mut found = Vec::new();
    // Definitions are separated by blank lines.
    for definition in text.split("\n\n").filter(|d| d.trim_start().starts_with(&header)) {
        let kinds = if definition.contains("Scalar") { &SCALARS[..] } else { &SCALARS[..1] };
        for kind in kinds {
            let text = definition.replace("Scalar", kind);
            let source = Source::new("<builtin>", text);
            let file = SourceFile::new(source, &session.limits);
            let ast = &file.parsed.ast;
            let Some(&def) = ast.children(file.parsed.root).first() else { continue };
            let qualified = Symbol::new(&format!("{name}.script{}", found.len()));
            session.declare_as(qualified, &file, def, None, true);
            if let Ok(function) = session.compile(qualified) {
                found.push(Overload { replaces: None, function });
            }
        }
    }
    found
}

/// Returns the flags, with their argument positions, that select the definition of a library function.
pub(crate) fn flags(full: &str) -> &'static [(&'static str, usize)] {
    FLAGS.iter().find(|(name, _)| *name == full).map_or(&[], |(_, flags)| flags)
}

/// Returns the source and definition of the library function `torch.nn.functional.x` or `torch.x`.
pub(crate) fn library(session: &CompileSession<'_>, full: &str) -> Option<(Arc<SourceFile>, TreeId)> {
    let definition = super::library::definition(full)?;
    let file = SourceFile::new(Source::new(definition.file, definition.text.as_str()), &session.limits);
    let def = file.parsed.ast.children(file.parsed.root).first().copied()?;
    Some((file, def))
}

/// Returns the qualified name, source and definition of the library class `torch.x`.
pub(crate) fn library_class(
    session: &CompileSession<'_>,
    full: &str,
) -> Option<(Symbol, Arc<SourceFile>, TreeId)> {
    CLASSES.iter().find_map(|(space, module, text)| {
        let name = full.strip_prefix(space)?;
        let header = format!("class {name}:");
        let definition = text.split("\n\n").find(|d| d.trim_start().starts_with(&header))?;
        let file = SourceFile::new(
            Source::new(format!("{}.py", module.replace('.', "/")), definition),
            &session.limits,
        );
        let class = file.parsed.ast.children(file.parsed.root).first().copied()?;
        Some((Symbol::new(&format!("__torch__.{module}.{name}")), file, class))
    })
}

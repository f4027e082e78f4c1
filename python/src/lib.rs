//! The extension module `flambeau._native`: the compiler for Python.
//!
//! This crate converts: values, errors, tensors. Everything else of the package `flambeau` is Python (`flambeau/`), over the
//! classes and functions here, or the compiler's own.

mod aliases;
mod brief;
mod containers;
mod dlpack;
mod errors;
mod extend;
mod function;
#[cfg(feature = "fuzz")]
mod fuzz;
mod graph;
mod host;
mod lent;
mod program;
mod rng;
mod shape_functions;
mod source_map;
mod tensor;
mod trace;
mod values;

use pyo3::prelude::*;

// Without the interpreter lock the module is sound: every class is `frozen`, and what it holds is immutable, behind a lock
// (`Shared::graph`, the trace) or a storage that the compiler's threads share as well. State of one thread is thread-local.
#[pymodule(gil_used = false)]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<tensor::PyTensor>()?;
    module.add_class::<tensor::PyHookHandle>()?;
    module.add_class::<program::PyProgram>()?;
    module.add_class::<function::PyFunction>()?;
    module.add_class::<function::FunctionBase>()?;
    module.add_class::<program::ScriptObject>()?;
    module.add_class::<program::PyExported>()?;
    module.add_class::<containers::Container>()?;
    module.add_class::<trace::PyRecorder>()?;
    module.add_class::<trace::PyTracedValue>()?;
    module.add_class::<aliases::PyAliasDb>()?;
    module.add_class::<graph::PyGraph>()?;
    module.add_class::<graph::PyNode>()?;
    module.add_class::<graph::PyValue>()?;
    module.add_class::<graph::PyBlock>()?;
    #[cfg(feature = "fuzz")]
    module.add_function(wrap_pyfunction!(fuzz::fuzz_pass, module)?)?;
    module.add_class::<extend::PyRuleText>()?;
    module.add_function(wrap_pyfunction!(extend::parse_schema, module)?)?;
    module.add_function(wrap_pyfunction!(extend::operators, module)?)?;
    module.add_function(wrap_pyfunction!(extend::register_operator, module)?)?;
    module.add_function(wrap_pyfunction!(extend::register_rules, module)?)?;
    module.add_function(wrap_pyfunction!(graph::parse_graph, module)?)?;
    module.add_function(wrap_pyfunction!(graph::passes, module)?)?;
    module.add_function(wrap_pyfunction!(tensor::from_dlpack, module)?)?;
    module.add_function(wrap_pyfunction!(tensor::from_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(tensor::to_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(errors::error, module)?)?;
    module.add_function(wrap_pyfunction!(program::compile, module)?)?;
    module.add_function(wrap_pyfunction!(program::compile_texts, module)?)?;
    module.add_function(wrap_pyfunction!(program::new_object, module)?)?;
    module.add_function(wrap_pyfunction!(program::parse_ir, module)?)?;
    module.add_function(wrap_pyfunction!(program::load, module)?)?;
    module.add_function(wrap_pyfunction!(program::load_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(program::load_exported, module)?)?;
    module.add_function(wrap_pyfunction!(program::is_exported, module)?)?;
    module.add_function(wrap_pyfunction!(program::set_grad_enabled, module)?)?;
    module.add_function(wrap_pyfunction!(program::manual_seed, module)?)?;
    module.add_function(wrap_pyfunction!(program::gradients, module)?)?;
    module.add_function(wrap_pyfunction!(function::set_tracing, module)?)?;
    module.add_function(wrap_pyfunction!(values::to_torch, module)?)?;
    module.add_function(wrap_pyfunction!(program::version, module)?)?;
    Ok(())
}

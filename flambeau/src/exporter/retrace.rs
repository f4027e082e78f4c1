//! Validation by retracing: the program is traced a second time, with other sizes, and both graphs must be equal.
//!
//! A number of the example may have become a constant of the graph although it follows from a size that varies: by an
//! operator without a rule for symbolic sizes, or by sizes that agree by accident. So a program with varying sizes is
//! recorded on a second example with other sizes, and both graphs must be equal. A program that changes attributes of the
//! module is recorded again, too: the graph holds for later calls if it is the same with the changed attributes.

use super::{DynamicSize, Res, refused};
use flambeau_exec::{Host, Kernel, KernelError};
use flambeau_export::model::{Argument, Constant, GraphModel, NodeModel, ProgramModel, SymInt};
use flambeau_export::write::{FileVersion, program_text};
use flambeau_ir::{IValue, Registry};
use flambeau_tensor::Tensor;
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use std::sync::Arc;

/// Distance between a size of the first example and that of the second: sizes differ by different numbers, so that
/// equal ones do not stay equal.
const STEP: i64 = 3;

/// The sizes of the second example by name.
#[derive(Default)]
pub(super) struct AlternateSizes {
    sizes: HashMap<String, i64, FxBuildHasher>,
}

impl AlternateSizes {
    /// Returns the sizes by name, in the order of the names.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, i64)> {
        let mut sizes: Vec<(&str, i64)> =
            self.sizes.iter().map(|(name, &size)| (name.as_str(), size)).collect();
        sizes.sort_unstable();
        sizes.into_iter()
    }

    /// Returns the argument with other sizes: its elements are those of the first example, repeated or cut off.
    pub(super) fn resized(
        &mut self,
        path: &str,
        tensor: &Tensor,
        dynamic: &[DynamicSize],
        registry: &Registry,
        host: &mut Host,
    ) -> Res<Tensor> {
        let mut resized = tensor.clone();
        for own in dynamic.iter().filter(|own| own.input == path) {
            let Some(&size) = tensor.sizes().get(own.dim) else { continue };
            let number = self.sizes.len() as i64 + 1;
            let other = *self.sizes.entry(own.name.clone()).or_insert_with(|| other_size(own, size, number));
            let op = registry.lookup("aten::index_select");
            let kernel = op.and_then(|op| Some((registry.schema(op), registry.facet::<Kernel>(op)?)));
            let (schema, kernel) = kernel.ok_or_else(|| refused("`aten::index_select` is not registered"))?;
            let indices: Vec<i64> = (0..other).map(|i| if size == 0 { 0 } else { i % size }).collect();
            let indices = Tensor::from_vec(indices, &[other]).map_err(KernelError::from)?;
            let mut args =
                [IValue::Tensor(resized.clone()), IValue::Int(own.dim as i64), IValue::Tensor(indices)];
            let results = kernel.call_on(schema, &mut args, host)?;
            let first = results.first().and_then(IValue::as_tensor);
            resized =
                first.cloned().ok_or_else(|| refused("an argument without elements cannot vary in size"))?;
        }
        resized.set_requires_grad(tensor.requires_grad());
        Ok(resized)
    }
}

/// Returns another size in the range: greater if possible.
fn other_size(own: &DynamicSize, size: i64, number: i64) -> i64 {
    let (min, max) = (own.min.unwrap_or(0).max(2), own.max.unwrap_or(i64::MAX));
    let greater = size.saturating_add(STEP).saturating_add(number);
    match greater <= max {
        true => greater,
        false if size < max => max,
        false => (size - number).max(min).min(max),
    }
}

/// Checks that two recordings are one program.
pub(super) fn check_equal(first: &ProgramModel, second: &ProgramModel, registry: &Registry) -> Res<()> {
    let (a, b) = (plain(first), plain(second));
    let text = |model: &ProgramModel| program_text(model, FileVersion::default(), registry);
    if text(&a)? != text(&b)? {
        return Err(difference(&a, &b));
    }
    for (name, constant) in &first.constants {
        let bytes = |constant: &Constant| match constant {
            Constant::Tensor(tensor) => tensor.to_bytes().ok(),
            Constant::Object { .. } => None,
        };
        if bytes(constant) != second.constants.get(name).and_then(bytes) {
            return Err(refused(format!("the constant `{name}` is not the same in a second call")));
        }
    }
    Ok(())
}

/// Returns the error for the first node that differs.
fn difference(first: &ProgramModel, second: &ProgramModel) -> super::Stop {
    let (a, b) = (&first.module.graph, &second.module.graph);
    let found = a.nodes.iter().zip(&b.nodes).find_map(|(x, y)| Some((x, differs((a, x), (b, y))?)));
    let (trace, what) = match found {
        Some((node, what)) => (node.metadata.get("stack_trace"), what),
        None => (None, "the graphs have different nodes, outputs or ranges".to_owned()),
    };
    let trace = trace.map(|trace| format!("\n{}", trace.trim_end())).unwrap_or_default();
    refused(format!(
        "the program is not the same in a second call, with other sizes or after the first call has changed the module: {what}{trace}"
    ))
}

/// Returns how two nodes differ.
fn differs((a, x): (&GraphModel, &NodeModel), (b, y): (&GraphModel, &NodeModel)) -> Option<String> {
    let argument = |node: &NodeModel, i: usize| node.inputs.get(i).map(|input| format!("{:?}", input.arg));
    if x.target != y.target {
        return Some(format!("`{}` is called, and `{}`", x.target, y.target));
    }
    let count = x.inputs.len().max(y.inputs.len());
    if let Some(i) = (0..count).find(|&i| argument(x, i) != argument(y, i)) {
        let name = x.inputs.get(i).or(y.inputs.get(i)).map_or("", |input| &input.name);
        return Some(format!("the argument `{name}` of `{}` differs", x.target));
    }
    let mut found = None;
    for output in &x.outputs {
        output.for_each_name(&mut |name| {
            let (Some(own), Some(other)) = (a.tensor_values.get(name), b.tensor_values.get(name)) else {
                return;
            };
            let (own, other) = (sizes(&own.sizes), sizes(&other.sizes));
            if own != other && found.is_none() {
                found = Some(format!("the sizes of the result of `{}` are {own} and {other}", x.target));
            }
        });
    }
    found
}

fn sizes(sizes: &[SymInt]) -> String {
    let each = sizes.iter().map(|size| match size {
        SymInt::Int(n) => n.to_string(),
        SymInt::Expr { .. } => "symbolic".to_owned(),
    });
    format!("[{}]", each.collect::<Vec<_>>().join(", "))
}

/// Returns the program without values of the example, and without strides, which no operator relies on.
fn plain(model: &ProgramModel) -> ProgramModel {
    let mut model = model.clone();
    let mut open = vec![&mut model.module.graph];
    while let Some(graph) = open.pop() {
        for meta in graph.tensor_values.values_mut().map(Arc::make_mut) {
            meta.strides.clear();
            meta.storage_offset = SymInt::Int(0);
            for size in &mut meta.sizes {
                if let SymInt::Expr { hint, .. } = size {
                    *hint = None;
                }
            }
        }
        for input in graph.nodes.iter_mut().flat_map(|node| &mut node.inputs) {
            if let Argument::Graph { graph, .. } = &mut input.arg {
                open.push(graph);
            }
        }
    }
    model
}

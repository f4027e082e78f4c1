//! The end of a traced program: its results, and the new values of attributes.
//!
//! Results are taken before attributes change. The exported program copies new values into the tensors of attributes after its
//! graph has run, so neither a result nor the new value of another attribute may be such a tensor: it is cloned.

use super::symbolic::Symbolic;
use super::tracer::Tracer;
use super::{Res, Stop, refused};
use crate::error::Error;
use flambeau_exec::KernelError;
use flambeau_export::model::Argument;
use flambeau_export::tree::TreeSpec;
use flambeau_ir::IValue;
use flambeau_tensor::Tensor;

/// The operators that copy a tensor into another, and into new memory.
const COPY_INTO: &str = "aten::copy_";
const CLONE: &str = "aten::clone";

impl Tracer<'_> {
    /// Returns the structure of the results and the outputs of the graph for their leaves.
    pub(super) fn outputs(&mut self, results: &IValue) -> Result<(TreeSpec, Vec<Argument>), Error> {
        let mut leaves = Vec::new();
        let spec = TreeSpec::of_value(results, &mut leaves)?;
        let outputs = self.leaf_outputs(results, &leaves).map_err(Stop::unlocated)?;
        Ok((spec, outputs))
    }

    fn leaf_outputs(&mut self, results: &IValue, leaves: &[IValue]) -> Res<Vec<Argument>> {
        let mut symbols = Vec::with_capacity(leaves.len());
        let whole = self.result_symbol.take();
        self.leaf_symbols(results, whole.as_ref(), &mut symbols);
        if symbols.len() != leaves.len() {
            return Err(KernelError::internal("results without leaves").into());
        }
        let (replaced, _) = self.recorder.changed_attributes()?;
        let mut outputs = Vec::with_capacity(leaves.len());
        for (leaf, symbol) in leaves.iter().zip(symbols) {
            outputs.push(match (symbol, leaf) {
                (Some(_), IValue::Bool(_)) => {
                    return Err(refused("the result is a truth value that depends on data or sizes"));
                }
                (Some(symbol), _) => self.recorder.number(&symbol)?,
                (None, IValue::Tensor(tensor))
                    if replaced.iter().any(|(old, _)| old.shares_storage(tensor)) =>
                {
                    let cloned = self.cloned(tensor)?;
                    self.recorder.output(&IValue::Tensor(cloned))?
                }
                (None, leaf) => {
                    self.refresh_all(std::slice::from_ref(leaf))?;
                    self.recorder.output(leaf)?
                }
            });
        }
        Ok(outputs)
    }

    /// Appends the symbolic number of each leaf, in the order of the structure, whose depth [`TreeSpec::of_value`] bounds.
    fn leaf_symbols(&self, value: &IValue, symbol: Option<&Symbolic>, out: &mut Vec<Option<Symbolic>>) {
        let items = match value {
            IValue::Tuple(tuple) => tuple.items().to_vec(),
            IValue::List(list) => list.to_vec(),
            IValue::Dict(dict) => dict.to_vec().into_iter().map(|(_, item)| item).collect(),
            _ => {
                out.push(symbol.cloned());
                return;
            }
        };
        let symbols = self.recorder.symbols_of(value);
        for (i, item) in items.iter().enumerate() {
            let symbol = symbols.and_then(|symbols| symbols.get(i)).and_then(Option::as_ref);
            self.leaf_symbols(item, symbol, out);
        }
    }

    /// Records a copy of a tensor in new memory.
    fn cloned(&mut self, tensor: &Tensor) -> Res<Tensor> {
        let clone = self.recorder.registry().lookup(CLONE);
        let clone = clone.ok_or_else(|| refused(format!("`{CLONE}` is not registered")))?;
        let results = self.call_operator(clone, vec![IValue::Tensor(tensor.clone()), IValue::None], &[])?;
        match results.into_iter().next() {
            Some(IValue::Tensor(cloned)) => Ok(cloned),
            _ => Err(KernelError::internal("a clone that is not a tensor").into()),
        }
    }

    /// Records the new values of attributes that the program replaced. Returns the changed attributes that are no tensors.
    pub(super) fn write_attributes(&mut self) -> Res<Vec<String>> {
        let (mut replaced, plain) = self.recorder.changed_attributes()?;
        let copy = self.recorder.registry().lookup(COPY_INTO);
        let copy = copy.ok_or_else(|| refused(format!("`{COPY_INTO}` is not registered")))?;
        // All new values are taken before the first attribute changes: attributes may be exchanged.
        let olds: Vec<Tensor> = replaced.iter().map(|(old, _)| old.clone()).collect();
        for (_, new) in &mut replaced {
            let is_shared = olds.iter().any(|old| old.shares_storage(new));
            if is_shared || (self.table.is_some() && self.recorder.aliases.is_input(new)) {
                *new = self.cloned(new)?;
            } else if self.table.is_some() {
                self.refresh_all(&[IValue::Tensor(new.clone())])?;
                *new = self.recorder.snapshot(new)?;
            }
        }
        for (old, new) in replaced {
            let operands = vec![IValue::Tensor(old), IValue::Tensor(new), IValue::Bool(false)];
            self.call_operator(copy, operands, &[])?;
        }
        Ok(plain)
    }
}

//! A test case: a program, the functions it calls, and arguments.
//!
//! Arguments may share memory: one tensor may be passed twice, tensors may be views of one storage, lists may contain
//! other arguments. Every run gets copies ([`Case::fresh_inputs`]) that share memory with each other exactly as the
//! originals do, and share nothing with the originals, so a run may write them.

use flambeau_ir::text::PrintOptions;
use flambeau_ir::value::{CopyMemo, ValueError};
use flambeau_ir::{CompilationUnit, Graph, IValue};
use flambeau_tensor::{DType, Layout, Storage, Tensor};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A program and arguments for it.
#[derive(Clone)]
pub struct Case {
    /// The program.
    pub graph: Arc<Graph>,
    /// The functions that the program calls.
    pub unit: Arc<CompilationUnit>,
    /// Arguments, which may share memory; every run gets its own copies.
    pub inputs: Vec<IValue>,
}

impl Case {
    /// Creates a case of a program that calls no functions.
    ///
    /// ```
    /// use flambeau_fuzz::Case;
    /// use flambeau_ir::{IValue, Source, text::parse_graph};
    ///
    /// let registry = flambeau_ops::registry();
    /// let text = "graph(%x : int):\n  %y : int = aten::mul(%x, %x)\n  return (%y)\n";
    /// let graph = parse_graph(&Source::new("square.ir", text), &registry)?;
    /// let case = Case::new(graph, vec![IValue::Int(3)]);
    /// let seen = flambeau_fuzz::observe::by_reference(&case.graph, &case);
    /// assert_eq!(seen.end.unwrap()[0].as_int(), Some(9));
    /// # Ok::<(), Box<flambeau_ir::Diagnostic>>(())
    /// ```
    pub fn new(graph: impl Into<Arc<Graph>>, inputs: Vec<IValue>) -> Case {
        Case { graph: graph.into(), unit: Arc::default(), inputs }
    }

    /// Returns a case with the same arguments and functions and another program.
    #[must_use]
    pub fn with_graph(&self, graph: impl Into<Arc<Graph>>) -> Case {
        Case { graph: graph.into(), ..self.clone() }
    }

    /// Returns the case as a file test (`.ir`) that reads back to the same program and arguments, bit for bit: the
    /// graph, the functions it calls, and a `run:` line without a result, which `cargo xtask bless` fills in.
    pub fn to_text(&self) -> String {
        let options = PrintOptions { exact: true, ..PrintOptions::default() };
        let mut out = format!("; test run\n{}", self.graph.to_text(options));
        for function in self.unit.functions() {
            out.push_str(&format!("\n; function {}\n{}", function.name, function.graph.to_text(options)));
        }
        out.push_str(&format!("\n; run: main({})\n", crate::literal::arguments(&self.inputs)));
        out
    }

    /// Returns copies of the arguments for one run.
    pub fn fresh_inputs(&self) -> Vec<IValue> {
        copies(&self.inputs)
    }
}

/// Returns copies of values. The copies share storages, tensors and containers with each other as the originals do, at
/// the same offsets and strides.
pub fn copies(values: &[IValue]) -> Vec<IValue> {
    let mut storages: BTreeMap<usize, Storage> = BTreeMap::new();
    let mut memo = CopyMemo::default();
    let mut copy = |tensor: &Tensor| copy_tensor(tensor, &mut storages);
    // Values that cannot be copied (host objects) are kept: only an embedder's operators create them.
    values.iter().map(|v| v.deep_copy(&mut memo, &mut copy).unwrap_or_else(|_| v.clone())).collect()
}

/// Returns a copy that shares nothing with the original.
pub fn deep_copy(value: &IValue) -> IValue {
    copies(std::slice::from_ref(value)).pop().unwrap_or(IValue::None)
}

/// Returns a tensor over the copy of its storage. The first call for a storage copies it.
fn copy_tensor(tensor: &Tensor, storages: &mut BTreeMap<usize, Storage>) -> Result<Tensor, ValueError> {
    let original = tensor.storage();
    let storage = match storages.get(&original.address()) {
        // Empty storages may all have the same address without sharing memory.
        Some(copied) if original.nbytes() > 0 => copied.clone(),
        _ => {
            let copied = Storage::from_bytes(&storage_bytes(original)?)?;
            storages.insert(original.address(), copied.clone());
            copied
        }
    };
    let copy = Tensor::from_storage(storage, tensor.dtype(), tensor.layout().clone())?;
    copy.set_requires_grad(tensor.requires_grad());
    Ok(copy)
}

/// Returns all bytes of a storage, including those that no tensor covers.
pub(crate) fn storage_bytes(storage: &Storage) -> Result<Vec<u8>, flambeau_tensor::TensorError> {
    let count = i64::try_from(storage.nbytes()).unwrap_or(i64::MAX);
    Tensor::from_storage(storage.clone(), DType::U8, Layout::contiguous(&[count])?)?.to_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use flambeau_ir::Type;
    use flambeau_tensor::Scalar;

    #[test]
    fn copies_share_memory_as_the_originals_do() {
        let base = Tensor::arange(Scalar::Int(0), Scalar::Int(6), Scalar::Int(1), DType::F32).unwrap();
        let view = base.as_strided(&[2, 2], &[1, 2], Some(1)).unwrap();
        let list = IValue::list(Type::TENSOR, vec![IValue::Tensor(view.clone())]);
        let originals = [IValue::Tensor(base.clone()), IValue::Tensor(view), list.clone(), list];
        let made = copies(&originals);
        let tensor = |i: usize| made[i].as_tensor().unwrap().clone();
        assert!(tensor(0).shares_storage(&tensor(1)) && !tensor(0).shares_storage(&base));
        assert_eq!((tensor(1).strides(), tensor(1).offset()), (&[1, 2][..], 1));
        assert!(made[2].as_list().unwrap().ptr_eq(made[3].as_list().unwrap()));
        let inner = made[2].as_list().unwrap().to_tensors().unwrap();
        assert!(inner[0].ptr_eq(&tensor(1)));
    }
}

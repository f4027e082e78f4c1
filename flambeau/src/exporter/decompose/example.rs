//! Examples of values: tensors of zeros with the metadata that a program states, and values of its symbols.
//!
//! A symbol has the value of the example with which the program was exported, as far as the program states it; any other
//! has a small number of its range, different for each symbol.

use super::super::record::Recorder;
use super::super::{Res, Stop, refused};
use crate::error::Error;
use flambeau_analysis::shape::{Dim, Range};
use flambeau_exec::KernelError;
use flambeau_export::ExportError;
use flambeau_export::expr::{Bindings, Expr, ExprId, Number};
use flambeau_export::model::{Argument, GraphModel, ProgramModel, SymBool, SymFloat, SymInt, TensorMeta};
use flambeau_ir::{IValue, Symbol};
use flambeau_tensor::{DType, Layout, Tensor};
use hashbrown::{HashMap, HashSet};
use rustc_hash::FxBuildHasher;

/// The least value that an example gives to a symbol without a stated one.
const FIRST: i64 = 5;

/// The symbols of a program: values, and sizes as the analysis of shapes has them.
pub(super) struct Symbols {
    bindings: Bindings,
    dims: HashMap<ExprId, Dim, FxBuildHasher>,
}

impl Symbols {
    pub(super) fn new(model: &ProgramModel, recorder: &mut Recorder) -> Result<Symbols, Error> {
        let mut bindings = Bindings::new();
        let mut unsolved = Vec::new();
        let mut backed: HashSet<Symbol, FxBuildHasher> = HashSet::default();
        let root = &model.module.graph;
        for input in root.inputs.iter().filter_map(Argument::name) {
            let meta = root.tensor_values.get(input).into_iter();
            let sizes = meta.flat_map(|meta| &meta.sizes).chain(root.sym_int_values.get(input));
            for size in sizes {
                if let SymInt::Expr { expr, .. } = size {
                    backed.extend(model.exprs.symbols_of(*expr));
                }
            }
        }
        for_each_int(root, &mut |int| {
            if let SymInt::Expr { expr, hint: Some(hint) } = int {
                unsolved.push((*expr, *hint));
            }
        });
        unsolved.sort_unstable();
        unsolved.dedup();
        // An expression of two symbols is solved once one of them has a value.
        for _ in 0..2 {
            for (expr, hint) in &unsolved {
                bindings.relate(&model.exprs, *expr, *hint).map_err(ExportError::from)?;
            }
        }
        let mut next = FIRST;
        let mut dims = HashMap::default();
        let all: Vec<Symbol> = model.exprs.symbols().collect();
        for symbol in all {
            let stated = model.range_constraints.get(symbol.as_str()).copied().unwrap_or_default();
            let range = Range { min: stated.min.unwrap_or(0), max: stated.max.unwrap_or(i64::MAX) };
            let known = bindings.get(symbol).and_then(Number::as_int);
            let value = known.unwrap_or_else(|| {
                next += 1;
                next.max(range.min).min(range.max)
            });
            if bindings.get(symbol).is_none() {
                let is_integer = model.exprs.is_integer(symbol);
                let number = if is_integer { Number::Int(value) } else { Number::Float(value as f64) };
                bindings.set(symbol, number);
            }
            let expr = recorder.exprs.symbol(symbol);
            let is_backed = backed.contains(&symbol);
            dims.insert(expr, recorder.sizes.given(symbol, expr, range, value, is_backed));
        }
        Ok(Symbols { bindings, dims })
    }

    /// Returns a size as the analysis of shapes has it.
    pub(super) fn dim(&mut self, int: &SymInt, recorder: &mut Recorder) -> Res<Dim> {
        match int {
            SymInt::Int(n) => Ok(Dim::Known(*n)),
            SymInt::Expr { expr, .. } => self.dim_of(*expr, recorder),
        }
    }

    fn dim_of(&mut self, expr: ExprId, recorder: &mut Recorder) -> Res<Dim> {
        if let Some(dim) = self.dims.get(&expr) {
            return Ok(*dim);
        }
        // The recursion is bounded by the height of expressions.
        let made = match recorder.exprs.get(expr).clone() {
            Expr::Int(n) => Some(Dim::Known(n)),
            Expr::Call(func, args) => {
                let args = args.iter().map(|&arg| self.dim_of(arg, recorder));
                let args = args.collect::<Res<Vec<Dim>>>()?;
                recorder.sizes.call(func, &args)
            }
            _ => None,
        };
        let dim = match made {
            Some(dim) => dim,
            None => {
                // A function that the analysis does not have is a symbol of its own.
                let text = Symbol::new(&recorder.exprs.to_text(expr));
                let hint = self.int(expr, recorder).unwrap_or_default();
                let symbols = recorder.exprs.symbols_of(expr);
                let is_backed = symbols.into_iter().all(|symbol| {
                    let symbol = recorder.exprs.symbol(symbol);
                    self.dims.get(&symbol).is_some_and(|dim| recorder.sizes.is_backed(*dim, 0))
                });
                recorder.sizes.given(text, expr, Range::ALL, hint, is_backed)
            }
        };
        recorder.sizes.state_expr(dim, expr);
        self.dims.insert(expr, dim);
        Ok(dim)
    }

    fn int(&self, expr: ExprId, recorder: &Recorder) -> Res<i64> {
        let value = self.bindings.eval(&recorder.exprs, expr).map_err(ExportError::from)?;
        value.as_int().ok_or_else(|| refused("a size that is not an integer"))
    }

    /// Returns the value of an integer in the example.
    pub(super) fn value(&self, int: &SymInt, recorder: &Recorder) -> Res<i64> {
        match int {
            SymInt::Int(n) => Ok(*n),
            SymInt::Expr { expr, .. } => self.int(*expr, recorder),
        }
    }

    pub(super) fn float(&self, float: &SymFloat, recorder: &Recorder) -> Res<IValue> {
        Ok(IValue::Float(match float {
            SymFloat::Float(x) => *x,
            SymFloat::Expr { expr, .. } => self.number(*expr, recorder).map_or(1.0, Number::to_float),
        }))
    }

    pub(super) fn truth(&self, truth: &SymBool, recorder: &Recorder) -> Res<IValue> {
        Ok(IValue::Bool(match truth {
            SymBool::Bool(b) => *b,
            SymBool::Expr { expr, .. } => {
                self.number(*expr, recorder).and_then(Number::as_bool).unwrap_or(true)
            }
        }))
    }

    fn number(&self, expr: ExprId, recorder: &Recorder) -> Option<Number> {
        self.bindings.eval(&recorder.exprs, expr).ok()
    }

    /// Returns a tensor of zeros with this metadata, with its symbolic sizes.
    pub(super) fn tensor(&mut self, meta: &TensorMeta, recorder: &mut Recorder) -> Res<Tensor> {
        let ints = |ints: &[SymInt], recorder: &Recorder| {
            ints.iter().map(|int| self.value(int, recorder)).collect::<Res<Vec<i64>>>()
        };
        let (sizes, strides) = (ints(&meta.sizes, recorder)?, ints(&meta.strides, recorder)?);
        let dtype = meta.dtype.dtype().ok_or_else(|| refused("a tensor of an unsupported dtype"))?;
        let tensor = zeros(&sizes, &strides, dtype)?;
        tensor.set_requires_grad(meta.requires_grad && dtype.is_floating());
        let dims = self.sizes(meta, recorder)?;
        recorder.sizes.set(&tensor, dims, &[]);
        Ok(tensor)
    }

    /// Returns the sizes of metadata as the analysis of shapes has them.
    pub(super) fn sizes(&mut self, meta: &TensorMeta, recorder: &mut Recorder) -> Res<Vec<Dim>> {
        meta.sizes.iter().map(|size| self.dim(size, recorder)).collect()
    }
}

/// Returns a tensor of zeros with these strides.
fn zeros(sizes: &[i64], strides: &[i64], dtype: DType) -> Res<Tensor> {
    let too_large = || Stop::Run(KernelError::limit("a tensor of the program is too large"));
    if sizes.len() != strides.len() {
        return Err(refused("a tensor whose metadata has more or fewer strides than sizes"));
    }
    let mut last = 0_i64;
    for (&size, &stride) in sizes.iter().zip(strides) {
        if size < 0 || stride < 0 {
            return Err(refused(format!(
                "a tensor whose metadata has the size {size} and the stride {stride}"
            )));
        }
        let step = stride.checked_mul((size - 1).max(0)).ok_or_else(too_large)?;
        last = last.checked_add(step).ok_or_else(too_large)?;
    }
    let is_empty = sizes.contains(&0);
    let count = if is_empty { 0 } else { last.checked_add(1).ok_or_else(too_large)? };
    let flat = Tensor::zeros(&[count], dtype).map_err(KernelError::from)?;
    let layout = Layout::new(sizes, strides, 0).map_err(KernelError::from)?;
    Ok(Tensor::from_storage(flat.storage().clone(), dtype, layout).map_err(KernelError::from)?)
}

/// Visits the integers of the metadata of a graph and its subgraphs.
fn for_each_int(graph: &GraphModel, visit: &mut impl FnMut(&SymInt)) {
    let mut open = vec![graph];
    while let Some(graph) = open.pop() {
        for meta in graph.tensor_values.values() {
            meta.sizes.iter().chain(&meta.strides).for_each(&mut *visit);
        }
        graph.sym_int_values.values().for_each(&mut *visit);
        open.extend(graph.nodes.iter().flat_map(|node| &node.inputs).filter_map(|input| match &input.arg {
            Argument::Graph { graph, .. } => Some(&**graph),
            _ => None,
        }));
    }
}

//! Kernels: the computation of an operator as a function on values, and access to its arguments.
//!
//! Arguments are owned, so a kernel may take one and reuse its memory if it holds the only reference. They are in
//! schema order with defaults filled in, so a kernel is one closure from positions to results.

use crate::error::KernelError;
use crate::host::Host;
use crate::intrinsic::Intrinsic;
use flambeau_ir::attr::{Attr, AttrSet};
use flambeau_ir::schema::FunctionSchema;
use flambeau_ir::value::{Dict, Generator, IValue, List, ListItems, Str};
use flambeau_ir::{Facet, OpDef};
use flambeau_ir::{Graph, NodeId, SourceRange, Symbol, Type};
use flambeau_tensor::loops::OutputHint;
use flambeau_tensor::{DType, Device, Scalar, Tensor};
use smallvec::SmallVec;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Result of running a kernel; its values are in [`Rets`].
pub type KernelResult = Result<(), KernelError>;
/// Results of a kernel.
pub type Rets = Vec<IValue>;
/// Integers of a list argument.
pub type Ints = SmallVec<[i64; 6]>;

type Run = dyn Fn(&mut KernelCx<'_>) -> KernelResult + Send + Sync;

/// The CPU implementation of an operator.
#[derive(Clone)]
pub struct Kernel(Arc<Run>);

impl Facet for Kernel {
    const NAME: &'static str = "kernel";
}

impl Kernel {
    /// Creates a kernel from a function of its context.
    pub fn new(run: impl Fn(&mut KernelCx<'_>) -> KernelResult + Send + Sync + 'static) -> Self {
        Kernel(Arc::new(run))
    }

    /// Creates the kernel of an operator that is an intrinsic.
    pub fn from_intrinsic(intrinsic: impl Into<Intrinsic>) -> Self {
        let intrinsic = intrinsic.into();
        Kernel::new(move |cx| intrinsic.run(cx))
    }

    /// Returns a kernel that reports a panic as an error ([`Fault::Misuse`](crate::Fault::Misuse)) instead of unwinding the machine. For
    /// kernels of embedders; with `panic = "abort"` a panic still ends the process.
    #[must_use]
    pub fn catching_panics(self) -> Self {
        Kernel::new(move |cx| {
            // Unwind safety: a panic may leave incomplete results, which are not read after an error, and partially
            // written tensors, as any other error may.
            let result = catch_unwind(AssertUnwindSafe(|| self.call(cx)));
            result.unwrap_or_else(|panic| Err(panicked(cx, &*panic)))
        })
    }

    /// Runs the kernel.
    ///
    /// # Errors
    /// Returns the error that the kernel raises.
    #[inline]
    pub fn call(&self, cx: &mut KernelCx<'_>) -> KernelResult {
        (self.0)(cx)
    }

    /// Runs the kernel on values without a graph, for trials, tests and constants. `args` must be complete.
    ///
    /// # Errors
    /// Returns the error that the kernel raises.
    pub fn call_on(
        &self,
        schema: &FunctionSchema,
        args: &mut [IValue],
        host: &mut Host,
    ) -> Result<Rets, KernelError> {
        let mut rets = Rets::new();
        self.call(&mut KernelCx::new(args, &mut rets, CallOrigin::Schema(schema), host))?;
        Ok(rets)
    }
}

/// Adds both the intrinsic and the kernel derived from it to an operator.
pub trait OpDefExt {
    /// Declares the operator as an intrinsic.
    #[must_use]
    fn intrinsic(self, intrinsic: impl Into<Intrinsic>) -> Self;
}

impl OpDefExt for OpDef {
    fn intrinsic(self, intrinsic: impl Into<Intrinsic>) -> Self {
        let intrinsic = intrinsic.into();
        self.with(Kernel::from_intrinsic(intrinsic)).with(intrinsic)
    }
}

/// The origin of a kernel call.
#[derive(Clone, Copy)]
pub enum CallOrigin<'a> {
    /// A node of a graph.
    Node(&'a Graph, NodeId),
    /// A call without node: only the operator's schema is known.
    Schema(&'a FunctionSchema),
}

/// Arguments, results and environment of a kernel call.
///
/// # Errors
/// The accessors of arguments return an input error if argument `i` is missing or has another type; [`KernelCx::arg`]
/// and [`KernelCx::take_tensor`] return an internal error if it is missing.
pub struct KernelCx<'a> {
    args: &'a mut [IValue],
    rets: &'a mut Rets,
    site: CallOrigin<'a>,
    host: &'a mut Host,
    in_place: bool,
}

impl<'a> KernelCx<'a> {
    /// Creates the context of one call. Results are appended to `rets`.
    #[inline]
    pub fn new(args: &'a mut [IValue], rets: &'a mut Rets, site: CallOrigin<'a>, host: &'a mut Host) -> Self {
        KernelCx { args, rets, site, host, in_place: false }
    }

    /// Declares that the result replaces the contents of the first argument.
    #[inline]
    pub fn set_in_place(&mut self) {
        self.in_place = true;
    }

    /// Whether the result replaces the contents of the first argument.
    pub fn is_in_place(&self) -> bool {
        self.in_place
    }

    /// Returns the output hint for the last loop of a computation: in-place variants may write directly into the first
    /// argument.
    #[inline]
    pub fn output_hint(&self, dtype: DType) -> OutputHint<'_> {
        OutputHint::over(
            dtype,
            if self.in_place { self.args.first().and_then(IValue::as_tensor) } else { None },
        )
    }

    /// Returns the number of arguments.
    #[inline]
    pub fn n_args(&self) -> usize {
        self.args.len()
    }

    /// Returns the number of arguments.
    pub fn arg_count(&self) -> usize {
        self.args.len()
    }

    /// Returns all arguments.
    #[inline]
    pub fn args(&mut self) -> &mut [IValue] {
        self.args
    }

    /// Returns argument `i` without a type check.
    ///
    /// # Errors
    /// Returns an internal error if there is no such argument.
    #[inline]
    pub fn arg(&self, i: usize) -> Result<&IValue, KernelError> {
        self.args.get(i).ok_or_else(|| missing(i))
    }

    /// Takes argument `i` and leaves `None`.
    #[inline]
    pub fn take(&mut self, i: usize) -> IValue {
        self.args.get_mut(i).map(std::mem::take).unwrap_or_default()
    }

    /// Appends a result.
    #[inline]
    pub fn ret(&mut self, value: impl Into<IValue>) {
        self.rets.push(value.into());
    }

    /// Appends a result that may be `None`.
    pub fn ret_opt(&mut self, value: Option<impl Into<IValue>>) {
        self.rets.push(value.map_or(IValue::None, Into::into));
    }

    /// Returns the services of the session.
    #[inline]
    pub fn host(&mut self) -> &mut Host {
        self.host
    }

    /// Whether operators on a tensor are recorded for gradients.
    pub fn is_recorded(&self, tensor: &Tensor) -> bool {
        self.host.grad_enabled() && tensor.requires_grad()
    }

    /// Rejects writes to the memory of a tensor until the run ends. For kernels that copy where the operator's schema
    /// declares a view: they protect the source and the copy, since a write to either would have to be visible in both.
    pub fn protect(&self, tensor: &Tensor) {
        self.host.protect(tensor.storage());
    }

    /// Borrows arguments, results and services at once.
    #[inline]
    pub fn parts(&mut self) -> (&mut [IValue], &mut Rets, &mut Host) {
        (self.args, self.rets, self.host)
    }

    /// Returns the origin of the call.
    #[inline]
    pub fn site(&self) -> CallOrigin<'a> {
        self.site
    }

    /// Returns the position of the call in the source, if it is known.
    pub fn location(&self) -> Option<SourceRange> {
        match self.site {
            CallOrigin::Node(graph, node) => graph.locs().range(graph.loc(node)),
            CallOrigin::Schema(_) => None,
        }
    }

    /// Returns the attributes of the node, if there is one.
    pub fn attrs(&self) -> Option<&'a AttrSet> {
        match self.site {
            CallOrigin::Node(graph, node) => Some(graph.attrs(node)),
            CallOrigin::Schema(_) => None,
        }
    }

    /// Returns one attribute of the node.
    pub fn attr(&self, name: Symbol) -> Option<&'a Attr> {
        self.attrs()?.get(name)
    }

    /// Returns the static type of result `i`; `Any` if there is no such result.
    pub fn result_type(&self, i: usize) -> Type {
        match self.site {
            CallOrigin::Node(graph, node) => graph.results(node).nth(i).map_or(Type::ANY, |v| graph.ty(v)),
            CallOrigin::Schema(schema) => schema.returns.get(i).map_or(Type::ANY, |r| r.ty),
        }
    }

    /// Returns the static type of argument `i`; `Any` if there is no such argument.
    pub fn arg_type(&self, i: usize) -> Type {
        match self.site {
            CallOrigin::Node(graph, node) => graph.operands(node).nth(i).map_or(Type::ANY, |v| graph.ty(v)),
            CallOrigin::Schema(schema) => schema.args.get(i).map_or(Type::ANY, |a| a.ty),
        }
    }

    /// Returns the number of results that the caller expects.
    pub fn n_results(&self) -> usize {
        match self.site {
            CallOrigin::Node(graph, node) => graph.result_count(node),
            CallOrigin::Schema(schema) => schema.returns.len(),
        }
    }

    #[cold]
    fn mismatch(&self, i: usize, wanted: &str) -> KernelError {
        let found = self.args.get(i).map_or("nothing", IValue::tag);
        KernelError::input(format!("argument {i} must be {wanted} but is {found}"))
    }

    /// Argument `i` as a tensor.
    ///
    /// # Errors
    /// Returns an error if there is no such argument, or it has another type.
    #[inline]
    pub fn tensor(&self, i: usize) -> Result<&Tensor, KernelError> {
        match self.args.get(i) {
            Some(IValue::Tensor(t)) => Ok(t),
            _ => Err(self.mismatch(i, "a tensor")),
        }
    }

    /// Argument `i` as a tensor or `None`.
    ///
    /// # Errors
    /// Returns an error if there is no such argument, or it has another type.
    #[inline]
    pub fn opt_tensor(&self, i: usize) -> Result<Option<&Tensor>, KernelError> {
        match self.args.get(i) {
            Some(IValue::Tensor(t)) => Ok(Some(t)),
            Some(IValue::None) => Ok(None),
            _ => Err(self.mismatch(i, "a tensor or None")),
        }
    }

    /// Takes argument `i`, a tensor.
    ///
    /// # Errors
    /// Returns an error if there is no such argument, or it has another type.
    #[inline]
    pub fn take_tensor(&mut self, i: usize) -> Result<Tensor, KernelError> {
        match self.args.get_mut(i).map(std::mem::take) {
            Some(IValue::Tensor(t)) => Ok(t),
            Some(other) => {
                self.args[i] = other;
                Err(self.mismatch(i, "a tensor"))
            }
            None => Err(missing(i)),
        }
    }

    /// Argument `i` as an integer.
    ///
    /// # Errors
    /// Returns an error if there is no such argument, or it has another type.
    #[inline]
    pub fn int(&self, i: usize) -> Result<i64, KernelError> {
        match self.args.get(i) {
            Some(IValue::Int(v)) => Ok(*v),
            Some(IValue::Bool(b)) => Ok(i64::from(*b)),
            _ => Err(self.mismatch(i, "an integer")),
        }
    }

    /// Argument `i` as an integer or `None`.
    ///
    /// # Errors
    /// Returns an error if there is no such argument, or it has another type.
    #[inline]
    pub fn opt_int(&self, i: usize) -> Result<Option<i64>, KernelError> {
        self.opt(i, Self::int)
    }

    /// Argument `i` as a float; integers are converted.
    ///
    /// # Errors
    /// Returns an error if there is no such argument, or it has another type.
    #[inline]
    pub fn float(&self, i: usize) -> Result<f64, KernelError> {
        match self.args.get(i) {
            Some(IValue::Float(v)) => Ok(*v),
            Some(IValue::Int(v)) => Ok(*v as f64),
            Some(IValue::Bool(b)) => Ok(f64::from(u8::from(*b))),
            _ => Err(self.mismatch(i, "a float")),
        }
    }

    /// Argument `i` as a float or `None`.
    ///
    /// # Errors
    /// Returns an error if there is no such argument, or it has another type.
    #[inline]
    pub fn opt_float(&self, i: usize) -> Result<Option<f64>, KernelError> {
        self.opt(i, Self::float)
    }

    /// Argument `i` as a boolean.
    ///
    /// # Errors
    /// Returns an error if there is no such argument, or it has another type.
    #[inline]
    pub fn boolean(&self, i: usize) -> Result<bool, KernelError> {
        match self.args.get(i) {
            Some(IValue::Bool(v)) => Ok(*v),
            Some(IValue::Int(v)) => Ok(*v != 0),
            _ => Err(self.mismatch(i, "a bool")),
        }
    }

    /// Argument `i` as a boolean or `None`.
    ///
    /// # Errors
    /// Returns an error if there is no such argument, or it has another type.
    #[inline]
    pub fn opt_boolean(&self, i: usize) -> Result<Option<bool>, KernelError> {
        self.opt(i, Self::boolean)
    }

    /// Argument `i` as a number of any kind.
    ///
    /// # Errors
    /// Returns an error if there is no such argument, or it has another type.
    #[inline]
    pub fn scalar(&self, i: usize) -> Result<Scalar, KernelError> {
        self.args.get(i).and_then(IValue::as_scalar).ok_or_else(|| self.mismatch(i, "a number"))
    }

    /// Argument `i` as a number or `None`.
    ///
    /// # Errors
    /// Returns an error if there is no such argument, or it has another type.
    #[inline]
    pub fn opt_scalar(&self, i: usize) -> Result<Option<Scalar>, KernelError> {
        self.opt(i, Self::scalar)
    }

    /// Argument `i` as a string.
    ///
    /// # Errors
    /// Returns an error if there is no such argument, or it has another type.
    pub fn string(&self, i: usize) -> Result<&Str, KernelError> {
        self.args.get(i).and_then(IValue::as_str).ok_or_else(|| self.mismatch(i, "a string"))
    }

    /// The bytes of argument `i`, a string.
    ///
    /// # Errors
    /// Returns an error if there is no such argument, or it has another type.
    pub fn str_bytes(&self, i: usize) -> Result<&[u8], KernelError> {
        Ok(self.string(i)?.as_bytes())
    }

    /// Argument `i` as a string or `None`.
    ///
    /// # Errors
    /// Returns an error if there is no such argument, or it has another type.
    pub fn opt_string(&self, i: usize) -> Result<Option<&Str>, KernelError> {
        match self.args.get(i) {
            Some(IValue::None) => Ok(None),
            _ => self.string(i).map(Some),
        }
    }

    /// Argument `i` as a dtype, represented as an integer in programs.
    ///
    /// # Errors
    /// Returns an error if there is no such argument, or it has another type.
    pub fn dtype(&self, i: usize) -> Result<DType, KernelError> {
        let number = self.int(i)?;
        DType::from_scalar_type(number)
            .ok_or_else(|| KernelError::unsupported(format!("argument {i}: dtype number {number}")))
    }

    /// Argument `i` as a dtype or `None`.
    ///
    /// # Errors
    /// Returns an error if there is no such argument, or it has another type.
    pub fn opt_dtype(&self, i: usize) -> Result<Option<DType>, KernelError> {
        self.opt(i, Self::dtype)
    }

    /// Argument `i` as a device; strings are parsed.
    ///
    /// # Errors
    /// Returns an error if there is no such argument, or it has another type.
    pub fn device(&self, i: usize) -> Result<Device, KernelError> {
        self.args.get(i).and_then(IValue::as_device).ok_or_else(|| self.mismatch(i, "a device"))
    }

    /// Argument `i` as a device or `None`.
    ///
    /// # Errors
    /// Returns an error if there is no such argument, or it has another type.
    pub fn opt_device(&self, i: usize) -> Result<Option<Device>, KernelError> {
        self.opt(i, Self::device)
    }

    /// The generator in argument `i`, or the session's default generator if it is `None`.
    ///
    /// # Errors
    /// Returns an error if there is no such argument, or it has another type.
    pub fn generator(&self, i: usize) -> Result<Generator, KernelError> {
        match self.args.get(i) {
            Some(IValue::Generator(g)) => Ok(g.clone()),
            Some(IValue::None) => Ok(self.host.rng().clone()),
            _ => Err(self.mismatch(i, "a generator or None")),
        }
    }

    /// The session's default generator, for operators without a generator argument.
    pub fn session_generator(&self) -> &Generator {
        self.host.rng()
    }

    /// Argument `i` as a list.
    ///
    /// # Errors
    /// Returns an error if there is no such argument, or it has another type.
    pub fn list(&self, i: usize) -> Result<&List, KernelError> {
        self.args.get(i).and_then(IValue::as_list).ok_or_else(|| self.mismatch(i, "a list"))
    }

    /// Argument `i` as a dictionary.
    ///
    /// # Errors
    /// Returns an error if there is no such argument, or it has another type.
    pub fn dict(&self, i: usize) -> Result<&Dict, KernelError> {
        self.args.get(i).and_then(IValue::as_dict).ok_or_else(|| self.mismatch(i, "a dictionary"))
    }

    /// Argument `i` as integers: a list, or a single integer as a list of one.
    ///
    /// # Errors
    /// Returns an error if there is no such argument, or it has another type.
    pub fn ints(&self, i: usize) -> Result<Ints, KernelError> {
        match self.args.get(i) {
            Some(IValue::Int(v)) => Ok(SmallVec::from_slice(&[*v])),
            Some(IValue::List(list)) => match &*list.read() {
                ListItems::Ints(v) => Ok(SmallVec::from_slice(v)),
                items => {
                    let all: Option<Ints> = items.iter().map(|v| v.as_int()).collect();
                    all.ok_or_else(|| self.mismatch(i, "a list of integers"))
                }
            },
            _ => Err(self.mismatch(i, "a list of integers")),
        }
    }

    /// Argument `i` as a window parameter (size, stride, padding) for `n` dimensions. One integer, or a list of one,
    /// applies to all dimensions. Values beyond 32 bits are rejected, so that products of a few of them fit into 64
    /// bits.
    ///
    /// # Errors
    /// Returns an input error for other types, another number of integers, or an integer beyond 32 bits.
    pub fn ints_n(&self, i: usize, n: usize) -> Result<Ints, KernelError> {
        let mut ints = self.ints(i)?;
        if let Some(far) = ints.iter().find(|v| i32::try_from(**v).is_err()) {
            return Err(KernelError::input(format!("argument {i} contains {far}, which is out of range")));
        }
        if ints.len() == 1 && n > 1 {
            let v = ints[0];
            ints.resize(n, v);
        }
        if ints.len() != n {
            return Err(KernelError::input(format!(
                "argument {i} must have {n} elements but has {}",
                ints.len()
            )));
        }
        Ok(ints)
    }

    /// Argument `i` as integers or `None`.
    ///
    /// # Errors
    /// Returns an error if there is no such argument, or it has another type.
    pub fn opt_ints(&self, i: usize) -> Result<Option<Ints>, KernelError> {
        self.opt(i, Self::ints)
    }

    /// Argument `i` as floats: a list of numbers, or one number.
    ///
    /// # Errors
    /// Returns an error if there is no such argument, or it has another type.
    pub fn floats(&self, i: usize) -> Result<SmallVec<[f64; 4]>, KernelError> {
        let number = |v: &IValue| match v {
            IValue::Float(x) => Some(*x),
            IValue::Int(x) => Some(*x as f64),
            _ => None,
        };
        let all: Option<SmallVec<[f64; 4]>> = match self.args.get(i) {
            Some(IValue::List(list)) => match &*list.read() {
                ListItems::Floats(v) => Some(SmallVec::from_slice(v)),
                items => items.iter().map(|v| number(&v)).collect(),
            },
            Some(v) => number(v).map(|x| SmallVec::from_slice(&[x])),
            None => None,
        };
        all.ok_or_else(|| self.mismatch(i, "a list of floats"))
    }

    /// Argument `i` as `N` booleans.
    ///
    /// # Errors
    /// Returns an error if there is no such argument, or it has another type or number of elements.
    pub fn booleans<const N: usize>(&self, i: usize) -> Result<[bool; N], KernelError> {
        let all: Option<SmallVec<[bool; 8]>> = self.list(i)?.read().iter().map(|v| v.as_bool()).collect();
        let all = all.ok_or_else(|| self.mismatch(i, "a list of bools"))?;
        all[..].try_into().map_err(|_| {
            let n = all.len();
            KernelError::input(format!(
                "Tried to convert a List with {n} elements to a fixed-size array of size {N}"
            ))
        })
    }

    /// Argument `i` as tensors.
    ///
    /// # Errors
    /// Returns an error if there is no such argument, or it has another type.
    pub fn tensors(&self, i: usize) -> Result<SmallVec<[Tensor; 4]>, KernelError> {
        match &*self.list(i)?.read() {
            ListItems::Tensors(v) => Ok(v.iter().cloned().collect()),
            items => {
                let all: Option<SmallVec<[Tensor; 4]>> =
                    items.iter().map(|v| v.as_tensor().cloned()).collect();
                all.ok_or_else(|| self.mismatch(i, "a list of tensors"))
            }
        }
    }

    /// Argument `i` as tensors, some of which may be `None`.
    ///
    /// # Errors
    /// Returns an error if there is no such argument, or it has another type.
    pub fn opt_tensors(&self, i: usize) -> Result<SmallVec<[Option<Tensor>; 4]>, KernelError> {
        let each = |v: IValue| match v {
            IValue::Tensor(t) => Some(Some(t)),
            IValue::None => Some(None),
            _ => None,
        };
        let all: Option<SmallVec<[Option<Tensor>; 4]>> = self.list(i)?.read().iter().map(each).collect();
        all.ok_or_else(|| self.mismatch(i, "a list of optional tensors"))
    }

    #[inline]
    fn opt<T>(
        &self,
        i: usize,
        get: impl Fn(&Self, usize) -> Result<T, KernelError>,
    ) -> Result<Option<T>, KernelError> {
        match self.args.get(i) {
            Some(IValue::None) => Ok(None),
            _ => get(self, i).map(Some),
        }
    }
}

#[cold]
fn panicked(cx: &KernelCx<'_>, panic: &(dyn Any + Send)) -> KernelError {
    let name = match cx.site() {
        CallOrigin::Node(graph, node) => graph.op_name(node).to_string(),
        CallOrigin::Schema(schema) => schema.full_name(),
    };
    KernelError::misuse(format!("the kernel of `{name}` panicked: {}", panic_message(panic)))
}

/// Returns the message of a panic payload.
pub fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let owned = || panic.downcast_ref::<String>().map(String::as_str);
    panic.downcast_ref::<&str>().copied().or_else(owned).unwrap_or("a value that is not text")
}

#[cold]
fn missing(i: usize) -> KernelError {
    KernelError::internal(format!("argument {i} is missing"))
}

//! Subscripts: items, slices, tensor indexing with several subscripts, and assignment to these.

use flambeau_ir::types::TypeKind;
use flambeau_ir::{HostOp, IValue, Prim, Symbol, Type, ValueId};

use super::assign::in_place;
use super::fun::{Cx, Res};
use super::matching::CallArgs;
use super::sugar::Sugar;
use crate::span::Span;
use crate::tree::{SyntaxOp, TreeId, TreeKind};

/// One element of a subscript.
pub(super) enum SubscriptPart {
    Value(ValueId),
    Slice([Option<ValueId>; 3]),
    Dots,
}

impl<'a> Cx<'a> {
    pub(crate) async fn subscript(&self, tree: TreeId, hint: Option<Type>) -> Res<Sugar> {
        let span = self.span(tree);
        let base = self.ast().child(tree, 0);
        let sugar = self.sugar(base, None).await?;
        let value = match sugar {
            Sugar::Range(_) | Sugar::Zip(_) => return self.fail(span, "a range or zip cannot be indexed"),
            other => self.as_value(self.span(base), other)?,
        };
        let parts = self.parts(tree, value).await?;
        if let ([SubscriptPart::Value(index)], Some(hint)) = (parts.as_slice(), hint)
            && self.is_container(value)?
        {
            // The module that the index selects is known only at run time; all modules of the container match the hint.
            self.at(span);
            return Ok(Sugar::Value(self.value(Prim::ModuleContainerIndex, &[value, *index], hint)));
        }
        self.item(span, value, parts).await.map(Sugar::Value)
    }

    /// Returns true for a module without its own `__getitem__`.
    fn is_container(&self, value: ValueId) -> Res<bool> {
        let ty = self.ty(value);
        if ty.as_class().is_none() {
            return Ok(false);
        }
        self.complete(ty)?;
        let method = Symbol::new("__getitem__");
        Ok(self
            .session
            .with_unit(|u| u.class(ty).is_some_and(|c| c.is_module && !c.methods.contains_key(&method))))
    }

    /// Compiles the elements of a subscript of `container`. As in Python, `x[(i, j)]` is `x[i, j]` for a tensor; the
    /// methods of other containers take the tuple.
    async fn parts(&self, tree: TreeId, container: ValueId) -> Res<Vec<SubscriptPart>> {
        let mut subscripts = self.list(self.ast().child(tree, 1));
        if let [only] = *subscripts.as_slice()
            && self.kind(only) == TreeKind::TupleLiteral
            && self.ty(container).is_tensor()
        {
            subscripts = self.list(only);
        }
        let mut parts = Vec::with_capacity(subscripts.len());
        for tree in subscripts {
            parts.push(match self.kind(tree) {
                TreeKind::SliceExpr => {
                    let mut bounds = [None; 3];
                    for (i, bound) in bounds.iter_mut().enumerate() {
                        if let Some(tree) = self.ast().optional_child(tree, i) {
                            *bound = Some(self.eval(tree, Some(Type::INT)).await?);
                        }
                    }
                    SubscriptPart::Slice(bounds)
                }
                TreeKind::Dots => SubscriptPart::Dots,
                _ => match self.sugar(tree, None).await? {
                    Sugar::Slice(bounds) => SubscriptPart::Slice(bounds),
                    other => SubscriptPart::Value(self.as_value(self.span(tree), other)?),
                },
            });
        }
        Ok(parts)
    }

    pub(super) async fn item(&self, span: Span, value: ValueId, parts: Vec<SubscriptPart>) -> Res<ValueId> {
        let ty = self.ty(value);
        if ty.is_tensor() {
            return self.tensor_item(span, value, parts);
        }
        if self.is_host(value) {
            let index = self.host_index(span, &parts);
            return self.operate(span, "aten::__getitem__", "__getitem__", &[value, index]).await;
        }
        let [part] = parts.as_slice() else {
            return self.fail(
                span,
                format!("Only tensors can be indexed with several subscripts, not {}", ty.annotation()),
            );
        };
        match (part, ty.kind()) {
            (SubscriptPart::Value(index), TypeKind::Tuple(_)) => self.tuple_item(span, value, *index),
            (SubscriptPart::Slice(bounds), TypeKind::Tuple(_)) => self.tuple_slice(span, value, *bounds),
            (SubscriptPart::Value(index), TypeKind::Class(_)) => {
                if !self.has_own_method(value, Symbol::new("__getitem__"))
                    && let Some(i) = self.known(*index).and_then(|i| i.as_int())
                    && let Some(elements) = self.elements(span, value)
                {
                    let at = usize::try_from(if i < 0 { i + elements.len() as i64 } else { i });
                    return match at.ok().and_then(|at| elements.get(at)) {
                        Some(element) => self.as_value(span, element.clone()),
                        None => {
                            self.fail(span, format!("Index {i} out of range of length {}", elements.len()))
                        }
                    };
                }
                self.operate(span, "aten::__getitem__", "__getitem__", &[value, *index]).await
            }
            (_, TypeKind::Int | TypeKind::Float | TypeKind::Bool | TypeKind::Complex | TypeKind::None) => {
                self.fail(span, format!("'{}' object is not subscriptable", ty.annotation()))
            }
            (SubscriptPart::Value(index), _) => {
                self.builtin(span, "aten::__getitem__", &[value, *index]).map_err(|mut e| {
                    if ty.optional_elem().is_some() {
                        *e = e.clone().help("the value may be None; compare it with None first");
                    }
                    e
                })
            }
            (SubscriptPart::Slice(bounds), _) => self.slice(span, value, None, *bounds),
            (SubscriptPart::Dots, _) => self.fail(span, "Only tensors can be indexed by `...`"),
        }
    }

    /// Emits `aten::slice` of a list, a string or (with `dim`) a tensor.
    fn slice(
        &self,
        span: Span,
        value: ValueId,
        dim: Option<i64>,
        bounds: [Option<ValueId>; 3],
    ) -> Res<ValueId> {
        self.at(span);
        let mut args = CallArgs::default();
        args.positional.push(self.given(value));
        if let Some(dim) = dim {
            let dim = self.constant(dim);
            args.positional.push(self.given(dim));
        }
        let [start, stop, step] = bounds;
        for bound in [start, stop] {
            let bound = bound.unwrap_or_else(|| self.none());
            args.positional.push(self.given(bound));
        }
        let step = step.unwrap_or_else(|| self.constant(1_i64));
        args.positional.push(self.given(step));
        self.call_builtin(span, Symbol::new("aten::slice"), &args)
    }

    // --- tuples ----------------------------------------------------------------------------------------------------

    fn tuple_item(&self, span: Span, value: ValueId, index: ValueId) -> Res<ValueId> {
        let ty = self.ty(value);
        let elems = ty.as_tuple().map(|t| t.elems.to_vec()).unwrap_or_default();
        self.at(span);
        let Some(i) = self.known_int(index) else {
            if self.ty(index) != Type::INT {
                return self.fail(span, "tuple index must be an integer");
            }
            // With an index unknown at compile time, all elements must share a type.
            let Ok(elem) = flambeau_ir::types::unify_all(&elems, false, None, self.session) else {
                return self.fail(
                    span,
                    format!(
                        "Cannot index into a {} with a non-integer literal because we cannot resolve the output type",
                        self.ty(value).annotation()
                    ),
                );
            };
            return Ok(self.value(Prim::TupleIndex, &[value, index], elem));
        };
        let n = elems.len() as i64;
        let at = if i < 0 { i + n } else { i };
        if at < 0 || at >= n {
            return self
                .fail(span, format!("Tuple index out of range. Tuple is length {n} and index is {i}"));
        }
        let index = self.constant(at);
        Ok(self.value(Prim::TupleIndex, &[value, index], elems[at as usize]))
    }

    fn tuple_slice(&self, span: Span, value: ValueId, bounds: [Option<ValueId>; 3]) -> Res<ValueId> {
        let ty = self.ty(value);
        let n = ty.as_tuple().map_or(0, |t| t.elems.len()) as i64;
        let mut known = [None; 3];
        for (known, bound) in known.iter_mut().zip(bounds) {
            if let Some(bound) = bound
                && self.ty(bound) != Type::NONE
            {
                match self.known_int(bound) {
                    Some(v) => *known = Some(v),
                    None => return self.fail(span, "tuple slices must be integer constants"),
                }
            }
        }
        let [start, stop, step] = known;
        let step = step.unwrap_or(1);
        if step == 0 {
            return self.fail(span, "slice step cannot be zero");
        }
        let clamp = |v: Option<i64>, default: i64, low: i64, high: i64| match v {
            None => default,
            Some(v) => (if v < 0 { v + n } else { v }).clamp(low, high),
        };
        let (mut at, end) = if step > 0 {
            (clamp(start, 0, 0, n), clamp(stop, n, 0, n))
        } else {
            (clamp(start, n - 1, -1, n - 1), clamp(stop, -1, -1, n - 1))
        };
        let mut picked = Vec::new();
        while (step > 0 && at < end) || (step < 0 && at > end) {
            picked.push(at as usize);
            at = at.saturating_add(step);
        }
        self.at(span);
        let items = self.unpack_tuple(value);
        let items: Vec<ValueId> = picked.into_iter().map(|i| items[i]).collect();
        Ok(self.tuple(&items))
    }

    // --- tensors ---------------------------------------------------------------------------------------------------

    /// Applies integers, slices, `None` and `...` to the tensor. Returns the resulting view and the tensor indices that
    /// remain.
    fn tensor_view(
        &self,
        span: Span,
        value: ValueId,
        parts: Vec<SubscriptPart>,
    ) -> Res<(ValueId, Vec<Option<ValueId>>)> {
        let mut tensor = value;
        let mut dim = 0_i64;
        let mut indices: Vec<Option<ValueId>> = Vec::new();
        let takes_dim = |cx: &Self, p: &SubscriptPart| match p {
            SubscriptPart::Value(v) => cx.ty(*v) != Type::NONE,
            SubscriptPart::Slice(_) => true,
            SubscriptPart::Dots => false,
        };
        let total = parts.iter().filter(|p| takes_dim(self, p)).count() as i64;
        let mut seen = 0_i64;
        let mut after_dots = false;
        for part in parts {
            if takes_dim(self, &part) {
                seen += 1;
            }
            match part {
                SubscriptPart::Dots => {
                    if after_dots {
                        return self.fail(span, "An index can only have a single ellipsis ('...')");
                    }
                    after_dots = true;
                    dim = -(total - seen);
                }
                SubscriptPart::Slice(bounds) => {
                    tensor = self.slice(span, tensor, Some(dim), bounds)?;
                    dim += 1;
                }
                SubscriptPart::Value(index) => {
                    let ty = self.ty(index);
                    self.at(span);
                    if ty == Type::NONE {
                        // After `...` dimensions count from the end, and the inserted dimension shifts them by one.
                        let at = self.constant(if after_dots { dim - 1 } else { dim });
                        tensor = self.builtin(span, "aten::unsqueeze", &[tensor, at])?;
                        dim += i64::from(!after_dots);
                    } else if ty == Type::INT {
                        let at = self.constant(dim);
                        tensor = self.builtin(span, "aten::select", &[tensor, at, index])?;
                        // The dimension is gone, so the next one from the end has the following index.
                        dim += i64::from(dim < 0);
                    } else {
                        let index = self.as_index(span, index)?;
                        if dim < 0 {
                            return self.fail(
                                span,
                                "Ellipses followed by tensor indexing is currently not supported",
                            );
                        }
                        indices.resize(dim as usize, None);
                        indices.push(Some(index));
                        dim += 1;
                    }
                }
            }
        }
        Ok((tensor, indices))
    }

    /// Converts an index to a tensor.
    fn as_index(&self, span: Span, index: ValueId) -> Res<ValueId> {
        let ty = self.ty(index);
        if ty.is_tensor() || ty == Type::OPTIONAL_TENSOR {
            return Ok(index);
        }
        if ty.list_elem().is_some() {
            // As in TorchScript, truth values in a list are the positions 0 and 1, not a mask.
            self.at(span);
            let dtype = self.constant(super::names::constant("torch.int64").unwrap_or(IValue::None));
            let args = CallArgs {
                receiver: None,
                positional: vec![self.given(index)],
                keywords: vec![(Symbol::new("dtype"), self.given(dtype))],
            };
            return self.call_builtin(span, Symbol::new("aten::tensor"), &args);
        }
        self.fail(
            span,
            format!("Unsupported operation: indexing tensor with unsupported index type '{}'. Only ints, slices, lists and tensors are supported", ty.annotation()),
        )
    }

    fn index_list(&self, indices: &[Option<ValueId>]) -> ValueId {
        let values: Vec<ValueId> = indices.iter().map(|i| i.unwrap_or_else(|| self.none())).collect();
        self.value(Prim::ListConstruct, &values, Type::list(Type::OPTIONAL_TENSOR))
    }

    fn tensor_item(&self, span: Span, value: ValueId, parts: Vec<SubscriptPart>) -> Res<ValueId> {
        let (tensor, indices) = self.tensor_view(span, value, parts)?;
        if indices.is_empty() {
            return Ok(tensor);
        }
        self.at(span);
        let list = self.index_list(&indices);
        self.builtin(span, "aten::index", &[tensor, list])
    }

    // --- assignment ------------------------------------------------------------------------------------------------

    /// Compiles `container[subscripts] = value`; `span` is the whole statement.
    pub(crate) async fn set_item(&self, span: Span, target: TreeId, value: ValueId) -> Res<()> {
        let container = self.eval(self.ast().child(target, 0), None).await?;
        let parts = self.parts(target, container).await?;
        if self.ty(container).is_tensor() {
            let (view, indices) = self.tensor_view(span, container, parts)?;
            return self.put(span, view, &indices, value);
        }
        let index = self.assigned_index(span, container, &parts, "subscripted assignment")?;
        self.operate(span, "aten::_set_item", "__setitem__", &[container, index, value]).await?;
        Ok(())
    }

    /// Returns a subscript of a host object as one value.
    fn host_index(&self, span: Span, parts: &[SubscriptPart]) -> ValueId {
        let values: Vec<ValueId> = parts
            .iter()
            .map(|part| match part {
                SubscriptPart::Value(value) => *value,
                SubscriptPart::Slice(bounds) => {
                    let bounds = bounds.map(|bound| bound.unwrap_or_else(|| self.none()));
                    self.host_function(span, "builtins.slice", &bounds)
                }
                SubscriptPart::Dots => {
                    self.host(span, &HostOp::Object(Symbol::new("builtins.Ellipsis")), &[])
                }
            })
            .collect();
        match values.as_slice() {
            [one] => *one,
            several => self.tuple(several),
        }
    }

    /// Returns the single index of an item assignment, `what`, to a container other than a tensor.
    fn assigned_index(
        &self,
        span: Span,
        container: ValueId,
        parts: &[SubscriptPart],
        what: &str,
    ) -> Res<ValueId> {
        let ty = self.ty(container);
        if self.is_host(container) {
            return Ok(self.host_index(span, parts));
        }
        // A tuple would convert to a temporary list, and the assignment would be lost.
        if ty.as_tuple().is_some() || ty == Type::STR {
            return self.fail(
                span,
                format!("'{}' does not support {what}: its elements cannot be replaced", ty.annotation()),
            );
        }
        match *parts {
            [SubscriptPart::Value(index)] => Ok(index),
            [SubscriptPart::Slice(_)] => self.not_torchscript(span, "assignment to a slice is"),
            _ => self.fail(span, format!("'{}' takes one index", ty.annotation())),
        }
    }

    /// Writes into a view of a tensor.
    fn put(&self, span: Span, view: ValueId, indices: &[Option<ValueId>], value: ValueId) -> Res<()> {
        self.at(span);
        let value = self.as_tensor_like(span, view, value)?;
        if indices.is_empty() {
            self.builtin(span, "aten::copy_", &[view, value])?;
        } else {
            let list = self.index_list(indices);
            self.builtin(span, "aten::index_put_", &[view, list, value])?;
        }
        Ok(())
    }

    /// Converts a number to a tensor with the dtype and device of `like`.
    fn as_tensor_like(&self, span: Span, like: ValueId, value: ValueId) -> Res<ValueId> {
        if self.ty(value).is_tensor() {
            return Ok(value);
        }
        let dtype = self.builtin(span, "prim::dtype", &[like])?;
        let device = self.builtin(span, "prim::device", &[like])?;
        self.at(span);
        let value = match self.ty(value) {
            // A number whose type is only known at run time is converted to float.
            Type::NUMBER => self.builtin(span, "aten::Float", &[value])?,
            _ => value,
        };
        let args = CallArgs {
            receiver: None,
            positional: vec![self.given(value)],
            keywords: vec![
                (Symbol::new("dtype"), self.given(dtype)),
                (Symbol::new("device"), self.given(device)),
            ],
        };
        self.call_builtin(span, Symbol::new("aten::tensor"), &args)
    }

    /// Compiles `container[subscripts] op= value`.
    pub(crate) async fn augment_item(
        &self,
        tree: TreeId,
        op: SyntaxOp,
        target: TreeId,
        value: TreeId,
    ) -> Res<()> {
        let span = self.span(tree);
        let container = self.eval(self.ast().child(target, 0), None).await?;
        let parts = self.parts(target, container).await?;
        if self.ty(container).is_tensor() {
            let (view, indices) = self.tensor_view(self.span(target), container, parts)?;
            let rhs = self.eval(value, None).await?;
            if indices.is_empty() {
                let result = self.augment_value(span, op, view, rhs).await?;
                if in_place(op).is_none() {
                    self.put(span, view, &[], result)?;
                }
                return Ok(());
            }
            self.at(span);
            let list = self.index_list(&indices);
            let current = self.builtin(span, "aten::index", &[view, list])?;
            let result = self.augment_value(span, op, current, rhs).await?;
            self.builtin(span, "aten::index_put_", &[view, list, result])?;
            return Ok(());
        }
        let index = self.assigned_index(span, container, &parts, "augmented assignment")?;
        let current = self.operate(span, "aten::__getitem__", "__getitem__", &[container, index]).await?;
        let rhs = self.eval(value, None).await?;
        let result = self.augment_value(span, op, current, rhs).await?;
        self.operate(span, "aten::_set_item", "__setitem__", &[container, index, result]).await?;
        Ok(())
    }
}

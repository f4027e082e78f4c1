//! Lists, dictionaries, comprehensions and iteration.

use flambeau_ir::types::{TypeKind, unify_all};
use flambeau_ir::{IValue, Prim, Symbol, Type, ValueId};
use std::rc::Rc;

use super::fun::{Cx, LoopStatus, Res};
use super::hints::{Container, admitted_type};
use super::matching::CallArgs;
use super::sugar::{Range, Sugar};
use crate::span::Span;
use crate::tree::{TreeId, TreeKind};

/// The message for iterables that cannot advance in lockstep.
pub(super) const UNKNOWN_LENGTH: &str = "Can not iterate over a module list or tuple with a value that does not have a statically determinable length";

impl<'a> Cx<'a> {
    // --- literals --------------------------------------------------------------------------------------------------

    pub(crate) async fn list_literal(&self, tree: TreeId, hint: Option<Type>) -> Res<ValueId> {
        let span = self.span(tree);
        let elements = self.list(tree);
        let only = self.admitted_element(hint);
        let mut values = Vec::with_capacity(elements.len());
        for &element in &elements {
            if self.kind(element) == TreeKind::Starred {
                values.extend(self.values(&[element]).await?);
            } else {
                values.push(self.eval(element, self.part_hint(element, only)).await?);
            }
        }
        if values.is_empty() {
            return self.empty_list(span, hint);
        }
        self.list_value(span, values, hint)
    }

    /// Returns the type of elements that a type hint determines before the elements are compiled.
    fn admitted_element(&self, hint: Option<Type>) -> Option<Type> {
        admitted_type(Container::List, hint).and_then(Type::list_elem)
    }

    fn empty_list(&self, span: Span, hint: Option<Type>) -> Res<ValueId> {
        let known = self.type_of_empty(span, Container::List, hint)?;
        self.at(span);
        Ok(match known {
            Some(list) => self.value(Prim::ListConstruct, &[], list),
            // A literal `[]` converts to any list type until it is used as a list of tensors.
            None => self.value(Prim::EmptyListLiteral, &[], Type::LIST_TENSOR),
        })
    }

    /// Returns a list of values, of the type that a type hint determines.
    fn list_value(&self, span: Span, mut values: Vec<ValueId>, hint: Option<Type>) -> Res<ValueId> {
        let candidates = self.candidates(span, Container::List, hint)?;
        let found = self.common_type(span, &values, "List")?;
        let list = self.choose(span, &candidates, hint, Type::list(found))?;
        if let Some(elem) = list.and_then(Type::list_elem)
            && !self.convert_all(&mut values, elem)
        {
            return self.fail(span, list_mismatch(Type::list(elem), found));
        }
        self.at(span);
        Ok(self.value(Prim::ListConstruct, &values, list.unwrap_or(Type::list(found))))
    }

    /// Converts values to a type, and returns whether all have it afterwards.
    fn convert_all(&self, values: &mut [ValueId], ty: Type) -> bool {
        for value in values.iter_mut() {
            *value = self.try_convert(*value, ty);
        }
        values.iter().all(|&v| self.is_subtype(self.ty(v), ty))
    }

    /// Returns the common type of the parts of a container.
    fn common_type(&self, span: Span, values: &[ValueId], what: &str) -> Res<Type> {
        let types: Vec<Type> = values.iter().map(|&v| self.ty(v).erase_shapes()).collect();
        match unify_all(&types, true, None, self.session) {
            Ok(ty) => Ok(ty),
            Err(_) => self.fail(span, format!("{what} elements do not share a type")),
        }
    }

    pub(crate) async fn dict_literal(&self, tree: TreeId, hint: Option<Type>) -> Res<ValueId> {
        let span = self.span(tree);
        let (keys, values) = (self.list(self.ast().child(tree, 0)), self.list(self.ast().child(tree, 1)));
        let only = admitted_type(Container::Dict, hint).and_then(Type::dict_types);
        let (mut key_values, mut value_values) = (Vec::new(), Vec::new());
        for (&key, &value) in keys.iter().zip(&values) {
            key_values.push(self.eval(key, self.part_hint(key, only.map(|h| h.0))).await?);
            value_values.push(self.eval(value, self.part_hint(value, only.map(|h| h.1))).await?);
        }
        if let Some((&first, rest)) = key_values.split_first() {
            let expected = self.ty(first);
            for (&key, &tree) in rest.iter().zip(keys.iter().skip(1)) {
                let found = self.ty(key);
                if !self.is_subtype(found, expected) && only.is_none() {
                    let (expected, found) = (expected.annotation(), found.annotation());
                    let message = format!(
                        "Dict keys must contain only a single type. Expected: {expected} but found {found} instead"
                    );
                    return self.fail(self.span(tree), message);
                }
            }
        }
        self.dict_of(span, key_values, value_values, hint, literal_mismatch)
    }

    /// Returns a dictionary of the type that a type hint determines. `mismatch` describes keys or values of a wrong type.
    fn dict_of(
        &self,
        span: Span,
        mut keys: Vec<ValueId>,
        mut values: Vec<ValueId>,
        hint: Option<Type>,
        mismatch: fn(Type, &str, Type) -> String,
    ) -> Res<ValueId> {
        let ty = if keys.is_empty() {
            self.type_of_empty(span, Container::Dict, hint)?.unwrap_or(Type::dict(Type::STR, Type::TENSOR))
        } else {
            let candidates = self.candidates(span, Container::Dict, hint)?;
            let (key, value) =
                (self.common_type(span, &keys, "Dict key")?, self.common_type(span, &values, "Dict value")?);
            let found = Type::dict(key, value);
            let chosen = self.choose(span, &candidates, hint, found)?;
            if let Some((k, v)) = chosen.and_then(Type::dict_types) {
                let dict = Type::dict(k, v);
                if !self.convert_all(&mut keys, k) {
                    return self.fail(span, mismatch(dict, "key", key));
                }
                if !self.convert_all(&mut values, v) {
                    return self.fail(span, mismatch(dict, "value", value));
                }
            }
            chosen.unwrap_or(found)
        };
        if let Some((key, _)) = ty.dict_types() {
            self.check_key(span, key)?;
        }
        let operands: Vec<ValueId> = keys.iter().zip(&values).flat_map(|(&k, &v)| [k, v]).collect();
        self.at(span);
        Ok(self.value(Prim::DictConstruct, &operands, ty))
    }

    /// Checks the types of the keys and values that an iterable gives to a dictionary.
    fn check_entries(&self, span: Span, key: Type, value: Type, hint: Option<Type>) -> Res<()> {
        if let TypeKind::Union(_) = key.kind() {
            let key = key.annotation();
            let message = format!(
                "Dicts may only contain homogeneous keys, but the type of the first generated key was {key}"
            );
            return self.fail(span, message);
        }
        let candidates = self.candidates(span, Container::Dict, hint)?;
        let chosen = self.choose(span, &candidates, hint, Type::dict(key, value))?;
        if let Some((k, v)) = chosen.and_then(Type::dict_types) {
            for (part, wanted, found) in [("key", k, key), ("value", v, value)] {
                if !self.is_subtype(found, wanted) {
                    return self.fail(span, entry_mismatch(Type::dict(k, v), part, found));
                }
            }
        }
        Ok(())
    }

    fn check_key(&self, span: Span, key: Type) -> Res<()> {
        super::types::refused_key(key).map_or(Ok(()), |why| self.fail(span, why))
    }

    // --- comprehensions --------------------------------------------------------------------------------------------

    pub(crate) async fn list_comp(&self, tree: TreeId, hint: Option<Type>) -> Res<ValueId> {
        let parts = self.list(tree);
        let (element, target, iterable) = (parts[0], parts[1], parts[2]);
        let span = self.span(tree);
        let sugar = self.iterable(iterable).await?;
        let candidates = self.candidates(span, Container::List, hint)?;
        if self.is_unrolled(&sugar) && parts.len() == 3 {
            return self.unrolled_list(span, element, target, &sugar, hint).await;
        }
        self.at(span);
        let only = self.admitted_element(hint);
        let list = self.value(Prim::ListConstruct, &[], Type::list(only.unwrap_or(Type::TENSOR)));
        self.comprehension(span, target, &sugar, &parts[3..], &[element], only, |cx, values| {
            let found = cx.ty(values[0]).erase_shapes();
            let chosen = cx.choose(span, &candidates, hint, Type::list(found))?;
            let elem = chosen.and_then(Type::list_elem).unwrap_or(found);
            let value = cx.try_convert(values[0], elem);
            if !cx.is_subtype(cx.ty(value), elem) {
                return cx.fail(span, list_mismatch(Type::list(elem), found));
            }
            cx.set_type(list, Type::list(elem));
            let op = crate::ssa::operator(cx.session.registry(), "aten::append.t");
            cx.node(op, &[list, value], &[Type::list(elem)]);
            Ok(())
        })
        .await?;
        Ok(list)
    }

    async fn unrolled_list(
        &self,
        span: Span,
        element: TreeId,
        target: TreeId,
        sugar: &Sugar,
        hint: Option<Type>,
    ) -> Res<ValueId> {
        let Some(n) = self.static_length(sugar) else {
            return self.fail(span, UNKNOWN_LENGTH);
        };
        let only = self.admitted_element(hint);
        let mut values = Vec::new();
        let outer = self.comprehension_scope(span);
        for i in 0..n {
            let item = self.element_at(span, sugar, i)?;
            self.assign_to(target, item, span, None).await?;
            values.push(self.eval(element, self.part_hint(element, only)).await?);
        }
        self.leave_scope(outer);
        if values.is_empty() {
            let list = self.type_of_empty(span, Container::List, hint)?.unwrap_or(Type::LIST_TENSOR);
            self.at(span);
            return Ok(self.value(Prim::ListConstruct, &[], list));
        }
        self.list_value(span, values, hint)
    }

    pub(crate) async fn dict_comp(&self, tree: TreeId, hint: Option<Type>) -> Res<ValueId> {
        let parts = self.list(tree);
        let (key, value, target, iterable) = (parts[0], parts[1], parts[2], parts[3]);
        let span = self.span(tree);
        let sugar = self.iterable(iterable).await?;
        self.at(span);
        let candidates = self.candidates(span, Container::Dict, hint)?;
        let only = admitted_type(Container::Dict, hint).filter(|_| candidates.len() == 1);
        let dict = self.value(Prim::DictConstruct, &[], only.unwrap_or(Type::dict(Type::STR, Type::TENSOR)));
        self.comprehension(span, target, &sugar, &parts[4..], &[key, value], None, |cx, values| {
            let (k, v) = (cx.ty(values[0]).erase_shapes(), cx.ty(values[1]).erase_shapes());
            cx.check_entries(span, k, v, hint)?;
            if only.is_none() {
                cx.check_key(span, k)?;
                let chosen = cx.choose(span, &candidates, hint, Type::dict(k, v))?;
                cx.set_type(dict, chosen.unwrap_or(Type::dict(k, v)));
            }
            cx.builtin(span, "aten::_set_item", &[dict, values[0], values[1]]).map(|_| ())
        })
        .await?;
        Ok(dict)
    }

    fn comprehension_scope(&self, span: Span) -> flambeau_ir::BlockId {
        self.at(span);
        let node = self.node(Prim::ComprehensionScope, &[], &[]);
        let block = self.edit(|e| e.add_block(node));
        let outer = self.enter(block);
        self.fun.env.borrow_mut().push(block);
        outer
    }

    fn leave_scope(&self, outer: flambeau_ir::BlockId) {
        self.fun.env.borrow_mut().pop();
        self.enter(outer);
    }

    /// Emits the loop of a comprehension. `collect` is called with the values of `elements`, inside the loop body.
    #[expect(clippy::too_many_arguments, reason = "the parts of a comprehension")]
    async fn comprehension(
        &self,
        span: Span,
        target: TreeId,
        sugar: &Sugar,
        filters: &[TreeId],
        elements: &[TreeId],
        hint: Option<Type>,
        collect: impl FnOnce(&Self, &[ValueId]) -> Res<()>,
    ) -> Res<()> {
        let outer = self.comprehension_scope(span);
        let trips = self.length(span, sugar)?;
        self.at(span);
        let node = self.node(Prim::Loop, &[trips], &[]);
        let (body, header) = self.edit(|e| (e.add_block(node), e.add_block(node)));
        let always = self.constant_before(IValue::Bool(true));
        self.edit(|e| e.add_block_output(header, always));
        let around = self.enter(body);
        let trip = self.edit(|e| e.add_block_input(body, Type::INT));
        self.fun.env.borrow_mut().push(body);
        let status = self.fun.loop_status.replace(LoopStatus::InLoop);
        let item = self.element(span, sugar, trip)?;
        self.assign_to(target, item, span, None).await?;
        // Each filter opens an `if` around the rest of the body.
        let mut opened = 0;
        for &filter in filters {
            let cond = self.condition(filter).await?;
            self.at(self.span(filter));
            let choice = self.node(Prim::If, &[cond.value], &[]);
            let (then_block, _) = self.edit(|e| (e.add_block(choice), e.add_block(choice)));
            self.enter(then_block);
            self.fun.env.borrow_mut().push(then_block);
            self.refine(span, &cond.refinements.when_true)?;
            opened += 1;
        }
        let mut values = Vec::with_capacity(elements.len());
        for &element in elements {
            values.push(self.eval(element, hint).await?);
        }
        self.at(span);
        collect(self, &values)?;
        for _ in 0..opened {
            self.fun.env.borrow_mut().pop();
        }
        self.fun.loop_status.set(status);
        self.fun.env.borrow_mut().pop();
        self.enter(around);
        self.leave_scope(outer);
        Ok(())
    }

    // --- iteration -------------------------------------------------------------------------------------------------

    /// Compiles an expression to an iterable.
    pub(crate) async fn iterable(&self, tree: TreeId) -> Res<Sugar> {
        let sugar = self.sugar(tree, None).await?;
        self.walkable(self.span(tree), sugar)
    }

    fn walkable(&self, span: Span, sugar: Sugar) -> Res<Sugar> {
        match sugar {
            Sugar::Range(_) | Sugar::Zip(_) => Ok(sugar),
            // The elements of a constant of a class are known, as those of a tuple are.
            Sugar::Constant(IValue::List(list)) => {
                Ok(Sugar::Tuple(list.to_vec().into_iter().map(Sugar::Constant).collect()))
            }
            Sugar::Enum(ty) => {
                self.complete(ty)?;
                let members = self
                    .session
                    .with_unit(|u| u.enumeration(ty).map(|e| e.members.clone()))
                    .unwrap_or_default();
                let members = members.into_iter().map(|(name, value)| {
                    Sugar::Constant(IValue::Enum(flambeau_ir::value::EnumValue::new(ty, name, value)))
                });
                Ok(Sugar::Tuple(members.collect()))
            }
            other => {
                if let Sugar::Tuple(_) = other {
                    return Ok(other);
                }
                let value = self.as_value(span, other)?;
                let ty = self.ty(value);
                match ty.kind() {
                    TypeKind::List(_) | TypeKind::Str | TypeKind::Tensor(_) => Ok(Sugar::Value(value)),
                    TypeKind::Dict(..) => self.builtin(span, "aten::keys", &[value]).map(Sugar::Value),
                    TypeKind::PyObject => Ok(Sugar::Value(self.elements_of_host(span, value))),
                    TypeKind::Tuple(_) => {
                        self.at(span);
                        Ok(Sugar::Tuple(self.unpack_tuple(value).into_iter().map(Sugar::Value).collect()))
                    }
                    _ => match self.elements(span, value) {
                        Some(elements) => Ok(Sugar::Tuple(elements.into())),
                        None => self.fail(span, format!("'{}' object is not iterable", ty.annotation())),
                    },
                }
            }
        }
    }

    /// Compiles `enumerate(iterable, start=0)`; `inputs` are its one or two positional arguments.
    pub(crate) async fn enumerate(&self, tree: TreeId, inputs: &[TreeId]) -> Res<Sugar> {
        let span = self.span(tree);
        let attributes = self.list(self.ast().child(tree, 2));
        let start = match (&inputs[1..], attributes.as_slice()) {
            ([], []) => None,
            ([start], []) => Some(*start),
            ([], [keyword]) if self.ast().name(*keyword) == "start" => Some(self.ast().child(*keyword, 0)),
            ([], [keyword]) => {
                let message =
                    format!("enumerate expected keyword `start`, but found `{}`", self.ast().name(*keyword));
                return self.fail(self.span(*keyword), message);
            }
            _ => {
                let found = inputs.len() + attributes.len();
                let message = format!("enumerate expected at most 2 arguments, but found {found}");
                return self.fail(span, message);
            }
        };
        let inner = self.iterable(inputs[0]).await?;
        let start = match start {
            Some(start) => self.eval(start, Some(Type::INT)).await?,
            None => {
                self.at(span);
                self.constant(0_i64)
            }
        };
        self.at(span);
        let step = self.constant(1_i64);
        let stop = self.constant(i64::MAX);
        let counts_from_zero = self.known_int(start) == Some(0);
        let count = Sugar::Range(Rc::new(Range {
            start,
            stop,
            step,
            counts_from_zero,
            length: None,
            is_endless: true,
        }));
        Ok(Sugar::Zip([count, inner].into()))
    }

    /// Returns true if the loop over `sugar` is unrolled because its elements may have different types.
    pub(crate) fn is_unrolled(&self, sugar: &Sugar) -> bool {
        match sugar {
            Sugar::Tuple(_) => true,
            Sugar::Zip(parts) => parts.iter().any(|p| self.is_unrolled(p)),
            _ => false,
        }
    }

    /// Returns the number of elements, if known at compile time.
    pub(crate) fn static_length(&self, sugar: &Sugar) -> Option<usize> {
        match sugar {
            Sugar::Tuple(items) => Some(items.len()),
            Sugar::Range(range) => range.length.and_then(|n| usize::try_from(n).ok()),
            Sugar::Zip(parts) => {
                // `enumerate`'s unbounded counter does not limit the other iterables.
                let limits = parts.iter().filter(|part| !is_endless(part));
                let lengths: Option<Vec<usize>> = limits.map(|p| self.static_length(p)).collect();
                lengths?.into_iter().min()
            }
            _ => None,
        }
    }

    /// Returns the number of elements as a value.
    pub(crate) fn length(&self, span: Span, sugar: &Sugar) -> Res<ValueId> {
        match sugar {
            Sugar::Range(range) if range.counts_from_zero => Ok(range.stop),
            Sugar::Range(range) => {
                self.builtin(span, "aten::__range_length", &[range.start, range.stop, range.step])
            }
            Sugar::Zip(parts) => {
                let mut lengths = Vec::new();
                for part in parts.iter().filter(|part| !is_endless(part)) {
                    lengths.push(self.length(span, part)?);
                }
                self.at(span);
                match lengths.as_slice() {
                    [] => Ok(self.constant(0_i64)),
                    [one] => Ok(*one),
                    many => {
                        let list = self.value(Prim::ListConstruct, many, Type::LIST_INT);
                        self.builtin(span, "prim::min", &[list])
                    }
                }
            }
            Sugar::Tuple(items) => {
                self.at(span);
                Ok(self.constant(items.len() as i64))
            }
            other => {
                let value = self.as_value(span, other.clone())?;
                self.builtin(span, "aten::len", &[value])
            }
        }
    }

    /// Returns the element of iteration `trip`.
    pub(crate) fn element(&self, span: Span, sugar: &Sugar, trip: ValueId) -> Res<Sugar> {
        match sugar {
            Sugar::Range(range) if range.counts_from_zero => Ok(Sugar::Value(trip)),
            Sugar::Range(range) => {
                self.builtin(span, "aten::__derive_index", &[trip, range.start, range.step]).map(Sugar::Value)
            }
            Sugar::Zip(parts) => {
                // The recursion is as deep as `zip` calls nest in one expression.
                let items = parts.iter().map(|p| self.element(span, p, trip)).collect::<Res<Vec<_>>>()?;
                let values = items.into_iter().map(|s| self.as_value(span, s)).collect::<Res<Vec<_>>>()?;
                self.at(span);
                Ok(Sugar::Value(self.tuple(&values)))
            }
            other => {
                let value = self.as_value(span, other.clone())?;
                if self.ty(value).is_tensor() {
                    self.at(span);
                    let dim = self.constant(0_i64);
                    return self.builtin(span, "aten::select", &[value, dim, trip]).map(Sugar::Value);
                }
                self.builtin(span, "aten::__getitem__", &[value, trip]).map(Sugar::Value)
            }
        }
    }

    /// Returns element `i` of an unrolled loop.
    pub(crate) fn element_at(&self, span: Span, sugar: &Sugar, i: usize) -> Res<Sugar> {
        match sugar {
            Sugar::Tuple(items) => match items.get(i) {
                Some(item) => Ok(item.clone()),
                None => self.fail(span, "tuple index out of range"),
            },
            Sugar::Zip(parts) => Ok(Sugar::Tuple(
                parts.iter().map(|p| self.element_at(span, p, i)).collect::<Res<Vec<_>>>()?.into(),
            )),
            other => {
                self.at(span);
                let trip = self.constant(i as i64);
                self.element(span, other, trip)
            }
        }
    }

    // --- tuple(), list(), dict() -----------------------------------------------------------------------------------

    pub(crate) async fn tuple_call(&self, span: Span, inputs: &[TreeId]) -> Res<Sugar> {
        let Some(&input) = inputs.first() else {
            self.at(span);
            return Ok(Sugar::Value(self.tuple(&[])));
        };
        let sugar = self.sugar(input, None).await?;
        let items = self.as_tuple(span, sugar, None)?;
        let values = items.into_iter().map(|s| self.as_value(span, s)).collect::<Res<Vec<_>>>()?;
        self.at(span);
        Ok(Sugar::Value(self.tuple(&values)))
    }

    pub(crate) async fn list_call(&self, span: Span, inputs: &[TreeId], hint: Option<Type>) -> Res<ValueId> {
        let Some(&input) = inputs.first() else {
            return self.empty_list(span, hint);
        };
        let sugar = self.iterable(input).await?;
        self.list_of(span, &sugar, hint)
    }

    /// Returns the list of the elements of an iterable.
    fn list_of(&self, span: Span, sugar: &Sugar, hint: Option<Type>) -> Res<ValueId> {
        if let Sugar::Value(value) = sugar
            && self.ty(*value).list_elem().is_some()
        {
            return self.builtin(span, "aten::list", &[*value]);
        }
        if let Sugar::Value(value) = sugar
            && self.ty(*value) == Type::STR
        {
            return self.builtin(span, "aten::list", &[*value]);
        }
        if let Sugar::Tuple(items) = sugar {
            let values = items.iter().map(|s| self.as_value(span, s.clone())).collect::<Res<Vec<_>>>()?;
            if values.is_empty() {
                let list = self.type_of_empty(span, Container::List, hint)?.unwrap_or(Type::LIST_TENSOR);
                self.at(span);
                return Ok(self.value(Prim::ListConstruct, &[], list));
            }
            return self.list_value(span, values, hint);
        }
        // Iterate over other iterables with the loop of a comprehension.
        self.at(span);
        let list = self.value(Prim::ListConstruct, &[], Type::LIST_TENSOR);
        let outer = self.comprehension_scope(span);
        let trips = self.length(span, sugar)?;
        self.at(span);
        let node = self.node(Prim::Loop, &[trips], &[]);
        let (body, header) = self.edit(|e| (e.add_block(node), e.add_block(node)));
        let always = self.constant_before(IValue::Bool(true));
        self.edit(|e| e.add_block_output(header, always));
        let around = self.enter(body);
        let trip = self.edit(|e| e.add_block_input(body, Type::INT));
        let item = self.element(span, sugar, trip)?;
        let item = self.as_value(span, item)?;
        let elem = self.ty(item).erase_shapes();
        self.set_type(list, Type::list(elem));
        let op = crate::ssa::operator(self.session.registry(), "aten::append.t");
        self.node(op, &[list, item], &[Type::list(elem)]);
        self.enter(around);
        self.leave_scope(outer);
        Ok(list)
    }

    pub(crate) async fn dict_call(&self, tree: TreeId, hint: Option<Type>) -> Res<ValueId> {
        let span = self.span(tree);
        let inputs = self.list(self.ast().child(tree, 1));
        let attributes = self.list(self.ast().child(tree, 2));
        let mut base = None;
        if let Some(&input) = inputs.first() {
            let value = match self.kind(input) {
                // `dict([(k, v), ...])` with a literal argument is a dictionary literal.
                TreeKind::ListLiteral | TreeKind::TupleLiteral => {
                    let (mut keys, mut values) = (Vec::new(), Vec::new());
                    for pair in self.list(input) {
                        let sugar = self.sugar(pair, None).await?;
                        let parts = self.as_tuple(self.span(pair), sugar, Some(2))?;
                        let [k, v] = parts.as_slice() else { return self.fail(span, "dict takes pairs") };
                        keys.push(self.as_value(span, k.clone())?);
                        values.push(self.as_value(span, v.clone())?);
                    }
                    self.dict_of(span, keys, values, hint, entry_mismatch)?
                }
                _ => {
                    let value = match self.sugar(input, hint).await? {
                        pairs @ Sugar::Zip(_) => {
                            let pairs = self.list_of(span, &pairs, None)?;
                            let pair = self.ty(pairs).list_elem().and_then(Type::as_tuple);
                            if let Some([key, value]) = pair.map(|pair| &pair.elems[..]) {
                                self.check_entries(span, *key, *value, hint)?;
                            }
                            pairs
                        }
                        other => self.as_value(self.span(input), other)?,
                    };
                    let name = Symbol::new("aten::dict");
                    let args = CallArgs { positional: vec![self.given(value)], ..CallArgs::default() };
                    self.call_builtin(span, name, &args)?
                }
            };
            base = Some(value);
        }
        let (mut keys, mut values) = (Vec::new(), Vec::new());
        let only = admitted_type(Container::Dict, hint).and_then(Type::dict_types);
        for attribute in attributes {
            self.at(span);
            keys.push(self.string(self.ast().name(attribute)));
            let value = self.ast().child(attribute, 0);
            values.push(self.eval(value, self.part_hint(value, only.map(|h| h.1))).await?);
        }
        match base {
            None => self.dict_of(span, keys, values, hint, entry_mismatch),
            Some(dict) => {
                for (k, v) in keys.into_iter().zip(values) {
                    self.builtin(span, "aten::_set_item", &[dict, k, v])?;
                }
                Ok(dict)
            }
        }
    }
}

/// Describes elements that a list of the annotated type does not hold.
/// Whether the length of a part of a `zip` is no limit.
fn is_endless(part: &Sugar) -> bool {
    matches!(part, Sugar::Range(range) if range.is_endless)
}

fn list_mismatch(annotated: Type, found: Type) -> String {
    let (annotated, found) = (annotated.annotation(), found.annotation());
    format!(
        "List type annotation `{annotated}` did not match the types of the given list elements, which were unified to \
         {found}"
    )
}

/// Describes keys or values of a literal that a dictionary of the annotated type does not hold.
fn literal_mismatch(annotated: Type, part: &str, found: Type) -> String {
    let (annotated, found) = (annotated.annotation(), found.annotation());
    format!(
        "Type annotation was inferred to be `{annotated}`, but the type of {part}s given by the dict literal is {found}"
    )
}

/// Describes keys or values of a comprehension or call that a dictionary of the annotated type does not hold.
fn entry_mismatch(annotated: Type, part: &str, found: Type) -> String {
    let (annotated, found) = (annotated.annotation(), found.annotation());
    format!("Dict type annotation `{annotated}` did not match the type of an actual {part} type `{found}`")
}

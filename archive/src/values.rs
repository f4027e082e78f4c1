//! Conversion of the values of a pickle to values of programs.
//!
//! A pickle has little type information: a named tuple is a tuple, a list of integers may or may not be tagged. The
//! types come from the classes, so conversion is top-down and passes the declared type to each value. A value of
//! another type is an error that shows its path (`self.layers.0.weight`). Sharing in the pickle is preserved: every
//! value is converted once and memoized.
//!
//! The conversion uses an explicit stack. A value that contains itself is an error: no TorchScript type allows it, and
//! reference counting would never free it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use flambeau_ir::types::TypeKind;
use flambeau_ir::value::{Dict, EnumValue, List, Object, Tuple};
use flambeau_ir::{IValue, Symbol, Type};
use flambeau_tensor::{Complex, Device};

use crate::error::quoted;
use crate::pickle::{CallId, Global, ObjectId, Pickle, PickleId, Value};
use crate::{ArchiveCode, ArchiveError, ArchiveLimits, TensorLoader};

/// Queries of the conversion about the classes of a pickle.
pub(crate) trait ClassLookup {
    /// Error type of finding and compiling classes.
    type Error: From<ArchiveError>;

    /// Returns the type (class or enum) of a class global at byte `at` of the pickle.
    fn resolve(&mut self, qualified: &str, at: u64) -> Result<Type, Self::Error>;

    /// Returns the type that a type tag at byte `at` of the pickle denotes.
    fn type_of_text(&mut self, text: &str, at: u64) -> Result<Type, Self::Error>;

    /// Returns the name and type of each slot of a class.
    fn slots(&self, class: Type) -> Vec<(Symbol, Type)>;

    /// Returns the members of an enum.
    fn members(&self, ty: Type) -> Vec<(Symbol, IValue)>;

    /// Returns the type of the state that `__setstate__` of the class takes, or `None` if the class has no
    /// `__setstate__`.
    fn state_type(&mut self, class: Type) -> Result<Option<Type>, Self::Error>;

    /// Records that an object of `class` is used where `interface` is declared. Whether the class implements the
    /// interface is checked when its methods are known.
    fn must_implement(&mut self, class: Type, interface: Type);
}

/// An object whose class defines `__setstate__`, which must be called with the state.
#[derive(Clone)]
pub struct PendingState {
    /// The object; no slot is set.
    pub object: Object,
    /// The argument for `__setstate__`.
    pub state: IValue,
}

/// Converts the values of one pickle.
pub(crate) struct ValueConverter<'a, 'b, C: ClassLookup> {
    pickle: &'a Pickle,
    tensors: &'a mut TensorLoader<'b>,
    classes: &'a mut C,
    limits: &'a ArchiveLimits,
    /// Conversion state of each value, by index.
    memo: Vec<ConversionState>,
    made_tensors: BTreeMap<CallId, IValue>,
    pending: Vec<PendingState>,
    stack: Vec<PendingValue>,
}

#[derive(Clone)]
enum ConversionState {
    New,
    Busy,
    Done(IValue),
}

/// A value whose parts are being converted.
struct PendingValue {
    id: PickleId,
    what: ConversionTarget,
    parts: Vec<(PickleId, Type)>,
    done: Vec<IValue>,
}

enum ConversionTarget {
    /// The value equals its only part, without the type tag around it (of a list or dictionary).
    Same,
    Tuple(Type),
    List(Type),
    Dict(Type, Type),
    Object(Type, Vec<Symbol>),
    /// An object with `__setstate__`; its only part is the state.
    State(Type),
    Member(Type),
}

type Res<T, C> = Result<T, <C as ClassLookup>::Error>;

impl<'a, 'b, C: ClassLookup> ValueConverter<'a, 'b, C> {
    pub(crate) fn new(
        pickle: &'a Pickle,
        tensors: &'a mut TensorLoader<'b>,
        classes: &'a mut C,
        limits: &'a ArchiveLimits,
    ) -> Self {
        let memo = vec![ConversionState::New; pickle.len()];
        let made_tensors = BTreeMap::new();
        ValueConverter {
            pickle,
            tensors,
            classes,
            limits,
            memo,
            made_tensors,
            pending: Vec::new(),
            stack: Vec::new(),
        }
    }

    /// Returns the objects whose `__setstate__` has yet to be called, inner before outer.
    pub(crate) fn into_pending(self) -> Vec<PendingState> {
        self.pending
    }

    /// Converts the value `id`, whose declared type is `ty`.
    pub(crate) fn convert(&mut self, id: PickleId, ty: Type) -> Res<IValue, C> {
        self.stack.clear();
        let mut value = self.enter(id, ty)?;
        loop {
            let Some(frame) = self.stack.last_mut() else {
                return Ok(value.expect("invariant: with no frame left, the last one gave the value"));
            };
            if let Some(value) = value.take() {
                frame.done.push(value);
            }
            value = match frame.parts.get(frame.done.len()) {
                Some(&(id, ty)) => self.enter(id, ty)?,
                None => {
                    let frame = self.stack.pop().expect("invariant: it was looked at");
                    Some(self.finish(frame)?)
                }
            };
        }
    }

    /// Returns the value if it has no parts or is converted already. Otherwise pushes a frame and returns `None`.
    fn enter(&mut self, id: PickleId, ty: Type) -> Res<Option<IValue>, C> {
        match &self.memo[id.index()] {
            ConversionState::Done(value) => {
                let value = value.clone();
                self.check(id, &value, ty)?;
                return Ok(Some(value));
            }
            ConversionState::Busy => {
                return Err(self.error_at_value(id, ArchiveCode::Cycle, "the value contains itself".into()));
            }
            ConversionState::New => {}
        }
        let pickle = self.pickle;
        let leaf = match pickle.get(id) {
            Value::None => IValue::None,
            Value::Bool(b) => IValue::Bool(b),
            Value::Int(i) => IValue::Int(i),
            Value::Float(f) => IValue::Float(f),
            Value::Text(span) => IValue::str(pickle.text(span)),
            Value::Call(call) => match self.call(id, call, ty)? {
                Some(value) => value,
                None => return Ok(None),
            },
            Value::Tuple(_) | Value::List(_) | Value::Dict(_) => {
                self.container(id, ty)?;
                return Ok(None);
            }
            Value::Object(object) => {
                self.object(id, object, ty)?;
                return Ok(None);
            }
            other @ (Value::Bytes(_) | Value::Global(_) | Value::Persistent(_)) => {
                return Err(self.error_at_value(
                    id,
                    ArchiveCode::Value,
                    format!("{} is not a value of a program", other.kind()),
                ));
            }
        };
        self.check(id, &leaf, ty)?;
        self.memo[id.index()] = ConversionState::Done(leaf.clone());
        Ok(Some(leaf))
    }

    fn push(&mut self, id: PickleId, what: ConversionTarget, parts: Vec<(PickleId, Type)>) -> Res<(), C> {
        if self.stack.len() >= self.limits.depth {
            let message = format!("values nested deeper than {}", self.limits.depth);
            return Err(self.error_at_value(id, ArchiveCode::Limit, message));
        }
        self.memo[id.index()] = ConversionState::Busy;
        let done = Vec::with_capacity(parts.len());
        self.stack.push(PendingValue { id, what, parts, done });
        Ok(())
    }

    fn container(&mut self, id: PickleId, ty: Type) -> Res<(), C> {
        let pickle = self.pickle;
        let mismatch = |this: &Self| this.mismatch(id, pickle.get(id).kind(), ty);
        match pickle.get(id) {
            Value::Tuple(span) => {
                let items = pickle.tuple(span);
                let declared =
                    alternative(ty, |t| t.as_tuple().is_some_and(|t| t.elems.len() == items.len()));
                if declared.is_none() && ty != Type::ANY {
                    return Err(mismatch(self));
                }
                let elems = declared.and_then(Type::as_tuple).map(|t| &t.elems);
                let part = |(n, &item): (usize, &PickleId)| (item, elems.map_or(Type::ANY, |e| e[n]));
                let parts = items.iter().enumerate().map(part).collect();
                self.push(id, ConversionTarget::Tuple(declared.unwrap_or(Type::ANY)), parts)
            }
            Value::List(list) => {
                let declared = alternative(ty, |t| t.list_elem().is_some());
                let elem = declared.and_then(Type::list_elem).or((ty == Type::ANY).then_some(Type::ANY));
                let elem = elem.ok_or_else(|| mismatch(self))?;
                let parts = pickle.list(list).iter().map(|&item| (item, elem)).collect();
                self.push(id, ConversionTarget::List(elem), parts)
            }
            Value::Dict(dict) => {
                let declared = alternative(ty, |t| t.dict_types().is_some());
                let types = declared
                    .and_then(Type::dict_types)
                    .or((ty == Type::ANY).then_some((Type::ANY, Type::ANY)));
                let (key, value) = types.ok_or_else(|| mismatch(self))?;
                let parts = pickle.dict(dict).iter().flat_map(|&(k, v)| [(k, key), (v, value)]).collect();
                self.push(id, ConversionTarget::Dict(key, value), parts)
            }
            _ => Err(mismatch(self)),
        }
    }

    fn object(&mut self, id: PickleId, object: ObjectId, ty: Type) -> Res<(), C> {
        let pickle = self.pickle;
        let object = pickle.object(object);
        let Global::Class(name) = pickle.global(object.class) else {
            return Err(self.error_at_value(
                id,
                ArchiveCode::Operand,
                "the state of an object does not name a class".into(),
            ));
        };
        if name.starts_with("__torch__.torch.classes.") {
            let message = format!("objects of the custom class {} are not supported", quoted(name));
            return Err(self.error_at_value(id, ArchiveCode::Value, message));
        }
        let class = self.classes.resolve(name, pickle.offset(id))?;
        if class.as_class().is_none() || !matches!(class.kind(), TypeKind::Class(_)) {
            return Err(self.error_at_value(
                id,
                ArchiveCode::Root,
                format!("{} is not an object class", quoted(name)),
            ));
        }
        self.check_class(id, class, ty)?;
        let state = object.state.ok_or_else(|| {
            self.error_at_value(id, ArchiveCode::Attribute, "the object has no state".into())
        })?;
        if let Some(state_type) = self.classes.state_type(class)? {
            return self.push(id, ConversionTarget::State(class), vec![(state, state_type)]);
        }
        let Value::Dict(dict) = pickle.get(state) else {
            let message = format!("the object's state is {}, not a dict", pickle.get(state).kind());
            return Err(self.error_at_value(id, ArchiveCode::Attribute, message));
        };
        let mut given = BTreeMap::new();
        for &(key, value) in pickle.dict(dict) {
            let Some(key) = pickle.as_text(key) else {
                return Err(self.error_at_value(
                    id,
                    ArchiveCode::Attribute,
                    "an attribute's name is not a string".into(),
                ));
            };
            given.insert(key, value);
        }
        let mut parts = Vec::new();
        let mut names = Vec::new();
        for (name, ty) in self.classes.slots(class) {
            let Some(value) = given.remove(name.as_str()) else {
                let message = format!("an object of {class} has no attribute {}", quoted(name.as_str()));
                return Err(self.error_at_value(id, ArchiveCode::Attribute, message));
            };
            parts.push((value, ty));
            names.push(name);
        }
        if let Some(extra) = given.keys().next() {
            let message = format!("{class} has no attribute {}", quoted(extra));
            return Err(self.error_at_value(id, ArchiveCode::Attribute, message));
        }
        self.push(id, ConversionTarget::Object(class, names), parts)
    }

    /// Converts a call of an allowed global. Returns `None` if a frame was pushed for its parts.
    fn call(&mut self, id: PickleId, call: CallId, ty: Type) -> Res<Option<IValue>, C> {
        let pickle = self.pickle;
        let recorded = pickle.call(call);
        let args = pickle.as_tuple(recorded.args).unwrap_or_default();
        match pickle.global(recorded.function) {
            function if function.rebuilds_tensor() => self.tensor(call).map(Some),
            Global::BuildIntList => self.tagged(id, args, Type::list(Type::INT), ty).map(|()| None),
            Global::BuildDoubleList => self.tagged(id, args, Type::list(Type::FLOAT), ty).map(|()| None),
            Global::BuildBoolList => self.tagged(id, args, Type::list(Type::BOOL), ty).map(|()| None),
            Global::BuildTensorList => self.tagged(id, args, Type::list(Type::TENSOR), ty).map(|()| None),
            Global::RestoreTypeTag => {
                let &[inner, text] = args else {
                    return Err(self.error_at_value(
                        id,
                        ArchiveCode::Operand,
                        "a type tag needs a value and a type".into(),
                    ));
                };
                let Some(text) = pickle.as_text(text) else {
                    return Err(self.error_at_value(
                        id,
                        ArchiveCode::Operand,
                        "a type tag is not a string".into(),
                    ));
                };
                let tag = self.classes.type_of_text(text, pickle.offset(id))?;
                self.tagged(id, &[inner], tag, ty).map(|()| None)
            }
            Global::Complex => {
                let number = |id: &PickleId| match pickle.get(*id) {
                    Value::Float(f) => Some(f),
                    Value::Int(i) => Some(i as f64),
                    _ => None,
                };
                let [re, im] = args else {
                    return Err(self.error_at_value(
                        id,
                        ArchiveCode::Operand,
                        "a complex number needs two parts".into(),
                    ));
                };
                match (number(re), number(im)) {
                    (Some(re), Some(im)) => Ok(Some(IValue::complex(Complex::new(re, im)))),
                    _ => Err(self.error_at_value(
                        id,
                        ArchiveCode::Operand,
                        "complex parts must be numbers".into(),
                    )),
                }
            }
            Global::Device => {
                let text = args.first().and_then(|&a| pickle.as_text(a)).filter(|_| args.len() == 1);
                let device = text.and_then(|t| Device::parse(t).ok());
                let device = device.ok_or_else(|| {
                    self.error_at_value(id, ArchiveCode::Operand, "this is not a device name".into())
                })?;
                Ok(Some(IValue::Device(device)))
            }
            Global::Class(name) => {
                let member = self.classes.resolve(name, pickle.offset(id))?;
                let TypeKind::Enum(_, value_type) = member.kind() else {
                    return Err(self.error_at_value(
                        id,
                        ArchiveCode::Value,
                        format!("{} is called but is not an enum", quoted(name)),
                    ));
                };
                self.push(id, ConversionTarget::Member(member), vec![(recorded.args, *value_type)])?;
                self.check_declared(id, member, ty).map(|()| None)
            }
            other => Err(self.error_at_value(
                id,
                ArchiveCode::Value,
                format!("a call of {other:?} is not a value of a program"),
            )),
        }
    }

    /// Converts a list or dict whose type `tag` is in the pickle.
    fn tagged(&mut self, id: PickleId, args: &[PickleId], tag: Type, ty: Type) -> Res<(), C> {
        let &[inner] = args else {
            return Err(self.error_at_value(
                id,
                ArchiveCode::Operand,
                "a typed list needs one argument".into(),
            ));
        };
        self.check_declared(id, tag, ty)?;
        // If the declared type contains the tag's type, use the declared one: the tag of a list of modules is their
        // class.
        let inner_type = alternative(ty, |t| t == tag).unwrap_or(tag);
        self.push(id, ConversionTarget::Same, vec![(inner, inner_type)])
    }

    fn tensor(&mut self, call: CallId) -> Res<IValue, C> {
        if let Some(made) = self.made_tensors.get(&call) {
            return Ok(made.clone());
        }
        let tensor = self.tensors.rebuild(self.pickle, call).map_err(|e| self.with_path(e))?;
        let tensor = IValue::Tensor(tensor);
        self.made_tensors.insert(call, tensor.clone());
        Ok(tensor)
    }

    fn finish(&mut self, frame: PendingValue) -> Res<IValue, C> {
        let PendingValue { id, what, mut done, .. } = frame;
        let value = match what {
            ConversionTarget::Same => done.pop().expect("invariant: it has one part"),
            ConversionTarget::Tuple(ty) if ty.as_tuple().is_some_and(|t| t.named.is_some()) => {
                IValue::Tuple(Tuple::named(ty, done))
            }
            ConversionTarget::Tuple(_) => IValue::tuple(done),
            ConversionTarget::List(elem) => IValue::List(List::from_values(elem, done)),
            ConversionTarget::Dict(key, value) => {
                let dict = Dict::new(key, value);
                let mut items = done.into_iter();
                while let (Some(k), Some(v)) = (items.next(), items.next()) {
                    if let Err(e) = dict.insert(k, v) {
                        return Err(self.error_at_value(id, ArchiveCode::Type, e.to_string()));
                    }
                }
                IValue::Dict(dict)
            }
            ConversionTarget::Object(class, _) => IValue::Object(Object::new(class, done)),
            ConversionTarget::State(class) => {
                let object = Object::new(class, vec![IValue::Uninitialized; self.classes.slots(class).len()]);
                let state = done.pop().expect("invariant: it has one part");
                self.pending.push(PendingState { object: object.clone(), state });
                IValue::Object(object)
            }
            ConversionTarget::Member(ty) => {
                let wanted = done.pop().expect("invariant: it has one part");
                let members = self.classes.members(ty);
                let found = members.into_iter().find(|(_, value)| value.equals(&wanted).unwrap_or(false));
                let Some((name, value)) = found else {
                    return Err(self.error_at_value(
                        id,
                        ArchiveCode::Value,
                        format!("{ty} has no member with this value"),
                    ));
                };
                IValue::Enum(EnumValue::new(ty, name, value))
            }
        };
        self.memo[id.index()] = ConversionState::Done(value.clone());
        Ok(value)
    }

    /// Checks that a finished value may be used where `ty` is declared.
    fn check(&mut self, id: PickleId, value: &IValue, ty: Type) -> Res<(), C> {
        match value {
            IValue::Object(object) => self.check_class(id, object.class(), ty),
            _ if value.fits(ty) => Ok(()),
            _ => Err(self.mismatch(id, &value.type_of().to_string(), ty)),
        }
    }

    fn check_class(&mut self, id: PickleId, class: Type, ty: Type) -> Res<(), C> {
        if alternative(ty, |t| t == class || t == Type::ANY).is_some() {
            return Ok(());
        }
        match alternative(ty, |t| matches!(t.kind(), TypeKind::Interface(_))) {
            Some(interface) => {
                self.classes.must_implement(class, interface);
                Ok(())
            }
            None => Err(self.mismatch(id, &class.to_string(), ty)),
        }
    }

    fn check_declared(&self, id: PickleId, own: Type, ty: Type) -> Res<(), C> {
        let fits = flambeau_ir::types::is_subtype(own, ty, &flambeau_ir::types::NoClasses);
        if fits { Ok(()) } else { Err(self.mismatch(id, &own.to_string(), ty)) }
    }

    fn mismatch(&self, id: PickleId, got: &str, ty: Type) -> C::Error {
        self.error_at_value(id, ArchiveCode::Type, format!("expected {ty}, found {got}"))
    }

    /// Creates an error about the value `id`, with the path to it.
    fn error_at_value(&self, id: PickleId, code: ArchiveCode, message: String) -> C::Error {
        self.with_path(ArchiveError::new(code, message).at(self.pickle.offset(id)))
    }

    fn with_path(&self, error: ArchiveError) -> C::Error {
        C::Error::from(error.under(&self.path()))
    }

    /// Returns the path to the current value, such as `self.layers.0`; long paths keep their end.
    fn path(&self) -> String {
        const SHOWN: usize = 20;
        let mut path = String::from("self");
        let from = self.stack.len().saturating_sub(SHOWN);
        if from > 0 {
            path.push('…');
        }
        for frame in &self.stack[from..] {
            let at = frame.done.len();
            match &frame.what {
                ConversionTarget::Object(_, names) => {
                    let _ = write!(path, ".{}", names.get(at).map_or("?", |n| n.as_str()));
                }
                ConversionTarget::Tuple(_) | ConversionTarget::List(_) => {
                    let _ = write!(path, "[{at}]");
                }
                ConversionTarget::Dict(..) => {
                    let _ = write!(path, "{{{}}}", at / 2);
                }
                ConversionTarget::Same | ConversionTarget::State(_) | ConversionTarget::Member(_) => {}
            }
        }
        path
    }
}

/// Returns the type that satisfies `wanted`: `ty` itself, the element type of an optional, or the only such member of a
/// union.
fn alternative(ty: Type, wanted: impl Fn(Type) -> bool) -> Option<Type> {
    if wanted(ty) {
        return Some(ty);
    }
    match ty.kind() {
        TypeKind::Optional(inner) => alternative(*inner, wanted),
        TypeKind::Union(members) => {
            let mut fitting = members.iter().copied().filter(|&m| wanted(m));
            fitting.next().filter(|_| fitting.next().is_none())
        }
        _ => None,
    }
}

//! Structure of nested inputs and outputs: the tree specs (pytrees) of `torch.export`.
//!
//! A graph takes and returns flat lists of tensors and scalars; the caller passes nested containers. A [`TreeSpec`] states
//! the containers. [`TreeSpec::flatten`] checks a value against it and returns the leaves in order, and
//! [`TreeSpec::unflatten`] is the inverse. `None` is a leaf. Containers without a kind of value of their own are mapped:
//!
//! | Python | value |
//! |---|---|
//! | `dict`, `OrderedDict`, `defaultdict` | a dictionary; entries are found by key, in any order |
//! | `deque` | a list |
//! | a namedtuple, a registered dataclass, `torch.return_types.*` | a tuple with field names |
//!
//! Specs are nested at most [`MAX_DEPTH`] deep, so walks over them recurse.

use flambeau_ir::types::NamedField;
use flambeau_ir::value::{Dict, DictMap, Tuple};
use flambeau_ir::{IValue, Symbol, Type};
use std::fmt;

use crate::error::quoted;
use crate::expr::PathStep;
use crate::json::{JsonKind, JsonReader, Res};
use crate::model::Map;
use crate::{ExportCode, ExportError};

/// Maximum nesting of containers.
pub const MAX_DEPTH: usize = 48;

/// The structure of a value.
#[derive(Clone, Debug, PartialEq)]
pub struct TreeSpec {
    kind: Container,
    children: Vec<TreeSpec>,
    /// Number of leaves below.
    leaves: usize,
}

/// The kind of a container.
#[derive(Clone, Debug, PartialEq)]
enum Container {
    /// No container.
    Leaf,
    Tuple,
    /// `torch.Size`, a tuple of integers.
    Size,
    List,
    /// `collections.deque` with its maximum length.
    Deque,
    /// A dictionary of a class, with its keys.
    Dict {
        class: &'static str,
        keys: Vec<Key>,
    },
    /// A tuple with field names. A dataclass has more fields than children: those that are `None`.
    Named {
        class: String,
        fields: Option<Vec<String>>,
        none: Vec<String>,
    },
}

/// A key of a dictionary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Key {
    /// A string.
    Str(String),
    /// An integer.
    Int(i64),
    /// A truth value.
    Bool(bool),
}

impl Key {
    /// Returns the key as a value.
    #[must_use]
    pub fn value(&self) -> IValue {
        match self {
            Key::Str(s) => IValue::str(s),
            Key::Int(n) => IValue::Int(*n),
            Key::Bool(b) => IValue::Bool(*b),
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::Str(s) => write!(f, "'{}'", s.escape_debug()),
            Key::Int(n) => write!(f, "{n}"),
            Key::Bool(b) => f.write_str(if *b { "True" } else { "False" }),
        }
    }
}

/// A value has another structure than its spec.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected input at {path} to be {expected}, but got {found}")]
pub struct TreeMismatch {
    /// The place of the difference: `*args[0]['key'][1]`.
    pub path: String,
    /// The container that the spec states.
    pub expected: String,
    /// The given value.
    pub found: String,
}

/// A container and its elements.
#[derive(Clone, Copy, Debug)]
pub enum TreeView<'t> {
    /// No container.
    Leaf,
    /// A tuple.
    Tuple(&'t [TreeSpec]),
    /// A list.
    List(&'t [TreeSpec]),
    /// A dictionary: keys and values.
    Dict(&'t [Key], &'t [TreeSpec]),
    /// A tuple with field names, or a dataclass.
    Named(NamedView<'t>),
}

/// A tuple with field names, or a dataclass, and its elements.
#[derive(Clone, Copy, Debug)]
pub struct NamedView<'t> {
    /// The class, as the file names it.
    pub class: &'t str,
    /// The fields of the elements, if the file states them.
    pub fields: Option<&'t [String]>,
    /// Further fields of a dataclass, whose values are `None`.
    pub none: &'t [String],
    /// The elements.
    pub children: &'t [TreeSpec],
}

impl TreeSpec {
    /// Returns the container with its elements.
    #[must_use]
    pub fn view(&self) -> TreeView<'_> {
        match &self.kind {
            Container::Leaf => TreeView::Leaf,
            Container::Tuple | Container::Size => TreeView::Tuple(&self.children),
            Container::List | Container::Deque => TreeView::List(&self.children),
            Container::Dict { keys, .. } => TreeView::Dict(keys, &self.children),
            Container::Named { class, fields, none } => {
                let (fields, children) = (fields.as_deref(), self.children.as_slice());
                TreeView::Named(NamedView { class, fields, none, children })
            }
        }
    }

    /// Reads a spec from its JSON text, `[1, {"type": …, "context": …, "children_spec": […]}]`. `names` has the fields of
    /// named tuples.
    ///
    /// # Errors
    /// `E001`, `E002` for malformed text, `E010` for an unknown container, `E009` for deep nesting.
    pub fn parse(text: &str, names: &Map<Vec<String>>) -> Result<TreeSpec, ExportError> {
        let mut json = JsonReader::new(text, 2 * MAX_DEPTH + 2);
        let mut parts = json.array(|json| match json.kind()? {
            JsonKind::Number => {
                let version = json.int()?;
                match version {
                    1 => Ok(None),
                    _ => Err(broken(format!("tree specs of version {version} are not supported"))),
                }
            }
            _ => spec(json, names).map(Some),
        })?;
        json.end()?;
        match (parts.len(), parts.pop()) {
            (2, Some(Some(spec))) => Ok(spec),
            _ => Err(broken("expected a version and a tree spec")),
        }
    }

    /// Returns the structure of a value and appends its leaves. A named tuple becomes a tuple, because another process
    /// could not read its class.
    ///
    /// # Errors
    /// `E010` for a dictionary with keys other than strings, integers and bools, `E009` for deep nesting.
    pub fn of_value(value: &IValue, leaves: &mut Vec<IValue>) -> Result<TreeSpec, ExportError> {
        of_value(value, 0, leaves)
    }

    /// Returns a tuple.
    #[must_use]
    pub fn tuple(children: Vec<TreeSpec>) -> TreeSpec {
        TreeSpec::container(Container::Tuple, children)
    }

    /// Returns a dictionary with string keys.
    #[must_use]
    pub fn dict(entries: Vec<(String, TreeSpec)>) -> TreeSpec {
        let (keys, children) = entries.into_iter().map(|(key, child)| (Key::Str(key), child)).unzip();
        TreeSpec::container(Container::Dict { class: "dict", keys }, children)
    }

    fn container(kind: Container, children: Vec<TreeSpec>) -> TreeSpec {
        let leaves = children.iter().map(|child| child.leaves).sum();
        TreeSpec { kind, children, leaves }
    }

    /// Returns the JSON text that [`TreeSpec::parse`] reads; `None` for containers of registered classes, whose text is
    /// in the file that they were read from.
    #[must_use]
    pub fn text(&self) -> Option<String> {
        let mut out = String::from("[1, ");
        self.write(&mut out)?;
        out.push(']');
        Some(out)
    }

    /// The recursion is bounded by [`MAX_DEPTH`].
    fn write(&self, out: &mut String) -> Option<()> {
        let (class, context) = match &self.kind {
            Container::Leaf => ("null", "null".to_owned()),
            Container::Tuple => ("\"builtins.tuple\"", json_text("null")),
            Container::Size => ("\"torch.Size\"", json_text("null")),
            Container::List => ("\"builtins.list\"", json_text("null")),
            Container::Dict { class: "dict", keys } => {
                let keys: Vec<String> = keys.iter().map(key_text).collect();
                ("\"builtins.dict\"", json_text(&format!("[{}]", keys.join(", "))))
            }
            _ => return None,
        };
        out.push_str(&format!("{{\"type\": {class}, \"context\": {context}, \"children_spec\": ["));
        for (i, child) in self.children.iter().enumerate() {
            out.push_str(if i > 0 { ", " } else { "" });
            child.write(out)?;
        }
        out.push_str("]}");
        Some(())
    }

    /// Calls `visit` for the class of each container: `builtins.list`, or the registered name of a named tuple or dataclass.
    pub(crate) fn for_each_class(&self, visit: &mut impl FnMut(&str)) {
        match &self.kind {
            Container::Leaf => {}
            Container::Tuple => visit("builtins.tuple"),
            Container::Size => visit("torch.Size"),
            Container::List => visit("builtins.list"),
            Container::Deque => visit("collections.deque"),
            Container::Dict { class: "dict", .. } => visit("builtins.dict"),
            Container::Dict { class, .. } => visit(&format!("collections.{class}")),
            Container::Named { class, .. } => visit(class),
        }
        // The recursion is bounded by `MAX_DEPTH`.
        self.children.iter().for_each(|child| child.for_each_class(visit));
    }

    /// Whether it is a value that is no container.
    #[must_use]
    pub fn is_leaf(&self) -> bool {
        self.kind == Container::Leaf
    }

    /// Returns the number of leaves.
    #[must_use]
    pub fn leaves(&self) -> usize {
        self.leaves
    }

    /// Returns the elements of a tuple; `None` for another container.
    #[must_use]
    pub fn as_tuple(&self) -> Option<&[TreeSpec]> {
        matches!(self.kind, Container::Tuple | Container::Size).then_some(&self.children)
    }

    /// Returns keys and values of a dictionary; `None` for another container.
    #[must_use]
    pub fn as_dict(&self) -> Option<impl Iterator<Item = (&Key, &TreeSpec)>> {
        let Container::Dict { keys, .. } = &self.kind else { return None };
        Some(keys.iter().zip(&self.children))
    }

    /// Appends the paths of all leaves. `path` is the place of this value.
    pub fn leaf_paths(&self, path: &str, paths: &mut Vec<String>) {
        if let Container::Leaf = self.kind {
            return paths.push(path.to_owned());
        }
        // The recursion is bounded by `MAX_DEPTH`.
        for (i, child) in self.children.iter().enumerate() {
            child.leaf_paths(&format!("{path}{}", self.step(i)), paths);
        }
    }

    /// Returns the path from the container to an element.
    fn step(&self, index: usize) -> String {
        match &self.kind {
            Container::Dict { keys, .. } => format!("[{}]", keys[index]),
            Container::Named { fields: Some(fields), .. } => format!(".{}", fields[index]),
            _ => format!("[{index}]"),
        }
    }

    /// Returns the number of leaves before the leaf to which a path leads; `None` if it leads to no leaf.
    #[must_use]
    pub fn leaf_at(&self, path: &[PathStep]) -> Option<usize> {
        let Some((step, rest)) = path.split_first() else {
            return matches!(self.kind, Container::Leaf).then_some(0);
        };
        let index = match (&self.kind, step) {
            (Container::Dict { keys, .. }, PathStep::Key(key)) => {
                keys.iter().position(|own| *own == Key::Str(key.clone()))?
            }
            (Container::Dict { keys, .. }, PathStep::Index(key)) => {
                keys.iter().position(|own| *own == Key::Int(*key))?
            }
            (Container::Named { fields: Some(fields), .. }, PathStep::Attr(name)) => {
                fields.iter().position(|own| own == name)?
            }
            (Container::Leaf, _) => return None,
            (_, PathStep::Index(index)) => usize::try_from(*index).ok()?,
            _ => return None,
        };
        let before: usize = self.children.get(..index)?.iter().map(|child| child.leaves).sum();
        Some(before + self.children.get(index)?.leaf_at(rest)?)
    }

    /// Returns a name of the container for messages.
    fn describe(&self) -> String {
        let n = self.children.len();
        match &self.kind {
            Container::Leaf => "a tensor, a number or another leaf".to_owned(),
            Container::Tuple | Container::Size => format!("a tuple of {n} elements"),
            Container::List | Container::Deque => format!("a list of {n} elements"),
            Container::Dict { keys, .. } => {
                let keys: Vec<String> = keys.iter().map(Key::to_string).collect();
                format!("a dict with the keys {}", keys.join(", "))
            }
            Container::Named { class, .. } => format!("a {}", quoted(class)),
        }
    }

    /// Appends the leaves of a value that has this structure. `path` is the place of the value for messages.
    ///
    /// # Errors
    /// Returns the first place at which the structures differ.
    pub fn flatten(&self, value: &IValue, path: &str, leaves: &mut Vec<IValue>) -> Result<(), TreeMismatch> {
        let differs =
            || TreeMismatch { path: path.to_owned(), expected: self.describe(), found: found(value) };
        // The recursion is bounded by `MAX_DEPTH`.
        let each = |items: &[IValue], leaves: &mut Vec<IValue>| {
            if items.len() != self.children.len() {
                return Err(differs());
            }
            let mut pairs = self.children.iter().zip(items).enumerate();
            pairs.try_for_each(|(i, (child, item))| child.flatten(item, &format!("{path}[{i}]"), leaves))
        };
        match (&self.kind, value) {
            (Container::Leaf, IValue::Tuple(_) | IValue::List(_) | IValue::Dict(_)) => Err(differs()),
            (Container::Leaf, leaf) => {
                leaves.push(leaf.clone());
                Ok(())
            }
            (Container::Tuple | Container::Size, IValue::Tuple(tuple)) if tuple.named_type().is_none() => {
                each(tuple.items(), leaves)
            }
            (Container::List | Container::Deque, IValue::List(list)) => each(&list.to_vec(), leaves),
            (Container::Dict { keys, .. }, IValue::Dict(dict)) => {
                if dict.len() != keys.len() {
                    return Err(differs());
                }
                for (key, child) in keys.iter().zip(&self.children) {
                    let item = dict.get(&key.value()).ok().flatten().ok_or_else(differs)?;
                    child.flatten(&item, &format!("{path}[{key}]"), leaves)?;
                }
                Ok(())
            }
            (Container::Named { class, fields, none }, IValue::Tuple(tuple)) => {
                let names = field_names(tuple).filter(|(name, _)| same_class(name, class));
                let Some(fields) = fields else { return each(tuple.items(), leaves) };
                let Some((_, names)) = names else { return Err(differs()) };
                if names.len() != fields.len() + none.len() {
                    return Err(differs());
                }
                let field = |name: &String| {
                    let at = names.iter().position(|n| n.as_str() == name)?;
                    tuple.items().get(at)
                };
                if !none.iter().all(|name| field(name).is_some_and(IValue::is_none)) {
                    return Err(differs());
                }
                for (name, child) in fields.iter().zip(&self.children) {
                    let item = field(name).ok_or_else(differs)?;
                    child.flatten(item, &format!("{path}.{name}"), leaves)?;
                }
                Ok(())
            }
            _ => Err(differs()),
        }
    }

    /// Builds a value of this structure from its leaves; returns `None` if there are too few.
    pub fn unflatten(&self, leaves: &mut impl Iterator<Item = IValue>) -> Option<IValue> {
        if let Container::Leaf = self.kind {
            return leaves.next();
        }
        // The recursion is bounded by `MAX_DEPTH`.
        let items: Option<Vec<IValue>> = self.children.iter().map(|child| child.unflatten(leaves)).collect();
        let items = items?;
        Some(match &self.kind {
            Container::Leaf | Container::Tuple | Container::Size => IValue::tuple(items),
            Container::List | Container::Deque => IValue::list(common_type(items.iter()), items),
            Container::Dict { keys, .. } => {
                let keys: Vec<IValue> = keys.iter().map(Key::value).collect();
                let (key, value) = (common_type(keys.iter()), common_type(items.iter()));
                let mut map = DictMap::default();
                for (key, item) in keys.into_iter().zip(items) {
                    // Keys are strings, integers and bools, which have hashes.
                    map.insert(key, item).ok()?;
                }
                IValue::Dict(Dict::from_map(key, value, map))
            }
            Container::Named { class, fields, none } => {
                let fields = fields.as_deref().unwrap_or_default();
                let all = fields.iter().zip(items.iter().map(IValue::type_of));
                let all = all.chain(none.iter().map(|name| (name, Type::NONE)));
                let all: Vec<(NamedField, Type)> = all
                    .map(|(name, ty)| (NamedField { name: Symbol::new(name), default: None }, ty))
                    .collect();
                if all.is_empty() {
                    return Some(IValue::tuple(items));
                }
                let values = items.into_iter().chain(none.iter().map(|_| IValue::None));
                IValue::Tuple(Tuple::named(Type::named_tuple(Symbol::new(class), &all), values))
            }
        })
    }
}

fn of_value(value: &IValue, depth: usize, leaves: &mut Vec<IValue>) -> Result<TreeSpec, ExportError> {
    if depth > MAX_DEPTH {
        return Err(ExportError::new(
            ExportCode::Limit,
            format!("containers are nested more than {MAX_DEPTH} deep"),
        ));
    }
    let mut each = |items: &[IValue]| -> Result<Vec<TreeSpec>, ExportError> {
        items.iter().map(|item| of_value(item, depth + 1, leaves)).collect()
    };
    Ok(match value {
        IValue::Tuple(tuple) => TreeSpec::container(Container::Tuple, each(tuple.items())?),
        IValue::List(list) => TreeSpec::container(Container::List, each(&list.to_vec())?),
        IValue::Dict(dict) => {
            let key = |key: &IValue| match key {
                IValue::Str(text) => Ok(Key::Str(text.to_text().into_owned())),
                IValue::Int(n) => Ok(Key::Int(*n)),
                IValue::Bool(b) => Ok(Key::Bool(*b)),
                _ => Err(broken("the key of a dict is not a string, an integer or a bool")),
            };
            let (keys, items): (Vec<IValue>, Vec<IValue>) = dict.to_vec().into_iter().unzip();
            let keys = keys.iter().map(key).collect::<Result<_, _>>()?;
            TreeSpec::container(Container::Dict { class: "dict", keys }, each(&items)?)
        }
        leaf => {
            leaves.push(leaf.clone());
            TreeSpec { kind: Container::Leaf, children: Vec::new(), leaves: 1 }
        }
    })
}

fn key_text(key: &Key) -> String {
    match key {
        Key::Str(text) => json_text(text),
        Key::Int(n) => n.to_string(),
        Key::Bool(b) => b.to_string(),
    }
}

fn json_text(text: &str) -> String {
    let mut out = String::new();
    crate::write::json_string(&mut out, text);
    out
}

/// Returns whether a qualified name denotes the registered class: types of the embedding program may have the last part
/// of the name only.
fn same_class(given: &str, registered: &str) -> bool {
    given == registered || registered.rsplit('.').next() == Some(given) || given.is_empty()
}

/// Returns class and field names of a named tuple.
fn field_names(tuple: &Tuple) -> Option<(&'static str, Vec<Symbol>)> {
    let ty = tuple.named_type()?;
    let named = ty.as_tuple()?.named.as_ref()?;
    Some((named.name.as_str(), named.fields.iter().map(|f| f.name).collect()))
}

fn found(value: &IValue) -> String {
    match value {
        IValue::Tuple(tuple) => match field_names(tuple) {
            Some((name, _)) => format!("a {}", quoted(name)),
            None => format!("a tuple of {} elements", tuple.items().len()),
        },
        IValue::List(list) => format!("a list of {} elements", list.len()),
        IValue::Dict(dict) => {
            let keys: Vec<String> = dict.read().iter().map(|(key, _)| format!("{key:?}")).take(20).collect();
            format!("a dict with the keys {}", keys.join(", "))
        }
        other => format!("a {}", other.type_of()),
    }
}

/// Returns the common type of values: `Any` if they differ.
fn common_type<'v>(mut values: impl Iterator<Item = &'v IValue>) -> Type {
    let Some(first) = values.next().map(IValue::type_of) else { return Type::TENSOR };
    if values.all(|v| v.type_of() == first) { first } else { Type::ANY }
}

fn broken(message: impl Into<String>) -> ExportError {
    ExportError::new(ExportCode::TreeSpec, message)
}

/// The fields of a spec as they are read.
#[derive(Default)]
struct Parts {
    class: Option<String>,
    context: Option<String>,
    /// The class of the dictionary that a context object describes.
    children: Vec<TreeSpec>,
}

fn spec(json: &mut JsonReader<'_>, names: &Map<Vec<String>>) -> Res<TreeSpec> {
    let mut parts = Parts::default();
    json.object(|json, field| {
        match field {
            "type" => parts.class = json.optional(|json| Ok(json.string()?.into_owned()))?,
            "context" => {
                parts.context = match json.kind()? {
                    JsonKind::Null => json.optional(|json| Ok(json.string()?.into_owned()))?,
                    JsonKind::String => Some(json.string()?.into_owned()),
                    // The context of a `defaultdict` is an object.
                    _ => Some(json.skip()?.to_owned()),
                }
            }
            "children_spec" => parts.children = json.array(|json| spec(json, names))?,
            _ => drop(json.skip()?),
        }
        Ok(())
    })?;
    let Parts { class, context, children } = parts;
    let kind = match class {
        None => Container::Leaf,
        Some(class) => container(class, context.as_deref().unwrap_or("null"), children.len(), names)?,
    };
    let leaves = match kind {
        Container::Leaf if !children.is_empty() => return Err(broken("a leaf has elements")),
        Container::Leaf => 1,
        _ => children.iter().map(|c| c.leaves).sum(),
    };
    Ok(TreeSpec { kind, children, leaves })
}

fn container(class: String, context: &str, count: usize, names: &Map<Vec<String>>) -> Res<Container> {
    let dict = |class: &'static str, context: &str| {
        let keys = keys(context)?;
        let is_repeated = keys.iter().enumerate().any(|(i, key)| keys[..i].contains(key));
        if keys.len() != count || is_repeated {
            return Err(broken(format!("a dict has {} keys for {count} values", keys.len())));
        }
        Ok(Container::Dict { class, keys })
    };
    Ok(match class.as_str() {
        "builtins.tuple" => Container::Tuple,
        "torch.Size" => Container::Size,
        "builtins.list" => Container::List,
        "collections.deque" => Container::Deque,
        "builtins.dict" => dict("dict", context)?,
        "collections.OrderedDict" => dict("OrderedDict", context)?,
        "collections.defaultdict" => dict("defaultdict", &dict_context(context)?)?,
        "collections.namedtuple" => {
            let fields = names.get(context).cloned();
            if fields.as_ref().is_some_and(|fields| fields.len() != count) {
                return Err(broken(format!("the fields of {} do not match its elements", quoted(context))));
            }
            Container::Named { class: context.to_owned(), fields, none: Vec::new() }
        }
        name if name.starts_with("torch.return_types.") => {
            Container::Named { class, fields: None, none: Vec::new() }
        }
        // Any other registered class that states its fields is a dataclass.
        _ => {
            let unknown = |_| broken(format!("containers of class {} are not supported", quoted(&class)));
            let (fields, none) = dataclass_fields(context).map_err(unknown)?;
            if fields.len() != count {
                return Err(broken(format!("the fields of {} do not match its elements", quoted(&class))));
            }
            Container::Named { class, fields: Some(fields), none }
        }
    })
}

/// Reads the keys of a dictionary: `["b", 2]`.
fn keys(context: &str) -> Res<Vec<Key>> {
    let mut json = JsonReader::new(context, 2);
    let keys = json.array(|json| {
        Ok(match json.kind()? {
            JsonKind::String => Key::Str(json.string()?.into_owned()),
            JsonKind::Number => Key::Int(json.int()?),
            JsonKind::Bool => Key::Bool(json.bool()?),
            _ => return Err(broken("the key of a dict is not a string, an integer or a bool")),
        })
    })?;
    json.end()?;
    Ok(keys)
}

/// Returns the context of the dictionary within that of a `defaultdict`.
fn dict_context(context: &str) -> Res<String> {
    let mut inner = None;
    let mut json = JsonReader::new(context, 4);
    json.object(|json, field| {
        match field {
            "dict_context" if json.kind()? == JsonKind::String => inner = Some(json.string()?.into_owned()),
            "dict_context" => inner = Some(json.skip()?.to_owned()),
            _ => drop(json.skip()?),
        }
        Ok(())
    })?;
    inner.ok_or_else(|| broken("a defaultdict has no context of its keys"))
}

/// Reads the fields of a dataclass: those with values, and those that are `None`.
fn dataclass_fields(context: &str) -> Res<(Vec<String>, Vec<String>)> {
    let mut json = JsonReader::new(context, 3);
    let lists = json.array(|json| json.array(|json| Ok(json.string()?.into_owned())))?;
    json.end()?;
    let two: [Vec<String>; 2] = lists.try_into().map_err(|_| broken("expected two lists of fields"))?;
    let [fields, none] = two;
    Ok((fields, none))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAF: &str = r#"{"type": null, "context": null, "children_spec": []}"#;

    fn of(class: &str, context: &str, children: &[&str]) -> String {
        let context = context.replace('"', "\\\"");
        format!(
            r#"{{"type": "{class}", "context": "{context}", "children_spec": [{}]}}"#,
            children.join(", ")
        )
    }

    fn parse(spec: &str) -> Result<TreeSpec, ExportError> {
        let mut names = Map::default();
        names.insert("m.Pair".to_owned(), vec!["first".to_owned(), "second".to_owned()]);
        TreeSpec::parse(&format!("[1, {spec}]"), &names)
    }

    fn named(class: &str, fields: &[(&str, IValue)]) -> IValue {
        let types: Vec<(NamedField, Type)> = fields
            .iter()
            .map(|(name, v)| (NamedField { name: Symbol::new(name), default: None }, v.type_of()))
            .collect();
        let items = fields.iter().map(|(_, v)| v.clone());
        IValue::Tuple(Tuple::named(Type::named_tuple(Symbol::new(class), &types), items))
    }

    fn flat(spec: &TreeSpec, value: &IValue) -> Result<Vec<Option<i64>>, String> {
        let mut leaves = Vec::new();
        spec.flatten(value, "*args", &mut leaves).map_err(|e| e.to_string())?;
        Ok(leaves.iter().map(IValue::as_int).collect())
    }

    #[test]
    fn sizes_of_a_tensor_are_a_tuple() {
        let spec = parse(&of("torch.Size", "null", &[LEAF, LEAF])).unwrap();
        let sizes = IValue::tuple(vec![IValue::Int(2), IValue::Int(1)]);
        assert_eq!(flat(&spec, &sizes), Ok(vec![Some(2), Some(1)]));
        assert_eq!(spec.as_tuple().map(<[TreeSpec]>::len), Some(2));
        let mut leaves = [IValue::Int(2), IValue::Int(1)].into_iter();
        let made = spec.unflatten(&mut leaves).unwrap();
        assert!(matches!(&made, IValue::Tuple(tuple) if tuple.items().len() == 2));
        let text = spec.text().unwrap();
        assert!(text.contains("torch.Size"), "{text}");
    }

    #[test]
    fn containers_flatten_and_unflatten() {
        let list = of("builtins.list", "null", &[LEAF, LEAF]);
        let dict = of("builtins.dict", r#"["b", 1]"#, &[LEAF, &list]);
        let pair = of("collections.namedtuple", "m.Pair", &[LEAF, LEAF]);
        let point = of("m.Point", r#"[["x", "y"], ["extra"]]"#, &[LEAF, LEAF]);
        let spec = parse(&of("builtins.tuple", "null", &[&dict, &pair, &point, LEAF])).unwrap();
        assert_eq!(spec.leaves(), 8);
        let int = IValue::Int;
        let mut map = DictMap::default();
        map.insert(int(1), IValue::ints(vec![2, 3])).unwrap();
        map.insert(IValue::str("b"), int(1)).unwrap();
        let value = IValue::tuple(vec![
            IValue::Dict(Dict::from_map(Type::ANY, Type::ANY, map)),
            named("m.Pair", &[("first", int(4)), ("second", int(5))]),
            named("m.Point", &[("x", int(6)), ("extra", IValue::None), ("y", int(7))]),
            IValue::None,
        ]);
        let leaves = flat(&spec, &value).unwrap();
        assert_eq!(leaves, [Some(1), Some(2), Some(3), Some(4), Some(5), Some(6), Some(7), None]);
        let mut items = leaves.iter().map(|leaf| leaf.map_or(IValue::None, IValue::Int));
        let back = spec.unflatten(&mut items).unwrap();
        assert_eq!(flat(&spec, &back).unwrap(), leaves);
        assert!(spec.unflatten(&mut std::iter::empty()).is_none());
    }

    #[test]
    fn a_mismatch_names_its_path() {
        let list = of("builtins.list", "null", &[LEAF, LEAF]);
        let spec = parse(&of("builtins.tuple", "null", &[LEAF, &list])).unwrap();
        let int = IValue::Int;
        let case = |value: IValue, message: &str| assert_eq!(flat(&spec, &value).unwrap_err(), message);
        case(
            IValue::tuple(vec![int(1), IValue::ints(vec![1])]),
            "expected input at *args[1] to be a list of 2 elements, but got a list of 1 elements",
        );
        case(
            IValue::tuple(vec![IValue::ints(vec![1]), IValue::ints(vec![1, 2])]),
            "expected input at *args[0] to be a tensor, a number or another leaf, but got a list of 1 elements",
        );
        case(int(1), "expected input at *args to be a tuple of 2 elements, but got a int");
    }

    #[test]
    fn malformed_specs_are_refused() {
        let deep = format!(
            "{}{LEAF}{}",
            r#"{"type": "builtins.list", "context": "null", "children_spec": ["#.repeat(90),
            "]}".repeat(90)
        );
        for (spec, code) in [
            (r#"{"type": 3}"#.to_owned(), ExportCode::Field),
            (of("builtins.dict", r#"["a"]"#, &[]), ExportCode::TreeSpec),
            (of("builtins.dict", r#"["a", "a"]"#, &[LEAF, LEAF]), ExportCode::TreeSpec),
            (of("collections.namedtuple", "m.Pair", &[LEAF]), ExportCode::TreeSpec),
            (of("os.system", "null", &[]), ExportCode::TreeSpec),
            ("{".to_owned(), ExportCode::Json),
            (deep, ExportCode::Limit),
        ] {
            assert_eq!(parse(&spec).unwrap_err().code(), code, "{spec}");
        }
        assert_eq!(TreeSpec::parse("[2, {}]", &Map::default()).unwrap_err().code(), ExportCode::TreeSpec);
    }
}

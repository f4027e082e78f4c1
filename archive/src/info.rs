//! What is in an archive, without loading it.
//!
//! Nothing here compiles code or reads a storage, so it works for archives that cannot be loaded, and costs no more
//! than the pickles and sources it lists. What the archive says is repeated, not checked: a tensor may be listed whose
//! record is too short.

use std::collections::{BTreeMap, BTreeSet};

use crate::code::{ClassDecl, Sources};
use crate::open::Archive;
use crate::pickle::{CallId, Global, Pickle, Value, ValueId};
use crate::tensors::TensorDescription;
use crate::zip::Method;
use crate::{ArchiveError, ByteOrder};

/// A summary of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchiveInfo {
    /// The folder its records lie in.
    pub name: String,
    /// The format version.
    pub version: u64,
    /// The byte order of the storages.
    pub byte_order: ByteOrder,
    /// All records, in the order of the directory.
    pub records: Vec<RecordInfo>,
    /// The class of the module, if the archive holds an object.
    pub root: Option<String>,
    /// Classes with objects in the archive, in order of first mention, with the number of their objects.
    pub classes: Vec<(String, usize)>,
    /// Tensors of the objects and of the table of constants, in the order of the pickles.
    pub tensors: Vec<TensorInfo>,
}

/// A record of the container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordInfo {
    /// The name without top folder.
    pub name: String,
    /// Bytes once inflated.
    pub size: u64,
    /// Bytes in the file.
    pub packed: u64,
    /// Stored or deflated.
    pub method: Method,
}

/// What a tensor is to the object that holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A parameter of a module.
    Parameter,
    /// A buffer of a module.
    Buffer,
    /// Another attribute, or a part of one.
    Attribute,
    /// An entry of the table of constants.
    Constant,
}

/// A tensor, by the path that leads to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorInfo {
    /// Such as `layer.0.weight`; `CONSTANTS.c3` for constants.
    pub path: String,
    /// What it is to its owner.
    pub role: Role,
    /// What the pickle says about it, or that it is of an unsupported kind.
    pub description: Result<TensorDescription, ArchiveError>,
}

/// Lists what is in an archive.
///
/// # Errors
/// Where the pickles cannot be read. Code that cannot be parsed only means that its tensors are called attributes.
pub fn info(archive: &Archive<'_>) -> Result<ArchiveInfo, ArchiveError> {
    let records = archive
        .zip()
        .records()
        .iter()
        .map(|r| RecordInfo {
            name: r.name().to_owned(),
            size: r.size(),
            packed: r.data_range().len() as u64,
            method: r.method(),
        })
        .collect();
    let mut walk = Walk::new(archive);
    let data = archive.pickle("data.pkl")?;
    walk.objects(&data, None);
    if archive.zip().find("constants.pkl").is_some() {
        let constants = archive.pickle("constants.pkl")?;
        walk.objects(&constants, Some(Role::Constant));
    }
    let mut classes: Vec<(String, usize)> = Vec::new();
    let mut position = BTreeMap::new();
    for object in data.objects() {
        let Global::Class(name) = data.global(object.class) else { continue };
        let at = *position.entry(object.class).or_insert_with(|| {
            classes.push((name.clone(), 0));
            classes.len() - 1
        });
        classes[at].1 += 1;
    }
    let root = match data.get(data.root()) {
        Value::Object(id) => match data.global(data.object(id).class) {
            Global::Class(name) => Some(name.clone()),
            _ => None,
        },
        _ => None,
    };
    Ok(ArchiveInfo {
        name: archive.zip().top_folder().to_owned(),
        version: archive.version(),
        byte_order: archive.byte_order(),
        records,
        root,
        classes,
        tensors: walk.found,
    })
}

/// Parameters and buffers by class, asked for once.
type Roles = BTreeMap<String, (BTreeSet<String>, BTreeSet<String>)>;

struct Walk<'a> {
    archive: &'a Archive<'a>,
    sources: Sources<'a>,
    roles: Roles,
    found: Vec<TensorInfo>,
}

/// A value on the way, with the link to what holds it: paths are put together only for tensors.
struct Step {
    parent: Option<usize>,
    label: Label,
}

enum Label {
    Name(ValueId),
    Index(usize),
}

impl<'a> Walk<'a> {
    fn new(archive: &'a Archive<'a>) -> Self {
        let sources = Sources::new(archive.zip(), archive.limits(), flambeau_frontend::Limits::default());
        Walk { archive, sources, roles: Roles::new(), found: Vec::new() }
    }

    /// Visits every value once, parents before children and children in order.
    fn objects(&mut self, pickle: &Pickle, role: Option<Role>) {
        let mut steps: Vec<Step> = Vec::new();
        let mut seen = vec![false; pickle.len()];
        let mut stack = vec![(pickle.root(), None, role.unwrap_or(Role::Attribute))];
        while let Some((id, at, role)) = stack.pop() {
            if std::mem::replace(&mut seen[id.index()], true) {
                continue;
            }
            let from = stack.len();
            let mut child = |id, label, role| {
                steps.push(Step { parent: at, label });
                stack.push((id, Some(steps.len() - 1), role));
            };
            match pickle.get(id) {
                Value::Tuple(span) => {
                    pickle.tuple(span).iter().enumerate().for_each(|(n, &v)| child(v, Label::Index(n), role));
                }
                Value::List(list) => {
                    pickle.list(list).iter().enumerate().for_each(|(n, &v)| child(v, Label::Index(n), role));
                }
                Value::Dict(dict) => {
                    pickle.dict(dict).iter().for_each(|&(k, v)| child(v, Label::Name(k), role));
                }
                Value::Object(object) => {
                    let object = pickle.object(object);
                    let Some(Value::Dict(state)) = object.state.map(|s| pickle.get(s)) else { continue };
                    let roles = match pickle.global(object.class) {
                        Global::Class(name) => self.roles_of(name),
                        _ => Default::default(),
                    };
                    for &(k, v) in pickle.dict(state) {
                        let name = pickle.as_text(k).unwrap_or_default();
                        let role = match () {
                            () if roles.0.contains(name) => Role::Parameter,
                            () if roles.1.contains(name) => Role::Buffer,
                            () => Role::Attribute,
                        };
                        child(v, Label::Name(k), role);
                    }
                }
                Value::Call(call) if is_tensor(pickle, call) => {
                    let path = path(pickle, &steps, at, role);
                    let description = TensorDescription::of(pickle, call, self.archive.limits());
                    self.found.push(TensorInfo { path, role, description });
                }
                Value::Call(call) => {
                    let args = pickle.as_tuple(pickle.call(call).args).unwrap_or_default();
                    // The first argument of a typed list is the list; the second its type.
                    if let Some(&inner) = args.first() {
                        stack.push((inner, at, role));
                    }
                }
                _ => {}
            }
            stack[from..].reverse();
        }
    }

    fn roles_of(&mut self, class: &str) -> (BTreeSet<String>, BTreeSet<String>) {
        if let Some(known) = self.roles.get(class) {
            return known.clone();
        }
        let decl =
            self.sources.find(class).ok().flatten().and_then(|(file, id)| ClassDecl::of(file.ast(), id).ok());
        let roles = decl.map_or_else(Default::default, |d| {
            (d.parameters.into_iter().collect(), d.buffers.into_iter().collect())
        });
        self.roles.insert(class.to_owned(), roles);
        self.roles[class].clone()
    }
}

fn is_tensor(pickle: &Pickle, call: CallId) -> bool {
    let function = pickle.global(pickle.call(call).function);
    matches!(function, Global::RebuildTensor | Global::RebuildParameter | Global::RebuildOther(_))
}

/// The path of a step; beyond a hundred links only its end.
fn path(pickle: &Pickle, steps: &[Step], mut at: Option<usize>, role: Role) -> String {
    const SHOWN: usize = 100;
    let mut parts = Vec::new();
    while let Some(step) = at.map(|i| &steps[i]) {
        parts.push(match step.label {
            Label::Name(key) => match pickle.get(key) {
                Value::Text(span) => pickle.text(span).to_owned(),
                Value::Int(i) => i.to_string(),
                other => other.kind().to_owned(),
            },
            Label::Index(n) if role == Role::Constant && step.parent.is_none() => format!("CONSTANTS.c{n}"),
            Label::Index(n) => n.to_string(),
        });
        at = step.parent;
        if parts.len() == SHOWN {
            parts.push("…".into());
            break;
        }
    }
    parts.reverse();
    parts.join(".")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Limits;

    fn of(bytes: &[u8]) -> ArchiveInfo {
        info(&Archive::open(bytes, &Limits::default()).expect("an archive")).expect("pickles")
    }

    #[test]
    fn a_nested_module() {
        let info = of(include_bytes!("../tests/data/nested.pt"));
        assert_eq!(info.root.as_deref(), Some("__torch__.Nested"));
        assert_eq!(info.name, "nested");
        let tensors: Vec<_> = info.tensors.iter().map(|t| (t.path.as_str(), t.role)).collect();
        assert_eq!(
            tensors,
            [("count", Role::Buffer), ("a.lin.weight", Role::Parameter), ("b.lin.weight", Role::Parameter)]
        );
        let weight = info.tensors[1].description.as_ref().expect("a tensor");
        assert_eq!(
            (&weight.sizes[..], weight.dtype.name(), weight.requires_grad),
            (&[2, 2][..], "float32", true)
        );
        let blocks: Vec<_> = info.classes.iter().map(|(name, n)| (name.as_str(), *n)).collect();
        assert_eq!(blocks[..2], [("__torch__.Nested", 1), ("__torch__.Block", 3)]);
    }

    #[test]
    fn constants_and_containers() {
        let constants = of(include_bytes!("../tests/data/constants.pt"));
        assert_eq!(constants.tensors[0].path, "CONSTANTS.c0");
        assert_eq!(constants.tensors[0].role, Role::Constant);
        let containers = of(include_bytes!("../tests/data/containers.pt"));
        let paths: Vec<_> = containers.tensors.iter().map(|t| t.path.as_str()).collect();
        assert_eq!(paths, ["tensors.0", "tensors.1", "by_int.3"]);
    }
}

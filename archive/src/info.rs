//! Lists the content of an archive without loading it.
//!
//! This file compiles no code and reads no storages, so it works for archives that cannot be loaded and costs only the
//! parsing of pickles and sources. Declarations are reported without checking them: a listed tensor may have a record
//! that is too short.

use std::collections::{BTreeMap, BTreeSet};

use crate::code::{ClassDecl, Sources};
use crate::open::Archive;
use crate::paths::{TensorPath, tensors};
use crate::pickle::{Global, Pickle, Value};
use crate::tensors::TensorDescription;
use crate::zip::Method;
use crate::{ArchiveError, ByteOrder};

/// Summary of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchiveInfo {
    /// The name of the archive: its top folder.
    pub name: String,
    /// The format version.
    pub version: u64,
    /// The byte order of the storages.
    pub byte_order: ByteOrder,
    /// All records, in the order of the central directory.
    pub records: Vec<RecordInfo>,
    /// The class of the root, if the archive contains an object.
    pub root: Option<String>,
    /// Classes of the objects in the archive, in order of first use, each with the number of its objects.
    pub classes: Vec<(String, usize)>,
    /// Tensors of the objects and of the table of constants, in pickle order.
    pub tensors: Vec<TensorInfo>,
}

/// A record of the container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordInfo {
    /// The name without the top folder.
    pub name: String,
    /// Inflated size in bytes.
    pub size: u64,
    /// Size in the file, in bytes.
    pub packed: u64,
    /// Storage method.
    pub method: Method,
}

/// The role of a tensor in the object that holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TensorRole {
    /// A parameter of a module.
    Parameter,
    /// A buffer of a module.
    Buffer,
    /// Another attribute, or a part of one.
    Attribute,
    /// An entry of the table of constants.
    Constant,
}

/// A tensor with its path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorInfo {
    /// The path, such as `layer.0.weight`; `CONSTANTS.c3` for constants.
    pub path: String,
    /// The role in the object that holds it.
    pub role: TensorRole,
    /// The description in the pickle, or the error if the tensor is malformed or of an unsupported kind.
    pub description: Result<TensorDescription, ArchiveError>,
}

/// Lists the content of an archive.
///
/// # Errors
///
/// Returns the errors of reading the pickles. If code cannot be parsed, the tensors of its classes have the role
/// [`TensorRole::Attribute`].
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
    walk.objects(&data, TensorRole::Attribute);
    if archive.zip().find("constants.pkl").is_some() {
        let constants = archive.pickle("constants.pkl")?;
        walk.objects(&constants, TensorRole::Constant);
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

/// Cache of the roles of attributes, by class and attribute.
type Roles = BTreeMap<String, BTreeMap<String, TensorRole>>;

struct Walk<'a> {
    archive: &'a Archive<'a>,
    sources: Sources<'a>,
    roles: Roles,
    found: Vec<TensorInfo>,
}

impl<'a> Walk<'a> {
    fn new(archive: &'a Archive<'a>) -> Self {
        let sources =
            Sources::new(archive.zip(), archive.limits(), flambeau_frontend::FrontendLimits::default());
        Walk { archive, sources, roles: Roles::new(), found: Vec::new() }
    }

    /// Lists the tensors of a pickle, each once.
    fn objects(&mut self, pickle: &Pickle, root: TensorRole) {
        let found = tensors(pickle, root, |class, name| self.role_of(class, name));
        let mut seen = BTreeSet::new();
        for TensorPath { call, path, role } in found {
            if seen.insert(call) {
                let path = if root == TensorRole::Constant { format!("CONSTANTS.c{path}") } else { path };
                let description = TensorDescription::of(pickle, call, self.archive.limits());
                self.found.push(TensorInfo { path, role, description });
            }
        }
    }

    fn role_of(&mut self, class: &str, name: &str) -> TensorRole {
        if !self.roles.contains_key(class) {
            let found = self.sources.find(class).ok().flatten();
            let decl = found.and_then(|(file, id)| ClassDecl::of(file.ast(), id).ok());
            let mut roles = BTreeMap::new();
            if let Some(d) = decl {
                roles.extend(d.buffers.into_iter().map(|name| (name, TensorRole::Buffer)));
                roles.extend(d.parameters.into_iter().map(|name| (name, TensorRole::Parameter)));
            }
            self.roles.insert(class.to_owned(), roles);
        }
        self.roles[class].get(name).copied().unwrap_or(TensorRole::Attribute)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ArchiveLimits;

    fn of(bytes: &[u8]) -> ArchiveInfo {
        info(&Archive::open(bytes, &ArchiveLimits::default()).expect("an archive")).expect("pickles")
    }

    #[test]
    fn a_nested_module() {
        let info = of(include_bytes!("../tests/data/nested.pt"));
        assert_eq!(info.root.as_deref(), Some("__torch__.Nested"));
        assert_eq!(info.name, "nested");
        let tensors: Vec<_> = info.tensors.iter().map(|t| (t.path.as_str(), t.role)).collect();
        assert_eq!(
            tensors,
            [
                ("count", TensorRole::Buffer),
                ("a.lin.weight", TensorRole::Parameter),
                ("b.lin.weight", TensorRole::Parameter)
            ]
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
        assert_eq!(constants.tensors[0].role, TensorRole::Constant);
        let containers = of(include_bytes!("../tests/data/containers.pt"));
        let paths: Vec<_> = containers.tensors.iter().map(|t| t.path.as_str()).collect();
        assert_eq!(paths, ["tensors.0", "tensors.1", "by_int.3"]);
    }
}

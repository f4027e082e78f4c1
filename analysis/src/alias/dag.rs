//! The memory graph: elements, points-to edges and contents edges.
//!
//! An [`MemoryElement`] represents a value, the contents of a container, or memory outside the graph (a *wildcard*). `a`
//! points to `b`: the value `a` may be the value `b`. An element with its own location represents memory allocated with
//! it. A container has one contents element, created at first use. Contents follow points-to edges: if `a` points to
//! `b`, the contents of `a` point to the contents of `b`, whichever is added first. So constraints may be added in any
//! order, and loops may make cycles.
//!
//! There is one wildcard per tensor type, list type, dictionary type and class, and above them one per kind of mutable
//! object. The wildcard of a type with several kinds points to all of them. An element that escapes is merged with the
//! wildcard of its type. Tensors that existed outside before the run have a wildcard of their own, which the tensor
//! wildcard points to: no tensor created during the run can be one of them.

use super::locations::{Flags, Locations};
use flambeau_ir::types::{Mutability, TypeKind};
use flambeau_ir::{Type, ValueId};
use hashbrown::HashMap;
use id_arena::{Arena, ArenaBehavior};
use rustc_hash::FxBuildHasher;
use smallvec::SmallVec;

/// An element of the memory graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ElementId(pub(crate) u32);

/// Four-byte ids, since there may be one element per value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SmallIds;

impl ArenaBehavior for SmallIds {
    type Id = ElementId;

    fn new_id(_: u32, index: usize) -> ElementId {
        ElementId(u32::try_from(index).expect("invariant: fewer elements than values of a graph"))
    }

    fn index(id: ElementId) -> usize {
        id.0 as usize
    }

    fn arena_id(_: ElementId) -> u32 {
        0
    }

    fn new_arena_id() -> u32 {
        0
    }
}

pub(crate) const NONE: u32 = u32::MAX;

/// The subject of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ElementSubject {
    /// A value of the graph.
    Value(ValueId),
    /// The contents of another element.
    Contents(ElementId),
    /// Memory outside the graph, by type.
    Wildcard,
    /// An auxiliary element created during constraint generation.
    Helper,
}

#[derive(Clone, Debug)]
pub(crate) struct MemoryElement {
    pub(crate) of: ElementSubject,
    pub(crate) ty: Type,
    /// The location of the element's own memory, or `NONE`.
    pub(crate) location: u32,
    /// The element of the contents, or `NONE` before the first use.
    pub(crate) contents: u32,
    first_edge: u32,
    /// Whether the contents are only those added explicitly.
    exact: bool,
    escaped: bool,
    opened: bool,
}

#[derive(Clone, Copy, Debug)]
struct Edge {
    to: ElementId,
    next: u32,
}

/// The memory graph. See the [module](self).
#[derive(Clone)]
pub(crate) struct MemoryDag {
    pub(crate) elements: Arena<MemoryElement, SmallIds>,
    edges: Vec<Edge>,
    pub(crate) locations: Locations,
    wildcards: HashMap<Type, ElementId, FxBuildHasher>,
    /// Wildcards in order of creation.
    pub(crate) wildcard_list: Vec<ElementId>,
    all: ElementId,
    kinds: [ElementId; 5],
    /// The wildcard of tensors that existed before the run.
    input_wildcard: ElementId,
    /// Whether some element points to a younger one, so that order of creation is not a topological order.
    pub(crate) late: bool,
    pub(crate) has_contents: bool,
    escaping: Vec<ElementId>,
    opening: Vec<ElementId>,
    /// Groups of elements that share memory: whatever one element of a group may be, all others may be too. See
    /// [`MemoryDag::unify`].
    unified: Vec<SmallVec<[ElementId; 2]>>,
}

const KINDS: [Mutability; 5] =
    [Mutability::TENSOR, Mutability::LIST, Mutability::DICT, Mutability::OBJECT, Mutability::HOST];

/// The types of the direct members of a value of this type.
fn contained(ty: Type) -> SmallVec<[Type; 4]> {
    match ty.kind() {
        TypeKind::List(_) | TypeKind::Dict(..) | TypeKind::Tuple(_) => ty.kind().contained(),
        TypeKind::Optional(_)
        | TypeKind::Union(_)
        | TypeKind::Future(_)
        | TypeKind::Await(_)
        | TypeKind::RRef(_) => ty.kind().contained().into_iter().flat_map(contained).collect(),
        _ if ty.mutability() == Mutability::TENSOR || !ty.is_mutable() => SmallVec::new(),
        _ => SmallVec::from_slice(&[Type::ANY]),
    }
}

/// The type of the contents of a value: `None` if all members are immutable, `Any` if several types are possible.
pub(crate) fn contents_type(ty: Type) -> Option<Type> {
    if ty.is_tensor() {
        return None;
    }
    let mut found = None;
    for inner in contained(ty) {
        let inner = inner.erase_shapes();
        if !inner.is_mutable() {
            continue;
        }
        match found {
            None => found = Some(inner),
            Some(other) if other == inner => {}
            Some(_) => return Some(Type::ANY),
        }
    }
    found
}

/// Whether a value of this type is one object of one mutable kind, so that a new value owns one location.
pub(crate) fn owns_location(ty: Type) -> bool {
    let ty = ty.unwrap_optional();
    ty.is_tensor() || matches!(ty.kind(), TypeKind::List(_) | TypeKind::Dict(..) | TypeKind::Class(_))
}

/// Whether a new value of this type is just a location, without contents that can be aliased.
pub(crate) fn is_location_without_contents(ty: Type) -> bool {
    ty.is_tensor() || (owns_location(ty) && contents_type(ty).is_none())
}

impl MemoryDag {
    pub(crate) fn new() -> Self {
        let mut dag = MemoryDag {
            elements: Arena::new(),
            edges: Vec::new(),
            locations: Locations::default(),
            wildcards: HashMap::default(),
            wildcard_list: Vec::new(),
            all: ElementId(0),
            kinds: [ElementId(0); 5],
            input_wildcard: ElementId(0),
            late: false,
            has_contents: false,
            escaping: Vec::new(),
            opening: Vec::new(),
            unified: Vec::new(),
        };
        dag.all = dag.add(ElementSubject::Wildcard, Type::ANY, false);
        let types = [Type::TENSOR, Type::ANY_LIST, Type::ANY, Type::ANY_CLASS, Type::PY_OBJECT];
        for (i, ty) in types.into_iter().enumerate() {
            // Tensors, and objects and host objects of unknown type, own a location; lists and dictionaries have
            // wildcards per type below their kind.
            let kind = dag.add(ElementSubject::Wildcard, ty, matches!(i, 0 | 3 | 4));
            dag.kinds[i] = kind;
            dag.edge(dag.all, kind);
            if i != 0 {
                dag.elements[kind].contents = dag.all.0;
            }
        }
        dag.elements[dag.all].contents = dag.all.0;
        dag.input_wildcard = dag.add(ElementSubject::Wildcard, Type::TENSOR, true);
        dag.locations.mark(dag.elements[dag.input_wildcard].location, Flags::EXTERNAL_TENSOR);
        dag.edge(dag.kinds[0], dag.input_wildcard);
        dag
    }

    /// Adds an element.
    pub(crate) fn add(&mut self, of: ElementSubject, ty: Type, owns: bool) -> ElementId {
        let location = if owns { self.locations.add(Flags::NONE) } else { NONE };
        let e = self.elements.alloc(MemoryElement {
            of,
            ty,
            location,
            contents: NONE,
            first_edge: NONE,
            exact: false,
            escaped: false,
            opened: false,
        });
        if of == ElementSubject::Wildcard {
            self.wildcard_list.push(e);
            if location != NONE {
                let kind = if ty.is_tensor() { Flags::NONE } else { Flags::EXTERNAL_CONTAINER };
                self.locations.mark(location, Flags(Flags::WILDCARD.0 | kind.0));
            }
        }
        e
    }

    /// Adds a container with only the contents that are added explicitly.
    pub(crate) fn add_exact(&mut self, of: ElementSubject, ty: Type, owns: bool) -> ElementId {
        let e = self.add(of, ty, owns);
        self.elements[e].exact = true;
        e
    }

    pub(crate) fn ty(&self, e: ElementId) -> Type {
        self.elements[e].ty
    }

    /// Returns the targets of an element's points-to edges, latest first.
    pub(crate) fn points_to(&self, e: ElementId) -> impl Iterator<Item = ElementId> + '_ {
        let mut at = self.elements[e].first_edge;
        std::iter::from_fn(move || {
            let edge = self.edges.get(at as usize)?;
            at = edge.next;
            Some(edge.to)
        })
    }

    /// Returns the latest edge of an element, for [`MemoryDag::edge_at`].
    pub(crate) fn first_edge(&self, e: ElementId) -> u32 {
        self.elements[e].first_edge
    }

    /// Returns the target of an edge and the edge before it; `None` at the end.
    pub(crate) fn edge_at(&self, edge: u32) -> Option<(ElementId, u32)> {
        self.edges.get(edge as usize).map(|e| (e.to, e.next))
    }

    fn edge(&mut self, from: ElementId, to: ElementId) {
        let next = self.elements[from].first_edge;
        self.elements[from].first_edge = self.edges.len() as u32;
        self.edges.push(Edge { to, next });
    }

    /// Adds the constraint that `from` may be `to`.
    pub(crate) fn point(&mut self, from: ElementId, to: ElementId) {
        let mut todo: SmallVec<[(ElementId, ElementId); 4]> = SmallVec::new();
        let mut done: SmallVec<[(ElementId, ElementId); 4]> = SmallVec::new();
        todo.push((from, to));
        while let Some((from, to)) = todo.pop() {
            if from == to || done.contains(&(from, to)) {
                continue;
            }
            done.push((from, to));
            self.edge(from, to);
            self.late |= to > from && self.elements[to].of != ElementSubject::Wildcard;
            let inside = self.elements[from].contents;
            if inside != NONE && contents_type(self.ty(to)).is_some() {
                let contents = self.contents(to);
                todo.push((ElementId(inside), contents));
            }
        }
    }

    /// Returns the contents element. The type of `e` must have mutable contents.
    pub(crate) fn contents(&mut self, e: ElementId) -> ElementId {
        if self.elements[e].contents != NONE {
            return ElementId(self.elements[e].contents);
        }
        self.has_contents = true;
        let mut todo: SmallVec<[ElementId; 8]> = SmallVec::new();
        let first = self.make_contents(e, &mut todo);
        while let Some(container) = todo.pop() {
            let inside = ElementId(self.elements[container].contents);
            let targets: SmallVec<[ElementId; 8]> = self.points_to(container).collect();
            for target in targets {
                if contents_type(self.ty(target)).is_none() {
                    continue;
                }
                let known = self.elements[target].contents;
                let below =
                    if known == NONE { self.make_contents(target, &mut todo) } else { ElementId(known) };
                if below != inside {
                    self.edge(inside, below);
                    self.late |= below > inside && self.elements[below].of != ElementSubject::Wildcard;
                }
            }
        }
        first
    }

    fn make_contents(&mut self, e: ElementId, todo: &mut SmallVec<[ElementId; 8]>) -> ElementId {
        let MemoryElement { ty, location, exact, escaped, opened, .. } = self.elements[e];
        let inner = contents_type(ty).unwrap_or(Type::ANY);
        // The initial members of a new container are new as well, and can be read from it more than once.
        let fresh = location != NONE && !exact;
        let owns = fresh && owns_location(inner);
        let inside = self.add(ElementSubject::Contents(e), inner, owns);
        self.elements[e].contents = inside.0;
        if (fresh && !owns) || escaped || opened {
            let wildcard = self.wildcard(inner);
            self.edge(inside, wildcard);
        }
        todo.push(e);
        inside
    }

    /// Adds the constraint that a container holds an element.
    pub(crate) fn put(&mut self, container: ElementId, item: ElementId) {
        let inside = self.contents(container);
        self.point(inside, item);
    }

    /// Returns the wildcard of a type: all memory outside the graph that a value of the type may be.
    pub(crate) fn wildcard(&mut self, ty: Type) -> ElementId {
        if ty == Type::TENSOR {
            return self.kinds[0];
        }
        let ty = ty.erase_shapes().unwrap_optional();
        if ty.is_tensor() {
            return self.kinds[0];
        }
        if let Some(&known) = self.wildcards.get(&ty) {
            return known;
        }
        let own_kind = match ty.kind() {
            TypeKind::List(_) => Some(1),
            TypeKind::Dict(..) => Some(2),
            TypeKind::Class(_) => Some(3),
            _ => None,
        };
        let e = match (own_kind, ty.kind()) {
            (Some(kind), _) => {
                let e = self.add(ElementSubject::Wildcard, ty, true);
                self.edge(self.kinds[kind], e);
                e
            }
            (None, TypeKind::Interface(_) | TypeKind::AnyClass) => self.kinds[3],
            (None, TypeKind::AnyList) => self.kinds[1],
            (None, TypeKind::Any | TypeKind::AnyTuple | TypeKind::PyObject | TypeKind::Capsule) => self.all,
            _ => self.wildcard_of_parts(ty),
        };
        self.wildcards.insert(ty, e);
        if self.elements[e].contents == NONE
            && let Some(inner) = contents_type(ty)
        {
            // Recorded before the request for the wildcard's contents, which may have the same type.
            self.elements[e].contents = self.wildcard(inner).0;
        }
        e
    }

    /// Returns the wildcard of memory of a type that existed outside before the run.
    pub(crate) fn input_wildcard(&mut self, ty: Type) -> ElementId {
        if ty.unwrap_optional().is_tensor() { self.input_wildcard } else { self.wildcard(ty) }
    }

    /// Whether an element is the wildcard of tensors that existed before the run.
    pub(crate) fn is_input_wildcard(&self, e: ElementId) -> bool {
        e == self.input_wildcard
    }

    /// The wildcard of a type that may be several kinds of object (or, like a tuple, is immutable itself).
    fn wildcard_of_parts(&mut self, ty: Type) -> ElementId {
        let e = self.add(ElementSubject::Wildcard, ty, false);
        if matches!(ty.kind(), TypeKind::Tuple(_)) {
            return e;
        }
        let parts = ty.kind().contained();
        if parts.is_empty() {
            for (kind, bit) in self.kinds.into_iter().zip(KINDS) {
                if ty.mutability().intersects(bit) {
                    self.edge(e, kind);
                }
            }
        }
        for part in parts {
            if part.is_mutable() {
                let to = self.wildcard(part);
                self.edge(e, to);
            }
        }
        e
    }

    /// Returns the wildcard of all memory.
    pub(crate) fn everything(&self) -> ElementId {
        self.all
    }

    /// Marks an element and everything reachable from it as escaped.
    pub(crate) fn escape(&mut self, e: ElementId) {
        if self.elements[e].of != ElementSubject::Wildcard && !self.elements[e].escaped {
            self.escaping.push(e);
        }
    }

    /// Adds the constraint that elements share memory after a node, although none of them is another: the node gives a
    /// tensor the storage of another one (`set_`).
    ///
    /// A location represents a storage, and the node changes the storage of a tensor. The tensor is any that the
    /// element may be. After the node, all values that are this tensor have the new storage, whichever way they
    /// obtained it (branches, loops, containers, attributes). So everything that one of the elements may be or hold is
    /// merged into one location with everything that the others may be or hold. No more precise answer is sound for all
    /// of them, since the analysis has neither the identity of the tensor nor the order of writes.
    pub(crate) fn unify(&mut self, elements: impl IntoIterator<Item = ElementId>) {
        self.unified.push(elements.into_iter().collect());
    }

    /// Returns the groups recorded by [`MemoryDag::unify`].
    pub(crate) fn unified(&self) -> &[SmallVec<[ElementId; 2]>] {
        &self.unified
    }

    /// Returns a location that represents tensors outside the graph.
    pub(crate) fn input_location(&self) -> u32 {
        self.elements[self.input_wildcard].location
    }

    /// Records that a container is modified by untracked code: it may hold any wildcard memory.
    pub(crate) fn open(&mut self, e: ElementId) {
        if contents_type(self.ty(e)).is_some() && self.elements[e].of != ElementSubject::Wildcard {
            self.opening.push(e);
        }
    }

    /// Propagates the escapes and openings that [`MemoryDag::escape`] and [`MemoryDag::open`] recorded. Must be called
    /// after all constraints are added.
    pub(crate) fn propagate_escapes(&mut self) {
        let mut todo = std::mem::take(&mut self.opening);
        while let Some(e) = todo.pop() {
            let element = &mut self.elements[e];
            if element.opened || element.of == ElementSubject::Wildcard {
                continue;
            }
            element.opened = true;
            self.add_wildcard_contents(e);
            todo.extend(self.points_to(e));
        }
        let mut todo = std::mem::take(&mut self.escaping);
        while let Some(e) = todo.pop() {
            let element = &mut self.elements[e];
            if element.escaped || element.of == ElementSubject::Wildcard {
                continue;
            }
            element.escaped = true;
            let (ty, location) = (element.ty, element.location);
            if location != NONE {
                let wildcard = self.wildcard(ty);
                let theirs = self.elements[wildcard].location;
                debug_assert_ne!(theirs, NONE, "what owns a location is of one kind");
                self.locations.merge(theirs, location);
                self.add_wildcard_contents(e);
            }
            if self.elements[e].contents != NONE {
                todo.push(ElementId(self.elements[e].contents));
            }
            todo.extend(self.points_to(e));
        }
    }

    fn add_wildcard_contents(&mut self, e: ElementId) {
        if let Some(inner) = contents_type(self.ty(e)) {
            let inside = self.contents(e);
            let wildcard = self.wildcard(inner);
            self.point(inside, wildcard);
        }
    }
}

/// Whether an element is a wildcard.
pub(crate) fn is_wildcard(dag: &MemoryDag, e: ElementId) -> bool {
    dag.elements[e].of == ElementSubject::Wildcard
}

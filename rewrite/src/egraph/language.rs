//! What stands in the e-graph: operators by registry row, so custom ones take part without code of their own.

use egg::Id;
use flambeau_ir::{OpId, Type};
use smallvec::SmallVec;
use std::cmp::Ordering;
use std::fmt;

/// What an e-node is, beside its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Head {
    /// A value of the program that is not looked into, by number.
    Leaf(u32),
    /// A constant, by number.
    Constant(u32),
    /// A list made of the operands.
    List(ListType),
    /// A row of the registry.
    Op(OpId),
}

/// The type of a list, ordered by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ListType(pub Type);

impl PartialOrd for ListType {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ListType {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.index().cmp(&other.0.index())
    }
}

/// A node of the e-graph.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ENode {
    /// What it is.
    pub head: Head,
    /// The classes of its operands.
    pub kids: SmallVec<[Id; 4]>,
}

impl ENode {
    /// A node without operands.
    pub(crate) fn leaf(head: Head) -> Self {
        ENode { head, kids: SmallVec::new() }
    }
}

impl egg::Language for ENode {
    type Discriminant = (Head, usize);

    fn discriminant(&self) -> Self::Discriminant {
        (self.head, self.kids.len())
    }

    fn matches(&self, other: &Self) -> bool {
        self.head == other.head && self.kids.len() == other.kids.len()
    }

    fn children(&self) -> &[Id] {
        &self.kids
    }

    fn children_mut(&mut self) -> &mut [Id] {
        &mut self.kids
    }
}

impl fmt::Display for ENode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.head {
            Head::Leaf(n) => write!(f, "leaf{n}"),
            Head::Constant(n) => write!(f, "const{n}"),
            Head::List(_) => f.write_str("list"),
            Head::Op(id) => write!(f, "{id:?}"),
        }
    }
}

//! The e-graph's language. Operators are identified by registry row, so custom operators need no code of their own.

use egg::Id;
use flambeau_ir::{OpId, Type};
use smallvec::SmallVec;
use std::cmp::Ordering;
use std::fmt;

/// The head of an e-node: everything except its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NodeHead {
    /// An opaque value of the program, by index.
    Leaf(u32),
    /// A constant, by index.
    Constant(u32),
    /// A list made of the operands.
    List(ListType),
    /// An operator, by registry row.
    Op(OpId),
}

/// The type of a list, ordered by the type's number.
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
    /// The head.
    pub head: NodeHead,
    /// The classes of its operands.
    pub children: SmallVec<[Id; 4]>,
}

impl ENode {
    /// A node without operands.
    pub(crate) fn leaf(head: NodeHead) -> Self {
        ENode { head, children: SmallVec::new() }
    }
}

impl egg::Language for ENode {
    type Discriminant = (NodeHead, usize);

    fn discriminant(&self) -> Self::Discriminant {
        (self.head, self.children.len())
    }

    fn matches(&self, other: &Self) -> bool {
        self.head == other.head && self.children.len() == other.children.len()
    }

    fn children(&self) -> &[Id] {
        &self.children
    }

    fn children_mut(&mut self) -> &mut [Id] {
        &mut self.children
    }
}

impl fmt::Display for ENode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.head {
            NodeHead::Leaf(n) => write!(f, "leaf{n}"),
            NodeHead::Constant(n) => write!(f, "const{n}"),
            NodeHead::List(_) => f.write_str("list"),
            NodeHead::Op(id) => write!(f, "{id:?}"),
        }
    }
}

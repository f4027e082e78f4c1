//! Ids of graph entities: generational `slotmap` keys.
//!
//! Access through a stale id panics or returns `None`; a stale id never names another entity.
//!
//! Equality, hashing and ordering are those of the key. The number printed for a value (`%7`) is *not* the slot number:
//! see [`crate::Graph::name`].

use slotmap::{Key, KeyData, new_key_type};
use std::fmt;

new_key_type! {
    /// A node (one operation) of a [`crate::Graph`].
    pub struct NodeId;
    /// A value: one result of one node.
    pub struct ValueId;
    /// A block: a list of nodes between a `prim::Param` and a `prim::Return`.
    pub struct BlockId;
}

/// Any entity of a graph, for messages of the verifier and of tools.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Entity {
    /// The graph as a whole.
    Graph,
    /// A block.
    Block(BlockId),
    /// A node.
    Node(NodeId),
    /// A value.
    Value(ValueId),
}

impl fmt::Debug for Entity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Entity::Graph => f.write_str("graph"),
            Entity::Block(b) => write!(f, "block{}", slot_of(*b)),
            Entity::Node(n) => write!(f, "node{}", slot_of(*n)),
            Entity::Value(v) => write!(f, "value{}", slot_of(*v)),
        }
    }
}

/// Returns the slot number of a key: dense from 0, reused after removal.
#[inline(always)]
pub(crate) fn slot_of<K: Key>(key: K) -> u32 {
    key.data().as_ffi() as u32
}

/// Splits a key into slot and generation.
#[inline(always)]
pub(crate) fn split<K: Key>(key: K) -> (u32, u32) {
    let raw = key.data().as_ffi();
    (raw as u32, (raw >> 32) as u32)
}

/// Builds the key of a slot at a generation (generations of live slots are odd).
#[inline(always)]
pub(crate) fn join<K: Key>(slot: u32, generation: u32) -> K {
    K::from(KeyData::from_ffi(u64::from(generation) << 32 | u64::from(slot)))
}

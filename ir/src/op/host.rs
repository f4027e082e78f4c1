//! Operations on objects of the embedding program, as encoded in nodes of [`Prim::PythonOp`](crate::Prim::PythonOp).
//! The frontend creates such nodes and hosts decode them. In text they are `^name(words)(%operands)`.

use crate::attr::{Attr, names};
use crate::graph::Graph;
use crate::id::NodeId;
use crate::symbol::Symbol;
use crate::types::Type;
use crate::value::{IValue, List};

/// Name attribute of a node that reads an object or a member of an object.
const READ: &str = "__getattr__";
/// Name attribute of a node that calls its first operand.
const CALL: &str = "__call__";

/// An operation on objects of the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostOp {
    /// Reads the object at a dotted path; no operands.
    Object(Symbol),
    /// Reads a member of operand 0.
    Member(Symbol),
    /// Calls operand 0 with the other operands, the last of which are keyword arguments with these names.
    Call(Vec<Symbol>),
    /// Calls the function at a dotted path with the operands, the last of which are keyword arguments with these names.
    Function(Symbol, Vec<Symbol>),
}

impl HostOp {
    /// Decodes a node; returns `None` if the node has no name attribute.
    pub fn of(graph: &Graph, node: NodeId) -> Option<HostOp> {
        HostOp::read(graph.attrs(node).entries(), graph.operand_count(node))
    }

    fn read(attrs: &[(Symbol, Attr)], operands: usize) -> Option<HostOp> {
        let attr = |name| attrs.iter().find(|(n, _)| *n == name).map(|(_, attr)| attr);
        let name = attr(names::name())?.as_str()?;
        let word = |w: &IValue| Some(Symbol::new(w.as_str()?.to_str()?));
        let words: Vec<Symbol> = match attr(names::scalar_args()) {
            Some(Attr::Value(IValue::List(words))) => {
                words.to_vec().iter().map(word).collect::<Option<_>>()?
            }
            _ => Vec::new(),
        };
        Some(match (name, words.as_slice(), operands) {
            (READ, [path], 0) => HostOp::Object(*path),
            (READ, [member], 1) => HostOp::Member(*member),
            (CALL, _, 1..) => HostOp::Call(words),
            _ => HostOp::Function(Symbol::new(name), words),
        })
    }

    /// Returns the attributes that encode this operation in a node.
    pub fn attrs(&self) -> Vec<(Symbol, Attr)> {
        let (name, words) = match self {
            HostOp::Object(word) | HostOp::Member(word) => (READ, std::slice::from_ref(word)),
            HostOp::Call(keywords) => (CALL, keywords.as_slice()),
            HostOp::Function(path, keywords) => (path.as_str(), keywords.as_slice()),
        };
        let mut attrs = vec![(names::name(), Attr::str(name))];
        attrs.extend(scalar_args(words.iter().map(|w| w.as_str())));
        attrs
    }
}

/// Returns the attribute that holds words (paths, members, keyword names); `None` if there are no words.
pub(crate) fn scalar_args<'w>(words: impl Iterator<Item = &'w str>) -> Option<(Symbol, Attr)> {
    let words: Vec<IValue> = words.map(IValue::str).collect();
    let list = || IValue::List(List::from_values(Type::STR, words.clone()));
    (!words.is_empty()).then(|| (names::scalar_args(), Attr::Value(list())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_round_trip() {
        let name = Symbol::new;
        let all = [
            (HostOp::Object(name("np.pi")), 0),
            (HostOp::Member(name("x")), 1),
            (HostOp::Call(vec![name("k")]), 2),
            (HostOp::Call(Vec::new()), 1),
            (HostOp::Function(name("np.sum"), Vec::new()), 1),
            (HostOp::Function(name("np.sum"), vec![name("axis"), name("out")]), 3),
        ];
        for (op, operands) in all {
            assert_eq!(HostOp::read(&op.attrs(), operands), Some(op));
        }
    }
}

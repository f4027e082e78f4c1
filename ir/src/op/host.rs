//! What nodes that call the host ask for: how [`Prim::PythonOp`](crate::Prim::PythonOp) spells the operations on the
//! embedding program's objects. The frontend writes them, hosts read them; in text they are `^name(words)(%operands)`.

use crate::attr::{Attr, names};
use crate::graph::Graph;
use crate::id::NodeId;
use crate::symbol::Symbol;
use crate::types::Type;
use crate::value::{IValue, List};

/// The name of a node that reads an object or a member of one.
const READ: &str = "__getattr__";
/// The name of a node that calls its first operand.
const CALL: &str = "__call__";

/// An operation on objects of the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostOp {
    /// The object at a dotted path; no operands.
    Object(Symbol),
    /// A member of operand 0.
    Member(Symbol),
    /// Calls operand 0 with the others, the last of them by these names.
    Call(Vec<Symbol>),
    /// Calls the function at a dotted path with the operands, the last of them by these names.
    Function(Symbol, Vec<Symbol>),
}

impl HostOp {
    /// The operation of a node; none for one that names no function.
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

    /// The attributes of a node for it.
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

/// The attribute that holds words; none for no words.
pub(crate) fn scalar_args<'w>(words: impl Iterator<Item = &'w str>) -> Option<(Symbol, Attr)> {
    let words: Vec<IValue> = words.map(IValue::str).collect();
    let list = || IValue::List(List::from_values(Type::STR, words.clone()));
    (!words.is_empty()).then(|| (names::scalar_args(), Attr::Value(list())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_read_as_they_are_written() {
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

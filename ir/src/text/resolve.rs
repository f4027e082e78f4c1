//! Resolution of operators from their names and the types of their operands.

use crate::op::{Op, OpId, Prim, Registry};
use crate::schema::accepts_types;
use crate::symbol::Symbol;
use crate::types::{NoClasses, Type, TypeKind};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use smallvec::SmallVec;
use std::sync::Arc;

/// The operator or overload group that a name denotes.
#[derive(Clone, Copy)]
pub(super) enum OpName {
    /// A structural operator.
    Prim(Prim),
    /// `prim::FusionGroup_3`: a structural operator with a subgraph that is listed under this number.
    Listed(Prim, u32),
    /// The overloads of the registry, possibly none: an index into the resolver's groups.
    Rows(usize),
}

struct Group<'r> {
    name: Symbol,
    overloads: &'r [OpId],
    /// Cache of the last results, since programs repeat the same operand types.
    memo: SmallVec<[(SmallVec<[Type; 6]>, Option<Type>, Op); 2]>,
}

pub(super) struct TextResolver<'r> {
    registry: &'r Arc<Registry>,
    names: HashMap<Box<str>, OpName, FxBuildHasher>,
    groups: Vec<Group<'r>>,
}

/// Maximum number of cached results per group.
const MEMO: usize = 8;

impl<'r> TextResolver<'r> {
    pub(super) fn new(registry: &'r Arc<Registry>) -> Self {
        TextResolver { registry, names: HashMap::default(), groups: Vec::new() }
    }

    pub(super) fn name(&mut self, text: &str) -> OpName {
        if let Some(&found) = self.names.get(text) {
            return found;
        }
        let symbol = Symbol::new(text);
        let found =
            Prim::from_symbol(symbol).map(OpName::Prim).or_else(|| listed(text)).unwrap_or_else(|| {
                self.groups.push(Group {
                    name: symbol,
                    overloads: self.registry.overloads(symbol),
                    memo: SmallVec::new(),
                });
                OpName::Rows(self.groups.len() - 1)
            });
        self.names.insert(text.into(), found);
        found
    }

    /// Returns the first overload that accepts operands of these types, or an opaque operator. `result` is the declared
    /// type of the first result: among overloads that differ in the kind of number they return, the one with this type
    /// takes precedence.
    pub(super) fn pick(
        &mut self,
        group: usize,
        types: impl ExactSizeIterator<Item = Type> + Clone,
        result: Option<Type>,
    ) -> Op {
        let group = &mut self.groups[group];
        if group.overloads.is_empty() {
            return Op::unknown(group.name);
        }
        for (known, given, op) in &group.memo {
            if *given == result && known.len() == types.len() && known.iter().copied().eq(types.clone()) {
                return *op;
            }
        }
        let types: SmallVec<[Type; 6]> = types.collect();
        // Text has an operand for every parameter. If no overload has exactly as many parameters, overloads with
        // further defaults are accepted.
        let accepts = |id: OpId| accepts_types(self.registry.schema(id), &types, &NoClasses);
        let exact = |id: OpId| self.registry.schema(id).args.len() == types.len() && accepts(id);
        let overloads = || group.overloads.iter().copied();
        let gives = |id: OpId| {
            let first = self.registry.schema(id).returns.first().map(|r| r.ty);
            first == result || !(first.is_some_and(is_number) && result.is_some_and(is_number))
        };
        let found = overloads().find(|&id| exact(id) && gives(id));
        let found = found.or_else(|| overloads().find(|&id| exact(id)));
        let found = found.or_else(|| overloads().find(|&id| accepts(id)));
        let op = found.map_or_else(|| Op::unknown(group.name), Op::from);
        if group.memo.len() == MEMO {
            group.memo.remove(0);
        }
        group.memo.push((types, result, op));
        op
    }
}

/// Returns whether the type is a specific number type or bool.
fn is_number(ty: Type) -> bool {
    matches!(ty.kind(), TypeKind::Int | TypeKind::Float | TypeKind::Bool | TypeKind::Complex)
}

/// Returns the operator and the subgraph number in a name such as `prim::FusionGroup_3`; `None` for names of another form.
fn listed(text: &str) -> Option<OpName> {
    let (base, digits) = text.rsplit_once('_')?;
    let number = digits.parse().ok().filter(|n: &u32| n.to_string() == digits)?;
    let prim = Prim::from_symbol(Symbol::new(base)).filter(|p| p.has_subgraph())?;
    Some(OpName::Listed(prim, number))
}

#[cfg(test)]
mod tests {
    use crate::text::parse_graph;
    use crate::{OpDef, RegistryBuilder, Source};

    #[test]
    fn of_overloads_with_the_same_operands_the_result_decides() {
        let mut builder = RegistryBuilder::new();
        builder.add([
            OpDef::new("toy::pow.real(int a, int b) -> float"),
            OpDef::new("toy::pow.whole(int a, int b) -> int"),
        ]);
        let registry = builder.build().unwrap();
        let text = "graph(%a : int):
  %x : float = toy::pow(%a, %a)
  %y : int = toy::pow(%a, %a)
  %z : Scalar = toy::pow(%a, %a)
  return (%x)
";
        let graph = parse_graph(&Source::new("test.ir", text), &registry).unwrap();
        let found = graph.nodes_deep().filter_map(|n| graph.op(n).row());
        let overloads: Vec<&str> = found.map(|op| registry.schema(op).overload.as_str()).collect();
        assert_eq!(overloads, ["real", "whole", "real"]);
    }
}

//! In-place operators and their functional variants.

use flambeau_ir::{InplaceOf, OpId, Registry, Type};

/// Whether an operator writes and returns its first operand, a tensor, and has no `out` argument.
fn is_in_place(registry: &Registry, id: OpId) -> bool {
    let schema = registry.schema(id);
    let (Some(first), [result]) = (schema.args.first(), schema.returns.as_slice()) else { return false };
    let sets =
        |alias: &Option<flambeau_ir::schema::AliasInfo>| alias.as_ref().map(|info| info.before.clone());
    first.ty == Type::TENSOR
        && first.is_write()
        && sets(&first.alias) == sets(&result.alias)
        && !schema.args.iter().any(|a| a.is_out())
}

#[test]
fn every_in_place_operator_states_its_functional_variant() {
    let registry = flambeau_ops::registry();
    let (mut stated, mut missing) = (0, Vec::new());
    for id in registry.ids().filter(|&id| is_in_place(&registry, id)) {
        match registry.facet::<InplaceOf>(id) {
            Some(_) => stated += 1,
            None => missing.push(registry.schema(id).to_string()),
        }
    }
    assert!(stated > 250, "only {stated} in-place operators");
    assert!(missing.is_empty(), "without the facet `in-place-of`:\n{}", missing.join("\n"));
}

#[test]
fn functional_variants_take_the_same_arguments() {
    let registry = flambeau_ops::registry();
    for (id, _) in registry.column::<InplaceOf>().iter() {
        let Some(function) = registry.functional_variant(id) else { continue };
        let (writer, function) = (registry.schema(id), registry.schema(function));
        let named = writer.args.iter().all(|a| function.arg_index(a.name.as_str()).is_some());
        assert!(
            named || writer.args.len() <= function.args.len(),
            "`{writer}` takes other arguments than `{function}`"
        );
        assert!(!function.args[0].is_write(), "`{function}` writes its first operand");
    }
}

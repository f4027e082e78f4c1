//! Rewrite rules of whole operator families, and facets of single operators that rewriting uses.
//!
//! `flambeau_rewrite::rules::parse` describes the language of the `.rules` files. This module's test compares both
//! sides of every rule on sampled inputs with the reference evaluator.

mod channels;

use flambeau_ir::{RegistryBuilder, ScalarOverload};
use flambeau_rewrite::facets::ChunkOp;
use flambeau_rewrite::facets::OpRole;
use flambeau_rewrite::{AlwaysView, ContainerOp, Cost, OptInRules, ReadsStrides, Rules};

/// Adds rules, roles and costs.
pub(crate) fn add(builder: &mut RegistryBuilder) {
    builder
        .facet("aten::mul.Scalar", Rules::file("pointwise.rules", include_str!("pointwise.rules")))
        .facet("aten::t", Rules::file("views.rules", include_str!("views.rules")))
        .facet("aten::mm", Rules::file("products.rules", include_str!("products.rules")))
        .facet("aten::mul.int", Rules::file("scalars.rules", include_str!("scalars.rules")))
        .facet("aten::dim", Rules::file("questions.rules", include_str!("questions.rules")))
        .facet("aten::addmm", OptInRules(Rules::file("forms.rules", include_str!("forms.rules"))))
        .facet("aten::chunk", ChunkOp);
    channels::add(builder);
    for (op, role) in ROLES {
        builder.facet(op, *role);
    }
    for op in ["aten::add.Tensor", "aten::sub.Tensor", "aten::mul.Tensor", "aten::div.Tensor"] {
        builder.facet(op, ScalarOverload("Scalar"));
    }
    for (op, what) in ELEMENTS {
        builder.facet(op, *what);
    }
    for op in ALWAYS_VIEWS {
        builder.facet(op, AlwaysView);
    }
    for op in READS_STRIDES {
        builder.facet(op, ReadsStrides);
    }
    for (op, cost) in COSTS {
        builder.facet(op, Cost(*cost));
    }
}

/// Roles by which passes find operators.
const ROLES: &[(&str, OpRole)] = &[
    ("aten::add.int", OpRole::Sum),
    ("aten::sub.int", OpRole::Difference),
    ("aten::mul.int", OpRole::Product),
    ("aten::__round_to_zero_floordiv.int", OpRole::Quotient),
    ("aten::eq.int", OpRole::Equal),
    ("aten::ne.int", OpRole::Unequal),
    ("aten::__not__", OpRole::Not),
    ("aten::add.Tensor", OpRole::ScaledSum),
    ("aten::mm", OpRole::MatrixProduct),
    ("aten::wait", OpRole::Wait),
    ("aten::dim", OpRole::Rank),
    ("prim::dtype", OpRole::DtypeOf),
    ("prim::device", OpRole::DeviceOf),
    ("aten::tensor.float", OpRole::NumberTensor),
    ("aten::tensor.int", OpRole::NumberTensor),
    ("aten::copy_", OpRole::Copy),
    ("aten::copy_.int", OpRole::WriteInt),
    ("aten::copy_.float", OpRole::WriteFloat),
    ("aten::relu", OpRole::Activation),
    ("aten::relu6", OpRole::Activation),
    ("aten::sigmoid", OpRole::Activation),
    ("aten::tanh", OpRole::Activation),
    ("aten::silu", OpRole::Activation),
    ("aten::hardtanh", OpRole::Activation),
    ("aten::hardsigmoid", OpRole::Activation),
    ("aten::hardswish", OpRole::Activation),
    ("aten::leaky_relu", OpRole::Activation),
    ("aten::elu", OpRole::Activation),
];

/// Operators whose result is a new tensor over the memory of their operand in every call.
const ALWAYS_VIEWS: &[&str] = &[
    "aten::alias",
    "aten::as_strided",
    "aten::broadcast_to",
    "aten::detach",
    "aten::diagonal",
    "aten::expand",
    "aten::expand_as",
    "aten::movedim.int",
    "aten::movedim.intlist",
    "aten::narrow",
    "aten::numpy_T",
    "aten::permute",
    "aten::select.int",
    "aten::slice.Tensor",
    "aten::squeeze",
    "aten::squeeze.dim",
    "aten::squeeze.dims",
    "aten::swapaxes",
    "aten::swapdims",
    "aten::t",
    "aten::transpose.int",
    "aten::unfold",
    "aten::unsqueeze",
    "aten::view",
    "aten::view_as",
];

/// Operators that observe the strides or the storage offset of their operand.
const READS_STRIDES: &[&str] = &[
    "aten::_reshape_alias",
    "aten::_reshape_alias_copy",
    "aten::_reshape_alias_copy.out",
    "aten::as_strided",
    "aten::as_strided_",
    "aten::as_strided_copy",
    "aten::as_strided_copy.out",
    "aten::as_strided_scatter",
    "aten::as_strided_scatter.out",
    "aten::is_contiguous",
    "aten::is_contiguous.memory_format",
    "aten::is_non_overlapping_and_dense",
    "aten::storage_offset",
    "aten::stride",
    "aten::stride.int",
    "aten::sym_storage_offset",
    "aten::sym_stride",
    "aten::sym_stride.int",
    "aten::view",
    "aten::view.dtype",
    "aten::view_as",
    "aten::view_as_complex",
    "aten::view_as_complex_copy",
    "aten::view_as_complex_copy.out",
    "aten::view_copy",
    "aten::view_copy.dtype",
    "aten::view_copy.dtype_out",
    "aten::view_copy.out",
];

/// Effect of operators on the elements of lists and dictionaries.
const ELEMENTS: &[(&str, ContainerOp)] = &[
    ("aten::len.t", ContainerOp::Count),
    ("aten::len.Dict_str", ContainerOp::Count),
    ("aten::len.Dict_int", ContainerOp::Count),
    ("aten::len.Dict_bool", ContainerOp::Count),
    ("aten::__getitem__.t", ContainerOp::Item),
    ("aten::__getitem__.Dict_str", ContainerOp::Value),
    ("aten::__getitem__.Dict_int", ContainerOp::Value),
    ("aten::__getitem__.Dict_bool", ContainerOp::Value),
    ("aten::slice.t", ContainerOp::Slice),
    ("aten::add.t", ContainerOp::Concat),
    ("aten::list.t", ContainerOp::Copy),
    ("aten::append.t", ContainerOp::Append),
    ("aten::insert.t", ContainerOp::Insert),
    ("aten::_set_item.t", ContainerOp::Replace),
    ("aten::mul.left_t", ContainerOp::Repeat),
    ("aten::copy.t", ContainerOp::Copy),
    ("aten::add_.t", ContainerOp::Extend),
    ("aten::extend.t", ContainerOp::Extend),
    ("aten::Delete.t", ContainerOp::Delete),
    ("aten::pop.t", ContainerOp::Pop),
    ("aten::clear.t", ContainerOp::Clear),
    ("aten::reverse.t", ContainerOp::Reverse),
    ("aten::_set_item.str", ContainerOp::Replace),
    ("aten::__contains__.str", ContainerOp::Contains),
    ("aten::get.str", ContainerOp::Get),
    ("aten::get.default_str", ContainerOp::Get),
    ("aten::keys.str", ContainerOp::Keys),
    ("aten::values.str", ContainerOp::Values),
    ("aten::items.str", ContainerOp::Items),
    ("aten::clear.str", ContainerOp::Clear),
    ("aten::Delete.Dict_str", ContainerOp::Delete),
    ("aten::pop.Dict_str", ContainerOp::Pop),
    ("aten::copy.Dict_str", ContainerOp::Copy),
    ("aten::dict.Dict_str", ContainerOp::Copy),
    ("aten::_set_item.int", ContainerOp::Replace),
    ("aten::__contains__.int", ContainerOp::Contains),
    ("aten::get.int", ContainerOp::Get),
    ("aten::get.default_int", ContainerOp::Get),
    ("aten::keys.int", ContainerOp::Keys),
    ("aten::values.int", ContainerOp::Values),
    ("aten::items.int", ContainerOp::Items),
    ("aten::clear.int", ContainerOp::Clear),
    ("aten::Delete.Dict_int", ContainerOp::Delete),
    ("aten::pop.Dict_int", ContainerOp::Pop),
    ("aten::copy.Dict_int", ContainerOp::Copy),
    ("aten::dict.Dict_int", ContainerOp::Copy),
    ("aten::_set_item.bool", ContainerOp::Replace),
    ("aten::__contains__.bool", ContainerOp::Contains),
    ("aten::get.bool", ContainerOp::Get),
    ("aten::get.default_bool", ContainerOp::Get),
    ("aten::keys.bool", ContainerOp::Keys),
    ("aten::values.bool", ContainerOp::Values),
    ("aten::items.bool", ContainerOp::Items),
    ("aten::clear.bool", ContainerOp::Clear),
    ("aten::Delete.Dict_bool", ContainerOp::Delete),
    ("aten::pop.Dict_bool", ContainerOp::Pop),
    ("aten::copy.Dict_bool", ContainerOp::Copy),
    ("aten::dict.Dict_bool", ContainerOp::Copy),
];

/// Costs of operators other than one pass over memory, in tenths of such a pass.
const COSTS: &[(&str, u32)] = &[
    ("aten::add.int", 1),
    ("aten::sub.int", 1),
    ("aten::mul.int", 1),
    ("aten::neg.int", 1),
    ("aten::floordiv.int", 2),
    ("aten::zeros_like", 6),
    ("aten::neg", 9),
    ("aten::div.Scalar", 14),
    ("aten::div.Tensor", 14),
    ("aten::sqrt", 14),
    ("aten::rsqrt", 16),
    ("aten::reciprocal", 14),
    ("aten::exp", 30),
    ("aten::log", 30),
    ("aten::sigmoid", 40),
    ("aten::silu", 42),
    ("aten::tanh", 40),
    ("aten::hardsigmoid", 18),
    ("aten::hardswish", 20),
    ("aten::addcdiv", 18),
    ("aten::pow.Tensor_Scalar", 60),
    ("aten::mm", 200),
    ("aten::bmm", 220),
    ("aten::dot", 20),
    ("aten::addmm", 202),
    ("aten::matmul", 203),
    ("aten::linear", 206),
];

#[cfg(test)]
mod tests {
    use flambeau_ir::text::parse_graph;
    use flambeau_ir::{Source, Symbol};
    use flambeau_rewrite::rules::trial::{TrialLimits, try_rules};
    use flambeau_rewrite::{Checks, Manager, PassLibrary, Pipeline};
    use flambeau_rewrite::{RuleSet, Vocabulary};

    #[test]
    fn copying_variants_read_strides_as_their_views_do() {
        let registry = crate::registry();
        let mut copies = 0;
        for view in super::READS_STRIDES {
            let name = view.split_once('.').map_or(*view, |(name, _)| name);
            for &copy in registry.overloads(Symbol::new(&format!("{name}_copy"))) {
                copies += 1;
                assert!(registry.facet::<super::ReadsStrides>(copy).is_some(), "{}", registry.schema(copy));
            }
        }
        assert!(copies > 0);
    }

    #[test]
    fn every_rule_holds_on_its_trials() {
        let registry = crate::registry();
        let rules = RuleSet::from_registry(&registry, &Vocabulary::standard()).unwrap_or_else(|errors| {
            panic!("{}", errors.iter().map(flambeau_ir::Diagnostic::render).collect::<String>())
        });
        assert!(rules.rules().len() >= 40);
        let opt_in =
            RuleSet::on_request(&registry, &Vocabulary::standard()).expect("rules on request are right");
        let mut wrong = String::new();
        let trials = [&rules, &opt_in].map(|set| try_rules(&registry, set, TrialLimits::default()));
        for trial in trials.iter().flatten() {
            if let Some(failure) = &trial.failure {
                wrong += &format!("{} ({}) fails on\n{failure}\n\n", trial.rule, trial.instance);
            } else if trial.tried == 0 {
                let why = trial.refused.as_deref().unwrap_or("nothing was drawn");
                wrong += &format!("{} ({}) was never tried: {why}\n\n", trial.rule, trial.instance);
            }
        }
        assert!(wrong.is_empty(), "{wrong}");
    }

    /// Detected by the results (`first`), by whether the right side runs if the left one does (`form`), by an error that
    /// only the left side raises (`removes`) or that has another message (`order`), by memory that only one result
    /// shares with a variable (`copies`), and by NaN and zeros of complex numbers (`zeros`).
    #[test]
    fn wrong_rules_are_detected() {
        let registry = crate::registry();
        let text = "use aten
rule first [exact]: add.Tensor(%x, %y) => %x
rule form [exact]: matmul(%a, %b) => mm(%a, %b)
rule order [exact]: dot(%a, %b) => dot(%b, %a)
rule right [exact]: dot(%a, %b) => dot(%b, %a) where same_type(%a, %b), rank(%a, 1)
rule removes [exact]: view(view(%x, %a:int[]), %b:int[]) => view(%x, %b)
rule copies [exact]: contiguous(%x) => %x
rule zeros [exact]: add.Tensor(%x, %y) => add.Tensor(%y, %x) where same_type(%x, %y)
";
        let mut rules = RuleSet::new();
        rules.add(&Source::new("wrong.rules", text), &registry, &Vocabulary::standard()).expect("they read");
        let trials = try_rules(&registry, &rules, TrialLimits::default());
        let wrong: Vec<&str> =
            trials.iter().filter(|t| t.failure.is_some()).map(|t| t.rule.as_str()).collect();
        assert_eq!(wrong, ["first", "form", "order", "removes", "copies", "zeros"]);
    }

    #[test]
    fn rules_are_tried_on_complex_numbers() {
        let registry = crate::registry();
        let mut rules = RuleSet::new();
        let source =
            Source::new("neg.rules", "use aten\nrule twice [exact]: neg.complex(neg.complex(%x)) => %x\n");
        rules.add(&source, &registry, &Vocabulary::standard()).expect("it reads");
        let trials = try_rules(&registry, &rules, TrialLimits::default());
        assert!(!trials.is_empty() && trials.iter().all(|trial| trial.tried > 0 && trial.failure.is_none()));
    }

    const CELL: &str = "graph(%x : Tensor, %hx : Tensor, %cx : Tensor, %wi : Tensor, %wh : Tensor, %bi : Tensor, %bh : Tensor):
  %1 : int = prim::Constant[value=1]()
  %4 : int = prim::Constant[value=4]()
  %tw : Tensor = aten::t(%wi)
  %a : Tensor = aten::mm(%x, %tw)
  %th : Tensor = aten::t(%wh)
  %b : Tensor = aten::mm(%hx, %th)
  %s : Tensor = aten::add(%a, %b, %1)
  %u : Tensor = aten::add(%s, %bi, %1)
  %g : Tensor = aten::add(%u, %bh, %1)
  %l : Tensor[] = aten::chunk(%g, %4, %1)
  %i0 : Tensor, %f0 : Tensor, %c0 : Tensor, %o0 : Tensor = prim::ListUnpack(%l)
  %i : Tensor = aten::sigmoid(%i0)
  %f : Tensor = aten::sigmoid(%f0)
  %c : Tensor = aten::tanh(%c0)
  %o : Tensor = aten::sigmoid(%o0)
  %p : Tensor = aten::mul(%f, %cx)
  %q : Tensor = aten::mul(%i, %c)
  %cy : Tensor = aten::add(%p, %q, %1)
  %r : Tensor = aten::tanh(%cy)
  %hy : Tensor = aten::mul(%o, %r)
  return (%hy, %cy)
";

    #[test]
    fn an_lstm_cell_is_two_products_and_one_group() {
        let registry = crate::registry();
        let mut graph = parse_graph(&Source::new("cell.ir", CELL), &registry).expect("the cell reads");
        let text = "constant_propagation,cse,peephole,egraph,canonicalize_ops,fuse,dce";
        let pipeline = Pipeline::parse(text, &PassLibrary::standard()).expect("the pipeline reads");
        Manager::new().checks(Checks::EveryEdit).run(&mut graph, &pipeline).unwrap_or_else(|e| panic!("{e}"));
        let text = graph.to_string();
        assert_eq!(text.matches("= prim::FusionGroup_").count(), 1, "{text}");
        let body = text.split("with prim::").next().unwrap_or_default();
        let left: Vec<&str> = body.lines().filter_map(|l| l.split(" = ").nth(1)?.split('(').next()).collect();
        let products = left.iter().filter(|op| **op == "aten::mm").count();
        assert_eq!((products, left.len()), (2, 5), "{text}");
    }
}

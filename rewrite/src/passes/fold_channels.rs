//! Folds channelwise affine operators into the weights of the preceding linear operator: inference-mode batch
//! normalization into a convolution or linear layer, if all parameters are constants.
//!
//! The facets [`ChannelLinear`] and [`ChannelAffine`] mark the operators. The intermediate result must have no other
//! use except rank queries. The folded weights are new constants, so other users of the original ones are unaffected.
//! Only floating-point parameters are folded, and only if all constants have one dtype, or the linear operator's have a
//! half-precision dtype and the affine operator's are f32, as for mixed-precision normalization. The result then
//! differs only by rounding.
//!
//! Both operators must agree on the channel dimension, which depends on the rank. The rank is known from shapes, or
//! from a preceding check that raises for any other rank, as PyTorch's modules have. With the option `batched`, the
//! pass inserts such a check before convolutions that could be called without a batch dimension. The check is of a
//! graph input if that suffices. Programs that the check rejects nearly always fail in the normalization as well, with
//! a different message. So the pass preserves the meaning of programs exactly only without the option.

use crate::facets::{ChannelAffine, ChannelLinear, ChannelSlices, OpRole};
use crate::pass::{Pass, PassCx, PassError};
use crate::pipeline::{Configure, PassOptions};
use crate::roles;
use crate::rules::Exactness;
use flambeau_analysis::alias::AliasDb;
use flambeau_analysis::shape::{Dims, Fact, Shapes, TensorFact};
use flambeau_ir::types::Dim;
use flambeau_ir::{At, Column, Editor, Graph, IValue, NodeId, OpId, Prim, Type, ValueId};
use flambeau_tensor::{DType, Tensor};
use hashbrown::{HashMap, HashSet};
use rustc_hash::FxBuildHasher;

/// See the module documentation.
#[derive(Clone, Copy, Debug, Default)]
pub struct FoldChannels {
    /// Insert rank checks where folding needs them.
    pub batched: bool,
}

impl Configure for FoldChannels {
    const OPTIONS: &'static [&'static str] = &["batched"];

    fn configure(options: &PassOptions) -> Result<Self, String> {
        Ok(FoldChannels { batched: options.flag("batched") })
    }
}

impl Pass for FoldChannels {
    const NAME: &'static str = "fold_channels";
    const ALIASES: &'static [&'static str] = &["fold_frozen_conv_bn", "fold_frozen_linear_bn"];
    const DOC: &'static str = "Folds batch normalization into the constant weights of the preceding layer.";

    fn exactness(&self) -> Exactness {
        Exactness::Rounding
    }

    fn run(&self, cx: &mut PassCx<'_>) -> Result<(), PassError> {
        let registry = cx.registry();
        let (linear, affine) = (registry.column::<ChannelLinear>(), registry.column::<ChannelAffine>());
        let (ranks, differs) =
            match (roles::find(&registry, OpRole::Rank), roles::find(&registry, OpRole::Unequal)) {
                (Ok(rank), Ok(differs)) => (rank, differs),
                // Without operators for rank and inequality no program contains rank checks, and none can be inserted.
                _ => return Ok(()),
            };
        let candidates = Candidates { graph: cx.graph(), linear, affine, ranks };
        let mut folds = candidates.find();
        if folds.is_empty() {
            return Ok(());
        }
        let (graph, (db, shapes)) = cx.with::<(AliasDb, Shapes)>();
        // A constant that is written has other elements in the next run.
        let lasting = |v: ValueId| graph.constant(v).is_none() || !db.has_writers(v);
        folds.retain(|f| graph.operands(f.linear).chain(graph.operands(f.affine)).all(lasting));
        let evidence = RankEvidence { graph, ranks, differs, batched: self.batched };
        let assumed = evidence.determine(&mut folds, db, shapes);
        let (mut editor, mut fuel) = cx.edit_fuelled();
        let mut assumed = Some(assumed);
        for fold in folds {
            if fold.rank == RankStatus::No {
                continue;
            }
            if !fuel.take("fold", editor.graph(), fold.affine) {
                break;
            }
            if fold.rank == RankStatus::ByInputs {
                for (input, rank) in assumed.take().into_iter().flatten() {
                    let root = editor.graph().root();
                    check_rank(&mut editor, At::start(root), (input, rank), (ranks, differs));
                }
            }
            fold.apply(&mut editor, (ranks, differs));
        }
        Ok(())
    }
}

/// Why the result of the linear operator is known to have the rank of the weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RankStatus {
    No,
    Yes,
    /// From checks of the graph's inputs.
    ByInputs,
    /// From a check that the pass inserts.
    ByCheck,
}

/// An affine operator that can be folded.
struct Fold {
    linear: NodeId,
    affine: NodeId,
    of: ChannelLinear,
    weight: Tensor,
    bias: Tensor,
    rank: RankStatus,
}

impl Fold {
    fn required_rank(&self) -> usize {
        self.weight.rank()
    }

    fn apply(self, editor: &mut Editor<'_>, checks: (OpId, OpId)) {
        let graph = editor.graph();
        let (old, new) = (graph.result(self.affine, 0), graph.result(self.linear, 0));
        let (input, rank) = (graph.operand(self.linear, 0), self.required_rank());
        let loc = graph.loc(self.linear);
        if self.rank == RankStatus::ByCheck {
            check_rank(editor, At::before(self.linear), (input, rank), checks);
        }
        editor.at(At::before(self.linear)).loc(loc);
        let (weight, bias) = (IValue::Tensor(self.weight), IValue::Tensor(self.bias));
        let weight = editor.constant_of(weight, Type::TENSOR);
        let bias = editor.constant_of(bias, Type::TENSOR);
        editor.set_operand(self.linear, self.of.weight, weight);
        editor.set_operand(self.linear, self.of.bias, bias);
        editor.replace_all_uses(old, new);
        editor.erase(self.affine);
    }
}

/// Inserts a check that raises an exception unless a tensor has the given rank.
fn check_rank(
    editor: &mut Editor<'_>,
    at: At,
    (value, rank): (ValueId, usize),
    (ranks, differs): (OpId, OpId),
) {
    editor.at(at);
    let have = editor.value(ranks, &[value], Type::INT);
    let want = editor.constant(IValue::Int(rank as i64));
    let wrong = editor.value(differs, &[have, want], Type::BOOL);
    let check = editor.node(Prim::If, &[wrong], &[]);
    let (raising, _) = (editor.add_block(check), editor.add_block(check));
    let message = format!("a frozen layer requires a batch dimension: expected {rank} dimensions");
    let resume = At::after(check);
    editor.at(At::start(raising));
    let message = editor.constant(IValue::str(&message));
    let class = editor.constant_of(IValue::None, Type::optional(Type::STR));
    editor.node(Prim::RaiseException, &[message, class], &[]);
    editor.at(resume);
}

/// The search for pairs of operators whose constants are compatible.
struct Candidates<'a> {
    graph: &'a Graph,
    linear: Column<'a, ChannelLinear>,
    affine: Column<'a, ChannelAffine>,
    ranks: OpId,
}

impl Candidates<'_> {
    fn find(&self) -> Vec<Fold> {
        self.graph.nodes_deep().filter_map(|node| self.fold_at(node)).collect()
    }

    fn constants(&self, node: NodeId) -> Vec<Option<IValue>> {
        self.graph.operands(node).map(|value| self.graph.constant(value)).collect()
    }

    fn fold_at(&self, affine: NodeId) -> Option<Fold> {
        let ChannelAffine(pairs) = self.affine.of(self.graph.op(affine))?;
        let between = self.graph.operand(affine, 0);
        let linear = self.graph.def(between);
        let of = *self.linear.of(self.graph.op(linear))?;
        let is_rank_query = |user: NodeId| self.graph.op(user).row() == Some(self.ranks);
        let alone = |u: flambeau_ir::Use| (u.user == affine && u.index == 0) || is_rank_query(u.user);
        if !self.graph.uses(between).all(alone) {
            return None;
        }
        let (layer, scaling) = (self.constants(linear), self.constants(affine));
        let weight = layer.get(of.weight)?.as_ref()?.as_tensor()?;
        let dtype = weight.dtype();
        let all_of = |constants: &[Option<IValue>], dtype| {
            constants.iter().flatten().filter_map(IValue::as_tensor).all(|t| t.dtype() == dtype)
        };
        let is_half = matches!(dtype, DType::F16 | DType::BF16);
        let scales = all_of(&scaling, dtype) || (is_half && all_of(&scaling, DType::F32));
        if !dtype.is_floating() || !all_of(&layer, dtype) || !scales {
            return None;
        }
        let pairs = pairs(&scaling)?;
        let channel = channels(of.slices, weight, &layer, pairs.len())?;
        let folded = folded_weights(weight, &pairs, &channel)?;
        let bias = match layer.get(of.bias)?.as_ref()? {
            IValue::None => vec![0.0; pairs.len()],
            bias => bias.as_tensor().filter(|b| b.rank() == 1)?.to_vec::<f64>().ok()?,
        };
        if bias.len() != pairs.len() {
            return None;
        }
        let bias: Vec<f64> = bias.iter().zip(&pairs).map(|(b, (scale, shift))| b * scale + shift).collect();
        let bias = of_dtype(bias, &[pairs.len() as i64], dtype)?;
        Some(Fold { linear, affine, of, weight: folded, bias, rank: RankStatus::No })
    }
}

/// The values as a tensor of `dtype`, if all are finite in it.
fn of_dtype(values: Vec<f64>, sizes: &[i64], dtype: DType) -> Option<Tensor> {
    let tensor = Tensor::from_vec(values, sizes).ok()?.to_dtype(dtype).ok()?;
    tensor.to_vec::<f64>().ok()?.iter().all(|v| v.is_finite()).then_some(tensor)
}

/// The mapping of the elements of a weight tensor, in row-major order, to channels.
struct ChannelLayout {
    /// Rows (dimension 0) per group; each group has its own channels.
    rows: usize,
    /// Channels per group, consecutive within each row.
    channels: usize,
    /// Elements per channel within a row.
    run: usize,
}

/// The mapping of weights to `count` channels; `None` if the weights have another number of channels.
fn channels(
    slices: ChannelSlices,
    weight: &Tensor,
    layer: &[Option<IValue>],
    count: usize,
) -> Option<ChannelLayout> {
    let sizes: Vec<usize> = weight.sizes().iter().map(|&s| s as usize).collect();
    let groups = |i: usize| usize::try_from(layer.get(i)?.as_ref()?.as_int()?).ok().filter(|&g| g > 0);
    let groups = match slices {
        ChannelSlices::First => None,
        ChannelSlices::Second { groups: g } => Some(groups(g)?),
        ChannelSlices::Either { second, groups: g } => match layer.get(second)?.as_ref()?.as_bool()? {
            true => Some(groups(g)?),
            false => None,
        },
    };
    if sizes.len() < 2 || sizes.contains(&0) {
        return None;
    }
    match groups {
        None => {
            let run = sizes[1..].iter().product();
            (sizes[0] == count).then_some(ChannelLayout { rows: 1, channels: 1, run })
        }
        Some(groups) => {
            let run = sizes[2..].iter().product();
            let fits = sizes[0].is_multiple_of(groups) && sizes[1].checked_mul(groups) == Some(count);
            fits.then_some(ChannelLayout { rows: sizes[0] / groups, channels: sizes[1], run })
        }
    }
}

/// The weights, each multiplied by the factor of its channel.
fn folded_weights(weight: &Tensor, pairs: &[(f64, f64)], layout: &ChannelLayout) -> Option<Tensor> {
    let mut values = weight.to_vec::<f64>().ok()?;
    for (i, run) in values.chunks_exact_mut(layout.run).enumerate() {
        let (row, within) = (i / layout.channels, i % layout.channels);
        let (scale, _) = pairs[row / layout.rows * layout.channels + within];
        run.iter_mut().for_each(|v| *v *= scale);
    }
    of_dtype(values, weight.sizes(), weight.dtype())
}

/// Evidence about ranks.
struct RankEvidence<'a> {
    graph: &'a Graph,
    ranks: OpId,
    differs: OpId,
    batched: bool,
}

impl RankEvidence<'_> {
    /// Determines for each fold whether its rank is known. Returns the graph inputs that need a check, with their
    /// ranks.
    fn determine(&self, folds: &mut [Fold], db: &AliasDb, shapes: &Shapes) -> Vec<(ValueId, usize)> {
        let rank_of = |shapes: &Shapes, fold: &Fold| {
            let of = |value| shapes.tensor(value).and_then(TensorFact::rank);
            of(self.graph.result(fold.linear, 0)).or_else(|| of(self.graph.operand(fold.linear, 0)))
        };
        let checks = self.checks();
        for fold in &mut *folds {
            let checked = || self.is_checked(&checks, fold);
            fold.rank = match rank_of(shapes, fold) {
                Some(rank) if rank != fold.required_rank() => RankStatus::No,
                Some(_) => RankStatus::Yes,
                None if checked() => RankStatus::Yes,
                None if fold.of.batched && self.batched => RankStatus::ByCheck,
                None => RankStatus::No,
            };
        }
        let inputs = self.assumable(folds);
        if inputs.is_empty() {
            return inputs;
        }
        let facts = self.graph.inputs().map(|input| match inputs.iter().find(|(i, _)| *i == input) {
            Some((_, rank)) => Fact::Tensor(TensorFact::of_dims(Dims::from_elem(Dim::Unknown, *rank))),
            None => Fact::of_type(self.graph.ty(input)),
        });
        let assuming = Shapes::with_inputs(self.graph, db, facts.collect());
        for fold in &mut *folds {
            if fold.rank == RankStatus::ByCheck && rank_of(&assuming, fold) == Some(fold.required_rank()) {
                fold.rank = RankStatus::ByInputs;
            }
        }
        inputs
    }

    /// Graph inputs that certainly need a check: linear operators outside of branches use them.
    fn assumable(&self, folds: &[Fold]) -> Vec<(ValueId, usize)> {
        let root = self.graph.root();
        let mut found: Vec<(ValueId, usize)> = Vec::new();
        for fold in folds.iter().filter(|f| f.rank == RankStatus::ByCheck) {
            let input = self.graph.operand(fold.linear, 0);
            let is_input = self.graph.def(input) == self.graph.param(root);
            let certain = is_input && self.graph.parent(fold.linear) == root;
            if certain && !found.iter().any(|(i, _)| *i == input) {
                found.push((input, fold.required_rank()));
            }
        }
        found
    }

    /// Rank checks by value: a `prim::If` that raises unless the value has this rank.
    fn checks(&self) -> HashMap<ValueId, Vec<(NodeId, i64)>, FxBuildHasher> {
        let mut found: HashMap<_, Vec<_>, _> = HashMap::default();
        let mut seen: HashSet<NodeId, FxBuildHasher> = HashSet::default();
        for node in self.graph.nodes_deep().filter(|&n| self.graph.is_prim(n, Prim::RaiseException)) {
            let Some(check) = self.graph.enclosing(node).filter(|&c| seen.insert(c)) else { continue };
            if self.graph.is_prim(check, Prim::If)
                && self.graph.parent(node) == self.graph.block(check, 0)
                && let Some((value, rank)) = self.difference(self.graph.operand(check, 0))
            {
                found.entry(value).or_default().push((check, rank));
            }
        }
        found
    }

    /// The value and number of a condition `rank(value) != number`.
    fn difference(&self, condition: ValueId) -> Option<(ValueId, i64)> {
        let differs = self.graph.def(condition);
        if self.graph.op(differs).row() != Some(self.differs) {
            return None;
        }
        let is_rank_query = self.graph.def(self.graph.operand(differs, 0));
        let rank = self.graph.constant(self.graph.operand(differs, 1))?.as_int()?;
        (self.graph.op(is_rank_query).row() == Some(self.ranks))
            .then(|| (self.graph.operand(is_rank_query, 0), rank))
    }

    fn is_checked(&self, checks: &HashMap<ValueId, Vec<(NodeId, i64)>, FxBuildHasher>, fold: &Fold) -> bool {
        let between = self.graph.result(fold.linear, 0);
        let dominates = |check: NodeId| {
            let holder = self.graph.ancestor_in(fold.affine, self.graph.parent(check));
            holder.is_some_and(|holder| holder != check && self.graph.is_before(check, holder))
        };
        checks.get(&between).is_some_and(|all| {
            all.iter().any(|&(check, rank)| rank == fold.required_rank() as i64 && dominates(check))
        })
    }
}

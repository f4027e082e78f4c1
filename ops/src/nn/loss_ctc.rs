//! Connectionist temporal classification (CTC): the likelihood of a label sequence over all its alignments in time.
//!
//! The forward recursion over labels with blanks between them computes the loss, the backward recursion its derivative,
//! both with logarithms in f64.

use super::loss::reduced;
use crate::support::{Computed, Several, op};
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::{Gen, KernelCx, KernelError, Sample};
use flambeau_ir::types::Dim;
use flambeau_ir::{IValue, OpDef};
use flambeau_tensor::{DType, Tensor, threads};

/// Logarithm of a sum of three exponentials.
fn log_sum(a: f64, b: f64, c: f64) -> f64 {
    let top = a.max(b).max(c);
    if top == f64::NEG_INFINITY {
        return top;
    }
    ((a - top).exp() + (b - top).exp() + (c - top).exp()).ln() + top
}

/// Returns lengths given as a list or a tensor.
fn lengths(cx: &KernelCx<'_>, i: usize) -> Result<Vec<i64>, KernelError> {
    match cx.arg(i)?.as_tensor() {
        Some(t) if !t.dtype().is_integral(false) => {
            Err(KernelError::input("input_lengths and target_lengths must be integral"))
        }
        Some(t) => Ok(t.to_vec::<i64>()?),
        None => Ok(cx.ints(i)?.to_vec()),
    }
}

/// Input of the recursion: log probabilities `[time, batch, classes]` and the labels per sequence.
struct Problem {
    logs: Vec<f64>,
    time: usize,
    batch: usize,
    count: usize,
    labels: Vec<Vec<usize>>,
    input_lengths: Vec<i64>,
    target_lengths: Vec<i64>,
    blank: usize,
    /// Number of labels that determines the table's width in the result.
    longest: usize,
}

fn problem(
    logs: &Tensor,
    targets: &Tensor,
    input: Vec<i64>,
    target: Vec<i64>,
    blank: i64,
) -> Result<Problem, KernelError> {
    let refuse = |text: String| Err(KernelError::input(text));
    if !matches!(logs.dtype(), DType::F32 | DType::F64) {
        return refuse(format!("\"ctc_loss_cpu\" not implemented for '{}'", logs.dtype().ir_name()));
    }
    if !matches!(targets.dtype(), DType::I64 | DType::I32) {
        return refuse("targets must be of type int or long".to_owned());
    }
    let [time, batch, count] = *logs.sizes() else {
        return refuse(format!("Expected 3-dimensional tensor, but got {}-dimensional tensor", logs.rank()));
    };
    let checking = "(while checking arguments for ctc_loss_allocate_outputs)";
    if !matches!(targets.rank(), 1 | 2) {
        return refuse(format!(
            "Expected 1 to 2 dimensions, but got {}-dimensional tensor for argument #2 'targets' {checking}",
            targets.rank()
        ));
    }
    if !(0..count).contains(&blank) {
        return refuse("blank must be in label range".to_owned());
    }
    for (name, all) in [("input_lengths", &input), ("target_lengths", &target)] {
        if all.len() as i64 != batch {
            return refuse(format!("{name} must be of size batch_size"));
        }
    }
    for (name, all) in [("input_lengths", &input), ("target_lengths", &target)] {
        if let Some(n) = all.iter().find(|n| **n < 0) {
            return refuse(format!("Expected {name} to have value at least 0, but got value {n} {checking}"));
        }
    }
    let longest_target = target.iter().copied().max().unwrap_or(0);
    let rows =
        if targets.rank() == 1 { target.iter().fold(0, |sum: i64, n| sum.wrapping_add(*n)) } else { batch };
    if targets.sizes()[0] != rows {
        return refuse(format!(
            "Expected tensor to have size {rows} at dimension 0, but got size {} for argument #2 'targets' {checking}",
            targets.sizes()[0]
        ));
    }
    if let &[_, width] = targets.sizes()
        && width < longest_target
    {
        return refuse(format!(
            "Expected tensor to have size at least {longest_target} at dimension 1, but got size {width} for argument #2 \
             'targets' {checking}"
        ));
    }
    if let Some(n) = input.iter().copied().max().filter(|n| *n > time) {
        return refuse(format!(
            "Expected input_lengths to have value at most {time}, but got value {n} {checking}"
        ));
    }
    let values = targets.to_vec::<i64>()?;
    let mut labels = Vec::new();
    let mut at = 0;
    for (i, &n) in target.iter().enumerate() {
        let n = n as usize;
        let start = match targets.sizes() {
            [_, width] => i * *width as usize,
            _ => at,
        };
        at += n;
        let Some(own) = values.get(start..start + n) else {
            return refuse("targets are shorter than target_lengths say".to_owned());
        };
        if own.iter().any(|l| !(0..count).contains(l)) {
            return refuse("target labels must be classes".to_owned());
        }
        labels.push(own.iter().map(|l| *l as usize).collect());
    }
    let longest = target.iter().copied().max().unwrap_or(0) as usize;
    Ok(Problem {
        logs: logs.to_vec::<f64>()?,
        time: time as usize,
        batch: batch as usize,
        count: count as usize,
        labels,
        input_lengths: input,
        target_lengths: target,
        blank: blank as usize,
        longest,
    })
}

/// Estimated cost per state of the recursion, in operations.
const COST_PER_STATE: usize = 64;

impl Problem {
    /// Returns the negative log likelihoods, and the table of the forward recursion `[batch, time, 2 * longest + 1]`.
    fn solve(&self) -> (Vec<f64>, Vec<f64>) {
        let width = 2 * self.longest + 1;
        let mut table = vec![f64::NEG_INFINITY; self.batch * self.time * width];
        let mut losses = vec![0.0; self.batch];
        let cost = self.time * width * COST_PER_STATE;
        threads::chunks_of_two(
            &mut losses,
            &mut table,
            [1, self.time * width],
            threads::rows(cost),
            |first, losses, table| {
                let tables = table.chunks_exact_mut((self.time * width).max(1));
                for (i, (loss, table)) in losses.iter_mut().zip(tables).enumerate() {
                    *loss = self.one(first + i, table);
                }
            },
        );
        (losses, table)
    }

    /// Returns the loss of one sequence and fills its part of the table.
    fn one(&self, b: usize, table: &mut [f64]) -> f64 {
        let (labels, width) = (&self.labels[b], 2 * self.longest + 1);
        let states = 2 * labels.len() + 1;
        let label = |s: usize| if s.is_multiple_of(2) { self.blank } else { labels[s / 2] };
        let log = |t: usize, s: usize| self.logs[(t * self.batch + b) * self.count + label(s)];
        let length = self.input_lengths[b] as usize;
        if length == 0 {
            return if labels.is_empty() { 0.0 } else { f64::INFINITY };
        }
        for (s, first) in table.iter_mut().enumerate().take(states.min(2)) {
            *first = log(0, s);
        }
        for t in 1..length {
            let (before, now) = table.split_at_mut(t * width);
            let before = &before[(t - 1) * width..];
            for s in 0..states {
                let two = s > 1 && label(s) != label(s - 2);
                let from = log_sum(
                    before[s],
                    if s > 0 { before[s - 1] } else { f64::NEG_INFINITY },
                    if two { before[s - 2] } else { f64::NEG_INFINITY },
                );
                now[s] = from + log(t, s);
            }
        }
        let last = &table[(length - 1) * width..][..width];
        let second = if labels.is_empty() { f64::NEG_INFINITY } else { last[states - 2] };
        -log_sum(last[states - 1], second, f64::NEG_INFINITY)
    }
}

impl Problem {
    /// Computes the gradient of one sequence, `[time, classes]`: the class probability minus the share of alignments
    /// through the class at that time. As in PyTorch, this is the gradient with respect to the scores before a
    /// log-softmax. `ahead` is the sequence's part of the forward table, `grad` the gradient of its loss.
    fn back_of_one(&self, b: usize, ahead: &[f64], loss: f64, grad: f64, out: &mut [f64]) {
        let (labels, width) = (&self.labels[b], 2 * self.longest + 1);
        let states = 2 * labels.len() + 1;
        let label = |s: usize| if s.is_multiple_of(2) { self.blank } else { labels[s / 2] };
        let log = |t: usize, class: usize| self.logs[(t * self.batch + b) * self.count + class];
        let length = self.input_lengths[b] as usize;
        let never = f64::NEG_INFINITY;
        // The backward recursion; two states beyond the end are unreachable.
        let mut behind = vec![never; states + 2];
        let mut after = behind.clone();
        let mut shares = vec![never; self.count];
        for t in (0..length).rev() {
            std::mem::swap(&mut behind, &mut after);
            shares.fill(never);
            for s in 0..states {
                let two = s + 2 < states && label(s) != label(s + 2);
                let ways = match t + 1 == length {
                    true if s + 2 >= states => 0.0,
                    true => never,
                    false => log_sum(after[s], after[s + 1], if two { after[s + 2] } else { never }),
                };
                behind[s] = ways + log(t, label(s));
                let share = &mut shares[label(s)];
                *share = log_sum(*share, ahead[t * width + s] + behind[s], never);
            }
            for (class, (out, share)) in out[t * self.count..].iter_mut().zip(&shares).enumerate() {
                let log = log(t, class);
                *out = (log.exp() - (share + loss - log).exp()) * grad;
            }
        }
    }
}

/// `(grad, log_probs, targets, input_lengths, target_lengths, neg_log_likelihood, log_alpha, blank, zero_infinity)`.
fn backward(cx: &KernelCx<'_>) -> Computed {
    let logs = cx.tensor(1)?;
    let problem = problem(logs, cx.tensor(2)?, lengths(cx, 3)?, lengths(cx, 4)?, cx.int(7)?)?;
    let Problem { batch, time, count, .. } = problem;
    let width = 2 * problem.longest + 1;
    let table = cx.tensor(6)?;
    let lists: [&Tensor; 2] = [cx.tensor(0)?, cx.tensor(5)?];
    let fits = table.sizes() == [batch as i64, time as i64, width as i64];
    if !fits || lists.iter().any(|t| t.sizes() != [batch as i64]) {
        return Err(KernelError::input("ctc_loss_backward: losses and states are not those of the inputs"));
    }
    let (grads, losses) = (lists[0].to_vec::<f64>()?, lists[1].to_vec::<f64>()?);
    let (table, zero) = (table.to_vec::<f64>()?, cx.boolean(8)?);
    let mut found = vec![0.0; batch * time * count];
    let own = (time * count).max(1);
    threads::chunks(&mut found, threads::rows(time * width * COST_PER_STATE) * own, |first, found| {
        for (i, out) in found.chunks_exact_mut(own).enumerate() {
            let b = first / own + i;
            if !(zero && losses[b] == f64::INFINITY) {
                problem.back_of_one(b, &table[b * time * width..], losses[b], grads[b], out);
            }
        }
    });
    let of_batches = Tensor::from_vec(found, &[batch as i64, time as i64, count as i64])?;
    Ok(of_batches.transpose(0, 1)?.clone_contiguous()?.to_dtype(logs.dtype())?)
}

/// `(log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity)`.
fn ctc_loss(cx: &KernelCx<'_>) -> Computed {
    let (logs, targets) = (cx.tensor(0)?, cx.tensor(1)?);
    let batched = logs.rank() == 3;
    let whole = if batched { logs.clone() } else { logs.unsqueeze(1)? };
    let targets = if batched { targets.clone() } else { targets.reshape(&[1, -1])? };
    let problem = problem(&whole, &targets, lengths(cx, 2)?, lengths(cx, 3)?, cx.int(4)?)?;
    let (mut losses, _) = problem.solve();
    let (reduction, zero) = (cx.int(5)?, cx.boolean(6)?);
    if zero {
        losses.iter_mut().filter(|l| **l == f64::INFINITY).for_each(|l| *l = 0.0);
    }
    if reduction == 1 {
        let lengths = problem.target_lengths.iter().map(|n| (*n).max(1) as f64);
        losses.iter_mut().zip(lengths).for_each(|(l, n)| *l /= n);
    }
    let sizes: Vec<i64> = if batched { vec![losses.len() as i64] } else { Vec::new() };
    Ok(reduced(Tensor::from_vec(losses, &sizes)?, reduction)?.to_dtype(logs.dtype())?)
}

/// `(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity)`: returns the losses and the forward
/// table.
fn forward(cx: &KernelCx<'_>) -> Several {
    let logs = cx.tensor(0)?;
    let problem = problem(logs, cx.tensor(1)?, lengths(cx, 2)?, lengths(cx, 3)?, cx.int(4)?)?;
    let (losses, table) = problem.solve();
    let width = 2 * problem.longest as i64 + 1;
    let batch = problem.batch as i64;
    Ok(vec![
        Tensor::from_vec(losses, &[batch])?.to_dtype(logs.dtype())?,
        Tensor::from_vec(table, &[batch, problem.time as i64, width])?.to_dtype(logs.dtype())?,
    ])
}

fn sample(tensors: bool) -> impl Fn(&mut Gen<'_>) -> Vec<IValue> {
    move |g| {
        let logs = flambeau_exec::sample::tensor(g, &[4, 2, 3], DType::F32, &Default::default());
        let labels: Vec<i64> = (0..4).map(|_| g.int(1, 2)).collect();
        let of = |values: Vec<i64>, sizes: &[i64]| {
            IValue::Tensor(Tensor::from_vec(values, sizes).expect("invariant: as many values as elements"))
        };
        let lengths = |values: Vec<i64>| if tensors { of(values, &[2]) } else { IValue::ints(values) };
        vec![IValue::Tensor(logs), of(labels, &[2, 2]), lengths(vec![4, 3]), lengths(vec![2, 1])]
    }
}

/// Draws arguments of a backward pass, with tables of the shapes of the forward pass.
fn back_sample(tensors: bool) -> impl Fn(&mut Gen<'_>) -> Vec<IValue> {
    let forward = sample(tensors);
    move |g| {
        let drawn = |g: &mut Gen<'_>, sizes: &[i64]| {
            IValue::Tensor(flambeau_exec::sample::tensor(g, sizes, DType::F32, &Default::default()))
        };
        let mut args = vec![drawn(g, &[2])];
        args.extend(forward(g));
        args.extend([drawn(g, &[2]), drawn(g, &[2, 4, 5]), IValue::Int(0), IValue::Bool(false)]);
        args
    }
}

pub(super) fn family() -> Vec<OpDef> {
    let mut defs = Vec::new();
    let doc = "Connectionist temporal classification loss.";
    for (overload, tensors) in [("IntList", false), ("Tensor", true)] {
        let facts =
            |d: OpDef| d.with(Dtype::same_as(0)).with(Sample::args(sample(tensors)).tolerance(1e-4, 1e-5));
        let reduced = |d: OpDef| {
            // Without a batch dimension there is one loss.
            let elements = ResultShapes::dims(|cx| Some((cx.rank(0)? == 3).then(|| cx.size(0, 1))));
            facts(d).with(ResultShapes::loss(5, elements))
        };
        let facts = |d: OpDef| {
            let table = ResultShapes::dims(|cx| Some([cx.size(0, 1), cx.size(0, 0), Dim::Unknown]));
            let losses = ResultShapes::dims(|cx| Some([cx.size(0, 1)]));
            facts(d).with(ResultShapes::results([losses, table]))
        };
        defs.extend(op("ctc_loss", overload, doc).facts(reduced).one(ctc_loss));
        let (overload, out) = if tensors { ("Tensor", "Tensor_out") } else { ("", "out") };
        defs.extend(op("_ctc_loss", overload, doc).out(out).facts(facts).several(forward));
        let doc = "The gradient of the connectionist temporal classification loss.";
        let facts = |d: OpDef| {
            let sample = Sample::args(back_sample(tensors)).tolerance(1e-4, 1e-5).not_differentiable();
            d.with(Dtype::same_as(1)).with(ResultShapes::same_as(1)).with(sample)
        };
        let back = op("_ctc_loss_backward", overload, doc).out(out).if_declared();
        defs.extend(back.facts(facts).one(backward));
    }
    defs
}

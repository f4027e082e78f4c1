//! Recurrent networks: cells, and networks of several layers in one or two directions, on padded or packed sequences.
//!
//! The product of input and weights is computed for a whole sequence at once; each step then computes the product with
//! the state, and the gates.

use super::sized;
use crate::random::{drawn, generator};
use crate::support::{Computed, Several, op};
use flambeau_analysis::shape::{Dims, ShapeCx};
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::{Gen, KernelCx, KernelError, Sample};
use flambeau_ir::types::Dim;
use flambeau_ir::value::List;
use flambeau_ir::{Effects, IValue, OpDef};
use flambeau_tensor::loops::binary_in;
use flambeau_tensor::math::{Float, Real};
use flambeau_tensor::random::Distribution;
use flambeau_tensor::{DType, Element, Scalar, Tensor, access, dispatch, matmul};

/// Type of cell.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Cell {
    Lstm,
    Gru,
    Tanh,
    Relu,
}

impl Cell {
    /// Returns the number of gates, each as wide as the state.
    fn gates(self) -> i64 {
        match self {
            Cell::Lstm => 4,
            Cell::Gru => 3,
            Cell::Tanh | Cell::Relu => 1,
        }
    }
}

/// Parameters of one layer in one direction.
struct Params {
    input: Tensor,
    state: Tensor,
    input_bias: Option<Tensor>,
    state_bias: Option<Tensor>,
    /// The projection of the state (LSTM only).
    projection: Option<Tensor>,
}

/// `x @ weight.T + bias`.
pub(super) fn linear(x: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Computed {
    let transposed = weight.t()?;
    match bias {
        Some(bias) if x.rank() == 2 => {
            Ok(matmul::addmm(bias, x, &transposed, Scalar::Int(1), Scalar::Int(1))?)
        }
        Some(bias) => add(&matmul::matmul(x, &transposed)?, bias),
        None => Ok(matmul::matmul(x, &transposed)?),
    }
}

pub(super) fn add(a: &Tensor, b: &Tensor) -> Computed {
    dispatch!(carried_floats, a.dtype(), "add", T => Ok(binary_in::<T>(a.dtype(), a, b, |a: T, b: T| T::from_acc(a.acc() + b.acc()))?))
}

/// Returns the new state and, for LSTMs, the new cell state, from the pre-activations `[batch, gates * width]` of input
/// and state.
fn gates(
    cell: Cell,
    input: &Tensor,
    state: &Tensor,
    h: &Tensor,
    c: Option<&Tensor>,
) -> Result<(Tensor, Option<Tensor>), KernelError> {
    fits(cell, &[input, state], c.unwrap_or(h))?;
    match cell {
        Cell::Tanh | Cell::Relu => {
            let sums = add(input, state)?;
            let h = dispatch!(carried_floats, sums.dtype(), "rnn", T => Ok::<_, KernelError>(flambeau_tensor::loops::unary_in::<T>(sums.dtype(), &sums, move |x: T| {
                T::from_acc(if cell == Cell::Tanh { x.acc().tanh() } else { x.acc().max_nan(Element::ZERO) })
            })?))?;
            Ok((h, None))
        }
        Cell::Gru => Ok((gru_gates(input, state, h)?, None)),
        Cell::Lstm => {
            let c = c.ok_or_else(|| KernelError::input("an LSTM cell expects its cell state"))?;
            let sums = add(input, state)?;
            let (h, c) = lstm_gates(&sums, c)?;
            Ok((h, Some(c)))
        }
    }
}

/// Checks that the state is `[batch, width]` and the pre-activations are `[batch, gates * width]`.
fn fits(cell: Cell, sums: &[&Tensor], state: &Tensor) -> Result<(), KernelError> {
    if let [batch, width] = *state.sizes()
        && sums.iter().all(|sum| sum.sizes() == [batch, cell.gates() * width])
    {
        return Ok(());
    }
    let gates: Vec<&[i64]> = sums.iter().map(|sum| sum.sizes()).collect();
    let message = format!("gates of sizes {gates:?} do not match a state of size {:?}", state.sizes());
    Err(KernelError::input(message))
}

/// Gates in the order input, forget, cell, output.
fn lstm_gates(sums: &Tensor, c: &Tensor) -> Result<(Tensor, Tensor), KernelError> {
    let width = c.sizes()[c.rank() - 1] as usize;
    let (sums, c) = (sums.contiguous()?, c.contiguous()?);
    let next = Tensor::zeros(c.sizes(), c.dtype())?;
    let h = Tensor::zeros(c.sizes(), c.dtype())?;
    dispatch!(floats, c.dtype(), "lstm_cell", T => {
        access::edit_with::<T, T, _>(&next, &[&sums, &c], |mut out, ins| {
            let rows = out.data().chunks_exact_mut(width.max(1)).zip(ins[0].data().chunks_exact(4 * width.max(1)));
            for ((out, g), c) in rows.zip(ins[1].data().chunks_exact(width.max(1))) {
                let of = |gate: usize, j: usize| T::from_raw(g[gate * width + j]).acc();
                for (j, out) in out.iter_mut().enumerate() {
                    let kept = of(1, j).sigmoid() * T::from_raw(c[j]).acc();
                    *out = T::from_acc(kept + of(0, j).sigmoid() * of(2, j).tanh()).to_raw();
                }
            }
        })?;
        access::edit_with::<T, T, _>(&h, &[&sums, &next], |mut out, ins| {
            let rows = out.data().chunks_exact_mut(width.max(1)).zip(ins[0].data().chunks_exact(4 * width.max(1)));
            for ((out, g), c) in rows.zip(ins[1].data().chunks_exact(width.max(1))) {
                for (j, out) in out.iter_mut().enumerate() {
                    let gate = T::from_raw(g[3 * width + j]).acc().sigmoid();
                    *out = T::from_acc(gate * T::from_raw(c[j]).acc().tanh()).to_raw();
                }
            }
        })?;
        Ok((h, next))
    })
}

/// Gates in the order reset, update, new.
fn gru_gates(input: &Tensor, state: &Tensor, h: &Tensor) -> Computed {
    let width = h.sizes()[h.rank() - 1] as usize;
    let (input, state, h) = (input.contiguous()?, state.contiguous()?, h.contiguous()?);
    let out = Tensor::zeros(h.sizes(), h.dtype())?;
    dispatch!(floats, h.dtype(), "gru_cell", T => access::edit_with::<T, T, _>(&out, &[&input, &state, &h], |mut out, ins| {
        type A<T> = <T as Float>::Acc;
        let rows = out.data().chunks_exact_mut(width.max(1)).zip(ins[0].data().chunks_exact(3 * width.max(1)));
        let rows = rows.zip(ins[1].data().chunks_exact(3 * width.max(1))).zip(ins[2].data().chunks_exact(width.max(1)));
        for (((out, x), s), h) in rows {
            let of = |g: &[<T as Element>::Raw], gate: usize, j: usize| T::from_raw(g[gate * width + j]).acc();
            for (j, out) in out.iter_mut().enumerate() {
                let reset: A<T> = (of(x, 0, j) + of(s, 0, j)).sigmoid();
                let update = (of(x, 1, j) + of(s, 1, j)).sigmoid();
                let new = (of(x, 2, j) + reset * of(s, 2, j)).tanh();
                *out = T::from_acc((T::from_raw(h[j]).acc() - new) * update + new).to_raw();
            }
        }
    }))?;
    Ok(out)
}

/// Runs one step: adds the products of the state to those of the input.
fn step(
    cell: Cell,
    input: &Tensor,
    h: &Tensor,
    c: Option<&Tensor>,
    p: &Params,
) -> Result<(Tensor, Option<Tensor>), KernelError> {
    let state = linear(h, &p.state, p.state_bias.as_ref())?;
    let (h, c) = gates(cell, input, &state, h, c)?;
    let h = match &p.projection {
        Some(projection) => linear(&h, projection, None)?,
        None => h,
    };
    Ok((h, c))
}

/// One layer in one direction over packed steps; step `t` has `sizes[t]` sequences.
struct Sweep<'a> {
    cell: Cell,
    params: &'a Params,
    backward: bool,
    sizes: &'a [i64],
}

impl Sweep<'_> {
    /// Returns the outputs of all steps, concatenated, and the last state and cell state of each sequence. `x` is `[sum
    /// of sizes, features]`.
    fn run(
        &self,
        x: &Tensor,
        h: &Tensor,
        c: Option<&Tensor>,
    ) -> Result<(Tensor, Tensor, Option<Tensor>), KernelError> {
        let inputs = linear(x, &self.params.input, self.params.input_bias.as_ref())?;
        let width = h.sizes()[1];
        let out = Tensor::zeros(&[x.sizes()[0], width], x.dtype())?;
        let (last_h, last_c) = (h.clone_contiguous()?, c.map(Tensor::clone_contiguous).transpose()?);
        let mut starts = vec![0];
        starts.extend(self.sizes.iter().scan(0, |sum, n| {
            *sum += n;
            Some(*sum)
        }));
        let steps: Vec<usize> = if self.backward {
            (0..self.sizes.len()).rev().collect()
        } else {
            (0..self.sizes.len()).collect()
        };
        for t in steps {
            let n = self.sizes[t];
            let part = |all: &Tensor| all.narrow(0, 0, n);
            let own_c = last_c.as_ref().map(part).transpose()?;
            let input = inputs.narrow(0, starts[t], n)?;
            let (h, c) = step(self.cell, &input, &part(&last_h)?, own_c.as_ref(), self.params)?;
            out.narrow(0, starts[t], n)?.copy_(&h)?;
            part(&last_h)?.copy_(&h)?;
            if let (Some(kept), Some(c)) = (own_c, c) {
                kept.copy_(&c)?;
            }
        }
        Ok((out, last_h, last_c))
    }
}

/// A network of several layers.
struct Network {
    cell: Cell,
    layers: usize,
    directions: usize,
    dropout: f64,
    train: bool,
    params: Vec<Params>,
}

/// `(params, has_biases, num_layers, dropout, train, bidirectional)` from `at`.
fn network(cx: &KernelCx<'_>, cell: Cell, at: usize, projected: bool) -> Result<Network, KernelError> {
    let (all, biases) = (cx.tensors(at)?, cx.boolean(at + 1)?);
    let layers = usize::try_from(cx.int(at + 2)?).unwrap_or(0);
    let directions = if cx.boolean(at + 5)? { 2 } else { 1 };
    let each = 2 + 2 * usize::from(biases) + usize::from(projected);
    if Some(all.len()) != layers.checked_mul(each * directions) {
        return Err(KernelError::input(
            "Incorrect number of RNN parameters: the count does not fit layers, directions and biases",
        ));
    }
    let params = all
        .chunks_exact(each)
        .map(|p| Params {
            input: p[0].clone(),
            state: p[1].clone(),
            input_bias: biases.then(|| p[2].clone()),
            state_bias: biases.then(|| p[3].clone()),
            projection: projected.then(|| p[each - 1].clone()),
        })
        .collect();
    Ok(Network { cell, layers, directions, dropout: cx.float(at + 3)?, train: cx.boolean(at + 4)?, params })
}

impl Network {
    /// Runs on packed steps and returns output, states and cell states: `x` is `[sum of sizes, features]`, states are
    /// `[layers * directions, batch, width]`.
    fn run(
        &self,
        cx: &KernelCx<'_>,
        x: &Tensor,
        sizes: &[i64],
        h: &Tensor,
        c: Option<&Tensor>,
    ) -> Result<(Tensor, Tensor, Option<Tensor>), KernelError> {
        let count = (self.layers * self.directions) as i64;
        if h.rank() != 3 || h.sizes()[0] != count {
            return Err(KernelError::input(format!(
                "Expected hidden size ({count}, batch, features), got {:?}",
                h.sizes()
            )));
        }
        let (last_h, last_c) = (h.clone_contiguous()?, c.map(Tensor::clone_contiguous).transpose()?);
        let mut x = x.clone();
        for layer in 0..self.layers {
            let mut outs = Vec::new();
            for direction in 0..self.directions {
                let k = layer * self.directions + direction;
                let sweep =
                    Sweep { cell: self.cell, params: &self.params[k], backward: direction == 1, sizes };
                let own_c = last_c.as_ref().map(|c| c.select(0, k as i64)).transpose()?;
                let own_h = last_h.select(0, k as i64)?;
                let (out, h, c) = sweep.run(&x, &own_h, own_c.as_ref())?;
                own_h.copy_(&h)?;
                if let (Some(kept), Some(c)) = (own_c, c) {
                    kept.copy_(&c)?;
                }
                outs.push(out);
            }
            x = joined(&outs)?;
            if self.train && self.dropout > 0.0 && layer + 1 < self.layers {
                x = self.dropped(cx, x)?;
            }
        }
        Ok((x, last_h, last_c))
    }

    fn dropped(&self, cx: &KernelCx<'_>, x: Tensor) -> Computed {
        let keep = 1.0 - self.dropout;
        let noise = x.empty_like(x.dtype())?;
        let noise = if keep > 0.0 {
            drawn(noise, Distribution::Bernoulli { p: keep }, &generator(cx, None)?)?
        } else {
            noise
        };
        let scale = if keep > 0.0 { 1.0 / keep } else { 0.0 };
        dispatch!(carried_floats, x.dtype(), "dropout", T => Ok(binary_in::<T>(x.dtype(), &x, &noise, move |x: T, n: T| {
            T::from_f64(x.to_f64() * n.to_f64() * scale)
        })?))
    }
}

/// Concatenates the outputs of both directions along the features.
fn joined(outs: &[Tensor]) -> Computed {
    let [first, rest @ ..] = outs else { return Err(KernelError::internal("a layer without directions")) };
    if rest.is_empty() {
        return Ok(first.clone());
    }
    let width = first.sizes()[1];
    let out = Tensor::zeros(&[first.sizes()[0], width * outs.len() as i64], first.dtype())?;
    for (i, part) in outs.iter().enumerate() {
        out.narrow(1, width * i as i64, width)?.copy_(part)?;
    }
    Ok(out)
}

/// Returns state and cell state: argument `i` is a tensor, or a list of both for LSTMs.
fn states(cx: &KernelCx<'_>, cell: Cell, i: usize) -> Result<(Tensor, Option<Tensor>), KernelError> {
    if cell != Cell::Lstm {
        return Ok((cx.tensor(i)?.clone(), None));
    }
    match &cx.tensors(i)?[..] {
        [h, c] => Ok((h.clone(), Some(c.clone()))),
        _ => Err(KernelError::input("lstm expects two hidden states")),
    }
}

/// Whether an LSTM has projections: then state and cell state differ in width.
fn projected(h: &Tensor, c: Option<&Tensor>) -> bool {
    c.is_some_and(|c| c.sizes().last() != h.sizes().last())
}

/// `(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first)`.
fn padded(cx: &KernelCx<'_>, cell: Cell) -> Several {
    let (h, c) = states(cx, cell, 1)?;
    let net = network(cx, cell, 2, projected(&h, c.as_ref()))?;
    let x = cx.tensor(0)?;
    if x.rank() != 3 {
        return Err(KernelError::input(format!("input must have 3 dimensions, got {}", x.rank())));
    }
    let batch_first = cx.boolean(8)?;
    let x = if batch_first { x.transpose(0, 1)? } else { x.clone() };
    let (time, batch) = (x.sizes()[0], x.sizes()[1]);
    if h.rank() != 3 || h.sizes()[1] != batch {
        return Err(KernelError::input(format!(
            "Expected hidden size of batch {batch}, got {:?}",
            h.sizes()
        )));
    }
    let flat = x.reshape(&[time * batch, x.sizes()[2]])?;
    let (out, h, c) = net.run(cx, &flat, &vec![batch; time as usize], &h, c.as_ref())?;
    let out = out.view(&[time, batch, out.sizes()[1]])?;
    let out = if batch_first { out.transpose(0, 1)?.contiguous()? } else { out };
    Ok([Some(out), Some(h), c].into_iter().flatten().collect())
}

/// `(data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional)`.
fn packed(cx: &KernelCx<'_>, cell: Cell) -> Several {
    let (h, c) = states(cx, cell, 2)?;
    let net = network(cx, cell, 3, projected(&h, c.as_ref()))?;
    let (x, sizes) = (cx.tensor(0)?, cx.tensor(1)?.to_vec::<i64>()?);
    let fits = x.rank() == 2
        && sizes.iter().fold(0_i64, |sum, n| sum.saturating_add(*n)) == x.sizes()[0]
        && sizes.iter().all(|n| *n >= 0)
        && sizes.windows(2).all(|w| w[0] >= w[1])
        && h.rank() == 3
        && sizes.first().is_none_or(|n| *n <= h.sizes()[1]);
    if !fits {
        return Err(KernelError::input("sizes of packed data, batch sizes and hidden state do not match"));
    }
    let (out, h, c) = net.run(cx, x, &sizes, &h, c.as_ref())?;
    Ok([Some(out), Some(h), c].into_iter().flatten().collect())
}

/// `(input, hx, w_ih, w_hh, b_ih, b_hh)`: returns state and cell state.
fn one_step(cx: &KernelCx<'_>, cell: Cell) -> Several {
    let (h, c) = states(cx, cell, 1)?;
    let params = Params {
        input: cx.tensor(2)?.clone(),
        state: cx.tensor(3)?.clone(),
        input_bias: cx.opt_tensor(4)?.cloned(),
        state_bias: cx.opt_tensor(5)?.cloned(),
        projection: None,
    };
    let x = cx.tensor(0)?;
    let expected = params.input.size(1)?;
    if x.size(1)? != expected {
        return Err(KernelError::input(format!(
            "input has inconsistent input_size: got {} expected {expected}",
            x.size(1)?
        )));
    }
    let width = params.state.size(1)?;
    for (i, state) in [Some(&h), c.as_ref()].into_iter().flatten().enumerate() {
        if x.size(0)? != state.size(0)? {
            return Err(KernelError::input(format!(
                "Input batch size {} doesn't match hidden{i} batch size {}",
                x.size(0)?,
                state.size(0)?
            )));
        }
        if state.size(1)? != width {
            return Err(KernelError::input(format!(
                "hidden{i} has inconsistent hidden_size: got {}, expected {width}",
                state.size(1)?
            )));
        }
    }
    if params.state.sizes() != [width * cell.gates(), width] {
        return Err(KernelError::input(format!(
            "hidden0 has inconsistent hidden_size: got {width}, weights are {:?}",
            params.state.sizes()
        )));
    }
    let input = linear(cx.tensor(0)?, &params.input, params.input_bias.as_ref())?;
    let (h, c) = step(cell, &input, &h, c.as_ref(), &params)?;
    Ok([Some(h), c].into_iter().flatten().collect())
}

/// One step from the pre-activations: `(input_gates, hidden_gates, state, input_bias, hidden_bias)`.
fn fused(cx: &KernelCx<'_>, cell: Cell) -> Several {
    let biased = |x: &Tensor, i: usize| match cx.opt_tensor(i)? {
        Some(bias) => add(x, bias),
        None => Ok(x.clone()),
    };
    let (input, state) = (biased(cx.tensor(0)?, 3)?, biased(cx.tensor(1)?, 4)?);
    let own = cx.tensor(2)?;
    let (h, c) = gates(cell, &input, &state, own, Some(own))?;
    let workspace = add(&input, &state)?;
    Ok([Some(h), c, Some(workspace)].into_iter().flatten().collect())
}

/// Draws a tensor of small numbers.
fn small(g: &mut Gen<'_>, sizes: &[i64]) -> Tensor {
    let elements = flambeau_exec::sample::ElementDistribution { lo: -1.0, hi: 1.0, ..Default::default() };
    flambeau_exec::sample::tensor(g, sizes, DType::F32, &elements)
}

fn net_args(g: &mut Gen<'_>, cell: Cell, packed: bool) -> Vec<IValue> {
    let (time, batch, features, width) = (3, 2, 3, 2);
    let mut of = |sizes: &[i64]| small(g, sizes);
    let x = if packed { of(&[5, features]) } else { of(&[time, batch, features]) };
    let mut args = vec![IValue::Tensor(x)];
    if packed {
        args.push(IValue::Tensor(Tensor::from_vec(vec![2_i64, 2, 1], &[3]).expect("invariant: three sizes")));
    }
    let h = of(&[1, batch, width]);
    args.push(match cell {
        Cell::Lstm => IValue::List(List::from_tensors(vec![h, of(&[1, batch, width])])),
        _ => IValue::Tensor(h),
    });
    let rows = cell.gates() * width;
    args.push(IValue::List(List::from_tensors(vec![
        of(&[rows, features]),
        of(&[rows, width]),
        of(&[rows]),
        of(&[rows]),
    ])));
    args.extend([
        IValue::Bool(true),
        IValue::Int(1),
        IValue::Float(0.0),
        IValue::Bool(false),
        IValue::Bool(false),
    ]);
    if !packed {
        args.push(IValue::Bool(false));
    }
    args
}

fn cell_args(g: &mut Gen<'_>, cell: Cell) -> Vec<IValue> {
    let rows = cell.gates() * 2;
    let mut of = |sizes: &[i64]| small(g, sizes);
    let x = IValue::Tensor(of(&[3, 4]));
    let h = of(&[3, 2]);
    let state = match cell {
        Cell::Lstm => IValue::List(List::from_tensors(vec![h, of(&[3, 2])])),
        _ => IValue::Tensor(h),
    };
    vec![x, state, IValue::Tensor(of(&[rows, 4])), IValue::Tensor(of(&[rows, 2]))]
}

/// Shape of state 0 or 1 (the cell state) in argument `at`.
fn state_dims(cx: &ShapeCx<'_>, cell: Cell, at: usize, which: usize) -> Option<Dims> {
    match cell {
        Cell::Lstm => cx.elements(at)?.get(which)?.as_tensor()?.dims.clone(),
        _ => cx.dims(at).cloned(),
    }
}

/// Shape rules of the new states, which have the shapes of argument `at`.
fn states_like(cell: Cell, at: usize) -> Vec<ResultShapes> {
    let states = if cell == Cell::Lstm { 2 } else { 1 };
    (0..states).map(|which| ResultShapes::dims(move |cx| state_dims(cx, cell, at, which))).collect()
}

/// Shapes of a network's output and states; the states are argument `at`. The output has the concatenated states of
/// both directions per step.
fn net_shapes(cell: Cell, at: usize) -> ResultShapes {
    let output = ResultShapes::dims(move |cx| {
        let mut dims = cx.lead(0, 1)?;
        let width = state_dims(cx, cell, at, 0).and_then(|h| h.last().copied());
        let directions = cx.either(at + 6, Dim::Known(2), Dim::Known(1));
        let width = cx.symbols.mul(width.unwrap_or(Dim::Unknown), directions);
        // Without layers the input is the output.
        let layers = cx.symbols.range(cx.number(at + 3));
        dims.push(if layers.min > 0 { width } else { Dim::Unknown });
        Some(dims)
    });
    ResultShapes::results(std::iter::once(output).chain(states_like(cell, at)))
}

pub(super) fn family() -> Vec<OpDef> {
    let mut defs = Vec::new();
    let rows = [
        ("lstm", "lstm_cell", Cell::Lstm),
        ("gru", "gru_cell", Cell::Gru),
        ("rnn_tanh", "rnn_tanh_cell", Cell::Tanh),
        ("rnn_relu", "rnn_relu_cell", Cell::Relu),
    ];
    for (net, single, cell) in rows {
        let doc = "A recurrent network over sequences: outputs and final states.";
        let sample = |packed: bool| {
            Sample::args(move |g| net_args(g, cell, packed)).tolerance(1e-4, 1e-5).not_differentiable()
        };
        let facts = |packed: bool| {
            move |d: OpDef| {
                let shape = net_shapes(cell, if packed { 2 } else { 1 });
                d.with(Effects::RANDOM).with(shape).with(Dtype::same_as(0)).with(sample(packed))
            }
        };
        defs.extend(op(net, "input", doc).facts(facts(false)).several(move |cx| padded(cx, cell)));
        defs.extend(op(net, "data", doc).facts(facts(true)).several(move |cx| packed(cx, cell)));
        let sample = || Sample::args(move |g| cell_args(g, cell)).tolerance(1e-4, 1e-5).not_differentiable();
        let facts = |d: OpDef| {
            d.with(ResultShapes::results(states_like(cell, 1))).with(Dtype::same_as(0)).with(sample())
        };
        defs.extend(
            op(single, "", "One step of a recurrent network.")
                .facts(facts)
                .several(move |cx| one_step(cx, cell)),
        );
    }
    let doc = "One step of a recurrent network from the pre-activations of its gates.";
    let lstm = sized(&[&[3, 8], &[3, 8], &[3, 2]], super::no_args());
    defs.extend(
        op("_thnn_fused_lstm_cell", "", doc)
            .facts(move |d| {
                d.with(ResultShapes::results([ResultShapes::same_as(2), ResultShapes::same_as(2)]))
                    .with(Dtype::same_as(0))
                    .with(lstm.clone())
            })
            .several(|cx| fused(cx, Cell::Lstm)),
    );
    defs
}

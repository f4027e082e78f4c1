# Functions for the formulas of `recurrent.grads`: recurrent networks.
# A network has a list of states: hidden states, and for an LSTM also cell states.

def rnn_gates(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Optional[Tensor], b_hh: Optional[Tensor]) -> Tensor:
    return F.linear(input, w_ih, b_ih) + F.linear(hx, w_hh, b_hh)

def lstm_step(input: Tensor, h: Tensor, c: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Optional[Tensor], b_hh: Optional[Tensor]) -> Tuple[Tensor, Tensor]:
    return lstm_of_gates(rnn_gates(input, h, w_ih, w_hh, b_ih, b_hh), c)

def fused_lstm(read: Tensor, held: Tensor, c: Tensor, b_read: Optional[Tensor], b_held: Optional[Tensor]) -> Tuple[Tensor, Tensor, Tensor]:
    gates = read + held
    if b_read is not None:
        gates = gates + b_read
    if b_held is not None:
        gates = gates + b_held
    state, cell = lstm_of_gates(gates, c)
    # The workspace for the backward pass is constant.
    return state, cell, gates.detach()

def lstm_of_gates(sums: Tensor, c: Tensor) -> Tuple[Tensor, Tensor]:
    gates = sums.chunk(4, -1)
    cell = gates[1].sigmoid() * c + gates[0].sigmoid() * gates[2].tanh()
    return gates[3].sigmoid() * cell.tanh(), cell

def gru_step(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Optional[Tensor], b_hh: Optional[Tensor]) -> Tensor:
    read = F.linear(input, w_ih, b_ih).chunk(3, -1)
    held = F.linear(hx, w_hh, b_hh).chunk(3, -1)
    reset = (read[0] + held[0]).sigmoid()
    update = (read[1] + held[1]).sigmoid()
    fresh = (read[2] + reset * held[2]).tanh()
    return fresh + update * (hx - fresh)

def cell_step(kind: str, input: Tensor, state: List[Tensor], weights: List[Tensor], has_biases: bool) -> List[Tensor]:
    b_ih: Optional[Tensor] = None
    b_hh: Optional[Tensor] = None
    if has_biases:
        b_ih = weights[2]
        b_hh = weights[3]
    if kind == "lstm":
        # A projection, if any, is the last weight.
        h, c = lstm_step(input, state[0], state[1], weights[0], weights[1], b_ih, b_hh)
        if len(weights) == (5 if has_biases else 3):
            h = torch.matmul(h, weights[-1].t())
        return [h, c]
    if kind == "gru":
        return [gru_step(input, state[0], weights[0], weights[1], b_ih, b_hh)]
    gates = rnn_gates(input, state[0], weights[0], weights[1], b_ih, b_hh)
    return [gates.tanh() if kind == "tanh" else gates.relu()]

def run_layer(kind: str, steps: List[Tensor], state: List[Tensor], weights: List[Tensor], has_biases: bool, backwards: bool) -> Tuple[List[Tensor], List[Tensor]]:
    # One layer in one direction. Later steps may have fewer rows; finished sequences keep their states.
    n = len(steps)
    outputs: List[Tensor] = []
    for i in range(n):
        x = steps[n - 1 - i] if backwards else steps[i]
        rows = x.size(0)
        active: List[Tensor] = []
        for s in state:
            active.append(s.narrow(0, 0, rows))
        fresh = cell_step(kind, x, active, weights, has_biases)
        outputs.append(fresh[0])
        whole: List[Tensor] = []
        for k in range(len(state)):
            rest = state[k].size(0) - rows
            whole.append(fresh[k] if rest == 0 else torch.cat([fresh[k], state[k].narrow(0, rows, rest)], 0))
        state = whole
    if backwards:
        outputs.reverse()
    return outputs, state

def run_layers(kind: str, steps: List[Tensor], hx: List[Tensor], params: List[Tensor], has_biases: bool, num_layers: int, dropout: float, train: bool, bidirectional: bool) -> Tuple[List[Tensor], List[Tensor]]:
    directions = 2 if bidirectional else 1
    each_has = len(params) // (num_layers * directions)
    last: List[List[Tensor]] = []
    for s in hx:
        empty: List[Tensor] = []
        last.append(empty)
    for layer in range(num_layers):
        sides: List[List[Tensor]] = []
        for d in range(directions):
            i = layer * directions + d
            state: List[Tensor] = []
            for s in hx:
                state.append(s.select(0, i))
            weights = params[i * each_has:(i + 1) * each_has]
            outputs, state = run_layer(kind, steps, state, weights, has_biases, d == 1)
            sides.append(outputs)
            for k in range(len(state)):
                last[k].append(state[k])
        if directions == 2:
            joined: List[Tensor] = []
            for t in range(len(steps)):
                joined.append(torch.cat([sides[0][t], sides[1][t]], -1))
            steps = joined
        else:
            steps = sides[0]
        if train and dropout > 0.0 and layer + 1 < num_layers:
            sizes: List[int] = []
            for step in steps:
                sizes.append(step.size(0))
            steps = list(torch.dropout(torch.cat(steps, 0), dropout, True).split(sizes, 0))
    states: List[Tensor] = []
    for parts in last:
        states.append(torch.stack(parts, 0))
    return steps, states

def layers_of_input(kind: str, input: Tensor, hx: List[Tensor], params: List[Tensor], has_biases: bool, num_layers: int, dropout: float, train: bool, bidirectional: bool, batch_first: bool) -> List[Tensor]:
    x = input.transpose(0, 1) if batch_first else input
    steps, states = run_layers(kind, list(x.unbind(0)), hx, params, has_biases, num_layers, dropout, train, bidirectional)
    output = torch.stack(steps, 0)
    return [output.transpose(0, 1) if batch_first else output] + states

def layers_of_packed(kind: str, data: Tensor, batch_sizes: Tensor, hx: List[Tensor], params: List[Tensor], has_biases: bool, num_layers: int, dropout: float, train: bool, bidirectional: bool) -> List[Tensor]:
    sizes: List[int] = batch_sizes.tolist()
    steps, states = run_layers(kind, list(data.split(sizes, 0)), hx, params, has_biases, num_layers, dropout, train, bidirectional)
    return [torch.cat(steps, 0)] + states

def lstm_layers(input: Tensor, hx: List[Tensor], params: List[Tensor], has_biases: bool, num_layers: int, dropout: float, train: bool, bidirectional: bool, batch_first: bool) -> Tuple[Tensor, Tensor, Tensor]:
    out = layers_of_input("lstm", input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first)
    return out[0], out[1], out[2]

def lstm_packed(data: Tensor, batch_sizes: Tensor, hx: List[Tensor], params: List[Tensor], has_biases: bool, num_layers: int, dropout: float, train: bool, bidirectional: bool) -> Tuple[Tensor, Tensor, Tensor]:
    out = layers_of_packed("lstm", data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional)
    return out[0], out[1], out[2]

def plain_layers(kind: str, input: Tensor, hx: Tensor, params: List[Tensor], has_biases: bool, num_layers: int, dropout: float, train: bool, bidirectional: bool, batch_first: bool) -> Tuple[Tensor, Tensor]:
    out = layers_of_input(kind, input, [hx], params, has_biases, num_layers, dropout, train, bidirectional, batch_first)
    return out[0], out[1]

def plain_packed(kind: str, data: Tensor, batch_sizes: Tensor, hx: Tensor, params: List[Tensor], has_biases: bool, num_layers: int, dropout: float, train: bool, bidirectional: bool) -> Tuple[Tensor, Tensor]:
    out = layers_of_packed(kind, data, batch_sizes, [hx], params, has_biases, num_layers, dropout, train, bidirectional)
    return out[0], out[1]


def unpadded(grad: Tensor, batch_sizes: Tensor, batch_first: bool) -> Tensor:
    steps = grad.transpose(0, 1) if batch_first else grad
    rows: List[Tensor] = []
    for step in range(batch_sizes.size(0)):
        rows.append(steps[step, :int(batch_sizes[step])])
    return torch.cat(rows)

def packed_gradient(grad: Tensor, like: Tensor, batch_sizes: Tensor, batch_first: bool) -> Tensor:
    """Rows of one step after the other, put back to their steps; what padding was gets nothing."""
    steps = torch.zeros_like(like)
    if batch_first:
        steps = steps.transpose(0, 1)
    start = 0
    for step in range(batch_sizes.size(0)):
        count = int(batch_sizes[step])
        steps[step, :count] = grad[start:start + count]
        start += count
    return steps.transpose(0, 1) if batch_first else steps

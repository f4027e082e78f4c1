# test run
# The LSTM cell of the overview of TorchScript.
def f(x, hx, cx, w_ih, w_hh, b_ih, b_hh):
    gates = x.mm(w_ih.t()) + hx.mm(w_hh.t()) + b_ih + b_hh
    ingate, forgetgate, cellgate, outgate = gates.chunk(4, 1)
    ingate = ingate.sigmoid()
    forgetgate = forgetgate.sigmoid()
    cellgate = cellgate.tanh()
    outgate = outgate.sigmoid()
    cy = (forgetgate * cx) + (ingate * cellgate)
    hy = outgate * cy.tanh()
    return hy, cy

# run: f(rand([1, 3], f32, 1), rand([1, 2], f32, 2), rand([1, 2], f32, 3), rand([8, 3], f32, 4), rand([8, 2], f32, 5), rand([8], f32, 6), rand([8], f32, 7)) ~= (tensor([[0.016656356, 0.83557177]], f32), tensor([[2.0216677, 1.2210038]], f32))
# run: f(rand([2, 3], f64, 1), rand([2, 2], f64, 2), rand([2, 2], f64, 3), rand([8, 3], f64, 4), rand([8, 2], f64, 5), rand([8], f64, 6), rand([8], f64, 7)) ~= (tensor([[0.016656355667457556, 0.8355717799318765], [-0.01743393112594612, 0.003158381061796819]], f64), tensor([[2.021667565656854, 1.2210038409675692], [-0.9362276086522567, 0.025039003544529773]], f64))
# run: f(rand([2, 3], f32, 1), rand([2, 2], f32, 2), rand([2, 2], f32, 3), rand([8, 4], f32, 4), rand([8, 2], f32, 5), rand([8], f32, 6), rand([8], f32, 7)) raises "mat1 and mat2 shapes cannot be multiplied (2x3 and 4x8)"

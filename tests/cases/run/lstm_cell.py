# test run
# test frontend
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

# == frontend
# def f
# graph(%x.1 : Tensor,
#       %hx.1 : Tensor,
#       %cx.1 : Tensor,
#       %w_ih.1 : Tensor,
#       %w_hh.1 : Tensor,
#       %b_ih.1 : Tensor,
#       %b_hh.1 : Tensor):
#   %24 : int = prim::Constant[value=4]()
#   %25 : int = prim::Constant[value=1]()
#   %9 : Tensor = aten::t(%w_ih.1)
#   %10 : Tensor = aten::mm(%x.1, %9)
#   %13 : Tensor = aten::t(%w_hh.1)
#   %14 : Tensor = aten::mm(%hx.1, %13)
#   %16 : Tensor = aten::add(%10, %14, %25)
#   %19 : Tensor = aten::add(%16, %b_ih.1, %25)
#   %gates.1 : Tensor = aten::add(%19, %b_hh.1, %25)
#   %26 : Tensor[] = aten::chunk(%gates.1, %24, %25)
#   %ingate.1 : Tensor, %forgetgate.1 : Tensor, %cellgate.1 : Tensor, %outgate.1 : Tensor = prim::ListUnpack(%26)
#   %ingate.5 : Tensor = aten::sigmoid(%ingate.1)
#   %forgetgate.5 : Tensor = aten::sigmoid(%forgetgate.1)
#   %cellgate.5 : Tensor = aten::tanh(%cellgate.1)
#   %outgate.5 : Tensor = aten::sigmoid(%outgate.1)
#   %41 : Tensor = aten::mul(%forgetgate.5, %cx.1)
#   %44 : Tensor = aten::mul(%ingate.5, %cellgate.5)
#   %cy.1 : Tensor = aten::add(%41, %44, %25)
#   %49 : Tensor = aten::tanh(%cy.1)
#   %hy.1 : Tensor = aten::mul(%outgate.5, %49)
#   %53 : (Tensor, Tensor) = prim::TupleConstruct(%hy.1, %cy.1)
#   return (%53)

# test run
# Dtypes that operators require of arguments other than their input.
def entropy(x: Tensor, t: Tensor):
    return torch.nn.functional.binary_cross_entropy(x, t)
def weighted(x: Tensor, t: Tensor, w: Tensor):
    return torch.nn.functional.binary_cross_entropy(x, t, w)
def lu_solve(lu: Tensor, pivots: Tensor, b: Tensor):
    return torch.linalg.lu_solve(lu, pivots, b)
def ldl_solve(ld: Tensor, pivots: Tensor, b: Tensor):
    return torch.linalg.ldl_solve(ld, pivots, b)
def rounded(x: Tensor, decimals: int):
    return torch.round(x, decimals=decimals)
def soft_margin(x: Tensor, t: Tensor):
    return torch.nn.functional.soft_margin_loss(x, t)
def apart(x: Tensor, t: Tensor):
    return torch.nn.functional.pairwise_distance(x, t)
def absolute(x: Tensor, t: Tensor):
    return torch.nn.functional.l1_loss(x, t)
def member(x: Tensor, t: Tensor):
    return torch.isin(x, t)
def histogram(x: Tensor, edges: Tensor):
    return torch.histogram(x, edges)
def areas(x: Tensor, places: Tensor):
    return torch.cumulative_trapezoid(x, places)
def margins(x: Tensor, t: Tensor, w: Tensor):
    return torch.nn.functional.multi_margin_loss(x, t, weight=w)

# run: entropy(tensor([0.25, 0.5]), tensor([1.0, 0.0], f64)) raises "Found dtype Double but expected Float"
# run: entropy(tensor([0.25, 0.5]), tensor([1, 0])) raises "Found dtype Long but expected Float"
# run: weighted(tensor([0.5, 0.5]), tensor([1.0, 0.0]), tensor([2, 0])) == tensor(0.6931472, f32)
# run: weighted(tensor([0.5, 0.5]), tensor([1.0, 0.0]), tensor([2.0, 0.0], f64)) == tensor(0.6931472, f32)
# run: lu_solve(tensor([[2.0]]), tensor([1], i32), tensor([[4.0]])) == tensor([[2.0]], f32)
# run: lu_solve(tensor([[2.0]]), tensor([1]), tensor([[4.0]])) raises "torch.linalg.lu_solve: pivots should be a Tensor of scalar type torch.int32"
# run: ldl_solve(tensor([[2.0]]), tensor([1], u8), tensor([[4.0]])) == tensor([[2.0]], f32)
# run: ldl_solve(tensor([[2.0]]), tensor([True]), tensor([[4.0]])) raises "torch.linalg.ldl_solve: Expected pivots to be integers. Got Bool"
# run: ldl_solve(tensor([[2.0]]), tensor([1.0]), tensor([[4.0]])) raises "torch.linalg.ldl_solve: Expected pivots to be integers. Got Float"
# run: rounded(tensor([1, 25]), 0) raises "\"round_cpu\" not implemented for 'Long'"
# run: rounded(tensor([1, 25]), -1) raises "\"round_cpu\" not implemented for 'Long'"
# run: rounded(tensor([1.0, 26.0]), -1) == tensor([0.0, 30.0], f32)
# run: soft_margin(tensor([0.0, 0.0]), tensor([True, False])) == tensor(0.6931472, f32)
# run: soft_margin(tensor([True, False]), tensor([1.0, 0.0])) raises "Negation, the `-` operator, on a bool tensor is not supported."
# run: soft_margin(tensor([1, 2]), tensor([1.0, 0.0])) raises "result type Float can't be cast to the desired output type Long"
# run: apart(tensor([[1.0, 0.0]]), tensor([[True, False]])) raises "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use the `~` or `logical_not()` operator instead."
# run: absolute(tensor([1.0, 0.0]), tensor([True, False])) raises "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use the `~` or `logical_not()` operator instead."
# run: absolute(tensor([True]), tensor([True])) raises "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` operator instead."
# run: member(tensor([1.0, 0.0]), tensor([True])) raises "Unsupported input type encountered for isin(): Bool"
# run: member(tensor([True]), tensor([1])) raises "Unsupported input type encountered for isin(): Bool"
# run: member(tensor([1.0, 0.0]), tensor([1])) == tensor([True, False], bool)
# run: histogram(tensor([1.0, 0.0]), tensor([0.0, 1.0], f64)) raises "torch.histogramdd: input tensor and bins tensors should have the same dtype"
# run: histogram(tensor([1.0, 0.0]), tensor([0.0, 0.5, 1.0])) == (tensor([1.0, 1.0], f32), tensor([0.0, 0.5, 1.0], f32))
# run: areas(tensor([1.0, 2.0, 4.0]), tensor([True, False, True])) raises "cumulative_trapezoid: received a bool input for `x` or `y`, but bool is not supported"
# run: areas(tensor([True, True]), tensor([1.0, 3.0])) raises "cumulative_trapezoid: received a bool input for `x` or `y`, but bool is not supported"
# run: areas(tensor([1.0, 2.0, 4.0]), tensor([0, 1, 3])) == tensor([1.5, 7.5], f32)
# run: margins(tensor([[0.25, 0.75]]), tensor([1]), tensor([1.0, 2.0])) == tensor(0.5, f32)
# run: margins(tensor([[0.25, 0.75]]), tensor([1]), tensor([1.0, 2.0], f64)) raises "expected scalar type Float but found Double"

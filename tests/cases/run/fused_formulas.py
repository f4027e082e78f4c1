# test run
# Operators of several steps, limits, selections, powers and masks in fused groups, with the results of PyTorch 2.6.
def activations(x: Tensor) -> List[Tensor]:
    y = x * 2.0
    return [torch.silu(y) + 0.0, torch.relu6(y) + 0.0, torch.hardswish(y) + 0.0, torch.hardsigmoid(y) + 0.0]

def limited(x: Tensor, low: Tensor) -> List[Tensor]:
    y = x * 2.0
    return [y.clamp(min=0.5) + 0.0, y.clamp(max=0.5) + 0.0, y.clamp(-1.0, 1.0) + 0.0, y.clamp(low) + 0.0, torch.clamp_min(y, 1) + 0.0, torch.clamp_max(y, 1) + 0.0]

def shrunk(x: Tensor) -> List[Tensor]:
    y = x * 2.0
    return [torch.nn.functional.leaky_relu(y, 0.1) + 0.0, torch.nn.functional.hardtanh(y) + 0.0, torch.nn.functional.hardshrink(y) + 0.0, torch.nn.functional.softshrink(y) + 0.0, torch.nn.functional.threshold(y, 0.5, -7.0) + 0.0, torch.nn.functional.threshold(y, 0.1, -7.0) + 0.0]

def masks(x: Tensor, y: Tensor) -> Tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    a, b = x * 2.0, y * 2.0
    return a > b, (a > 0) & (b < 1), ~(a > 0), torch.logical_or(a > 1, b > 1), torch.isnan(a)

def selected(x: Tensor, y: Tensor) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    a, b = x * 2.0, y * 2.0
    return torch.where(a > b, a, b), torch.where(a > b, 1.0, b), torch.where(a > b, a, 2), torch.where(a > b, 1.0, 2.0)

def powers(x: Tensor) -> List[Tensor]:
    y = x * 2.0
    return [y ** 2 + 0.0, y ** 3 + 0.0, y ** 0.5 + 0.0, y ** -0.5 + 0.0, y ** -1 + 0.0, y ** -2 + 0.0, y ** 1.5 + 0.0, torch.square(y) + 0.0]

def sums(x: Tensor, a: Tensor, b: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
    y = x * 2.0
    return torch.addcmul(y, a, b), torch.addcmul(y, a, b, value=0.5), torch.addcdiv(y, a, b, value=2)

def combined(x: Tensor, y: Tensor) -> Tuple[Tensor, Tensor]:
    a, b = x * 2.0, y * 2.0
    return torch.where((a > 0) & (b < 1), a, b), ((a > 0) | (b > 0)) * a

def kept(x: Tensor, n: int) -> Tensor:
    m = x > 0
    for i in range(n):
        x = torch.where(m, torch.exp(x * 0.5) + 1.0, x)
    return x

def layouts(x: Tensor, y: Tensor) -> List[List[int]]:
    a = x + 1.0
    return [(y > a).stride(), torch.where(y > 0, a, y).stride(), (y * 2.0 + a).stride(), (a + y * 2.0).stride(), torch.clamp(y, a).stride()]

def transposed(x: Tensor, y: Tensor) -> List[List[int]]:
    return layouts(x, y.t())

def refused(x: Tensor) -> Tensor:
    return torch.clamp(x * 2.0, max=1e300)

# run: activations(tensor([-4.0, -0.25, 0.0, 0.5, 2.0, nan])) == [tensor([-0.002682801, -0.18877034, 0.0, 0.7310586, 3.928055, nan], f32), tensor([0.0, 0.0, 0.0, 1.0, 4.0, nan], f32), tensor([0.0, -0.20833333, 0.0, 0.6666667, 4.0, nan], f32), tensor([0.0, 0.41666666, 0.5, 0.6666667, 1.0, nan], f32)]
# run: activations(tensor([-4.0, -0.25, 0.0, 0.5, 2.0, nan], f64)) == [tensor([-0.002682801043731825, -0.1887703343990727, 0.0, 0.7310585786300049, 3.928055160151634, nan], f64), tensor([0.0, 0.0, 0.0, 1.0, 4.0, nan], f64), tensor([0.0, -0.20833333333333334, 0.0, 0.6666666666666666, 4.0, nan], f64), tensor([0.0, 0.4166666666666667, 0.5, 0.6666666666666666, 1.0, nan], f64)]
# run: limited(tensor([-4.0, -0.25, 0.25, 0.5, inf, nan]), tensor(0.25)) == [tensor([0.5, 0.5, 0.5, 1.0, inf, nan], f32), tensor([-8.0, -0.5, 0.5, 0.5, 0.5, nan], f32), tensor([-1.0, -0.5, 0.5, 1.0, 1.0, nan], f32), tensor([0.25, 0.25, 0.5, 1.0, inf, nan], f32), tensor([1.0, 1.0, 1.0, 1.0, inf, nan], f32), tensor([-8.0, -0.5, 0.5, 1.0, 1.0, nan], f32)]
# run: limited(tensor([[-4.0, -0.25], [0.25, nan]]), tensor([[0.25], [nan]])) == [tensor([[0.5, 0.5], [0.5, nan]], f32), tensor([[-8.0, -0.5], [0.5, nan]], f32), tensor([[-1.0, -0.5], [0.5, nan]], f32), tensor([[0.25, 0.25], [nan, nan]], f32), tensor([[1.0, 1.0], [1.0, nan]], f32), tensor([[-8.0, -0.5], [0.5, nan]], f32)]
# run: limited(tensor([-4, 3]), tensor(1)) == [tensor([0.5, 6.0], f32), tensor([-8.0, 0.5], f32), tensor([-1.0, 1.0], f32), tensor([1.0, 6.0], f32), tensor([1.0, 6.0], f32), tensor([-8.0, 1.0], f32)]
# run: shrunk(tensor([-4.0, -0.25, 0.0, 0.05, 0.25, 2.0, nan])) == [tensor([-0.8, -0.05, 0.0, 0.1, 0.5, 4.0, nan], f32), tensor([-1.0, -0.5, 0.0, 0.1, 0.5, 1.0, nan], f32), tensor([-8.0, 0.0, 0.0, 0.0, 0.0, 4.0, nan], f32), tensor([-7.5, 0.0, 0.0, 0.0, 0.0, 3.5, nan], f32), tensor([-7.0, -7.0, -7.0, -7.0, -7.0, 4.0, nan], f32), tensor([-7.0, -7.0, -7.0, 0.1, 0.5, 4.0, nan], f32)]
# run: masks(tensor([-4.0, 0.5, 2.0, nan]), tensor([[0.25], [3.0]])) == (tensor([[False, True, True, False], [False, False, False, False]], bool), tensor([[False, True, True, False], [False, False, False, False]], bool), tensor([True, False, False, True], bool), tensor([[False, False, True, False], [True, True, True, True]], bool), tensor([False, False, False, True], bool))
# run: masks(tensor([], f32), tensor([1.0])) == (full([0], 0, bool), full([0], 0, bool), full([0], 0, bool), full([0], 0, bool), full([0], 0, bool))
# run: masks(tensor([1.0, -2.0], f64), tensor([0.5, 0.5], f64)) == (tensor([True, False], bool), tensor([False, False], bool), tensor([False, True], bool), tensor([True, False], bool), tensor([False, False], bool))
# run: masks(tensor([1.0, -2.0], f64), tensor([0.5, 0.5])) == (tensor([True, False], bool), tensor([False, False], bool), tensor([False, True], bool), tensor([True, False], bool), tensor([False, False], bool))
# run: selected(tensor([-4.0, 0.5, 2.0, nan]), tensor([0.25, 0.25, 3.0, 1.0])) == (tensor([0.5, 1.0, 6.0, 2.0], f32), tensor([0.5, 1.0, 6.0, 2.0], f32), tensor([2.0, 1.0, 2.0, 2.0], f32), tensor([2.0, 1.0, 2.0, 2.0], f32))
# run: selected(tensor([1.0, -2.0], f64), tensor([0.5, 0.5], f64)) == (tensor([2.0, 1.0], f64), tensor([1.0, 1.0], f64), tensor([2.0, 2.0], f64), tensor([1.0, 2.0], f32))
# run: powers(tensor([0.0, -1.0, 2.0, 0.125, inf, nan])) == [tensor([0.0, 4.0, 16.0, 0.0625, inf, nan], f32), tensor([0.0, -8.0, 64.0, 0.015625, inf, nan], f32), tensor([0.0, nan, 2.0, 0.5, inf, nan], f32), tensor([inf, nan, 0.5, 2.0, 0.0, nan], f32), tensor([inf, -0.5, 0.25, 4.0, 0.0, nan], f32), tensor([inf, 0.25, 0.0625, 16.0, 0.0, nan], f32), tensor([0.0, nan, 8.0, 0.125, inf, nan], f32), tensor([0.0, 4.0, 16.0, 0.0625, inf, nan], f32)]
# run: sums(tensor([1.0, 2.0]), tensor([0.5, 4.0]), tensor([3.0, -0.0])) == (tensor([3.5, 4.0], f32), tensor([2.75, 4.0], f32), tensor([2.3333333, -inf], f32))
# run: sums(tensor([[1.0, 2.0], [3.0, 4.0]]), tensor([0.5, 4.0]), tensor([[3.0], [-0.0]])) == (tensor([[3.5, 16.0], [6.0, 8.0]], f32), tensor([[2.75, 10.0], [6.0, 8.0]], f32), tensor([[2.3333333, 6.666667], [-inf, -inf]], f32))
# run: combined(tensor([-4.0, 0.25, 2.0, nan]), tensor([0.25, 0.25, 3.0, 1.0])) == (tensor([0.5, 0.5, 6.0, 2.0], f32), tensor([-8.0, 0.5, 4.0, nan], f32))
# run: kept(tensor([-4.0, 0.25, 2.0, nan]), 2) == tensor([-4.0, 3.905409, 7.4182205, nan], f32)
# run: layouts(full([4, 6], 0, f32), full([4, 6], 0, f32)) == [[6, 1], [6, 1], [6, 1], [6, 1], [6, 1]]
# run: layouts(full([4, 6], 0, f32), full([6], 0, f32)) == [[6, 1], [6, 1], [6, 1], [6, 1], [6, 1]]
# run: transposed(full([4, 6], 0, f32), full([6, 4], 0, f32)) == [[1, 4], [1, 4], [1, 4], [6, 1], [1, 4]]
# run: transposed(full([6], 0, f32), full([6, 4], 0, f32)) == [[1, 4], [1, 4], [1, 4], [1, 4], [1, 4]]
# run: refused(tensor([1.0])) raises "value cannot be converted to type float without overflow"
# run: refused(tensor([1.0], f64)) == tensor([2.0], f64)

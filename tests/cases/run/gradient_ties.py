# test run
# Gradients at equal elements, NaN, empty tensors, and of operands of two dtypes.
def of_two(x: Tensor, y: Tensor, z: Tensor):
    weights = torch.arange(1.0, z.numel() + 1.0, dtype=torch.float64).reshape(z.size()).to(z.dtype)
    if z.is_complex():
        weights = torch.complex(torch.real(weights) * 2.0, torch.real(weights).neg())
    given: List[Optional[Tensor]] = [weights]
    return torch.autograd.grad([z], [x, y], given, allow_unused=True)

def odd():
    return torch.tensor([float("nan"), 1.0, 2.0, 1.0], dtype=torch.float64, requires_grad=True)

def even():
    return torch.tensor([1.0, float("nan"), 2.0, 2.0], dtype=torch.float64, requires_grad=True)

def bounded():
    x, y = odd(), even()
    return of_two(x, y, x.clamp(y, y + 1.0)), of_two(x, y, x.clamp_min(y)), of_two(x, y, x.clamp_max(1.0))

def larger(most: bool):
    x, y = odd(), even()
    return of_two(x, y, torch.maximum(x, y) if most else torch.minimum(x, y))

def nothing_to_share():
    x = torch.tensor([[2.0, 2.0, 2.0], [1.0, 3.0, 1.0]], dtype=torch.float64, requires_grad=True)
    return of_two(x, x, x.std(1)), of_two(x, x, torch.std_mean(x[0])[0].reshape([1]))

def diverging():
    x = torch.tensor([0.0, 0.5, 1.0], dtype=torch.float64, requires_grad=True)
    y = torch.tensor([0.0, 0.5, 1.0], dtype=torch.float64, requires_grad=True)
    return of_two(x, y, torch.kl_div(x, y, 0))

def bags():
    x = torch.tensor([[1.0, 2.0], [1.0, 0.0], [0.5, 2.0]], requires_grad=True)
    y = torch.embedding_bag(x, torch.tensor([2, 0, 1, 1]), torch.tensor([0, 3, 4]), False, 2, False, None)[0]
    return of_two(x, x, y)

def scattered(with_self: bool):
    x = torch.tensor([1.0, 2.0, float("nan")], dtype=torch.float64, requires_grad=True)
    y = torch.tensor([1.0, 2.0, 2.0], dtype=torch.float64, requires_grad=True)
    return of_two(x, y, torch.scatter_reduce(x, 0, torch.tensor([0, 1, 1]), y, "amax", include_self=with_self))

def product():
    x = torch.tensor([0.0, 2.0, float("inf")], dtype=torch.float64, requires_grad=True)
    y = torch.tensor([1.0, 0.0, 2.0], dtype=torch.float64, requires_grad=True)
    return of_two(x, y, torch.scatter_reduce(x, 0, torch.tensor([0, 0, 1]), y, "prod", include_self=False))

def segments():
    x = torch.tensor([1.0, 1.0, 2.0, float("nan"), 3.0], dtype=torch.float64, requires_grad=True)
    return of_two(x, x, torch.segment_reduce(x, "max", lengths=torch.tensor([3, 2, 0]), initial=2.0))

def turned():
    x = torch.tensor([0.0, -1.0, 2.0], dtype=torch.float64, requires_grad=True)
    y = torch.tensor([0.25, 0.5, 1.0], dtype=torch.float64, requires_grad=True)
    return of_two(x, y, torch.polar(x, y))

def beyond():
    x = torch.tensor([-1.0, -2.0, 2.0], dtype=torch.float64, requires_grad=True)
    y = torch.tensor([0.0, float("nan"), 1.0], dtype=torch.float64, requires_grad=True)
    return of_two(x, y, torch.acosh(x)), of_two(x, y, torch.special.i1(y)), of_two(x, y, torch.nansum(y, [0], True) / 0.0)

def two_kinds(crossed: bool):
    x = torch.complex(torch.tensor([1.0, 0.0], dtype=torch.float64), torch.tensor([2.0, 0.5], dtype=torch.float64)).requires_grad_()
    y = torch.tensor([2.0, -1.0], dtype=torch.float64, requires_grad=True)
    return of_two(x, y, torch.outer(x, y) if crossed else torch.kron(y, x))

def parts(one: bool):
    x = torch.complex(torch.tensor([1.0, 0.0], dtype=torch.float64), torch.tensor([2.0, 0.5], dtype=torch.float64)).requires_grad_()
    y = torch.tensor([2.0, -1.0], dtype=torch.float64, requires_grad=True)
    z = x * 2.0
    real = torch.real(z)
    real.mul_(y)
    torch.imag(z)[0] = 3.0
    torch.view_as_real(z)[1].sin_()
    return of_two(x, y, real if one else z)

def whole():
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.float64, requires_grad=True)
    z = x * 2.0
    torch.view_as_complex(z).mul_(1j)
    return of_two(x, x, z)

# run: bounded() == ([tensor([0.0, 0.0, 3.0, 0.0], f64), tensor([0.0, 0.0, 0.0, 4.0], f64)], [tensor([0.0, 0.0, 3.0, 0.0], f64), tensor([0.0, 0.0, 0.0, 4.0], f64)], [tensor([0.0, 2.0, 0.0, 4.0], f64), None])
# run: larger(True) == [tensor([1.0, 2.0, 1.5, 0.0], f64), tensor([1.0, 2.0, 1.5, 4.0], f64)]
# run: larger(False) == [tensor([1.0, 2.0, 1.5, 4.0], f64), tensor([1.0, 2.0, 1.5, 0.0], f64)]
# run: nothing_to_share() ~= ([tensor([[0.0, 0.0, 0.0], [-0.5773502691896257, 1.1547005383792512, -0.5773502691896257]], f64), tensor([[0.0, 0.0, 0.0], [-0.5773502691896257, 1.1547005383792512, -0.5773502691896257]], f64)], [tensor([[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]], f64), tensor([[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]], f64)])
# run: diverging() ~= [tensor([-0.0, -1.0, -3.0], f64), tensor([nan, -0.3862943611198906, 0.0], f64)]
# run: bags() == [tensor([[1.0, 0.0], [3.0, 4.0], [0.0, 2.0]], f32), tensor([[1.0, 0.0], [3.0, 4.0], [0.0, 2.0]], f32)]
# run: scattered(True) == [tensor([0.5, 0.6666666666666666, nan], f64), tensor([0.5, 0.6666666666666666, 0.6666666666666666], f64)]
# run: scattered(False) == [tensor([0.0, 0.0, nan], f64), tensor([0.5, 0.6666666666666666, 0.6666666666666666], f64)]
# run: product() == [tensor([0.0, 0.0, nan], f64), tensor([0.0, 1.0, 2.0], f64)]
# run: segments() == [tensor([0.0, 0.0, 1.0, 2.0, 0.0], f64), tensor([0.0, 0.0, 1.0, 2.0, 0.0], f64)]
# run: turned() ~= [tensor([0.0, -2.551479170353085, 0.7174008807851493], f64), tensor([0.0, 3.6728672781975575, -13.339465652903597], f64)]
# run: beyond() ~= ([tensor([inf, 1.1547005383792517, 1.7320508075688776], f64), None], [None, tensor([0.5, 1.0, 2.1027203212785692], f64)], [None, tensor([inf, nan, inf], f64)])
# run: two_kinds(True) ~= [tensor([complex(0.0, 0.0), complex(4.0, -2.0)], c128), tensor([-1.5, -2.0], f64)]
# run: two_kinds(False) ~= [tensor([complex(-2.0, 1.0), complex(0.0, 0.0)], c128), tensor([-1.0, -2.0], f64)]
# run: parts(False) ~= [tensor([complex(8.0, 0.0), complex(-8.0, -2.161209223472559)], c128), tensor([4.0, 0.0], f64)]
# run: parts(True) ~= [tensor([complex(4.0, 0.0), complex(-4.0, 0.0)], c128), tensor([2.0, 0.0], f64)]
# run: whole() ~= [tensor([[4.0, -2.0], [8.0, -6.0]], f64), tensor([[4.0, -2.0], [8.0, -6.0]], f64)]

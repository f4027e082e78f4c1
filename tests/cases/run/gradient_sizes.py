# test run
# Gradients where an operand is empty, has one element or another dtype, or a dimension counts from the end.
def of(y: Tensor, x: Tensor):
    found = torch.autograd.grad([y.sum()], [x])[0]
    assert found is not None
    return found


def norm_of_a_vector():
    x = torch.tensor([3.0, -4.0], requires_grad=True)
    return of(torch.norm_except_dim(x, 2, 0), x)


def narrow_from_the_end():
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    return of(x.narrow(0, -2, 1), x)


def vander_of_one():
    x = torch.tensor([2.0], requires_grad=True)
    return of(torch.vander(x, 3), x)


def trapezoid_of_points():
    y = torch.tensor([1.0, 2.0, 4.0], requires_grad=True)
    x = torch.tensor([[0.0, 1.0, 3.0], [0.0, 2.0, 3.0]], requires_grad=True)
    z = torch.trapezoid(y.expand([2, 3]), x)
    return of(z, y), of(torch.trapezoid(y.expand([2, 3]), x), x)


def solution_of_least_squares():
    a = torch.tensor([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]], dtype=torch.float64, requires_grad=True)
    b = torch.tensor([[1.0], [2.0], [3.0]], dtype=torch.float64)
    x, residuals, _, singular = torch.linalg.lstsq(a, b, None, driver="gelsd")
    flags = [x.requires_grad, residuals.requires_grad, singular.requires_grad]
    return of(x, a), flags


def similarity_of_integers():
    x = torch.tensor([[3.0, 4.0]], requires_grad=True)
    return of(torch.cosine_similarity(x, torch.tensor([[1, 0]])), x)


def loss_without_classes():
    x = torch.zeros([3, 0]).requires_grad_()
    return of(torch.nn.functional.cross_entropy(x, torch.zeros([3, 0])), x).shape


def real_part_of_a_real():
    x = torch.tensor([1.0, 2.0], dtype=torch.bfloat16, requires_grad=True)
    return of(torch.real(x) * 2, x)


def stack_of_dtypes():
    x = torch.tensor([1.0], dtype=torch.float64, requires_grad=True)
    y = torch.tensor([2.0], dtype=torch.bfloat16, requires_grad=True)
    return torch.autograd.grad([torch.stack([x, y]).sum()], [x, y])[1]


# run: norm_of_a_vector() ~= tensor([1.0, -1.0], f32)
# run: narrow_from_the_end() == tensor([0.0, 1.0, 0.0], f32)
# run: vander_of_one() ~= tensor([5.0], f32)
# run: trapezoid_of_points() ~= (tensor([1.5, 3.0, 1.5], f32), tensor([[-1.5, -1.5, 3.0], [-1.5, -1.5, 3.0]], f32))
# run: solution_of_least_squares() ~= (tensor([[-1.0, -1.0], [-0.5, -0.5], [3.0, 0.75]], f64), [True, False, False])
# run: similarity_of_integers() ~= tensor([[0.128, -0.096]], f32)
# run: loss_without_classes() == [3, 0]
# run: real_part_of_a_real() == tensor([2.0, 2.0], bf16)
# run: stack_of_dtypes() == tensor([1.0], bf16)

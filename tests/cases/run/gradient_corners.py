# test run
# Special cases of gradient formulas: the triangle that is read, concatenation with empty tensors, layouts changed in place.
def of_one(x: Tensor, y: Tensor):
    # Weights that differ, so that no place is taken for another.
    weights = torch.arange(1.0, y.numel() + 1.0, dtype=y.dtype).reshape(y.size())
    return torch.autograd.grad([(y * weights).sum()], [x])[0]

def symmetric(upper: bool):
    x = torch.tensor([[2.0, 0.5, 0.25], [0.125, 1.0, -0.5], [0.75, 0.375, -1.0]], dtype=torch.float64, requires_grad=True)
    values, vectors = torch.linalg.eigh(x, UPLO="U" if upper else "L")
    # The sign of an eigenvector is arbitrary.
    return of_one(x, torch.cat([values.unsqueeze(0), vectors * vectors[1].detach().sign()]))

def turning():
    x = torch.tensor([[2.0 + 0j, 1j], [-1j, 1.0 + 0j]], requires_grad=True)
    values, vectors = torch.linalg.eigh(x)
    return torch.autograd.grad([torch.imag(vectors).sum()], [x])[0]

def turning_general():
    x = torch.tensor([[0.0, 1.0], [-1.0, 0.5]], requires_grad=True)
    values, vectors = torch.linalg.eig(x)
    return torch.autograd.grad([torch.imag(vectors).sum()], [x])[0]

def no_difference():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    return of_one(x, torch.diff(x, 0, 0, x[:1], None))

def uncovered(lengths: bool):
    x = torch.arange(1.0, 8.0, dtype=torch.float64).requires_grad_()
    if lengths:
        return of_one(x, torch.segment_reduce(x, "mean", lengths=torch.tensor([2, 0, 3]), unsafe=True, initial=0))
    return of_one(x, torch.segment_reduce(x, "prod", offsets=torch.tensor([0, 1, 4, 4]), unsafe=True))

def no_channels():
    x = torch.zeros([0]).requires_grad_()
    y = torch.batch_norm(x, None, None, None, None, True, 0.1, 1e-5, False)
    return of_one(x, y)

def shown():
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    y = x * 1
    y.as_strided_([2, 2], [1, 2], 1)
    y.mul_(3.0)
    return of_one(x, y)

def shown_unchanged():
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    y = x * 1
    y.as_strided_([2, 3], [3, 1])
    return of_one(x, y)

def shown_of_a_view():
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    y = x * 1
    row = y[0]
    row.as_strided_([2], [1], 3)
    row.mul_(3.0)
    return of_one(x, y)

def turned():
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    y = x * 1
    row = y[0]
    y.t_()
    y.unsqueeze_(0).squeeze_().swapaxes_(0, 1).t_()
    return of_one(x, y), of_one(x, y @ row.unsqueeze(0).t()[:2])

def of_a_leaf():
    x = torch.ones([2, 3]).requires_grad_()
    row = x[0]
    row.unsqueeze_(0)
    return of_one(x, row)

def leaf_in_a_constant():
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    return of_one(x, torch.cat([x[1], x.t().reshape([-1])]))

def strided_copy():
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    return of_one(x, torch.as_strided_copy(x.t(), [2, 2], [1, 1], 1))

def unpacked():
    x = torch.arange(6.0).reshape(3, 2).requires_grad_()
    padded, lengths = torch._pad_packed_sequence(x, torch.tensor([2, 1]), True, 5.0, 3)
    return of_one(x, padded), lengths

def weighed():
    x = torch.arange(6.0, dtype=torch.float64).reshape(1, 3, 2).requires_grad_()
    out, weights = torch._scaled_dot_product_attention_math(x, x, x * 0.5, is_causal=True)
    return of_one(x, torch.cat([out, weights], 2))

def flattened():
    x = torch.arange(4.0).reshape(2, 2).requires_grad_()
    flat = torch._C._nn.flatten_dense_tensors([x, x[0]])
    parts = torch._C._nn.unflatten_dense_tensors(flat * 2.0, [x[1], x])
    return of_one(x, parts[0]), of_one(x, parts[1])

def compared():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    y.eq_(x * 2)
    return of_one(x, y), of_one(x, torch.special.round(x, decimals=1))

def sequences(zero: bool, inside: bool):
    x = torch.linspace(-1.0, 1.0, 24, dtype=torch.float64).reshape(4, 2, 3).requires_grad_()
    # The second is longer than what there is to read.
    target = torch.tensor([[1, 2, 0], [1, 1, 2]])
    if inside:
        losses, states = torch._ctc_loss(x.log_softmax(2), target, [4, 2], [2, 3], 0, zero)
        return torch.autograd.grad([losses[:1 if zero else 2].sum()], [x])[0]
    losses = torch.ctc_loss(x.log_softmax(2), target, [4, 3], [2, 2], 0, 1, zero)
    return of_one(x, losses)

def drawn():
    torch.manual_seed(3)
    x = torch.tensor([0.25, 1.5, 6.0, 30.0], dtype=torch.float64, requires_grad=True)
    y = torch._standard_gamma(x)
    return y.detach(), of_one(x, y)

# run: symmetric(False) ~= tensor([[2.181710039681505, -0.9318212597829387, 1.7529813031394306], [-0.9318212597829385, 0.8787833193305099, 3.65668438976875], [1.7529813031394306, 3.6566843897687504, 2.9395066409879913]], f64)
# run: symmetric(True) ~= tensor([[4.216564731930374, -1.3261947563511076, 0.7944467833271242], [-1.3261947563511076, 1.9094099999014649, 2.1722051426041706], [0.7944467833271238, 2.172205142604171, -0.1259747318318376]], f64)
# run: turning() raises "specified up to multiplication by e^{i phi}"
# run: turning_general() raises "specified up to multiplication by e^{i phi}"
# run: no_difference() == tensor([1.0, 2.0], f32)
# run: uncovered(True) ~= tensor([0.5, 0.5, 1.0, 1.0, 1.0, 0.0, 0.0], f64)
# run: uncovered(False) ~= tensor([1.0, 24.0, 16.0, 12.0, 0.0, 0.0, 0.0], f64)
# run: no_channels() == full([0], 0, f32)
# run: shown() == tensor([[0.0, 3.0, 9.0], [6.0, 12.0, 0.0]], f32)
# run: shown_unchanged() == tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], f32)
# run: shown_of_a_view() == tensor([[1.0, 2.0, 3.0], [12.0, 15.0, 6.0]], f32)
# run: turned() == (tensor([[1.0, 3.0, 5.0], [2.0, 4.0, 6.0]], f32), tensor([[8.0, 26.0, 0.0], [1.0, 2.0, 3.0]], f32))
# run: of_a_leaf() raises "a view of a leaf Variable that requires grad is being used in an in-place operation"
# run: leaf_in_a_constant() == tensor([[4.0, 6.0, 8.0], [6.0, 9.0, 12.0]], f32)
# run: strided_copy() == tensor([[0.0, 1.0, 5.0], [4.0, 0.0, 0.0]], f32)
# run: unpacked() == (tensor([[1.0, 2.0], [7.0, 8.0], [3.0, 4.0]], f32), tensor([2, 1], i64))
# run: weighed() ~= tensor([[[0.4857585505323929, 0.9777892211148775], [3.0308436176607065, 3.538764077102802], [5.500285802674488, 6.000334672649899]]], f64)
# run: flattened() == (tensor([[2.0, 4.0], [0.0, 0.0]], f32), tensor([[6.0, 8.0], [2.0, 4.0]], f32))
# run: compared() == (tensor([0.0, 0.0], f32), tensor([0.0, 0.0], f32))
# run: sequences(False, False) ~= tensor([[[-0.0026339765517754024, -0.08804143813717061, 0.09067541468894602], [0.07620089553375634, -0.16687631022270233, 0.09067541468894598]], [[0.013650855167006058, -0.05049473041649174, 0.03684387524948568], [-0.17379910446624364, 0.08312368977729762, 0.09067541468894602]], [[0.015130319922507202, 0.0341459802867444, -0.049276300209251604], [0.07620089553375634, -0.16687631022270233, 0.09067541468894598]], [[-0.0026339765517754024, 0.08312368977729762, -0.0804897132255222], [0.0, 0.0, 0.0]]], f64)
# run: sequences(True, False) ~= tensor([[[-0.0026339765517754024, -0.08804143813717061, 0.09067541468894602], [0.07620089553375634, -0.16687631022270233, 0.09067541468894598]], [[0.013650855167006058, -0.05049473041649174, 0.03684387524948568], [-0.17379910446624364, 0.08312368977729762, 0.09067541468894602]], [[0.015130319922507202, 0.0341459802867444, -0.049276300209251604], [0.07620089553375634, -0.16687631022270233, 0.09067541468894598]], [[-0.0026339765517754024, 0.08312368977729762, -0.0804897132255222], [0.0, 0.0, 0.0]]], f64)
# run: sequences(True, True) ~= tensor([[[-0.01053590620710161, -0.35216575254868243, 0.3627016587557841], [0.0, 0.0, 0.0]], [[0.05460342066802423, -0.20197892166596695, 0.14737550099794272], [0.0, 0.0, 0.0]], [[0.06052127969002881, 0.1365839211469776, -0.19710520083700642], [0.0, 0.0, 0.0]], [[-0.01053590620710161, 0.33249475910919046, -0.3219588529020888], [0.0, 0.0, 0.0]]], f64)
# run: sequences(False, True) ~= tensor([[[-0.01053590620710161, -0.35216575254868243, 0.3627016587557841], [nan, nan, nan]], [[0.05460342066802423, -0.20197892166596695, 0.14737550099794272], [nan, nan, nan]], [[0.06052127969002881, 0.1365839211469776, -0.19710520083700642], [0.0, 0.0, 0.0]], [[-0.01053590620710161, 0.33249475910919046, -0.3219588529020888], [0.0, 0.0, 0.0]]], f64)
# run: drawn() ~= (tensor([0.512523317322085, 4.075210049183759, 4.521810853293082, 27.444342394202877], f64), tensor([2.3390755127171636, 3.5279803002002437, 2.668548041192966, 3.8460556605289518], f64))

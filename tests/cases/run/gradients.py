# test run
# Gradients requested within a program: the run is recorded, gradients accumulate in leaves or are returned.
def gathers():
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    (w * w).sum().backward()
    first = w.grad
    assert first is not None
    copy = first.clone()
    (w * 3).sum().backward()
    return copy, first, w.grad

def weighted():
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    (w * w).backward(torch.tensor([1.0, 10.0]))
    return w.grad

def several():
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    torch.autograd.backward([w * w, (w * 5).sum()], [torch.tensor([1.0, 10.0]), None])
    return w.grad

def named(unused: bool):
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    v = torch.tensor([3.0, 4.0], requires_grad=True)
    loss = (w * w).sum() if unused else (w * w * v).sum()
    return torch.autograd.grad([loss], [w, v])

def allowed():
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    v = torch.tensor([3.0, 4.0], requires_grad=True)
    return torch.autograd.grad([(w * w).sum()], [w, v], allow_unused=True)

def unwanted():
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    return torch.autograd.grad([(w * w).sum()], [w, torch.ones(2)], allow_unused=True)

def hidden():
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    with torch.no_grad():
        loss = (w * w).sum()
    loss.backward()

def vector():
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    (w * w).backward()

def misfit():
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    (w * w).backward(torch.ones(1))

def descends():
    w = torch.tensor([1.0, 2.0])
    w.requires_grad_()
    for i in range(3):
        loss = ((w - 3.0) ** 2).sum()
        g = torch.autograd.grad([loss], [w])[0]
        if g is not None:
            w = (w - 0.1 * g).detach().requires_grad_()
    return w.detach()

def loss_of(w: Tensor):
    return torch.softmax(torch.relu(w), 0).prod()

def through_a_call():
    w = torch.tensor([1.0, -2.0, 0.5], requires_grad=True)
    loss = loss_of(w)
    loss.backward()
    return w.grad, w.is_leaf, loss.is_leaf

def no_node():
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    (w * w).sum().backward()
    found = torch.autograd.grad([(w * w).sum()], [w])[0]
    grad = w.grad
    assert grad is not None and found is not None
    return grad.requires_grad, found.requires_grad

def whole():
    return torch.tensor([1, 2]).requires_grad_()

# run: gathers() == (tensor([2.0, 4.0], f32), tensor([5.0, 7.0], f32), tensor([5.0, 7.0], f32))
# run: weighted() == tensor([2.0, 40.0], f32)
# run: several() == tensor([7.0, 45.0], f32)
# run: named(False) == [tensor([6.0, 16.0], f32), tensor([1.0, 4.0], f32)]
# run: named(True) raises "appears to not have been used in the graph"
# run: allowed() == [tensor([2.0, 4.0], f32), None]
# run: unwanted() raises "element 1 of the input tensors does not require grad"
# run: hidden() raises "element 0 of tensors does not require grad and does not have a grad_fn"
# run: vector() raises "grad can be implicitly created only for scalar outputs"
# run: misfit() raises "invalid gradient at index 0 - got [1] but expected shape compatible with [2]"
# run: descends() == tensor([1.9760001, 2.4880002], f32)
# run: through_a_call() == (tensor([-0.01505853, 0.0, 0.0022731624], f32), True, False)
# run: no_node() == (False, False)
# run: whole() raises "Only Tensors of floating point and complex dtype can require gradients"

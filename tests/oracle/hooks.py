"""Writes hooks.txt beside this file: the gradients that hooks of tensors get, and their effects.

    python tests/oracle/hooks.py > tests/oracle/hooks.txt

Needs torch 2.6. `tests/tests/programs/hooks.rs` runs the same programs; a line is an event in the order of the walk.
"""

import torch


def leaf(*values):
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


def show(name, tensor):
    print(name, "none" if tensor is None else tensor.tolist())


def noting(name, change=lambda grad: None):
    def hook(grad):
        show(name, grad)
        return change(grad)

    return hook


print("# replaced gradients")
x = leaf(1, 2)
of_x = x.register_hook(noting("x", lambda grad: grad * 2))
y = x * 3
y.register_hook(noting("y, first", lambda grad: grad + 1))
y.register_hook(noting("y, second"))
y.retain_grad()
z = (y * y).sum()
show("gradient of x", torch.autograd.grad(z, [x], retain_graph=True)[0])
show("gradient of y", torch.autograd.grad(z, [y], retain_graph=True)[0])
show("retained", y.grad)
z.backward(retain_graph=True)
show("accumulated", x.grad)
show("retained", y.grad)
of_x.remove()
z.backward()
show("accumulated", x.grad)

print("# writes in place")
x = leaf(1, 2)
y = x * 1
y.register_hook(noting("before"))
y.retain_grad()
y.mul_(3)
y.register_hook(noting("after"))
y.sum().backward()
show("retained", y.grad)
show("accumulated", x.grad)

print("# second order")
x = leaf(1, 2)
y = x * x
y.register_hook(lambda grad: grad * x)
(found,) = torch.autograd.grad(y.sum(), x, create_graph=True)
show("first", found)
show("second", torch.autograd.grad(found.sum(), x)[0])

print("# refused")
for change in (lambda grad: grad.sum(), lambda grad: grad.float()):
    x = leaf(1, 2)
    x.register_hook(change)
    try:
        (x * 2).sum().backward()
    except RuntimeError as error:
        print(str(error).replace(" '<lambda>'", ""))
for refused in (lambda t: t.register_hook(print), lambda t: t.retain_grad()):
    try:
        refused(torch.zeros(1))
    except RuntimeError as error:
        print(error)

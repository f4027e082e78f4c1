# test run
# Gradients of half floats whose squares overflow.
def weights(y: Tensor):
    return torch.arange(1.0, y.numel() + 1.0).reshape(y.size()) / 4.0

def large():
    x = torch.tensor([[300.0, -200.0, 512.0], [1000.0, 40.0, -700.0]], dtype=torch.float64)
    return x.to(torch.float16).requires_grad_()

def of_one(x: Tensor, y: Tensor):
    given: List[Optional[Tensor]] = [weights(y).to(y.dtype)]
    return torch.autograd.grad([y], [x], given)[0]

def layer():
    x = large()
    return of_one(x, torch.layer_norm(x, [3]))

def root():
    x = large()
    return of_one(x, torch.rms_norm(x, [3]))

def group():
    x = large()
    return of_one(x, torch.group_norm(x.unsqueeze(-1), 1))

def batch():
    x = large()
    return of_one(x, torch.batch_norm(x, None, None, None, None, True, 0.1, 1e-5, False))

def power():
    x = large()
    return of_one(x, torch.float_power(x, 3.0) / 1e6), of_one(x, torch.float_power(x, torch.tensor([2.0, 0.5, 2.5])) / 1e6)

# run: layer() ~= tensor([[-0.0009012222, 0.0002682209, 0.0006327629], [0.000013530254, -0.0000308156, 0.000017344952]], f16)
# run: root() ~= tensor([[-0.00006818771, 0.0018892288, 0.00077819824], [0.0014181137, 0.0017728806, 0.0021266937]], f16)
# run: group() ~= tensor([[-0.0009012222, 0.0002682209, 0.0006327629], [0.000013530254, -0.0000308156, 0.000017344952]], f16)
# run: batch() ~= tensor([[5.9604645e-8, -1.5497208e-6, -2.3841858e-7], [-5.9604645e-8, 1.5497208e-6, 2.3841858e-7]], f16)
# run: power() ~= (tensor([[0.06750488, 0.05999756, 0.58984375], [3.0, 0.006000519, 2.2050781]], f16), tensor([[0.00014996529, nan, 0.021728516], [0.0020008087, 1.1920929e-7, nan]], f16))

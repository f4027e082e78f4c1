# test run
# Softmax, normalization and losses, which combine an element with its row.
def soft(x):
    return torch.softmax(x, -1), torch.log_softmax(x, 0, 7), torch.softmax(x, 1, 6)

def layers(x, w, b):
    return torch.layer_norm(x, [3], w, b), torch.group_norm(x.reshape([1, 2, 3]), 2), torch.rms_norm(x, [3], w, 1e-5)

def batch(x, mean, var):
    y = torch.batch_norm(x, None, None, mean, var, True, 0.5, 1e-5, False)
    return y, mean, var

def pairs(x, t):
    return torch.hinge_embedding_loss(x, t, 0.5, 0), torch.kl_div(x, t.abs(), 0), torch.binary_cross_entropy_with_logits(x, t, None, t.abs())

def vectors(a, b):
    return torch.cosine_similarity(a, b, 1), torch.pairwise_distance(a, b, 3.), torch.cdist(a, b, 1.), torch.pdist(a)

def sequence(logs, targets):
    return torch.ctc_loss(logs.log_softmax(2), targets, [4, 3], [2, 1])

# run: soft(rand([2, 3], f32, 1)) ~= (tensor([[0.08949607, 0.19547738, 0.71502656], [0.21909624, 0.12680317, 0.65410054]], f32), tensor([[-1.650610038830676, -0.7493292971134814, -0.9451583542679718], [-0.21311003883067592, -0.6399542971134814, -0.4920333542679718]], f64), tensor([[0.08949607, 0.19547738, 0.71502656], [0.21909624, 0.12680317, 0.65410054]], f32))
# run: soft(tensor([[1.0, -inf], [-inf, -inf]], f32)) ~= (tensor([[1.0, 0.0], [nan, nan]], f32), tensor([[0.0, nan], [-inf, nan]], f64), tensor([[1.0, 0.0], [nan, nan]], f32))
# run: layers(rand([2, 3], f32, 1), rand([3], f32, 2), rand([3], f32, 3)) ~= (tensor([[2.7527146, 1.3274068, -0.7967771], [1.9078833, 0.17394003, -0.77903116]], f32), tensor([[[-1.1120898, -0.20054078, 1.3126305], [-0.2672583, -1.0690334, 1.3362918]]], f32), tensor([[1.2734104, -0.50022835, 0.83399415], [-0.38516176, -0.34102866, 1.2517757]], f32))
# run: batch(rand([3, 2], f32, 1), tensor([0.0, 1.0], f32), tensor([1.0, 2.0], f32)) ~= (tensor([[-1.1624684, -1.1111572], [1.2787153, -0.20202856], [-0.116246834, 1.3131857]], f32), tensor([-0.059895832, 0.7369792], f32), tensor([1.0434977, 1.3907877], f32))
# run: pairs(rand([2, 2], f32, 1), rand([2, 2], f32, 2)) ~= (tensor([[1.609375, 0.5], [0.96875, 0.5]], f32), tensor([[1.109375, 0.8126706], [-0.94232404, -0.21152782]], f32), tensor(0.5472299, f32))
# run: vectors(rand([2, 3], f32, 1), rand([2, 3], f32, 2)) ~= (tensor([0.5087652, 0.375408], f32), tensor([1.6576788, 2.254782], f32), tensor([[1.984375, 2.78125], [3.546875, 3.65625]], f32), tensor([1.5111887], f32))
# run: sequence(rand([4, 2, 3], f32, 1), tensor([[1, 2], [2, 1]], i64)) ~= tensor(1.2665648, f32)

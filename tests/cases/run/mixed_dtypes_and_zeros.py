# test run
# Operands of different dtypes, zeros, and reductions of empty dimensions.


def quotients(z: Tensor):
    return z / 0, z / float("inf"), z / torch.tensor([0.0, 2.0]), torch.reciprocal(z * 0)


def likeness(x: Tensor, y: Tensor):
    return torch.cosine_similarity(x, y, dim=-1)


def logits(x: Tensor, t: Tensor, weight: Optional[Tensor], positive: Optional[Tensor]):
    return torch.binary_cross_entropy_with_logits(x, t, weight, positive, 0)


def chosen(z: Tensor):
    return torch.sort(z, 0), torch.topk(z, 1), torch.mode(z), torch.kthvalue(z, 1), torch.cummax(z, 7)


def lone(z: Tensor):
    return torch.argmax(z, 0), torch.argmin(z, 1, True)


def norms(x: Tensor):
    return [
        torch.norm(x, 2, keepdim=True),
        torch.norm(x, dim=1),
        torch.norm(x, 2, dtype=torch.float64),
        torch.norm(x, 2.5, [0], dtype=torch.float64),
        torch.norm(x, None),
        torch.norm(x, "fro", keepdim=True),
    ]


def crossed(x: Tensor, y: Tensor):
    return torch.cross(x, y)


def running(x: Tensor, out: Tensor):
    return torch.cumsum(x, 0, dtype=torch.float64, out=out)


def found(x: Tensor, out: Tensor):
    return torch.nonzero(x, out=out)


# run: quotients(tensor([complex(1.5, -2.0), complex(0.0, 0.25)], c64)) == (tensor([complex(inf, -inf), complex(nan, inf)], c64), tensor([complex(0.0, -0.0), complex(0.0, 0.0)], c64), tensor([complex(inf, -inf), complex(0.0, 0.125)], c64), tensor([complex(inf, nan), complex(inf, nan)], c64))
# run: likeness(rand([2, 3], f16, 1), rand([2, 3], f16, 2)) == tensor([0.50878906, 0.37524414], f16)
# run: likeness(rand([2, 3], f16, 1), rand([2, 3], bf16, 2)) ~= tensor([0.51073074, 0.37498903], f32)
# run: likeness(rand([2, 3], bf16, 1), rand([2, 3], f64, 2)) ~= tensor([0.507506201249289, 0.37588313359409514], f64)
# run: likeness(iota([2, 3]), rand([2, 3], f32, 2)) ~= tensor([0.69346625, 0.61807317], f32)
# run: logits(rand([3], f16, 1), tensor([0.0, 1.0, 0.5], f64), None, None) ~= tensor([0.28515625, 0.87060546875, 0.80615234375], f64)
# run: logits(rand([3], f32, 1), tensor([0.0, 1.0, 0.5], f16), tensor([1.0, 2.0, 3.0], f32), tensor([2.0], f16)) == tensor([0.2849121, 3.4824219, 2.9003906], f16)
# run: logits(rand([3], f32, 1), tensor([0, 1, 1], i32), None, None) raises "be cast to the desired output type"
# run: chosen(tensor(complex(1.0, 2.0), c64)) == ((tensor(complex(1.0, 2.0), c64), tensor(0, i64)), (tensor(complex(1.0, 2.0), c64), tensor(0, i64)), (tensor(complex(1.0, 2.0), c64), tensor(0, i64)), (tensor(complex(1.0, 2.0), c64), tensor(0, i64)), (tensor(complex(1.0, 2.0), c64), tensor(0, i64)))
# run: lone(full([1, 1], complex(1.0, 2.0), c64)) == (tensor([0], i64), tensor([[0]], i64))
# run: norms(rand([2, 3], f32, 1)) ~= [tensor([[2.1104743]], f32), tensor([1.5089253, 1.4755495], f32), tensor(2.1104742506128806, f64), tensor([1.1301936245855704, 0.3713841008488921, 1.6188622531195709], f64), tensor(2.1104743, f32), tensor([[2.1104743]], f32)]
# run: crossed(rand([2, 3], f32, 1), rand([3], f32, 2)) raises "inputs must have the same number of dimensions"
# run: running(rand([3], f32, 1), full([3], 0.0, f32)) raises "Expected out tensor to have dtype"
# run: running(rand([3], f32, 1), full([3], 0.0, f64)) ~= tensor([-1.109375, -1.4375, -0.46875], f64)
# run: found(iota([3]), full([2, 1], 0.0, f32)) raises "Expected out tensor to have dtype"

# test bytecode run
# In PyTorch's vector loops, f32 remainders are NaN if the quotient is out of range; the rest of a row is exact.
def main(big: float, small: float, n: int):
    x = torch.full([n], big)
    return torch.isnan(torch.remainder(x, small)).sum(), torch.isnan(torch.fmod(x, small)).sum(), torch.isnan(torch.fmod(x.to(torch.bfloat16), small)).sum()

# run: main(1e38, 0.001, 15) == (tensor(0), tensor(0), tensor(0))
# run: main(1e38, 0.001, 50) == (tensor(48), tensor(48), tensor(32))

# == bytecode run
# code(s2, s3, s4): 5 words, 3 values
#    0  v0 = prim::ListConstruct(s4)                 ; s4 boxed: the container holds values
#    1  v0 = aten::full(move v0, s2, None, None, None, None) ; s2 boxed: the kernel takes values
#    2  v1 = aten::remainder.Scalar(v0, s3)          ; s3 boxed: the kernel takes values; v0 counted: used later
#    3  v1 = aten::isnan(move v1)
#    4  v1 = aten::sum(move v1, None)
#    5  v2 = aten::fmod.Scalar(v0, s3)               ; s3 boxed: the kernel takes values; v0 counted: used later
#    6  v2 = aten::isnan(move v2)
#    7  v2 = aten::sum(move v2, None)
#    8  v0 = aten::to.dtype(move v0, 15, False, False, None)
#    9  v0 = aten::fmod.Scalar(move v0, s3)          ; s3 boxed: the kernel takes values
#   10  v0 = aten::isnan(move v0)
#   11  v0 = aten::sum(move v0, None)
#   12  v1 = prim::TupleConstruct(move v1, move v2, move v0)
#   13  Ret (move v1)

# test bytecode run
# Whole vectors of single floats give NaN where the quotient is out of range, what is left over of a row is exact.
def main(big: float, small: float, n: int):
    x = torch.full([n], big)
    return torch.isnan(torch.remainder(x, small)).sum(), torch.isnan(torch.fmod(x, small)).sum(), torch.isnan(torch.fmod(x.bfloat16(), small)).sum()

# run: main(1e38, 0.001, 15) == (tensor(0), tensor(0), tensor(0))
# run: main(1e38, 0.001, 50) == (tensor(48), tensor(48), tensor(32))

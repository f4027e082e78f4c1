# test opt inline,cse,write_numbers,dce
# A number is written into a view without a tensor of it if all dtypes have the number, or a known floating-point dtype. Others may
# overflow, which is an error of a write and none of a conversion.
def main(a, i: int, x: float):
    a[0] = 0.5
    a[1] = -1
    a[2] = x
    b = a.to(torch.float32)
    b[i] = x
    b[3] = 1000
    b[1] = 1e300
    a[4] = True
    c = a.to(torch.float64)
    c[4] = x
    c[3] = 1e300
    return a, b, c

def written(a):
    t = torch.tensor(0.5, dtype=a.dtype, device=a.device)
    t.add_(1)
    a.copy_(t)
    return a


def elsewhere(a):
    a.copy_(torch.tensor(0.5, dtype=a.dtype, device=torch.device("cuda")))
    return a

# run: written(tensor([0.0, 0.0])) == tensor([1.5, 1.5], f32)
# run: elsewhere(tensor([0.0])) raises "cuda"
# run: main(tensor([0.0, 0.0, 0.0, 0.0, 0.0]), 2, 1e10) == (tensor([0.5, inf, 10000000000.0, 1000.0, 1.0], f32), tensor([0.5, inf, 10000000000.0, 1000.0, 1.0], f32), tensor([0.5, inf, 10000000000.0, 1e300, 10000000000.0], f64))
# run: main(tensor([0, 0, 0, 0, 0]), 2, 1.5) == (tensor([0, -1, 1, 0, 1], i64), tensor([0.0, inf, 1.5, 1000.0, 0.0], f32), tensor([0.0, -1.0, 1.0, 1e300, 1.5], f64))


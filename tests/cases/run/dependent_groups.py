# test run
# Sums with common parts form several groups, of which one must precede a member of another.
def f(c, q, g):
    w = c * 6.25 / 8000
    alpha = torch.sin(w) / 2 / q
    a = torch.exp(g / 40 * 2.3)
    t1 = torch.sqrt(a) * 2 * alpha
    t2 = (a - 1) * torch.cos(w)
    t3 = (a + 1) * torch.cos(w)
    b0 = a * (a + 1 - t2 + t1)
    b1 = a * 2 * (a - 1 - t3)
    b2 = a * (a + 1 - t2 - t1)
    a0 = a + 1 + t2 + t1
    a1 = (a - 1 + t3) * -2
    a2 = a + 1 + t2 - t1
    x = (b0 / a0).view([-1]), (b1 / a0).view([-1]), (b2 / a0).view([-1])
    return torch.cat([x[0], x[1], x[2]]), a0 / a0, a1 / a0, a2 / a0

# run: f(tensor([100.0, 2000.0]), tensor([0.5, 0.75]), tensor([3.0, -2.0])) ~= (tensor([1.0130755, 0.8918763, -1.8605653, -0.070378125, 0.8542563, 0.17930104], f32), tensor([1.0, 1.0], f32), tensor([-1.8615525, 0.059025254], f32), tensor([0.86634433, 0.20058075], f32))

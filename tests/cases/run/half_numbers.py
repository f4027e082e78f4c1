# test run
# Elements of f16 and bf16 are multiplied with and divided by numbers, and tensors without dimensions, that are not rounded to their
# dtype; sums and differences round the number first. Results of PyTorch 2.6.
def f(x: Tensor, n: float) -> List[Tensor]:
    return [x * n, n * x, x / n, x + n, x - n, x * torch.tensor(n), x / torch.tensor(n)]

# run: f(tensor([3.0, -0.3], f16), 0.001) == [tensor([0.0030002594, -0.00029993057], f16), tensor([0.0030002594, -0.00029993057], f16), tensor([3000.0, -300.0], f16), tensor([3.0019531, -0.29907227], f16), tensor([2.9980469, -0.3010254], f16), tensor([0.0030002594, -0.00029993057], f16), tensor([3000.0, -300.0], f16)]
# run: f(tensor([3.0, -0.3], bf16), 0.1) == [tensor([0.30078125, -0.030029297], bf16), tensor([0.30078125, -0.030029297], bf16), tensor([30.0, -3.0], bf16), tensor([3.09375, -0.20117188], bf16), tensor([2.90625, -0.40039063], bf16), tensor([0.30078125, -0.030029297], bf16), tensor([30.0, -3.0], bf16)]
# run: f(tensor([0.0, 1.0], f16), 1e10) == [tensor([0.0, inf], f16), tensor([0.0, inf], f16), tensor([0.0, 0.0], f16), tensor([inf, inf], f16), tensor([-inf, -inf], f16), tensor([0.0, inf], f16), tensor([0.0, 0.0], f16)]

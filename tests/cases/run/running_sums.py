# test run
# Cumulative sums in place and into tensors of another dtype.
def cs(x: Tensor, d: Optional[int]):
    x = x.clone()
    y = x.cumsum_(0, dtype=d)
    return x, y
def co(x: Tensor, d: Optional[int]):
    out = torch.empty([3], dtype=torch.float32)
    torch.cumsum(x, 0, dtype=d, out=out)
    return out
# run: cs(tensor([1, 2, 3], f32), None) ~= (tensor([1.0, 3.0, 6.0], f32), tensor([1.0, 3.0, 6.0], f32))
# run: cs(tensor([1, 2, 3], f32), 7) raises "Bad in-place call: input tensor dtype Float and output tensor dtype Double should match"
# run: cs(tensor([1, 2, 3], f32), 3) raises "Bad in-place call: input tensor dtype Float and output tensor dtype Int should match"
# run: cs(tensor([1, 2, 3], i64), 7) raises "Bad in-place call: input tensor dtype Long and output tensor dtype Double should match"
# run: cs(tensor([1, 2, 3], i64), 3) raises "Bad in-place call: input tensor dtype Long and output tensor dtype Int should match"
# run: cs(tensor([1, 2, 3], bf16), 6) raises "Bad in-place call: input tensor dtype BFloat16 and output tensor dtype Float should match"
# run: cs(tensor([1, 2, 3], bf16), 7) raises "Bad in-place call: input tensor dtype BFloat16 and output tensor dtype Double should match"
# run: co(tensor([1, 2, 3], f32), None) ~= tensor([1.0, 3.0, 6.0], f32)
# run: co(tensor([1, 2, 3], f32), 7) raises "Expected out tensor to have dtype Double, but got Float instead"
# run: co(tensor([1, 2, 3], i64), None) ~= tensor([1.0, 3.0, 6.0], f32)
# run: co(tensor([1, 2, 3], i64), 6) ~= tensor([1.0, 3.0, 6.0], f32)
# run: co(tensor([1, 2, 3], bf16), 7) raises "Expected out tensor to have dtype Double, but got Float instead"

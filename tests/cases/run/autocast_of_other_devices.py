# test run
# Mixed precision has no effect for another device or if it is not enabled, and is refused for the CPU.
def other_device(x: Tensor) -> Tensor:
    with torch.cuda.amp.autocast():
        y = x @ x
    with torch.autocast("cuda", dtype=torch.bfloat16):
        return y @ x

def disabled(x: Tensor, enabled: bool) -> Tensor:
    with torch.cuda.amp.autocast(False):
        y = x @ x
    with torch.amp.autocast("cpu", enabled=enabled), torch.cpu.amp.autocast(False):
        return y @ x

# run: other_device(tensor([[1.0, 2.0], [3.0, 4.0]])) == tensor([[37.0, 54.0], [81.0, 118.0]], f32)
# run: disabled(tensor([[1.0, 2.0], [3.0, 4.0]]), False) == tensor([[37.0, 54.0], [81.0, 118.0]], f32)
# run: disabled(tensor([[1.0, 2.0], [3.0, 4.0]]), True) raises "torch.autocast for the CPU is not supported"

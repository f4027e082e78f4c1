# test run
# An operator runs as a task, with arguments by position or name; constants are part of the task.
def f(x: Tensor, n: int):
    sums = torch.jit.fork(torch.add, x, other=x * 2)
    tasks = [torch.jit.fork(torch.mul, x, i) for i in range(n)]
    best = torch.jit.fork(torch.max, x, 0)
    values, places = torch.jit.wait(best)
    return torch.jit.wait(sums), [torch.jit.wait(task) for task in tasks], values, places

# run: f(tensor([1.0, 3.0]), 2) == (tensor([3.0, 9.0], f32), [tensor([0.0, 0.0], f32), tensor([1.0, 3.0], f32)], tensor(3.0, f32), tensor(1, i64))

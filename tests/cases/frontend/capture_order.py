# test source
# A task captures variables in the order in which its body uses them. Statements without effect that mention them earlier
# do not change this order, on which the order of the loop's variables depends.
def f(x: Tensor, y: Tensor, n: int) -> Tensor:
    for i in range(n):
        x, y = y, x
    def difference():
        unused = (x, y, x)
        return torch.sub(y, x)
    task = torch.jit.fork(difference)
    return torch.jit.wait(task)

# run: f(tensor([1.0, 2.0]), tensor([4.0, 8.0]), 1) == tensor([-3.0, -6.0], f32)

# == source
# def f(x: Tensor,
#     y: Tensor,
#     n: int) -> Tensor:
#   y0 = y
#   x0 = x
#   for i in range(n):
#     y0, x0 = x0, y0
#   def __forked_function():
#     return torch.sub(y0, x0)
#   task = fork(__forked_function)
#   return torch.wait(task)

# test source
# A task may run concurrently; a wait raises its error.
def work(n: int) -> int:
    if n < 0:
        raise RuntimeError("negative")
    return n * 2

def f(n: int) -> int:
    futures: List[Future[int]] = []
    for i in range(3):
        futures.append(torch.jit.fork(work, n - i))
    total = 0
    for future in futures:
        total += torch.jit.wait(future)
    return total

# run: f(5) == 24
# run: f(1) raises "negative"

# == source
# def work(n: int) -> int:
#   if torch.lt(n, 0):
#     ops.prim.RaiseException("negative", "builtins.RuntimeError")
#   else:
#     pass
#   return torch.mul(n, 2)
#
# def f(n: int) -> int:
#   futures = annotate(List[Future[int]], [])
#   for i in range(3):
#     _0 = torch.sub(n, i)
#     def __forked_function():
#       return work(_0, )
#     _1 = fork(__forked_function)
#     _2 = torch.append(futures, _1)
#   total = 0
#   for _3 in range(torch.len(futures)):
#     future = futures[_3]
#     total0 = torch.add(total, torch.wait(future))
#     total = total0
#   return total

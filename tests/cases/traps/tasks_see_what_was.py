# test run
# A task captures the values of variables at the fork.
def work(x: Tensor, n: int) -> Tensor:
    return x + n

def f(x: Tensor) -> Tuple[Tensor, Tensor, List[Tensor]]:
    n = 1
    first = torch.jit.fork(work, x, n)
    n = 10
    second: Future[Tensor] = torch.jit.fork(work, x, n)
    both = [first, second]
    results: List[Tensor] = []
    for one in both:
        results.append(torch.jit.wait(one))
    return first.wait(), first.wait(), results

# run: f(tensor([1, 2])) == (tensor([2, 3], i64), tensor([2, 3], i64), [tensor([2, 3], i64), tensor([11, 12], i64)])

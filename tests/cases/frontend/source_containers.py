# test source
# Containers as source: types are written where the members do not say them.
def lists(n: int) -> Tuple[List[int], List[Optional[int]], List[str]]:
    a = [i * 2 for i in range(n)]
    b: List[Optional[int]] = [1, None]
    c: List[str] = []
    c.append("it's \\ \n \"quoted\"")
    return a, b, c

def dicts(k: str) -> Dict[str, float]:
    d: Dict[str, float] = {}
    d[k] = 1.0
    e = {"a": 1e20, "b": 0.1}
    e.update(d)
    return e

def tuples(t: Tuple[int, Tuple[str, float]]) -> Tuple[str, int]:
    a, (b, c) = t
    return b, a + int(c)

def long_expression(x: Tensor) -> Tensor:
    return torch.relu(torch.sigmoid(x) + torch.tanh(x) * torch.exp(x)) - torch.abs(torch.cos(x) / (x + 2))

def values(x: Any) -> int:
    if isinstance(x, int):
        return x
    if isinstance(x, (str, List[int])):
        return 1
    return int(inf > 1.0)

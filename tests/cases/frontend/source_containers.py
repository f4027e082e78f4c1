# test source
# Containers in printed source: types are printed where the members do not determine them.
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

# == source
# def lists(n: int) -> Tuple[List[int], List[Optional[int]], List[str]]:
#   a = annotate(List[int], [])
#   for i in range(n):
#     _0 = torch.append(a, torch.mul(i, 2))
#   b = annotate(List[Optional[int]], [1, None])
#   c = annotate(List[str], [])
#   _1 = torch.append(c, "it\'s \\ \n \"quoted\"")
#   return (a, b, c)
#
# def dicts(k: str) -> Dict[str, float]:
#   d = annotate(Dict[str, float], {})
#   torch._set_item(d, k, 1.)
#   e = {"a": 1e+20, "b": 0.10000000000000001}
#   torch.update(e, d)
#   return e
#
# def tuples(t: Tuple[int, Tuple[str, float]]) -> Tuple[str, int]:
#   a, _0, = t
#   b, c, = _0
#   return (b, torch.add(a, int(c)))
#
# def long_expression(x: Tensor) -> Tensor:
#   _0 = torch.sigmoid(x)
#   _1 = torch.mul(torch.tanh(x), torch.exp(x))
#   _2 = torch.relu(torch.add(_0, _1))
#   _3 = torch.div(torch.cos(x), torch.add(x, 2))
#   return torch.sub(_2, torch.abs(_3))
#
# def values(x: Any) -> int:
#   _0 = isinstance(x, int)
#   if _0:
#     _1 = unchecked_cast(int, x)
#   else:
#     _2 = isinstance(x, (str, List[int]))
#     if _2:
#       _3 = 1
#     else:
#       _3 = int(torch.gt(inf, 1.))
#     _1 = _3
#   return _1

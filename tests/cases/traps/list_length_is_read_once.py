# test source
# A loop over a list reads its length once.
def f() -> List[int]:
    a = [1, 2]
    for x in a:
        a.append(x * 10)
    return a

def shrinks() -> int:
    a = [1, 2, 3]
    n = 0
    for x in a:
        n += a.pop() * 0 + x
    return n

# run: f() == [1, 2, 10, 20]
# run: shrinks() raises "list index out of range"

# == source
# def f() -> List[int]:
#   a = [1, 2]
#   for _0 in range(torch.len(a)):
#     x = a[_0]
#     _1 = torch.append(a, torch.mul(x, 10))
#   return a
#
# def shrinks() -> int:
#   a = [1, 2, 3]
#   n = 0
#   for _0 in range(torch.len(a)):
#     x = a[_0]
#     _1 = torch.add(torch.mul(torch.pop(a), 0), x)
#     n = torch.add(n, _1)
#   return n

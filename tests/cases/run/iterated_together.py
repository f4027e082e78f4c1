# test run
# Loops over three and four sequences of different kinds end with the shortest, also with exits, writes and an index.
from typing import Dict, List


def three(xs: List[int], ys: List[float], s: str) -> List[str]:
    out: List[str] = []
    for x, y, c in zip(xs, ys, s):
        if c == "!":
            break
        if x < 0:
            continue
        out.append(str(x) + str(y) + c)
    return out


def four(xs: List[int], names: List[str], flags: List[bool], d: Dict[str, int]) -> List[str]:
    out: List[str] = []
    for i, (x, name, flag, key) in enumerate(zip(xs, names, flags, d.keys())):
        out.append(str(i) + str(x) + name + str(flag) + key + str(d[key]))
    return out


def five(a: List[int], b: List[int], c: List[int], d: List[int], e: List[int]) -> int:
    n = 0
    for v, w, x, y, z in zip(a, b, c, d, e):
        n = 10 * n + v + w * x - y * z
    return n


def writes(xs: List[int], ys: List[int], zs: List[int]) -> List[int]:
    n = 0
    for x, y, z in zip(xs, ys, zs):
        n += x * y + z
        zs[0] = n
        if n == 14:
            ys.pop()
    return [n, len(ys), zs[0]]


def same(xs: List[int]) -> int:
    n = 0
    for x, y, z in zip(xs, xs, xs):
        n += x * y * z
    return n

# run: three([1, -2, 3, 4, 5], [0.5, 1.5, 2.5, 3.5], "abcde") == ['10.5a', '32.5c', '43.5d']
# run: three([1, 2, 3], [0.5, 1.5, 2.5], "a!c") == ['10.5a']
# run: three([], [0.5], "a") == []
# run: three([1], [], "a") == []
# run: three([1], [0.5], "") == []
# run: four([7, 8, 9], ["x", "y", "z"], [True, False], {"k": 1, "l": 2, "m": 3}) == ['07xTruek1', '18yFalsel2']
# run: five([1, 2], [3, 4], [5, 6], [7, 8], [9, 10, 11]) == -524
# run: writes([1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 6], [0, 0, 0, 0, 0, 0]) == [55, 5, 55]
# run: writes([1, 2, 3], [1, 2, 3], [0, 0, 0]) == [14, 2, 14]
# run: writes([1, 2, 3, 4], [1, 2, 3, 4], [0, 0, 0, 0]) raises "list index out of range"
# run: same([1, 2, 3]) == 36

# test run
# Loops over lists whose lengths they leave as they are fetch elements at their ends; those over lists that grow or shrink do not.


def elements(ints: List[int], floats: List[float], bools: List[bool], words: List[str]):
    s, t, u, v = 0, 0.0, 0, ""
    for i in ints:
        s = s * 3 + i
    for x in floats:
        t = t * 0.5 + x
    for b in bools:
        if b:
            u += 1
    for w in words:
        v = v + w + "."
    return s, t, u, v


def built(n: int):
    found: List[List[int]] = []
    numbers: List[int] = []
    for i in range(n):
        numbers.append(i * i)
    for k in numbers:
        row: List[int] = []
        for m in numbers:
            if m > k:
                break
            if m % 2 == 1:
                continue
            row.append(m - k)
        found.append(row)
    s = 0
    for row in found:
        for i, m in enumerate(row):
            s += i * m
    return found, s


def find(items: List[int], wanted: int):
    for i in range(len(items)):
        if items[i] == wanted:
            return i
    return -1


def not_in(items: List[str], known: Dict[str, int]):
    s = 0
    for item in items:
        if item not in known:
            s += 1
    return s


def grows(items: List[int]):
    s = 0
    for i in items:
        s += i
        if s < 100:
            items.append(i + 1)
    return s, items


def shrinks(items: List[int]):
    s = 0
    for i in items:
        s += i
        items.pop()
    return s


def changes(items: List[int]):
    s = 0
    for i in range(len(items)):
        items[-1 - i] = items[i] + s
        s += items[i]
    return s, items


def other_name(items: List[int], n: int):
    same = items if n > 0 else [n]
    s = 0
    for i in items:
        s += i
        same.append(s)
        if s > 50:
            break
    return s, len(items)


def outer(items: List[int], n: int):
    count = len(items)
    s = 0
    for k in range(n):
        for i in range(count):
            s += items[i]
        items.pop()
    return s


def outer_unchanged(items: List[int], n: int):
    count = len(items)
    s = 0
    for k in range(n):
        for i in range(count):
            s += items[i] * k
    return s


def two_limits(items: List[int], n: int):
    i = 0
    s = 0
    count = len(items)
    go = count > 0
    while go:
        s += items[i]
        i += 1
        go = i < count and i < n
    return s, i


def pairs(a: List[float], b: List[int]):
    s = 0.0
    for x, y in zip(a, b):
        s += x * y
    for i, x in enumerate(a):
        s -= x * i
        s = i - s / (i + 1)
    return s


def constants():
    s = 0
    text = ""
    for i in [3, 1, 4, 1, 5]:
        s = s * 10 + i
    for word in ["a", "b", "c"]:
        text += word
    return s, text


def tensors(xs: List[Tensor]):
    s = 0
    for x in xs:
        s += int(x)
    for x in xs:
        x.add_(1)
    return s, xs


def keys(known: Dict[str, int]):
    s = ""
    for k in known.keys():
        s += k
    for k, v in known.items():
        s += k + str(v)
    for c in s:
        if c == "b":
            break
        s += c
    return s

def halves(a: List[float], b: List[bool], c: List[int]):
    for i in range(len(a)):
        a[i] = a[i] / 2
    for i in range(len(b)):
        b[i] = not b[i]
    for i in range(1, len(c)):
        c[i] = c[i] + c[i - 1]
    return a, b, c


def skips(items: List[int]):
    for i in range(len(items)):
        if items[i] % 2 == 0:
            continue
        if items[i] > 8:
            break
        items[i] = items[i] * 10
    return items


def ahead(items: List[int]):
    s = 0
    for i in range(len(items)):
        s += items[i]
        if i + 1 < len(items):
            items[i + 1] += s
        items[i] = s
    return items


def other_list(a: List[int], b: List[int]):
    for i in range(len(a)):
        b[i] = a[i]
    same = a
    for i in range(len(a)):
        same[i] = a[i] + 1
    return a, b


# run: elements([1, 2, 3], [0.5, 1.5], [True, False, True], ["x", "", "yz"]) == (18, 1.75, 2, 'x..yz.')
# run: elements([], [], [], []) == (0, 0.0, 0, '')
# run: built(0) == ([], 0)
# run: built(5) == ([[0], [-1], [-4, 0], [-9, -5], [-16, -12, 0]], -17)
# run: find([4, 5, 6], 6) == 2
# run: find([4, 5, 6], 7) == -1
# run: find([], 7) == -1
# run: not_in(["a", "b", "a"], {"a": 1}) == 1
# run: grows([5, 6]) == (11, [5, 6, 6, 7])
# run: shrinks([1]) == 1
# run: shrinks([1, 2, 3]) raises "list index out of range"
# run: changes([1, 2, 3, 4]) == (7, [7, 6, 3, 1])
# run: other_name([1, 2, 3], 1) == (6, 6)
# run: other_name([1, 2, 3], 0) == (6, 3)
# run: outer([1, 2, 3], 1) == 6
# run: outer([1, 2, 3], 2) raises "list index out of range"
# run: outer_unchanged([1, 2, 3], 3) == 18
# run: two_limits([1, 2, 3], 2) == (3, 2)
# run: two_limits([1, 2, 3], 9) == (6, 3)
# run: two_limits([], 9) == (0, 0)
# run: pairs([0.5, 1.5, 2.5], [3, 4]) == 1.8333333333333333
# run: pairs([], [3, 4]) == 0.0
# run: constants() == (31415, 'abc')
# run: keys({"a": 2, "b": 1}) == 'aba2b1a'
# run: keys({}) == ''
# run: tensors([tensor([2.0]), tensor([3.0])]) == (5, [tensor([3.0]), tensor([4.0])])
# run: halves([1.0, 3.0], [True, False, True], [1, 2, 3, 4]) == ([0.5, 1.5], [False, True, False], [1, 3, 6, 10])
# run: halves([], [], []) == ([], [], [])
# run: halves([1.0], [True], [7]) == ([0.5], [False], [7])
# run: skips([2, 3, 4, 5, 9, 7]) == [2, 30, 4, 50, 9, 7]
# run: skips([3]) == [30]
# run: ahead([1, 2, 3]) == [1, 4, 11]
# run: other_list([1, 2], [0, 0, 5]) == ([2, 3], [1, 2, 5])
# run: other_list([1, 2], [0]) raises "list index out of range"

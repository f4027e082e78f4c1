# test run
# Integers and strings as keys: instructions for numbers as values, kernels for missing keys and for other values.
def counts(keys: List[int]):
    d: Dict[int, int] = {}
    for k in keys:
        if k in d:
            d[k] += 1
        else:
            d[k] = 1
    return d

def shares(words: List[str]):
    d: Dict[str, float] = {}
    for w in words:
        if w not in d:
            d[w] = 0.0
        d[w] = d[w] + 1.0 / float(len(words))
    return d

def flags(n: int):
    d: Dict[int, bool] = {}
    for i in range(n):
        d[i // 2] = i % 2 == 1
    return d

def grows(n: int):
    d: Dict[int, int] = {}
    e: Dict[str, int] = {}
    for i in range(n):
        d[i * 4294967296] = i
        e[str(i)] = i
    s = 0
    for i in range(n):
        s += d[i * 4294967296] - e[str(i)] + len(d) - len(e)
    return s, len(d)

def missing(keys: List[int]):
    d = {1: 2}
    s = 0
    for k in keys:
        s += d[k]
    return s

def missing_word(words: List[str]):
    d = {"a": 2}
    s = 0
    for w in words:
        s += d[w]
    return s

def given(d: Dict[int, int], n: int):
    e = d
    for i in range(n):
        d[i] = i
        e[i] += 1
    return d

def made(n: int):
    d: Dict[str, int] = {}
    for i in range(n):
        k = "k" + str(i % 3)
        d[k] = d[k] + i if k in d else i
    return d

def removed(n: int):
    d: Dict[int, int] = {}
    for i in range(n):
        d[i] = i
        if i % 3 != 0:
            del d[i]
    return list(d.keys()), list(d.values())

# run: counts([3, -1, 3, 0, 3, -1]) == {3: 3, -1: 2, 0: 1}
# run: shares(["a", "", "a", "b"]) == {"a": 0.5, "": 0.25, "b": 0.25}
# run: flags(5) == {0: True, 1: True, 2: False}
# run: grows(1500) == (0, 1500)
# run: missing([1, 1]) == 4
# run: missing([1, 0]) raises "KeyError: 0"
# run: missing_word(["a", "b"]) raises "KeyError: b"
# run: given({0: 7}, 3) == {0: 1, 1: 2, 2: 3}
# run: made(7) == {"k0": 9, "k1": 5, "k2": 7}
# run: removed(7) == ([0, 3, 6], [0, 3, 6])

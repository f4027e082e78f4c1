# test run
# Loops over what a dictionary contains read the dictionary, unless it is written meanwhile or the list has other uses.


def mixed(d: Dict[str, int], e: Dict[int, List[str]]) -> List[str]:
    out: List[str] = []
    for k in d:
        out.append(k)
    for k, v in d.items():
        if v > 2:
            break
        out.append(k + str(v))
    for i, (k, v) in enumerate(d.items()):
        out.append(k + str(v + i))
    for k, w in zip(d.keys(), e.values()):
        out.append(k + str(len(w)))
    for key, words in e.items():
        for w in words:
            out.append(w + str(key))
        words.append("new")
    for v in d.values():
        if v % 2 == 0:
            continue
        out.append(str(v))
    for k in d:
        d[k] += 1
    for k, v in d.items():
        d[k + "x"] = v
    for k, v in d.items():
        out.append(k + str(v))
    ks = d.keys()
    out.append(str(len(ks)) + ks[-1] + ks[0])
    del d["a"]
    for k in d:
        out.append(k)
    n = 0
    for i in range(3):
        for k in d:
            n += len(k) * i
        d["z" + str(i)] = i
    out.append(str(n))
    return out


def past(d: Dict[str, int], i: int) -> str:
    return d.keys()[i] + str(d.values()[i])


def local(n: int) -> int:
    d: Dict[int, float] = {}
    for i in range(n):
        d[i * 7 % 13] = i * 0.5
    s = 0.0
    for k, v in d.items():
        s += k * v
    t = 0
    for k in d:
        if d[k] > 1.0:
            t += k
    return int(s) + t

# run: mixed({"a": 1}, {}) == ['a', 'a1', 'a1', '1', 'a2', 'ax2', '2axa', 'ax', '16']
# run: mixed({"a": 1, "b": 4, "c": 3}, {5: ["x", "y"], 6: []}) == ['a', 'b', 'c', 'a1', 'a1', 'b5', 'c5', 'a2', 'b0', 'x5', 'y5', '1', '3', 'a2', 'b5', 'c4', 'ax2', 'bx5', 'cx4', '6cxa', 'b', 'c', 'ax', 'bx', 'cx', '34']
# run: mixed({"b": 2, "a": 2}, {1: ["q"]}) == ['b', 'a', 'b2', 'a2', 'b2', 'a3', 'b1', 'q1', 'b3', 'a3', 'bx3', 'ax3', '4axb', 'b', 'bx', 'ax', '25']
# run: past({"a": 1, "b": 2}, 1) == 'b2'
# run: past({"a": 1, "b": 2}, -2) == 'a1'
# run: past({"a": 1}, 1) raises "list index out of range"
# run: past({}, 0) raises "list index out of range"
# run: local(0) == 0
# run: local(9) == 139

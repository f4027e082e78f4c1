# test run
# Dictionaries keep the order of insertion.
def f(keys: List[str]):
    d: Dict[str, int] = {}
    for k in keys:
        if k in d:
            d[k] += 1
        else:
            d[k] = 1
    return d, len(d), list(d.keys())

def missing(d: Dict[str, int], k: str):
    return d[k]

# run: f(["b", "a", "b"]) == ({"b": 2, "a": 1}, 2, ["b", "a"])
# run: f([]) == ({}, 0, [])
# run: missing({"a": 1}, "a") == 1
# run: missing({"a": 1}, "b") raises "KeyError: b"

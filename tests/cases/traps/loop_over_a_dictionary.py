# test run
# A loop over a dictionary iterates over its keys, which are read before the loop.
def f(d: Dict[str, int]) -> Tuple[List[str], int]:
    keys: List[str] = []
    for k in d:
        keys.append(k)
        d[k + k] = 1
    return keys, len(d)

# run: f({"b": 1, "a": 2}) == (["b", "a"], 4)

# test run
# A loop over a dictionary goes over its keys, which were read before it.
def f(d: Dict[str, int]) -> Tuple[List[str], int]:
    keys: List[str] = []
    for k in d:
        keys.append(k)
        d[k + k] = 1
    return keys, len(d)

# run: f({"b": 1, "a": 2}) == (["b", "a"], 4)

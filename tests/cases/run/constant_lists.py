# test run
# Lists that become constants and are only read.
def counts(n: int):
    names = ["a", "b", "c"]
    d: Dict[str, int] = {"a": 0, "b": 0, "c": 0}
    for i in range(n):
        k = names[i % 3]
        d[k] = d[k] + i
    return d, names[-1], [0.5, 1.5][n % 2]

# run: counts(4) == ({"a": 3, "b": 1, "c": 2}, "c", 0.5)
# run: counts(0) == ({"a": 0, "b": 0, "c": 0}, "c", 0.5)

def element(i: int):
    return ["a", "b"][i], [True, False][i]

# run: element(-2) == ("a", True)
# run: element(2) raises "list index out of range"
# run: element(-3) raises "list index out of range"

# A list that the caller gets is not only read.
def given(i: int):
    names = ["a", "b"]
    return names, names[i]

# run: given(1) == (["a", "b"], "b")

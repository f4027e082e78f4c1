# test run
# Keywords that `dict` and `enumerate` accept.
def from_pairs() -> Dict[str, int]:
    return dict([("a", 1)], b=2)

def numbered(a: List[int]) -> int:
    n = 0
    for i, x in enumerate(a, start=2):
        n += i * x
    return n

# run: from_pairs() == {"a": 1, "b": 2}
# run: numbered([5, 6]) == 28

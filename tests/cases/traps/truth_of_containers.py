# test run
# Containers and strings are true if they are not empty.
def f(s: str, a: List[int], d: Dict[str, int]) -> Tuple[bool, bool, bool]:
    return bool(s), not a, True if d else False

# run: f("", [], {}) == (False, True, False)
# run: f("a", [0], {"a": 0}) == (True, False, True)

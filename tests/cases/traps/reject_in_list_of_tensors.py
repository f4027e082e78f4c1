# test frontend
# `in` compares with `==`, which is no truth value for tensors.
def f(x: Tensor, a: List[Tensor]) -> bool:
    return x in a  # error: are not valid

def g(a: Dict[str, int], b: Dict[str, int]) -> bool:
    return a == b  # error: are not valid

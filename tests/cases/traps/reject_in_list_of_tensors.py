# test frontend
# `in` compares with `==`, whose result for tensors is not a bool.
def f(x: Tensor, a: List[Tensor]) -> bool:
    return x in a  # error: are not valid

def g(a: Dict[str, int], b: Dict[str, int]) -> bool:
    return a == b  # error: are not valid

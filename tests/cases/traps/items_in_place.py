# test run
# `d[k] += v` writes into the value if it is a tensor, and is an assignment for numbers; PyTorch decides by the type of the
# key, and assigns a new tensor.
def numbers(d: Dict[str, int]) -> Dict[str, int]:
    d["a"] += 5
    d["a"] *= 2
    return d

def tensors(d: Dict[str, Tensor]) -> Tuple[Tensor, Tensor]:
    old = d["a"]
    d["a"] += 1
    return old, d["a"]

def lists(a: List[int]) -> List[int]:
    a[0] += 5
    a[-1] *= 3
    return a

# run: numbers({"a": 1}) == {"a": 12}
# run: tensors({"a": tensor([1, 2])}) == (tensor([2, 3], i64), tensor([2, 3], i64))
# run: lists([1, 2]) == [6, 6]

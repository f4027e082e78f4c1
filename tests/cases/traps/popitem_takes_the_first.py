# test source
# `popitem` takes the entry that was inserted first; `keys` is a copy.
def f() -> Tuple[Tuple[str, int], List[str]]:
    d = {"a": 1, "b": 2}
    keys = d.keys()
    d["c"] = 3
    return d.popitem(), keys

# run: f() == (("a", 1), ["a", "b"])

# == source
# def f() -> Tuple[Tuple[str, int], List[str]]:
#   d = {"a": 1, "b": 2}
#   keys = torch.keys(d)
#   torch._set_item(d, "c", 3)
#   return (torch.popitem(d), keys)

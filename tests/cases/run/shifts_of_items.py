# test run
# An augmented shift of a tensor's item works in place on the view; operators without an in-place form copy into it.
def shift(t: Tensor, i: int):
    t[i] <<= 1
    t[i] >>= 2
    t[i] |= 1
    return t

# run: shift(tensor([5, 9, 3]), 1) == tensor([5, 5, 3], i64)

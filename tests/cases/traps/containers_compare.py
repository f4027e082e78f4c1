# test source
# Lists and tuples of one type compare element by element.
def f() -> Tuple[bool, bool, bool]:
    return (1, 2) == (1, 2), [1, 2] == [1, 3], [1.0] != [1.0]

def g() -> List[int]:
    return [1, 2] * 2

# run: f() == (True, False, False)
# run: g() == [1, 2, 1, 2]

# == source
# def f() -> Tuple[bool, bool, bool]:
#   _0 = (torch.eq([1, 2], [1, 2]), torch.eq([1, 2], [1, 3]), torch.ne([1.], [1.]))
#   return _0
#
# def g() -> List[int]:
#   return torch.mul([1, 2], 2)

# test frontend
# An element of a tuple is not deleted, also if all elements have one type and the tuple could be taken as a list.
def f(t: Tuple[int, int]) -> Tuple[int, int]:
    del t[0]  # error: 'Tuple[int, int]' does not support deletion
    return t

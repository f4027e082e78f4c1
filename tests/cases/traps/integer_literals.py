# test source
# The smallest integer can be written as a literal.
def f() -> Tuple[int, int]:
    return -9223372036854775808, 9223372036854775807

# run: f() == (-9223372036854775808, 9223372036854775807)

# == source
# def f() -> Tuple[int, int]:
#   _0 = (-9223372036854775808, 9223372036854775807)
#   return _0

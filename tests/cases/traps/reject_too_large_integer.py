# test frontend
# An integer has 64 bits; so has its negative.
def f() -> int:
    return 9223372036854775808  # error: does not fit

# test frontend
# An integer has 64 bits.
def f() -> int:
    return 9223372036854775808  # error: is out of range

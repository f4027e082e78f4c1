# test frontend
# Strings do not repeat.
def f(s: str) -> str:
    return s * 2  # error: are not valid

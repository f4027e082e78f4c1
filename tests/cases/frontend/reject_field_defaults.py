# test frontend
# The default of a named tuple's field must have the type of the field.
class Wrong(NamedTuple):
    n: int = "a"  # error: Expected a default value of type int

def f() -> Wrong:
    return Wrong()

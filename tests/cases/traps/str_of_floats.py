# test source
# Floats print with all digits and a point; strings in containers print bare.
def f(x: float) -> str:
    return str(x)

def g() -> str:
    return str(["a", "b"])

# run: f(1.0) == "1."
# run: f(0.1) == "0.10000000000000001"
# run: g() == "[a, b]"

# == source
# def f(x: float) -> str:
#   return str(x)
#
# def g() -> str:
#   return str(["a", "b"])

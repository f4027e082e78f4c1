# test frontend
# `ceil` and `floor` give integers, so they raise where there is none; `int` gives the smallest one.
def ceil(x: float) -> int:
    return math.ceil(x)

def floor(x: float) -> int:
    return math.floor(x)

def cast(x: float) -> int:
    return int(x)

# run: ceil(2.25) == 3
# run: ceil(nan) raises "cannot convert float NaN to integer"
# run: ceil(1e300) raises "cannot convert float 1e300 to integer"
# run: floor(-2.25) == -3
# run: floor(inf) raises "cannot convert float inf to integer"
# run: cast(-2.75) == -2
# run: cast(1e300) == -9223372036854775808

# == frontend
# def ceil
# graph(%x.1 : float):
#   %2 : int = aten::ceil(%x.1)
#   return (%2)
#
# def floor
# graph(%x.1 : float):
#   %2 : int = aten::floor(%x.1)
#   return (%2)
#
# def cast
# graph(%x.1 : float):
#   %2 : int = aten::Int(%x.1)
#   return (%2)

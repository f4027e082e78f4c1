# test frontend
# A loop without uses stays if its condition is computed in its body or a carried value depends on itself,
# because it may fail or not terminate. All other loops without uses are removed with the errors in them.
def counts(x: List[int]) -> int:
    i = 0
    while x[i] > 0:
        i += 1
    return 1

def sums(x: List[int]) -> int:
    y = 0
    for i in range(3):
        y = y + x[i]
    return 1

def inner(x: List[int]) -> int:
    for i in range(2):
        k = 0
        while x[k] > 0:
            k += 1
    return 1

def finds(x: List[int], a: int) -> int:
    for i in range(3):
        if x[i] > a:
            break
    return 1

def swaps(x: List[int], a: int, b: int) -> int:
    for i in range(3):
        a, b = b, a
    return 1

def last(x: List[int]) -> int:
    y = 0
    for i in range(3):
        y = x[i]
    return 1

def chain(x: List[int]) -> int:
    y, z = 0, 0
    for i in range(3):
        z = y * 2
        y = x[i]
    return 1

def nothing(x: List[int]) -> int:
    for i in range(x[9]):
        pass
    return 1

# run: counts([0]) == 1
# run: counts([1]) raises "list index out of range"
# run: sums([1, 2, 3]) == 1
# run: sums([1, 2]) raises "list index out of range"
# run: inner([]) raises "list index out of range"
# run: finds([1, 5], 4) == 1
# run: finds([1, 5], 6) raises "list index out of range"
# run: swaps([], 1, 2) == 1
# run: last([]) == 1
# run: chain([]) == 1
# run: nothing([]) == 1

# == frontend
# def counts
# graph(%x.1 : int[]):
#   %i.1 : int = prim::Constant[value=0]()
#   %2 : int = prim::Constant[value=9223372036854775807]()
#   %9 : int = prim::Constant[value=1]()
#   %18 : int = aten::__getitem__(%x.1, %i.1)
#   %19 : bool = aten::gt(%18, %i.1)
#   %i : int = prim::Loop(%2, %19, %i.1)
#     block0(%7 : int, %i.11 : int):
#       %i.7 : int = aten::add(%i.11, %9)
#       %5 : int = aten::__getitem__(%x.1, %i.7)
#       %6 : bool = aten::gt(%5, %i.1)
#       -> (%6, %i.7)
#   return (%9)
#
# def sums
# graph(%x.1 : int[]):
#   %5 : bool = prim::Constant[value=1]()
#   %y.1 : int = prim::Constant[value=0]()
#   %2 : int = prim::Constant[value=3]()
#   %12 : int = prim::Constant[value=1]()
#   %y : int = prim::Loop(%2, %5, %y.1)
#     block0(%i.1 : int, %y.9 : int):
#       %10 : int = aten::__getitem__(%x.1, %i.1)
#       %y.5 : int = aten::add(%y.9, %10)
#       -> (%5, %y.5)
#   return (%12)
#
# def inner
# graph(%x.1 : int[]):
#   %4 : bool = prim::Constant[value=1]()
#   %1 : int = prim::Constant[value=2]()
#   %6 : int = prim::Constant[value=0]()
#   %7 : int = prim::Constant[value=9223372036854775807]()
#   %14 : int = prim::Constant[value=1]()
#    = prim::Loop(%1, %4)
#     block0(%i : int):
#       %23 : int = aten::__getitem__(%x.1, %6)
#       %24 : bool = aten::gt(%23, %6)
#       %k : int = prim::Loop(%7, %24, %6)
#         block0(%12 : int, %k.9 : int):
#           %k.5 : int = aten::add(%k.9, %14)
#           %10 : int = aten::__getitem__(%x.1, %k.5)
#           %11 : bool = aten::gt(%10, %6)
#           -> (%11, %k.5)
#       -> (%4)
#   return (%14)
#
# def finds
# graph(%x.1 : int[],
#       %a.1 : int):
#   %28 : int = prim::Constant[value=9223372036854775807]()
#   %25 : int = prim::Constant[value=0]()
#   %5 : bool = prim::Constant[value=1]()
#   %2 : int = prim::Constant[value=3]()
#   %12 : int = prim::Constant[value=1]()
#   %14 : bool = prim::Constant[value=0]()
#   %27 : bool = aten::gt(%2, %25)
#   %29 : int = prim::Loop(%28, %27, %25)
#     block0(%i.1 : int, %30 : int):
#       %9 : int = aten::__getitem__(%x.1, %30)
#       %11 : bool = aten::gt(%9, %a.1)
#       %24 : bool = prim::If(%11)
#         block0():
#           -> (%14)
#         block1():
#           -> (%5)
#       %31 : int = aten::add(%30, %12)
#       %32 : bool = aten::lt(%31, %2)
#       %33 : bool = aten::__and__(%32, %24)
#       -> (%33, %31)
#   return (%12)
#
# def swaps
# graph(%x : int[],
#       %a.1 : int,
#       %b.1 : int):
#   %13 : int = prim::Constant[value=1]()
#   return (%13)
#
# def last
# graph(%x.1 : int[]):
#   %10 : int = prim::Constant[value=1]()
#   return (%10)
#
# def chain
# graph(%x.1 : int[]):
#   %16 : int = prim::Constant[value=1]()
#   return (%16)
#
# def nothing
# graph(%x.1 : int[]):
#   %8 : int = prim::Constant[value=1]()
#   return (%8)

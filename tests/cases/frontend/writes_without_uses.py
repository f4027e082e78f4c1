# test frontend
# A list, dictionary or new tensor without uses is removed with all writes into it and their errors.
# What escapes stays.
def collects(x: List[int]) -> int:
    y: List[int] = []
    for i in range(3):
        y.append(x[i])
    y[7] = 1
    return 1

def comprehends(x: List[int]) -> int:
    y = [x[i + 1] for i in x]
    return 1

def notes(x: List[int]) -> int:
    d = {1: 2}
    d[x[0]] = len(d)
    return 1

def measures(x: List[int]) -> int:
    y: List[int] = []
    y.append(x[0])
    return len(y)

def takes_apart(x: List[int], two: bool) -> int:
    y = [x[0]]
    y.append(x[1])
    if two:
        a, b = y
    return 1

def multiplies(x: List[int], n: int) -> int:
    y = [n, n]
    y *= n
    for i in range(n):
        a, b = y
    return 1

def stores(x: List[int], n: int) -> int:
    y = [n, n]
    y *= n
    z = [y]
    z.append(x)
    return 1

def hands_on(x: List[int], all: List[List[int]]) -> int:
    y: List[int] = []
    all.append(y)
    y.append(x[0])
    return 1

def chooses(x: List[int], first: bool) -> int:
    y: List[int] = []
    z = y if first else x
    y.append(x[0])
    return len(z)

def given_back(x: List[int]) -> int:
    y: List[int] = []
    z = y.append(x[0])
    return 1

def writes(x: Tensor) -> int:
    y = torch.zeros(2)
    y[5] = 1
    return 1

# run: collects([]) == 1
# run: comprehends([5]) == 1
# run: notes([]) == 1
# run: measures([4]) == 1
# run: measures([]) raises "list index out of range"
# run: hands_on([], [[1]]) raises "list index out of range"
# run: chooses([3], True) == 1
# run: chooses([], False) raises "list index out of range"
# run: given_back([]) == 1
# run: writes(tensor([1.0])) == 1

# == frontend
# def collects
# graph(%x.1 : int[]):
#   %12 : int = prim::Constant[value=1]()
#   return (%12)
#
# def comprehends
# graph(%x.1 : int[]):
#   %9 : int = prim::Constant[value=1]()
#   return (%9)
#
# def notes
# graph(%x.1 : int[]):
#   %1 : int = prim::Constant[value=1]()
#   return (%1)
#
# def measures
# graph(%x.1 : int[]):
#   %4 : int = prim::Constant[value=0]()
#   %y.1 : int[] = prim::ListConstruct()
#   %5 : int = aten::__getitem__(%x.1, %4)
#   %6 : int[] = aten::append(%y.1, %5)
#   %8 : int = aten::len(%y.1)
#   return (%8)
#
# def takes_apart
# graph(%x.1 : int[],
#       %two.1 : bool):
#   %8 : int = prim::Constant[value=1]()
#   return (%8)
#
# def multiplies
# graph(%x : int[],
#       %n.1 : int):
#   %16 : int = prim::Constant[value=1]()
#   return (%16)
#
# def stores
# graph(%x.1 : int[],
#       %n.1 : int):
#   %13 : int = prim::Constant[value=1]()
#   %y.1 : int[] = prim::ListConstruct(%n.1, %n.1)
#   %y.5 : int[] = aten::mul_(%y.1, %n.1)
#   return (%13)
#
# def hands_on
# graph(%x.1 : int[],
#       %all.1 : int[][]):
#   %8 : int = prim::Constant[value=0]()
#   %11 : int = prim::Constant[value=1]()
#   %y.1 : int[] = prim::ListConstruct()
#   %5 : int[][] = aten::append(%all.1, %y.1)
#   %9 : int = aten::__getitem__(%x.1, %8)
#   %10 : int[] = aten::append(%y.1, %9)
#   return (%11)
#
# def chooses
# graph(%x.1 : int[],
#       %first.1 : bool):
#   %9 : int = prim::Constant[value=0]()
#   %y.1 : int[] = prim::ListConstruct()
#   %z.1 : int[] = prim::If(%first.1)
#     block0():
#       -> (%y.1)
#     block1():
#       -> (%x.1)
#   %10 : int = aten::__getitem__(%x.1, %9)
#   %11 : int[] = aten::append(%y.1, %10)
#   %13 : int = aten::len(%z.1)
#   return (%13)
#
# def given_back
# graph(%x.1 : int[]):
#   %7 : int = prim::Constant[value=1]()
#   return (%7)
#
# def writes
# graph(%x : Tensor):
#   %8 : int = prim::Constant[value=1]()
#   return (%8)

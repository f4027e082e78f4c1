# test frontend
# `__exit__` is called with three Nones, and its result does not suppress an exception.
class Guard:
    def __init__(self, log: List[str]):
        self.log = log

    def __enter__(self) -> int:
        self.log.append("in")
        return 7

    def __exit__(self, a: Any, b: Any, c: Any) -> bool:
        self.log.append("out")
        return True

def f(n: int) -> List[str]:
    log: List[str] = []
    with Guard(log) as seven:
        if n > seven:
            raise ValueError("more")
        log.append(str(n))
    return log

# run: f(1) == ["in", "1", "out"]
# run: f(8) raises "more"

# == frontend
# def f
# graph(%n.1 : int):
#   %10 : str = prim::Constant[value="builtins.ValueError"]()
#   %9 : str = prim::Constant[value="more"]()
#   %log.1 : str[] = prim::ListConstruct()
#   %3 : __torch__.Guard = prim::CreateObject()
#   %4 : NoneType = prim::CallMethod[name="__init__"](%3, %log.1)
#   %seven.1 : int = prim::Enter(%3)
#   %8 : bool = aten::gt(%n.1, %seven.1)
#    = prim::If(%8)
#     block0():
#        = prim::RaiseException(%9, %10)
#       -> ()
#     block1():
#       -> ()
#   %13 : str = aten::str(%n.1)
#   %14 : str[] = aten::append(%log.1, %13)
#   %15 : bool = prim::Exit(%3)
#   return (%log.1)

# test frontend
# A dictionary keeps the order of insertion; its keys are a separate list, not a view.
def f(d: Dict[str, int]) -> Tuple[List[str], List[str]]:
    keys = d.keys()
    d["z"] = 1
    d["a"] = d["a"] + 1
    d.pop("b")
    d["b"] = 3
    return keys, d.keys()

# run: f({"a": 1, "b": 2}) == (["a", "b"], ["a", "z", "b"])

# == frontend
# def f
# graph(%d.1 : Dict(str, int)):
#   %15 : str = prim::Constant[value="b"]()
#   %8 : str = prim::Constant[value="a"]()
#   %5 : str = prim::Constant[value="z"]()
#   %3 : int = prim::Constant[value=1]()
#   %17 : int = prim::Constant[value=3]()
#   %keys.1 : str[] = aten::keys(%d.1)
#    = aten::_set_item(%d.1, %5, %3)
#   %9 : int = aten::__getitem__(%d.1, %8)
#   %10 : int = aten::add(%9, %3)
#    = aten::_set_item(%d.1, %8, %10)
#   %16 : int = aten::pop(%d.1, %15)
#    = aten::_set_item(%d.1, %15, %17)
#   %23 : str[] = aten::keys(%d.1)
#   %24 : (str[], str[]) = prim::TupleConstruct(%keys.1, %23)
#   return (%24)

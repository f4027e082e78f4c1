# test frontend
# Only ASCII letters have two cases, and strings are compared by bytes.
def f(s: str) -> Tuple[str, str, int, bool]:
    return s.upper(), s.lower(), len(s), s < "z"

# run: f("aB") == ("AB", "ab", 2, True)
# run: f("é") == ("é", "é", 2, False)

# == frontend
# def f
# graph(%s.1 : str):
#   %8 : str = prim::Constant[value="z"]()
#   %2 : str = aten::upper(%s.1)
#   %4 : str = aten::lower(%s.1)
#   %6 : int = aten::len(%s.1)
#   %9 : bool = aten::lt(%s.1, %8)
#   %10 : (str, str, int, bool) = prim::TupleConstruct(%2, %4, %6, %9)
#   return (%10)

# test source
# Strings are byte strings.
def f(s: str) -> Tuple[int, str]:
    return len(s), s.upper()

# run: f("abc") == (3, "ABC")

# == source
# def f(s: str) -> Tuple[int, str]:
#   return (torch.len(s), torch.upper(s))

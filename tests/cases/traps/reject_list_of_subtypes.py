# test frontend
# A list type accepts only lists with exactly its element type.
def count(a: List[Optional[int]]) -> int:
    return len(a)

def f(a: List[int]) -> int:
    return count(a)  # error: List[Optional[int]]

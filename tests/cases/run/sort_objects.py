# test run
# Lists of objects are sorted by the class's `__lt__`, stably, in place or as a copy; other names for the list see it.
class Item:
    def __init__(self, key: int, name: str):
        self.key = key
        self.name = name

    def __lt__(self, other: Item) -> bool:
        return self.key < other.key

def names(items: List[Item]) -> str:
    return "".join([item.name for item in items])

def f(keys: List[int], reverse: bool):
    items = [Item(key, chr(97 + i)) for i, key in enumerate(keys)]
    same = items
    up = sorted(items)
    before = names(items)
    items.sort(reverse)
    return before, names(up), names(same)

class Plain:
    def __init__(self, key: int):
        self.key = key

def g(n: int):
    items = [Plain(i) for i in range(n)]
    items.sort()
    return len(sorted(items))

# run: g(0) == 0
# run: g(2) raises "To sort a list of __torch__.Plain, it must define a __lt__ method"
# run: f([3, 1, 2, 3, 1, 0, 2, 2, 9, -1], False) == ("abcdefghij", "jfbecghadi", "jfbecghadi")
# run: f([3, 1, 2, 3, 1], True) == ("abcde", "becad", "adcbe")
# run: f([], True) == ("", "", "")

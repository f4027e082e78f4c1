# test run
# Lists of objects are sorted by the class's `__lt__`, stably, in place or as a copy; aliases of the list see the change. The
# same holds for lists of tuples that contain objects.
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

class Named(NamedTuple):
    rank: int
    item: Item

def pairs(ranks: List[int], keys: List[int], reverse: bool):
    tuples = [(rank, Item(key, chr(97 + i))) for i, (rank, key) in enumerate(zip(ranks, keys))]
    first = [(item, chr(97 + rank)) for rank, item in tuples]
    first.sort(reverse)
    tuples.sort(reverse)
    return "".join([t[1].name for t in tuples]), "".join([t[0].name for t in first])

def nested(n: int):
    one = Item(1, "x")
    items = [(True, (torch.tensor(n), one), "b"), (True, (torch.tensor(n), one), "a"), (False, (torch.tensor(5), one), "c")]
    named = [Named(2, one), Named(1, Item(7, "y"))]
    return [c for a, b, c in sorted(items)], "".join([entry.item.name for entry in sorted(named)])

def unordered(n: int):
    items = [(i, Plain(i)) for i in range(n)]
    items.sort()
    return len(items)

# run: pairs([1, 0, 1, 0], [3, 9, 2, 9], False) == ("bdca", "cabd")
# run: pairs([1, 0, 1, 0], [3, 9, 2, 9], True) == ("acbd", "bdac")
# run: nested(3) == (["c", "a", "b"], "yx")
# run: unordered(0) == 0
# run: unordered(1) raises "To sort a list of __torch__.Plain, it must define a __lt__ method with two inputs of type __torch__.Plain that returns a bool"
# run: g(0) == 0
# run: g(2) raises "To sort a list of __torch__.Plain, it must define a __lt__ method"
# run: f([3, 1, 2, 3, 1, 0, 2, 2, 9, -1], False) == ("abcdefghij", "jfbecghadi", "jfbecghadi")
# run: f([3, 1, 2, 3, 1], True) == ("abcde", "becad", "adcbe")
# run: f([], True) == ("", "", "")

# test run
# A loop that only an error ends keeps what may raise the error, also if nothing uses the result.
def element(items: List[int]):
    s = 0
    i = 0
    while True:
        s = s + items[i]
        i += 1
    return 1


def key(d: Dict[int, int]):
    k = 0
    while True:
        k = d[k]
    return 1


def nested(items: List[int], n: int):
    i = 0
    while True:
        for k in range(n):
            if items[i] > k:
                i = 10 // (n - i)
        i += 1
    return 1

# run: element([1, 2]) raises "list index out of range"
# run: key({0: 1, 1: 2}) raises "KeyError: 2"
# run: nested([1, 2], 2) raises "list index out of range"

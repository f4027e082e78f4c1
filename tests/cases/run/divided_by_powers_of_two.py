# test run
# Division and remainder by constants round towards minus infinity, also where a shift and a mask compute them.
def divided(a: List[int]):
    q: List[int] = []
    for x in a:
        q.append(x // 1)
        q.append(x // 4)
        q.append(x // 4611686018427387904)
        q.append(x // -4)
    return q

def rest(a: List[int]):
    r: List[int] = []
    for x in a:
        r.append(x % 1)
        r.append(x % 4)
        r.append(x % 4611686018427387904)
        r.append(x % -4)
    return r

# run: divided([7, -7, 0]) == [7, 1, 0, -2, -7, -2, -1, 1, 0, 0, 0, 0]
# run: rest([7, -7, 0]) == [0, 3, 7, -1, 0, 1, 4611686018427387897, -3, 0, 0, 0, 0]
# run: divided([9223372036854775807, -9223372036854775807]) == [9223372036854775807, 2305843009213693951, 1, -2305843009213693952, -9223372036854775807, -2305843009213693952, -2, 2305843009213693951]

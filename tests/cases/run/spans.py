# test run
# Elements by address: lists that a loop accesses by element only, with and without other handles; the list changes in outer loops, indices
# count from the end or are out of range.


def sorted_of(n: int):
    a = [(i * 7919) % 101 for i in range(n)]
    for i in range(1, len(a)):
        x = a[i]
        j = i - 1
        while j >= 0 and a[j] > x:
            a[j + 1] = a[j]
            j -= 1
        a[j + 1] = x
    return a


def grows_outside(n: int):
    a = [1]
    total = 0
    for i in range(n):
        for j in range(len(a)):
            a[j] += i
            total += a[j] * a[-1 - j]
        a.append(i)
        if len(a) > 3:
            a = a[1:]
    return total, a


def two_handles(a: List[int], n: int):
    b = a
    s = 0
    for i in range(n):
        a[i] = a[i] + 1
        s += b[i]
        for j in range(n):
            b[j] = b[j] * 2
    return s, a, b


def kept_elsewhere(a: List[float]):
    kept = [a]
    for i in range(len(a)):
        a[i] = a[i] * 0.5
    kept[0].append(1.0)
    for i in range(len(kept[0])):
        a[i] += 1.0
    return a


def flags(n: int):
    prime = [True] * n
    count = 0
    for i in range(2, n):
        if prime[i]:
            count += 1
            for j in range(i * i, n, i):
                prime[j] = False
    return count, prime


def behind(a: List[int], n: int):
    s = 0
    for i in range(n):
        s += a[i]
    return s


def before(a: List[int], n: int):
    for i in range(n):
        a[-1 - i] = i
    return a


def assigned_within(n: int):
    a = [0, 0]
    b = [1, 2, 3]
    for i in range(n):
        for j in range(2):
            a[j] = a[j] + b[j]
        if i == 1:
            a = b
    return a, b


def changed_by_call(a: List[int], n: int):
    for i in range(n):
        for j in range(len(a)):
            a[j] += 1
        extend(a)
    return a


def extend(a: List[int]):
    a.append(len(a))


def empty(a: List[float]):
    s = 0.0
    for i in range(len(a)):
        s += a[i]
    for x in a:
        s += x
    return s


def left_early(a: List[int], wanted: int):
    at = -1
    for i in range(len(a)):
        if a[i] == wanted:
            at = i
            break
        if a[i] < 0:
            continue
        a[i] = a[i] - 1
    a.append(at)
    return a

# run: sorted_of(9) == [0, 3, 22, 25, 41, 44, 63, 82, 85]
# run: sorted_of(0) == []
# run: grows_outside(5) == (287, [9, 7, 4])
# run: two_handles([1, 2, 3], 3) == (20, [16, 20, 26], [16, 20, 26])
# run: two_handles([1], 2) raises "list index out of range"
# run: kept_elsewhere([2.0, 3.0]) == [2.0, 2.5, 2.0]
# run: flags(20) == (8, [True, True, True, True, False, True, False, True, False, False, False, True, False, True, False, False, False, True, False, True])
# run: behind([1, 2], 2) == 3
# run: behind([1, 2], 3) raises "list index out of range"
# run: before([1, 2], 2) == [1, 0]
# run: before([1, 2], 3) raises "list index out of range"
# run: assigned_within(4) == ([4, 8, 3], [4, 8, 3])
# run: changed_by_call([1], 3) == [4, 3, 3, 3]
# run: empty([]) == 0.0
# run: empty([1.5]) == 3.0
# run: left_early([5, -1, 3, 7], 3) == [4, -1, 3, 7, 2]
# run: left_early([], 3) == [-1]

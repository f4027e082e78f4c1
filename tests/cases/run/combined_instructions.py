# test run
# Operations are combined with those that compute their operands and with the jumps that test their results; texts of integers are
# concatenated without a string of their own; conditions are tested where they are computed.


def mixed(n: int):
    s, t = 1, 0.5
    for i in range(n):
        s = (s * 31 + i) % 65521
        t = t * 0.5 + float(i) / 3.0
        t = t - float(i) * 0.25
        s = s - i * 7
    return s, t


def large(n: int):
    s = 9223372036854775807
    for i in range(n):
        s = (s * 5 + i) % 1000003
        s = s * -9223372036854775807
    return s


def zero(n: int):
    s = 10
    while s > 0:
        if 100 % n == 0:
            s -= 3
        n -= 1
        s -= 1
    return s


def steps(n: int):
    steps = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    return steps


def primes(n: int):
    found: List[int] = []
    for k in range(2, n):
        i = 2
        is_prime = True
        while i * i <= k:
            if k % i == 0:
                is_prime = False
                break
            i += 1
        if is_prime:
            found.append(k)
    return found


def texts(n: int):
    parts: List[str] = []
    for i in range(n):
        k = (i - 1) * 1000000007
        parts.append("item" + str(k))
        parts.append(str(-k) + "!")
        name = str(k)
        parts.append(name + name)
    long = "xy"
    for i in range(9):
        long = long + long
    for i in range(2):
        long = long + str(i)
    return parts, len(long), long[-3:]


def grown(n: int):
    s = ""
    kept: List[str] = []
    seen: Dict[str, int] = {}
    for i in range(n):
        s = s + "<" + str(i)
        if i % 3 == 0:
            kept.append(s)
        if i % 4 == 0:
            seen[s] = i
        s += ">"
        before = s
        s = s + before[:2]
    return s, kept, seen


def smallest():
    text = ""
    for i in range(2):
        text = text + str(-9223372036854775807 - 1 + i)
    return text


def tested(text: str, names: Dict[str, int], numbers: Dict[int, int], flags: List[bool]):
    s = 0
    for i in range(len(text)):
        if text[i] == "a":
            s += 1
        if text[i] != "b":
            s += 10
        if text[i] in names:
            s += 100
        if i in numbers:
            s += 1000
        if flags[i - 1]:
            s += 10000
        last: Optional[int] = None
        if i % 3 == 1:
            last = i
        if last is None:
            s += 100000
        if last is not None:
            s += 1000000
    return s


def missing(text: str):
    s = 0
    for i in range(-2, 3):
        if text[i] == "a":
            s += 1
    return s

# run: mixed(0) == (1, 0.5)
# run: mixed(1) == (31, 0.25)
# run: mixed(1000) == (33156, 166.33333333333337)
# run: large(1) == 675340
# run: large(9) == -9223372036854557949
# run: zero(9) == -2
# run: steps(27) == 111
# run: steps(97) == 118
# run: primes(60) == [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59]
# run: texts(3) == (['item-1000000007', '1000000007!', '-1000000007-1000000007', 'item0', '0!', '00', 'item1000000007', '-1000000007!', '10000000071000000007'], 1026, 'y01')
# run: grown(5) == ('<0><0<1><0<2><0<3><0<4><0', ['<0', '<0><0<1><0<2><0<3'], {'<0': 0, '<0><0<1><0<2><0<3><0<4': 4})
# run: smallest() == '-9223372036854775808-9223372036854775807'
# run: tested('abcab', {'a': 1}, {1: 2, 3: 4}, [True, False, True, True, False]) == 2332232
# run: tested('', {}, {}, []) == 0
# run: tested('aaa', {}, {7: 1}, [True, True]) == 1230033
# run: missing('ab') raises "basic_string::at: __n (which is 2) >= this->size() (which is 2)"
# run: missing('xyab') == 2
# run: zero(3) raises "modulo by 0"

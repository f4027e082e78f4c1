# test run
# Loops over pairs, ranges and strings: the ends of loops fetch the next elements, counts start where ranges do, and bytes of
# strings that are only compared are words.


def zips(xs: List[int], ys: List[float], s: str, names: List[str]) -> List[str]:
    out: List[str] = []
    t = 0.0
    last = -1
    for x, y in zip(xs, ys):
        t += x * y
        last = x
    out.append(str(int(t)) + ":" + str(last))
    for i, (x, c) in enumerate(zip(xs, s)):
        out.append(c + str(x + i))
    for n, c in zip(names, s):
        if c == "a":
            out.append(n)
        if n == "stop":
            break
    for n, m in zip(names, names):
        out.append(n + m)
    for a, b, c in zip(names, xs, s):
        out.append(a + str(b) + c)
    return out


def ranges(xs: List[int], a: int, b: int) -> List[int]:
    out: List[int] = []
    for i in range(a, b):
        out.append(i)
    for i in range(1, len(xs)):
        out.append(xs[i] - xs[i - 1])
    for i in range(b, a, -1):
        out.append(i)
    for i in range(a, b, 3):
        out.append(i)
    last = 77
    for i in range(2, b):
        for j in range(i, b):
            if j % 3 == 0:
                continue
            out.append(i * j)
            last = j
            if i * j > 20:
                break
    out.append(last)
    for i in range(3, 3):
        out.append(i)
    k = 5
    for i in range(k, k + 3):
        k = i * 2
        out.append(k)
    return out


def texts(s: str) -> List[int]:
    out: List[int] = []
    n = 0
    for c in s:
        if c == "a" or c == "b":
            n += 1
        elif c in "xyz":
            n += 100
        elif c != " ":
            n += 10000
        f = "hello".find(c)
        out.append(f)
        if "q" == c:
            continue
        if "e" in c:
            break
    out.append(n)
    for c in s:
        if s == c or c == "":
            out.append(-5)
    for i in range(len(s)):
        out.append(ord(s[i]))
        if s[-i - 1] == s[i]:
            out.append(-7)
    seen: Dict[str, int] = {}
    for c in s:
        seen[c] = seen.get(c, 0) + 1
    for c in seen:
        out.append(seen[c])
    return out


def oob(s: str, i: int) -> bool:
    return s[i] == "a"

# run: zips([1, 2, 3], [0.5, 1.5, 2.5, 3.5], "banana", ["x", "y", "stop", "z"]) == ['11:3', 'b1', 'a3', 'n5', 'y', 'xx', 'yy', 'stopstop', 'zz', 'x1b', 'y2a', 'stop3n']
# run: zips([], [0.5], "", []) == ['0:-1']
# run: zips([4], [], "a", ["stop"]) == ['0:-1', 'a4', 'stop', 'stopstop', 'stop4a']
# run: ranges([1, 5, 3], -2, 9) == [-2, -1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 4, -2, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, -1, -2, 1, 4, 7, 4, 8, 10, 14, 16, 12, 15, 21, 16, 20, 28, 25, 42, 49, 64, 8, 10, 12, 14]
# run: ranges([], 3, 3) == [4, 2, 10, 12, 14]
# run: ranges([7], 5, 2) == [77, 10, 12, 14]
# run: texts("abxqz qea") == [-1, -1, -1, -1, -1, -1, -1, 1, 30202, 97, -7, 98, 120, 113, 122, -7, 32, 113, 101, 97, -7, 2, 1, 1, 2, 1, 1, 1]
# run: texts("") == [0]
# run: texts("a") == [-1, 1, -5, 97, -7, 1]
# run: oob("abc", 0) == True
# run: oob("abc", -1) == False
# run: oob("abc", 3) raises "basic_string::at: __n (which is 3) >= this->size() (which is 3)"
# run: oob("abc", -4) raises "basic_string::at: __n (which is 18446744073709551615) >= this->size() (which is 3)"

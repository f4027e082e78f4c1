"""The programs of `beside.py machine`: scalars, control flow, containers, strings, objects.

A row is a size and TorchScript source whose function `main` takes the size. Sizes are such that a call takes about a
millisecond.
"""

PROGRAMS = {
    "loop_int": (20000, """
def main(n: int):
    s = 0
    for i in range(n):
        s = (s * 3 + i) % 1000003
    return s
"""),
    "loop_float": (20000, """
def main(n: int):
    x = 0.5
    for i in range(n):
        x = x * 1.0001 + float(i) / 3.0
    return x
"""),
    "collatz": (300, """
def main(n: int):
    most = 0
    for k in range(1, n):
        x = k
        steps = 0
        while x != 1:
            if x % 2 == 0:
                x = x // 2
            else:
                x = 3 * x + 1
            steps += 1
        if steps > most:
            most = steps
    return most
"""),
    "fib": (20000, """
def main(n: int):
    a = 0
    b = 1
    for i in range(n):
        t = (a + b) % 1000000007
        a = b
        b = t
    return a
"""),
    "nested_loops": (10000, """
def main(n: int):
    s = 0
    for i in range(n // 100):
        for j in range(100):
            s += i * j
    return s
"""),
    "list_append_sum": (10000, """
def main(n: int):
    l: List[int] = []
    for i in range(n):
        l.append(i * 2)
    s = 0
    for x in l:
        s += x
    return s
"""),
    "list_index": (10000, """
def main(n: int):
    l = [0] * 1000
    for i in range(n):
        l[i % 1000] = l[(i * 7) % 1000] + i
    return l[0]
"""),
    "dict_int": (10000, """
def main(n: int):
    d: Dict[int, int] = {}
    for i in range(n):
        k = i % 97
        if k in d:
            d[k] += 1
        else:
            d[k] = 1
    return len(d)
"""),
    "dict_str": (10000, """
def main(n: int):
    keys = ["alpha", "beta", "gamma", "delta"]
    d: Dict[str, int] = {"alpha": 0, "beta": 0, "gamma": 0, "delta": 0}
    for i in range(n):
        k = keys[i % 4]
        d[k] = d[k] + i
    return d["gamma"]
"""),
    "string_build": (2000, """
def main(n: int):
    parts: List[str] = []
    for i in range(n):
        parts.append("item" + str(i))
    return len(",".join(parts))
"""),
    "string_scan": (10000, """
def main(n: int):
    s = "the quick brown fox jumps over the lazy dog"
    m = len(s)
    c = 0
    for i in range(n):
        if s[i % m] == "o":
            c += 1
    return c
"""),
    "tuple_swap": (20000, """
def main(n: int):
    p = (0, 1)
    for i in range(n):
        a, b = p
        p = (b, a + i)
    return p[0] + p[1]
"""),
    "while_break": (20000, """
def main(n: int):
    i = 0
    s = 0
    while True:
        i += 1
        if i > n:
            break
        if i % 3 == 0:
            continue
        s += i
    return s
"""),
    "calls": (10000, """
def step(x: int, y: int) -> int:
    return (x * 31 + y) % 65521

def main(n: int):
    s = 1
    for i in range(n):
        s = step(s, i)
    return s
"""),
    "early_return": (500, """
def is_prime(k: int) -> bool:
    if k < 2:
        return False
    i = 2
    while i * i <= k:
        if k % i == 0:
            return False
        i += 1
    return True

def main(n: int):
    c = 0
    for k in range(n):
        if is_prime(k):
            c += 1
    return c
"""),
    "class_methods": (10000, """
class Counter(object):
    def __init__(self, start: int):
        self.value = start
        self.calls = 0

    def add(self, x: int) -> int:
        self.value = (self.value + x) % 65521
        self.calls += 1
        return self.value

def main(n: int):
    c = Counter(1)
    s = 0
    for i in range(n):
        s += c.add(i)
    return s + c.calls
"""),
    "mandelbrot": (20, """
def main(n: int):
    inside = 0
    for py in range(n):
        for px in range(n):
            cr = float(px) / float(n) * 3.0 - 2.0
            ci = float(py) / float(n) * 2.0 - 1.0
            x = 0.0
            y = 0.0
            k = 0
            while k < 50 and x * x + y * y <= 4.0:
                t = x * x - y * y + cr
                y = 2.0 * x * y + ci
                x = t
                k += 1
            if k == 50:
                inside += 1
    return inside
"""),
    "sieve": (10000, """
def main(n: int):
    flags = [True] * n
    count = 0
    for i in range(2, n):
        if flags[i]:
            count += 1
            j = i * i
            while j < n:
                flags[j] = False
                j += i
    return count
"""),
    "insertion_sort": (100, """
def main(n: int):
    l: List[int] = []
    for i in range(n):
        l.append((i * 7919) % 1009)
    for i in range(1, n):
        x = l[i]
        j = i - 1
        while j >= 0 and l[j] > x:
            l[j + 1] = l[j]
            j -= 1
        l[j + 1] = x
    return l[n // 2]
"""),
    "matmul_lists": (16, """
def main(n: int):
    a: List[List[float]] = []
    b: List[List[float]] = []
    for i in range(n):
        ra: List[float] = []
        rb: List[float] = []
        for j in range(n):
            ra.append(float(i + j))
            rb.append(float(i - j))
        a.append(ra)
        b.append(rb)
    s = 0.0
    for i in range(n):
        for j in range(n):
            t = 0.0
            for k in range(n):
                t += a[i][k] * b[k][j]
            s += t
    return s
"""),
    "math_float": (10000, """
def main(n: int):
    s = 0.0
    for i in range(n):
        x = float(i) * 0.001
        s += math.sin(x) * math.exp(-x) + math.sqrt(x)
    return s
"""),
    "optional_refine": (10000, """
def pick(i: int) -> Optional[int]:
    if i % 3 == 0:
        return None
    return i

def main(n: int):
    s = 0
    for i in range(n):
        x = pick(i)
        if x is not None:
            s += x
        else:
            s -= 1
    return s
"""),
}

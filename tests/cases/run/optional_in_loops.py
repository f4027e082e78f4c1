# test run
# Optional variables, assigned in nested loops with early exits: the value that flows into an inner loop from the next
# iteration of the outer one has a wider type than is known when the inner loop is closed.
def inner_none(x: Tensor, n: int) -> Tensor:
    v: Optional[Tensor] = None
    w = 0
    while w < 3:
        w += 1
        for i in range(n):
            v = None
        if w > n:
            return v if v is not None else x
    return v if v is not None else x
def inner_value(x: Tensor, n: int) -> Tensor:
    v: Optional[Tensor] = None
    for i in range(3):
        for j in range(n):
            v = None
            if j > i:
                break
        if i == 1:
            v = x + i
            continue
        if v is not None and i > n:
            return v
    return v if v is not None else x
def three_deep(x: Tensor, n: int) -> int:
    v: Optional[int] = None
    k = 0
    for a in range(3):
        for b in range(n):
            for c in range(2):
                v = None
                if c > b:
                    break
            if b == 1:
                return k + (v if v is not None else 7)
        k += v if v is not None else 1
        v = a
    return k + (v if v is not None else 5)
def unions(n: int) -> int:
    v: Union[int, str] = 'a'
    k = 0
    while k < 4:
        k += 1
        for i in range(n):
            v = 'b'
            if i == 1:
                break
        if k > 2:
            return k if isinstance(v, str) else -k
        v = k
    return k
def containers(n: int) -> int:
    v: Optional[List[int]] = None
    total = 0
    for i in range(n + 2):
        j = 0
        while j < n:
            j += 1
            v = None
            if j == i:
                continue
        total += len(v) if v is not None else 10
        v = [i]
        if i > n:
            break
    return total

# run: inner_none(tensor([1.0]), 0) == tensor([1.0])
# run: inner_none(tensor([1.0]), 2) == tensor([1.0])
# run: inner_value(tensor([1.0]), 0) == tensor([2.0])
# run: inner_value(tensor([1.0]), 3) == tensor([1.0])
# run: three_deep(tensor([1.0]), 0) == 4
# run: three_deep(tensor([1.0]), 1) == 5
# run: three_deep(tensor([1.0]), 3) == 7
# run: unions(0) == -3
# run: unions(3) == 3
# run: containers(0) == 11
# run: containers(3) == 50

# test frontend
# The interpreter calls `__enter__` without arguments and `__exit__` with three that are None.
class Enters:
    def __enter__(self, n: int) -> None:
        pass
    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        pass

class Leaves:
    def __enter__(self) -> None:
        pass
    def __exit__(self, kind: Any, value: Any) -> None:
        pass

class Typed:
    def __enter__(self) -> None:
        pass
    def __exit__(self, kind: Any, value: int, trace: Any) -> None:
        pass

def f(c: Enters):
    with c:  # error: __enter__ must have only one argument
        pass

def g(c: Leaves):
    with c:  # error: __exit__ must have four arguments
        pass

def h(c: Typed):
    with c:  # error: argument 2 of __exit__ must have Any type
        pass

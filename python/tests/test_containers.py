"""Lists and dictionaries that programs and Python share. Types of exceptions and results were recorded from PyTorch."""

import pytest

import flambeau
from flambeau import jit

PROGRAM = """
def append(items: List[int], item: int) -> int:
    items.append(item)
    return len(items)

def put(items: Dict[int, int], key: int, value: int):
    items[key] = value

def total(items: List[float]) -> float:
    return sum(items)
"""


@pytest.fixture(scope="module")
def unit():
    return flambeau.CompilationUnit(PROGRAM)


def test_a_program_and_python_see_each_others_changes(unit):
    items = jit.script([1, 2])
    assert unit.append(items, 3) == 3
    assert list(items) == [1, 2, 3]
    items[0] = 7
    del items[1]
    assert unit.append(items, 4) == 3
    assert items == [7, 3, 4]
    pairs = jit.script({1: 2})
    unit.put(pairs, 3, 4)
    assert dict(pairs) == {1: 2, 3: 4} and 3 in pairs and len(pairs) == 2


def test_a_list_of_python_is_copied(unit):
    items = [1, 2]
    assert unit.append(items, 3) == 3
    assert items == [1, 2]


def test_elements_have_the_type_of_the_container(unit):
    items = jit.script([1, 2])
    for wrong in (lambda: items.append("a"), lambda: items.append(2.5), lambda: "a" in items, lambda: items.extend(["a"])):
        with pytest.raises(TypeError):
            wrong()
    assert items == [1, 2]
    pairs = jit.script({1: 2})
    with pytest.raises(TypeError):
        pairs["a"] = 1
    with pytest.raises(TypeError):
        pairs[1] = "a"
    for missing in (lambda: pairs["a"], lambda: pairs[5], lambda: "a" in pairs):
        with pytest.raises(KeyError):
            missing()
    with pytest.raises(flambeau.MisuseError, match="Expected a value of type"):
        unit.total(items)


def test_containers_of_values_of_different_types_are_refused():
    for mixed in ([1, "a"], [1, 2.0], {1: 2, "a": 3}):
        with pytest.raises(flambeau.MisuseError, match="different types"):
            jit.script(mixed)


def test_slices_and_positions():
    items = jit.script([1, 2, 3, 4])
    assert items[1:3] == [2, 3] and items[-1] == 4 and items[-1::-1] == [4, 3, 2, 1]
    items[:4:2] = [10, 11]
    assert items == [10, 2, 11, 4]
    items[1:3] = [5]
    assert items == [10, 5, 4]
    items.insert(-1, 6)
    assert items == [10, 5, 6, 4] and items.pop() == 4 and items.pop(0) == 10
    for wrong in (lambda: items[5], lambda: items[-7], lambda: items.pop(10)):
        with pytest.raises(IndexError):
            wrong()
    with pytest.raises(TypeError):
        items["key"]
    with pytest.raises(ValueError):
        items.remove(77)
    assert repr(items) == "[5, 6]" and bool(items) and not jit.script([])


def test_containers_within_containers():
    nested = jit.script([[1], [2, 3]])
    assert nested == [[1], [2, 3]]
    nested.append([])
    assert nested == [[1], [2, 3], []]

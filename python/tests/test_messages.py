"""Messages of errors, which programs written for PyTorch compare: they have PyTorch's words."""

from __future__ import annotations

import io
from typing import Any, Dict, List, Union

import pytest

import flambeau
from flambeau import Tensor, jit
from flambeau import torch_names


def refused(function: Any) -> str:
    with pytest.raises((flambeau.CompileError, flambeau.UnsupportedError)) as error:
        jit.script(function)
    return str(error.value)


def test_literals_under_annotations_of_other_types():
    def a_list():
        b: int = [2, 3]
        return b

    def a_dict() -> List[int]:
        return {"a": 1}

    def a_union():
        x: Union[List[str], List[Tensor]] = {}
        return x

    def elements():
        x: Union[List[int], List[Tensor]] = ["a"]
        return x

    def empty():
        x: Union[List[int], List[str]] = []
        return x

    def values():
        x: Union[Dict[str, int], Dict[str, Tensor]] = {"a": 1.0}
        return x

    def value():
        x: Dict[str, int] = {"a": 1.0}
        return x

    def element() -> List[str]:
        return [1]

    def comprehension():
        x: List[str] = [i for i in range(3)]
        return x

    def keys():
        return {1: 1, "a": 2}

    assert "Expected an annotation of type List but got int" in refused(a_list)
    assert "Expected an annotation of type Dict but got List[int]" in refused(a_dict)
    assert "Expected an Union type annotation with an inner Dict type, but got Union[List[Tensor], List[str]]" in refused(a_union)
    assert (
        "Union type annotation `Union[List[Tensor], List[int]]` can hold List[Tensor] or List[int], but none of those types match "
        "the types of the given list elements, which were unified to str" in refused(elements)
    )
    assert "Cannot assign an empty list to a variable annotated to be type Union[List[int], List[str]]" in refused(empty)
    assert "which were unified to Dict[str, float]" in refused(values)
    assert "the type of values given by the dict literal is float" in refused(value)
    mismatch = "List type annotation `List[str]` did not match the types of the given list elements, which were unified to int"
    assert mismatch in refused(element) and mismatch in refused(comprehension)
    assert "Dict keys must contain only a single type. Expected: int but found str instead" in refused(keys)


def test_elements_select_a_member_of_a_union():
    @jit.script
    def lists(x: int):
        a: Union[List[str], List[int]] = [x]
        b: Union[List[str], List[int]] = [i for i in range(x)]
        c: Union[Dict[str, int], Dict[str, str]] = {"a": "b"}
        return a, b, c

    assert lists(2) == ([2], [0, 1], {"a": "b"})


def test_dictionaries_of_pairs_have_keys_of_one_type():
    def keys(a: List[Union[int, str]], b: List[str]):
        x: Dict[int, str] = dict(zip(a, b))
        return x

    def values(a: List[str], b: List[Union[int, str]]):
        x: Dict[str, int] = dict(zip(a, b))
        return x

    assert "Dicts may only contain homogeneous keys, but the type of the first generated key was Union[int, str]" in refused(keys)
    found = refused(values)
    assert "Dict type annotation `Dict[str, int]` did not match the type of an actual value type `Union[int, str]`" in found


class Plain:
    shared = 1

    def __init__(self):
        self.own = 2


class Derived(Plain):
    def __init__(self, x: int):
        self.x = x


def test_members_that_objects_do_not_have():
    def of_class() -> int:
        return Plain().shared

    def augmented():
        a = Plain()
        a += 1
        return a

    @jit.script
    def inherited(x: int) -> int:
        return Derived(x).x

    def inherits(x: int) -> int:
        return Derived(x).own

    assert "object has no attribute or method 'shared'. 'shared' is defined as a class attribute" in refused(of_class)
    assert "since it does not define an __iadd__ or __add__ method" in refused(augmented)
    assert inherited(3) == 3
    assert "TorchScript does not support inheritance" in refused(inherits)
    assert "does not support inheritance" in refused(Derived)


@jit.interface
class Two:
    def one(self, x: int) -> int:
        pass

    def two(self, x: int) -> int:
        pass


class OtherSignature:
    def __init__(self):
        self.x = 1

    def one(self, x: int) -> int:
        return x

    def two(self, x: str) -> str:
        return x


class OneOnly:
    def __init__(self):
        self.x = 1

    def one(self, x: int) -> int:
        return x


def of_interface(x: Two) -> int:
    return x.one(1)


def test_classes_that_an_interface_does_not_describe():
    def other():
        return of_interface(OtherSignature())

    def lacking():
        return of_interface(OneOnly())

    def unknown(x: Two) -> int:
        return x.three(1)

    found = refused(other)
    assert "Method on class" in found and "is not compatible with interface" in found
    assert "(1) " in found and "(2) " in found
    assert "does not have method 'two' but" in refused(lacking)
    assert "object has no attribute or method 'three'" in refused(unknown)


class Pair:
    def __init__(self, i: int, f: float):
        self.i = i
        self.f = f


def test_an_argument_that_lacks_an_attribute():
    @jit.script
    def total(x: Pair) -> float:
        return x.i + x.f

    assert total(Pair(1, 2.0)) == 3
    with pytest.raises(flambeau.MisuseError, match="but object was missing attribute i"):
        total(3)


def test_calls_show_the_statement():
    def wrong(x: int) -> str:
        return x

    def outer(x: int):
        made = wrong(x)
        return made

    def nested(x: int):
        return 1 + len(wrong(x))

    text = refused(outer)
    line = text.splitlines().index(next(part for part in text.splitlines() if "made = wrong(x)" in part))
    assert text.splitlines()[line + 1].strip(" |").startswith("^" * len("made = wrong(x)"))
    assert "'wrong' is being compiled since it was called from 'nested'" in refused(nested)


def test_positions_of_tasks():
    def fails(x: Tensor) -> Tensor:
        return x.t() + x

    @jit.script
    def waits(x: Tensor):
        task = jit.fork(fails, x)
        return jit.wait(task)

    with pytest.raises(flambeau.RuntimeError, match=r"task = jit\.fork\(fails, x\)\n *~+ <--- HERE"):
        waits(flambeau.ones(3, 4))


def test_forms_of_operators():
    @jit.script
    def same(x: bool, y: bool):
        return x is True, x is not y

    @jit.script
    def reversed_difference(x: Tensor, y: Tensor):
        return flambeau.rsub(y, x)

    text = str(same.graph)
    assert "aten::eq" in text and "aten::ne" in text and "aten::__is" not in text
    assert same(True, False) == (True, True)
    assert "aten::sub" in str(reversed_difference.graph)
    assert reversed_difference(flambeau.ones(1), flambeau.zeros(1)).item() == 1


def test_types_in_comments():
    def without_result(a,  # type: int
                       b   # type: int
                       ):  # fmt: skip
        # type: (int, int) -> int
        return a + b

    def lacking(a,  # type: int
                b,
                c   # type: int
                ):  # fmt: skip
        # type: (...) -> int
        return a + c

    def prefix(a):
        #type: (int) -> int  # noqa: E265
        return a

    @jit.script
    def more(a,  # type: int
             b,  # type: int
             ):  # fmt: skip
        # type: (...) -> int
        # type: int
        return a + b

    assert "Return type line '# type: (...) -> ...' not found on multiline type annotation" in refused(without_result)
    assert "Number of type annotations (2) did not match the number of function parameters (3)" in refused(lacking)
    assert "is probably invalid. It must be '# type:'" in refused(prefix)
    assert more(1, 2) == 3


def test_assignments_of_elements_show_the_statement():
    def wrong():
        a: Dict[str, int] = {}
        a[1] = 2
        return a

    assert "     a[1] = 2\n" in refused(wrong) and "^" * len("a[1] = 2") in refused(wrong)


def test_values_without_names_have_the_numbers_of_their_positions():
    @jit.script
    def relu(x):
        return flambeau.relu(x)

    graph = relu.graph
    graph.run("canonicalize")
    assert "%1 : Tensor = aten::relu(%x.1)" in str(graph)


def test_excerpts_have_the_line_of_the_definition():
    def inner(x: int) -> int:
        y = x
        if y > 1:
            return not_defined
        return y

    def outer(x: int) -> int:
        return inner(x)

    lines = refused(outer).splitlines()
    at = next(i for i, line in enumerate(lines) if "return not_defined" in line)
    assert lines[at - 1].endswith("|     def inner(x: int) -> int:")
    assert any(line.endswith("|     def outer(x: int) -> int:") for line in lines)


def test_exits_of_loops_outside_of_one():
    nested = "def f():\n    for i in range(5):\n        def g():\n            continue\n"
    for text, name in (("def f(a):\n    break\n", "break"), (nested, "continue")):
        with pytest.raises(RuntimeError, match=f"SyntaxError: '{name}' outside loop"):
            jit.CompilationUnit(text)
    within = "def f(n: int):\n    i = 0\n    while True:\n        i += 1\n        if i > n:\n            break\n    return i\n"
    assert jit.CompilationUnit(within).f(3) == 4


def test_classes_without_source_are_no_values():
    def a_class():
        return io.BytesIO

    assert "python value of type 'type' cannot be used as a value" in refused(a_class)


def test_functions_with_any_number_of_arguments():
    def by_position(a, *args):
        return a

    def by_name(a, **kwargs):
        return a

    for function in (by_position, by_name):
        assert "Compiled functions can't take variable number of arguments" in refused(function)


def test_types_of_tensors_with_a_dtype():
    torch = pytest.importorskip("torch")

    def long(x: torch.LongTensor):
        return x

    with pytest.warns(UserWarning, match="treat type annotations of Tensor dtype-specific subtypes as if they are normal"):
        compiled = jit.script(long)
    assert compiled.schema == "long(Tensor x) -> Tensor"


def test_comments_with_a_signature_may_omit_the_result():
    Number = int

    def twice(x):
        # type: (Number)
        return x * 2

    assert jit.script(twice).schema == "twice(int x) -> int"
    assert Number(2) == 2


def test_statements_that_torchscript_does_not_have():
    def matches(x: int) -> int:
        match x:
            case 1:
                return 2
        return x

    def imports(x: int) -> int:
        from math import floor

        return floor(x)

    def declares_global(x: int) -> int:
        global NAME
        NAME = x
        return x

    for function, message in (
        (matches, "match statements aren't supported:"),
        (imports, "import statements aren't supported:"),
        (declares_global, "global variables aren't supported:"),
    ):
        with pytest.raises(flambeau.UnsupportedError, match=message):
            jit.script(function)

    def in_python_only(x: int) -> int:
        if not jit.is_scripting():
            import math

            return math.floor(x)
        return x

    assert jit.script(in_python_only)(2) == 2


def test_parameters_without_annotation():
    @jit.script
    def unannotated(a, b: int = 3):
        return a

    with pytest.raises(flambeau.MisuseError) as error:
        unannotated("1")
    assert str(error.value).startswith(
        "error[X0003]: unannotated() Expected a value of type 'Tensor (inferred)' for argument 'a' but instead found type 'str'.\n"
        "Inferred 'a' to be of type 'Tensor' because it was not annotated with an explicit type.\nPosition: 0\n"
    )

    def calls():
        return unannotated(1)

    assert "Inferred 'a' to be of type 'Tensor' because it was not annotated" in refused(calls)


def test_tuples_of_unknown_elements():
    def unpacks(t: Any):
        if isinstance(t, tuple):
            a, b = t
            return a
        return None

    assert "Provided tuple is not fully defined/refined including its element types" in refused(unpacks)


def test_texts_that_name_no_device():
    @jit.script
    def device(d: torch_names.device):
        return d

    with pytest.raises((ValueError, RuntimeError), match="Expected one of cpu, cuda, .*, privateuseone device type at start of"):
        device("invalid")


def test_functions_of_other_libraries_with_names_of_builtins():
    numpy = pytest.importorskip("numpy")

    def sums(x: Tensor):
        return numpy.sum(x)

    assert "Python builtin <function sum" in refused(sums) and "is currently not supported in TorchScript" in refused(sums)

"""Writes tests/oracle/differentiable.txt: the operators that PyTorch differentiates, each with the arguments it has
gradients of.

    python tests/oracle/differentiable.py > tests/oracle/differentiable.txt

Needs torch 2.6, whose package brings the table of formulas along. An argument counts that has a formula:
`non_differentiable` and `not_implemented` are none. Operators that PyTorch puts together of others are not in the table;
they have a `*` instead of arguments: something goes back through them, or they are constants.
"""

import pathlib
import re

import torch
import torchgen

TABLE = pathlib.Path(torchgen.__file__).parent / "packaged" / "autograd" / "derivatives.yaml"
NO_FORMULA = ("non_differentiable", "not_implemented", '"not_implemented', "'not_implemented")
# Put together of operators that PyTorch does not differentiate.
IN_VAIN = ("histogramdd", "linalg_ldl_factor")


def formulas(lines):
    """Name, arguments and formulas of each entry."""
    name, args, found = None, (), []
    for line in lines:
        entry = re.match(r"- name: ([\w.]+)\((.*)\) ->", line)
        if entry:
            if name:
                yield name, args, found
            name, found = entry.group(1), []
            args = re.findall(r"\bTensor(?:\([^)]*\))?(?:\?|\[\d*\])* (\w+)", entry.group(2))
            continue
        formula = re.match(r"\s+([\w, ]+): (.*)$", line)
        if formula:
            found.append((formula.group(1), formula.group(2).strip()))
    yield name, args, found


def stated():
    for name, args, found in formulas(TABLE.read_text().splitlines()):
        moved = [arg.strip() for names, f in found if not f.startswith(NO_FORMULA) for arg in names.split(",")]
        moved = [arg for arg in args if arg in moved]
        if moved:
            yield name, moved


def composite():
    for schema in torch._C._jit_get_all_schemas():
        name = schema.name.removeprefix("aten::") + ("." + schema.overload_name if schema.overload_name else "")
        tensors = [[a for a in all if "Tensor" in str(a.type)] for all in (schema.arguments, schema.returns)]
        out = any(a.is_out or (a.kwarg_only and a.name == "out") for a in schema.arguments)
        if schema.name.startswith("aten::") and all(tensors) and not out and not name.startswith(IN_VAIN):
            key = "CompositeImplicitAutograd"
            try:
                if torch._C._dispatch_has_kernel_for_dispatch_key("aten::" + name, key):
                    yield name, ["*"]
            except RuntimeError:
                pass  # Known to the interpreter alone.


if __name__ == "__main__":
    found = dict(composite()) | dict(stated())
    print("\n".join(f"{name} {' '.join(args)}" for name, args in sorted(found.items())))

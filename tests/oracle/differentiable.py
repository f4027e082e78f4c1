"""Writes tests/oracle/differentiable.txt: the operators that PyTorch has a formula for the derivative of.

    python tests/oracle/differentiable.py > tests/oracle/differentiable.txt

Needs torch 2.6, whose package brings the table of formulas along. An operator counts if some argument has a formula:
`non_differentiable` and `not_implemented` are none. What PyTorch puts together of others is not in the table.
"""

import pathlib
import re

import torchgen

TABLE = pathlib.Path(torchgen.__file__).parent / "packaged" / "autograd" / "derivatives.yaml"
NO_FORMULA = ("non_differentiable", "not_implemented", '"not_implemented')


def formulas(lines):
    """Name and formulas of each entry."""
    name, found = None, []
    for line in lines:
        entry = re.match(r"- name: ([\w.]+)\(", line)
        if entry:
            if name:
                yield name, found
            name, found = entry.group(1), []
            continue
        formula = re.match(r"\s+([\w, ]+): (.*)$", line)
        if formula and formula.group(1) not in ("result", "output_differentiability", "dispatch"):
            found.append(formula.group(2).strip())
    yield name, found


names = {
    name
    for name, found in formulas(TABLE.read_text().splitlines())
    if any(not f.startswith(NO_FORMULA) for f in found)
}
print("\n".join(sorted(names)))

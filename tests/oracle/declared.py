"""Writes ops/src/schemas.txt: the schema of every operator PyTorch registers for TorchScript.

Names are sorted; the overloads of a name stand in the order in which TorchScript tries them.
"""
import pathlib
import torch

names = sorted({s.name for s in torch._C._jit_get_all_schemas()})
lines = []
for name in names:
    seen = set()
    for schema in torch._C._jit_get_schemas_for_operator(name):
        text = str(schema)
        key = text.split("(", 1)[0]
        if key not in seen:
            seen.add(key)
            lines.append(text)
out = pathlib.Path(__file__).parents[2] / "ops" / "src" / "schemas.txt"
out.write_text("\n".join(lines) + "\n")
print(len(names), "names", len(lines), "schemas")

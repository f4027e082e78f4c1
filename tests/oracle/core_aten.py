"""Records the operators that PyTorch's `ExportedProgram.run_decompositions()` replaces.

    python tests/oracle/core_aten.py > tests/oracle/core_aten.txt

One operator of ATen per line, without overloads for `out` and for names of dimensions: those of the default table, and those that
are compositions of other operators for every use. Needs torch 2.6.
"""

import torch
from torch.export import default_decompositions


def is_composed(name):
    return torch._C._dispatch_has_kernel_for_dispatch_key(name, "CompositeImplicitAutograd")


names = {str(op).removeprefix("aten.") for op in default_decompositions() if str(op).startswith("aten.")}
for name in torch._C._dispatch_get_all_op_names():
    if name.startswith("aten::") and is_composed(name):
        base, _, overload = name.removeprefix("aten::").partition(".")
        names.add(f"{base}.{overload or 'default'}")
for name in sorted(names):
    overload = name.split(".")[1]
    if "out" not in overload.lower().replace("_output", "") and "name" not in overload.lower():
        print(name)

"""Records which overload PyTorch chooses for calls, and which conversions it inserts, into overloads.txt beside this file.

Per operator one line `S <tab> schema` per overload in registration order, then one line per call:
`C <tab> argument types <tab> schema or - <tab> kinds of inserted nodes`.
Types are annotations; `[]` is the empty literal. A keyword argument is written `name=type`.
"""

import itertools
import pathlib
import random

import torch

KINDS = ["Tensor", "int", "float", "bool", "complex", "str", "number", "List[int]", "List[Tensor]", "Tuple[int, int]",
         "Optional[int]", "List[float]", "None", "[]", "Tuple[Tensor, Tensor]", "Dict[str, int]", "Optional[Tensor]",
         "Tuple[float, int]"]
# (operator, how many positional arguments, keywords to try)
OPERATORS = [
    ("add", (2,), ["alpha"]), ("sub", (2,), []), ("mul", (2,), []), ("div", (2,), ["rounding_mode"]), ("pow", (2,), []),
    ("eq", (2,), []), ("lt", (2,), []), ("remainder", (2,), []), ("floor_divide", (2,), []), ("bitwise_and", (2,), []),
    ("zeros", (1, 2, 3), ["dtype"]), ("full", (2,), []), ("arange", (1, 2, 3), []), ("sum", (1, 2), ["keepdim"]),
    ("mean", (1, 2), []), ("max", (1, 2, 3), []), ("cat", (1, 2), []), ("stack", (1, 2), []), ("chunk", (2, 3), []),
    ("transpose", (3,), []), ("permute", (2, 3), []), ("reshape", (2, 3), []), ("view", (2, 3), []), ("clamp", (1, 2, 3), ["min"]),
    ("where", (1, 3), []), ("select", (3,), []), ("max_pool2d", (2, 3), ["stride"]), ("conv2d", (2, 3, 4), ["stride"]),
    ("dropout", (3,), []), ("softmax", (2,), []), ("norm", (1, 2), []), ("Int", (1,), []), ("Float", (1,), []),
    ("Bool", (1,), []), ("len", (1,), []), ("append", (2,), []), ("__getitem__", (2,), []), ("get", (2, 3), []),
    ("to", (1, 2, 3), []), ("expand", (2, 3), []), ("matmul", (2,), []), ("addmm", (3,), ["beta"]),
    ("split", (2, 3), []), ("unsqueeze", (2,), []), ("flatten", (1, 2), []), ("std", (1, 2), []), ("ceil", (1,), []),
    ("neg", (1,), []), ("round", (1,), []), ("masked_fill", (3,), []), ("index_select", (3,), []), ("quantile", (2,), []),
    ("linspace", (3,), []), ("randint", (2, 3), []), ("device", (1,), []), ("str", (1,), []), ("sorted", (1,), []),
    ("extend", (2,), []), ("__contains__", (2,), []), ("ones_like", (1,), []), ("gather", (3,), []), ("isinf", (1,), []),
]
# Their number-first forms are written in TorchScript and inlined.
SCRIPTED = {"add", "sub", "mul", "div", "eq", "lt"}
INSERTED = {"aten::FloatImplicit", "aten::IntImplicit", "aten::ScalarImplicit", "aten::ComplexImplicit", "aten::Int",
            "aten::Float", "aten::Complex", "aten::device", "prim::ListConstruct", "prim::TupleUnpack",
            "prim::TupleConstruct"}


def chosen(op, args, keywords):
    names = [f"a{i}" for i in range(len(args) + len(keywords))]
    types = args + [k for _, k in keywords]
    literals = {n: t for n, t in zip(names, types) if t in ("[]", "None")}
    params = ", ".join(f"{n}: {t}" for n, t in zip(names, types) if n not in literals)
    given = [literals.get(n, n) for n in names]
    call = ", ".join(given[: len(args)] + [f"{k}={g}" for (k, _), g in zip(keywords, given[len(args):])])
    source = f"def f({params}):\n    return torch.ops.aten.{op}({call})\n"
    try:
        graph = torch.jit.CompilationUnit(source).f.graph
    except Exception:
        return "-", []
    nodes = list(graph.nodes())
    calls = [n for n in nodes if n.kind() == f"aten::{op}"]
    if not calls:
        return None
    call = calls[-1]
    inserted = sorted(n.kind() for n in itertools.takewhile(lambda n: n is not call, nodes) if n.kind() in INSERTED)
    schema = call.schema()
    # A node names the first schema that takes its operands, which need not be the one that the call chose.
    if op == "len" and "ListConstruct" in "".join(inserted):
        return None
    if schema == "(no schema)":
        return None
    return schema, inserted


def main():
    random.seed(7)
    lines = []
    for op, arities, keywords in OPERATORS:
        schemas = [str(s) for s in torch._C._jit_get_schemas_for_operator(f"aten::{op}")]
        calls = set()
        for n in arities:
            every = list(itertools.product(KINDS, repeat=n)) if n < 3 else []
            likely = [tuple(random.choice(KINDS[: 3 if random.random() < 0.7 else None]) for _ in range(n)) for _ in range(60)]
            if n == 2:
                every = random.sample(every, 110)
            calls.update((c, ()) for c in every + likely)
            calls.update((c, ((k, random.choice(KINDS[:10])),)) for k in keywords for c in random.sample(likely, 25))
        rows = []
        for args, kws in sorted(calls):
            if op in SCRIPTED and args[0] != "Tensor" and "Tensor" in args:
                continue
            answer = chosen(op, list(args), list(kws))
            # Most calls fit nothing: a third of those is enough.
            if answer is not None and (answer[0] != "-" or random.random() < 0.3):
                text = "; ".join(list(args) + [f"{k}={t}" for k, t in kws])
                rows.append(f"C\t{text}\t{answer[0]}\t{' '.join(answer[1])}")
        lines += [f"S\t{s}" for s in schemas] + rows
    pathlib.Path(__file__).with_suffix(".txt").write_text("".join(line + "\n" for line in lines))


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()

"""Records the schemas of every operator PyTorch knows, sorted, one per line, into schemas.txt beside this file."""

import pathlib

import torch

schemas = sorted(str(schema) for schema in torch._C._jit_get_all_schemas())
pathlib.Path(__file__).with_suffix(".txt").write_text("".join(s + "\n" for s in schemas))

"""Records inputs and PyTorch's outputs of the LSTM cell that the command shows when it is called without arguments.

Writes cli/data/lstm_cell.json (values in the encoding of flambeau::json), tests/data/lstm_cell_function.pt, and what
PyTorch prints as the graph, without comments about the source, as tests/data/lstm_cell.ir.
"""
import base64
import json
import pathlib
import torch

root = pathlib.Path(__file__).parents[2]
source = (root / "cli/data/lstm_cell.py").read_text()
torch.set_num_threads(1)
torch.manual_seed(0)
hidden = 8
inputs = [
    torch.randn(1, hidden),
    torch.randn(1, hidden),
    torch.randn(1, hidden),
    torch.randn(4 * hidden, hidden) * 0.3,
    torch.randn(4 * hidden, hidden) * 0.3,
    torch.randn(4 * hidden) * 0.1,
    torch.randn(4 * hidden) * 0.1,
]
cell = torch.jit.CompilationUnit(source).lstm_cell
outputs = cell(*inputs)


def encode(t):
    return {
        "t": "tensor",
        "dtype": "float32",
        "shape": list(t.shape),
        "b64": base64.b64encode(t.contiguous().numpy().tobytes()).decode(),
    }


record = {
    "inputs": [encode(t) for t in inputs],
    "expected": {"t": "tuple", "v": [encode(t) for t in outputs]},
}
(root / "cli/data/lstm_cell.json").write_text(json.dumps(record) + "\n")
(root / "tests/data").mkdir(exist_ok=True)
torch.jit.save(cell, str(root / "tests/data/lstm_cell_function.pt"))
(root / "tests/data/lstm_cell.ir").write_text(cell.graph.str(False))

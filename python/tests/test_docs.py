"""Every block of code of the pages for Python runs, in order, in one program per page.

A block whose line ``python`` names libraries runs only where they are installed.
"""

import importlib.util
import pathlib
import re
import runpy

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = ["docs/python.md", "python/README.md"]


def blocks(text):
    """Returns the blocks of code with the libraries they need, and the number of the line before each."""
    found = re.finditer(r"^```python([^\n]*)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return [(m.group(1).split(), m.group(2), text[: m.start(2)].count("\n")) for m in found]


def program(text):
    """Returns the blocks as one program, at the lines that they have in the page."""
    lines = []
    for needed, code, line in blocks(text):
        if all(importlib.util.find_spec(library) for library in needed):
            lines.extend([""] * (line - len(lines)))
            lines.extend(code.split("\n"))
    return "\n".join(lines)


@pytest.mark.parametrize("page", PAGES)
def test_pages_run(page, tmp_path, monkeypatch):
    text = (ROOT / page).read_text()
    assert blocks(text)
    file = tmp_path / (pathlib.Path(page).stem + ".py")
    file.write_text(program(text))
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(file), run_name="__main__")

"""The tables of protocol/streaming.md against the code."""

import importlib
import re
from pathlib import Path

from ibbmaster.kernel.shapes import kernel_names

STREAMING = Path(__file__).parents[2] / "protocol" / "streaming.md"


def test_every_kernel_is_told_and_has_a_slow_twin():
    section = STREAMING.read_text().partition("\n## Kernels\n")[2].partition("\n## ")[0]
    rows = [line.split("|")[1:4] for line in section.splitlines() if line.startswith("| `")]
    assert {name for kernels, _, _ in rows for name in re.findall(r"`(\w+)`", kernels)} == set(kernel_names())
    for kernels, _, twins in rows:
        for twin in re.findall(r"`([\w.]+)`", twins):
            importlib.import_module(f"ibbmaster.{twin}")
        assert twins.strip() in ("the same", "framing once more") or "`" in twins, kernels

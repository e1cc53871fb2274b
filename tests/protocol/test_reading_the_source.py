"""The way through the source that the guide shows leads through rooms that there are."""

import ast
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "ibbmaster"
GUIDE = (ROOT / "docs" / "reading-the-source.md").read_text()


def rooms() -> list[str]:
    """Each folder of the package, from top to bottom as the import contract has them."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    names = [name for layer in layers for name in layer.split(" | ")]
    return [name for name in names if (PACKAGE / name / "__init__.py").exists()]


def first_line(room: str) -> str:
    text = ast.get_docstring(ast.parse((PACKAGE / room / "__init__.py").read_text()))
    assert text is not None, room
    return text.splitlines()[0]


def test_the_table_has_each_room_in_the_order_of_the_contract_with_its_own_words():
    assert re.findall(r"^\| `(\w+)` \| (.*) \|$", GUIDE, re.MULTILINE) == [(room, first_line(room)) for room in rooms()]


def test_each_module_on_the_way_is_there():
    named = re.findall(r"`(\w+(?:/\w+)+)`", GUIDE)

    assert len(named) > 20
    there = [
        name
        for name in named
        if any((base / f"{name}.py").exists() or (base / name).is_dir() for base in (PACKAGE, PACKAGE.parent, ROOT))
    ]
    assert there == named

"""The way through the source that the guide shows leads through rooms that there are."""

import ast
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
PACKAGE = SOURCE / "ibbmaster"
GUIDE = (ROOT / "docs" / "reading-the-source.md").read_text()


def layers() -> dict[str, list[str]]:
    """The folders of the package, and of each wing with rooms, from top to bottom as the import contracts have them."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    found = {one["containers"][0]: one["layers"] for one in contracts if one["type"] == "layers"}
    names = {place: [name for layer in layers for name in layer.split(" | ")] for place, layers in found.items()}
    return {
        place.rpartition(".")[2]: [name for name in listed if (SOURCE.joinpath(*place.split("."), name)).is_dir()]
        for place, listed in names.items()
    }


def first_line(room: str) -> str:
    text = ast.get_docstring(ast.parse((PACKAGE / room / "__init__.py").read_text()))
    assert text is not None, room
    return text.splitlines()[0]


def test_the_table_has_each_wing_and_room_in_the_order_of_the_contracts_with_its_own_words():
    found = layers()
    wanted = [(wing, [*found.get(wing, [])], first_line(wing)) for wing in found.pop("ibbmaster")]
    rows = re.findall(r"^\| `(\w+)` \| (.*) \| (.*) \|$", GUIDE, re.MULTILINE)
    assert [(wing, re.findall(r"`(\w+)`", rooms), text) for wing, rooms, text in rows] == wanted


def test_each_module_on_the_way_is_there():
    named = re.findall(r"`(\w+(?:/\w+)+)`", GUIDE)

    assert len(named) > 20
    there = [
        name
        for name in named
        if any((base / f"{name}.py").exists() or (base / name).is_dir() for base in (PACKAGE, PACKAGE.parent, ROOT))
    ]
    assert there == named

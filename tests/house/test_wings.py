"""Each wing of the package has a page that leads a stranger; its rooms and imports are as the page says.

And no module needs itself: imports of any kind lead from room to room, and never back to where they began.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.machinery.syntax_trees import tree_of

SOURCE = Path(__file__).parents[2] / "src"
PACKAGE = SOURCE / "ibbmaster"
PAGE_LINES_MAX = 15
WINGS = sorted(path.parent for path in PACKAGE.glob("*/__init__.py"))


def page_of(wing: Path) -> str:
    return ast.get_docstring(ast.parse((wing / "__init__.py").read_text())) or ""


@pytest.mark.parametrize("wing", WINGS, ids=lambda wing: wing.name)
def test_the_page_of_a_wing_is_short_and_names_its_rooms(wing: Path) -> None:
    page = page_of(wing)
    assert len(page.splitlines()) <= PAGE_LINES_MAX
    rooms = {path.parent.name for path in wing.glob("*/__init__.py")}
    assert [room for room in sorted(rooms) if f"`{room}`" not in page] == []


@pytest.mark.parametrize("wing", WINGS, ids=lambda wing: wing.name)
def test_a_wing_imports_those_that_its_page_allows(wing: Path) -> None:
    said = re.search(r"^May import: (.*?)\.$", page_of(wing), re.MULTILINE | re.DOTALL)
    assert said is not None
    allowed = set() if said[1] == "no other wing" else set(said[1].replace("\n", " ").split(", "))
    names = {path.name for path in WINGS}
    found = {
        imported.split(".")[1]
        for module, others in imports(SOURCE).items()
        for imported in others
        if module.startswith(f"ibbmaster.{wing.name}.") and imported.count(".")
    }
    assert found & names - {wing.name} == allowed


def test_the_modules_that_a_page_names_are_there() -> None:
    for wing in WINGS:
        for room, names in re.findall(r"^- `(\w+)`: (.*?)(?=^- |\n\n)", page_of(wing), re.MULTILINE | re.DOTALL):
            for name in re.findall(r"`(\w+(?:/\w+)?)`", names):
                place = wing / name if "/" in name else wing / room / name
                assert place.with_suffix(".py").exists() or place.is_dir(), f"{wing.name}: {name}"


Imports = Mapping[str, set[str]]  # of each module, by name


def module_paths(source: Path) -> dict[str, Path]:
    found = {}
    for path in source.rglob("*.py"):
        parts = path.relative_to(source).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@functools.cache
def imports(source: Path) -> Imports:
    """What each module imports of the others: at its top, in functions, and only for types."""
    paths = module_paths(source)
    return {name: set(_imported(tree_of(path, source), set(paths))) - {name} for name, path in paths.items()}


def _imported(tree: ast.Module, modules: set[str]) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom) and node.module in modules:
            named = (f"{node.module}.{alias.name}" for alias in node.names)
            yield from (name if name in modules else node.module for name in named)


def circles(graph: Imports) -> list[list[str]]:
    """The modules that can be reached from each other, sorted: what reaches both ways is one circle."""
    reached = {name: _reached(graph, name) for name in graph}
    found = {tuple(sorted(other for other in reached[name] if name in reached[other])) for name in graph}
    return sorted(list(circle) for circle in found if circle)


def _reached(graph: Imports, start: str) -> set[str]:
    """The modules that a module leads to by one import or more."""
    found: set[str] = set()
    ahead = {start}
    while ahead:
        ahead = set().union(*(graph[name] for name in ahead)) - found
        found |= ahead
    return found


def test_no_modules_import_each_other() -> None:
    assert circles(imports(SOURCE)) == []


def test_an_import_of_any_kind_closes_a_circle(tmp_path: Path) -> None:
    room = tmp_path / "room"
    room.mkdir()
    (room / "__init__.py").write_text("")
    (room / "above.py").write_text("from room import below\n")
    (room / "below.py").write_text("def late():\n    from room.side import thing\n")
    (room / "side.py").write_text("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import room.below\n")
    assert circles(imports(tmp_path)) == [["room.below", "room.side"]]

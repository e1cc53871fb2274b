"""Each wing of the package has a page that leads a stranger; its rooms and imports are as the page says."""

import ast
import re
from pathlib import Path

import pytest

from tests.house.test_circles import imports

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

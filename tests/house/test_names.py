"""The names of the front door: those of its document and of the typed file, each there and loaded when asked for."""

import ast
import re
from pathlib import Path

import pytest

import ibbmaster

ROOT = Path(__file__).parents[2]
MOST_NAMES = 27
ROW = re.compile(r"^\| (`[^|]*`) \| ", re.MULTILINE)


def names_of_the_document() -> set[str]:
    text = (ROOT / "docs" / "api.md").read_text()
    return {name for cell in ROW.findall(text) for name in re.findall(r"`(\w+)", cell)}


def names_of_the_typed_file() -> set[str]:
    return {
        node.attr
        for node in ast.walk(ast.parse((ROOT / "tests" / "typing" / "api.py").read_text()))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "ibbmaster"
    }


def test_the_document_and_the_typed_file_have_the_names_of_the_package_and_no_others() -> None:
    assert names_of_the_document() == set(ibbmaster.__all__)
    assert names_of_the_typed_file() == set(ibbmaster.__all__)
    assert len(ibbmaster.__all__) <= MOST_NAMES


@pytest.mark.parametrize("name", ibbmaster.__all__)
def test_a_name_is_there_and_says_what_it_is(name: str) -> None:
    found = getattr(ibbmaster, name)
    assert getattr(ibbmaster, name) is found
    assert name in dir(ibbmaster)
    assert found.__doc__


def test_a_name_there_is_not_is_told_as_of_any_module() -> None:
    with pytest.raises(AttributeError, match="module 'ibbmaster' has no attribute 'nothing'"):
        _ = ibbmaster.nothing


def test_a_name_is_loaded_when_it_is_first_asked_for(fresh) -> None:
    program = (
        "import sys, ibbmaster; before = {name for name in sys.modules if name.startswith('ibbmaster')}; "
        "ibbmaster.Gtid; print(sorted(before), 'ibbmaster.gtid' in sys.modules, 'ibbmaster.api' in sys.modules)"
    )
    assert fresh(program) == ["['ibbmaster'] True False"]

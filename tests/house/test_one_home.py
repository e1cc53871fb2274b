"""A question that has its home is answered there alone."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "src" / "ibbmaster"


def has_rows_define(node: ast.AST) -> bool:
    """Whether somebody has rows define tables who has not asked `log.undefined_tables` if they must."""
    match node:
        case ast.keyword(arg="takes_rows", value=ast.Constant(value=True)):
            return True
    return False


def test_whether_rows_must_define_tables_is_decided_in_one_place() -> None:
    found = [
        f"{path.relative_to(PACKAGE)}: {ast.unparse(node)}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if has_rows_define(node)
    ]
    assert found == []


@pytest.mark.parametrize("text", ["logged_schema(options, log, takes_rows=True)", "new(takes_rows=True).history()"])
def test_a_place_that_decides_it_once_more_is_found(text) -> None:
    assert any(map(has_rows_define, ast.walk(ast.parse(text))))

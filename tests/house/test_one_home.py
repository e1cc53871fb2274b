"""A question that has its home is answered there alone."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "src" / "ibbmaster"


def has_rows_define(node: ast.AST) -> bool:
    """Whether somebody has rows define tables who has not asked `log.undefined_tables` if they must."""
    match node:
        case ast.keyword(arg="takes_rows", value=ast.Constant(value=True)):
            return True
    return False


def keeps_history_twice(node: ast.AST) -> bool:
    """Whether somebody keeps a history beside the folding that has it."""
    match node:
        case ast.Call(func=ast.Name(id="GroupFolding"), args=[ast.Attribute(), *_]):
            return True
    return False


Finds = Callable[[ast.AST], bool]
HOMES: dict[str, tuple[Finds, list[str]]] = {  # each with what it has to find
    "whether rows must define tables": (
        has_rows_define,
        ["logged_schema(options, log, takes_rows=True)", "new(takes_rows=True).history()"],
    ),
    "what a log was folded to": (
        keeps_history_twice,
        ["self._folding = GroupFolding(self._history, takes_rows=options.table is not None)"],
    ),
}


@pytest.mark.parametrize("finds", [finds for finds, _ in HOMES.values()], ids=HOMES)
def test_nobody_answers_it_once_more(finds: Finds) -> None:
    found = [
        f"{path.relative_to(PACKAGE)}: {ast.unparse(node)}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if finds(node)
    ]
    assert found == []


@pytest.mark.parametrize(("finds", "text"), [(finds, text) for finds, texts in HOMES.values() for text in texts])
def test_who_does_is_found(finds: Finds, text: str) -> None:
    assert any(map(finds, ast.walk(ast.parse(text))))

"""A question that has its home is answered there alone."""

import ast
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.machinery.syntax_trees import tree_of

ROOT = Path(__file__).parents[2]
LOOKED_INTO = (ROOT / "src", ROOT / "tests" / "interop")  # tests with odd names of real servers, too


def has_rows_define(node: ast.AST) -> bool:
    """Whether somebody has rows define tables who has not asked `log.group_folding` if they must."""
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


TABLES = ("full_name", "key", "name", "parent", "table", "table_name")  # what code calls a table's name


def joins_or_splits_names(node: ast.AST) -> bool:
    """Whether somebody reads or prints the name of a table who has not asked `sqltext.table_name`: names have dots."""
    match node:
        case ast.JoinedStr(values=parts):
            return any(
                isinstance(first, ast.Attribute)
                and isinstance(second, ast.Attribute)
                and (first.attr, dot) == ("database", ".")
                and second.attr in ("name", "table")
                for first, dot, second in (
                    tuple(getattr(part, "value", None) for part in parts[place : place + 3])
                    for place in range(len(parts) - 2)
                )
            )
        case (
            ast.Call(
                func=ast.Attribute(attr="partition" | "split", value=ast.Name(id=name)),
                args=[ast.Constant(value="."), *_],
            )
            | ast.Call(func=ast.Attribute(attr="join", value=ast.Constant(value=".")), args=[ast.Name(id=name)])
        ):
            return name in TABLES
    return False


Finds = Callable[[ast.AST], bool]
HOMES: dict[str, tuple[Finds, list[str]]] = {  # each with what it has to find
    "whether rows must define tables": (
        has_rows_define,
        ["logged_schema(options, log, takes_rows=True)", "new(takes_rows=True).history()"],
    ),
    "how a database and a table become one text": (
        joins_or_splits_names,
        [
            'name.partition(".")',
            'table.split(".", 1)',
            '".".join(key)',
            'f"table {self.database}.{self.name}"',
            'f"{schema.database}.{schema.table}"',
        ],
    ),
    "what a log was folded to": (
        keeps_history_twice,
        ["self._folding = GroupFolding(self._history, takes_rows=options.table is not None)"],
    ),
}


@pytest.mark.parametrize("finds", [finds for finds, _ in HOMES.values()], ids=HOMES)
def test_nobody_answers_it_once_more(finds: Finds) -> None:
    found = [
        f"{path.relative_to(ROOT)}: {ast.unparse(node)}"
        for place in LOOKED_INTO
        for path in sorted(place.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if finds(node)
    ]
    assert found == []


@pytest.mark.parametrize(("finds", "text"), [(finds, text) for finds, texts in HOMES.values() for text in texts])
def test_who_does_is_found(finds: Finds, text: str) -> None:
    assert any(map(finds, ast.walk(ast.parse(text))))


def test_values_of_sql_are_computed_and_compared_in_one_room() -> None:
    """Others read expressions, print them, or plan what is asked of them; a session sees what := assigns."""
    package = ROOT / "src" / "ibbmaster"
    computing = ("Operation", "Aggregate", "Cast")
    importers = {
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        for node in ast.walk(tree_of(path, package.parent))
        if isinstance(node, ast.ImportFrom)
        and node.module == "ibbmaster.sqltext.expression"
        and any(alias.name in computing for alias in node.names)
    }
    assert "expr" in {Path(path).parent.name for path in importers}
    assert {path for path in importers if Path(path).parent.name not in ("sqltext", "expr", "select")} == {
        "primary/dialogue/evaluating.py"
    }
    planning = {path for path in importers if path.startswith("primary/select/")}
    assert {path for path in planning if "import operator" in (package / path).read_text()} == set()

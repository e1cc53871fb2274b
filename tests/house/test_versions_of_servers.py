"""What differs between versions of servers is asked of one table: nobody else compares their numbers."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "src" / "ibbmaster"
TABLE = PACKAGE / "versions.py"
#: Comparisons with a number that a statement has written, which no table could know.
OF_STATEMENTS = {"sqltext/token.py": {"number > (version or Difference.REVERSED_COMMENTS.since)", "number <= version"}}
ORDER = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
BEGINS_VERSION = re.compile(r"(?:5|1[0-3])\.(?:\d.*)?")


def names_version(node: ast.AST) -> bool:
    """Whether an operand is the version of a server: a name or a call that says so."""
    names = (part.id if isinstance(part, ast.Name) else getattr(part, "attr", "") for part in ast.walk(node))
    return any(name in ("version", "version_number", "server_version", "sql_version") for name in names)


def comparisons(tree: ast.Module) -> Iterator[str]:
    """What in a module decides by the version of a server."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and any(isinstance(one, ORDER) for one in node.ops):
            if any(names_version(operand) for operand in (node.left, *node.comparators)):
                yield ast.unparse(node)
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("startswith", "match", "fullmatch"):
            given = [one.value for one in node.args if isinstance(one, ast.Constant)]
            if any(isinstance(text, str) and BEGINS_VERSION.fullmatch(text) for text in given):
                yield ast.unparse(node)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id.endswith("_SINCE"):
            yield node.id


def test_only_the_table_of_differences_compares_versions():
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        name = str(path.relative_to(PACKAGE))
        if path != TABLE:
            others = set(comparisons(ast.parse(path.read_text()))) - OF_STATEMENTS.get(name, set())
            found |= {name: others} if others else {}

    assert found == {}


BY_VERSION = """is_new = version >= 110500
x = 1 if version_number(facts) < LARGE else 2
ok = (11, 5) <= self.server_version
old = text.startswith('10.')
NEW_SINCE = (11, 5)"""
OTHERS = ["Difference.HEX_DEFAULTS.holds(version)", "version != 4", "name.startswith('10')", "count >= 10"]


@pytest.mark.parametrize("text", [*BY_VERSION.splitlines(), *OTHERS])
def test_a_comparison_of_versions_is_found_and_no_other(text):
    assert (list(comparisons(ast.parse(text))) == []) == (text in OTHERS)

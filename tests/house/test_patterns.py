"""Regular expressions do what they say in every Python that runs the package."""

import ast
import re
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "src" / "ibbmaster"
POSSESSIVE_GROUP = re.compile(r"(?<!\\)\)[*+?]\+")


def test_no_group_is_possessive() -> None:
    """Python up to 3.11.4, which Debian 12 has, ends such a group too early; `(?>(?:…)*)` means the same."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
                text = node.value if isinstance(node.value, str) else node.value.decode("latin-1")
                if POSSESSIVE_GROUP.search(text):
                    found.append(f"{path.relative_to(PACKAGE)}:{node.lineno}")

    assert found == []

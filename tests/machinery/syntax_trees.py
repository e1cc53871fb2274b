"""Syntax trees of modules in which each import names its module in full."""

import ast
from pathlib import Path


def tree_of(path: Path, source: Path) -> ast.Module:
    """The tree of a module below a folder of packages; `from .name import …` is read as from the package's own."""
    tree = ast.parse(path.read_text())
    package = path.relative_to(source).parts[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            above = package[: len(package) - node.level + 1]
            node.module, node.level = ".".join((*above, *filter(None, [node.module]))), 0
    return tree

"""A class that has a base is made as its base is: what sets the fields of a base is its constructor alone."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "src" / "ibbmaster"
#: Classes that set all fields of their base themselves. This list only gets shorter.
BY_HAND = ["StoredGroups"]


def constructor(one: ast.ClassDef) -> ast.FunctionDef | None:
    return next((part for part in one.body if isinstance(part, ast.FunctionDef) and part.name == "__init__"), None)


def base_names(one: ast.ClassDef) -> list[str]:
    return [base.id for base in one.bases if isinstance(base, ast.Name)]


def made_by_hand(classes: list[ast.ClassDef]) -> Iterator[str]:
    """Those whose constructor does not call that of a base which has one."""
    by_name = {one.name: one for one in classes}

    def has_constructor(name: str) -> bool:
        one = by_name.get(name)
        return one is not None and (constructor(one) is not None or any(map(has_constructor, base_names(one))))

    for one in classes:
        own = constructor(one)
        if own is not None and any(map(has_constructor, base_names(one))):
            calls = (node.func for node in ast.walk(own) if isinstance(node, ast.Call))
            if not any(isinstance(called, ast.Attribute) and called.attr == "__init__" for called in calls):
                yield one.name


def classes_of(text: str) -> list[ast.ClassDef]:
    return [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ClassDef)]


def test_no_class_sets_the_fields_of_its_base_by_hand() -> None:
    classes = [one for path in sorted(PACKAGE.rglob("*.py")) for one in classes_of(path.read_text())]
    assert list(made_by_hand(classes)) == BY_HAND


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("class A:\n def __init__(self): self.a = 1\nclass B(A):\n def __init__(self): self.a = 2", ["B"]),
        ("class A:\n def __init__(self): self.a = 1\nclass B(A): pass\nclass C(B):\n def __init__(self): pass", ["C"]),
        ("class A:\n def __init__(self): self.a = 1\nclass B(A):\n def __init__(self): super().__init__()", []),
        ("class A: pass\nclass B(A):\n def __init__(self): self.a = 2", []),
        ("class B(Exception):\n def __init__(self): self.a = 2", []),
    ],
)
def test_a_class_that_does_is_found(text, found) -> None:
    assert list(made_by_hand(classes_of(text))) == found

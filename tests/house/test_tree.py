"""Where things are: tests mirror the source, and a path says what is in it; and a class that has a base is made as its
base is: what sets the fields of a base is its constructor alone.
"""

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.case_table import rows_of
from tests.machinery.syntax_trees import tree_of

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
PACKAGE = ROOT / "src" / "ibbmaster"
SCORECARD = ROOT / "src" / "ibbmaster_scorecard"
#: No modules: each adapter runs by itself, as interop/test_consumers.py runs them, and installing runs the hook.
PROGRAMS = {SCORECARD / "adapters", PACKAGE / "kernel" / "build_hook.py"}
#: Folders of tests of no single module.
OF_THE_WHOLE = {"docs", "typing", "house", "interop", "machinery", "protocol", "simulation"}
DECIDES = (ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While, ast.Try, ast.Match, ast.BoolOp, ast.comprehension)

#: Modules that only make sense together, by the test that is about them.
HELD_TOGETHER = {test: modules for test, *modules in rows_of(__file__, "held_together")}
NO_NAMES = {"utils", "common", "helpers", "constants", "models", "base"}  # they say nothing about their content


def module_of(test: Path) -> Path:
    return test.with_name(test.stem.removeprefix("test_"))


def own_test(module: Path) -> Path:
    return module.with_name(f"test_{module.stem}.py")


@functools.cache
def modules() -> dict[Path, Path]:
    """The modules of both packages by the place that tests mirror."""
    found = {path.relative_to(PACKAGE): path for path in PACKAGE.rglob("*.py")}
    return found | {Path("scorecard", path.relative_to(SCORECARD)): path for path in SCORECARD.rglob("*.py")}


@functools.cache
def deciding_modules() -> set[Path]:
    """Those with a branch or a loop: what has none can only be right or wrong as a whole."""
    paths = {name: path for name, path in modules().items() if not path.stem.startswith("__")}
    trees = {
        name: ast.parse(path.read_text()) for name, path in paths.items() if PROGRAMS.isdisjoint((path, *path.parents))
    }
    return {name for name, tree in trees.items() if any(isinstance(node, DECIDES) for node in ast.walk(tree))}


@functools.cache
def imports_of(path: Path) -> set[Path]:
    """The modules of the package that a file imports or names in a text; the format "ibb" is Spark's."""
    names = set()
    for node in ast.walk(tree_of(path, TESTS.parent if TESTS in path.parents else PACKAGE.parent)):
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names.add("ibbmaster.spark.source" if node.value == "ibb" else node.value)
    parts = (name.split(".") for name in names if all(part.isidentifier() for part in name.split(".")))
    places = {"ibbmaster": (), "ibbmaster_scorecard": ("scorecard",)}
    return {Path(*places[first], *rest).with_suffix(".py") for first, *rest in parts if first in places and rest}


def is_reached(module: Path, test: Path) -> bool:
    """Whether a test, or the set-up of its folder, imports a module, or what does; and so on in its room."""
    known = imports_of(test)
    if (test.parent / "conftest.py").exists():
        known |= imports_of(test.parent / "conftest.py")
    looked_at: set[Path] = set()
    ahead = set(known)
    while ahead:
        looked_at |= ahead
        known |= {found for other in ahead & modules().keys() for found in imports_of(modules()[other])}
        ahead = {other for other in known if other.parent == module.parent} - looked_at
    return module in known


def test_each_test_file_mirrors_a_module_or_stands_in_the_table() -> None:
    found = [path.relative_to(TESTS) for path in TESTS.rglob("test_*.py")]
    files = [path for path in found if path.parts[0] not in OF_THE_WHOLE and str(path) not in HELD_TOGETHER]
    known = set(map(module_of, map(own_test, modules())))
    known |= {Path("kernel", path.stem) for path in PACKAGE.glob("kernel/native/*.c")}

    assert sorted(str(path) for path in files if module_of(path) not in known) == []


def test_each_module_with_a_decision_has_its_own_test_or_stands_in_the_table() -> None:
    together = {Path(module) for modules in HELD_TOGETHER.values() for module in modules}
    alone = {module for module in deciding_modules() if not (TESTS / own_test(module)).exists()}

    assert sorted(map(str, alone - together)) == []
    assert sorted(map(str, together - alone)) == []  # has a test of its own, decides nothing, or is not there


def test_a_test_of_several_modules_is_about_each_of_them() -> None:
    assert [test for test in HELD_TOGETHER if not (TESTS / test).exists()] == []
    strange = [
        f"{test}: {module}"
        for test, modules in HELD_TOGETHER.items()
        for module in modules
        if not is_reached(Path(module), TESTS / test)
    ]
    assert strange == []


def test_the_name_of_each_module_says_what_is_in_it() -> None:
    assert [str(path) for path in modules() if NO_NAMES & set(path.with_suffix("").parts)] == []


def test_each_module_begins_by_saying_what_it_is() -> None:
    assert [str(path) for path in modules().values() if not path.read_text().startswith('"""')] == []


def test_folders_of_tests_are_no_packages() -> None:
    assert [str(path) for path in TESTS.rglob("__init__.py") if path.parent.name != "lanes"] == []


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

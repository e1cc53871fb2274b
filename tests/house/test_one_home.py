"""A question that has its home is answered there alone, and regular expressions do what every Python does with them."""

import ast
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.machinery.syntax_trees import tree_of

ROOT = Path(__file__).parents[2]
TABLES = ("full_name", "key", "name", "parent", "table", "table_name")  # what code calls a table's name
KINDS_OF_FILES = {"ClassicBinlog", "ClassicLogFiles", "FileEngine", "FollowedDirectory", "PagedLogFiles"}
VERSIONS = ("version", "version_number", "server_version", "sql_version")  # what code calls the version of a server
BEGINS_VERSION = re.compile(r"(?:5|1[0-3])\.(?:\d.*)?")
POSSESSIVE_GROUP = re.compile(r"(?<!\\)\)[*+?]\+")


def has_rows_define(node: ast.AST) -> bool:
    """Whether rows define tables here, without asking `log.group_folding` if they must."""
    match node:
        case ast.keyword(arg="takes_rows", value=ast.Constant(value=True)):
            return True
    return False


def keeps_history_twice(node: ast.AST) -> bool:
    """Whether a history is kept beside the folding that has it."""
    match node:
        case ast.Call(func=ast.Name(id="GroupFolding"), args=[ast.Attribute(), *_]):
            return True
    return False


def joins_or_splits_names(node: ast.AST) -> bool:
    """Whether the name of a table is read or printed without `sqltext.table_name`: names have dots."""
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


def asks_kind_of_files(node: ast.AST) -> bool:
    """Whether the type of a log is compared, or `is_classic` of one is read."""
    match node:
        case ast.Attribute(attr="is_classic", ctx=ast.Load()) | ast.Call(func=ast.Name(id="has_files")):
            return True
        case ast.Call(func=ast.Name(id="isinstance"), args=[_, kinds]):
            return any(isinstance(name, ast.Name) and name.id in KINDS_OF_FILES for name in ast.walk(kinds))
    return False


def decides_by_version(node: ast.AST) -> bool:
    match node:
        case ast.Compare(left=left, ops=ops, comparators=others):
            names = (
                getattr(part, "id", getattr(part, "attr", "")) for one in (left, *others) for part in ast.walk(one)
            )
            is_order = any(isinstance(one, ast.Lt | ast.LtE | ast.Gt | ast.GtE) for one in ops)
            return is_order and any(name in VERSIONS for name in names)
        case ast.Call(func=ast.Attribute(attr="startswith" | "match" | "fullmatch"), args=args):
            texts = (one.value for one in args if isinstance(one, ast.Constant))
            return any(isinstance(text, str) and BEGINS_VERSION.fullmatch(text) for text in texts)
        case ast.Name(id=name, ctx=ast.Store()):
            return name.endswith("_SINCE")
    return False


def has_possessive_group(node: ast.AST) -> bool:
    """Python up to 3.11.4, which Debian 12 has, ends such a group too early; `(?>(?:…)*)` means the same."""
    match node:
        case ast.Constant(value=str() as text):
            return POSSESSIVE_GROUP.search(text) is not None
        case ast.Constant(value=bytes() as data):
            return POSSESSIVE_GROUP.search(data.decode("latin-1")) is not None
    return False


class Home(NamedTuple):
    """What finds answers to a question, texts in which it does and does not, and where answers may be besides."""

    finds: Callable[[ast.AST], bool]
    found: tuple[str, ...]
    others: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()  # modules, or what is in them


HOMES = {
    "whether rows must define tables": Home(
        has_rows_define, ("logged_schema(options, log, takes_rows=True)", "new(takes_rows=True).history()")
    ),
    "how a database and a table become one text": Home(
        joins_or_splits_names,
        (
            *('name.partition(".")', 'table.split(".", 1)', '".".join(key)'),
            *('f"table {self.database}.{self.name}"', 'f"{schema.database}.{schema.table}"'),
        ),
    ),
    "what a log was folded to": Home(
        keeps_history_twice, ("self._folding = GroupFolding(self._history, takes_rows=options.table is not None)",)
    ),
    "which kind of files a log has": Home(
        asks_kind_of_files,
        ("if log.is_classic: pass", "has_files(log)", "isinstance(engine, (FileEngine, Other))"),
        allowed=(
            "src/ibbmaster/tables/arrow/collecting.py",  # kernels that read pages, or events
            "src/ibbmaster/tables/arrow/plan.py",
            "src/ibbmaster/tables/arrow/staging.py",  # whether a worker sees the files
            "src/ibbmaster/tables/arrow/small_files.py",  # as collecting, of many files
            "src/ibbmaster/primary/server/dump_opening.py",  # a profile that sends files needs some
            "src/ibbmaster/primary/server/facts.py",
            "src/ibbmaster/primary/server/primary.py",  # checksums as the files have them
            "src/ibbmaster/api/log_tables.py",  # hands the kind to those who open it anew
        ),
    ),
    "what differs between versions of servers": Home(
        decides_by_version,
        (
            *("is_new = version >= 110500", "x = 1 if version_number(facts) < LARGE else 2"),
            *("ok = (11, 5) <= self.server_version", "old = text.startswith('10.')", "NEW_SINCE = (11, 5)"),
        ),
        ("Difference.HEX_DEFAULTS.holds(version)", "version != 4", "name.startswith('10')", "count >= 10"),
        allowed=(
            "src/ibbmaster/versions.py",
            # comparisons with a number that a statement has written, which no table could know
            "src/ibbmaster/sqltext/token.py: number > (version or Difference.REVERSED_COMMENTS.since)",
            "src/ibbmaster/sqltext/token.py: number <= version",
        ),
    ),
    "where a group ends": Home(has_possessive_group, ('r"(a|b)*+"', 'rb"(a)++"'), (r'r"(a\)*+"', 'r"a*+"')),
}


def answers() -> dict[str, list[str]]:
    """To each question, in the package and in tests with odd names of real servers."""
    found: dict[str, list[str]] = {question: [] for question in HOMES}
    for place in ("src/ibbmaster", "tests/interop"):
        in_package = place.startswith("src")
        asked = [
            (finds, found[question])
            for question, (finds, *_) in HOMES.items()
            if in_package or finds not in (asks_kind_of_files, decides_by_version, has_possessive_group)
        ]
        for path in sorted((ROOT / place).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                for finds, found_there in asked:
                    if finds(node):
                        found_there.append(f"{path.relative_to(ROOT)}: {ast.unparse(node)}")
    return found


def test_nobody_answers_it_once_more() -> None:
    for question, found in answers().items():
        allowed = HOMES[question].allowed
        assert [one for one in found if not one.startswith(allowed or "\n")] == [], question
        assert [place for place in allowed if not any(one.startswith(place) for one in found)] == [], question


@pytest.mark.parametrize("home", HOMES.values(), ids=HOMES)
def test_who_does_is_found_and_no_other(home: Home) -> None:
    assert [text for text in home.found if not any(map(home.finds, ast.walk(ast.parse(text))))] == []
    assert [text for text in home.others if any(map(home.finds, ast.walk(ast.parse(text))))] == []


def test_values_of_sql_are_computed_and_compared_in_one_room() -> None:
    """Others read expressions, print them, or plan what is asked of them."""
    package = ROOT / "src" / "ibbmaster"
    computing = ("Operation", "Aggregate", "Cast")
    importers = {
        path.relative_to(package)
        for path in package.rglob("*.py")
        for node in ast.walk(tree_of(path, package.parent))
        if isinstance(node, ast.ImportFrom)
        and node.module == "ibbmaster.sqltext.expression"
        and any(alias.name in computing for alias in node.names)
    }
    assert "expr" in {path.parent.name for path in importers}
    others = {str(path) for path in importers if path.parent.name not in ("sqltext", "expr", "select")}
    assert others == set()
    planning = [package / path for path in importers if path.parts[:2] == ("primary", "select")]
    assert [path for path in planning if "import operator" in path.read_text()] == []

"""Which kind of files a log has is asked where it is opened, and in few places more: the others ask the log."""

import ast
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "src" / "ibbmaster"
CLASSES = {"ClassicBinlog", "ClassicLogFiles", "FileEngine", "FollowedDirectory", "PagedLogFiles"}

#: What makes readers of a kind, of options or of an engine, and what only one kind has.
MAKERS = {
    "tables/arrow/collecting.py",  # kernels that read pages, or events
    "tables/arrow/plan.py",
    "tables/arrow/staging.py",  # whether a worker sees the files
    "tables/arrow/small_files.py",  # as collecting, of many files
    "primary/server/dump_opening.py",  # a profile that sends files needs some
    "primary/server/facts.py",
    "primary/server/primary.py",  # checksums as the files have them
    "api/log_tables.py",  # hands the kind to those who open it anew
}


def asks(path: Path) -> bool:
    """Whether a module compares the type of a log, or reads `is_classic` of one."""
    return any(map(_asks, ast.walk(ast.parse(path.read_text()))))


def _asks(node: ast.AST) -> bool:
    match node:
        case ast.Attribute(attr="is_classic", ctx=ast.Load()):
            return True
        case ast.Call(func=ast.Name(id="has_files")):
            return True
        case ast.Call(func=ast.Name(id="isinstance"), args=[_, kinds]):
            return any(isinstance(name, ast.Name) and name.id in CLASSES for name in ast.walk(kinds))
    return False


def test_only_those_that_make_readers_ask_for_the_kind_of_files() -> None:
    assert {str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py") if asks(path)} == MAKERS

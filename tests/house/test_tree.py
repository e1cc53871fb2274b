"""Where things are: tests mirror the source, and a path says what is in it."""

import ast
import functools
from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
PACKAGE = ROOT / "src" / "ibbmaster"
#: No modules: each adapter runs by itself, as interop/test_consumers.py runs them, and installing runs the hook.
PROGRAMS = {PACKAGE / "scorecard" / "adapters", PACKAGE / "kernel" / "build_hook.py"}
OF_THE_WHOLE = {
    "docs",
    "typing",
    "house",
    "interop",
    "machinery",
    "protocol",
    "simulation",
}  # tests of no single module
DECIDES = (ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While, ast.Try, ast.Match, ast.BoolOp, ast.comprehension)

#: Modules that only make sense together, by the test that is about them.
HELD_TOGETHER: dict[str, tuple[str, ...]] = {
    # What a type is to all rooms is seen in them: values written and read, tables described, rows selected.
    "event/column_types/test_registry.py": (
        *("event/column_types/content.py", "event/column_types/geometry.py"),
        *("event/column_types/inet.py", "event/column_types/uuid.py"),
    ),
    "event/column_types/test_new_type.py": (),  # of a type that is made up, through all rooms
    # Each kernel is one loop over arrays that others filled: kernel and reference read the same bytes there.
    "arrow/test_fast_reading.py": (
        *("arrow/arrays.py", "arrow/collecting.py", "arrow/column_reading.py"),
        *("arrow/group_columns.py", "arrow/plain_events.py"),
        *("arrow/reading.py", "arrow/row_columns.py"),
    ),
    "kernel/test_calls.py": ("kernel/building.py", "kernel/fields.py", "kernel/loading.py"),
    "printing/test_fast_lines.py": ("printing/line_columns.py", "printing/line_formats.py"),
    # A reader of files and the pieces that it reads them with.
    "classic/test_binlog.py": ("classic/window.py",),
    "classic/test_groups.py": ("classic/head.py", "classic/roles.py"),
    "log/test_event_groups.py": ("log/cursor.py", "log/out_of_band.py", "log/pages.py"),
    "log/test_end_check.py": ("log/range_reading.py",),
    "classic/test_engine.py": ("classic/framing.py",),
    # Files that grow, are continued, purged and reset: what counts is what a primary would send of them.
    "classic/test_stored_groups.py": ("classic/stored_file.py",),
    "streaming/test_changed_blocks.py": ("streaming/packet_changes.py",),
    "streaming/test_parts_of_logs.py": (),
    "streaming/test_source.py": (
        *("streaming/block.py", "streaming/buffers.py"),
        *("streaming/large_group.py", "streaming/page_blocks.py"),
    ),
    # What a dump gets of a log, whichever way it goes there and whoever went before.
    "streaming/test_left_out_domains.py": (),
    "streaming/test_steps_back.py": (),
    "streaming/test_passed_run.py": (),
    "streaming/test_repeated_blocks.py": (),
    # A store is one state behind one lock: its parts are right if it is, in any order of threads and after any crash.
    "store/test_binlog_store.py": (*("store/in_doubt.py", "store/step_writer.py", "store/store_reader.py"),),
    "store/test_salvage.py": ("log/damaged_log.py",),
    # One statement after the other through all that reads and folds DDL: what counts is the table behind it.
    "schema/test_folding.py": (
        *("schema/alter_clause.py", "schema/altering.py", "schema/building.py", "schema/column_type.py"),
        *("schema/ddl.py", "schema/definition.py", "schema/options.py"),
        *("schema/session.py", "schema/type_clause.py"),
    ),
    # One answer through all that makes it, and what a real server says: a part by itself has nobody to compare with.
    "select/test_scanning.py": (
        *("select/definitions.py", "select/row_blocks.py"),
        "select/row_values.py",
    ),
    # A query goes through all of them, and what is right is what a real server says of the whole.
    "select/test_engine.py": (
        *("expr/kinds.py", "expr/operators.py", "expr/scalars.py"),
        *("expr/session_functions.py", "expr/text_functions.py", "expr/values.py"),
        *("select/collecting.py", "expr/emitting.py", "select/grouping.py", "select/names.py"),
        *("select/planning.py", "expr/showing.py", "select/sources.py"),
        *("select/tables.py", "expr/walking.py"),
    ),
    "expr/test_formulas.py": (
        *("expr/arithmetic.py", "expr/casting.py", "expr/comparing.py", "expr/compiling.py", "expr/functions.py"),
    ),
    "select/test_fast_rows.py": ("select/row_writer.py",),
    "fold/test_partitions.py": ("expr/partition_values.py",),
    "fold/test_folding.py": ("fold/contents.py", "fold/row_conversion.py", "fold/row_events.py"),
    # An event goes through all of them, and a group is valid afterwards or not.
    "stages/test_filtering.py": (*("stages/event_stream.py", "stages/statement_tables.py", "stages/table_pattern.py"),),
    "stages/test_engine.py": ("stages/span.py", "stages/stage.py"),
    "api/test_serving_options.py": ("option.py",),
    # A session is one state: where it is, and what it can name there.
    "server/test_connection.py": ("server/answering.py", "server/client.py"),
    "server/test_leaving.py": (),  # likewise: what clients that leave, or hold all threads, do to it
    "server/test_growth.py": (),  # of many dumps that wait, whoever sends what is new
    "server/test_attacks.py": (),  # of nobody alone: what one account does to all of a server
    "dialogue/test_dialog.py": ("dialogue/log_tables.py", "expr/session_facts.py"),
    "dialogue/test_sql.py": ("dialogue/statement.py",),
    "schema/test_base_dump.py": ("schema/dump_text.py",),
    # A version of a table is seen in the rows that are written of it.
    "testkit/test_tables.py": ("testkit/table_version.py",),
    "testkit/test_stream_editor.py": ("testkit/stream_places.py",),
    "recorder/test_recording.py": ("recorder/recorded_connection.py", "recorder/recorded_dump.py"),
    "testkit/test_fault.py": ("testkit/action.py",),
    "testkit/test_scenario.py": ("testkit/versions.py", "testkit/written.py"),
    "lake/test_doubts.py": ("lake/statements.py",),
    # A run goes through all of them, and what counts is what the table is afterwards.
    "lake/maintain/test_job.py": ("lake/maintain/rows.py", "lake/maintain/state.py"),
    "lake/test_one_certainty.py": ("lake/noting.py",),
    "lake/test_arrow_snapshots.py": ("log/group_content.py",),
    # What differs between versions of PySpark, and what is run with each.
    "spark/test_versions.py": (),
    "spark/test_stream.py": ("spark/live.py", "spark/stream_reader.py"),
    # Each way to read, over the same logs: what counts is that none of them has an answer of its own.
    "spark/test_every_path.py": (),
    "log/test_interface.py": ("log/group_writer.py",),
    "log/test_observer.py": ("disk/held_file.py", "store/followed_files.py"),
    # Odd names through every command; each event of real servers through all that reads events; damage to any file.
    "cli/test_odd_names.py": (),
    "event/test_captures.py": (),
    "wire/test_response.py": ("wire/answer.py",),
    "store/test_damage.py": (),
    # What a purge and a flush leave, beside a model and at each call of the disk: of the whole store.
    "store/test_cuts.py": (),
    "store/test_purge_model.py": (),
}
NO_NAMES = {"utils", "common", "helpers", "constants", "models", "base"}  # they say nothing about their content


def module_of(test: Path) -> Path:
    return test.with_name(test.stem.removeprefix("test_"))


def own_test(module: Path) -> Path:
    """Where the test of a module is; `cli/import_.py` has an underscore for Python's sake alone."""
    return module.with_name(f"test_{module.stem.rstrip('_')}.py")


@functools.cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@functools.cache
def deciding_modules() -> set[Path]:
    """Those with a branch or a loop: what has none can only be right or wrong as a whole."""
    paths = [path for path in PACKAGE.rglob("*.py") if not path.stem.startswith("__")]
    trees = {path: tree_of(path) for path in paths if PROGRAMS.isdisjoint((path, *path.parents))}
    found = {path for path, tree in trees.items() if any(isinstance(node, DECIDES) for node in ast.walk(tree))}
    return {path.relative_to(PACKAGE) for path in found}


@functools.cache
def imports_of(path: Path) -> set[Path]:
    """The modules of the package that a file imports or names in a text; the format "ibb" is Spark's."""
    names = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names.add("ibbmaster.spark.source" if node.value == "ibb" else node.value)
    parts = (name.split(".") for name in names if all(part.isidentifier() for part in name.split(".")))
    return {Path(*rest).with_suffix(".py") for first, *rest in parts if first == "ibbmaster" and rest}


def is_reached(module: Path, test: Path) -> bool:
    """Whether a test, or the set-up of its folder, imports a module, or what does; and so on in its room."""
    known = imports_of(test)
    if (test.parent / "conftest.py").exists():
        known |= imports_of(test.parent / "conftest.py")
    looked_at: set[Path] = set()
    ahead = set(known)
    while ahead:
        looked_at |= ahead
        known |= {found for other in ahead if (PACKAGE / other).exists() for found in imports_of(PACKAGE / other)}
        ahead = {other for other in known if other.parent == module.parent} - looked_at
    return module in known


def test_each_test_file_mirrors_a_module_or_stands_in_the_table() -> None:
    found = [path.relative_to(TESTS) for path in TESTS.rglob("test_*.py")]
    files = [path for path in found if path.parts[0] not in OF_THE_WHOLE and str(path) not in HELD_TOGETHER]
    modules = {module_of(own_test(path.relative_to(PACKAGE))) for path in PACKAGE.rglob("*.py")}
    modules |= {Path("kernel", path.stem) for path in PACKAGE.glob("kernel/native/*.c")}

    assert sorted(str(path) for path in files if module_of(path) not in modules) == []


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
    modules = [path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py")]

    assert [str(path) for path in modules if NO_NAMES & set(path.with_suffix("").parts)] == []


def test_each_module_begins_by_saying_what_it_is() -> None:
    assert [str(path) for path in PACKAGE.rglob("*.py") if not path.read_text().startswith('"""')] == []


def test_folders_of_tests_are_no_packages() -> None:
    assert [str(path) for path in TESTS.rglob("__init__.py") if path.parent.name != "lanes"] == []

import pytest

from ibbmaster.rows.certainty import Altered, Doubted, Fresh, Gone, Outcome, RowsGone, StatementFold, tables_reached
from ibbmaster.rows.effects import NO_ENGINE_SUBSTITUTION, effects_of, in_statement_format
from ibbmaster.schema.name_case import NameCase
from ibbmaster.sqltext.table_name import TableName
from tests.case_table import data_beside
from tests.schema.conftest import Folded, logged, place

DATA = data_beside(__file__)


def came(*statements: str, sql_mode: int = 0, case: NameCase | None = None) -> list[list[str]]:
    history = Folded(case=case)
    history.run(*statements, sql_mode=sql_mode)
    fold = StatementFold(history)
    found = []
    for number, one in enumerate(statements, start=1):
        effects = effects_of(logged(one, sql_mode=sql_mode))
        found.append([in_short(outcome) for effect in effects for outcome in fold.take(effect, place(number))])
    return found


def in_short(outcome: Outcome) -> str:
    match outcome:
        case Gone():
            return f"gone {outcome.generation}"
        case Fresh():
            return f"fresh {outcome.table.name} {outcome.table.generation}"
        case Altered():
            return f"altered {outcome.table.name}"
        case RowsGone():
            return f"cleared {outcome.table.name}"
    assert isinstance(outcome, Doubted)
    reason = outcome.reason.replace(in_statement_format(""), "")
    return f"{outcome.table.name}{' leaves' * outcome.leaves}{' open' * outcome.is_open}: {reason}"


@pytest.mark.parametrize(("statement", "outcomes"), DATA["effects"])
def test_an_effect_is_one_on_the_tables_that_there_are(statement: str, outcomes: list[str]) -> None:
    assert came("CREATE TABLE t (a INT)", "CREATE TABLE u (a INT)", statement)[-1] == outcomes


@pytest.mark.parametrize(("case", "outcomes"), [(NameCase.LOWER, ["gone 1"]), (NameCase.EXACT, [])])
def test_a_database_is_gone_by_its_name_as_the_server_compares_names(case: NameCase, outcomes: list[str]) -> None:
    assert came("CREATE TABLE t (a INT)", "DROP DATABASE D", case=case)[-1] == outcomes


def test_a_table_of_a_session_leaves_the_one_of_its_name_what_it_is() -> None:
    came_of = came("CREATE TABLE t (a INT)", "CREATE TEMPORARY TABLE t (a INT)", "TRUNCATE t", "DROP TABLE t")
    assert came_of[1:] == [[], [], []]


@pytest.mark.parametrize(("statements", "outcomes"), DATA["reaching"].values(), ids=DATA["reaching"])
def test_a_change_reaches_what_views_triggers_and_functions_name(statements: list[str], outcomes: list[str]) -> None:
    assert came("CREATE TABLE t (a INT)", "CREATE TABLE u (a INT)", *statements)[-1] == outcomes


def reached(*statements: str, text: str | None = "INSERT INTO t VALUES (1)") -> object:
    """The tables that a statement on t reaches; tests/interop/test_refusals.py asks servers."""
    history = Folded()
    history.run(*(f"CREATE TABLE {name} (id INT, c INT)" for name in ("t", "u", "v", "c", "`my-log`")), *statements)
    found = tables_reached(history.at(), [TableName("d", "t")], text)
    return None if found is None else {table.name for table in found}


FUNCTION = "CREATE FUNCTION f() RETURNS INT RETURN 1"


@pytest.mark.parametrize(("trigger", "expected"), DATA["triggers"].items())
def test_a_trigger_reaches_the_tables_that_it_names(trigger: str, expected: list[str] | None) -> None:
    found = reached(FUNCTION, f"CREATE TRIGGER r {trigger}")
    assert found == (None if expected is None else {*expected})


def test_triggers_of_reached_tables_reach_others() -> None:
    pairs = {"a": ("t", "u"), "b": ("u", "v")}
    made = (
        f"CREATE TRIGGER {each} AFTER INSERT ON {on} FOR EACH ROW DELETE FROM {to}" for each, (on, to) in pairs.items()
    )
    assert reached(*made) == {"u", "v"}


def test_a_function_of_the_log_may_do_anything() -> None:
    assert reached(FUNCTION, text="INSERT INTO t VALUES (F())") is None
    assert reached(FUNCTION, text='INSERT INTO t VALUES ("f"())') is None
    assert reached(FUNCTION, text=None) is None
    assert reached(FUNCTION) == set()
    assert reached(text="INSERT INTO t VALUES (f())") == set()


def test_rows_may_be_changed_through_a_merge_table_even_one_of_itself() -> None:
    made = ("CREATE TABLE t (a INT)", "CREATE TABLE m (a INT) ENGINE=MERGE UNION=(t, m)")
    through = "through the MERGE table d.m"
    for verb in ("INSERT INTO m VALUES (1)", "UPDATE m SET a=1", "DELETE FROM m"):
        reason = verb.split()[0]
        assert came(*made, verb)[-1] == [f"t: {through}: {reason}", f"m: {through}: {reason}", f"m: {reason}"]
    assert came(*made, "TRUNCATE m")[-1][0] == f"t: {through}: its rows are removed"


def test_an_engine_without_rows_has_none_to_doubt_unless_another_took_its_place() -> None:
    made = ("CREATE TABLE t (a INT) ENGINE=BLACKHOLE", "CREATE TABLE u LIKE t", "INSERT INTO u VALUES (1)", "CALL p()")
    assert came(*made, sql_mode=NO_ENGINE_SUBSTITUTION)[2:] == [[], []]
    assert came(*made)[2:] == [["u: INSERT"], ["t: CALL p()", "u: CALL p()"]]


def test_the_reason_of_an_engine_is_one_for_all() -> None:
    history = Folded()
    history.run("CREATE TABLE t (a INT) ENGINE=SPIDER", "CREATE TABLE m (a INT) ENGINE=MERGE", "CREATE TABLE i (a INT)")
    fold = StatementFold(history)
    assert {name: fold.engine_reason(history.known(name)) for name in "tmi"} == {
        "t": "its engine SPIDER has its rows elsewhere",
        "m": "a MERGE table has the rows of the tables in its UNION",
        "i": None,
    }


def test_what_one_fold_hears_is_not_heard_by_that_which_it_was_forked_from() -> None:
    made = "CREATE TABLE t (a INT) ENGINE=BLACKHOLE"
    history = Folded().run(made)
    fold = StatementFold(history)
    other = fold.fork()
    for effect in effects_of(logged(made)):
        list(other.take(effect, place(1)))
    assert [one.keeps_rows(history.known()) for one in (fold, other)] == [False, True]

import pytest
from lanes.replay import CLASSIC, raw_events, readable_captures

from ibbmaster.replication.event.statement.logged import STATEMENT_TYPES, LoggedStatement, decode_statement
from ibbmaster.rows import effects
from ibbmaster.sqltext.token import ANSI_QUOTES
from tests.case_table import data_beside

DATA = data_beside(__file__)


def told(sql: str, sql_mode: int = 0, error_code: int = 0) -> list[str]:
    """The effects in short, of a statement that ran in the database d."""
    statement = LoggedStatement(sql, "d", 1, sql_mode, True, error_code=error_code)
    return [in_short(one) for one in effects.effects_of(statement)]


def in_short(one: effects.Effect) -> str:
    match one:
        case effects.Emptied():
            return f"empty {one.table}" + " kept" * one.is_kept
        case effects.DatabaseGone():
            return f"drop {one.database}.*"
        case effects.Changed():
            return f"change {one.table}"
        case effects.Unknown():
            return f"{one.table}: {one.reason}" + " adds" * one.adds
        case effects.ProgramChanged():
            return "program changed"
        case effects.Substituted():
            return f"{one.table} like {one.like}" if one.like else f"blackhole {one.table}" + "!" * one.is_sure
    assert isinstance(one, effects.WrittenTables)
    where = "anywhere" if one.tables is None else ",".join(map(str, one.tables))
    return f"write {where}" + " adds" * one.adds + " only" * (not one.changes) + " empties" * one.empties


@pytest.mark.parametrize(("sql", "expected"), [*DATA["emptying"].items(), *DATA["writes"].items()])
def test_what_a_statement_does(sql, expected) -> None:
    assert told(sql) == expected


@pytest.mark.parametrize("sql", DATA["harmless"])
def test_statements_that_change_no_row_do_nothing(sql) -> None:
    assert told(sql) == []


@pytest.mark.parametrize("sql", DATA["changing programs"])
def test_what_statements_run_may_be_another_after_a_definition(sql) -> None:
    assert told(sql) == ["program changed"]


@pytest.mark.parametrize("sql", DATA["anywhere"])
def test_a_statement_that_is_not_understood_may_change_any_table(sql) -> None:
    assert told(sql) == ["write anywhere adds"]


def test_a_name_behind_a_statement_of_any_length_is_found() -> None:
    comment = "/*" + "x" * 100_000 + "*/"
    assert told(f"{comment} TRUNCATE {comment} TABLE {comment} t") == ["empty d.t kept"]
    names = [f"t{number}" for number in range(5000)]
    assert told("DROP TABLE " + ", ".join(names)) == [f"empty d.{name}" for name in names]


def test_double_quotes_are_names_where_the_session_said_so() -> None:
    assert told('TRUNCATE TABLE "a,b"', ANSI_QUOTES) == ["empty d.`a,b` kept"]
    assert told('TRUNCATE TABLE "a"') == ["write anywhere adds"]


@pytest.mark.parametrize("capture", [name for name in readable_captures() if "/statement" not in name])
def test_of_a_log_in_row_format_every_statement_is_understood(capture) -> None:
    """Nothing is a write that a row event tells: no table is doubted in an ordinary log."""
    written = set()
    for event in raw_events(CLASSIC / capture):
        if event[4] in STATEMENT_TYPES:
            statement = decode_statement(event)
            for one in effects.effects_of(statement):
                if isinstance(one, effects.WrittenTables):
                    written.add(statement.text)
    assert written <= {"SELECT setval(shop.sq, 1000)"} | {text for text in written if "sq" in text}, written


@pytest.mark.parametrize("clause", DATA["harmless_clauses"])
def test_a_clause_that_leaves_rows_to_the_conversion_of_their_types_is_a_change_alone(clause) -> None:
    assert told(f"ALTER TABLE t {clause}") == ["change d.t"]


@pytest.mark.parametrize(("clause", "others"), DATA["clauses"].items())
def test_a_clause_that_removes_or_moves_rows_says_so(clause, others) -> None:
    assert told(f"ALTER TABLE t {clause}") == ["change d.t", *others]


def test_alter_ignore_may_remove_rows() -> None:
    assert told("ALTER IGNORE TABLE t ADD UNIQUE (a)") == [
        "change d.t",
        "d.t: ALTER IGNORE TABLE changes or removes rows",
    ]


def test_a_sequence_that_is_altered_has_no_known_value_until_the_next_is_taken() -> None:
    assert told("ALTER SEQUENCE IF EXISTS s RESTART 5") == ["d.s: ALTER SEQUENCE, and no value was taken since adds"]
    assert told("CREATE OR REPLACE SEQUENCE s") == ["empty d.s"]


@pytest.mark.parametrize(("sql", "is_blackhole"), DATA["engines"])
def test_an_engine_without_rows_may_be_another_unless_the_session_forbids_it(sql, is_blackhole) -> None:
    assert ("blackhole d.t" in told(sql)) is is_blackhole
    assert ("blackhole d.t!" in told(sql, effects.NO_ENGINE_SUBSTITUTION)) is is_blackhole


@pytest.mark.parametrize(("sql", "error_code", "left"), DATA["left"])
def test_of_what_failed_the_dropped_is_gone_the_unmade_not_there_and_the_written_unknown(sql, error_code, left) -> None:
    assert told(sql, error_code=error_code) == left


@pytest.mark.parametrize(("sql", "tables"), DATA["unsure"].items())
def test_of_other_statements_that_failed_nobody_knows_how_far_they_came(sql, tables) -> None:
    verb = " ".join([sql.split()[0], "TABLE"])
    reason = f"{verb} that failed with error 1317 on the server changes or removes rows"
    unsure = [f"{table}: {reason}" for table in tables]
    assert [one for one in told(sql, error_code=1317) if not one.startswith("change")] == unsure


def test_what_has_only_begun_has_no_effect() -> None:
    assert effects.effects_of(LoggedStatement("DROP TABLE t", "d", 1, 0, False)) == ()

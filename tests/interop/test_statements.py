"""Every statement clients are known to send, asked of a real primary and of ours that serves the same files; also by
drivers of Java, Go and Node, and those of them that can follow the binlog.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lanes.drivers import driver_command
from lanes.pair import answer, connect
from lanes.primary import Primary, run_program
from lanes.sql import sql_beside

import ibbmaster
from ibbmaster.gtid import Gtid
from tests.case_table import data_beside

BINARY = 63
_SQL = sql_beside(__file__)
#: Answers equal in names and types of columns, in rows, and in the code of errors.
ALIKE = _SQL["alike"]
#: Answers equal in whether they are rows, OK or the code of an error.
OF_A_KIND = _SQL["of a kind"]
_DATA = data_beside(__file__)
MODES, STATEMENTS = _DATA["modes"], _DATA["statements"]  # what they mean under each sql_mode


def ask(primary: Primary, statements: list[str]) -> list[Any]:
    with connect(primary) as connection:
        return [answer(connection, sql, told_of) for sql in statements]


def told_of(field: Any) -> tuple[object, ...]:
    return field.name, field.type_code, field.charsetnr == BINARY, "unsigned" if field.flags & 32 else ""


def test_a_statement_is_answered_as_by_a_real_primary(version, captures, new_ibb_primary, new_real_primary):
    capture = captures[f"{version}/domains"]
    ours = new_ibb_primary(capture, "--profile", f"classic-{version}")
    real = new_real_primary(capture)

    mine, theirs = (ask(primary, [*ALIKE, *OF_A_KIND]) for primary in (ours, real))
    for mode in MODES:
        for answers, primary in ((mine, ours), (theirs, real)):
            answers += ask(primary, [f"SET sql_mode = '{mode}'", *STATEMENTS])
    asked = [*ALIKE, *OF_A_KIND, *(f"{mode}: {sql}" for mode in MODES for sql in ("SET", *STATEMENTS))]

    differences = []
    for sql, found, wanted in zip(asked, mine, theirs, strict=True):
        if sql in OF_A_KIND:
            found, wanted = ([each if not isinstance(each, tuple) else "rows"] for each in (found, wanted))
        # nothing is computed by the rules of these modes
        is_refused = sql.startswith(("ORACLE: SELECT", "MSSQL: SELECT")) and found == 1235
        if found != wanted and not is_refused:
            differences.append(f"{sql}\n  ours {str(found)[:600]}\n  real {str(wanted)[:600]}")
    assert not differences, "\n".join(differences)


CAPTURE = "10.11/domains"
DRIVERS = {  # kind and program, and how a Java URL begins
    "MariaDB Connector/J": ("java", "Ask", "jdbc:mariadb:{place}?sslMode=disable"),
    "MySQL Connector/J": ("java", "Ask", "jdbc:mysql:{place}?sslMode=DISABLED&allowPublicKeyRetrieval=true"),
    "go-mysql": ("go", "ask", ""),
    "mysql2": ("node", "mysql2", ""),
    "mariadb": ("node", "mariadb", ""),
}
#: What differs with the driver's own rewriting, or with its session.
SESSION_STATEMENTS = ("USE", "SET NAMES", "SET autocommit", "KILL", "SHOW COLLATION", "SELECT @a")
ASKED = [sql for sql in ALIKE if not sql.startswith(SESSION_STATEMENTS)]


def run_driver(kind: str, what: str, *arguments: str, text: str = "") -> list[str]:
    return run_program([*driver_command(kind, what), *arguments], input=text).splitlines()


def asked(name: str, primary: Primary) -> list[str]:
    kind, what, url = DRIVERS[name]
    place = [primary.host, str(primary.port)]
    if url:
        place = [url.format(place=f"//{primary.host}:{primary.port}/")]
    return run_driver(kind, what, *place, primary.user, primary.password, text="\n".join([*ASKED, *OF_A_KIND]))


def in_kind(line: str) -> str:
    """An answer whose rows are the server's own, without them."""
    sql, _, answer = line.partition("\t")
    if sql == "catalogs":  # ours knows the databases of the log, which nobody has made on the real one
        return sql
    return f"{sql}\t{answer.split(chr(9))[0]}" if sql in OF_A_KIND else line


@pytest.mark.parametrize("name", DRIVERS)
def test_a_driver_connects_and_is_answered_as_by_a_real_primary(name, captures, new_ibb_primary, new_real_primary):
    capture = captures[CAPTURE]

    mine = asked(name, new_ibb_primary(capture, "--profile", "classic-10.11"))
    theirs = asked(name, new_real_primary(capture))

    assert [in_kind(line) for line in mine] == [in_kind(line) for line in theirs]
    assert len(mine) > len(ASKED)


@pytest.mark.parametrize("name", ["MariaDB Connector/J", "go-mysql", "mysql2", "mariadb"])
def test_a_driver_connects_to_an_engine_primary(name, captures, new_ibb_primary):
    lines = asked(name, new_ibb_primary(captures[CAPTURE]))

    assert lines[0].startswith("connected")
    assert not [line for line in lines if line.endswith("ERROR\t1064") and line.split("\t")[0] not in SYNTAX_ERRORS]


SYNTAX_ERRORS = ("SHOW nothing", "SELECT 1 2", "nonsense")


FOLLOWERS = {  # kind, program, and a capture that this version of the client can read
    "go-mysql": ("go", "dump", CAPTURE),
    "mysql-binlog-connector-java": ("java", "Dump", "10.11/chained"),  # of domains above 2^31 it dies
}


@pytest.mark.parametrize("profile", ["engine", "compat", "classic-10.11"])
@pytest.mark.parametrize("name", FOLLOWERS)
def test_a_driver_follows_the_binlog_as_of_a_real_primary(
    name, profile, captures, ibb_directory, new_ibb_primary, real_stream
):
    kind, what, capture_id = FOLLOWERS[name]
    capture = captures[capture_id]
    last = str(gtids(ibb_directory(capture))[-1])

    lines = run_driver(kind, what, *account(new_ibb_primary(capture, "--profile", profile)), "", last)

    assert lines[-1] == "end"
    assert lines == real_stream(name, last)
    assert len(lines) > 20


def test_canal_follows_without_a_schema(captures, new_ibb_primary, ibb_directory):
    """It asks for the columns of each table, and passes over those that do not exist."""
    capture = captures[CAPTURE]
    primary = new_ibb_primary(capture)
    groups = gtids(ibb_directory(capture))

    lines = run_driver("go", "canal", *account(primary), str(groups[0]), ",".join(map(str, end_of(groups))))

    assert lines[-1] == "end"
    assert len([line for line in lines if line.startswith("gtid")]) == len(groups) - 1


def gtids(directory: Path) -> list[Gtid]:
    with ibbmaster.open(directory) as log:
        return [group.gtid for group in log]


def end_of(groups: list[Gtid]) -> list[Gtid]:
    return list({gtid.domain_id: gtid for gtid in groups}.values())


def account(primary: Primary) -> list[str]:
    return [primary.host, str(primary.port), primary.user, primary.password]


@pytest.fixture(scope="session")
def seen() -> dict[str, list[str]]:
    return {}


@pytest.fixture
def real_stream(seen, captures, new_real_primary) -> Callable[[str, str], list[str]]:
    def run(name: str, last: str) -> list[str]:
        if name not in seen:
            kind, what, capture_id = FOLLOWERS[name]
            primary = new_real_primary(captures[capture_id])
            seen[name] = run_driver(kind, what, *account(primary), "", last)
        return seen[name]

    return run

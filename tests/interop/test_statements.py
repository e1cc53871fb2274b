"""Every statement clients are known to send, asked of a real primary and of ours that serves the same files."""

import json
from pathlib import Path
from typing import Any

import pymysql
import pytest
from lanes.pair import connect
from lanes.primary import Primary
from lanes.sql_file import sql_beside

BINARY = 63
_SQL = sql_beside(__file__)
#: Answers equal in names and types of columns, in rows, and in the code of errors.
ALIKE = _SQL["alike"]
#: Answers equal in whether they are rows, OK or the code of an error.
OF_A_KIND = _SQL["of a kind"]
_DATA = json.loads(Path(__file__).with_suffix(".json").read_text())
MODES, STATEMENTS = _DATA["modes"], _DATA["statements"]  # what they mean under each sql_mode


def ask(primary: Primary, statements: list[str]) -> list[Any]:
    """Columns and rows, OK, or the code of an error, of each statement of one session."""
    answers: list[Any] = []
    with connect(primary) as connection:
        for sql in statements:
            try:
                connection.query(sql)
            except pymysql.Error as error:
                answers.append(error.args[0])
                continue
            result = connection._result
            assert result is not None
            if not result.field_count:
                answers.append("OK")
                continue
            columns = [
                (field.name, field.type_code, field.charsetnr == BINARY, "unsigned" if field.flags & 32 else "")
                for field in result.fields
            ]
            answers.append((columns, list(result.rows)))
    return answers


@pytest.mark.parametrize("version", ["10.11", "11.8"])
def test_a_statement_is_answered_as_by_a_real_primary(
    version,
    captures,
    new_ibb_primary,
    new_real_primary,
):
    capture = captures[f"{version}/domains"]
    ours = new_ibb_primary(capture, "--profile", f"classic-{version}")
    real = new_real_primary(capture)

    mine, theirs = (ask(primary, [*ALIKE, *OF_A_KIND]) for primary in (ours, real))
    for mode in MODES:
        for answers, primary in ((mine, ours), (theirs, real)):
            answers += ask(primary, [f"SET sql_mode = '{mode}'", *STATEMENTS])
    asked = [*ALIKE, *OF_A_KIND, *(f"{mode}: {sql}" for mode in MODES for sql in ("SET", *STATEMENTS))]

    differences = []
    for sql, answer, wanted in zip(asked, mine, theirs, strict=True):
        if sql in OF_A_KIND:
            answer, wanted = ([each if not isinstance(each, tuple) else "rows"] for each in (answer, wanted))
        is_refused = (
            sql.startswith(("ORACLE: SELECT", "MSSQL: SELECT")) and answer == 1235
        )  # nothing is computed by its rules
        if answer != wanted and not is_refused:
            differences.append(f"{sql}\n  ours {str(answer)[:600]}\n  real {str(wanted)[:600]}")
    assert not differences, "\n".join(differences)

"""Prepared statements of one session; answers and codes are those of MariaDB 11.8."""

import struct

import pytest

from ibbmaster.primary.dialogue import prepared
from ibbmaster.replication.wire.answer import encode_response
from ibbmaster.replication.wire.command import NEWEST_STATEMENT
from ibbmaster.replication.wire.response import Err, FieldType, Ok, PreparedOk, ResultSet


def parameters(*values):
    nulls, types, data = bytearray((len(values) + 7) // 8), b"", b""
    for no, value in enumerate(values):
        if value is None:
            nulls[no // 8] |= 1 << no % 8
            types += b"\x06\x00"
        elif isinstance(value, int):
            types += b"\x08\x00"
            data += struct.pack("<q", value)
        elif isinstance(value, float):
            types += b"\x05\x00"
            data += struct.pack("<d", value)
        else:
            types += b"\xfd\x00"
            data += bytes([len(value.encode())]) + value.encode()
    return bytes(nulls) + b"\x01" + types + data if values else b""


@pytest.fixture
def statements(new_dialog):
    return new_dialog("classic-11.8").prepared


def prepare(statements, sql):
    (answer,) = statements.prepare(sql.encode())
    return answer


def execute(statements, sql, *values):
    answer = prepare(statements, sql)
    if isinstance(answer, PreparedOk):
        (answer,) = statements.execute(answer.statement_id, parameters(*values))
    if not isinstance(answer, ResultSet):
        return answer.code if isinstance(answer, Err) else "OK"
    assert answer.is_binary
    return [tuple(row) for row in answer.rows]


EXECUTED = [
    ("SELECT 1", (), [(b"1",)]),
    ("SELECT ?, ? AS b, ?", (5, "it's \\ ?", None), [(b"5", b"it's \\ ?", None)]),
    ("SELECT ? + 1, ? - ?", (1.5, -3, -4), [(b"2.5", b"1")]),
    ("SELECT 1 LIMIT ?", (0,), []),
    ("SELECT '?', `?` FROM (SELECT 1 AS `?`) x WHERE ? = 1", (1,), [(b"?", b"1")]),
    ("SHOW VARIABLES LIKE 'server_id'", (), [(b"server_id", b"1")]),
    ("SELECT engine FROM information_schema.engines WHERE engine = ? LIMIT ?", ("innodb", 5), [(b"InnoDB",)]),
    ("SET @a = ?", (7,), "OK"),
    ("KILL ?", (999,), 1094),
    ("COMMIT", (), "OK"),
    ("INSERT INTO t VALUES (?)", (1,), 1290),
    ("SELEC 1", (), 1064),
    ("SELECT 1; SELECT 2", (), 1064),
    ("", (), 1065),
    ("SELECT a FROM d.nothing WHERE b = ?", (1,), 1146),
    ("SHOW VARIABLES LIKE ?", ("x",), 1064),
]


@pytest.mark.parametrize(("sql", "values", "expected"), EXECUTED, ids=[case[0] for case in EXECUTED])
def test_a_statement_is_carried_out_with_its_values(statements, sql, values, expected):
    assert execute(statements, sql, *values) == expected


def test_what_a_statement_wants_and_gives_is_told_before(statements):
    answer = prepare(statements, "SELECT ?, server_id FROM mysql.gtid_slave_pos WHERE seq_no = ?")
    assert [column.name for column in answer.parameters] == ["?", "?"]
    types = {column.name: column.column_type for column in answer.columns}
    assert types == {"?": FieldType.NULL, "server_id": FieldType.LONG}
    assert prepare(statements, "SET @a = ?").columns == ()
    assert prepare(statements, "SET STATEMENT max_statement_time=1 FOR SELECT 1").columns != ()


def test_a_statement_may_be_carried_out_again_without_its_types(statements):
    statement_id = prepare(statements, "SELECT ?").statement_id
    statements.execute(statement_id, parameters(5))
    (answer,) = statements.execute(statement_id, b"\x00\x00" + struct.pack("<q", 6))
    assert list(answer.rows) == [(b"6",)]


def test_the_newest_statement_has_a_number_of_its_own(statements):
    prepare(statements, "SELECT 1")
    prepare(statements, "SELECT 2")
    (answer,) = statements.execute(NEWEST_STATEMENT, b"")
    assert list(answer.rows) == [(b"2",)]


def test_pieces_of_a_parameter_are_joined_used_once_and_forgotten_when_asked(statements):
    statement_id = prepare(statements, "SELECT ?").statement_id
    for piece in (b"a", b"bc"):
        statements.add_piece(statement_id, 0, piece)
    (answer,) = statements.execute(statement_id, b"\x00\x01\xfc\x00")
    assert list(answer.rows) == [(b"abc",)]
    assert statements.execute(statement_id, b"\x00\x01\xfc\x00")[0].code == 1210
    statements.add_piece(statement_id, 0, b"a")
    assert isinstance(statements.reset(statement_id)[0], Ok)
    assert statements.execute(statement_id, b"\x00\x01\xfc\x00")[0].code == 1210


def test_pieces_for_nobody_do_no_harm(statements):
    statements.add_piece(99, 0, b"a")
    statements.add_piece(prepare(statements, "SELECT 1").statement_id, 0, b"a")
    statements.close(99)


def test_too_much_in_pieces_shows_when_the_statement_is_carried_out(statements, monkeypatch):
    monkeypatch.setattr(prepared, "SIZE_MAX", 100 + 2 * prepared.TOKEN_SIZE)
    statement_id = prepare(statements, "SELECT ?").statement_id
    for _ in range(3):
        statements.add_piece(statement_id, 0, b"x" * 60)
    (answer,) = statements.execute(statement_id, b"\x00\x01\xfc\x00")
    assert (answer.code, "longer than" in answer.text) == (1105, True)
    statements.add_piece(statement_id, 0, b"x" * 60)  # what was kept is free again
    assert isinstance(statements.execute(statement_id, b"\x00\x01\xfc\x00")[0], ResultSet)


def test_there_are_not_more_than_a_server_allows(statements, monkeypatch):
    monkeypatch.setattr(prepared, "STATEMENTS_MAX", 2)
    first = prepare(statements, "SELECT 1")
    prepare(statements, "SELECT 1")
    assert prepare(statements, "SELECT 1").code == 1461
    statements.close(first.statement_id)
    assert isinstance(prepare(statements, "SELECT 1"), PreparedOk)


def test_their_texts_do_not_fill_the_memory_and_those_that_cannot_be_prepared_are_not_kept(statements, monkeypatch):
    monkeypatch.setattr(prepared, "SIZE_MAX", 100 + 2 * prepared.TOKEN_SIZE)
    statement_id = prepare(statements, f"SELECT '{'x' * 60}'").statement_id
    assert prepare(statements, f"SELECT '{'x' * 60}'").code == 1461
    statements.close(statement_id)
    prepare(statements, "SELECT nothing")
    assert statements._statements == {}
    assert statements._size == 0


@pytest.mark.parametrize("command", ["execute", "reset", "fetch"])
def test_an_unknown_statement_is_told(statements, command):
    (answer,) = getattr(statements, command)(*((5, b"") if command == "execute" else (5,)))
    assert (answer.code, "handler (5)" in answer.text) == (1243, True)


def test_a_cursor_and_too_many_placeholders_are_refused(statements, monkeypatch):
    assert statements.fetch(prepare(statements, "SELECT 1").statement_id)[0].code == 1421
    monkeypatch.setattr(prepared, "PARAMETERS_MAX", 2)
    assert prepare(statements, "SELECT ?, ?, ?").code == 1390


def test_any_bytes_for_parameters_are_an_answer(statements, rng):
    statement_id = prepare(statements, "SELECT ?, ?, ?").statement_id
    good = parameters(5, "abc", 1.5)
    for _ in range(300):
        changed = bytearray(good[: rng.randrange(len(good) + 1)])
        for _ in range(rng.randrange(4)):
            if changed:
                changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
        (answer,) = statements.execute(statement_id, bytes(changed))
        assert isinstance(answer, ResultSet) or answer.code == 1210
        assert all(encode_response(answer))


def test_a_statement_is_read_by_the_sql_mode_that_it_was_prepared_in(new_dialog):
    dialog = new_dialog("classic-11.8")
    dialog.query(b"SET sql_mode = 'PIPES_AS_CONCAT,NO_BACKSLASH_ESCAPES,HIGH_NOT_PRECEDENCE'")
    answer = prepare(dialog.prepared, r"SELECT 'a\n' || ?, NOT 0 + ?")
    dialog.query(b"SET sql_mode = ''")

    (found,) = dialog.prepared.execute(answer.statement_id, parameters("b\\", 1))

    assert list(found.rows) == [(b"a\\nb\\", b"2")]
    assert execute(dialog.prepared, r"SELECT 'a\n' || ?, NOT 0 + ?", "1", 1) == [(b"1", b"0")]

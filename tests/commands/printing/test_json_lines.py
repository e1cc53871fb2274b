"""Lines of JSON have what DataFrames have, without loss, and nothing that a terminal obeys."""

import base64
import json
from pathlib import Path

import pytest
from lanes.capture import load_captures

import ibbmaster
from ibbmaster.commands.printing.json_lines import JsonLines, json_text
from ibbmaster.replication.event.rows.encoding import written_table
from ibbmaster.tables.arrow.cell import text_of
from tests.written_log import inserted, updated, write_log

CLASSIC = Path(__file__).parents[3] / "fixtures" / "classic" / "11.8"
SMALL = [one for one in load_captures() if not one.is_encrypted and one.size < 1_500_000]
IMAGES = ("before", "after")
KINDS = {"insert": ("insert",), "delete": ("delete",), "update": ("update_preimage", "update_postimage")}


@pytest.fixture
def parsed(printed):
    return lambda path, **given: list(map(json.loads, printed(path, JsonLines(**given)).splitlines()))


def as_cells(row):
    return None if row is None else {name: as_cell(value) for name, value in row.items()}


def as_cell(value):
    if isinstance(value, dict):
        return text_of(base64.b64decode(value["base64"]))
    return text_of(tuple(value) if isinstance(value, list) else value)


@pytest.mark.parametrize("capture", SMALL, ids=lambda one: one.id)
def test_lines_have_the_rows_of_dataframes(capture, tmp_path, parsed):
    capture.unpack(tmp_path)
    with ibbmaster.open(tmp_path) as log:
        frame = log.to_arrow().to_pylist()
    wanted = [
        (
            row["_gtid"],
            row["_table"],
            row["_change_type"],
            *(row[key] and dict(row[key]) for key in ("before", "after")),
        )
        for row in frame
    ]

    found = [
        (line["gtid"], f"{line['database']}.{line['table']}", kind, as_cells(line["before"]), as_cells(line["after"]))
        for line in parsed(tmp_path)
        if line["kind"] in KINDS
        for kind in KINDS[line["kind"]]
    ]

    assert len(found) == len(wanted)
    for mine, theirs in zip(found, wanted, strict=True):
        assert mine == theirs


def test_a_line_says_where_it_belongs(parsed):
    first = next(line for line in parsed(CLASSIC / "group-commit") if line.get("commit_id"))
    assert list(first) == [
        *("gtid", "time", "domain", "server_id", "commit_id", "number", "kind"),
        *("database", "table", "primary_key", "before", "after"),
    ]
    assert first["gtid"] == f"{first['domain']}-{first['server_id']}-{first['gtid'].rsplit('-')[-1]}"
    assert first["time"].endswith("Z")
    prepared = next(line for line in parsed(CLASSIC / "ddl-trx-xa") if line["gtid"] == "0-1-81")
    assert prepared["xid"] == "X'7468726565',X'',1"


def test_changes_of_a_group_are_numbered(parsed):
    assert [line["number"] for line in parsed(CLASSIC / "ddl-trx-xa") if line["gtid"] == "0-1-21"] == list(range(6))


def test_numbers_have_all_their_digits_and_bytes_are_named(tmp_path, parsed):
    columns = {"id": "bigint unsigned", "n": "decimal(40,3)", "f": "float", "b": "varbinary(9)", "t": "text"}
    table = written_table("d.t", columns, table_id=1)
    row = [2**64 - 1, "1234567890123456789012345678901234567.125", 0.5, b"\0\xff", None]
    write_log(tmp_path / "log", [inserted(table, row)])

    (line,) = parsed(tmp_path / "log")

    assert line["after"] == {
        "id": 2**64 - 1,
        "n": "1234567890123456789012345678901234567.125",
        "f": 0.5,
        "b": {"base64": "AP8="},
        "t": None,
    }


@pytest.mark.parametrize("letter", [*map(chr, range(32)), "\x7f", "\x9b", "\u2028", "\u202e", "\u2066", "\ud800"])
def test_nothing_that_a_terminal_obeys_stands_in_a_line(letter):
    text = json_text({letter: f"a{letter}b"})
    assert letter not in text
    assert json.loads(text) == {letter: f"a{letter}b"}


def test_other_letters_stand_as_they_are():
    assert json_text({"ключ": "Straße 🚀"}) == '{"ключ":"Straße 🚀"}'


def test_values_with_control_characters_are_escaped(tmp_path, printed):
    table = written_table("d.t", {"a": "varchar(99)"}, table_id=1)
    write_log(tmp_path / "log", [updated(table, (["\x1b]0;pwned\x07"], ["\x9b2J\u202e"]))])
    line = printed(tmp_path / "log", JsonLines())
    assert line[:-1].isprintable()
    assert json.loads(line)["after"] == {"a": "\x9b2J\u202e"}


def test_bytes_that_cannot_be_read_are_named(half_readable, parsed):
    *_, line = parsed(half_readable, keeps_bytes=True)
    assert line["after"] == {"id": 2, "c": {"undecodable": "//4="}}

"""What kernels print is what the reference prints, to the byte, for every capture and every kind of letter."""

import json
import random
import shutil
import uuid
from dataclasses import replace
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path

import pytest
from lanes.capture import load_captures

import ibbmaster
from ibbmaster.commands.cli.main import main
from ibbmaster.commands.printing import fast_lines, line_formats
from ibbmaster.commands.printing.debezium_lines import DebeziumLines
from ibbmaster.commands.printing.fast_lines import FastLines
from ibbmaster.commands.printing.json_lines import JsonLines
from ibbmaster.commands.printing.line_formats import DebeziumFormat, JsonFormat
from ibbmaster.errors import IbbMasterError
from ibbmaster.kernel import loading
from ibbmaster.replication.event.rows.changes import ChangeKind
from ibbmaster.replication.event.rows.encoding import encode_rows, encode_table_map, written_table
from ibbmaster.tables.arrow import collecting
from tests.written_log import deleted, inserted, updated, write_log

IBB = Path(__file__).parents[3] / "fixtures" / "ibb"
SMALL = [one for one in load_captures() if one.version == "11.8" and not one.is_encrypted and one.size < 1_500_000]
LETTERS = [*map(chr, range(0x100)), "\u2027", "\u2028", "\u202e", "\u202f", "\u2066", "\u2069", "\ufeff", "é€🚀", ""]


@pytest.fixture(scope="module")
def kernels():
    ready = loading.load()
    assert ready is not None
    return ready


def read_all(fast):
    for run in fast.runs():
        for _ in run:
            pass


@pytest.fixture
def expect_same(kernels, printed):
    def compare(path):
        with ibbmaster.open(path) as log:
            for form, printer in ((JsonFormat(), JsonLines()), (DebeziumFormat(), DebeziumLines(log.engine.file_name))):
                runs = [b"".join(map(bytes, run)) for run in FastLines(log, kernels, form).runs()]
                assert b"".join(runs).decode() == printed(path, printer)

    return compare


@pytest.mark.parametrize("capture", SMALL, ids=lambda one: one.id)
def test_captures_are_printed_alike(capture, tmp_path, expect_same):
    capture.unpack(tmp_path)
    expect_same(tmp_path)


def test_chars_of_old_servers_are_printed_as_those_of_new_ones(tmp_path, printed, expect_same):
    """Where rows are of variable length servers before MySQL 5.5 call the type 253, with the metadata of 254.

    The log is made, as no server of today writes one.
    """
    table = written_table("d.t", {"id": "int", "c": "char(10)", "l": "char(150)", "n": "int"}, table_id=1)
    rows = inserted(table, [1, "abc", "ä" * 150, 7], [2, "", None, 8])
    old = [event.replace(bytes([4, 3, 254, 254, 3]), bytes([4, 3, 253, 253, 3])) for event in rows]
    assert old != rows
    logs = [
        write_log(tmp_path / name, "CREATE TABLE d.t (id INT, c CHAR(10), l CHAR(150), n INT)", [events])
        for name, events in (("new", rows), ("old", old))
    ]
    assert printed(logs[0], JsonLines()) == printed(logs[1], JsonLines())
    expect_same(logs[1])


@pytest.mark.parametrize("name", ["domains", "large-groups", "types", "xa-and-ddl"])
def test_directories_are_printed_alike(name, expect_same, monkeypatch):
    expect_same(IBB / name)
    monkeypatch.setattr(line_formats, "OUT_BYTES", 300)  # a few lines in each piece
    expect_same(IBB / name)


@pytest.mark.parametrize("name", ["domains", "types", "xa-and-ddl"])
def test_parts_are_printed_alike(name, kernels):
    rng = random.Random(random.randrange(2**32))
    with ibbmaster.open(IBB / name) as log:
        groups = [group.gtid for group in log]
        parts = [{"after": str(rng.choice(groups[:-1]))}, {"until": str(rng.choice(groups))}]
        parts += [
            {"after": str(groups[place]), "until": str(groups[-1 - place // 2])} for place in (1, len(groups) // 3)
        ]
        parts += [{"until": ",".join(map(str, log.position.values()))}]
        for options in parts:
            part = log.through(**options)
            runs = [
                b"".join(map(bytes, run)) for run in FastLines(part, kernels, JsonFormat(), part.staged.span).runs()
            ]
            assert b"".join(runs) == all_lines(part), options
        paths = [IBB / name / file.name for file in log.files]
    for path in paths:
        with ibbmaster.open(path) as log:
            runs = [b"".join(map(bytes, run)) for run in FastLines(log, kernels, JsonFormat(), log.staged.span).runs()]
            assert b"".join(runs) == all_lines(log), path


def all_lines(log):
    printer = JsonLines()
    return b"".join(b"".join(printer.group(group)) for group in log.groups(asks_statements=True))


def test_every_letter_is_printed_alike(tmp_path, expect_same):
    table = written_table("d.t", {"id": "int", "a": "varchar(99)", "b": "text", "n\u202e": "int"}, table_id=1)
    rows = [[number, f"x{letter}y", letter or None, None] for number, letter in enumerate(LETTERS)]
    write_log(
        tmp_path / "log",
        "CREATE TABLE e (a INT)",
        [inserted(table, *rows)],
        [updated(table, *zip(rows, rows[::-1], strict=True)), "SAVEPOINT s", deleted(table, *rows)],
        [inserted(table, [1, "plain", "plain", 1]), updated(table, ([1, "p", None, 2], [2, "q", "r", None]))],
    )
    expect_same(tmp_path / "log")


TYPES = Path(__file__).with_suffix(".txt").read_text()
DECLARED = dict(line.split(" ", 1) for line in TYPES.strip().splitlines())
LATIN1 = 8  # latin1_swedish_ci


def some_letters(rng, most):
    return "".join(rng.choices([*LETTERS, *"abcdefgh"], k=rng.randrange(most)))


def some_number(rng, low, high):
    return rng.choice([0, low, high, rng.randrange(low, high + 1)])


def some_decimal(rng, digits, scale):
    border = 2 ** rng.randrange(int(digits * 3.3)) + rng.randrange(-1, 2)  # of what some bytes hold
    number = rng.choice([0, 1, 10**digits - 1, rng.randrange(10**digits), border, border])
    text = f"{number:0{digits + 1}}"
    return f"{rng.choice(['', '-'])}{text[: digits + 1 - scale]}.{text[digits + 1 - scale :]}"


def some_row(rng, number):
    fraction = lambda digits: f"{rng.randrange(10**digits):0{digits}}"  # noqa: E731 - of a second
    some_day = f"{rng.randrange(10000):04}-11-{rng.randrange(1, 31):02}"
    day = rng.choice(["0000-00-00", "2026-02-00", "9999-12-31", some_day])
    clock = f"{rng.randrange(24):02}:00:{rng.randrange(60):02}"
    values = [
        *(some_number(rng, *span) for span in ((-128, 127), (0, 65535), (-(2**23), 2**23 - 1), (0, 2**64 - 1))),
        *(rng.choice([0, 1901, 2155]), rng.getrandbits(13)),
        *(rng.choice(["", "a", 'b"', "é"]), rng.choice(["", "x,z", "y"])),
        *(some_decimal(rng, *size) for size in ((10, 2), (40, 12), (9, 0), (8, 8), (38, 9))),
        *(day, f"{day} {clock}.{fraction(3)}", f"20{rng.randrange(10, 38)}-05-06 {clock}.{fraction(5)}"),
        *(f"{rng.choice(['', '-'])}{rng.randrange(839):02}:59:07.{fraction(1)}", f"{day} {clock}"),
        *(rng.choice([0.0, -0.0, 0.5, 1e20, 0.1]), rng.choice([-0.0, 1e-7, 12.25, 1e300, rng.random()])),
        *(some_letters(rng, 40), some_letters(rng, 300), "".join(rng.choices("abc é", k=rng.randrange(9))).rstrip()),
        *(some_letters(rng, 200), rng.randbytes(rng.randrange(6)), rng.randbytes(rng.randrange(40))),
        "".join(rng.choices([*map(chr, range(127)), *'é\x7f€\xa0"\\'], k=rng.randrange(40))),
        *(uuid.UUID(int=rng.getrandbits(128)), IPv6Address(rng.getrandbits(128) >> rng.randrange(129))),
        *(IPv4Address(rng.getrandbits(32)), bytes(4) + rng.randbytes(21), (rng.choice([0.5, -1.25]), 3.0)),
        json.dumps([some_letters(rng, 9)]),
    ]
    return [number, *(rng.choice([value, value, None]) for value in values)]


@pytest.fixture
def every_type(tmp_path):
    rng = random.Random(random.randrange(2**32))
    table = in_latin1(written_table("d.t", DECLARED, table_id=1), "old")
    other = written_table("d.o", {"name": "varchar(300)", "id": "int"}, table_id=2)
    declared = ", ".join(f"`{name}` {kind}" for name, kind in DECLARED.items())
    rows = [some_row(rng, number) for number in range(120)]
    groups = [
        [
            *(some(rng, table, rng.sample(rows, 2 * rng.randrange(1, 5))) for _ in range(rng.randrange(3))),
            inserted(other, [some_letters(rng, 9), number]),
            *(["SAVEPOINT s"] if rng.random() < 0.1 else []),
            some(rng, table, rng.sample(rows, 2)),
        ]
        for number in range(40)
    ]
    return write_log(tmp_path / "log", f"CREATE TABLE d.t ({declared})", *groups)


def in_latin1(table, name):
    encode = lambda text: len(text).to_bytes(2, "little") + text.encode("cp1252")  # noqa: E731
    columns = [
        replace(column, collation=LATIN1, encode=encode) if column.name == name else column for column in table.columns
    ]
    return replace(table, columns=tuple(columns))


def some(rng, table, rows):
    change = rng.choice([inserted, deleted, updated, updated])
    if change is not updated:
        return change(table, *rows)
    pairs = list(zip(rows[::2], rows[1::2], strict=True))
    if rng.random() < 0.5:
        return updated(table, *pairs)
    before, after = (sorted(rng.sample(range(len(DECLARED)), rng.randrange(1, len(DECLARED)))) for _ in range(2))
    images = [(table.image(old, before), table.image(new, after)) for old, new in pairs]
    events = encode_rows(table, ChangeKind.UPDATE, images, server_id=1, columns=(before, after))
    return [encode_table_map(table, server_id=1), *events]


def test_values_of_every_type_are_printed_alike(every_type, expect_same, monkeypatch):
    expect_same(every_type)
    monkeypatch.setattr(line_formats, "OUT_BYTES", 1000)
    monkeypatch.setattr(fast_lines, "LARGE_BATCH", 0)
    monkeypatch.setattr(fast_lines, "FEW_ROWS", 3)
    expect_same(every_type)


NO_TEXTS = [b"\x80", b"\xc3", b"\xed\xa0\x80", b"\xe2\x82", b"\xf4\x90\x80\x80", b"\xc0\xaf", b"\xff"]


@pytest.mark.parametrize("letter", NO_TEXTS)
def test_what_is_no_text_is_left_to_the_reference(letter, tmp_path, kernels):
    table = written_table("d.t", {"c": "varchar(99)"}, table_id=1)
    bad = [event.replace(b"~" * len(letter), letter) for event in inserted(table, ["é" * 9 + "~" * len(letter)])]
    write_log(tmp_path / "log", [inserted(table, ["good"]), bad])
    with ibbmaster.open(tmp_path / "log") as log, pytest.raises(IbbMasterError, match=r"d\.t column"):
        read_all(FastLines(log, kernels, JsonFormat()))


@pytest.mark.parametrize("hurt", range(5, 9))
def test_of_a_damaged_log_the_command_prints_what_the_reference_prints(hurt, tmp_path, monkeypatch, capsys):
    shutil.copytree(IBB / "types", tmp_path / "log")
    data = bytearray((path := tmp_path / "log" / "binlog-000001.ibb").read_bytes())
    data[hurt * 16384 + 700] ^= 1
    path.write_bytes(data)
    found = []
    for pays in (True, False):
        monkeypatch.setattr(loading, "do_pay", lambda *given, pays=pays: pays)
        found.append((main(["cat", str(tmp_path / "log")]), *capsys.readouterr()))
    assert found[0] == found[1]
    assert found[0][0] == 2
    for line in found[0][1].splitlines():
        json.loads(line)


def test_what_is_read_again_begins_with_the_run_that_was_not_whole(tmp_path, kernels, monkeypatch, capsys):
    monkeypatch.setattr(collecting, "GROUPS_MAX", 2)
    monkeypatch.setattr(loading, "do_pay", lambda *given: True)
    table = written_table("d.t", {"id": "int", "c": "varchar(36)"}, table_id=1)
    bad = [event.replace(b"zz", b"\xff\xfe") for event in inserted(table, [7, "zz"])]
    whole = [[inserted(table, [number, "ok"])] for number in range(6)]
    write_log(tmp_path / "log", "CREATE TABLE d.t (id INT, c VARCHAR(36))", *whole, [bad])
    with ibbmaster.open(tmp_path / "log") as log:
        fast = FastLines(log, kernels, JsonFormat())
        with pytest.raises(IbbMasterError):
            read_all(fast)
        assert fast.position > next(iter(log)).start
    assert main(["cat", str(tmp_path / "log")]) == 2
    out, err = capsys.readouterr()
    assert [json.loads(line)["gtid"] for line in out.splitlines()] == [f"0-1-{number}" for number in range(1, 8)]
    assert "d.t column c" in err

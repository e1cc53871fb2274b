"""What the options of readers and writers take, and what they refuse, before anything is read."""

import json
import re

import pytest

from ibbmaster.errors import ConfigurationError
from ibbmaster.spark.write_options import parse_write_options
from ibbmaster.tables.arrow.options import local_path, parse_options
from ibbmaster.tables.arrow.read_options import Granularity, Undecodable, ZeroDates
from tests.case_table import data_beside

DATA = data_beside(__file__)

NO_NUMBERS = {**DATA["no_numbers"], "more digits than Python takes": "9" * 5000}
NO_SIZES = NO_NUMBERS | DATA["no_sizes"]


def read(**options):
    return parse_options({"path": "/x"} | options)


def read_primary(**options):
    return parse_options({"host": "primary"} | options)


def write(**options):
    return parse_write_options({"path": "/x", "table": "a.b"} | options, {"id": "int"})


NUMBERS = [  # who takes them, what is expected, and what is none
    *((read, name, "above 0", NO_SIZES) for name in ("partitionBytes", "maxBytesPerTrigger", "maxGroupsPerTrigger")),
    (read, "maxFilesPerTrigger", "above 0", NO_SIZES),
    *((write, name, "above 0", NO_SIZES) for name in ("groupRows", "maxFileBytes", "stateIntervalBytes")),
    *((read_primary, name, "from 1 on, below ", NO_NUMBERS) for name in ("port", "serverId")),
    *((write, name, rf"from {first} on, below 2\^32$", NO_NUMBERS) for name, first in (("domain", 0), ("serverId", 1))),
]
WHO = {
    "reader": read,
    "reader of a primary": read_primary,
    "writer": write,
    "source": lambda **given: parse_options(given),
}


@pytest.mark.parametrize(("who", "options", "text"), DATA["refused"])
def test_what_means_nothing_is_refused_with_its_name(who, options, text):
    with pytest.raises(ConfigurationError, match=text):
        WHO[who](**options)


def test_stages_are_options_that_are_written_as_those_of_commands_are():
    options = read(ONLY="a.*,b.c", **{"except": "a.log_*"}, mapServerId="1=7", dropEmpty="TRUE", after="0-1-1")
    assert options.stages == (
        {"after": "0-1-1", "only": "a.*,b.c", "except_": "a.log_*", "drop_empty": True, "map_server_id": "1=7"},
    )
    assert read().stages == ()
    assert read_primary(kinds="rows", rename="a=b").stages == ({"kinds": "rows", "rename": "a=b"},)
    assert read(rename="a=b", schema="CREATE TABLE a.t (id INT)").declarations == {"b.t": {"id": "INT"}}


@pytest.mark.parametrize(("given", "text"), DATA["no_stages"])
def test_a_stage_that_cannot_be_read_is_one_line_that_calls_it_as_it_was_given(given, text):
    with pytest.raises(ConfigurationError, match=re.escape(text)) as raised:
        read(**given)
    assert "\n" not in str(raised.value)
    assert "--" not in str(raised.value)


@pytest.mark.parametrize(("given", "name", "expected"), DATA["read"])
def test_what_is_written_in_many_ways_is_read_in_one(given, name, expected):
    found = getattr(read(**given), name)
    assert (list(found) if isinstance(found, tuple | frozenset) else found) == expected


def test_names_of_options_have_no_case():
    assert read(PARTITIONBYTES="1k", startinggtid="0-1-1") == read(partitionBytes="1024", startingGtid="0-1-1")


@pytest.mark.parametrize("path", ["/srv/ibb", "file:/srv/ibb", "file:///srv/ibb"])
def test_a_path_is_taken_as_a_url_too(path):
    assert parse_options({"path": path}).path == local_path(path) == "/srv/ibb"


def test_what_is_sent_to_workers_does_not_show_the_password():
    options = read_primary(password="secret")

    assert options.password == "secret"
    assert "secret" not in repr(options)


@pytest.mark.parametrize(
    ("take", "name", "expected", "values"), NUMBERS, ids=lambda one: one if isinstance(one, str) else ""
)
def test_a_number_that_is_none_is_refused_with_its_name(take, name, expected, values):
    for value in values.values():
        with pytest.raises(ConfigurationError, match=rf"^option {name} is .*, expected a whole number {expected}"):
            take(**{name: value})


def test_an_error_shows_only_the_beginning_of_a_long_value():
    with pytest.raises(ConfigurationError) as caught:
        read(partitionBytes="9" * 5000)
    assert f"'{'9' * 60}'..." in str(caught.value)
    assert len(str(caught.value)) < 200


def test_spaces_around_a_number_and_zeros_before_it_mean_nothing():
    assert read_primary(port=" 5 ").port == 5
    assert read_primary(port="0" * 5000 + "7").port == 7
    assert read(maxGroupsPerTrigger="\t5\n", partitionBytes=" 005k ") == read(
        maxGroupsPerTrigger="5", partitionBytes="5120"
    )


@pytest.mark.parametrize(
    ("name", "choices"), [("granularity", Granularity), ("zeroDates", ZeroDates), ("onUndecodable", Undecodable)]
)
def test_a_choice_is_one_of_its_words(name, choices):
    for one in choices:
        read(**{name: f" {one.value.upper()} "})
    words = ", ".join(one.value for one in choices)
    for value in ("", "none", one.value + "s"):
        with pytest.raises(ConfigurationError, match=rf"^option {name} is '{value}', expected one of {words}$"):
            read(**{name: value})


@pytest.mark.parametrize("granularity", ["pages", "records"])
def test_only_ibb_files_have_pages_and_records(granularity):
    with pytest.raises(ConfigurationError, match="a primary tells nothing"):
        read_primary(granularity=granularity)
    with pytest.raises(ConfigurationError, match="traditional binlog files have none"):
        parse_options({"path": "/x", "granularity": granularity}, is_classic=True)
    assert read(granularity=granularity).granularity.value == granularity


@pytest.mark.parametrize("value", [*DATA["no_positions"], "0-1-" + "9" * 5000])
@pytest.mark.parametrize("name", ["startingGtid", "endingGtid"])
def test_a_position_that_is_none_is_refused_with_its_name(name, value):
    with pytest.raises(ConfigurationError, match=f"^option {name}: ") as caught:
        read(**{name: value})
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    "value",
    [
        "earliest",
        " Latest ",
        "0-1-1",
        " 0-1-1, 1-2-3",
        "",
        '{"v": 1, "gtid": "0-1-1,1-2-3", "file": 0, "offset": 16384}',
    ],
)
def test_a_stream_begins_at_an_end_of_the_log_at_a_position_or_at_an_offset(value):
    assert read(startingOffsets=value) == read(startingOffsets=f" {value}")
    assert read(startingOffsets=value).starting_offsets == value.strip()
    assert read_primary(startingOffsets=value).starting_offsets == value.strip()


LONG_BEGINNINGS = ["0-1-{}", '{{"v": 1, "gtid": "{}"}}', '{{"v": 2, "gtid": "{}"}}', '{{"v": {}}}']


@pytest.mark.parametrize(
    "value", [*DATA["no_beginnings"], '{"v":' * 5000, *(text.format("9" * 5000) for text in LONG_BEGINNINGS)]
)
def test_a_beginning_of_a_stream_that_is_none_is_refused_before_the_stream_starts(value):
    expected = "expected earliest, latest, a GTID position or an offset: "
    for options in ({"path": "/x"}, {"host": "primary"}):
        with pytest.raises(ConfigurationError, match=rf"^option startingOffsets is .*, {expected}") as caught:
            parse_options(options | {"startingOffsets": value})
        assert repr(value[:60]) in str(caught.value)
        assert len(str(caught.value)) < 350


@pytest.mark.parametrize(("value", "seconds"), DATA["times"])
def test_a_time_is_in_utc_unless_it_names_a_zone(value, seconds):
    options = read(startingTimestamp=value, endingTimestamp=value)

    assert (options.starting_time, options.ending_time) == (seconds, seconds)


@pytest.mark.parametrize("value", [*DATA["no_times"], "9" * 5000])
@pytest.mark.parametrize("name", ["startingTimestamp", "endingTimestamp"])
def test_a_time_that_is_none_is_refused_with_its_name(name, value):
    with pytest.raises(ConfigurationError, match=rf"^option {name} is .*, expected 2026-01-31T12:00:00Z, or seconds"):
        read(**{name: value})


def test_declarations_are_statements_json_or_a_file_of_either(tmp_path):
    statements = "CREATE TABLE a.b (c int unsigned, d text); CREATE TABLE a.e (f int)"
    found = {"a.b": {"c": "int unsigned", "d": "text"}, "a.e": {"f": "int"}}
    (tmp_path / "tables.sql").write_text(statements)
    (tmp_path / "tables.json").write_text(json.dumps(found))

    for value in (statements, json.dumps(found), str(tmp_path / "tables.sql"), f"file:{tmp_path / 'tables.json'}"):
        assert read(schema=value).declarations == found


@pytest.mark.parametrize(
    "script",
    [
        "USE a; CREATE TABLE b (c int)",
        "\n use `a`;\nCREATE TABLE `b` (c int);",
        "-- a dump\nUSE a;\nCREATE TABLE b (c int);",
        "/* a dump */ USE a; CREATE TABLE b (c int);",
    ],
)
def test_a_script_begins_with_a_statement_or_a_comment_and_use_names_its_database(tmp_path, script):
    (tmp_path / "dump.sql").write_text(script)

    for value in (script, str(tmp_path / "dump.sql")):
        assert read(schema=value).declarations == {"a.b": {"c": "int"}}


@pytest.mark.parametrize("name", ["create.sql", "used.sql", "use"])
def test_a_file_whose_name_begins_like_a_statement_is_a_file(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text("CREATE TABLE a.b (c int)")

    assert read(schema=name).declarations == {"a.b": {"c": "int"}}


@pytest.mark.parametrize("value", ["CREATE TABLE a.b LIKE a.c", "create nothing", "DROP.sql"])
def test_declarations_that_declare_nothing_are_refused(value, tmp_path):
    (tmp_path / "DROP.sql").write_text("DROP TABLE a.b;")
    with pytest.raises(
        ConfigurationError, match=r"^option schema(: .*DROP\.sql)? has no CREATE TABLE statement with columns$"
    ):
        read(schema=str(tmp_path / value) if value.endswith(".sql") else value)


@pytest.mark.parametrize("content", [b"\xff\xfe", None], ids=["no text", "a zero byte in its name"])
def test_a_file_of_declarations_that_cannot_be_read_is_an_error(tmp_path, content):
    path = tmp_path / "tables.sql"
    path.write_bytes(content or b"")
    with pytest.raises(ConfigurationError, match=r"^option schema: .*tables\.sql.?: not a file of text in UTF-8$"):
        read(schema=str(path) if content else f"{path}\0")

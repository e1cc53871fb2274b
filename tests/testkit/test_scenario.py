import contextlib
import random
from pathlib import Path

import pytest

from ibbmaster.errors import ConfigurationError
from ibbmaster.testkit.scenario import SCENARIO_SIZE_MAX, parse_scenario, read_scenario
from tests.case_table import cases_beside, rows_of
from tests.tap import LOGS, connect, listen_in

SHOP = Path(__file__).with_suffix(".toml").read_text()
LATE = """
clock = "connection"
[tables]
"shop.t" = {id = "int primary key"}
[[group]]
at = 0.0
changes = [{insert = "shop.t", values = {id = 1}}]
"""


def test_the_clock_of_a_scenario_may_begin_with_the_first_connection():
    """A consumer that comes late sees what is recorded at its time, and not all of it at once."""
    with parse_scenario(LATE).serving() as primary:
        before = str(primary.log.position)
        assert not primary.witness.wait(lambda: str(primary.log.position) != before, 0.2)
        assert listen_in(primary.port).packets
        assert primary.witness.wait(lambda: str(primary.log.position) != before, 60)


def test_a_scenario_writes_its_log_and_does_its_faults():
    with parse_scenario(SHOP).serving() as primary:
        assert [(row["id"], str(row["total"]), row["note"]) for row in primary.table("shop.orders").rows] == [
            (1, "12.50", None),
            (2, "3.00", None),
            (5, "None", "prepared"),
        ]
        assert str(primary.log.position) == "0-3-5,1-3-10"
        found = [len(listen_in(primary.port).packets) for _ in range(2)]
        assert found[0] < found[1]
        assert primary.witness.wait(lambda: len(primary.faults.done) == 2, 60)
        assert {str(record.fault) for record in primary.faults.done} == {"cut after gtid of 1-3-10", "clock at 0.01 s"}
        primary.verify()


def test_the_same_scenario_gives_the_same_bytes():
    text = SHOP + '[[fault]]\nplace = "before commit 2"\naction = "garbage"\n'
    streams = []
    for _ in range(2):
        with parse_scenario(text.replace("at = 0.01", "at = 3600")).serving() as primary:
            primary.in_loop(lambda registry: None)
            primary._running._primary._parts.facts.started_at = 1_800_000_000  # as traditional streams say
            streams.append([listen_in(primary.port).data for _ in range(2)])
    assert streams[0] == streams[1]


@pytest.mark.parametrize("log", ["engine", "classic"])
def test_a_scenario_may_name_a_log_beside_it(log, tmp_path):
    (tmp_path / "captured").symlink_to(LOGS[log])
    file = tmp_path / "scenario.toml"
    file.write_text('[log]\ndirectory = "captured"\n[[fault]]\nplace = "after gtid 3"\naction = "cut"\n')
    with read_scenario(file).serving() as primary:
        assert [p[5] for p in listen_in(primary.port).packets].count(162) == 3
        packets = [p[1:] for p in listen_in(primary.port).packets if p[0] == 0]
        assert [p[4] for p in packets].count(162) == 155


def test_clients_of_a_scenario_plan_faults_and_values_of_sequences_and_alters_are_written():
    with parse_scenario("").serving() as primary:
        with contextlib.closing(connect(primary)) as connection:
            connection.query("SET GLOBAL ibb_fault = 'error before dump; text=as said'")
        assert listen_in(primary.port).packets[0].endswith(b"as said")
    with read_scenario(Path(__file__).with_name("two_phases.toml")).serving() as primary:
        assert str(primary.log.position) == "0-3-5,1-3-6,2-3-1"
        assert primary.table("shop.orders").rows == [{"id": 1}]
        assert primary.table("shop.numbers").rows[0]["next_not_cached_value"] == 3
    with pytest.raises(ConfigurationError, match="group 1: 'at_once' means nothing here"):
        parse_scenario("[[group]]\nstart_alter = 'ALTER TABLE t ADD a int'\nat_once = true")


WRONG = {**cases_beside(__file__), "too deep": ("a = " + "[" * 100_000, "no TOML")}


@pytest.mark.parametrize(("text", "problem"), WRONG.values(), ids=WRONG)
def test_what_means_nothing_is_said_with_its_key(text, problem):
    with pytest.raises(ConfigurationError) as caught:
        parse_scenario(text)
    assert str(caught.value).startswith(problem)
    assert "\n" not in str(caught.value)


UNUSABLE = {name: cells for name, *cells in rows_of(__file__, "unusable_scenarios")}


@pytest.mark.parametrize(("text", "problem"), UNUSABLE.values(), ids=UNUSABLE)
def test_what_cannot_be_written_is_said_before_anything_is_served(text, problem):
    with pytest.raises(ConfigurationError) as caught, parse_scenario(text.replace("\\n", "\n")).serving():
        raise AssertionError("it serves")
    assert str(caught.value).startswith(problem)


def test_files_that_cannot_be_read_are_named(tmp_path):
    (tmp_path / "binary").write_bytes(b"seed = 1 # \xff")
    with (tmp_path / "large").open("wb") as file:
        file.truncate(SCENARIO_SIZE_MAX + 1)
    problems = {"absent": "No such file", "binary": "no UTF-8 at byte 11", "large": "expected a file of at most"}
    for name, problem in problems.items():
        with pytest.raises(ConfigurationError, match=f"{name}: .*{problem}"):
            read_scenario(tmp_path / name)


def test_a_damaged_scenario_is_read_or_refused_in_a_line(stream_seeds):
    rng = random.Random(next(stream_seeds(1)))
    for _ in range(300):
        text = bytearray(SHOP.encode())
        for _ in range(rng.randint(1, 4)):
            place = rng.randrange(len(text))
            text[place : place + rng.choice((0, 1, 5))] = rng.choice(
                (b"", b"[", b'"', b"=", b"9" * 30, b"\n", b"{}", b"true")
            )
        problem = ""
        try:
            parse_scenario(text.decode())
        except ConfigurationError as error:
            problem = str(error)
        assert "\n" not in problem


def test_a_scenario_is_a_file_and_its_log_has_some(tmp_path):
    with pytest.raises(ConfigurationError, match=r"is a directory: expected a scenario file, as .*/scenario\.toml$"):
        read_scenario(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "scenario.toml").write_text("[log]\ndirectory = 'empty'\n")
    scenario = read_scenario(tmp_path / "scenario.toml")
    with pytest.raises(ConfigurationError, match=r"^log: directory .*/empty has no binlog files$"), scenario.serving():
        pass

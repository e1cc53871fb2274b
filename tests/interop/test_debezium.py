"""Debezium's MariaDB connector: its snapshots, its stream and its restarts are those beside a real primary."""

import json
import random
import re
import shutil
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import pytest
from lanes import shop
from lanes.drivers import driver_command
from lanes.primary import Primary

from ibbmaster.commands.cli.main import main

TIMEOUT_S = 250.0  # ends what hangs; a machine may be busy
LINES_SHOWN = 60
LAST = "THE-END"  # in a record behind which it stops
QUIET = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
#: What is of the run, or of the files that a primary keeps, in a record.
OF_THE_RUN = re.compile(r"ts_(ms|us|ns)|file|pos|thread")
_AUTO_INCREMENT = re.compile(r" AUTO_INCREMENT=\d+")

Record = tuple[str, Any, Any]


class Debezium:
    """One run of the connector; a context manager that ends it."""

    def __init__(self, primary: Primary, directory: Path, mode: str, *, last: str = LAST) -> None:
        """`directory` keeps its offsets and schema history; with those of an earlier run it goes on."""
        directory.mkdir(exist_ok=True)
        program, *rest = driver_command("debezium", "Follow")
        account = [primary.host, str(primary.port), primary.user, primary.password]
        self.records: list[Record] = []
        self.stored = 0  # so many of them come not again in another run
        self._log = directory / "log"
        self._changed = threading.Condition()
        self._end: str | None = None
        with self._log.open("a") as log:
            command = [program, QUIET, *rest, *account, mode, str(directory), last]
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def _read(self) -> None:
        end = "it ended without a word"
        with self._process.stdout as lines:
            for line in lines:
                with self._changed:
                    match line.rstrip("\n").split("\t"):
                        case ["stored"]:
                            self.stored = len(self.records)
                            self._changed.notify_all()
                        case ["failed", *_] | [_]:
                            end = line.strip()
                        case topic, key, value:
                            self.records.append((topic, cleaned(json.loads(key)), cleaned(json.loads(value))))
        with self._changed:
            self._end = end
            self._changed.notify_all()

    def wait_for(self, is_there: Callable[[list[Record]], object]) -> None:
        """Wait until the records fulfil a condition behind which its offset is stored."""
        with self._changed:
            self._changed.wait_for(lambda: self._end is not None or is_there(self.records[: self.stored]), TIMEOUT_S)
            assert is_there(self.records[: self.stored]), self.log_text()

    def finish(self) -> list[Record]:
        with self._changed:
            self._changed.wait_for(lambda: self._end is not None, TIMEOUT_S)
        assert self._end == "end", self.log_text()
        return self.records

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()

    def log_text(self) -> str:
        """How it ended, and the last lines of its log."""
        return "\n".join([str(self._end), *self._log.read_text().splitlines()[-LINES_SHOWN:]])


def cleaned(value: Any) -> Any:
    """A key or a value, without what another run would have otherwise."""
    match value:
        case dict():
            return {name: cleaned(inner) for name, inner in value.items() if not OF_THE_RUN.fullmatch(name)}
        case list():
            return [cleaned(inner) for inner in value]
        case str():
            return _AUTO_INCREMENT.sub("", value)
        case _:
            return value


def has_snapshot(records: list[Record]) -> bool:
    """Whether a snapshot has told the structure of all tables, or has ended with the last row."""
    created = sum("CREATE TABLE" in str((value or {}).get("ddl")) for _, _, value in records)
    return created == len(shop.TABLES) or has_last(records)


def has_last(records: list[Record]) -> bool:
    return any((value or {}).get("source", {}).get("snapshot") == "last" for _, _, value in records)


VERSION = "11.8"
NOTHING = "is in no record"
PROFILES = ("classic-11.8", "compat")


@pytest.fixture(scope="session", autouse=True)
def debezium() -> None:
    """Skips all tests of it where it is missing."""
    driver_command("debezium", "Follow")


def followed(primary: object, directory: Path, mode: str, after: Callable[[], None]) -> list[Record]:
    """All records; what comes after its snapshot happens when it has one."""
    with Debezium(primary, directory, mode) as debezium:
        if mode != "never":
            debezium.wait_for(has_snapshot)
        after()
        return debezium.finish()


ONE_OF = pytest.mark.one_of("mode")


@pytest.mark.parametrize(
    "mode", ["initial", *(pytest.param(mode, marks=ONE_OF) for mode in ("no_data", "never", "when_needed"))]
)
def test_debezium_has_the_records_that_a_real_primary_gives_it(shop_of, tmp_path, new_ibb_primary, mode, request):
    place = shop_of(VERSION)
    wanted = followed(place.real, tmp_path / "real", mode, lambda: place.run(*shop.AFTER, shop.end(1, LAST)))
    takes_all = mode == "initial" or request.config.getoption("--interop-all")
    for profile in PROFILES if takes_all else [random.choice(PROFILES)]:
        log = place.log
        place.log = tmp_path / profile
        shutil.copytree(log, place.log)
        primary = new_ibb_primary(place.log, "--profile", profile)

        found = followed(primary, tmp_path / f"of-{profile}", mode, lambda: place.bring(2))

        for mine, theirs in zip(found, wanted, strict=False):
            assert mine == theirs
        assert len(found) == len(wanted)
        place.log = log
    assert len(wanted) > 20


def test_lines_that_are_printed_for_debezium_are_its_records(shop_of, tmp_path, capsys):
    place = shop_of(VERSION)
    records = followed(place.real, tmp_path / "real", "never", lambda: place.run(*shop.AFTER, shop.end(1, LAST)))
    place.bring(2)

    assert main(["cat", str(place.log), "--format", "debezium"]) == 0

    printed = [cleaned(json.loads(line)) for line in capsys.readouterr().out.splitlines()]
    wanted = [value for _, _, value in records if value and "op" in value]
    assert len(printed) == len(wanted) > 20
    for mine, theirs in zip(printed, wanted, strict=True):
        for record in (mine, theirs):
            del record["source"]["version"], record["source"]["name"]
            for row in filter(None, (record["before"], record["after"])):
                row.pop("u", None)  # the connector turns the bytes of a UUID about
                row.pop("state", None)  # and gives the default of a column for its NULL
        assert mine == theirs


def test_debezium_goes_on_from_its_stored_offset(shop_of, tmp_path, new_ibb_primary):
    place = shop_of(VERSION)
    ours = new_ibb_primary(place.log, "--profile", "compat")
    primaries = [(tmp_path / "real", place.real), (tmp_path / "ours", ours)]
    found: list[list[Record]] = []
    for directory, primary in primaries:
        with Debezium(primary, directory, "initial", last=NOTHING) as debezium:
            debezium.wait_for(has_snapshot)
            if primary is place.real:
                place.run(shop.end(1, "half way"))
            else:
                place.bring(2)
            debezium.wait_for(lambda records: "half way" in str(records))
    place.run(*shop.AFTER, shop.end(2, LAST))
    place.bring(3)
    for directory, primary in primaries:
        with Debezium(primary, directory, "initial") as debezium:
            found.append(list(debezium.finish()))

    of_real, of_ours = found
    assert of_ours == of_real
    assert LAST in str(of_real[-1])
    assert not any("CREATE DATABASE" in str(record) for record in of_real), "it took no second snapshot"


def test_debezium_killed_in_its_snapshot_takes_it_again_and_loses_nothing(shop_of, tmp_path, new_ibb_primary):
    place = shop_of(VERSION)
    count = 30_000
    place.run(
        "CREATE TABLE shop.many (id INT PRIMARY KEY, label VARCHAR(20))",
        "SET max_recursive_iterations = 1000000",
        "INSERT INTO shop.many WITH RECURSIVE n (seq) AS "
        f"(SELECT 1 UNION ALL SELECT seq + 1 FROM n WHERE seq < {count}) SELECT seq, CONCAT('row ', seq) FROM n",
    )
    place.bring(2)
    ours = new_ibb_primary(place.log, "--profile", "compat")
    with Debezium(ours, tmp_path / "ours", "initial", last=NOTHING) as debezium:
        debezium.wait_for(lambda records: len([one for one in records if one[0].endswith(".many")]) > count // 10)
        debezium.kill()
        assert len(debezium.records) < count

    found = []
    for directory, primary in ((tmp_path / "ours", ours), (tmp_path / "real", place.real)):
        with Debezium(primary, directory, "initial", last=NOTHING) as debezium:
            debezium.wait_for(has_last)
            found.append([record for record in debezium.records if record[0].endswith(".many")])
    mine, theirs = found
    assert len(theirs) == count
    assert mine == theirs

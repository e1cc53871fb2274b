"""Debezium's MariaDB connector: its snapshots, its stream and its restarts are those beside a real primary."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from lanes import shop
from lanes.debezium import LAST, Debezium, Record, has_snapshot
from lanes.drivers import DriverMissingError, driver_directory
from lanes.primary import ClassicPrimary, IbbPrimary

VERSION = "11.8"
PROFILES = ("classic-11.8", "compat")


@pytest.fixture(scope="session")
def debezium() -> None:
    """The connector; without it the test is skipped with the reason."""
    try:
        driver_directory("debezium")
    except DriverMissingError as error:
        pytest.skip(str(error))


class Shop:
    """A real primary with a shop in it, and its binlog as `.ibb` files that grow behind it."""

    def __init__(self, real: ClassicPrimary, directory: Path, import_files: Callable[..., None]) -> None:
        self.real = real
        self.log = directory / "log"
        self._copies = directory / "classic"
        self._import = import_files
        self._copies.mkdir()

    def run(self, *statements: str) -> None:
        """On the real primary."""
        shop.run(self.real, *statements, "FLUSH BINARY LOGS")

    def bring(self, count: int) -> None:
        """The first files of the binlog into the log."""
        names = [row[0] for row in self.real.sql("SHOW BINARY LOGS")][:count]
        files = [self._copies / name for name in names]
        for file in files:
            shutil.copy(self.real.data / file.name, file)
        self._import(files, self.log, *(["--append"] if self.log.exists() else []))


@pytest.fixture
def shop_of(
    debezium: None,
    template_of: Callable,
    servers_directory: Path,
    server_numbers: Iterator[int],
    import_files: Callable[..., None],
    watch_log: Callable,
    tmp_path: Path,
) -> Iterator[Shop]:
    """The shop with what was done before anybody looks."""
    directory = servers_directory / f"b{next(server_numbers)}"
    options = ["--binlog-format=ROW", "--binlog-row-metadata=NO_LOG"]
    with ClassicPrimary(template_of(VERSION), directory, [], *options) as real:
        watch_log("log of the real primary", real.log_text)
        place = Shop(real, tmp_path, import_files)
        place.run(*shop.BEFORE)
        place.bring(1)
        yield place


def followed(primary: object, directory: Path, mode: str, after: Callable[[], None]) -> list[Record]:
    """All records; what comes after its snapshot happens when it has one."""
    with Debezium(primary, directory, mode) as debezium:
        if mode != "never":
            debezium.wait_for(has_snapshot(len(shop.TABLES)))
        after()
        return list(debezium.finish())


@pytest.mark.parametrize("mode", ["initial", "no_data", "never", "when_needed"])
def test_debezium_has_the_records_that_a_real_primary_gives_it(
    shop_of: Shop, tmp_path: Path, new_ibb_primary: Callable[..., IbbPrimary], mode: str
) -> None:
    wanted = followed(shop_of.real, tmp_path / "real", mode, lambda: shop_of.run(*shop.AFTER, shop.end(1, LAST)))
    for profile in PROFILES:
        log = shop_of.log
        shop_of.log = tmp_path / profile
        shutil.copytree(log, shop_of.log)
        primary = new_ibb_primary(shop_of.log, "--profile", profile)

        found = followed(primary, tmp_path / f"of-{profile}", mode, lambda: shop_of.bring(2))

        assert found == wanted
        shop_of.log = log
    assert len(wanted) > 20


def both(shop_of: Shop, tmp_path: Path, new_ibb_primary: Callable[..., IbbPrimary]) -> list[tuple[Path, object]]:
    """The real primary and ours, each with a directory for what Debezium keeps."""
    ours = new_ibb_primary(shop_of.log, "--profile", "compat")
    return [(tmp_path / "real", shop_of.real), (tmp_path / "ours", ours)]


def test_debezium_goes_on_from_its_stored_offset(
    shop_of: Shop, tmp_path: Path, new_ibb_primary: Callable[..., IbbPrimary]
) -> None:
    primaries = both(shop_of, tmp_path, new_ibb_primary)
    found: list[list[Record]] = []
    for directory, primary in primaries:
        with Debezium(primary, directory, "initial", last="in the snapshot") as debezium:
            debezium.wait_for(has_snapshot(len(shop.TABLES)))
            if primary is shop_of.real:
                shop_of.run(shop.end(1, "half way"))
            else:
                shop_of.bring(2)
            debezium.wait_for(lambda records: "half way" in str(records[-1]))
    shop_of.run(*shop.AFTER, shop.end(2, LAST))
    shop_of.bring(3)
    for directory, primary in primaries:
        with Debezium(primary, directory, "initial") as debezium:
            found.append(list(debezium.finish()))

    of_real, of_ours = found
    assert of_ours == of_real
    assert LAST in str(of_real[-1])
    assert not any("CREATE DATABASE" in str(record) for record in of_real), "it took no second snapshot"


def test_debezium_killed_in_its_snapshot_takes_it_again_and_loses_nothing(
    shop_of: Shop, tmp_path: Path, new_ibb_primary: Callable[..., IbbPrimary]
) -> None:
    count = 30_000
    shop_of.run(
        "CREATE TABLE shop.many (id INT PRIMARY KEY, label VARCHAR(20))",
        "SET max_recursive_iterations = 1000000",
        "INSERT INTO shop.many WITH RECURSIVE n (seq) AS "
        f"(SELECT 1 UNION ALL SELECT seq + 1 FROM n WHERE seq < {count}) SELECT seq, CONCAT('row ', seq) FROM n",
        shop.end(1, LAST),
    )
    shop_of.bring(2)
    ours = new_ibb_primary(shop_of.log, "--profile", "compat")
    with Debezium(ours, tmp_path / "ours", "initial") as debezium:
        debezium.wait_for(lambda records: len([one for one in records if one[0].endswith(".many")]) > count // 10)
        debezium.kill()
        assert len(debezium.records) < count

    with Debezium(ours, tmp_path / "ours", "initial") as debezium:
        debezium.wait_for(lambda records: any(is_last(record) for record in records))
        found = [record for record in debezium.records if record[0].endswith(".many")]

    with Debezium(shop_of.real, tmp_path / "real", "initial") as debezium:
        debezium.wait_for(lambda records: any(is_last(record) for record in records))
        wanted = [record for record in debezium.records if record[0].endswith(".many")]
    assert len(wanted) == count
    assert found == wanted


def is_last(record: Record) -> bool:
    return bool((record[2] or {}).get("source", {}).get("snapshot") == "last")

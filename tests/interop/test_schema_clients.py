"""Clients that ask what tables look like and what they hold: as beside the primary that has the tables."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from lanes import shop
from lanes.content import table_content
from lanes.drivers import DriverMissingError, driver_command
from lanes.primary import Primary, login_options, tool_command
from lanes.replica import Replica
from lanes.shop import Shop

TIMEOUT_S = 250
SPARK = Path(__file__).parent / "drivers" / "spark_jdbc.py"
VERSIONS = ("10.11", "11.8")
NO_TLS = {"10.11": "--skip-ssl", "11.8": "--skip-ssl"}


def lines_of(command: list[str], text: bytes = b"") -> list[str]:
    done = subprocess.run(command, input=text, capture_output=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 0, f"{command[0]} ended with {done.returncode}\n{shown(done.stderr.decode())}"
    return done.stdout.decode(errors="surrogateescape").splitlines()


def shown(text: str) -> str:
    """What a program said, without the lines that only say where."""
    return "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("at "))[-3000:]


def driver(kind: str, what: str) -> list[str]:
    try:
        return driver_command(kind, what)
    except DriverMissingError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_jdbc_driver_sees_the_same_schema_and_the_same_rows(shop_of, new_ibb_primary, version):
    place = shop_of(version)
    ours = new_ibb_primary(place.log, "--profile", f"classic-{version}")

    def seen(primary: Primary) -> list[str]:
        url = f"jdbc:mariadb://{primary.host}:{primary.port}/?sslMode=disable&useServerPrepStmts=true"
        return lines_of([*driver("java", "Meta"), url, primary.user, primary.password, "shop"])

    for mine, theirs in zip(seen(ours), seen(place.real), strict=True):
        assert mine.split("\t") == theirs.split("\t")


@pytest.mark.parametrize("version", VERSIONS)
def test_canal_names_the_columns_of_what_it_follows(shop_of, new_ibb_primary, version):
    place = shop_of(version)
    start = str(place.real.sql("SELECT @@gtid_binlog_pos")[0][0])
    place.run(*shop.AFTER)
    place.bring(2)
    end = str(place.real.sql("SELECT @@gtid_binlog_pos")[0][0])
    ours = new_ibb_primary(place.log, "--profile", f"classic-{version}")

    def seen(primary: Primary) -> list[str]:
        account = [primary.host, str(primary.port), primary.user, primary.password]
        return lines_of([*driver("go", "canal"), *account, start, end])

    found = seen(ours)
    assert found == seen(place.real)
    assert len([line for line in found if line.startswith("insert\tshop.orders")]) == 1


@pytest.mark.parametrize("profile", ["classic-11.8", "classic-10.11"])
def test_a_dump_makes_a_replica_that_follows(shop_of, new_ibb_primary, new_replica, profile):
    place = shop_of("11.8")
    ours = new_ibb_primary(place.log, "--profile", profile)
    options = ["--single-transaction", "--master-data=1", "--gtid", "--databases", "shop", "old stock"]
    dump = "\n".join(lines_of([*tool_command("11.8", "mariadb-dump"), NO_TLS["11.8"], *login_options(ours), *options]))

    replica = new_replica("11.8")
    lines_of(
        [*tool_command("11.8", "mariadb"), f"--socket={replica.socket}", "--user=root"],
        dump.encode(errors="surrogateescape"),
    )
    assert str(replica.sql("SELECT @@gtid_slave_pos")[0][0]) == str(place.real.sql("SELECT @@gtid_binlog_pos")[0][0])
    expect_same(place, replica, shop.TABLES)

    place.run(*shop.AFTER)
    place.bring(2)
    replica.follow(ours)
    replica.wait_for_gtid(str(place.real.sql("SELECT @@gtid_binlog_pos")[0][0]))
    expect_same(place, replica, (*shop.TABLES, "shop.later"))


def expect_same(place: Shop, replica: Replica, tables: tuple[str, ...]) -> None:
    for table in tables:
        with place.real.connect() as real, replica.connect() as other:
            assert table_content(other, table) == table_content(real, table), table


def test_spark_reads_tables_over_jdbc(shop_of, new_ibb_primary, monkeypatch):
    place = shop_of("11.8")
    ours = new_ibb_primary(place.log, "--profile", "classic-11.8")
    classes = Path(driver("java", "Meta")[-2].split(os.pathsep)[0]).parent / "lib"
    jar = next(classes.glob("mariadb-java-client-*.jar"))
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", f"--jars {jar} --driver-class-path {jar} pyspark-shell")

    tables = [table for table in shop.TABLES if table != "shop.kinds"]  # Spark knows no UUID

    def seen(primary: Primary) -> list[str]:
        url = f"jdbc:mariadb://{primary.host}:{primary.port}/?sslMode=disable&sessionVariables=sql_mode=ANSI_QUOTES"
        return lines_of([sys.executable, str(SPARK), url, primary.user, primary.password, *tables])

    found = seen(ours)
    assert found == seen(place.real)
    assert len(found) > 2 * len(tables)

"""Clients that ask what tables look like and what they hold: as beside the primary that has the tables."""

import os
import sys
from pathlib import Path

import pytest
from lanes import shop
from lanes.capture import contents
from lanes.drivers import driver_command
from lanes.primary import Primary, login_options, run_program, tool_command
from lanes.sql import position_of, run_script

SPARK = Path(__file__).parent / "drivers" / "spark_jdbc.py"


def test_a_jdbc_driver_sees_the_same_schema_and_the_same_rows(shop_of, new_ibb_primary, version):
    place = shop_of(version)
    ours = new_ibb_primary(place.log, "--profile", f"classic-{version}")

    def seen(primary: Primary) -> list[str]:
        url = f"jdbc:mariadb://{primary.host}:{primary.port}/?sslMode=disable&useServerPrepStmts=true"
        command = [*driver_command("java", "Meta"), url, primary.user, primary.password, "shop"]
        return run_program(command).splitlines()

    for mine, theirs in zip(seen(ours), seen(place.real), strict=True):
        assert mine.split("\t") == theirs.split("\t")


def test_canal_names_the_columns_of_what_it_follows(shop_of, new_ibb_primary, version):
    place = shop_of(version)
    start = position_of(place.real)
    place.run(*shop.AFTER)
    place.bring(2)
    end = position_of(place.real)
    ours = new_ibb_primary(place.log, "--profile", f"classic-{version}")

    def seen(primary: Primary) -> list[str]:
        account = [primary.host, primary.port, primary.user, primary.password]
        return run_program([*driver_command("go", "canal"), *account, start, end]).splitlines()

    found = seen(ours)
    assert found == seen(place.real)
    assert len([line for line in found if line.startswith("insert\tshop.orders")]) == 1


@pytest.mark.parametrize("profile", ["classic-11.8", "classic-10.11"])
def test_a_dump_makes_a_replica_that_follows(shop_of, new_ibb_primary, new_replica, profile):
    place = shop_of("11.8")
    ours = new_ibb_primary(place.log, "--profile", profile)
    options = ["--single-transaction", "--master-data=1", "--gtid", "--databases", "shop", "old stock"]
    dump = run_program(tool_command("11.8", "mariadb-dump", "--skip-ssl", *login_options(ours), *options))

    replica = new_replica("11.8")
    assert run_script(replica, dump.encode(errors="surrogateescape")) == ""
    assert replica.position == {position_of(place.real)}
    assert contents(replica, shop.TABLES) == contents(place.real, shop.TABLES)

    place.run(*shop.AFTER)
    place.bring(2)
    replica.follow(ours)
    replica.wait_for_gtid(position_of(place.real))
    tables = (*shop.TABLES, "shop.later")
    assert contents(replica, tables) == contents(place.real, tables)


def test_spark_reads_tables_over_jdbc(shop_of, new_ibb_primary, monkeypatch):
    place = shop_of("11.8")
    ours = new_ibb_primary(place.log, "--profile", "classic-11.8")
    classes = Path(driver_command("java", "Meta")[-2].split(os.pathsep)[0]).parent / "lib"
    jar = next(classes.glob("mariadb-java-client-*.jar"))
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", f"--jars {jar} --driver-class-path {jar} pyspark-shell")

    tables = [table for table in shop.TABLES if table != "shop.kinds"]  # Spark knows no UUID

    def seen(primary: Primary) -> list[str]:
        url = f"jdbc:mariadb://{primary.host}:{primary.port}/?sslMode=disable&sessionVariables=sql_mode=ANSI_QUOTES"
        return run_program([sys.executable, SPARK, url, primary.user, primary.password, *tables]).splitlines()

    found = seen(ours)
    assert found == seen(place.real)
    assert len(found) > 2 * len(tables)

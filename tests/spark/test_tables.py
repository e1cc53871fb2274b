import random
import shutil

import pytest
from pyspark.errors import PySparkException

import ibbmaster
from ibbmaster.errors import ConfigurationError
from ibbmaster.spark.tables import tables
from tests.lake.random_log import random_log


@pytest.fixture
def log(fixtures, tmp_path):
    return shutil.copytree(fixtures / "ibb/xa-and-ddl", tmp_path / "log")


def test_each_table_has_the_rows_that_a_reader_of_it_alone_has(spark, log):
    with tables(spark, str(log), tables="shop.*", zeroDates="text") as found:
        assert "shop.parent" in found
        assert len(found) == 8
        for name in ("shop.parent", "shop.sq"):
            frame = found[name]
            alone = spark.read.format("ibb").options(table=name, zeroDates="text").load(str(log))
            assert frame.schema == alone.schema
            assert frame.collect() == alone.collect()


def test_the_log_is_read_once_for_all_of_them(spark, log):
    with tables(spark, str(log), tables="shop.*", partitionBytes="32k") as found:
        expected = ibbmaster.open(log).to_arrow_tables("shop.*")
        counts = {"shop.parent": found["shop.parent"].count()}
        shutil.rmtree(log)
        counts |= {name: frame.count() for name, frame in found.items()}
    assert counts == {name: table.num_rows for name, table in expected.items()}
    assert sum(counts.values()) > 90


def test_they_say_up_to_where_the_log_is_read(spark, tmp_path):
    directory = random_log(random.Random(7), tmp_path / "log")
    end = ibbmaster.open(directory).state.position()
    with tables(spark, str(directory)) as found:
        assert found.end == str(end)


def test_what_does_not_go_with_many_tables_is_refused(spark, log):
    with pytest.raises(ConfigurationError, match="leave out the options table, columns"):
        tables(spark, str(log), table="shop.parent")
    with pytest.raises(ConfigurationError, match=r"no table of .* matches shopp\.\*: it has shop\.audit, "):
        tables(spark, str(log), tables="shopp.*")


@pytest.mark.parametrize(
    "options", [{"tables": "shopp.*"}, {"only": "shopp.*"}, {"granularity": "groups", "tables": "shopp.*"}]
)
def test_a_pattern_that_matches_no_table_is_an_error_of_a_reader_too(spark, log, options):
    with pytest.raises(PySparkException, match=r"no table of .* matches shopp\.\*: it has .*shop\.audit, "):
        spark.read.format("ibb").options(**options).load(str(log)).count()

"""Which engine does a job, and what it may be told."""

from __future__ import annotations

import pytest

from ibbmaster.cli.lake_engine import pair_of
from ibbmaster.errors import ConfigurationError


@pytest.mark.parametrize("setting", [["--conf", "spark.x=1"], ["--master", "local"], ["--archives", "x.whl"]])
def test_settings_of_spark_are_not_for_arrow(run, fixtures, setting):
    found = run("lake", "snapshot", fixtures / "ibb/domains", "dom_2.t", "--engine", "arrow", *setting)
    assert found == (2, "", "ibbmaster: --engine arrow: --master, --archives and --conf are for Spark\n")


@pytest.mark.parametrize("master", [[], ["--master", "local[2]"], ["--master", "sc://127.0.0.1:1"]])
def test_a_wheel_is_for_the_workers_of_a_cluster(run, fixtures, tmp_path, master):
    code, out, err = run("lake", "export", fixtures / "ibb/domains", "--to", tmp_path, "--archives", "x.whl", *master)
    assert (code, out) == (2, "")
    assert err == "ibbmaster: --archives is for a --master of a cluster (spark://, yarn, k8s://, local-cluster)\n"


def test_a_small_log_is_read_without_spark_and_that_is_said(run, fixtures, tmp_path):
    code, out, err = run("lake", "snapshot", fixtures / "ibb/domains", "dom_2.t", "--to", tmp_path / "t")
    assert (code, out, err) == (0, "dom_2.t: 32 rows\n", "ibbmaster: engine arrow, for 0.1 MB of log\n")


@pytest.mark.parametrize("text", ["spark.x", "=1", ""])
def test_a_setting_has_a_name_and_a_value(text):
    assert pair_of("spark.x=1=2", "--conf") == ("spark.x", "1=2")
    with pytest.raises(ConfigurationError, match="is not NAME=VALUE"):
        pair_of(text, "--conf")

"""What an operator copies from deploy/ is accepted by the programs that read it."""

import os
import re
import subprocess
import urllib.request
from pathlib import Path

import pytest
from lanes.containers import found_program
from lanes.primary import PASSWORD, USER

from ibbmaster.primary.server.figures import KINDS

DEPLOY = Path(__file__).parents[2] / "deploy"
pytestmark = pytest.mark.interop
#: What mysqld_exporter can collect of a primary, besides what it does by default.
COLLECTED = [
    *("binlog_size", "engine_innodb_status", "info_schema.clientstats", "info_schema.replica_host"),
    *("info_schema.schemastats", "info_schema.tables", "info_schema.tablestats", "info_schema.userstats"),
    "slave_hosts",
]


def program(name, package):
    found = found_program(name)
    if found is None:
        pytest.skip(f"no {name}: `apt-get install {package}`, or `sh .ci/prepare tests`")
    return found


@pytest.mark.parametrize(
    "asked",
    [["test", "rules", "alerts_test.yml"], ["check", "config", "prometheus.yml"]],
    ids=["alert rules, which fire when they should", "its configuration in the compose file"],
)
def test_prometheus_takes(asked):
    command = [program("promtool", "prometheus"), *asked]
    done = subprocess.run(command, cwd=DEPLOY, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_alert_rules_are_about_figures_that_there_are():
    rules = (DEPLOY / "alerts.yml").read_text()
    names = {word for line in rules.splitlines() if "expr:" in line for word in line.split() if "ibbmaster_" in word}
    assert names <= KINDS.keys()
    assert len(names) == 5


def test_systemd_takes_the_unit(tmp_path):
    unit = (DEPLOY / "ibbmaster.service").read_text()
    assert unit.count("/usr/bin/ibbmaster ") == 1
    copy = tmp_path / "ibbmaster.service"
    copy.write_text(unit.replace("/usr/bin/ibbmaster ", "/bin/true ").replace("ibbmaster\n", "root\n"))
    verify = [program("systemd-analyze", "systemd"), "verify", "--man=no", str(copy)]
    done = subprocess.run(verify, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_mysqld_exporter_of_debian_reads_a_primary_without_an_error(new_ibb_primary, captures):
    name = program("prometheus-mysqld-exporter", "prometheus-mysqld-exporter")
    primary = new_ibb_primary(captures["11.8/domains"], "--tls", "off")
    source = f"{USER}:{PASSWORD}@({primary.host}:{primary.port})/"
    flags = ["--web.listen-address=127.0.0.1:0", *(f"--collect.{one}" for one in COLLECTED)]
    with subprocess.Popen(
        [name, *flags], env={**os.environ, "DATA_SOURCE_NAME": source}, stderr=subprocess.PIPE, text=True
    ) as exporter:
        try:
            lines = iter(exporter.stderr.readline, "")
            address = next(found[1] for line in lines if (found := re.search(r"istening on.*address=(\S+:\d+)", line)))
            with urllib.request.urlopen(f"http://{address}/metrics", timeout=120) as answer:
                metrics = dict(line.rsplit(" ", 1) for line in answer.read().decode().splitlines() if line[0] != "#")
        finally:
            exporter.terminate()
        said = [line for line in lines if "level=error" in line]
    assert said == []
    assert metrics["mysql_up"] == "1"
    assert int(metrics["mysql_binlog_files"]) > 1
    assert int(metrics["mysql_global_status_threads_connected"]) > 0

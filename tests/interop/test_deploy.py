"""What an operator copies from deploy/ is accepted by the programs that read it."""

import subprocess
from pathlib import Path

import pytest
from lanes.containers import found_program

from ibbmaster.primary.server.figures import KINDS

DEPLOY = Path(__file__).parents[2] / "deploy"
pytestmark = pytest.mark.interop


def program(name, package):
    found = found_program(name)
    if found is None:
        pytest.skip(f"no {name}: `apt-get install {package}`, or `sh .ci/prepare tests`")
    return found


def test_prometheus_takes_the_alert_rules_and_they_fire_when_they_should():
    done = subprocess.run(
        [program("promtool", "prometheus"), "test", "rules", "alerts_test.yml"],
        cwd=DEPLOY,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_prometheus_takes_its_configuration_of_the_compose_file():
    done = subprocess.run(
        [program("promtool", "prometheus"), "check", "config", "prometheus.yml"],
        cwd=DEPLOY,
        capture_output=True,
        text=True,
    )
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

"""Containers as an operator starts them: the image of Containerfile, with nothing to write and no rights, all of
docker-compose.yml, and one that systemd boots, with deploy/ibbmaster.service. No registry of images is needed, see
`lanes.containers`; where containers cannot run, the reason is that of a skipped test.
"""

import json
import re
import shutil
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pymysql
import pytest
from lanes.containers import IMAGE, MARIADB, PROMETHEUS, ContainersMissingError, Podman
from lanes.primary import PASSWORD, USER

from ibbmaster.testkit.mariadb_server import free_port

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800), pytest.mark.xdist_group("containers")]
PATIENCE_S = 300.0
GRACE_S = 120  # ends what hangs
SERVICES = ("ibbmaster", "primary", "replica", "prometheus")
LAST = "0-1-93"  # of the log that is served unless one says otherwise


@pytest.fixture(scope="module")
def podman(tmp_path_factory) -> Iterator[Podman]:
    place = tmp_path_factory.mktemp("podman")
    try:
        made = Podman(place)
    except ContainersMissingError as error:
        pytest.skip(str(error))
    yield made
    made.close()


@pytest.fixture(scope="module")
def image(podman) -> str:
    return podman.build_image()


@pytest.fixture
def container(podman, image, captures) -> Iterator[SimpleNamespace]:
    """Serves a capture, read-only and without capabilities."""
    capture = captures["11.8/domains"]
    limits = ["--read-only", "--cap-drop=all", "--security-opt=no-new-privileges", "--network", "host"]
    account = ["-e", f"IBBMASTER_USER={USER}", "-e", f"IBBMASTER_PASSWORD={PASSWORD}"]
    log = ["-v", f"{ROOT}/fixtures/classic/11.8/domains:/log:ro"]
    serve = ["serve", "/log", "--listen", "127.0.0.1:0", "--tls", "off"]
    name = podman.run("run", "-d", *limits, *account, *log, image, *serve).strip()
    try:
        port = port_of(podman, name)
        yield SimpleNamespace(host="127.0.0.1", port=port, user=USER, password=PASSWORD, name=name, capture=capture)
    finally:
        podman.run("rm", "-f", name)


def port_of(podman: Podman, name: str) -> int:
    """Where a container listens, once it does."""
    while (found := re.search(r"^serving /log on \S+:(\d+) ", podman.run("logs", name), re.MULTILINE)) is None:
        assert state_of(podman, name)["Running"], podman.run("logs", name)
    return int(found[1])


def state_of(podman: Podman, name: str) -> dict:
    [found] = json.loads(podman.run("inspect", name))
    return found["State"]


def test_a_replica_follows_the_image_which_stops_in_order(podman, container, new_replica):
    replica = new_replica("11.8")
    replica.follow(container)
    replica.expect_end(container.capture)

    assert podman.run("exec", container.name, "id", "-u").strip() == "65532"
    kernels = "from ibbmaster.kernel.loading import load; print(load() is not None)"
    assert podman.run("exec", container.name, "python3", "-c", kernels).strip() == "True"
    podman.run("stop", "-t", GRACE_S, container.name)
    assert state_of(podman, container.name)["ExitCode"] == 0


def test_the_image_says_that_it_is_well(podman, image):
    (found,) = json.loads(podman.run("inspect", image))
    assert found["User"] == "65532:65532"
    assert found["Config"]["Entrypoint"] == ["ibbmaster"]
    limits = ["--read-only", "--cap-drop=all", "--network=none"]
    given = ["-e", f"IBBMASTER_PASSWORD={PASSWORD}", "-v", f"{ROOT}/fixtures/ibb/xa-and-ddl:/log:ro"]
    name = podman.run("run", "-d", *limits, *given, image).strip()
    try:
        assert port_of(podman, name) == 3306
        podman.run("healthcheck", "run", name)
    finally:
        podman.run("rm", "-f", name)


def wait(look: Callable[[], object], expected: object) -> None:
    """Until what is looked at is as expected."""
    end = time.monotonic() + PATIENCE_S
    while (found := look()) != expected:
        assert time.monotonic() < end, f"{found!r} instead of {expected!r}"


class Compose:
    """All services of docker-compose.yml; they end with the block."""

    def __init__(self, podman: Podman, **variables: str) -> None:
        self.port = free_port()
        ports = {name: str(free_port()) for name in ("IBBMASTER_PORT", "PRIMARY_PORT", "REPLICA_PORT")}
        images = {"IBBMASTER_IMAGE": IMAGE, "MARIADB_IMAGE": MARIADB, "PROMETHEUS_IMAGE": PROMETHEUS}
        self._variables = {**ports, **images, "PROMETHEUS_PORT": str(self.port), **variables}
        self._podman = podman

    def command(self, *arguments: object) -> str:
        done = self._podman.ended("-p", "ibbtest", *arguments, program="podman-compose", **self._variables)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
        return done.stdout

    def __enter__(self) -> "Compose":
        self.command("up", "-d", "--no-build")
        return self

    def __exit__(self, kind, *_) -> None:
        if kind is not None:
            for service in SERVICES:
                print(self._podman.ended("logs", "--tail", "40", self.name(service)))
        self.command("down", "--volumes", "-t", GRACE_S)

    def name(self, service: str) -> str:
        return f"ibbtest_{service}_1"

    def sql(self, service: str, statement: str) -> str:
        asked = ("exec", self.name(service), "mariadb", "-uroot", "-proot", "-N", "-B", "-e", statement)
        done = self._podman.ended(*asked)
        return done.stdout.strip() if done.returncode == 0 else done.stderr

    def is_well(self, service: str) -> bool:
        return self._podman.ended("healthcheck", "run", self.name(service)).returncode == 0

    def figures(self, query: str) -> list[str]:
        """What Prometheus answers."""
        return [one["value"][1] for one in self.asked(f"query?query={urllib.parse.quote(query)}")["result"]]

    def asked(self, path: str) -> dict:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/api/v1/{path}", timeout=60) as answer:
            return json.load(answer)["data"]

    def stop(self) -> dict[str, int]:
        """How each has ended, within its grace."""
        self.command("stop", "-t", GRACE_S)
        return {service: state_of(self._podman, self.name(service))["ExitCode"] for service in SERVICES}


@pytest.fixture(scope="module")
def compose(podman, image):
    if shutil.which("podman-compose") is None:
        pytest.skip("no podman-compose of Debian: sh .ci/prepare tests")
    podman.expect_networks()
    podman.build_others()
    return lambda **variables: Compose(podman, **variables)


def test_all_of_the_compose_file_runs_is_watched_and_stops_in_order(compose):
    with compose() as running:
        for service in SERVICES:
            wait(lambda service=service: running.is_well(service), True)
        wait(lambda: running.sql("replica", "SELECT @@gtid_slave_pos"), LAST)
        wait(lambda: running.figures("ibbmaster_replica_lag_groups"), ["0"])
        assert running.figures("ibbmaster_replica_connected") == ["1"]
        [group] = running.asked("rules")["groups"]
        assert [rule["health"] for rule in group["rules"]] == ["ok"] * 4
        assert running.stop() == dict.fromkeys(SERVICES, 0)


def test_the_replica_of_the_compose_file_follows_the_real_primary_as_well(compose):
    with compose(FOLLOW="primary") as running:
        wait(lambda: running.is_well("primary"), True)
        assert running.sql("primary", "CREATE DATABASE shop") == ""
        wait(lambda: running.sql("replica", "SELECT @@gtid_slave_pos"), "0-1-1")
        assert running.sql("replica", "SHOW DATABASES LIKE 'shop'") == "shop"


#: Without these systemd leaves out the mounts of a unit, and says nothing.
RIGHTS = ["--cap-add=SYS_ADMIN", "--security-opt=seccomp=unconfined", "--security-opt=unmask=ALL"]
UNIT = ROOT / "deploy/ibbmaster.service"
WATCHDOG_S = 10  # a busy machine may keep a process waiting for some
MOUNTS = {"ro /", "ro /home", "ro /proc/sys", "rw /tmp", "rw /var/lib/ibbmaster", "rw /var/cache/ibbmaster"}
EXPOSURE_MAX = 15  # in tenths, by systemd-analyze
OPTIONS = """
[serve]
directory = "/var/lib/ibbmaster/log"
from = "mysql://{source}"
listen = "127.0.0.1:0"
user = "operator"
password = "old"
grant = "ALL"
tls = "off"
"""


class Booted:
    """A machine that systemd runs, with what the unit asks for."""

    def __init__(self, podman: Podman, image: str) -> None:
        self._podman = podman
        boot = ["--systemd=always", "--user=0", "--network=host", "--entrypoint=/lib/systemd/systemd"]
        unit = ["-v", f"{UNIT}:/etc/systemd/system/{UNIT.name}:ro"]
        done = podman.ended("run", "-d", *boot, *RIGHTS, *unit, image)
        if done.returncode:
            pytest.skip(f"no container for systemd: {done.stderr[-600:]}")
        self._name = done.stdout.strip()

    def __enter__(self) -> "Booted":
        end = time.monotonic() + PATIENCE_S
        up = ("running", "degraded")  # without what units of Debian want that is not here
        asked = ("exec", self._name, "systemctl", "is-system-running")
        while (said := self._podman.ended(*asked)).stdout.strip() not in up:
            if time.monotonic() > end or not state_of(self._podman, self._name)["Running"]:
                self.__exit__()
                pytest.skip(f"systemd does not run in a container here: {said.stdout}{said.stderr}")
        return self

    def __exit__(self, *_) -> None:
        print(self._podman.ended("exec", self._name, "journalctl", "--no-pager", "-u", "ibbmaster").stdout)
        self._podman.run("rm", "-f", "-t", "0", self._name)

    def shell(self, *lines: str) -> str:
        return self._podman.run("exec", self._name, "timeout", PATIENCE_S, "sh", "-euc", "\n".join(lines)).strip()

    def wait(self, condition: str) -> None:
        self.shell(f"until {condition}; do sleep .2; done")

    def told(self, name: str) -> str:
        """By systemd of the unit."""
        return self.shell(f"systemctl show -P {name} ibbmaster")

    def answered(self, password: str, statement: str) -> str:
        """By the service, wherever it listens after its last start."""
        self.wait("journalctl -o cat _PID=$(systemctl show -P MainPID ibbmaster) | grep -q ^serving")
        said = self.shell("journalctl -o cat _PID=$(systemctl show -P MainPID ibbmaster)")
        port = int(re.search(r"^serving \S+ on \S+:(\d+) ", said, re.MULTILINE)[1])
        account = {"user": "operator", "password": password, "host": "127.0.0.1", "port": port}
        with pymysql.connect(**account) as connection, connection.cursor() as cursor:
            cursor.execute(statement)
            return str(cursor.fetchone()[0]) if cursor.description else ""


@pytest.fixture
def booted(podman, image, container) -> Iterator[Booted]:
    """With the unit as installed by what it says, for a relay of a capture; it has not been started."""
    unit = UNIT.read_text()
    source = f"{USER}:{urllib.parse.quote(PASSWORD)}@{container.host}:{container.port}"
    with Booted(podman, image) as machine:
        machine.shell(
            "ln -s $(command -v ibbmaster) /usr/bin/ibbmaster",
            re.search(r"`(adduser [^`]+)`", unit)[1],
            f"echo '{OPTIONS.format(source=source)}' >/etc/ibbmaster.toml",
            "chown root:ibbmaster /etc/ibbmaster.toml; chmod 0640 /etc/ibbmaster.toml",
            "mkdir -p /run/systemd/system/ibbmaster.service.d",
            f"printf '[Service]\nWatchdogSec={WATCHDOG_S}\n' >/run/systemd/system/ibbmaster.service.d/sooner.conf",
            "systemctl daemon-reload",
        )
        yield machine


def test_systemd_starts_reloads_watches_and_ends_the_unit_with_all_its_limits(booted, container):
    booted.shell("systemctl start ibbmaster")

    assert booted.told("ActiveState") == "active"
    status = booted.shell(f"cat /proc/{booted.told('MainPID')}/status")
    assert re.findall(r"^(?:CapBnd|NoNewPrivs|Seccomp):\t(\w+)$", status, re.MULTILINE) == ["0" * 16, "1", "2"]
    mounts = booted.shell(f"awk '{{ print substr($6, 1, 2), $5 }}' /proc/{booted.told('MainPID')}/mountinfo")
    assert {*mounts.splitlines()} >= MOUNTS
    booted.shell(f"systemd-analyze security --threshold={EXPOSURE_MAX} ibbmaster")

    def position(password: str) -> set[str]:
        return {*booted.answered(password, "SELECT @@gtid_binlog_pos").split(",")}

    last = {*container.capture.last_position.split(",")}
    wait(lambda: position("old"), last)
    assert booted.answered("old", "SHOW TABLES IN dom_0") == "t"

    booted.shell('sed -i \'s/"old"/"new"/\' /etc/ibbmaster.toml', "systemctl reload ibbmaster")
    booted.wait("journalctl -o cat -u ibbmaster | grep -q 'read again'")
    assert position("new") == last
    with pytest.raises(pymysql.err.OperationalError, match="Access denied"):
        position("old")

    started = int(booted.told("ExecMainStartTimestampMonotonic"))
    watched_for = f"$(systemctl show -P WatchdogTimestampMonotonic ibbmaster) -gt {started + 2_000_000 * WATCHDOG_S}"
    booted.wait(f"[ {watched_for} ]")
    assert booted.told("NRestarts") == "0"
    for count, signal in enumerate(("STOP", "KILL"), 1):  # one ends by the watchdog
        booted.shell(f"systemctl kill --kill-who=main -s {signal} ibbmaster")
        booted.wait(f"[ $(systemctl show -P NRestarts ibbmaster) -ge {count} ] && systemctl -q is-active ibbmaster")
        assert position("new") == last

    booted.shell("systemctl stop ibbmaster")
    assert (booted.told("Result"), booted.told("ExecMainStatus")) == ("success", "0")
    booted.shell("systemctl start ibbmaster")
    assert position("new") == last
    booted.answered("new", "SHUTDOWN")
    booted.wait("! systemctl -q is-active ibbmaster")
    booted.wait("[ $(systemctl show -P ActiveState ibbmaster) != deactivating ]")
    assert booted.told("SubState") == "dead"

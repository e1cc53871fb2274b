"""Containers as an operator starts them: the image of Containerfile, with nothing to write and no rights, and all of
docker-compose.yml. No registry of images is needed, see `lanes.containers`; where containers cannot run, the reason is
that of a skipped test.
"""

import json
import re
import shutil
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

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

    def wait(self, look, expected) -> None:
        """Until what is looked at is as expected."""
        end = time.monotonic() + PATIENCE_S
        while (found := look()) != expected:
            assert time.monotonic() < end, f"{found!r} instead of {expected!r}"

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
            running.wait(lambda service=service: running.is_well(service), True)
        running.wait(lambda: running.sql("replica", "SELECT @@gtid_slave_pos"), LAST)
        running.wait(lambda: running.figures("ibbmaster_replica_lag_groups"), ["0"])
        assert running.figures("ibbmaster_replica_connected") == ["1"]
        [group] = running.asked("rules")["groups"]
        assert [rule["health"] for rule in group["rules"]] == ["ok"] * 4
        assert running.stop() == dict.fromkeys(SERVICES, 0)


def test_the_replica_of_the_compose_file_follows_the_real_primary_as_well(compose):
    with compose(FOLLOW="primary") as running:
        running.wait(lambda: running.is_well("primary"), True)
        assert running.sql("primary", "CREATE DATABASE shop") == ""
        running.wait(lambda: running.sql("replica", "SELECT @@gtid_slave_pos"), "0-1-1")
        assert running.sql("replica", "SHOW DATABASES LIKE 'shop'") == "shop"

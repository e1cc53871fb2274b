"""A cluster: a master and two workers, processes of their own, one of which dies; their Python may lack the package."""

from __future__ import annotations

import json
import os
import shutil
import site
import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import ExitStack
from operator import itemgetter
from pathlib import Path

import pytest
from lanes.exports import expect_cleaned_after_kills, expect_whole

import ibbmaster
from ibbmaster.lake.export_files import RUN_MARK
from tests.spark_server import LOOKS_AGAIN_SECONDS, SparkServer

pytestmark = pytest.mark.slow

WORKS_WITHIN_SECONDS = 600  # ends what hangs; a machine may be busy


class Cluster:
    """A master and its workers by name."""

    def __init__(self, place: Path, closing: ExitStack) -> None:
        master = self._start(closing, place / "master", "master.Master", "--port", "0")
        self.url = master.when_it_says(r"Starting Spark master at (\S+)")
        self.workers = {
            name: self._start(
                closing, place / name, "worker.Worker", "--cores", "1", "--memory", "1g", self.url, WORKER_NAME=name
            )
            for name in ("first", "second")
        }
        for worker in self.workers.values():
            worker.when_it_says(r"(Successfully registered)")

    @staticmethod
    def _start(closing: ExitStack, log: Path, name: str, *options: str, **environment: str) -> SparkServer:
        command = ("spark-class", f"org.apache.spark.deploy.{name}", "--host", "127.0.0.1", "--webui-port", "0")
        server = SparkServer(log, *command, *options, environment={**environment, "SPARK_WORKER_DIR": f"{log}.work"})
        closing.callback(server.kill)
        return server


@pytest.fixture(scope="module")
def cluster(java: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with ExitStack() as closing:
        yield Cluster(tmp_path_factory.mktemp("cluster"), closing)


@pytest.fixture
def python_without_us(tmp_path: Path) -> Path:
    """A Python that has the packages of this one, but for ibbmaster."""
    place = tmp_path / "python"
    venv.create(place, with_pip=False)
    packages = next(place.glob("lib/python*/site-packages"))
    for package in Path(site.getsitepackages()[0]).iterdir():
        if "ibb" not in package.name and package.suffix != ".pth":
            (packages / package.name).symlink_to(package)
    return place / "bin" / "python"


COMES_AND_GOES = {  # workers, as they are needed
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.enabled": "true",
}


def test_workers_that_come_and_go_unpack_a_wheel_where_their_python_lacks_the_package(
    cluster, python_without_us, wheel, fixtures, tmp_path
):
    log = shutil.copytree(fixtures / "ibb/xa-and-ddl", tmp_path / "log")
    settings = [word for one in COMES_AND_GOES.items() for word in ("--conf", "=".join(one))]
    cluster_options = ["--master", cluster.url, *settings, "--archives", wheel]

    def lake(*job):
        done = subprocess.run(
            [sys.executable, "-m", "ibbmaster", "lake", *job, "--json", *cluster_options],
            cwd=tmp_path,
            env={**os.environ, "PYSPARK_PYTHON": str(python_without_us)},
            capture_output=True,
            text=True,
            check=False,
            timeout=WORKS_WITHIN_SECONDS,
        )
        assert done.returncode == 0, done.stderr
        return list(map(json.loads, done.stdout.splitlines()))

    with ibbmaster.open(log) as opened:
        expected = opened.snapshot("shop.parent").to_pylist()
    found = lake("snapshot", "log", "shop.parent")
    assert sorted(found, key=itemgetter("id")) == sorted(expected, key=itemgetter("id"))
    (said,) = lake("export", "log", "--to", "tables")
    assert said["groups"] == 93
    expect_whole(log, str(tmp_path / "tables"))


def test_an_export_whose_workers_die_in_the_middle_has_each_row_once(
    cluster, new_exports, grow, object_store, store_settings, tmp_path
):
    of_workers = {f"spark.executorEnv.{name}": value for name, value in store_settings.items()}
    exports = new_exports(cluster.url, COMES_AND_GOES | of_workers)
    killed = []

    def kill_workers(request):
        """Where one puts a file, which nobody will count."""
        if request.method == "PUT" and RUN_MARK in request.path and not killed:
            killed.append(request.path)
            assert sum(worker.kill_started() for worker in cluster.workers.values()) > 1  # Java, and its Python

    object_store.fault = kill_workers
    targets = [object_store.new_place(), str(tmp_path / "tables")]
    for count in (3, 9):
        log = grow(count)
        for target in targets:
            said = exports.run(log, target, "delta")
            assert said["groups"] == {3: 85, 9: 70}[count], said
    assert killed
    expect_whole(log, *targets, environment=store_settings)


def test_an_export_by_a_cluster_whose_driver_is_killed_at_any_step_is_cleaned_by_the_next(
    cluster, new_exports, grow, tmp_path, request
):
    """In front of a change of a file; `--stream-kills 64` kills 5 times."""
    kills = request.config.getoption("--stream-kills") // 12
    expect_cleaned_after_kills(lambda: new_exports(cluster.url), grow(9), tmp_path, kills)


def test_a_worker_that_dies_takes_no_row_of_traditional_files_along(cluster, fixtures, tmp_path):
    log = "classic/11.8/domains"
    program = Path(__file__).with_name("on_a_cluster.py")
    query = subprocess.Popen(
        [sys.executable, program, cluster.url, log, tmp_path],
        cwd=fixtures,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        is_seen = [tmp_path / f"{name} works" for name in cluster.workers]
        while not all(path.exists() for path in is_seen) and query.poll() is None:
            try:
                query.wait(LOOKS_AGAIN_SECONDS)
            except subprocess.TimeoutExpired:
                continue
        cluster.workers["first"].kill()
        printed, errors = query.communicate(timeout=WORKS_WITHIN_SECONDS)
    finally:
        query.kill()
    assert query.returncode == 0, errors[-3000:]
    found = json.loads(printed.splitlines()[-1])
    with ibbmaster.open(fixtures / log) as opened:
        table = opened.to_arrow()
    expected = zip(table["_gtid"].to_pylist(), table["_change_no"].to_pylist(), strict=True)
    assert sorted(map(tuple, found["rows"])) == sorted(expected)
    assert found["tasks"] > 2

"""Servers of Spark: one of Spark Connect, whose client has neither Java nor a context, and a cluster.

The cluster has a master and two workers, processes of their own, one of which dies; their Python may lack the package.
"""

import json
import os
import shutil
import site
import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from lanes.primary import run_program
from lanes.waiting import wait_until

import ibbmaster
from tests.spark_server import SparkServer

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
WORKS_WITHIN_SECONDS = 600  # ends what hangs; a machine may be busy


@pytest.fixture
def server(java, tmp_path_factory) -> Iterator[str]:
    place = tmp_path_factory.mktemp("server")
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.warehouse.dir": str(place / "tables"),
    }
    words = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    named = ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "--master", "local[2]"]
    python = {"PYSPARK_PYTHON": sys.executable, "SPARK_DAEMON_MEMORY": "640m"}
    one = SparkServer(place / "connect", "spark-submit", *named, *words, "spark-internal", environment=python)
    try:
        yield "sc://" + one.when_it_says(r"Spark Connect server started at: (\S+)")
    finally:
        one.kill()


def test_a_client_without_java_reads_writes_streams_and_verifies(server, fixtures, tmp_path):
    program = Path(__file__).with_name("over_connect.py")
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    environment |= {"PATH": "/nowhere", "PYTHONPATH": str(ROOT)}
    printed = run_program([sys.executable, program, server, fixtures / "ibb/xa-and-ddl", tmp_path], env=environment)
    assert json.loads(printed.splitlines()[-1]) == {
        "is_connected": True,
        "changes": 57,
        "table": 4,
        "written": 2,
        "tables": {"shop.parent": 57, "shop.parts": 3},
        "batches": {"shop.parent": [46, 11], "shop.parts": [3]},
        "stream": 57,
    }


class Cluster:
    def __init__(self, place: Path, closing: ExitStack) -> None:
        master = self._start(closing, place / "master", "master.Master", "--port", "0")
        self.url = master.when_it_says(r"Starting Spark master at (\S+)")
        self.workers = {
            name: self._start(closing, place / name, "worker.Worker", "--cores", "1", self.url, WORKER_NAME=name)
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
def cluster(java, tmp_path_factory) -> Iterator[Cluster]:
    with ExitStack() as closing:
        yield Cluster(tmp_path_factory.mktemp("cluster"), closing)


@pytest.fixture
def python_without_us(tmp_path) -> Path:
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
READS = """
import json, sys
from tests.spark_session import open_session
session = open_session(sys.argv[1], name="wheel", settings=json.loads(sys.argv[3]))
changes = session.read.format("ibb").option("table", "shop.parent").load(sys.argv[2])
print(json.dumps([list(row) for row in changes.select("_gtid", "_change_no", "id", "name").collect()]))
session.stop()
"""


def test_workers_that_come_and_go_unpack_a_wheel_where_their_python_lacks_the_package(
    cluster, python_without_us, wheel, fixtures, tmp_path
):
    """By the settings of docs/archive.md."""
    archive, unpacked = shutil.copy(wheel, tmp_path / "ibbmaster.zip"), tmp_path / "ibbmaster-code"
    shutil.unpack_archive(archive, unpacked)
    shipped = {"spark.archives": f"{archive}#ibbmaster-code", "spark.executorEnv.PYTHONPATH": "ibbmaster-code"}
    log = fixtures / "ibb/xa-and-ddl"
    command = [sys.executable, "-c", READS, cluster.url, log, json.dumps({**COMES_AND_GOES, **shipped})]
    pythons = {"PYSPARK_PYTHON": str(python_without_us), "PYTHONPATH": os.pathsep.join([str(unpacked), str(ROOT)])}
    printed = run_program(command, env=os.environ | pythons)
    with ibbmaster.open(log) as opened:
        expected = opened.to_arrow(table="shop.parent").select(["_gtid", "_change_no", "id", "name"]).to_pylist()
    assert sorted(json.loads(printed.splitlines()[-1])) == sorted([*row.values()] for row in expected)


def test_a_worker_that_dies_takes_no_row_of_traditional_files_along(cluster, fixtures, tmp_path):
    log = "classic/11.8/domains"
    program = Path(__file__).with_name("on_a_cluster.py")
    query = subprocess.Popen(
        [sys.executable, program, cluster.url, log, tmp_path],
        cwd=fixtures,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        is_seen = [tmp_path / f"{name} works" for name in cluster.workers]
        wait_until(lambda: all(path.exists() for path in is_seen) or query.poll() is not None)
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

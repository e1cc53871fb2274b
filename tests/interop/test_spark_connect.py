"""Spark Connect: a server elsewhere runs the queries, and the client has neither Java nor a context."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.spark_server import SparkServer

ROOT = Path(__file__).parents[2]
WORKS_WITHIN_SECONDS = 600  # ends what hangs; a machine may be busy


@pytest.fixture(scope="module")
def server(java, tmp_path_factory) -> Iterator[str]:
    """Its URL."""
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
    python = {"PYSPARK_PYTHON": sys.executable, "SPARK_DAEMON_MEMORY": "1g"}
    one = SparkServer(place / "connect", "spark-submit", *named, *words, "spark-internal", environment=python)
    try:
        yield "sc://" + one.when_it_says(r"Spark Connect server started at: (\S+)")
    finally:
        one.kill()


@pytest.mark.slow
def test_a_client_without_java_reads_writes_streams_and_verifies(server, fixtures, tmp_path):
    program = Path(__file__).with_name("over_connect.py")
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    done = subprocess.run(
        [sys.executable, program, server, fixtures / "ibb/xa-and-ddl", tmp_path],
        env={**environment, "PATH": "/nowhere", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=WORKS_WITHIN_SECONDS,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout.splitlines()[-1]) == {
        "is_connected": True,
        "changes": 57,
        "table": 4,
        "written": 2,
        "tables": {"shop.parent": 57, "shop.parts": 3},
        "batches": {"shop.parent": [46, 11], "shop.parts": [3]},
        "stream": 57,
    }

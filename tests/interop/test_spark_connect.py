"""Spark Connect: a server elsewhere runs the queries, and the client has neither Java nor a context."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from lanes.exports import Exports, expect_cleaned_after_kills, expect_whole

from ibbmaster.disk.object_store import client_of
from ibbmaster.errors import ConfigurationError
from ibbmaster.lake.placing import WRITER
from ibbmaster.lake.session import open_session
from tests.object_stores import BUCKET, ObjectStore, Request
from tests.spark_server import SparkServer

WORKS_WITHIN_SECONDS = 600  # ends what hangs; a machine may be busy


@pytest.fixture(scope="module")
def server(java: None, store_settings: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
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
    python = {"PYSPARK_PYTHON": sys.executable, "SPARK_DAEMON_MEMORY": "1g", **store_settings}
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
        env={**environment, "PATH": "/nowhere"},
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


@pytest.mark.parametrize("url", ["sc://127.0.0.1:1", "sc://", "sc://127.0.0.1:port"])
def test_a_server_that_is_not_there_is_one_line_at_once(url):
    with pytest.raises(ConfigurationError, match=rf"^--master {url}: .*; expected sc://HOST:PORT$"):
        open_session(url, name="none")


@pytest.mark.slow
def test_exports_of_a_client_without_java_go_on_in_directories_and_in_stores_of_each_kind(
    server: str,
    new_exports: Callable[..., Exports],
    store_settings: dict[str, str],
    grow: Callable[[int], Path],
    tmp_path: Path,
) -> None:
    kinds = ["s3", "gs"] + ["az"] * ("AZURE_STORAGE_ENDPOINT" in store_settings)
    targets = [str(tmp_path / "tables"), *(f"{kind}://{BUCKET}/connected/{kind}" for kind in kinds)]
    exports = new_exports(server)
    for count, form, groups in ((3, "parquet", 85), (9, "delta", 70)):
        log = grow(count)
        for target in targets:
            said = exports.run(log, target, form)
            assert said is not None
            assert said.get("groups") == groups, said
    expect_whole(log, *targets, environment=store_settings)


def is_refused(exports: Exports, log: Path, target: str, reason: str) -> bool:
    said = exports.run(log, target, "delta")
    assert said is not None
    assert re.search(reason, said["error"]), said
    return "\n" not in said["error"]


@pytest.mark.slow
def test_an_export_that_is_refused_is_one_line_and_changes_nothing(
    server: str,
    new_exports: Callable[..., Exports],
    fixtures: Path,
    grow: Callable[[int], Path],
    object_store: ObjectStore,
    tmp_path: Path,
) -> None:
    exports, log = new_exports(server), shutil.copytree(fixtures / "ibb/xa-and-ddl", tmp_path / "xa")
    url, directory = object_store.new_place(), tmp_path / "tables"

    def contents() -> list[tuple[object, ...]]:
        found = [(path, path.stat().st_mtime_ns) for path in directory.rglob("*")]
        return sorted(found) + sorted((one.name, one.version) for one in client_of(url).walk())

    for target in (url, str(directory)):
        exports.run(log, target)
    before = contents()
    assert len(before) > 20
    for target in (url, str(directory)):
        assert is_refused(exports, grow(9), target, r"^position \[0-1-93\]: this binlog does not hold 0-1-93$")
    assert contents() == before
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "own").touch()
    assert is_refused(exports, log, str(tmp_path / "mine"), "holds own, and no export: give an empty directory$")
    assert is_refused(exports, log, "s3://nowhere/x", "^s3://nowhere/x: there is no such bucket$")
    new = object_store.new_place()
    refusal = "the object store refuses access: credentials or rights are missing$"
    object_store.fault = lambda asked: 403 if asked.path.endswith(".parquet") else None  # what workers put
    assert is_refused(exports, log, new, rf"^{new}/\S+\.parquet: {refusal}")
    object_store.fault = lambda asked: 403
    assert is_refused(exports, log, new, rf"^{new}\S*: {refusal}")
    object_store.fault = lambda asked: None
    assert list(client_of(new).walk()) == []
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == ["log", "mine", "tables", "xa"]
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["own"]


@pytest.mark.slow
def test_an_export_into_a_directory_that_is_killed_at_any_step_is_cleaned_by_the_next(
    server: str,
    new_exports: Callable[..., Exports],
    grow: Callable[[int], Path],
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    """In front of a change of a file; `--stream-kills 64` kills 16 times."""
    kills = request.config.getoption("--stream-kills") // 4
    expect_cleaned_after_kills(lambda: new_exports(server), grow(9), tmp_path, kills)


@pytest.mark.slow
def test_an_export_into_a_store_that_is_killed_at_any_request_says_what_to_remove_and_goes_on(
    server: str,
    new_exports: Callable[..., Exports],
    grow: Callable[[int], Path],
    object_store: ObjectStore,
    request: pytest.FixtureRequest,
) -> None:
    """At a request that changes the store; `--stream-kills 64` kills 16 times."""
    log, exports = grow(9), new_exports(server)
    made: list[Request] = []
    step = 0

    def count(asked: Request) -> None:
        if asked.method in ("PUT", "POST", "DELETE"):
            made.append(asked)
            if len(made) == step:
                exports.end()

    object_store.fault = count
    exports.run(log, object_store.new_place(), "delta")
    steps = len(made)
    assert steps > 20
    for _ in range(request.config.getoption("--stream-kills") // 4):
        url, step = object_store.new_place(), random.randrange(1, steps + 1)
        made.clear()
        exports.run(log, url, "delta")
        print(f"killed at request {step} of {steps}: {made[step - 1].method} {made[step - 1].path}")
        step, exports = 0, new_exports(server)
        said = exports.run(log, url, "delta")
        assert said is not None
        if client_of(url).head(WRITER) is not None:
            assert said["error"].endswith(f"another job writes here, or was killed: if so, remove {url}/{WRITER}")
            client_of(url).remove(WRITER)
            exports.run(log, url, "delta")
        exports.run(log, url, "delta")  # a worker of the one that was killed may have gone on
        expect_whole(log, url)

"""What a worker says that does not see the log which the driver has planned with."""

import pickle
import shutil

import pytest

from ibbmaster.arrow.plan import find_fields, plan_tasks
from ibbmaster.arrow.reading import read_task
from ibbmaster.errors import StoreError
from ibbmaster.spark.options import parse_options


@pytest.fixture
def log(fixtures, tmp_path, monkeypatch):
    """A log under a relative path, and a way to another machine, which has none."""
    shutil.copytree(fixtures / "ibb/domains", tmp_path / "driver/log")
    (tmp_path / "worker/log").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "driver")
    monkeypatch.setattr("socket.gethostname", lambda: "node7")
    return tmp_path


def tasks_of(path, **given):
    options = parse_options({"path": path, "granularity": "groups", **given})
    return plan_tasks(options, find_fields(options))


def test_a_relative_path_is_one_of_the_driver_s_wherever_a_worker_stands(log, monkeypatch):
    tasks = tasks_of("log")
    monkeypatch.chdir(log / "worker")
    assert sum(batch.num_rows for task in tasks for batch in read_task(pickle.loads(pickle.dumps(task)))) == 155


@pytest.mark.parametrize("given", [{}, {"failOnDataLoss": "false"}], ids=["strict", "lenient"])
@pytest.mark.parametrize("is_gone", [True, False], ids=["missing", "empty"])
def test_a_log_that_a_worker_does_not_see_is_an_error_that_names_the_worker(log, given, is_gone):
    tasks = tasks_of("log", **given)
    shutil.rmtree(log / "driver/log")
    if not is_gone:
        (log / "driver/log").mkdir()
    with pytest.raises(StoreError, match=f"{log}/driver/log: not reachable from worker node7: .*same path"):
        list(read_task(tasks[0]))

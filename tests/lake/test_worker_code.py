"""A wheel for workers: only one of this version is taken, and it is known to Spark as long as the job runs."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest

from ibbmaster.errors import ConfigurationError
from ibbmaster.lake.worker_code import settings_for

CODE = "ibbmaster/__init__.py"


def archive(place: Path, *names: str) -> Path:
    with zipfile.ZipFile(place, "w") as opened:
        for name in names:
            opened.writestr(name, "")
    return place


def test_a_wheel_is_unpacked_by_workers_and_by_the_driver(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    wheel = archive(tmp_path / "ours.whl", CODE, "ibbmaster-1.2.3.dist-info/METADATA")
    with settings_for(wheel, "1.2.3") as settings:
        path, _, name = settings["spark.archives"].partition("#")
        assert path.endswith(".zip")
        assert Path(path).samefile(wheel)
        assert settings["spark.executorEnv.PYTHONPATH"] == name
        mine, _, known = os.environ["PYTHONPATH"].partition(os.pathsep)
        assert (Path(mine) / CODE).exists()
        assert known == "/elsewhere"
    assert os.environ["PYTHONPATH"] == "/elsewhere"
    assert not Path(path).exists()


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (["other/__init__.py"], f"has no {CODE}"),
        ([CODE, "ibbmaster-0.0.1.dist-info/METADATA"], "is not of version 1.2.3"),
    ],
)
def test_another_wheel_is_refused(tmp_path, names, reason):
    with (
        pytest.raises(ConfigurationError, match=reason),
        settings_for(archive(tmp_path / "other.whl", *names), "1.2.3"),
    ):
        pass


@pytest.mark.parametrize(("name", "reason"), [("none.whl", "No such file"), ("text.whl", "no wheel or other zip")])
def test_what_is_no_wheel_is_refused(tmp_path, name, reason):
    (tmp_path / "text.whl").write_text("text")
    with pytest.raises(ConfigurationError, match=reason), settings_for(tmp_path / name, "1.2.3"):
        pass

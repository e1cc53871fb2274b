"""Where the kernels cannot be had, everything goes on without them."""

from __future__ import annotations

import logging
import os
import subprocess
import sys

import pytest

from ibbmaster.kernel import loading


def run(program, **environment):
    """What a fresh process prints."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=200,
        check=True,
    )
    return done.stdout.strip() + done.stderr.strip()


PROGRAM = "import logging; logging.basicConfig(level=20); from ibbmaster.kernel import loading; print(loading.load())"


def test_they_are_there_once_they_are_loaded():
    assert loading.load() is loading.kernels() is not None


@pytest.mark.parametrize("word", ["off", "0", "NO"])
def test_the_switch_turns_them_off(word):
    assert run(PROGRAM, **{loading.SWITCH: word}) == "None"


def test_without_numba_it_is_said_how_to_get_it(tmp_path):
    (tmp_path / "numba.py").write_text("raise ImportError('not here')\n")
    said = run(PROGRAM, PYTHONPATH=str(tmp_path))
    assert said.startswith("None")
    assert "pip install ibbmaster[fast]" in said


def test_a_broken_numba_is_reported_and_survived(tmp_path):
    (tmp_path / "numba.py").write_text("class config: CACHE_DIR = ''\n")
    said = run(PROGRAM, PYTHONPATH=str(tmp_path))
    assert said.startswith("None")
    assert "going on without them" in said


def test_the_second_start_reads_compiled_code_from_the_cache(tmp_path):
    timed = "import time; t = time.monotonic(); " + PROGRAM + "; print(time.monotonic() - t)"
    environment = {"XDG_CACHE_HOME": str(tmp_path)}
    cold = float(run(timed, **environment).split("\n")[1].split("INFO")[0])
    warm = float(run(timed, **environment).split("\n")[1].split("INFO")[0])
    assert warm < cold / 2
    (directory,) = (tmp_path / "ibbmaster" / "kernels").iterdir()
    assert directory.stat().st_mode & 0o077 == 0 or (tmp_path / "ibbmaster" / "kernels").stat().st_mode & 0o077 == 0


OF_LONG_EVENTS_TOO = {"copy_strings", "decode_rows", "header_columns", "index_events"}  # these are in no buffer of ours


def test_each_kernel_is_compiled_for_one_kind_of_arguments():
    kernels = loading.load()
    assert kernels is not None
    for name in kernels.__all__:
        kernel = getattr(kernels, name)
        if hasattr(kernel, "signatures"):
            assert len(kernel.signatures) == 1 + (name in OF_LONG_EVENTS_TOO), name


def test_it_is_logged_when_they_are_ready(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(loading, "_ready", None)
    with caplog.at_level(logging.INFO):
        assert loading.load() is not None
    assert any(loading.READY in record.getMessage() for record in caplog.records)

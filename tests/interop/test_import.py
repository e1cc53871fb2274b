"""What `ibbmaster import` refuses, by the word a user needs."""

import subprocess

import pytest
from lanes.primary import ibbmaster


@pytest.mark.parametrize("version", ["10.11", "11.8"])
def test_an_encrypted_binlog_is_refused_and_nothing_is_written(version, captures, classic_files, tmp_path):
    files = [str(path) for path in classic_files(captures[f"{version}/encrypted"])]

    done = subprocess.run(
        ibbmaster("import", *files, "--to", str(tmp_path / "ibb")), capture_output=True, text=True, check=False
    )

    assert done.returncode == 2
    assert "encrypt" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "ibb").exists()

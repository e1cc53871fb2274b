import shutil
import subprocess

import pytest

from ibbmaster.facts import rows_of

ASKED = """
source "$1"
shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_shtab_ibbmaster
printf '%s\\n' "${COMPREPLY[@]}"
"""
TYPED = {
    "a command": (["v"], {"verify"}),
    "a word for a command": (["rep"], {"replay"}),
    "a command of an extension": (["score"], {"scorecard"}),
    "an option of a command": (["serve", "--pro"], {"--profile"}),
    "a choice": (["completion", ""], {"bash", "zsh", "tcsh"}),
    "an option of a job": (["lake", "snapshot", "--his"], {"--history"}),
    "a directory": (["verify", "arch"], {"archive"}),
}


@pytest.mark.parametrize(("words", "expected"), TYPED.values(), ids=TYPED)
def test_bash_completes(run, tmp_path, monkeypatch, words, expected):
    code, script, _ = run("completion", "bash")
    assert code == 0
    (tmp_path / "script").write_text(script)
    (tmp_path / "archive").mkdir()
    monkeypatch.chdir(tmp_path)
    asked = ["bash", "-c", ASKED, "bash", "./script", "ibbmaster", *words]
    found = set(subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split())
    assert found == expected


@pytest.mark.parametrize("shell", ["zsh", "tcsh"])
def test_other_shells_get_a_script_that_names_every_command(run, shell):
    code, script, _ = run("completion", shell)
    assert code == 0
    assert all(name.split()[-1] in script for name, *_ in rows_of("ibbmaster.commands.cli", "commands"))
    if shutil.which(shell):
        assert subprocess.run([shell, "-n"], input=script, text=True, check=False).returncode == 0

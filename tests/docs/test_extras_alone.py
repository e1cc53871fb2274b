"""Each extra brings what it is for: the wheel is installed with it, and nothing else, and does there what is shown."""

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from ibbmaster.user_cache import program_directory
from tests.docs.running import ALONE, ROOT, WITH_THEIR_LINE, Runner, run_document

pytestmark = pytest.mark.slow
NEEDED = re.compile(r"`pip install ([^`]+)`")
OURS = re.compile(r"'(?:\.|ibbmaster)\[([\w,]+)\]'")
#: Of no extra, and of the other ones: what they are for.
SHOWN = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", Path(__file__).with_name("extras.md").read_text(), re.M | re.S))
OF_JAVA = SHOWN.pop("spark")
INSTALLED_BY_PIP = ("zstd",)
PYTHONS = ("3.11", "3.12", "3.13", "3.14")  # what pyproject.toml promises
UNREACHABLE = re.compile(r"connection broken|Temporary failure|from versions: none", re.IGNORECASE)

RunnerOf = Callable[[Path], Runner]


@pytest.fixture
def runner_of(tmp_path, request) -> RunnerOf:
    def make(programs: Path) -> Runner:
        place = tmp_path / "shown"
        place.mkdir()
        runner = Runner(place, programs)
        request.addfinalizer(runner.close)
        return runner

    return make


@pytest.fixture
def shown(running_object_store, monkeypatch) -> Callable[[str], str]:
    def document(extra: str) -> str:
        if extra != "objects":
            return SHOWN[extra]
        for name, value in running_object_store.environment.items():
            monkeypatch.setenv(name, value)
        url = running_object_store.copy(ROOT / "fixtures" / "ibb" / "xa-and-ddl")
        return SHOWN[extra].replace("s3://logs/extras", url)

    return document


def asked(page: str) -> tuple[str, list[str]]:
    """The extras and packages that a page says it needs, before its first example."""
    lines = NEEDED.findall((ROOT / "docs" / f"{page}.md").read_text().partition("```")[0])
    extras = ",".join(extras for line in lines for extras in OURS.findall(line))
    return extras, [package for line in lines for package in OURS.sub("", line).split()]


@pytest.mark.parametrize("page", ALONE)
def test_what_a_page_says_is_needed_runs_it(page, installed, runner_of):
    """Without what starts Java, which the tests of documents run."""
    path = ROOT / "docs" / f"{page}.md"
    extras, packages = asked(page)
    assert bool(extras) == (page in WITH_THEIR_LINE)
    text = path.read_text()
    runner = runner_of(installed(extras, *packages))
    runner.leave_out("java")
    if "fixtures/" not in text:  # it is for any directory
        runner.hide_checkout()

    examples = runner.run(f"python -m doctest -o ELLIPSIS {path}")
    _, wrong = run_document(text, runner)

    assert examples == []
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("extra", SHOWN)
def test_an_extra_alone_does_what_it_is_for(extra, installed, runner_of, shown):
    _, wrong = run_document(shown(extra), runner_of(installed(extra)))

    assert not wrong, "\n".join(wrong)


def test_the_extra_of_spark_alone_starts_it(java, installed, runner_of):
    _, wrong = run_document(OF_JAVA, runner_of(installed("spark")))

    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("extra", sorted(SHOWN.keys() - {"none"}))
def test_pip_installs_an_extra(extra, wheel, runner_of, shown, tmp_path, pytestconfig):
    if extra not in INSTALLED_BY_PIP and not pytestconfig.getoption("--pip-extras"):
        pytest.skip(f"pip installs {' and '.join(INSTALLED_BY_PIP)} without --pip-extras")

    place = pip_install(f"{wheel}[{extra}]", tmp_path)
    _, wrong = run_document(shown(extra), runner_of(place / "bin"))

    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("version", PYTHONS)
def test_pip_installs_a_source_distribution_that_serves(version, runner_of, tmp_path, pytestconfig):
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    if version not in (own, PYTHONS[-1]) and not pytestconfig.getoption("--pip-extras"):
        pytest.skip(f"this is Python {own}; others but the latest are tried with --pip-extras")
    python = sys.executable if version == own else python_of(version)
    if python is None:
        pytest.skip(f"there is no Python {version} here: sh .ci/prepare tests unpacks the latest")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", tmp_path],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (source,) = tmp_path.glob("ibbmaster-*.tar.gz")

    place = pip_install(str(source), tmp_path, python)
    _, wrong = run_document(SHOWN["none"], runner_of(place / "bin"))

    assert not wrong, "\n".join(wrong)


def python_of(version: str) -> str | None:
    """A Python of that version that makes virtual environments: of pyenv, of the system, or of Debian, unpacked."""
    found = sorted(Path("~/.pyenv/versions").expanduser().glob(f"{version}.*/bin/python"))
    unpacked = program_directory() / f"python-{version}/usr/bin"
    return next(map(str, found), None) or shutil.which(f"python{version}") or shutil.which("python", path=unpacked)


def pip_install(what: str, directory: Path, python: str = sys.executable) -> Path:
    """A new virtual environment with what pip installs; without a registry of packages the test is skipped."""
    place = directory / "installed"
    subprocess.run([python, "-m", "venv", "--without-pip", place], check=True)
    command = [sys.executable, "-m", "pip", "--python", place / "bin" / "python", "install", what]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode and UNREACHABLE.search(done.stdout + done.stderr):
        pytest.skip(f"no registry of packages: {done.stderr.splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    return place


def test_every_extra_is_tried():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    of_pages = {extra for page in WITH_THEIR_LINE for extra in asked(page)[0].split(",")}

    assert of_pages | SHOWN.keys() | {"spark"} == extras.keys() - {"test"} | {"none"}

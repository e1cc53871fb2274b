"""This package as users get it: a wheel, installed alone or with what an extra brings, and nothing else.

The packages that an extra brings are those of this Python, found as pip finds them: by what each says it requires.
They are linked, not copied, so an installation takes no network, some MB, and some tenths of a second.
"""

import subprocess
import sys
import venv
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
SCRIPT = "#!{python}\nimport sys\nfrom {module} import {attribute}\nsys.exit({attribute}())\n"

Install = Callable[..., Path]


@pytest.fixture(scope="session")
def wheel(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", place]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return next(place.glob("*.whl"))


@pytest.fixture(scope="session")
def unpacked(wheel, tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("unpacked")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(place)
    subprocess.run([sys.executable, "-m", "compileall", "-qq", place], check=True)  # as pip does
    return place


@pytest.fixture
def installed(unpacked, tmp_path) -> Install:
    """`installed("delta", "duckdb")`: the programs of a Python with the wheel, that extra, and more packages."""

    def install(extras: str = "", *packages: str) -> Path:
        place = tmp_path / "alone"
        venv.create(place, with_pip=False, symlinks=True)
        (site,) = place.glob("lib/python*/site-packages")
        own = Distribution.at(next(unpacked.glob("*.dist-info")))
        for path in unpacked.iterdir():
            (site / path.name).symlink_to(path)
        brought = required([*asked_of(own, extras), *packages])
        link(brought, site)
        found = [own, *brought]
        for point in (point for each in found for point in each.entry_points if point.group == "console_scripts"):
            script = place / "bin" / point.name
            python = place / "bin" / "python"
            script.write_text(SCRIPT.format(python=python, module=point.module, attribute=point.attr))
            script.chmod(0o755)
        return place / "bin"

    return install


def asked_of(package: Distribution, extras: str) -> list[str]:
    """What a package requires with some extras, between commas."""
    asked = []
    for text in package.requires or ():
        marker = Requirement(text).marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras.split(","))):
            asked.append(text)
    return asked


def required(texts: Iterable[str]) -> list[Distribution]:
    """The packages that meet requirements, and those that they require."""
    found: dict[str, Distribution] = {}
    seen = set()
    waiting = list(texts)
    while waiting:
        requirement = Requirement(waiting.pop())
        key = (requirement.name.lower(), *sorted(requirement.extras))
        if key not in seen:
            seen.add(key)
            package = found[key[0]] = distribution(requirement.name)
            waiting += asked_of(package, ",".join(requirement.extras))
    return list(found.values())


def link(packages: Sequence[Distribution], site: Path) -> None:
    """Let packages of this Python be found in other `site-packages`; a directory that several share, file by file."""
    owners = Counter(top for package in packages for top in {file.parts[0] for file in package.files or ()})
    for package in packages:
        for file in package.files or ():
            top = file.parts[0]
            if top in ("..", "__pycache__"):
                continue
            shown = Path(top) if owners[top] == 1 else Path(file)
            place = site / shown
            if not place.is_symlink():
                place.parent.mkdir(parents=True, exist_ok=True)
                place.symlink_to(package.locate_file(shown))

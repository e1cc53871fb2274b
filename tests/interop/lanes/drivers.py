"""Real drivers of other languages: fetched in fixed versions and built once, into the cache of this user.

`python tests/interop/lanes/drivers.py` builds them all, as `.ci/prepare tests` does.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ibbmaster.user_cache import make_directory, program_directory

SOURCES = Path(__file__).parents[1] / "drivers"
KINDS = ("java", "debezium", "go", "go_mysql", "node", "azurite")
VERSIONS_OF = {"go_mysql": "go"}  # a kind that has no go.mod and go.sum of its own, and whose it has
BUILD_TIMEOUT_S = 600
TOOLS = {
    "java": ("java", "javac", "mvn"),
    "debezium": ("java", "javac", "mvn"),
    "go": ("go",),
    "go_mysql": ("go",),
    "node": ("node", "npm"),
    "azurite": ("node", "npm"),
}
JAVA = ("java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")  # for what lives for seconds
HEAP = {"java": "-Xmx128m", "debezium": "-Xmx300m"}
MAVEN_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"


class DriverMissingError(Exception):
    """This machine has no such driver; the text says why."""


def driver_directory(kind: str) -> Path:
    """Where a kind of drivers is built, made now if need be.

    Raises DriverMissingError: its tools are not there, or its parts cannot be fetched.
    """
    missing = [tool for tool in TOOLS[kind] if shutil.which(tool) is None]
    if missing:
        raise DriverMissingError(f"drivers of {kind}: no {', '.join(missing)} here")
    sources = sorted(path for path in (SOURCES / kind).iterdir() if path.is_file())
    if kind in VERSIONS_OF:
        sources += sorted((SOURCES / VERSIONS_OF[kind]).glob("go.*"))
    version = hashlib.sha256(b"".join(path.name.encode() + path.read_bytes() for path in sources)).hexdigest()[:12]
    target = program_directory() / f"driver-{kind}-{version}"
    if not target.exists():
        making = target.with_name(f"{target.name}.{os.getpid()}")
        make_directory(making.parent)
        making.mkdir(mode=0o700)
        try:
            for path in sources:
                shutil.copy(path, making)
            for command in _commands(kind):
                _run(command, making, kind)
            making.rename(target)
        except OSError:  # another process was faster
            if not target.exists():
                raise
        finally:
            shutil.rmtree(making, ignore_errors=True)
    return target


def driver_command(kind: str, what: str) -> list[str]:
    """The words that start a program of a kind: of java a class, of go a task, of node a driver, of azurite a store, of
    go_mysql the tests of a package.

    Without the driver the test is skipped with the reason.
    """
    try:
        directory = driver_directory(kind)
    except DriverMissingError as error:
        pytest.skip(str(error))
    match kind:
        case "java" | "debezium":
            path = os.pathsep.join((str(directory / "classes"), str(directory / "lib" / "*")))
            return [*JAVA, HEAP[kind], "-cp", path, what]
        case "go":
            return [str(directory / "driver"), what]
        case "go_mysql":
            return [str(directory / f"{what}.test")]
        case "azurite":
            return ["node", str(directory / "node_modules" / "azurite" / "dist" / "src" / what / "main.js")]
        case _:
            return ["node", str(directory / "ask.js"), what]


def _commands(kind: str) -> list[list[str]]:
    match kind:
        case "java" | "debezium":
            fetch = ["mvn", "-q", "-B", MAVEN_COPY, "-DoutputDirectory=lib"]
            programs = sorted(path.name for path in (SOURCES / kind).glob("*.java"))
            return [fetch, ["javac", "-cp", "lib/*", "-d", "classes", *programs]]
        case "go":
            return [["go", "build", "-o", "driver", "."]]
        case "go_mysql":
            fetch = ["go", "mod", "download", "github.com/go-mysql-org/go-mysql"]
            build = ["go", "-C", "module", "test", "-c", "-o", "..", "./replication", "./canal"]
            return [fetch, [sys.executable, "changed_copy.py"], build]
        case _:
            return [["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]]


def _run(command: list[str], directory: Path, kind: str) -> None:
    options = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True, "check": False}
    try:
        done = subprocess.run(command, cwd=directory, timeout=BUILD_TIMEOUT_S, **options)
    except subprocess.TimeoutExpired:
        raise DriverMissingError(f"drivers of {kind}: {command[0]} took more than {BUILD_TIMEOUT_S} s") from None
    if done.returncode:
        problem = (done.stderr or done.stdout).strip().splitlines()
        raise DriverMissingError(f"drivers of {kind}: {' '.join(command[:2])} failed: {' '.join(problem[-3:])[:300]}")


if __name__ == "__main__":
    for each in KINDS:
        try:
            print(f"drivers of {each}: {driver_directory(each)}")
        except DriverMissingError as error:
            print(f"{error}: tests that need them are skipped")

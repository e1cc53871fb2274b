"""Adapters: small programs around the libraries that are judged. How to write one: protocol/scorecard/adapters.md."""

import fcntl
import hashlib
import importlib.metadata
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ibbmaster.errors import ConfigurationError
from ibbmaster.testkit.given import naming, parsed, read, read_small_file
from ibbmaster.user_cache import make_directory, program_directory

OURS = Path(__file__).parent / "adapters"
MANIFEST = "adapter.toml"
MANIFEST_SIZE_MAX = 1 << 16
NAME = re.compile(r"[a-z0-9][a-z0-9.-]{0,63}")
BUILT = ".built"  # exists after a whole build
HERE, PYTHON = "{here}", "{python}"  # in a command
BUILD_S = 1800.0
START_S_MAX = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapter:
    """One consumer, as its adapter.toml describes it.

    Attributes:
        name: of its directory.
        package: what is fetched, with its version; `registry` from where.
        module: of a Python package: an interpreter that has `package` in exactly that version runs it without a build.
        sources: further files, relative to the directory, copied beside its own before the build.
        build: commands that run once, in a copy of the directory.
        run: the command; names of files become absolute, `{here}` is their directory.
        start: what it can begin after: a GTID position, the primary's present end, or a file and an offset.
        start_s: about how long it takes until it follows.
    """

    name: str
    directory: Path
    title: str
    package: str
    registry: str
    needs: tuple[str, ...] = ()
    module: str = ""
    sources: tuple[str, ...] = ()
    build: tuple[tuple[str, ...], ...] = ()
    run: tuple[str, ...]
    start: Literal["gtid", "now", "file"] = "gtid"
    start_s: float = 1.0


def read_adapters(*directories: Path) -> dict[str, Adapter]:
    """This project's adapters and those in further directories, by name; a later one replaces an earlier. Raises
    ConfigurationError: an adapter.toml cannot be used; the text names it."""
    found: dict[str, Adapter] = {}
    for directory in (OURS, *directories):
        if not directory.is_dir():
            raise ConfigurationError(f"{directory} is not a directory of adapters")
        manifests = sorted(directory.glob(f"*/{MANIFEST}"))
        if (directory / MANIFEST).is_file():
            manifests.append(directory / MANIFEST)
        if not manifests and directory is not OURS:
            raise ConfigurationError(f"{directory} has no adapter: expected NAME/{MANIFEST} in it")
        for manifest in manifests:
            adapter = read_adapter(manifest.parent)
            found[adapter.name] = adapter
    return dict(sorted(found.items()))


def read_adapter(directory: Path) -> Adapter:
    """The adapter in a directory. Raises ConfigurationError: its adapter.toml cannot be used."""
    manifest = directory / MANIFEST
    text = read_small_file(manifest, MANIFEST_SIZE_MAX)
    with naming(str(manifest)):
        return _adapter(directory.resolve(), parsed("TOML", tomllib.loads, text))


def _adapter(directory: Path, given: Mapping[str, Any]) -> Adapter:
    if not NAME.fullmatch(directory.name):
        raise ValueError(f"the directory's name {directory.name!r}: expected small letters, digits, dots and dashes")
    adapter: Adapter = read("", Adapter, given, name=directory.name, directory=directory)
    for key, command in [("run", adapter.run), *(("build", command) for command in adapter.build)]:
        if not command or any("\0" in word for word in command):
            raise ValueError(f"{key}: expected a command of at least one word, without zeros")
    if not 0 <= adapter.start_s <= START_S_MAX:
        raise ValueError(f"start_s {adapter.start_s!r}: expected seconds from 0 to {START_S_MAX:.0f}")
    return adapter


def build(adapter: Adapter) -> tuple[str, ...]:
    """Make an adapter ready, once on this machine; returns the command that runs it. The directory of the user's cache
    in which it is built has a hash of its files in its name. Raises ConfigurationError: it cannot be built here; the
    text says why."""
    if _is_installed(adapter):
        return _absolute(adapter.directory, (sys.executable, *adapter.run[1:]))
    missing = [program for program in adapter.needs if shutil.which(program) is None]
    if missing:
        raise ConfigurationError(f"needs {', '.join(missing)}, not found on PATH")
    if not adapter.build and not adapter.sources:
        return _absolute(adapter.directory, adapter.run)
    target = program_directory() / f"adapter-{adapter.name}-{_hash(adapter)}"
    with _locked(target.with_name(f".{target.name}.lock")):
        if not (target / BUILT).is_file():
            _build_in(adapter, target)
    return _absolute(target, adapter.run)


def _is_installed(adapter: Adapter) -> bool:
    if not adapter.module:
        return False
    name, _, version = adapter.package.rpartition(" ")
    try:
        return importlib.metadata.version(name) == version
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return False


def _build_in(adapter: Adapter, target: Path) -> None:
    if target.exists():  # an unfinished build
        shutil.rmtree(target)
    target.mkdir(mode=0o700)
    for path in _files(adapter):
        shutil.copy(path, target / path.name)
    for command in adapter.build:
        words = _absolute(target, command)
        try:
            done = subprocess.run(
                words,
                cwd=target,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=BUILD_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ConfigurationError(f"{' '.join(command)[:200]}: {error}") from None
        if done.returncode:
            said = " ".join(done.stdout.decode("utf-8", "replace").split())[-400:]
            raise ConfigurationError(f"{' '.join(command)[:200]}: exit code {done.returncode}: {said}")
    (target / BUILT).touch()


def _absolute(directory: Path, words: Sequence[str]) -> tuple[str, ...]:
    named = [word.replace(HERE, str(directory)).replace(PYTHON, sys.executable) for word in words]
    return tuple(str(directory / word) if word and (directory / word).is_file() else word for word in named)


def _files(adapter: Adapter) -> list[Path]:
    """In one flat directory."""
    own = [path for path in adapter.directory.iterdir() if path.is_file() and not path.name.startswith(".")]
    others = [adapter.directory / source for source in adapter.sources]
    missing = next((path for path in others if not path.is_file()), None)
    if missing is not None:
        raise ConfigurationError(f"sources: there is no file {missing}")
    return sorted([*others, *own], key=lambda path: path.name)


def _hash(adapter: Adapter) -> str:
    found = hashlib.sha256()
    for path in _files(adapter):
        data = path.read_bytes()
        found.update(f"{path.name}\0{len(data)}\0".encode() + data)
    return found.hexdigest()[:12]


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    make_directory(path.parent)
    with path.open("wb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield

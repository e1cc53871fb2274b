"""Real servers and clients for a test."""

import contextlib
import itertools
import os
import random
import shutil
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from lanes.azurite import Azurite
from lanes.capture import Capture, load_captures
from lanes.following import Server
from lanes.primary import IbbPrimary, Primary, ibbmaster, login_of, run_program, tool_command
from lanes.replica import Replica
from lanes.shop import BEFORE, Shop

from ibbmaster.testkit.mariadb_programs import ProgramsMissingError, find_programs
from ibbmaster.testkit.mariadb_server import REPLICA_SERVER_ID, RealPrimary, ServerTemplate
from tests.object_stores import BUCKET

LOGS = pytest.StashKey[list[tuple[str, Callable[[], str]]]]()

CAPTURES = load_captures()
VERSIONS = ("10.11", "11.8")  # each case is tried with one, which the seed draws; --interop-all: with both
FOLLOWED_IN_EVERY_RUN = {("10.11/big", "replica 10.11"), ("11.8/big-none", "replica 11.8")}
TOOL_TIMEOUT_S = 600
TOOL_ENVIRONMENT = {**os.environ, "TZ": "UTC"}


@pytest.hookimpl(tryfirst=True)  # before xdist looks for groups
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    if not config.getoption("--interop-all"):
        left = _left_to_a_longer_run([item for item in items if here in item.path.parents], config.option.seed)
        items[:] = [item for item in items if item.nodeid not in left]
        config.hook.pytest_deselected(items=list(left.values()))
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.interop)
            if "/big" in item.name:
                item.add_marker(pytest.mark.xdist_group("large"))  # one at a time: its files are in memory


def _left_to_a_longer_run(items: Iterable[pytest.Item], seed: str) -> dict[str, pytest.Item]:
    """Of cases that differ only in the version of a server, or in what `one_of` names: all but one of the seed."""
    groups: dict[tuple[object, ...], list[pytest.Item]] = defaultdict(list)
    for item in items:
        if isinstance(item, pytest.Function) and hasattr(item, "callspec"):
            spec, marker = item.callspec, item.get_closest_marker("one_of")
            drawn = {name for name, value in spec.params.items() if str(value).split(" ")[-1] in VERSIONS}
            drawn.update(marker.args if marker is not None else ())
            is_large = getattr(spec.params.get("capture"), "is_large", False)  # `served_capture` decides
            if drawn and not is_large:
                others = sorted((name, id(value)) for name, value in spec.params.items() if name not in drawn)
                groups[item.path.name, item.originalname, *others].append(item)
    kept = {random.Random(f"{seed} {group[0].nodeid}").choice(group).nodeid for group in groups.values()}
    return {item.nodeid: item for group in groups.values() for item in group if item.nodeid not in kept}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        for title, text in item.stash.get(LOGS, []):
            report.sections.append((title, text()))
    return report


@pytest.fixture(params=CAPTURES, ids=lambda capture: capture.id)
def capture(request) -> Capture:
    return request.param


@pytest.fixture(params=VERSIONS)
def version(request) -> str:
    """Each version of MariaDB; a test may take some by `parametrize("version", ...)`."""
    return request.param


@pytest.fixture
def served_capture(request, capture, client) -> Capture:
    """A capture that this run shows to this client; others are skipped with their reason."""
    if capture.is_encrypted:
        pytest.skip("encrypted: `ibbmaster convert` refuses it, as a test of its own shows")
    is_followed = request.config.getoption("--interop-all") or (capture.id, client) in FOLLOWED_IN_EVERY_RUN
    if capture.is_large and not is_followed:
        pytest.skip("large, and of a kind another client follows in every run; --interop-all has no such exceptions")
    return capture


@pytest.fixture(scope="session")
def servers_directory(memory) -> Iterator[Path]:
    """Where servers live; short, because the path of a unix socket has 107 bytes at most."""
    path = Path(tempfile.mkdtemp(prefix="ibb-", dir=memory))
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="session")
def server_numbers() -> Iterator[int]:
    return itertools.count(1)


class ClearTemplate(ServerTemplate):
    """Of servers without TLS: 11.8 makes a key at each start, which takes six times as long as all else."""

    def server_command(self, data: Path) -> list[str]:
        return [*super().server_command(data), "--skip-ssl"]


@pytest.fixture(scope="session")
def template_of() -> Callable[[str], ServerTemplate]:
    """The template of a version; skips the test if the version is not on this machine."""
    made: dict[str, ServerTemplate] = {}

    def find(version: str) -> ServerTemplate:
        if version not in made:
            try:
                made[version] = ClearTemplate.of_user(find_programs(version))
            except ProgramsMissingError as error:
                pytest.skip(str(error))
        return made[version]

    return find


@pytest.fixture(scope="session")
def server_of(template_of, servers_directory, server_numbers) -> Callable[..., Any]:
    """A server of a kind and a version in a directory of its own, not started yet."""

    def make(kind: type, version: str, *arguments: Any, **options: Any) -> Any:
        return kind(template_of(version), servers_directory / f"s{next(server_numbers)}", *arguments, **options)

    return make


@pytest.fixture
def watch_log(request) -> Callable[[str, Callable[[], str]], None]:
    logs = request.node.stash.setdefault(LOGS, [])
    return lambda title, text: logs.append((title, text))


@pytest.fixture
def started(watch_log) -> Iterator[Callable[[str, Any], Any]]:
    """Start a server, which ends with the test, and show its log if that fails."""
    with contextlib.ExitStack() as stack:

        def start(what: str, server: Any) -> Any:
            watch_log(f"log of {what}", server.log_text)
            return stack.enter_context(server)

        yield start


@pytest.fixture
def new_primary_of(server_of, started, version):
    """Start a primary that writes a binlog; the number is its server id."""

    def start(server_id: int = 1, *options: str) -> Server:
        given = (
            f"--server-id={server_id}",
            "--gtid-strict-mode=1",
            "--log-slave-updates",
            "--binlog-format=ROW",
            *options,
        )
        return started(f"server {server_id}", server_of(Server, version, [], *given))

    return start


@pytest.fixture
def new_replica(server_of, started) -> Callable[..., Replica]:
    def start(version: str, *options: str, server_id: int = REPLICA_SERVER_ID) -> Replica:
        return started(f"replica {version}", server_of(Replica, version, *options, server_id=server_id))

    return start


@pytest.fixture
def new_real_primary(server_of, classic_files, started) -> Callable[[Capture], RealPrimary]:
    """Start a real primary of the capture's version that serves the capture's own files."""

    def start(capture: Capture) -> RealPrimary:
        options = ["--binlog-row-metadata=FULL", f"--binlog-checksum={capture.facts['options']['binlog-checksum']}"]
        primary = server_of(RealPrimary, capture.version, classic_files(capture), *options)
        return started("the real primary", primary)

    return start


@pytest.fixture
def new_server(server_of, started) -> Callable[..., RealPrimary]:
    return lambda version, *options: started("the real server", server_of(RealPrimary, version, [], *options))


@pytest.fixture
def new_following(new_server) -> Callable[..., tuple[RealPrimary, RealPrimary]]:
    """Start a real primary, and another that follows it and writes a binlog, too."""

    def start(version: str, *options: str) -> tuple[RealPrimary, RealPrimary]:
        first, second = (new_server(version, *options, f"--server-id={number}") for number in (1, 2))
        second.follow_at(**login_of(first))
        return first, second

    return start


@pytest.fixture
def new_ibb_primary(ibb_directory, watch_log) -> Iterator[Callable[..., IbbPrimary]]:
    """Start `ibbmaster serve` on a directory, or on an imported capture; options are those of the command line."""
    started: list[IbbPrimary] = []

    def start(source: Capture | Path, *options: str, host: str = "127.0.0.1") -> IbbPrimary:
        directory = ibb_directory(source) if isinstance(source, Capture) else source
        primary = IbbPrimary(directory, *options, host=host)
        watch_log("log of ibbmaster serve", primary.log_text)
        started.append(primary)
        primary.start()
        return primary

    yield start
    for primary in started:
        primary.end_well()


@pytest.fixture
def primary_is_real(request) -> bool:
    """Whether --interop-primary=real checks the tests themselves in this run."""
    return request.config.getoption("--interop-primary") == "real"


@pytest.fixture
def new_primary(primary_is_real, new_ibb_primary, new_real_primary) -> Callable[..., Primary]:
    return (lambda capture, *_: new_real_primary(capture)) if primary_is_real else new_ibb_primary


@pytest.fixture(scope="session")
def classic_files(tmp_path_factory) -> Callable[[Capture], list[Path]]:
    """The binlog files of a capture, unpacked once."""
    unpacked: dict[str, list[Path]] = {}

    def unpack(capture: Capture) -> list[Path]:
        if capture.id not in unpacked:
            unpacked[capture.id] = capture.unpack(tmp_path_factory.mktemp("classic"))
        return unpacked[capture.id]

    return unpack


@pytest.fixture(scope="session")
def ibb_directory(tmp_path_factory, classic_files, memory) -> Callable[[Capture], Path]:
    """A capture as `.ibb` files, imported once by the command a user has."""
    imported: dict[str, Path] = {}

    def import_(capture: Capture) -> Path:
        if capture.id not in imported:
            target = tmp_path_factory.mktemp("ibb") / "binlog"
            if capture.is_large:
                with tempfile.TemporaryDirectory(dir=memory) as unpacked:
                    run_import(capture.unpack(Path(unpacked)), target)
            else:
                run_import(classic_files(capture), target)
            imported[capture.id] = target
        return imported[capture.id]

    return import_


@pytest.fixture(scope="session")
def import_files() -> Callable[..., None]:
    """`ibbmaster convert` of classic files into a directory of the test's own."""
    return run_import


def run_import(files: Iterable[Path], target: Path, *options: str) -> None:
    run_program(ibbmaster("convert", "--to", "ibb", *map(str, files), str(target), *options))


@pytest.fixture
def seed(request) -> int:
    """The seed of this run's random cut-offs, printed in the header and again with every failure."""
    number = request.config.getoption("--interop-seed")
    request.node.stash.setdefault(LOGS, []).append(("seed", lambda: f"--interop-seed={number}"))
    return number


@pytest.fixture
def run_tool(tmp_path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a client program of a version with a fixed time zone; skips the test if the version is not here."""

    def run(version: str, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            tool_command(version, program, *arguments),
            cwd=tmp_path,
            env=TOOL_ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="surrogateescape",
            timeout=TOOL_TIMEOUT_S,
            check=False,
        )

    return run


@pytest.fixture(scope="session")
def captures() -> dict[str, Capture]:
    """The captures by their name, as `10.11/domains`."""
    return {capture.id: capture for capture in CAPTURES}


@pytest.fixture
def shop_of(new_server, import_files, tmp_path) -> Callable[[str], Shop]:
    """A real primary of a version with a shop in it, whose binlog has no names of columns."""

    def start(version: str) -> Shop:
        real = new_server(version, "--binlog-format=ROW", "--binlog-row-metadata=NO_LOG")
        place = Shop(real, tmp_path, import_files)
        place.run(*BEFORE)
        place.bring(1)
        return place

    return start


@pytest.fixture(scope="session")
def azurite() -> Iterator[Azurite]:
    running = Azurite(BUCKET)
    yield running
    running.close()

"""Options of the whole suite, and the place the slow parts import their own modules from."""

import ctypes
import gc
import os
import random
import resource
import shutil
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from _pytest.tmpdir import tmppath_result_key

from ibbmaster.storage.disk.local import RealDisk
from tests.case_table import rows_of
from tests.machinery.importing import import_classic
from tests.machinery.memory import resident_bytes

pytest_plugins = [
    *("tests.alone", "tests.built_logs", "tests.command_line", "tests.left_behind", "tests.object_stores"),
    *("tests.quick_groups", "tests.slow_workers"),
]  # logs in memory, for the folders that read them

DATA_MAX = 12 << 30  # bytes of private memory, mapped or not, in each process of tests
GROWTH_MAX = 64 << 20  # of that, by tests, before garbage is collected
RESIDENT = pytest.StashKey[int]()  # what there was behind the last collection
LARGE_CAPTURES = ("10.11/big", "10.11/big-none", "11.8/big", "11.8/big-none")
MEMORY = Path("/dev/shm")
MEMORY_MIN = 1 << 30  # bytes that are to be free there: several tests run at a time
FIXTURES = Path(__file__).parents[1] / "fixtures"

# `lanes` (real servers and clients) is no test and no part of the package; pytest imports each test file by itself.
sys.path.insert(0, str(Path(__file__).parent / "interop"))


def pytest_addoption(parser: pytest.Parser) -> None:
    """How much is done of what could be done without an end is in `options.tsv`."""
    group = parser.getgroup("ibbmaster")
    group.addoption(
        "--interop-primary",
        choices=("ibbmaster", "real"),
        default="ibbmaster",
        help="who serves captures in tests/interop: ibbmaster, or a real MariaDB primary to check the tests themselves",
    )
    says = "follow every large capture with every client, not only one of each kind"
    group.addoption("--interop-all", action="store_true", help=says)
    says = "what random choices of each test are drawn from: a number, or `new` (default: %(default)s)"
    group.addoption("--seed", default="1", help=says)
    group.addoption("--pip-extras", action="store_true", help="let pip install every extra, not only two small ones")
    group.addoption("--record-answers", action="store_true", help="keep what real servers answer in fixtures/answers")
    group.addoption("--own-tests", choices=("some", "all"), default="some", help="which tests of consumers are run")
    group.addoption("--planted", choices=("some", "all"), default="some", help="which planted bugs must be found")
    group.addoption("--rewrite", action="store_true", help="paste real output into documents, and draw their pictures")
    for name, kind, default, says in rows_of(__file__, "options"):
        number = float if kind == "float" else int
        help_text = f"{says} (default: %(default)s)" if default else says
        group.addoption(f"--{name}", type=number, default=number(default) if default else None, help=help_text)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Two more than there are cores: four tests in ten wait for disks, Java or other servers."""
    return len(os.sched_getaffinity(0)) + 2


def pytest_configure(config: pytest.Config) -> None:
    options = config.option
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    resource.setrlimit(
        resource.RLIMIT_DATA, (DATA_MAX if hard == resource.RLIM_INFINITY else min(DATA_MAX, hard), hard)
    )
    if options.seed == "new":  # before processes are started: all have the same
        options.seed = str(random.SystemRandom().randrange(2**32))
    if options.interop_seed is None:
        options.interop_seed = random.Random(options.seed).randrange(2**32)


def pytest_report_header(config: pytest.Config) -> str:
    return f"random choices: --seed={config.option.seed} --interop-seed={config.option.interop_seed}"


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep what pytest makes of tests also under PYTHONDONTWRITEBYTECODE: half of what it takes to collect them."""
    was, sys.dont_write_bytecode = sys.dont_write_bytecode, False
    try:
        return (yield)
    finally:
        sys.dont_write_bytecode = was


@pytest.hookimpl(tryfirst=True)  # before xdist looks for groups
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--interop-all"):
        _skip_twins(items)
        left = _left_to_a_longer_run(items, config.option.seed)
        items[:] = [item for item in items if item.nodeid not in left]
        config.hook.pytest_deselected(items=list(left.values()))
    for item in items:
        if "java" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)
            item.add_marker(pytest.mark.xdist_group("java"))  # one session of Spark, whatever -n says
        elif "simulation" in item.path.parts:
            item.add_marker(pytest.mark.slow)
    items.sort(key=lambda item: (_turn(item), "spark" in getattr(item, "fixturenames", ())))


def _left_to_a_longer_run(items: list[pytest.Item], seed: str) -> dict[str, pytest.Item]:
    """Of the cases of a test that `some_of` marks: all but so many of the seed."""
    groups: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("some_of") is not None:
            groups[item.nodeid.partition("[")[0]].append(item)
    left = {item.nodeid: item for group in groups.values() for item in group}
    for test, group in groups.items():
        (count,) = group[0].get_closest_marker("some_of").args  # type: ignore[union-attr]
        for item in random.Random(f"{seed} {test}").sample(group, min(count, len(group))):
            del left[item.nodeid]
    return left


def _skip_twins(items: list[pytest.Item]) -> None:
    """Skip large captures that a test reads one after the other: they have the same rows, and are 222 MB each."""
    ids = {item.nodeid for item in items}
    for item in items:
        capture = item.nodeid.partition("[")[2].removesuffix("]")
        kept = item.nodeid.replace(capture, LARGE_CAPTURES[-1])
        if capture in LARGE_CAPTURES and item.nodeid != kept and kept in ids:
            item.add_marker(pytest.mark.skip(reason=f"as {LARGE_CAPTURES[-1]}; --interop-all has no such exceptions"))


def pytest_collection_finish(session: pytest.Session) -> None:
    """End where groups are not kept together: each process would start Spark, and the machine have no memory left."""
    if hasattr(session.config, "workerinput"):
        for item in session.items:
            if item.get_closest_marker("xdist_group") is not None and item.nodeid == _plain_id(item):
                raise pytest.UsageError("pytest-xdist does not see xdist_group with this pytest: install pytest < 9.2")
    gc.collect()
    gc.freeze()  # so much stays to the end that garbage beside it, with whole logs in it, would long be too little
    gc.collect()  # counts what is not frozen, by which the next one is begun


def _plain_id(item: pytest.Item) -> str:
    plain, at, group = item.nodeid.rpartition("@")
    return plain if at and "]" not in group else item.nodeid


def _turn(item: pytest.Item) -> int:
    """What must be done one after the other comes first, then what takes long: no core idles at the end.

    Of the first, what starts a Spark of its own comes before the session that all others share: it takes memory, too.
    """
    if item.get_closest_marker("xdist_group") is not None:
        return 0
    return 1 if item.get_closest_marker("slow") is not None else 2


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    item.stash.setdefault(tmppath_result_key, {})  # what is cleaned up after ^C looks for the result of a test
    found = yield
    if resident_bytes() > item.config.stash.get(RESIDENT, 0) + GROWTH_MAX:
        gc.collect()  # a few objects hold a disk in memory: too few for a collection of their own
        if hasattr(ctypes.CDLL(None), "malloc_trim"):
            ctypes.CDLL(None).malloc_trim(0)
        item.config.stash[RESIDENT] = resident_bytes()
    return found


def _end_at_interrupt() -> Generator[None, object, object]:
    """End the suite where ^C came out of a nursery: pytest takes a group of exceptions for a failure, and goes on."""
    try:
        return (yield)
    except BaseExceptionGroup as group:
        if group.subgroup(KeyboardInterrupt) is not None:
            raise KeyboardInterrupt from None
        raise


pytest_runtest_setup = pytest_runtest_call = pytest_runtest_teardown = pytest.hookimpl(wrapper=True)(_end_at_interrupt)


@pytest.fixture(autouse=True)
def drawn_from_the_seed(request) -> None:
    """A run is like the one before unless another seed is asked for: a change is not red for what it did not touch."""
    random.seed(f"{request.config.getoption('--seed')} {_plain_id(request.node)}")


@pytest.fixture
def alone() -> None:
    """Wait for what another test has left running: a measurement of memory would count it, too."""
    for thread in threading.enumerate():
        if thread.name == "ibbmaster-kernels":  # compiles, on the first run of a machine
            thread.join()


@pytest.fixture(scope="session")
def java() -> None:
    """What starts Spark, here or in another process, asks for this."""
    if shutil.which("java") is None:
        pytest.skip("no Java, which Spark needs")


@pytest.fixture(scope="session")
def spark(java, running_object_store, tmp_path_factory) -> Iterator[object]:
    """One Spark session for all tests: its start takes ten seconds."""
    from tests.spark_session import open_session

    # Plans of small data are interpreted sooner than compiled.
    settings = {
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }
    with pytest.MonkeyPatch.context() as patch:  # its workers see what its JVM has begun with
        for name, value in running_object_store.environment.items():
            patch.setenv(name, value)
        patch.setenv("TMPDIR", str(tmp_path_factory.mktemp("spark")))
        session = open_session("local[2, 4]", name="tests", settings=settings)
    yield session
    session.stop()


@pytest.fixture
def stream_seeds(request) -> Callable[[int], Iterator[int]]:
    """Seeds of random walks: `stream_seeds(so many in a short run)`; the last one printed is that of a failure."""

    def seeds(sample: int) -> Iterator[int]:
        first = request.config.getoption("--stream-seed")
        count = request.config.getoption("--stream-seeds")
        if first is None:
            first = random.randrange(2**32)
        for seed in range(first, first + (sample if count is None else count)):
            print(f"--stream-seed {seed} --stream-seeds 1")
            yield seed

    return seeds


@pytest.fixture
def fixtures() -> Path:
    return FIXTURES


@pytest.fixture
def grow(tmp_path) -> Callable[[int], Path]:
    """Makes a log of the first files of a capture with five domains, or adds the next ones to it."""
    directory = tmp_path / "log"
    files = sorted(path for path in (FIXTURES / "classic/11.8/domains").glob("binlog.0*") if path.suffix != ".idx")

    def grow_to(count: int) -> Path:
        directory.mkdir(exist_ok=True)
        with closing(RealDisk(directory)) as disk:
            import_classic(files[:count], disk, max_file_bytes=64 << 10, state_interval_bytes=16 << 10, append=True)
        return directory

    return grow_to


@pytest.fixture
def imported(memory_path) -> Callable[[str], Path]:
    """A capture as `.ibb` files so small that groups reach over pages, states and files: a hundred at most."""

    def make(capture: str) -> Path:
        directory = memory_path / capture.replace("/", "-")
        directory.mkdir()
        with closing(RealDisk(directory)) as disk:
            sizes = (4 << 20, 256 << 10) if "/big" in capture else (256 << 10, 16 << 10)
            import_classic(
                [FIXTURES / "classic" / capture], disk, max_file_bytes=sizes[0], state_interval_bytes=sizes[1]
            )
        return directory

    return make


@pytest.fixture(scope="session")
def memory(tmp_path_factory) -> Iterator[Path]:
    """A directory in memory for what is written again and again; one on the disk where memory has no room."""
    if not (os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > MEMORY_MIN):
        yield tmp_path_factory.mktemp("memory")
        return
    with tempfile.TemporaryDirectory(dir=MEMORY, prefix="ibbmaster-tests-") as directory:
        yield Path(directory)


@pytest.fixture
def memory_path(memory) -> Iterator[Path]:
    """A directory of the test's own in memory, for a few MB."""
    with tempfile.TemporaryDirectory(dir=memory) as directory:
        yield Path(directory)

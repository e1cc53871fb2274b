"""What differs between logs of `.ibb` and of traditional files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from ibbmaster.errors import ConfigurationError, DamageError, StoreError
from ibbmaster.logs.log.fault import Fault, Totals
from ibbmaster.logs.store.redo_names import has_redo_log
from ibbmaster.position import LogPosition, NamedPosition
from ibbmaster.storage.disk.place import ObjectPath, open_disk, place
from ibbmaster.storage.ibb.file_name import parse_file_name
from ibbmaster.storage.ibb.page import PAGE_SIZE

if TYPE_CHECKING:
    from ibbmaster.logs.classic.engine import ClassicBinlog
    from ibbmaster.logs.log.interface import LogEngine, LogFile, ReadPlan
    from ibbmaster.logs.store.redo_check import RedoReport
    from ibbmaster.storage.disk.interface import SharedDisk
    from .file_states import FileFacts

BLOCK_SIZE = 512  # bytes, in which the system counts what a file has of the disk

PathLike = str | os.PathLike[str]


def log_path(path: PathLike) -> Path:
    """A path or URL that can name a log, whether it exists or not. Raises ConfigurationError: no log can be at such
    a URL; StoreError: no file can have this name."""
    where = place(path)
    if isinstance(where, ObjectPath):
        return where
    try:
        os.lstat(where)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        pass
    except (OSError, ValueError) as error:
        problem = error.strerror if isinstance(error, OSError) else str(error)
        shown = str(path)[:80].replace("\0", "\\0")
        raise StoreError(f"{shown!r} cannot be the path of a log: {problem}") from None
    return where


OnBytes = Callable[[int], object]


@dataclass(slots=True)
class LogCheck:
    """What was read of a log, and of its redo log: None: there is none, or it was not read yet."""

    totals: Totals = field(default_factory=Totals)
    redo: RedoReport | None = None


class PagedLogFiles:
    """A directory of `.ibb` files, with the redo log of its writer."""

    is_classic = False
    server_version: str | None = None  # of the server that wrote the last file, if the files tell

    def __init__(self, path: Path, engine: LogEngine | None = None) -> None:
        self._path = path
        self._reading = engine

    @property
    def engine(self) -> LogEngine:
        if self._reading is None:
            from ibbmaster.logs.store.followed import FollowedDirectory

            self._reading = FollowedDirectory(open_disk(self._path))
        return self._reading

    def paths(self) -> list[Path]:
        """Raises StoreError: the directory cannot be read."""
        return [self._path / name for name in open_disk(self._path).list() if parse_file_name(name) is not None]

    def plan_of_group(self, start: LogPosition) -> ReadPlan:
        """From shortly before the group. Raises LookupError: there is no such file."""
        plan = self.engine.start_of_file(start.file_no)
        return replace(plan, position=LogPosition.on_page(start.file_no, start.page_no))

    def place(self, position: LogPosition) -> LogPosition:
        return position

    def named_by(self, engine: LogEngine) -> PagedLogFiles:
        """For a log made of this one, which has other or more files."""
        return PagedLogFiles(self._path, engine)

    def faults(self, verified: LogCheck, *, jobs: int, on_bytes: OnBytes) -> Iterator[Fault]:
        """While the files are read. Raises StoreError: there are none, or they cannot be read."""
        from ibbmaster.logs.log.verify import verify

        with ExitStack() as stack:
            first, *others = [stack.enter_context(closing(open_disk(self._path))) for _ in range(jobs)]
            redo = verified.redo = _redo_of(first)
            yield from verify(first, verified.totals, others=others, on_pages=lambda count: on_bytes(count * PAGE_SIZE))
        if redo is not None and redo.problem is not None:
            yield Fault(problem=redo.line())

    format_name = "ibb"  # for people

    def facts(self) -> list[FileFacts]:
        """Of each file. Raises ClassicFormatError: the head of a traditional file cannot be read; StoreError: the
        directory cannot be read."""
        from .file_states import paged_facts

        return paged_facts(self._path, self.engine.files())

    def redo(self) -> RedoReport | None:
        """None: there is no redo log."""
        with closing(open_disk(self._path)) as disk:
            return _redo_of(disk)

    def expect_whole(self) -> None:
        """Raises DamageError: the files lack groups of the log, and the writer that should have brought them is
        gone."""
        from ibbmaster.logs.log.directory import BinlogDirectory

        if not any(file.size for file in self.engine.files()):
            return
        state = self.engine.state()
        with closing(open_disk(self._path)) as disk:
            missing = set(state) - set(BinlogDirectory(disk).state())
            is_written = disk.is_locked()
        if missing and not is_written:
            raise DamageError(
                f"{self._path}: groups up to {state.position()} are in the redo log of a writer that is gone, and "
                "not in the files: `ibbmaster recover` brings them there"
            )

    def close(self) -> None:
        if self._reading is not None:
            self._reading.close()


def _redo_of(disk: SharedDisk) -> RedoReport | None:
    if not has_redo_log(disk):
        return None
    from ibbmaster.logs.store.redo_check import check_redo

    return check_redo(disk, is_in_use=disk.is_locked)


def file_no_of(path: Path) -> int | None:
    """Of an `.ibb` file; None where something else is, or nothing."""
    file_no = parse_file_name(path.name)
    return file_no if file_no is not None and path.exists() and not path.is_dir() else None


def one_file_refusal(what: str, path: Path) -> ConfigurationError:
    return ConfigurationError(f"{what} reads whole logs, and {path} is one file: name {path.parent}")


def files_at(path: Path) -> LogFiles:
    """Raises ClassicFormatError, StoreError: they cannot be read, or there is nothing."""
    from ibbmaster.logs.archive.place import archive_at
    from ibbmaster.logs.classic.packing import holds_traditional

    if (archived := archive_at(path)) is not None:
        return ClassicLogFiles(archived)
    if holds_traditional(path):
        from ibbmaster.logs.classic.engine import ClassicBinlog

        found = ClassicBinlog([path])
        found.start_of_file()  # looks at each head, so that what is no binlog is refused at once
        return ClassicLogFiles(found)
    open_disk(path).list()
    return PagedLogFiles(path)


@contextmanager
def opened_files(path: Path) -> Iterator[LogFiles]:
    """The files of a whole log as `ibbmaster.open` takes them, without what reads rows and schemas. Raises
    ConfigurationError: `path` is one `.ibb` file of a log; else as `files_at`."""
    where = log_path(path)
    if file_no_of(where) is not None:
        raise one_file_refusal("verify", where)
    with closing(files_at(where)) as files:
        yield files


def stored_bytes(path: Path, files: Iterable[LogFile]) -> int:
    """On the disk: less than the sizes of files that were made in advance."""
    paths = (path if path.is_file() else path / file.name for file in files)
    return sum(one.stat().st_blocks * BLOCK_SIZE for one in paths if one.exists())


class ClassicLogFiles:
    """Traditional files."""

    is_classic = True

    def __init__(self, engine: ClassicBinlog, names: LogEngine | None = None) -> None:
        self._engine = engine
        self._names = engine if names is None else names

    @property
    def engine(self) -> LogEngine:
        return self._engine

    @property
    def server_version(self) -> str:
        return self._engine.server_version

    def plan_of_group(self, start: LogPosition) -> ReadPlan:
        return self._names.start_of_file(start.file_no)

    def place(self, position: LogPosition) -> LogPosition:
        return NamedPosition.in_file(position, self._names.file_name(position.file_no))

    def named_by(self, engine: LogEngine) -> ClassicLogFiles:
        return ClassicLogFiles(self._engine, engine)

    def paths(self) -> list[Path]:
        return self._engine.paths()

    def faults(self, verified: LogCheck, *, jobs: int, on_bytes: OnBytes) -> Iterator[Fault]:
        return self._engine.verify(verified.totals, on_bytes, jobs=jobs)

    format_name = "traditional"

    def facts(self) -> list[FileFacts]:
        from .file_states import traditional_facts

        return [traditional_facts(state) for state in self._engine.file_states()]

    def redo(self) -> RedoReport | None:
        return None

    def expect_whole(self) -> None:
        """What is in none of these files is in no log."""

    def close(self) -> None:
        self._engine.close()


LogFiles: TypeAlias = PagedLogFiles | ClassicLogFiles


class LogVerification:
    """Iterate over it once."""

    def __init__(
        self,
        path: Path,
        files: LogFiles,
        *,
        jobs: int,
        on_bytes: OnBytes,
        bring_to_files: Callable[[], object] = lambda: None,
    ) -> None:
        """`bring_to_files` is called before they are read."""
        self._path = path
        self._files = files
        self._bring_to_files = bring_to_files
        self._jobs = jobs
        self._on_bytes = on_bytes
        self._verified = LogCheck()
        self._found = {True: 0, False: 0}  # faults, and notes
        self._progress = "not begun"

    @property
    def totals(self) -> Totals:
        """What was read so far."""
        return self._verified.totals

    @property
    def redo(self) -> RedoReport | None:
        return self._verified.redo

    def __repr__(self) -> str:
        found = f"{self._found[True]} faults, {self._found[False]} notes"
        return f"<{type(self).__name__} of {self._path}, {self._progress}: {self.totals}: {found}>"

    def __iter__(self) -> Iterator[Fault]:
        """The faults, in the order of the files. Raises StoreError: there is no log, or it cannot be read."""
        self._progress = "under way"
        self._bring_to_files()
        for fault in self._files.faults(self._verified, jobs=self._jobs, on_bytes=self._on_bytes):
            self._found[fault.is_damage] += 1
            yield fault
        self._progress = "done"

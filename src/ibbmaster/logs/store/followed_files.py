"""The `.ibb` files of a directory that another process may write, for `LogObserver`."""

import contextlib
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ibbmaster.errors import IbbMasterError, MissingFileError, StoreError
from ibbmaster.logs.log.observer import LogObserver
from ibbmaster.position import LogPosition
from ibbmaster.storage.disk.held_file import FileChange, HeldFile, KnownBytes, Stamp, compared
from ibbmaster.storage.disk.interface import ReadDisk, SharedDisk
from ibbmaster.storage.disk.place import LocalFile
from ibbmaster.storage.ibb.file_header import SHORT_SIZE, decode_file_header
from ibbmaster.storage.ibb.file_name import format_file_name, parse_file_name
from ibbmaster.storage.ibb.page import PAGE_SIZE

HEAD_BYTES = PAGE_SIZE + (1 << 12)
BEGIN_BYTES = TAIL_BYTES = 1 << 9
COMPLETE_FILES = 3  # the newest, which may still be written


@dataclass(frozen=True, slots=True)
class IbbFile:
    number: int
    stamp: Stamp
    begin: bytes = b""  # of its data: a file that is written over keeps its place on the disk
    life: int = 0

    @property
    def index(self) -> int:
        return self.number

    @property
    def name(self) -> str:
        return format_file_name(self.number)


class FollowedIbbFiles(LogObserver[IbbFile]):
    """The files up to the active one, the newest that is begun. `view` is what readers see: `disk`, or that with a redo
    log; `reached` says how far the log is known. Raises StoreError: there is no file."""

    def __init__(self, disk: SharedDisk, view: ReadDisk, reached: Callable[[], LogPosition | None]) -> None:
        self._disk = disk
        self._view = view
        self._reached = reached
        self._lives = itertools.count(1)
        self._listed: tuple[Sequence[str], list[int]] = ((), [])
        super().__init__(self._find())

    def numbers(self) -> list[int]:
        names = self._view.list()
        if names is not self._listed[0]:
            self._listed = names, sorted(number for name in names if (number := parse_file_name(name)) is not None)
        return self._listed[1]

    def _find(self) -> Sequence[IbbFile]:
        numbers = self.numbers()
        is_new = numbers[:1] == [0]  # its header may be to come
        begun = next((count for count in range(len(numbers), 0, -1) if self._has_head(numbers[count - 1])), int(is_new))
        files = []
        for number in numbers[:begun]:
            with contextlib.suppress(MissingFileError):
                name = format_file_name(number)
                is_complete = number < numbers[begun - 1] - COMPLETE_FILES
                begin = b"" if is_complete else self._view.read(name, PAGE_SIZE, BEGIN_BYTES)
                files.append(IbbFile(number, self._disk.stamp(name), begin))
        if not files:
            if numbers:
                self._view.read(format_file_name(numbers[-1]), 0, SHORT_SIZE)  # raises why nothing is begun
            raise MissingFileError(f"{self._view}: no binlog files")
        return files

    def _has_head(self, number: int) -> bool:
        try:
            head = self._view.read(format_file_name(number), 0, SHORT_SIZE).ljust(SHORT_SIZE, b"\0")
            return decode_file_header(head, file_no=number) is not None
        except IbbMasterError:
            return False

    def _after(self, last: IbbFile) -> IbbFile | None:
        numbers = self.numbers()
        return self._begun(number) if numbers and (number := last.number + 1) <= numbers[-1] else None

    def _before(self, first: IbbFile) -> IbbFile | None:
        numbers = self.numbers()
        return self._begun(number) if numbers and (number := first.number - 1) >= numbers[0] else None

    def _begun(self, number: int) -> IbbFile | None:
        if not self._has_head(number):
            return None
        return IbbFile(number, self._disk.stamp(format_file_name(number)), life=next(self._lives))

    def _is_begun(self, file: IbbFile) -> bool:
        return self._has_head(file.number)

    def _hold(self, file: IbbFile) -> HeldFile:
        def window(size: int) -> KnownBytes:
            reached = self._reached()
            if reached is None or reached.file_no != file.number or not 0 < reached.page_no <= size // PAGE_SIZE:
                return KnownBytes(0, 0, 0)
            page = reached.page_no * PAGE_SIZE
            if reached.page_offset:  # the end of a page that is not full may change
                return KnownBytes(max(reached.offset - TAIL_BYTES, page), reached.offset, page + PAGE_SIZE)
            return KnownBytes(page - PAGE_SIZE, page - PAGE_SIZE + TAIL_BYTES, page)

        return HeldFile(
            lambda: self._disk.stamp(file.name),
            lambda: _ViewedFile(self._view, self._disk, file.name),
            window=window,
            head_bytes=HEAD_BYTES,
        )

    def _is_there(self, file: IbbFile) -> bool:
        numbers = self.numbers()
        return bool(numbers) and numbers[0] <= file.number <= numbers[-1]

    def _is_same(self, known: IbbFile, found: IbbFile) -> bool:
        is_complete = known.number < self.picture.last.number - COMPLETE_FILES
        if is_complete:
            return known.stamp == found.stamp
        return known.stamp.file == found.stamp.file and compared(found.begin, known.begin) is FileChange.NONE

    def _seen(self, file: IbbFile, held: HeldFile) -> IbbFile:
        seen = replace(file, stamp=held.stamp, begin=held.head[PAGE_SIZE : PAGE_SIZE + BEGIN_BYTES])
        return file if seen == file else seen

    def _placed(self, files: Sequence[IbbFile], index: int) -> Sequence[IbbFile]:
        life = next(self._lives)
        return [replace(file, life=life) for file in files]


class _ViewedFile:
    def __init__(self, view: ReadDisk, disk: SharedDisk, name: str) -> None:
        self._view, self._disk, self._name = view, disk, name
        descriptor = disk.open(name)
        self._held = None if descriptor is None else LocalFile(descriptor)

    def stamp(self) -> Stamp:
        return self._disk.stamp(self._name) if self._held is None else self._held.stamp()

    def fill(self, offset: int, target: memoryview) -> int:
        if self._held is not None and not self._has_name():
            return self._held.fill(offset, target)
        return self._view.read_into(self._name, offset, target) or 0

    def _has_name(self) -> bool:
        try:
            return self._held is None or self._disk.stamp(self._name).file == self._held.stamp().file
        except StoreError:
            return False

    def close(self) -> None:
        if self._held is not None:
            self._held.close()

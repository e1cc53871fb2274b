"""The files of a traditional binlog: which there are, in which order, and their bytes.

A file may be packed, as the end of its name says (`packing`), and offsets everywhere are those of the unpacked file.
Only this module opens files outside a store's directory, and only for reading.
"""

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PureWindowsPath

from ibbmaster.classic.packing import PACKINGS, PackedDataError, Packing, packing_of, unpacked_name
from ibbmaster.disk.held_file import Stamp
from ibbmaster.disk.local import fill
from ibbmaster.disk.place import ObjectPath, open_file, stamp_of
from ibbmaster.errors import ClassicFormatError, MissingFileError, StoreError
from ibbmaster.event.header import EVENT_HEADER_SIZE, SIZE, SIZE_OFFSET, TYPE_OFFSET
from ibbmaster.event.types import EventType

MAGIC = b"\xfebin"  # the first bytes of every traditional binlog file
FIRST_EVENT_OFFSET = len(MAGIC)
FORMAT_DESCRIPTION_SIZE_MAX = 1 << 12  # bytes: 256 event types need 337
HEAD_SIZE_MAX = 1 << 20  # bytes of a file that may have a half head: 65,000 GTIDs
BEHIND_ANY_FILE = 1 << 62
HELD_BYTES = 2 << 20  # unpacked last: a reader may step back
INDEX_SUFFIX = ".index"
INDEX_SIZE_MAX = 64 << 20  # bytes: names of a million files

_NUMBERED = re.compile(r"(?P<base>.+)\.(?P<number>[0-9]{6,19})", re.ASCII | re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassicFile:
    """One file of a traditional binlog."""

    path: Path
    name: str  # as the server named it: no folder, and as it was before it was packed
    number: int | None  # the digits at the end of the name
    stamp: Stamp  # when it was looked at
    index: int = 0  # in its series
    life: int = 0  # another one for what takes its place and is not known to be the same yet

    @property
    def size_bytes(self) -> int:
        """On disk, so before unpacking."""
        return self.stamp.size

    @property
    def packing(self) -> Packing | None:
        """How the file is packed, if it is."""
        return packing_of(self.path.name)


class ClassicSource:
    """The bytes of one file, unpacked where need be.
    Memory: what one `read` returns; for a packed file the dictionary of its packing, and what was unpacked last. To
    read further back there means to unpack the file from its start once more."""

    def __init__(
        self, file: ClassicFile, *, only_cached: bool = False, stands: Callable[[bool], bool] = lambda only_cached: True
    ) -> None:
        """While `only_cached`, reading raises BlockingIOError where it would have to wait for the disk.
        After each read `stands` is asked whether that was of the file; where it was not, nothing is there. Raises
        StoreError: the file cannot be opened; ExtraMissingError: what unpacks it is not installed."""
        self._file = file
        self._packing = file.packing
        self.is_packed = self._packing is not None  # the bytes of the file are not those of the binlog
        self._unpacker = None if self._packing is None else self._packing.new_unpacker()
        with _errors(file.path):
            self._stream = open_file(file.path)
        self._held = bytearray()  # of a packed file: what was unpacked last
        self._held_offset = 0  # of its first byte in the unpacked file
        self._damage: ClassicFormatError | None = None  # after that
        self.bytes_read = 0  # of the file on disk
        self.only_cached = only_cached
        self._stands = stands

    @property
    def descriptor(self) -> int | None:
        """Of the open file, if it is one of this machine, and its bytes are those of the binlog."""
        return self._stream.descriptor if self._packing is None else None

    @property
    def stamp(self) -> Stamp:
        """Of the open file."""
        return self._stream.stamp()

    @property
    def size_bytes(self) -> int:
        """Of the binlog; for a packed file more than any has."""
        return self._stream.size() if self._packing is None else BEHIND_ANY_FILE

    def read(self, offset: int, size: int) -> bytes:
        """Between 1 and `size` bytes from an offset on; none at the end of the file.
        Raises ClassicFormatError: a packed file is damaged or cut short; StoreError: the file cannot be read."""
        if self.only_cached:
            target = bytearray(size)
            return bytes(target[: self._fill_at_once(offset, memoryview(target))])
        if self._unpacker is None:
            with _errors(self._file.path):
                data = self._stream.read_at(offset, size)
            if not self._stands(False):
                return b""
            self.bytes_read = max(self.bytes_read, offset + len(data))
            return data
        self._hold(offset, size)
        start = offset - self._held_offset
        return bytes(self._held[start : start + size])

    def read_into(self, offset: int, target: memoryview) -> int:
        """Fill `target` with the bytes from an offset on, to the end of the file at most; returns how many they are.
        Raises ClassicFormatError: a packed file is damaged or cut short."""
        if self.only_cached:
            return self._fill_at_once(offset, target)
        if self._unpacker is None:
            with _errors(self._file.path):
                size = self._stream.fill(offset, target)
            if not self._stands(False):
                return 0
            self.bytes_read = max(self.bytes_read, offset + size)
            return size
        size = 0
        while size < len(target) and (data := self.read(offset + size, len(target) - size)):
            target[size : size + len(data)] = data
            size += len(data)
        return size

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        self._stream.close()

    def _fill_at_once(self, offset: int, target: memoryview) -> int:
        """As `read_into`, of what is in memory."""
        size: int | None = None
        if self.descriptor is not None:
            with _errors(self._file.path):
                size = fill(self.descriptor, offset, target, only_cached=True)
        if size is None:
            raise BlockingIOError(f"{self._file.name} is not in memory at offset {offset}")
        if not self._stands(True):
            return 0
        self.bytes_read = max(self.bytes_read, offset + size)
        return size

    def _hold(self, offset: int, size: int) -> None:
        """Unpack ahead, by at least one byte if there is one."""
        assert self._packing is not None
        if offset < self._held_offset:
            self._stream.seek(0)
            self._unpacker, self._held_offset, self._damage = self._packing.new_unpacker(), 0, None
            self._held.clear()
            self.bytes_read = 0
        while self._held_offset + len(self._held) <= offset and (data := self._unpack(size)):
            old = len(self._held) - HELD_BYTES
            if old > 0:
                del self._held[:old]
                self._held_offset += old
            self._held += data

    def _unpack(self, size: int) -> bytes:
        if self._damage is not None:
            raise self._damage
        try:
            return self._unpack_more(size)
        except ClassicFormatError as error:
            self._damage = error
            raise

    def _unpack_more(self, size: int) -> bytes:
        packing = self._packing
        assert packing is not None
        assert self._unpacker is not None
        offset = self._held_offset + len(self._held)
        while True:
            unpacker = self._unpacker
            if unpacker.eof:  # another stream may follow, as after `cat a.xz b.xz`; zeros pad it
                packed = unpacker.unused_data.lstrip(b"\0") or self._next_stream(size)
                if not packed:
                    return b""
                unpacker = self._unpacker = packing.new_unpacker()
            else:
                packed = self._read_packed(size) if unpacker.needs_input else b""
                if unpacker.needs_input and not packed:
                    raise ClassicFormatError(self._file.name, offset, f"the {packing.name} data around it is cut short")
            try:
                data = packing.unpack(unpacker, packed, size)
            except PackedDataError as error:
                raise ClassicFormatError(self._file.name, offset, str(error)) from None
            if data:
                return data

    def _next_stream(self, size: int) -> bytes:
        """The first bytes after padding; none at the end of the file."""
        while data := self._read_packed(size):
            if first := data.lstrip(b"\0"):
                return first
        return b""

    def _read_packed(self, size: int) -> bytes:
        data = self._stream.read(size)
        self.bytes_read += len(data)
        return data


def read_whole(file: ClassicFile, target: memoryview) -> int | None:
    """The bytes of a small file, read at once into `target`; returns how many there are.
    None if they do not fit, or have to be fetched or unpacked. Raises StoreError: the file cannot be read."""
    if file.size_bytes >= len(target) or file.packing is not None or isinstance(file.path, ObjectPath):
        return None
    try:
        stream = open_file(file.path)
        try:
            size = stream.fill(0, target)
        finally:
            stream.close()
    except OSError as error:
        raise _error(file.path, error) from error
    return size if size < len(target) else None  # one byte is left, so the file ends there


def find_series(paths: Iterable[Path]) -> tuple[ClassicFile, ...]:
    """The files that `paths` name, in the order in which the server wrote them.

    A path is a binlog file, an index file (`*.index`, with one file name a line), or a
    directory that holds the files of one binlog.

    Raises MissingFileError: a path, or a file that an index names, is not there; StoreError: a directory holds no
    binlog or more than one, a file is named twice, or the order cannot be determined from the names.
    """
    files: list[ClassicFile] = []
    for path in paths:
        if path.is_dir():
            files += _files_of_directory(path)
        elif path.name.endswith(INDEX_SUFFIX):
            files += map(classic_file, _files_of_index(path))
        else:
            files.append(classic_file(path))
    if not files:
        raise StoreError("no binlog file was named")
    if len(files) == 1:
        return tuple(files)
    by_number: dict[int, ClassicFile] = {}
    for file in files:
        if file.number is None:
            raise StoreError(f"{file.path} has no number at its end, so its place among the other files is unknown")
        earlier = by_number.setdefault(file.number, file)
        if earlier is not file:
            raise StoreError(f"{earlier.path} and {file.path} have the same number: name the files of one binlog, once")
    in_order = [by_number[number] for number in sorted(by_number)]
    if not has_head(in_order[-1]):
        in_order.pop()  # its server has just made it, or died while it did
    return tuple(file if file.index == index else replace(file, index=index) for index, file in enumerate(in_order))


def classic_file(path: Path) -> ClassicFile:
    name = unpacked_name(path.name)
    match = _NUMBERED.fullmatch(name)
    return _named_file(path, name, int(match["number"]) if match else None)


def _named_file(path: Path, name: str, number: int | None, index: int = 0) -> ClassicFile:
    try:
        stamp = stamp_of(path)
    except OSError:
        if path.is_file():  # it says which errors mean that there is none
            raise
        raise MissingFileError(f"{path} is not a file") from None
    return ClassicFile(path=path, name=name, number=number, stamp=stamp, index=index)


def _files_of_directory(directory: Path) -> list[ClassicFile]:
    by_base: dict[str, list[ClassicFile]] = {}
    named = ((path.name, path, _NUMBERED.fullmatch(unpacked_name(path.name))) for path in directory.iterdir())
    found = sorted((name, path, match) for name, path, match in named if match)
    if isinstance(directory, ObjectPath):
        directory.expect_heads([name for name, _, _ in found])
    for _, path, match in found:
        files = by_base.setdefault(match["base"], [])
        with contextlib.suppress(MissingFileError):
            files.append(_named_file(path, match[0], int(match["number"]), len(files)))
    binlogs = [  # one file says what all of its name are: there may be ten thousand
        base for base, files in by_base.items() if any(starts_like_a_binlog(one.path) for one in reversed(files))
    ]
    if not binlogs:
        raise StoreError(f"{directory} holds no traditional binlog file")
    if len(binlogs) > 1:
        raise StoreError(
            f"{directory} holds more than one binlog ({', '.join(sorted(binlogs))}): name the index file of one of them"
        )
    # one that begins as something else is damaged, as the error for its head says, and must not be missing; a shorter
    # one has just been made
    return [file for file in by_base[binlogs[0]] if file.size_bytes >= len(MAGIC) or starts_like_a_binlog(file.path)]


def has_head(file: ClassicFile) -> bool:
    """Whether a file has its FORMAT_DESCRIPTION and what comes next, its GTID_LIST; as their reader says, also True of
    one that begins as something else."""
    if file.packing is not None or file.size_bytes > HEAD_SIZE_MAX:
        return True
    with _errors(file.path), contextlib.closing(open_file(file.path)) as stream:
        data = stream.read_at(0, FORMAT_DESCRIPTION_SIZE_MAX)
    offset = FIRST_EVENT_OFFSET
    if not MAGIC.startswith(data[:offset]):
        return True
    while len(data) >= offset + EVENT_HEADER_SIZE:
        is_of_head = data[offset + TYPE_OFFSET] in (EventType.FORMAT_DESCRIPTION, EventType.GTID_LIST)
        end = offset + SIZE.unpack_from(data, offset + SIZE_OFFSET)[0]
        if end > file.size_bytes or not is_of_head or offset != FIRST_EVENT_OFFSET:
            return end <= file.size_bytes or not is_of_head
        offset = max(end, offset + EVENT_HEADER_SIZE)
    return False


@contextlib.contextmanager
def _errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _error(path, error) from error


def _error(path: Path, error: OSError) -> StoreError:
    """The error to raise for one of the system."""
    if isinstance(error, FileNotFoundError):
        return MissingFileError(f"{path}: no such file or directory")
    return StoreError(f"{path}: {error.strerror}")


def starts_like_a_binlog(path: Path) -> bool:
    packing = packing_of(path.name)
    magic = MAGIC if packing is None else packing.magic
    with contextlib.closing(open_file(path)) as stream:
        return stream.read_at(0, len(magic)) == magic


def packed_or_not(path: Path) -> list[Path]:
    """What a file may be called, packed or as it is."""
    return [path, *(path.with_name(path.name + packing.suffix) for packing in PACKINGS)]


def index_path(file: ClassicFile) -> Path:
    """Where the index of a file's binlog is, if there is one."""
    return file.path.with_name(file.name.rpartition(".")[0] + INDEX_SUFFIX)


def index_lines(index: Path) -> list[str]:
    """The names in an index file, as they are there. Raises StoreError: there is none, or it is too large for one."""
    if not index.is_file():
        raise MissingFileError(f"{index} is not a file")
    if index.stat().st_size > INDEX_SIZE_MAX:
        raise StoreError(f"{index} is too large for an index file")
    lines = index.read_bytes().decode("utf-8", "surrogateescape").splitlines()
    return list(filter(None, map(str.strip, lines)))


def listed_name(line: str) -> str:
    """The name of a file in a line of an index, which may be copied: it has the folders of its server."""
    return PureWindowsPath(line).name


def _files_of_index(index: Path) -> list[Path]:
    paths = []
    for line in index_lines(index):
        beside = index.parent / listed_name(line)
        for path in (*packed_or_not(beside), index.parent / line):
            if path.is_file():
                paths.append(path)
                break
        else:
            raise MissingFileError(f"{index} names {line}, but there is no such file")
    if not paths:
        raise StoreError(f"{index} names no file")
    return paths

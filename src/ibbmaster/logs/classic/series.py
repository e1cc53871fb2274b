"""The files of a traditional binlog, their order and their bytes.

A file may be packed, as the end of its name says (`packing`); offsets are always those of the unpacked file. Only this
module opens files outside a store's directory, and only for reading."""

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path, PureWindowsPath

from ibbmaster.errors import ClassicFormatError, MissingFileError, StoreError
from ibbmaster.gtid import GtidState
from ibbmaster.storage.disk.held_file import Stamp
from ibbmaster.storage.disk.local import fill
from ibbmaster.storage.disk.place import LocalFile, ObjectFile, ObjectPath, open_file, stamp_of
from .packing import PACKINGS, PackedDataError, Packing, packing_of, unpacked_name

MAGIC = b"\xfebin"
FIRST_EVENT_OFFSET = len(MAGIC)
FORMAT_DESCRIPTION_SIZE_MAX = 1 << 12  # bytes: 256 event types need 337
BEHIND_ANY_FILE = 1 << 62
HELD_BYTES = 2 << 20  # a reader may step back
INDEX_SUFFIX = ".index"
INDEX_SIZE_MAX = 64 << 20  # bytes: names of a million files
PACKED_HEAD_BYTES = 1 << 12  # of a packing that has no magic: the first bytes in it are among them

_NUMBERED = re.compile(r"(?P<base>.+)\.(?P<number>[0-9]{6,19})", re.ASCII | re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassicFile:
    path: Path
    name: str
    number: int | None  # the digits at the end of the name
    stamp: Stamp
    index: int = 0
    life: int = 0
    earlier: GtidState | None = field(
        default=None, compare=False
    )  # what other servers have logged before it, which its server need not know

    @property
    def own_name(self) -> str:
        """As its server called it."""
        return unpacked_name(self.path.name)

    @property
    def series_name(self) -> tuple[Path, str]:
        """Of all files of its server."""
        return self.path.parent, self.own_name.rpartition(".")[0]

    def whole_state(self, listed: GtidState) -> GtidState:
        """What was logged when its server listed this."""
        if self.earlier is None:
            return listed
        state = self.earlier.copy()
        for gtid in listed:
            known = state.seq_no(gtid.domain_id, gtid.server_id)
            if known is None or gtid.seq_no > known:
                state.log(gtid)
        return state

    @property
    def size_bytes(self) -> int:
        """On disk, so before unpacking."""
        return self.stamp.size

    @property
    def packing(self) -> Packing | None:
        return packing_of(self.path.name)

    def open(self, *, only_cached: bool = False) -> LocalFile | ObjectFile:
        """Raises BlockingIOError: with `only_cached`, it must be fetched; OSError, StoreError: it cannot be opened."""
        return open_file(self.path)


class ClassicSource:
    """The bytes of one file, unpacked where need be. Memory: the result of one `read`; for a packed file the dictionary
    of its packing and the last `HELD_BYTES`, before which reading begins anew."""

    def __init__(
        self, file: ClassicFile, *, only_cached: bool = False, stands: Callable[[bool], bool] = lambda only_cached: True
    ) -> None:
        """While `only_cached`, reading raises BlockingIOError where it would have to wait for the disk. After each read
        `stands` says whether those bytes are of the file; if not, the read finds nothing. Raises StoreError: the file
        cannot be opened; ExtraMissingError: its unpacker is not installed."""
        self.file = file
        self._packing = file.packing
        self.is_packed = self._packing is not None
        self._unpacker = None if self._packing is None else self._packing.new_unpacker()
        with _errors(file.path):
            self._stream = file.open(only_cached=only_cached)
        self._held = bytearray()  # of a packed file: its bytes unpacked last
        self._held_offset = 0
        self._damage: ClassicFormatError | None = None  # after those
        self.bytes_read = 0
        self.only_cached = only_cached
        self._stands = stands

    @property
    def descriptor(self) -> int | None:
        """Of the open file, if it is local and not packed."""
        return self._stream.descriptor if self._packing is None else None

    @property
    def stamp(self) -> Stamp:
        return self._stream.stamp()

    @property
    def size_bytes(self) -> int:
        """Of the binlog; for a packed file more than any has."""
        return self._stream.size() if self._packing is None else BEHIND_ANY_FILE

    def read(self, offset: int, size: int) -> bytes:
        """Between 1 and `size` bytes from an offset on; none at the end. Raises ClassicFormatError, StoreError."""
        if self.only_cached:
            target = bytearray(size)
            return bytes(target[: self._fill_at_once(offset, memoryview(target))])
        if self._unpacker is None:
            with _errors(self.file.path):
                data = self._stream.read_at(offset, size)
            return data if self._standing(offset, len(data)) else b""
        self._hold(offset, size)
        start = offset - self._held_offset
        return bytes(self._held[start : start + size])

    def read_into(self, offset: int, target: memoryview) -> int:
        """Fill `target` from an offset on; returns the number of bytes. Raises as `read`."""
        if self.only_cached:
            return self._fill_at_once(offset, target)
        if self._unpacker is None:
            with _errors(self.file.path):
                return self._standing(offset, self._stream.fill(offset, target))
        size = 0
        while size < len(target) and (data := self.read(offset + size, len(target) - size)):
            target[size : size + len(data)] = data
            size += len(data)
        return size

    def close(self) -> None:
        self._stream.close()

    def _fill_at_once(self, offset: int, target: memoryview) -> int:
        size: int | None = None
        if self.descriptor is not None:
            with _errors(self.file.path):
                size = fill(self.descriptor, offset, target, only_cached=True)
        if size is None:
            raise BlockingIOError(f"{self.file.name} is not in memory at offset {offset}")
        return self._standing(offset, size)

    def _standing(self, offset: int, size: int) -> int:
        if not self._stands(self.only_cached):
            return 0
        self.bytes_read = max(self.bytes_read, offset + size)
        return size

    def _hold(self, offset: int, size: int) -> None:
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
                packed = (unpacker.unused_data or b"").lstrip(b"\0") or self._next_stream(size)
                if not packed:
                    return b""
                unpacker = self._unpacker = packing.new_unpacker()
            else:
                packed = self._read_packed(size) if unpacker.needs_input else b""
                if unpacker.needs_input and not packed:
                    raise ClassicFormatError(self.file.name, offset, f"the {packing.name} data around it is cut short")
            try:
                data = packing.unpack(unpacker, packed, size)
            except PackedDataError as error:
                raise ClassicFormatError(self.file.name, offset, str(error)) from None
            if data:
                return data

    def _next_stream(self, size: int) -> bytes:
        while data := self._read_packed(size):
            if first := data.lstrip(b"\0"):
                return first
        return b""

    def _read_packed(self, size: int) -> bytes:
        data = self._stream.read(size)
        self.bytes_read += len(data)
        return data


def read_whole(file: ClassicFile, target: memoryview) -> int | None:
    """Read a small file into `target`; returns its size, None if it does not fit, or is packed or away. Raises
    StoreError."""
    if file.size_bytes >= len(target) or file.packing is not None or isinstance(file.path, ObjectPath):
        return None
    with _errors(file.path), contextlib.closing(file.open()) as stream:
        size = stream.fill(0, target)
    return size if size < len(target) else None  # one byte is left, so the file ends there


def find_series(paths: Iterable[Path]) -> tuple[ClassicFile, ...]:
    """The files that `paths` name, in the order of the server: binlog files, index files (`*.index`, one file name a
    line), or a directory with the files of one binlog. Raises MissingFileError: a path, or a file in an index, is
    missing; StoreError: a directory holds no binlog or several, a file is named twice, or names do not determine the
    order."""
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
    return tuple(file if file.index == index else replace(file, index=index) for index, file in enumerate(in_order))


def classic_file(path: Path) -> ClassicFile:
    name = unpacked_name(path.name)
    match = _NUMBERED.fullmatch(name)
    return _named_file(path, name, int(match["number"]) if match else None)


def _named_file(path: Path, name: str, number: int | None, index: int = 0) -> ClassicFile:
    try:
        stamp = stamp_of(path)
    except OSError:
        if path.is_file():
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
    binlogs = [  # one file of a name stands for all: there may be ten thousand
        base for base, files in by_base.items() if any(starts_like_a_binlog(one.path) for one in reversed(files))
    ]
    if not binlogs:
        raise StoreError(f"{directory} holds no traditional binlog file")
    if len(binlogs) > 1:
        raise StoreError(
            f"{directory} holds more than one binlog ({', '.join(sorted(binlogs))}): name the index file of one of them"
        )
    # a file that begins as something else is damaged, and must not be missing; a shorter one has just been made
    return [file for file in by_base[binlogs[0]] if file.size_bytes >= len(MAGIC) or starts_like_a_binlog(file.path)]


@contextlib.contextmanager
def _errors(path: Path) -> Iterator[None]:
    try:
        yield
    except BlockingIOError:
        raise
    except FileNotFoundError as error:
        raise MissingFileError(f"{path}: no such file or directory") from error
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}") from error


def starts_like_a_binlog(path: Path) -> bool:
    packing = packing_of(path.name)
    magic = MAGIC if packing is None else packing.magic
    with contextlib.closing(open_file(path)) as stream:
        if packing is None or magic:
            return stream.read_at(0, len(magic)) == magic
        with contextlib.suppress(PackedDataError):
            return packing.unpack(packing.new_unpacker(), stream.read_at(0, PACKED_HEAD_BYTES), len(MAGIC)) == MAGIC
        return False


def packed_or_not(path: Path) -> list[Path]:
    return [path, *(path.with_name(path.name + packing.suffix) for packing in PACKINGS)]


def index_path(file: ClassicFile) -> Path:
    return file.path.with_name(file.series_name[1] + INDEX_SUFFIX)


def index_lines(index: Path) -> list[str]:
    """The names in an index file. Raises StoreError: it is missing, or too large for one."""
    if not index.is_file():
        raise MissingFileError(f"{index} is not a file")
    if index.stat().st_size > INDEX_SIZE_MAX:
        raise StoreError(f"{index} is too large for an index file")
    lines = index.read_bytes().decode("utf-8", "surrogateescape").splitlines()
    return list(filter(None, map(str.strip, lines)))


def listed_name(line: str) -> str:
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

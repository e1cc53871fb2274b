"""The packings of traditional binlog files, by the end of their names; and whether names are those of such files."""

import bz2
import importlib
import lzma
import re
import sys
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from ibbmaster.extras import ExtraMissingError, needed_for
from ibbmaster.storage.codec.buffer import Buffer
from ibbmaster.storage.ibb.file_name import parse_file_name

XZ_MEMORY_MAX = 192 << 20  # bytes: `xz -9` needs 65 MiB to unpack; a file that asks for more is refused
ZSTD_WINDOW_LOG_MAX = 27  # 128 MiB, as `zstd -d` takes without --long
_CLASSIC_NAME = re.compile(r".+\.[0-9]{6,}", re.DOTALL)
_ARCHIVE = re.compile(r"binlog_005|server-[0-9]{1,10}", re.ASCII)  # of wal-g and of mariadb-operator
_GZIP = 16 + zlib.MAX_WBITS


class Unpacker(Protocol):
    """Unpacks one stream, as `lzma.LZMADecompressor` does."""

    @property
    def eof(self) -> bool: ...

    @property
    def needs_input(self) -> bool: ...

    @property
    def unused_data(self) -> bytes | None: ...

    def decompress(self, data: Buffer, max_length: int, /) -> bytes: ...


class PackedDataError(Exception):
    """The message says how packed data is damaged."""


class Packing(NamedTuple):
    """Of files whose names end in `suffix`; their first bytes are `magic`, which may be none."""

    name: str
    suffix: str
    magic: bytes
    new_unpacker: Callable[[], Unpacker]  # Raises ExtraMissingError
    errors: Callable[[], tuple[type[Exception], ...]]  # raised for damaged data

    def unpack(self, unpacker: Unpacker, data: Buffer, size: int) -> bytes:
        """At most `size` bytes more. Raises PackedDataError: the data is damaged, or asks for too much memory."""
        try:
            return unpacker.decompress(data, size)
        except self.errors() as error:
            raise PackedDataError(f"damaged {self.name} data: {error}") from None
        except MemoryError:
            raise PackedDataError(f"{self.name} data asks for more memory than there is") from None


class GzipUnpacker:
    def __init__(self) -> None:
        self._zlib = zlib.decompressobj(_GZIP)
        self._may_have_more = False

    @property
    def eof(self) -> bool:
        return self._zlib.eof

    @property
    def needs_input(self) -> bool:
        return not self._may_have_more and not self._zlib.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._zlib.unused_data

    def decompress(self, data: Buffer, max_length: int, /) -> bytes:
        unpacked = self._zlib.decompress(self._zlib.unconsumed_tail + bytes(data), max_length)
        self._may_have_more = len(unpacked) == max_length
        return unpacked


class BrotliUnpacker:
    """Nothing may follow its stream. Raises ExtraMissingError."""

    unused_data = b""

    def __init__(self) -> None:
        with needed_for("reading .br files"):
            self._brotli = importlib.import_module("brotli").Decompressor()
        if not hasattr(self._brotli, "can_accept_more_data"):  # older ones unpack all at once
            raise ExtraMissingError("reading .br files needs brotli 1.2 or later: pip install 'ibbmaster[zstd]'")
        self._ahead = memoryview(b"")  # unpacked by it beyond what was asked for: up to the size of its next block
        self._may_have_more = False

    @property
    def eof(self) -> bool:
        return not self._ahead and bool(self._brotli.is_finished())

    @property
    def needs_input(self) -> bool:
        return not self._ahead and not self._may_have_more and bool(self._brotli.can_accept_more_data())

    def decompress(self, data: Buffer, max_length: int, /) -> bytes:
        if not self._ahead:
            self._ahead = memoryview(self._brotli.process(bytes(data), output_buffer_limit=max_length))
            self._may_have_more = bool(self._ahead)
        unpacked, self._ahead = self._ahead[:max_length], self._ahead[max_length:]
        return bytes(unpacked)


def _zstd() -> Any:
    with needed_for("packing with zstd"):
        return importlib.import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")


def _new_lz4_unpacker() -> Unpacker:
    with needed_for("reading .lz4 files"):
        unpacker: Unpacker = importlib.import_module("lz4.frame").LZ4FrameDecompressor()
    return unpacker


def new_zstd_packer(level: int) -> Any:
    """Makes one frame, with a checksum of its content. Raises ExtraMissingError."""
    zstd = _zstd()
    return zstd.ZstdCompressor(
        options={zstd.CompressionParameter.compression_level: level, zstd.CompressionParameter.checksum_flag: 1}
    )


def _new_zstd_unpacker() -> Unpacker:
    zstd = _zstd()
    unpacker: Unpacker = zstd.ZstdDecompressor(
        options={zstd.DecompressionParameter.window_log_max: ZSTD_WINDOW_LOG_MAX}
    )
    return unpacker


ZSTD = Packing(
    name="zstd",
    suffix=".zst",
    magic=b"\x28\xb5\x2f\xfd",
    new_unpacker=_new_zstd_unpacker,
    errors=lambda: (_zstd().ZstdError,),
)
PACKINGS: tuple[Packing, ...] = (
    Packing(
        name="xz",
        suffix=".xz",
        magic=b"\xfd7zXZ\x00",
        new_unpacker=lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=XZ_MEMORY_MAX),
        errors=lambda: (lzma.LZMAError,),
    ),
    Packing(name="gzip", suffix=".gz", magic=b"\x1f\x8b", new_unpacker=GzipUnpacker, errors=lambda: (zlib.error,)),
    ZSTD,
    Packing(
        name="lz4",
        suffix=".lz4",
        magic=b"\x04\x22\x4d\x18",
        new_unpacker=_new_lz4_unpacker,
        errors=lambda: (RuntimeError, ValueError),
    ),
    Packing(
        name="bzip2",
        suffix=".bz2",
        magic=b"BZh",
        new_unpacker=bz2.BZ2Decompressor,
        errors=lambda: (OSError, ValueError),
    ),
    Packing(
        name="lzma",
        suffix=".lzma",
        magic=b"\x5d\x00\x00",
        new_unpacker=lambda: lzma.LZMADecompressor(lzma.FORMAT_ALONE, memlimit=XZ_MEMORY_MAX),
        errors=lambda: (lzma.LZMAError,),
    ),
    Packing(
        name="brotli",
        suffix=".br",
        magic=b"",
        new_unpacker=BrotliUnpacker,
        errors=lambda: (importlib.import_module("brotli").error,),
    ),
)
_SUFFIXES = tuple(packing.suffix for packing in PACKINGS)


def packing_of(name: str) -> Packing | None:
    if not name.endswith(_SUFFIXES):
        return None
    return next(packing for packing in PACKINGS if name.endswith(packing.suffix))


def unpacked_name(name: str) -> str:
    packing = packing_of(name)
    return name if packing is None else name.removesuffix(packing.suffix)


def holds_classic_files(names: Sequence[str]) -> bool:
    has_classic = any(_CLASSIC_NAME.fullmatch(unpacked_name(name)) for name in names)
    return has_classic and not any(parse_file_name(name) is not None for name in names)


def archive_directories(names: Sequence[str]) -> list[str]:
    """The directories of traditional files in another program's archive, by names; none where a log is."""
    has_log = any(_CLASSIC_NAME.fullmatch(unpacked_name(name)) or parse_file_name(name) is not None for name in names)
    return [] if has_log else sorted(filter(_ARCHIVE.fullmatch, names))


def holds_traditional(path: Path) -> bool:
    """Whether a path is a traditional file, an index of them, or their directory or archive."""
    try:
        if path.is_dir():
            names = [one.name for one in path.iterdir()]
            return holds_classic_files(names) or bool(archive_directories(names))
        return path.is_file() and parse_file_name(path.name) is None
    except OSError:
        return False  # its reader says why

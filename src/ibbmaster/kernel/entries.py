"""Compiled kernels as functions that Python can call. They take and give words of 64 bits: an array is its address and
its size in each dimension, a named tuple its fields; two words are returned at most."""

from __future__ import annotations

import ctypes
import platform
import struct
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

from . import calls
from .calls import Kernels

SOURCES = Path(__file__).with_name("native")
FACTS = (  # the modules whose numbers and enumerations kernels know by name
    *(f"replication/event/{module}" for module in ("types", "header", "gtid_event", "table_map")),
    *("storage/ibb/page", "storage/ibb/chunk", "kernel/fields"),
)
_BYTE = ctypes.c_char
NOTHING_KNOWN = (lambda: None,)  # in place of references to arrays
_FORMATS = {"uint8": ("B",), "int32": ("i",), "int64": ("q", "l")}  # by the name of a type of NumPy, as of `memoryview`


class ItemShape(NamedTuple):  # of an array whose items lie side by side
    item: str  # the name of its type
    dimensions: int
    is_record: bool = False  # its items, or those of a row, are the places of an enumeration


class FieldShape(NamedTuple):  # of a named tuple
    kind: type[Any]
    fields: tuple[Shape, ...]


Shape = ItemShape | FieldShape | None  # None: a number
ARRAYS = {
    "Bytes": ItemShape("uint8", 1),
    "ByteRows": ItemShape("uint8", 2),
    "Shorts": ItemShape("int32", 1),
    "ShortRows": ItemShape("int32", 2, is_record=True),
    "Numbers": ItemShape("int64", 1),
    "State": ItemShape("int64", 1, is_record=True),
    "Rows": ItemShape("int64", 2, is_record=True),
}
_RESULTS = {"None": 0, "int": 1, "tuple[int, int]": 2}


def kernel_names() -> list[str]:
    return [name for name in vars(Kernels) if not name.startswith("_")]


def shapes_of(kernel: str) -> dict[str, Shape]:
    return {name: _shape(said) for name, said in _annotations(kernel).items() if name != "return"}


def results_of(kernel: str) -> int:
    """How many words it gives."""
    return _RESULTS[_annotations(kernel)["return"]]


def words_of(shape: Shape) -> int:
    if isinstance(shape, FieldShape):
        return sum(map(words_of, shape.fields))
    return 1 if shape is None else 1 + shape.dimensions


def _annotations(kernel: str) -> dict[str, str]:
    return vars(Kernels)[kernel].__annotations__  # type: ignore[no-any-return]


def _shape(said: Any) -> Shape:
    name = getattr(said, "__forward_arg__", said)  # of the fields of a tuple
    if name in ("int", int):
        return None
    if name in ARRAYS:
        return ARRAYS[name]
    kind = getattr(calls, name)
    return FieldShape(kind, tuple(_shape(field) for field in kind.__annotations__.values()))


def library(machine: str = platform.machine()) -> Path:
    return SOURCES / f"kernels-{machine}.so"


LIBRARY = library()
Put = Callable[[list[int], Any], None]  # adds the words of an argument


def has_instructions() -> bool:
    """Whether this CPU can run the library: an instruction that it lacks ends the process."""
    with open("/proc/cpuinfo", "rb") as file:  # of many CPUs, which are alike; it says less of each
        return not {b"sse4_2", b"crc32"}.isdisjoint(file.read(1 << 13).split())


def digest() -> str:
    """Tells a library of the sources here from others, which would write to wrong places."""
    package, own = SOURCES.parents[1], SOURCES.parent
    parts = [*SOURCES.glob("*.[ch]"), own / "calls.py", own / "entries.py", own / "building.py"]
    parts += [package / f"{fact}.py" for fact in FACTS]
    return f"{crc32(b''.join(path.read_bytes() for path in sorted(parts))):08x}"


class Entries:
    """As `Kernels`."""

    def __init__(self, library: Path) -> None:
        """Raises OSError, AttributeError: there is no such library, it is of other sources, or it lacks a kernel."""
        loaded = ctypes.CDLL(str(library))  # whose functions are called without the lock
        for kernel in kernel_names():
            setattr(self, kernel, _function(kernel, loaded[f"ibbmaster_{kernel}"]))
        if ctypes.string_at(ctypes.addressof(_BYTE.in_dll(loaded, "ibbmaster_digest"))).decode() != digest():
            raise OSError(f"{library.name} is of other sources: python -m ibbmaster.kernel.building makes it anew")


def _function(kernel: str, entry: Any) -> Callable[..., Any]:
    entry.argtypes, entry.restype = (ctypes.c_char_p, ctypes.c_void_p), ctypes.c_int64
    shapes = shapes_of(kernel).values()
    puts = [_put_of(shape) for shape in shapes]
    pack = struct.Struct(f"={sum(map(words_of, shapes))}q").pack
    result_count = results_of(kernel)

    def call(*arguments: Any) -> Any:
        words: list[int] = []
        for put, argument in zip(puts, arguments, strict=True):
            put(words, argument)
        more = ctypes.c_int64()
        result = entry(pack(*words), ctypes.byref(more))
        return (result, more.value) if result_count == 2 else result if result_count else None

    call.__name__ = kernel
    return call


def _put_of(shape: Shape) -> Put:
    if isinstance(shape, ItemShape):
        return _put_array(shape.item, shape.dimensions)
    if isinstance(shape, FieldShape):
        return _put_tuple([_put_of(field) for field in shape.fields], holds_numbers=None in shape.fields)
    return list.append


def _put_array(item: str, dimensions: int) -> Put:
    """Of NumPy, or a writable `memoryview`."""
    formats = _FORMATS[item]
    types: set[Any] = set()  # as arrays have them, which are this one
    wanted = f"expected {dimensions} of {item}, in one piece"

    def put(words: list[int], array: Any) -> None:
        if type(array) is memoryview:
            if not array.nbytes:
                words.extend((0,) * (1 + dimensions))
                return
            if array.format not in formats or array.ndim != dimensions or not array.c_contiguous:
                raise TypeError(f"{array.ndim} dimensions of {array.format!r}: {wanted}")
            words += [ctypes.addressof(_BYTE.from_buffer(array)), *(array.shape or ())]
            return
        flags, kind = array.flags, array.dtype
        if kind not in types and kind.name == item:
            types.add(kind)
        if kind not in types or array.ndim != dimensions or not flags.c_contiguous:
            raise TypeError(f"{array.ndim} dimensions of {kind}: {wanted}")
        if flags.writeable and array.size:
            words.append(ctypes.addressof(_BYTE.from_buffer(array)))  # the quickest way to it
        else:
            words.append(array.__array_interface__["data"][0])
        words.extend(array.shape)

    return put


def _put_tuple(puts: list[Put], *, holds_numbers: bool) -> Put:
    """Keeps the words of the last arrays, which come again block by block."""
    known: tuple[list[Any], list[int]] = [], []  # references that keep no array, and words

    def put_all(words: list[int], fields: Any) -> None:
        for put, field in zip(puts, fields, strict=True):
            put(words, field)

    def put_known(words: list[int], fields: Any) -> None:
        nonlocal known
        arrays, kept = known
        for array, field in zip(arrays or NOTHING_KNOWN, fields, strict=False):
            if array() is not field:
                kept = []
                put_all(kept, fields)
                known = [weakref.ref(field) for field in fields], kept
                break
        words += kept

    return put_all if holds_numbers else put_known

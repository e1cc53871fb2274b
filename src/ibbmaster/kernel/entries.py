"""Compiled kernels as functions that Python can call, without Numba."""

from __future__ import annotations

import ctypes
import struct
import weakref
from collections.abc import Callable, Iterable
from typing import Any

import llvmlite.binding as llvm

from ibbmaster.kernel.shapes import FieldShape, ItemShape, Shape, results_of, shapes_of, words_of

ENTRY = "ibbmaster_"  # begins the name of each
_ENTRY_KIND = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_char_p, ctypes.c_void_p)  # called without the lock
_RESULTS = ctypes.c_int64 * 2
_BYTE = ctypes.c_char
NOTHING_KNOWN = (lambda: None,)  # in place of references to arrays
_FORMATS = {"uint8": ("B",), "int32": ("i",), "int64": ("q", "l")}  # by the name of a type of NumPy, as of `memoryview`

Put = Callable[[list[int], Any], None]  # adds the words of an argument


class KernelError(Exception):
    """A kernel has raised an exception: none does, as long as it is given what it takes."""


class Entries:
    """What was loaded: a function for each kernel, by its name. As `Kernels` says."""

    def __init__(self) -> None:
        self._engines: list[Any] = []  # each with the code of an object file

    def add(self, code: bytes, kernels: Iterable[str]) -> None:
        """Load an object file that has these kernels. Raises KernelError: it has them not."""
        engine = _engine()
        engine.add_object_file(llvm.object_file.ObjectFileRef.from_data(code))
        engine.finalize_object()
        for kernel in kernels:
            address = engine.get_function_address(ENTRY + kernel)
            if not address:
                raise KernelError(f"{kernel} is not in the object file")
            setattr(self, kernel, _function(kernel, address))
        self._engines.append(engine)


def _engine() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(jit=True)
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine, use_lmm=True)  # one piece of memory: see there


def _function(kernel: str, address: int) -> Callable[..., Any]:
    """A kernel, at the address of its entry."""
    entry = _ENTRY_KIND(address)
    shapes = shapes_of(kernel)
    puts = [_put_of(shape) for shape in shapes]
    pack = struct.Struct(f"={sum(map(words_of, shapes))}q").pack
    result_count = results_of(kernel)

    def call(*arguments: Any) -> Any:
        words: list[int] = []
        for put, argument in zip(puts, arguments, strict=True):
            put(words, argument)
        results = _RESULTS()
        if entry(pack(*words), results):
            raise KernelError(f"{kernel} has raised an exception")
        if result_count == 1:
            return results[0]
        return (results[0], results[1]) if result_count else None

    call.__name__ = kernel
    return call


def _put_of(shape: Shape) -> Put:
    if isinstance(shape, ItemShape):
        return _put_array(shape.item, shape.dimensions)
    if isinstance(shape, FieldShape):
        return _put_tuple([_put_of(field) for field in shape.fields], holds_numbers=None in shape.fields)
    return list.append


def _put_array(item: str, dimensions: int) -> Put:
    """Words of an array of NumPy, or of a `memoryview` that can be written: who has no other use for it needs none."""
    formats = _FORMATS[item]
    types: set[Any] = set()  # as arrays have them, which are this one
    wanted = f"expected {dimensions} of {item}, in one piece"

    def put(words: list[int], array: Any) -> None:
        if type(array) is memoryview:
            if array.format not in formats or array.ndim != dimensions or not array.c_contiguous:
                raise TypeError(f"{array.ndim} dimensions of {array.format!r}: {wanted}")
            words.append(ctypes.addressof(_BYTE.from_buffer(array)) if array.nbytes else 0)
            words.extend(array.shape or ())
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
    """Words of a tuple. Those of the last arrays are known still when they come again, as they do block by block."""
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

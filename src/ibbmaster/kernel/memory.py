"""Loads, stores and copies at any address, as compiled kernels need them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic


def jit(function: Callable[..., Any], **options: Any) -> Any:
    """Compile without the interpreter's lock, and without counting references; once for constants and other numbers."""
    dispatcher = njit(nogil=True, _nrt=False, **options)(function)
    template_for = dispatcher.get_call_template
    dispatcher.get_call_template = lambda taken, named: template_for(
        tuple(map(types.unliteral, taken)), {name: types.unliteral(kind) for name, kind in named.items()}
    )
    return dispatcher


def inlined(function: Callable[..., Any]) -> Any:
    """Compile into each caller. LLVM does that: Numba would find the types of a body anew at each call."""
    return jit(function, forceinline=True)


def _pointer(context: Any, builder: Any, array_type: Any, array: Any, offset: Any) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    return builder.gep(data, [offset])


def loader(width: int, result: Any, *, behind: int = 0, highest_first: bool = False) -> Any:
    """A function that loads `width` bits from `behind` bytes after an offset of an array."""

    @intrinsic
    def load(typing_context: Any, array: Any, offset: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            offset = builder.add(args[1], ir.Constant(args[1].type, behind))
            pointer = _pointer(context, builder, signature.args[0], args[0], offset)
            value = builder.load(builder.bitcast(pointer, ir.IntType(width).as_pointer()))
            value.align = 1
            if highest_first:
                value = builder.bswap(value)
            return builder.zext(value, ir.IntType(64)) if width < 64 else value

        return result(array, types.int64), generate

    return load


load64_big = loader(64, types.uint64, highest_first=True)
load16, load32, load64 = loader(16, types.int64), loader(32, types.int64), loader(64, types.uint64)


def _store(width: int) -> Any:
    @intrinsic
    def store(typing_context: Any, array: Any, offset: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            pointer = _pointer(context, builder, signature.args[0], args[0], args[1])
            pointer = builder.bitcast(pointer, ir.IntType(width).as_pointer())
            number = builder.trunc(args[2], ir.IntType(width)) if width < 64 else args[2]
            builder.store(number, pointer).align = 1
            return context.get_dummy_value()

        return types.void(array, types.int64, types.int64), generate

    return store


store32, store64 = _store(32), _store(64)


@intrinsic
def copy(typing_context: Any, target: Any, to: Any, source: Any, start: Any, size: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        target_pointer = _pointer(context, builder, signature.args[0], args[0], args[1])
        source_pointer = _pointer(context, builder, signature.args[2], args[2], args[3])
        cgutils.raw_memcpy(builder, target_pointer, source_pointer, args[4], itemsize=1, align=1)
        return context.get_dummy_value()

    return types.void(target, types.int64, source, types.int64, types.int64), generate


@intrinsic
def copy32(typing_context: Any, target: Any, to: Any, source: Any, start: Any) -> Any:
    """Copy 32 bytes; cheaper than a call for a few of them."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vector = ir.VectorType(ir.IntType(8), 32).as_pointer()
        source_pointer = _pointer(context, builder, signature.args[2], args[2], args[3])
        value = builder.load(builder.bitcast(source_pointer, vector))
        value.align = 1
        target_pointer = _pointer(context, builder, signature.args[0], args[0], args[1])
        builder.store(value, builder.bitcast(target_pointer, vector)).align = 1
        return context.get_dummy_value()

    return types.void(target, types.int64, source, types.int64), generate

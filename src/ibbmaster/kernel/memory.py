"""Loads, stores and copies at any address, as compiled kernels need them."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils, config
from numba.extending import intrinsic

jit = njit(nogil=True, cache=bool(config.CACHE_DIR))


def _pointer(context: Any, builder: Any, array_type: Any, array: Any, offset: Any) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    return builder.gep(data, [offset])


def _load(width: int, result: Any) -> Any:
    @intrinsic
    def load(typing_context: Any, array: Any, offset: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            pointer = _pointer(context, builder, signature.args[0], args[0], args[1])
            value = builder.load(builder.bitcast(pointer, ir.IntType(width).as_pointer()))
            value.align = 1
            return builder.zext(value, ir.IntType(64)) if width < 64 else value

        return result(array, types.int64), generate

    return load


load16, load32, load64 = _load(16, types.int64), _load(32, types.int64), _load(64, types.uint64)


@intrinsic
def store32(typing_context: Any, array: Any, offset: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _pointer(context, builder, signature.args[0], args[0], args[1])
        pointer = builder.bitcast(pointer, ir.IntType(32).as_pointer())
        builder.store(builder.trunc(args[2], ir.IntType(32)), pointer).align = 1
        return context.get_dummy_value()

    return types.void(array, types.int64, types.int64), generate


@intrinsic
def copy(typing_context: Any, target: Any, to: Any, source: Any, start: Any, size: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        target_pointer = _pointer(context, builder, signature.args[0], args[0], args[1])
        source_pointer = _pointer(context, builder, signature.args[2], args[2], args[3])
        cgutils.raw_memcpy(builder, target_pointer, source_pointer, args[4], itemsize=1, align=1)
        return context.get_dummy_value()

    return types.void(target, types.int64, source, types.int64, types.int64), generate

"""CRC-32 as zlib has it, with carry-less multiplication where the CPU has it, or an instruction of its own.

To multiply, lanes of 16 bytes are folded into each other: one that is some way before another may be
multiplied by what a one becomes on that way, and added to it.

The reference: `zlib.crc32`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from llvmlite import ir
from numba import types, uint32, uint64
from numba.core import cgutils
from numba.extending import intrinsic

from ibbmaster.kernel.cpu import has
from ibbmaster.kernel.crc32c import byte_tables, word_instruction
from ibbmaster.kernel.memory import jit, load64

ZLIB = 0xEDB88320  # its polynomial, lowest power first
TABLES = byte_tables(ZLIB)
LANE = 16  # bytes
WIDE = 4  # lanes of the widest register
_I32, _I64, _I128 = ir.IntType(32), ir.IntType(64), ir.IntType(128)


HAS_INSTRUCTION = has("pclmul") or has("crc")  # of x86-64 and of AArch64
MULTIPLIES = has("pclmul")
HAS_WIDE_INSTRUCTION = has("pclmul", "vpclmulqdq", "avx512f")


def power(exponent: int) -> int:
    """x to this power, modulo the polynomial; as all of these, the lowest power in the highest of 33 bits."""
    register = 1 << 31
    for _ in range(exponent):
        register = (register >> 1) ^ (ZLIB if register & 1 else 0)
    return register << 1


def quotient() -> int:
    """x^64 divided by the polynomial."""
    divisor = 1 << 32 | int(f"{ZLIB:032b}"[::-1], 2)
    rest, result = 1 << 64, 0
    for bit in range(32, -1, -1):
        if rest >> (bit + 32) & 1:
            rest ^= divisor << bit
            result |= 1 << bit
    return int(f"{result:033b}"[::-1], 2)


def over(lanes: int) -> tuple[int, int]:
    """What turns the two halves of a lane into what they are worth `lanes` lanes further on."""
    return power(128 * lanes + 32), power(128 * lanes - 32)


OVER_A_LANE = over(1)
OVER_HALF_A_LANE = power(64)
POLYNOMIAL = ZLIB << 1 | 1
QUOTIENT = quotient()


def _vector(lanes: int) -> ir.VectorType:
    return ir.VectorType(_I64, 2 * lanes)


def _constant(*halves: int) -> ir.Constant:
    return ir.Constant(ir.VectorType(_I64, len(halves)), list(halves))


def _multiply(builder: Any, one: Any, other: Any, halves: int) -> Any:
    """Half of each lane of one by half of that of another: 0x10 takes the lower of `one` and the upper of `other`."""
    kind = ir.FunctionType(one.type, [one.type, one.type, ir.IntType(8)])
    lanes = one.type.count // 2
    name = "llvm.x86.pclmulqdq" + ("" if lanes == 1 else f".{128 * lanes}")
    function = cgutils.get_or_insert_function(builder.module, kind, name)
    return builder.call(function, [one, other, ir.Constant(ir.IntType(8), halves)])


def _folded(builder: Any, vector: Any, lanes: int, onto: Any) -> Any:
    """A vector and another one `lanes` lanes after it, as one."""
    constants = _constant(*over(lanes) * (vector.type.count // 2))
    low, high = _multiply(builder, vector, constants, 0x00), _multiply(builder, vector, constants, 0x11)
    return builder.xor(builder.xor(low, high), onto)


def _reduced(builder: Any, lane: Any) -> Any:
    """The register of 32 bits after a lane."""

    def moved_down(value: Any, bits: int) -> Any:
        whole = builder.lshr(builder.bitcast(value, _I128), ir.Constant(_I128, bits))
        return builder.bitcast(whole, _vector(1))

    lower = _constant(0xFFFFFFFF, 0xFFFFFFFF)
    folded = builder.xor(moved_down(lane, 64), _multiply(builder, lane, _constant(*OVER_A_LANE), 0x10))
    short = _multiply(builder, builder.and_(folded, lower), _constant(OVER_HALF_A_LANE, 0), 0x00)
    folded = builder.xor(short, moved_down(folded, 32))
    division = _constant(POLYNOMIAL, QUOTIENT)
    times = builder.and_(_multiply(builder, builder.and_(folded, lower), division, 0x10), lower)
    rest = builder.xor(folded, _multiply(builder, times, division, 0x00))
    return builder.trunc(builder.lshr(builder.extract_element(rest, ir.Constant(_I32, 0)), ir.Constant(_I64, 32)), _I32)


class _Folding:
    """Builds the code that folds the bytes of an array into a lane: what all before its end is worth there."""

    def __init__(self, builder: Any, data: Any, register: Any, start: Any, end: Any) -> None:
        """Begin with the lane at `start`."""
        self._builder = builder
        self._data = data
        self._end = end
        first = self._load(start, 1)
        before = builder.insert_element(_constant(0, 0), builder.zext(register, _I64), ir.Constant(_I32, 0))
        self._lane = cgutils.alloca_once_value(builder, builder.xor(first, before))
        self._offset = cgutils.alloca_once_value(builder, builder.add(start, _number(LANE)))  # after the lane

    @property
    def lane(self) -> Any:
        return self._builder.load(self._lane)

    def take_four(self, width: int) -> None:
        """Fold four vectors of `width` lanes at a time, while there are four."""
        builder = self._builder
        offset = builder.sub(builder.load(self._offset), _number(LANE))
        with builder.if_then(self._has(offset, 4 * width)):
            first = self._load(offset, width)
            for index in (0, 1):
                half = builder.extract_element(self.lane, ir.Constant(_I32, index))
                first = builder.insert_element(first, half, ir.Constant(_I32, index))
            others = (self._load(self._behind(offset, width * index), width) for index in (1, 2, 3))
            vectors = [cgutils.alloca_once_value(builder, value) for value in (first, *others)]
            builder.store(self._behind(offset, 4 * width), self._offset)
            with _loop(builder, lambda: self._has(builder.load(self._offset), 4 * width)):
                for vector in vectors:
                    builder.store(_folded(builder, builder.load(vector), 4 * width, self._next(width)), vector)
            whole = builder.load(vectors[0])
            for vector in vectors[1:]:
                whole = _folded(builder, whole, width, builder.load(vector))
            lane = None
            for index in range(width):
                part = ir.Constant(ir.VectorType(_I32, 2), [2 * index, 2 * index + 1])
                part = builder.shuffle_vector(whole, whole, part)
                lane = part if lane is None else _folded(builder, lane, 1, part)
            builder.store(lane, self._lane)

    def take_rest(self) -> None:
        """Fold lane after lane, and the bytes after the last one."""
        builder = self._builder
        with _loop(builder, lambda: self._has(builder.load(self._offset), 1)):
            builder.store(_folded(builder, self.lane, 1, self._next(1)), self._lane)
        left = builder.sub(self._end, builder.load(self._offset))
        with builder.if_then(builder.icmp_signed(">", left, _number(0))):
            # The lane and these bytes, divided so that the second part is a whole lane.
            kept = builder.zext(builder.shl(left, _number(3)), _I128)
            moved = builder.sub(ir.Constant(_I128, 8 * LANE), kept)
            lane = builder.bitcast(self.lane, _I128)
            last = builder.bitcast(self._load(builder.sub(self._end, _number(LANE)), 1), _I128)
            rest = builder.shl(builder.lshr(last, moved), moved)
            second = builder.bitcast(builder.or_(builder.lshr(lane, kept), rest), _vector(1))
            first = builder.bitcast(builder.shl(lane, moved), _vector(1))
            builder.store(_folded(builder, first, 1, second), self._lane)

    def _next(self, width: int) -> Any:
        offset = self._builder.load(self._offset)
        self._builder.store(self._behind(offset, width), self._offset)
        return self._load(offset, width)

    def _behind(self, offset: Any, lanes: int) -> Any:
        return self._builder.add(offset, _number(LANE * lanes))

    def _has(self, offset: Any, lanes: int) -> Any:
        return self._builder.icmp_signed("<=", self._behind(offset, lanes), self._end)

    def _load(self, offset: Any, width: int) -> Any:
        pointer = self._builder.bitcast(self._builder.gep(self._data, [offset]), _vector(width).as_pointer())
        value = self._builder.load(pointer)
        value.align = 1
        return value


def _number(value: int) -> ir.Constant:
    return ir.Constant(_I64, value)


@intrinsic
def fold(typing_context: Any, register: Any, source: Any, start: Any, end: Any) -> Any:
    """The register after source[start:end], of at least 16 bytes."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        register, source, *rest = args
        data = context.make_array(signature.args[1])(context, builder, source).data
        folding = _Folding(builder, data, register, *rest)
        if HAS_WIDE_INSTRUCTION:
            folding.take_four(WIDE)
        folding.take_four(1)
        folding.take_rest()
        return _reduced(builder, folding.lane)

    return types.uint32(types.uint32, source, types.int64, types.int64), generate


@contextlib.contextmanager
def _loop(builder: Any, goes_on: Callable[[], Any]) -> Iterator[None]:
    """What is built inside is done again and again while a condition, built anew each time, is true."""
    condition, body, behind = (builder.append_basic_block(name) for name in ("condition", "body", "behind"))
    builder.branch(condition)
    with builder.goto_block(condition):
        builder.cbranch(goes_on(), body, behind)
    with builder.goto_block(body):
        yield
        builder.branch(condition)
    builder.position_at_end(behind)


if has("crc"):
    _crc_word = word_instruction("llvm.aarch64.crc32x", 32)

    @jit
    def by_word(register, word):
        """The register after eight bytes more."""
        return uint32(_crc_word(uint64(register), word))

else:

    @jit
    def by_word(register, word):
        """The register after eight bytes more."""
        mixed = word ^ uint64(register)
        return uint32(
            TABLES[7, mixed & uint64(0xFF)]
            ^ TABLES[6, (mixed >> uint64(8)) & uint64(0xFF)]
            ^ TABLES[5, (mixed >> uint64(16)) & uint64(0xFF)]
            ^ TABLES[4, (mixed >> uint64(24)) & uint64(0xFF)]
            ^ TABLES[3, (mixed >> uint64(32)) & uint64(0xFF)]
            ^ TABLES[2, (mixed >> uint64(40)) & uint64(0xFF)]
            ^ TABLES[1, (mixed >> uint64(48)) & uint64(0xFF)]
            ^ TABLES[0, mixed >> uint64(56)]
        )


@jit
def by_words(register, source, start, end):
    """The register after source[start:end]."""
    offset = start
    while end - offset >= 8:
        register = by_word(register, load64(source, offset))
        offset += 8
    while offset < end:
        register = uint32(TABLES[0, (register ^ uint32(source[offset])) & uint32(0xFF)] ^ (register >> uint32(8)))
        offset += 1
    return register


@jit
def crc32(source, start, end, before):
    """The checksum of source[start:end] after what has the checksum `before`, 0 for nothing."""
    register = uint32(before) ^ uint32(0xFFFFFFFF)
    if MULTIPLIES and end - start >= LANE:
        return int(fold(register, source, start, end) ^ uint32(0xFFFFFFFF))
    return int(by_words(register, source, start, end) ^ uint32(0xFFFFFFFF))

"""CRC-32C of pages, with the instruction of the CPU where it has one.

The reference: `ibbmaster.ibb.page.verify_page`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types, uint32, uint64
from numba.core import cgutils
from numba.extending import intrinsic

from ibbmaster.ibb.page import PAGE_SIZE as _PAGE_SIZE
from ibbmaster.kernel.cpu import has
from ibbmaster.kernel.memory import jit, load32, load64

PAGE = int(_PAGE_SIZE)
DATA = PAGE - 4
CASTAGNOLI = 0x82F63B78  # polynomial of CRC-32C
STREAM_WORDS = 682  # three streams of that many words are 16368 bytes of a page; one word and a half are left
STREAM_BYTES = 8 * STREAM_WORDS


def byte_tables(polynomial: int) -> np.ndarray:
    """Eight tables of 256 for a reflected CRC of 32 bits.

    They say what a byte does to the register after 0 to 7 more bytes of zeros.
    """
    tables = np.zeros((8, 256), dtype=np.uint32)
    tables[0] = np.arange(256)
    for _ in range(8):
        tables[0] = tables[0] >> 1 ^ (tables[0] & 1) * np.uint32(polynomial)
    for index in range(1, 8):
        tables[index] = (tables[index - 1] >> 8) ^ tables[0][tables[index - 1] & 0xFF]
    return tables


def _shift_tables(size: int) -> np.ndarray:
    """Four tables: what each byte of the register becomes after `size` bytes of zeros."""
    zero_table = BYTE_TABLES[0]
    registers = np.uint32(1) << np.arange(32, dtype=np.uint32)
    for _ in range(size):
        registers = (registers >> 8) ^ zero_table[registers & 0xFF]
    bits = np.arange(256, dtype=np.uint32)[:, None] >> np.arange(8, dtype=np.uint32) & 1
    tables: np.ndarray = np.bitwise_xor.reduce(bits * registers.reshape(4, 1, 8), axis=2)
    return tables


BYTE_TABLES = byte_tables(CASTAGNOLI)
SHIFT_TABLES = _shift_tables(STREAM_BYTES)


def word_instruction(name: str, register_bits: int) -> Any:
    """A function for the instruction that LLVM calls `name`: a register, and it after a word of eight bytes more."""

    @intrinsic
    def crc_word(typing_context: Any, register: Any, word: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            register, word = args
            bits = ir.IntType(register_bits)
            function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(bits, [bits, word.type]), name)
            if bits == word.type:
                return builder.call(function, [register, word])
            return builder.zext(builder.call(function, [builder.trunc(register, bits), word]), word.type)

        return types.uint64(types.uint64, types.uint64), generate

    return crc_word


HAS_INSTRUCTION = has("sse4.2") or has("crc")  # of x86-64 and of AArch64


if has("sse4.2"):
    crc_word = word_instruction("llvm.x86.sse42.crc32.64.64", 64)
elif has("crc"):
    crc_word = word_instruction("llvm.aarch64.crc32cx", 32)
else:

    @jit
    def crc_word(register, word):
        mixed = uint64(register ^ word)
        result = uint32(0)
        for index in range(8):
            result = uint32(result ^ BYTE_TABLES[7 - index, (mixed >> uint64(8 * index)) & uint64(0xFF)])
        return uint64(result)


@jit
def crc_byte(register, byte):
    return uint64(BYTE_TABLES[0, (register ^ uint64(byte)) & uint64(0xFF)]) ^ (register >> uint64(8))


@jit
def shift(register):
    low = uint32(register)
    return uint64(
        SHIFT_TABLES[0, low & uint32(0xFF)]
        ^ SHIFT_TABLES[1, (low >> uint32(8)) & uint32(0xFF)]
        ^ SHIFT_TABLES[2, (low >> uint32(16)) & uint32(0xFF)]
        ^ SHIFT_TABLES[3, (low >> uint32(24)) & uint32(0xFF)]
    )


@jit
def page_crc(block, start):
    """CRC-32C of the data area of the page that begins at `start`: three streams at once, then the rest."""
    first, second, third = uint64(0xFFFFFFFF), uint64(0), uint64(0)
    offset = start
    for _ in range(STREAM_WORDS):
        first = crc_word(first, load64(block, offset))
        second = crc_word(second, load64(block, offset + STREAM_BYTES))
        third = crc_word(third, load64(block, offset + 2 * STREAM_BYTES))
        offset += 8
    register = shift(shift(first) ^ second) ^ third
    offset = start + 3 * STREAM_BYTES
    register = crc_word(register, load64(block, offset))
    for index in range(4):
        register = crc_byte(register, block[offset + 8 + index])
    return register ^ uint64(0xFFFFFFFF)


@jit
def is_page_good(block, start):
    """Whether the checksum of a page is right, or the page is blank."""
    if page_crc(block, start) == uint64(load32(block, start + DATA)):
        return True
    for offset in range(start, start + PAGE, 8):
        if load64(block, offset) != uint64(0):
            return False
    return True

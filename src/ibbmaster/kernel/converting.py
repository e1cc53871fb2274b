"""A kernel that makes commit records of the small, plain groups of a traditional binlog.

It stops before whatever is not plain; the reference takes that: `ibbmaster.classic.groups`
for what is read, `ibbmaster.ibb.appender` for what is written.
"""

from __future__ import annotations

import numpy as np
from numba import int64

from ibbmaster.kernel.classic_groups import copy_events, group_end
from ibbmaster.kernel.crc32c import DATA, PAGE, page_crc
from ibbmaster.kernel.fields import COMMIT, CONT, FILLER, LAST, Conversion
from ibbmaster.kernel.group_begin import domain_of, sequence_of, server_of
from ibbmaster.kernel.memory import copy, jit, store32


@jit
def record_end(position, size):
    """Where in the pages a record of `size` bytes ends that begins at a position."""
    page, offset = position // PAGE, position % PAGE
    left = size
    while left > 0:
        room = DATA - offset
        if room >= 4:
            piece = min(left, room - 3)
            left -= piece
            offset += 3 + piece
        if left > 0 or offset == DATA:
            page += 1
            offset = 0
    return page * PAGE + offset


@jit
def place_record(record, size, pages, position):
    """Place a commit record, in chunks; returns the position after it."""
    done = 0
    while done < size:
        offset = position % PAGE
        room = DATA - offset
        if room < 4:
            for index in range(room):
                pages[position + index] = FILLER
            position = (position // PAGE + 1) * PAGE
            continue
        piece = min(size - done, room - 3)
        type_byte = COMMIT
        if done > 0:
            type_byte |= CONT
        if done + piece == size:
            type_byte |= LAST
        pages[position] = type_byte
        pages[position + 1] = piece & 0xFF
        pages[position + 2] = piece >> 8
        copy(pages, position + 3, record, done, piece)
        done += piece
        position += 3 + piece
        if position % PAGE == DATA:
            position = (position // PAGE + 1) * PAGE
    return position


@jit
def seal_pages(pages, count):
    """Give the first pages their checksums. The reference: `ibbmaster.store.writer`."""
    for page in range(count):
        store32(pages, page * PAGE + DATA, int64(page_crc(pages, page * PAGE)))


@jit
def is_newest(pairs, count, domain_id, sequence):
    """Whether an unsigned sequence number is above all that the pairs of a domain have."""
    for pair in range(count):
        if pairs[pair, 0] == domain_id and np.uint64(pairs[pair, 2]) >= sequence:
            return False
    return True


@jit
def convert_groups(source, end, numbers, pairs, roles, scratch, pages):
    """Append plain groups of source[READ_AT:end] to the pages, while they end before WRITE_END.

    Stops before a group that is not plain, not whole here, too long, of a pair that is not
    known, or not newer than every number that a pair of its domain has.
    """
    offset = numbers[Conversion.READ_AT]
    position = numbers[Conversion.WRITE_AT]
    checksum_bytes = numbers[Conversion.CHECKSUM_BYTES]
    pair = 0
    while True:
        behind, total = group_end(source, offset, end, numbers, roles)
        if behind < 0 or total + 1 > numbers[Conversion.RECORD_MAX] or total + 1 > len(scratch):
            break
        if record_end(position, total + 1) > numbers[Conversion.WRITE_END]:
            break
        server_id, domain_id = server_of(source, offset), domain_of(source, offset)
        if pairs[pair, 0] != domain_id or pairs[pair, 1] != server_id:
            pair = 0
            while pair < numbers[Conversion.PAIRS] and (pairs[pair, 0] != domain_id or pairs[pair, 1] != server_id):
                pair += 1
            if pair >= numbers[Conversion.PAIRS]:
                break
        sequence = sequence_of(source, offset)
        if not is_newest(pairs, numbers[Conversion.PAIRS], domain_id, sequence):
            break
        numbers[Conversion.NOTED] += 1
        pairs[pair, 2] = int(sequence)
        pairs[pair, 3] = numbers[Conversion.NOTED]
        scratch[0] = 0  # nothing is out of band
        copy_events(source, offset, behind, checksum_bytes, scratch, 1)
        offset = behind
        position = place_record(scratch, 1 + total, pages, position)
        numbers[Conversion.EVENT_BYTES] += total
    numbers[Conversion.READ_AT] = offset
    numbers[Conversion.WRITE_AT] = position

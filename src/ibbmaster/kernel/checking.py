"""Kernels that read pages, and check those whose records are all as they should be; they stop where one is not.

The reference, which says what is wrong: `ibbmaster.log.verify`.
"""

from __future__ import annotations

from numba import int64, uint64

from ibbmaster.event.header import TYPE_OFFSET
from ibbmaster.kernel.crc32c import DATA, PAGE, is_page_good
from ibbmaster.kernel.fields import (
    CHUNK_HEADER,
    COMMIT,
    CONT,
    EVENT_HEADER,
    FILLER,
    GROUP_BEGIN,
    GTID_STATE,
    LAST,
    NODE_HEAD_MIN,
    OOB_DATA,
    PARTIAL_ROW_DATA,
    TYPE_MASK,
    ChunkColumn,
    Field,
    Found,
    PairColumn,
    Status,
)
from ibbmaster.kernel.group_begin import is_group, is_group_begin, is_step_back, note_group, size_of
from ibbmaster.kernel.memory import copy, inlined, jit, load32
from ibbmaster.kernel.pump import _pread
from ibbmaster.kernel.scan import index_chunks

PAGES_PER_READ = 16
COMMIT_BEGIN = 1 + GROUP_BEGIN  # bytes of a commit record that identify its group, if none of it is out of band


@jit
def read_pages(file, offset, pages):
    """Fill `pages` from an offset of a file on; returns how many are whole, and how many from the first on are right.

    They end where the file does, and at an error of reading.
    """
    size = good = int64(0)
    end = len(pages)
    is_right = True
    while size < end:
        wanted = min(end - size, PAGES_PER_READ * PAGE - size % PAGE)
        taken = _pread(file, pages.ctypes.data + size, wanted, offset + size)
        if taken <= 0:
            break
        size += taken
        while is_right and (good + 1) * PAGE <= size:
            is_right = is_page_good(pages, good * PAGE)
            good += int64(is_right)
    return size // PAGE, good


@inlined
def is_filled(pages, chunk_end, start):
    """Whether a chunk may begin at `start` if the one before ends at `chunk_end`: at once, or on the next page."""
    is_good = start == chunk_end
    end = chunk_end // PAGE * PAGE + DATA
    if start == end + PAGE - DATA and end - chunk_end <= CHUNK_HEADER:
        is_good = True
        for offset in range(chunk_end, end):
            is_good = is_good and pages[offset] == FILLER
    return is_good


@inlined
def note_found(found, row, place, size, first_size, record_type):
    """Note a record that was not looked into."""
    found[row, Found.PAGE], found[row, Found.OFFSET] = place // PAGE, place % PAGE
    found[row, Found.SIZE], found[row, Found.FIRST_SIZE] = size, first_size
    found[row, Found.TYPE] = record_type


@jit
def split_events(pages, start, size, state, head, head_at):
    """Divide the bytes that come next of a stream into events: EVENT_LEFT and HEAD_HELD go on.

    A header that is cut is held at a place of `head`.

    False if an event cannot have its size, or is a fragment of a row event, which the reference looks into.
    """
    offset, end = start, start + size
    while offset < end:
        left, held = state[Field.EVENT_LEFT], state[Field.HEAD_HELD]
        if left > 0:
            passed = min(left, end - offset)
            state[Field.EVENT_LEFT] = left - passed
            offset += passed
            continue
        if held == 0 and end - offset >= EVENT_HEADER:
            event_size, event_type = size_of(pages, offset), pages[uint64(offset + TYPE_OFFSET)]
            offset += EVENT_HEADER
        else:
            taken = min(EVENT_HEADER - held, end - offset)
            copy(head, head_at + held, pages, offset, taken)
            offset += taken
            state[Field.HEAD_HELD] = held + taken
            if held + taken < EVENT_HEADER:
                break
            state[Field.HEAD_HELD] = 0
            event_size, event_type = size_of(head, head_at), head[head_at + TYPE_OFFSET]
        if event_size < EVENT_HEADER or event_type == PARTIAL_ROW_DATA:
            return False
        state[Field.EVENT_LEFT] = event_size - EVENT_HEADER
    return True


@inlined
def note_commit(source, start, pairs, state, place):
    """Note the group whose GTID event begins at `start`, and whose commit record begins at a place of the pages.

    False if its number is not above the last of its pair, or there is no room for its pair.
    """
    known = state[Field.PAIRS]
    if is_step_back(source, start, pairs, state):
        return False
    pair = note_group(source, start, pairs, state)
    if pair < 0:
        return False
    page, offset = place // PAGE, place % PAGE
    if pair == known:
        pairs[pair, PairColumn.FIRST] = pairs[pair, PairColumn.LAST]
        pairs[pair, PairColumn.FIRST_PAGE], pairs[pair, PairColumn.FIRST_OFFSET] = page, offset
    pairs[pair, PairColumn.LAST_PAGE], pairs[pair, PairColumn.LAST_OFFSET] = page, offset
    return True


@jit
def check_commit(pages, start, size, pairs, state, place):
    """Note the group of a commit record that is one chunk.

    False if it has a part out of band, is not whole events, has fragments of row events, or as of `note_commit`.
    """
    if pages[uint64(start)] != 0 or not is_group(pages, start + 1, start + size, PARTIAL_ROW_DATA):
        return False
    return note_commit(pages, start + 1, pairs, state, place)


@jit
def take_commit(pages, start, size, held, state, scratch):
    """Take a chunk of a commit record that has several, after `held` bytes of the record; False as of `split_events`.

    The scratch keeps how the record begins, and behind that an event header that is cut.
    """
    if held < COMMIT_BEGIN:
        copy(scratch, held, pages, start, min(size, COMMIT_BEGIN - held))
    skipped = 0
    if held == 0:
        state[Field.EVENT_LEFT] = state[Field.HEAD_HELD] = 0
        skipped = 1
    return split_events(pages, start + skipped, size - skipped, state, scratch, COMMIT_BEGIN)


@jit
def end_commit(size, pairs, state, scratch, place):
    """Note the group of a commit record that `take_commit` has taken; False as of `check_commit`."""
    is_whole = state[Field.EVENT_LEFT] == 0 and state[Field.HEAD_HELD] == 0
    if not is_whole or scratch[0] != 0 or not is_group_begin(scratch, 1, min(size, COMMIT_BEGIN)):
        return False
    return note_commit(scratch, 1, pairs, state, place)


@jit
def split_node(pages, place, header_size, state, head):
    """Divide the data of an out-of-band record, which `check_table` has found whole, as `split_events`."""
    left = header_size
    page = place // PAGE
    offset = place % PAGE
    while True:
        start = page * PAGE + offset
        chunk = load32(pages, start)
        type_byte, size = chunk & 0xFF, chunk >> 8 & 0xFFFF
        if offset > DATA - CHUNK_HEADER - 1 or type_byte == FILLER:
            page, offset = page + 1, 0
            continue
        if type_byte & TYPE_MASK == OOB_DATA:
            passed = min(left, size)
            left -= passed
            if not split_events(pages, start + CHUNK_HEADER + passed, size - passed, state, head, 0):
                return 0
            if type_byte & LAST:
                return 1
        offset += CHUNK_HEADER + size


@jit
def check_table(pages, count, checking):
    """Check whole inline groups and out-of-band records of `count` pages from a place between records on.

    Stops, with the place in `state`, before the first record that is another, not whole here,
    or not right, and before a group whose number is not above the one before of its pair. Of the state record that
    is due at DUE the place is noted, and after it, or after the record that it stands in, it stops, too.
    GROUPS and PAIRS continue counting. Returns how many nodes and states were found, what is in them was not
    looked at, and NEED_MORE where that record continues after the block.
    """
    state, table, pairs, found, scratch = checking
    place = chunk_end = state[Field.PAGE] * PAGE + state[Field.OFFSET]  # all before is right; the last chunk ends there
    due = state[Field.DUE] * PAGE if state[Field.DUE] >= 0 else int64(len(pages))
    rows_found = kept = 0  # the latter of what is right to its end
    held = first_size = second_size = int64(0)  # bytes of the current record, and of chunks its head may be in
    row = rows = int64(0)
    status = Status.NEED_MORE
    is_good, has_state = True, False
    while is_good and not (has_state and place == chunk_end):
        if row == rows:
            if status != Status.NEED_MORE or state[Field.PAGE] >= count:
                break
            rows, status = index_chunks(pages, state[Field.PAGE] + 1, state, table, int64(0))
            row = int64(0)
            continue
        start, size = int64(table[row, ChunkColumn.START]), int64(table[row, ChunkColumn.SIZE])
        type_byte = table[row, ChunkColumn.TYPE]
        record_type = type_byte & TYPE_MASK
        is_good = is_filled(pages, chunk_end, start)
        if record_type == GTID_STATE:
            is_good = is_good and start == due and not has_state and type_byte & (CONT | LAST) == LAST
            is_good = is_good and rows_found < len(found)
            if is_good:
                note_found(found, rows_found, start, size, size, GTID_STATE)
                rows_found += 1
                has_state = True
                if place == chunk_end:
                    place, kept = start + CHUNK_HEADER + size, rows_found
                chunk_end = start + CHUNK_HEADER + size
                row += 1
            continue
        is_good = is_good and (start < due or has_state)
        if is_good and place == chunk_end:  # between records
            place, held, first_size, second_size = start, int64(0), size, int64(0)
        elif held == first_size and start == (place // PAGE + 1) * PAGE:
            second_size = size
        is_good = is_good and (record_type == COMMIT or record_type == OOB_DATA)
        if not is_good:
            break
        chunk_end = start + CHUNK_HEADER + size
        row += 1
        if record_type == COMMIT and type_byte & (CONT | LAST) != LAST:
            is_good = take_commit(pages, start + CHUNK_HEADER, size, held, state, scratch)
        held += size
        if not type_byte & LAST:
            continue
        if record_type == OOB_DATA:
            head_size = first_size if first_size >= NODE_HEAD_MIN else first_size + second_size
            is_good = rows_found < len(found) and (head_size >= NODE_HEAD_MIN or head_size == held)
            if is_good:
                note_found(found, rows_found, place, held, first_size, OOB_DATA)
                rows_found += 1
        else:
            if type_byte & CONT:
                is_good = is_good and end_commit(held, pairs, state, scratch, place)
            else:
                is_good = check_commit(pages, start + CHUNK_HEADER, size, pairs, state, place)
            state[Field.GROUPS] += int64(is_good)
        if is_good:
            place, kept = chunk_end, rows_found
    is_cut = is_good and place != chunk_end and status == Status.NEED_MORE
    last = state[Field.PAGE] * PAGE + state[Field.OFFSET]
    if is_good and row == rows and place == chunk_end and is_filled(pages, chunk_end, last):
        place = last
    state[Field.PAGE], state[Field.OFFSET] = place // PAGE, place % PAGE
    return kept, Status.NEED_MORE if is_cut else Status.FALLBACK

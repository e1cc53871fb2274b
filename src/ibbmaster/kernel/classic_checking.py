"""The kernel that checks plain groups of a traditional binlog. The reference: `ibbmaster.classic.verifying`."""

from __future__ import annotations

from ibbmaster.kernel.classic_groups import CUT_GROUP, group_end
from ibbmaster.kernel.fields import PARTIAL_ROW_DATA, Conversion, Field
from ibbmaster.kernel.group_begin import note_group, size_of
from ibbmaster.kernel.memory import inlined, jit


@inlined
def has_fragments(source, offset, end):
    """Whether row events come in fragments, which have an order."""
    while offset < end:
        if source[offset + 4] == PARTIAL_ROW_DATA:
            return True
        offset += size_of(source, offset)
    return False


@jit
def check_classic_groups(source, end, numbers, roles, pairs, state):
    """Check groups of source[READ_AT:end], and note them; GROUPS and PAIRS continue, OUT has bytes of events.

    Stops, with READ_AT, before a group that is not plain, not whole here, or not as it should be. Returns 1 if it
    may be plain and is not whole.
    """
    offset = numbers[Conversion.READ_AT]
    is_cut = 0
    while state[Field.PAIRS] < len(pairs):
        after, total = group_end(source, offset, end, numbers, roles)
        if after == CUT_GROUP:
            is_cut = 1
            break
        if after < 0 or has_fragments(source, offset, after):
            break
        note_group(source, offset, pairs, state)
        state[Field.GROUPS] += 1
        state[Field.OUT] += total
        offset = after
    numbers[Conversion.READ_AT] = offset
    return is_cut

"""References between records: two compressed numbers, file and offset."""

import random

import pytest

from ibbmaster.position import LogPosition
from ibbmaster.storage.ibb.record import decode_ref, encode_ref


def test_a_reference_is_the_file_and_then_the_offset():
    assert encode_ref(LogPosition(1, 16475)) == bytes.fromhex("08 da0202")
    assert decode_ref(b"..\x08\xda\x02\x02..", 2) == (LogPosition(1, 16475), 6)


def test_any_reference_reads_back_and_no_cut_one_does():
    for _ in range(200):
        ref = LogPosition(random.randrange(2**64), random.randrange(2 ** random.randrange(1, 65)))
        encoded = encode_ref(ref)
        assert decode_ref(encoded, 0) == (ref, len(encoded))
        for size in range(len(encoded)):
            with pytest.raises(ValueError, match="data"):
                decode_ref(encoded[:size], 0)

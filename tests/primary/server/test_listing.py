import struct

import pytest

from ibbmaster.logs.classic.engine import ClassicBinlog
from ibbmaster.primary.server.listing import StoredListing
from ibbmaster.replication.wire.refusal import RefusedError


@pytest.mark.parametrize("name", ["10.11/domains", "11.8/domains", "10.11/domains-none"])
def test_every_event_is_listed_where_it_lies(fixtures, name):
    engine = ClassicBinlog([fixtures / "classic" / name])
    for file in engine.files():
        data = (fixtures / "classic" / name / file.name).read_bytes()
        offset = 4
        rows = list(StoredListing(engine).rows(file, 4))
        for row in rows:
            size, log_pos = struct.unpack_from("<II", data, offset + 9)
            assert (row.file_name, row.position, row.end_position) == (file.name, offset, log_pos)
            offset += size
        assert offset == len(data)
        assert list(StoredListing(engine).rows(file, rows[len(rows) // 2].position)) == rows[len(rows) // 2 :]


@pytest.mark.parametrize(
    ("offset", "why"),
    [(300, "Wrong offset or I/O error"), (99999, "Invalid pos specified. Requested from pos:99999 is greater")],
)
def test_an_offset_where_no_event_begins_is_refused_as_by_mariadb(fixtures, offset, why):
    engine = ClassicBinlog([fixtures / "classic/10.11/domains"])
    with pytest.raises(RefusedError) as refusal:
        StoredListing(engine).rows(engine.files()[1], offset)
    assert why in str(refusal.value)


def test_the_state_is_known_at_events_only(fixtures):
    engine = ClassicBinlog([fixtures / "classic/10.11/domains"])
    file, listing = engine.files()[1], StoredListing(engine)
    assert listing.state_at(file, 256) == engine.start_of_file(1).state
    assert listing.state_at(file, 7000) is None
    assert listing.state_at(file, file.size) == engine.start_of_file(2).state

"""Events for groups made in tests: of any type, as short as they can be."""

import struct

from ibbmaster.gtid import Gtid


def make_event(event_type: int, server_id: int, body: bytes) -> bytes:
    return struct.pack("<IBIIIH", 1, event_type, server_id, 19 + len(body), 0, 0) + body


def make_gtid_event(gtid: Gtid) -> bytes:
    return make_event(162, gtid.server_id, struct.pack("<QIB", gtid.seq_no, gtid.domain_id, 0) + bytes(6))

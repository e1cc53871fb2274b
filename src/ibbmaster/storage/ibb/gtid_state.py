"""GTID state records: the GTIDs logged so far. Layout: protocol/ibb/gtid-state.md."""

from collections.abc import Iterable
from dataclasses import dataclass

from ibbmaster.errors import RecordError
from ibbmaster.gtid import ID_MAX, Gtid
from ibbmaster.position import LogPosition
from ibbmaster.storage.codec import compressed_int
from ibbmaster.storage.codec.buffer import Buffer

ENTRY_SIZE_MIN = 3  # three compressed integers


@dataclass(frozen=True, slots=True, kw_only=True)
class GtidStateRecord:
    """The pairs of one state record, the latest of each domain last: on page 1 of a file all logged before, in a
    differential record those since page 1. `xa_file_no`: the oldest file with a pending XA transaction."""

    gtids: tuple[Gtid, ...]
    xa_file_no: int | None


def decode_gtid_state(data: Buffer, location: LogPosition) -> GtidStateRecord:
    """Bytes after the last pair are room for extension. Raises RecordError: the record ends before its last pair, an id
    needs more than 32 bits, or a pair comes twice. Source: MariaDB 12.3, innodb_binlog.cc, read_gtid_state()."""
    try:
        count, offset = compressed_int.decode(data, 0)
        xa_reference, offset = compressed_int.decode(data, offset)
        if count * ENTRY_SIZE_MIN > len(data) - offset:  # before anything is kept
            raise ValueError(f"{count} pairs do not fit into {len(data) - offset} bytes")
        gtids = []
        for _ in range(count):
            domain_id, offset = compressed_int.decode(data, offset)
            server_id, offset = compressed_int.decode(data, offset)
            seq_no, offset = compressed_int.decode(data, offset)
            if domain_id > ID_MAX or server_id > ID_MAX:
                raise ValueError(f"{domain_id}-{server_id}-{seq_no} has an id of more than 32 bits")
            gtids.append(Gtid(domain_id=domain_id, server_id=server_id, seq_no=seq_no))
        if len({(gtid.domain_id, gtid.server_id) for gtid in gtids}) != count:
            raise ValueError("a pair of domain and server comes twice")
    except ValueError as error:
        raise RecordError(location, f"GTID state: {error}") from None
    return GtidStateRecord(gtids=tuple(gtids), xa_file_no=xa_reference - 1 if xa_reference else None)


def encode_gtid_state(gtids: Iterable[Gtid], xa_file_no: int | None) -> bytes:
    entries = [
        compressed_int.encode(gtid.domain_id)
        + compressed_int.encode(gtid.server_id)
        + compressed_int.encode(gtid.seq_no)
        for gtid in gtids
    ]
    reference = 0 if xa_file_no is None else xa_file_no + 1
    return compressed_int.encode(len(entries)) + compressed_int.encode(reference) + b"".join(entries)

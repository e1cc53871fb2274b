"""Row events larger than memory, kept on the disk while they are read."""

from ibbmaster.replication.event.rows.large import KEPT_SIZE_MAX, SIZE_MAX, LargeRows
from ibbmaster.sizes import parse_size
from ibbmaster.storage.disk.spool import Spool


def large_rows(size_max: int | None = None) -> LargeRows:
    """Those of more than 64 MiB go into temporary files; `size_max` limits each. Raises ConfigurationError."""
    return LargeRows(Spool, size_max=SIZE_MAX if size_max is None else size_max, kept_max=KEPT_SIZE_MAX)


def parse_row_event_max(given: int | str | None) -> int | None:
    """`max_row_event_bytes`, also as text like "64M". Raises ConfigurationError: it is no size, or too large."""
    size = parse_size(given) if isinstance(given, str) else given
    if size == SIZE_MAX + 1:
        return SIZE_MAX  # people call it 4G
    if size is not None:
        large_rows(size)
    return size

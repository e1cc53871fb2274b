"""python-mysql-replication sees the same stream from us as from a real primary that serves the capture's own files."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from lanes.board import Cell
from lanes.capture import Capture
from lanes.primary import ClassicPrimary, Primary
from lanes.python_client import SeenStream, read_stream


@pytest.mark.parametrize("client", ["python"])
def test_the_client_sees_what_it_sees_of_a_real_primary(
    served_capture: Capture,
    cell: Cell,
    new_primary: Callable[..., Primary],
    new_real_primary: Callable[[Capture], ClassicPrimary],
) -> None:
    expected = read_stream(new_real_primary(served_capture), uses_tls=False)
    seen = read_stream(new_primary(served_capture, "--tls", "off"), uses_tls=False)

    print(expected.error, len(expected.events))
    assert seen == expected

"""The one name for "bytes somebody may read": what every decoder takes."""

from __future__ import annotations

from typing import TypeAlias

Buffer: TypeAlias = bytes | bytearray | memoryview

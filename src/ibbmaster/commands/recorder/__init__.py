"""The flight recorder: it stands between a primary and its replicas, and keeps what came as a log and a scenario.

`relay` passes the bytes on, `conversation` cuts them into what was said, `recorded_connection` and
`recorded_dump` say what it means, `redaction` takes secrets out, `recording` writes it down. It may
use all that the test kit has; the test kit knows nothing of it.
"""

"""Bytes on the wire: events, packets, and the decisions of a dump. Pure: bytes and time are arguments.

- `event`: replication events; `event/column_types` has a file for each type of column, `event/rows` their changes.
- `wire`: the client protocol: packets, login, commands, answers.
- `dump`: `start` decides where a dump begins, `session` what it sends, `profile` what differs between primaries.

May import: sqltext, storage.
"""

"""Logs: read, written, traditional, changed on the way, played, fetched and archived.

- `log`: a directory of `.ibb` files. `seek` finds a position, `page_checks` and `verify` judge pages, `event_groups`
  reads whole groups, `schema_history` has the tables at a position.
- `store`: the same, written: groups, durability, recovery, maintenance.
- `classic`: traditional binlog files as a log like any other, and conversions.
- `stages`: what groups go through between a log and its readers.
- `player`: a log that grows as its recording did.
- `capture`: reads a running primary.
- `archive`: keeps a log in an object store, and reads it from there.

May import: kernel, replication, rows, schema, sqltext, storage.
"""

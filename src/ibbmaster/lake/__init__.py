"""Tables of whole archives, in Arrow: as they were, or kept as Delta and Iceberg tables.

- `maintain`: keeps tables; each run adds what is new, once, with a verdict.

`arrow_snapshots` has a table at a GTID, `row_versions` its history.

May import: kernel, logs, primary, replication, rows, schema, sqltext, storage, tables.
"""

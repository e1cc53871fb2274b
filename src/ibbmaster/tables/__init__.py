"""The rows of tables that a log leaves.

- `arrow`: events and rows as Arrow record batches.
- `fold`: the rows of a table at a GTID: `folding` applies changes by key, `contents` keeps rows and their doubts.

May import: kernel, logs, replication, rows, schema, sqltext, storage.
"""

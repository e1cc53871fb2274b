"""The port that replicas and clients connect to.

- `dialogue`: the statements that they send, and what is answered without rows of tables.
- `select`: SELECT over the tables of a log.
- `streaming`: blocks of packets, shared by all replicas at one place.
- `server`: sockets, TLS and waiting; `dumping` sends each replica its packets.

May import: kernel, logs, replication, rows, schema, sqltext, storage, tables.
"""

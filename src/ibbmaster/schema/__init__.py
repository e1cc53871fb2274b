"""What tables look like at every position of a log: its DDL, folded.

May import: replication, sqltext, storage.
"""

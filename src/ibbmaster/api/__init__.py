"""The front door: what `import ibbmaster` gives, on top of the rooms below. Described in the README.

May import: kernel, lake, logs, primary, replication, rows, schema, sqltext, storage, tables.
"""

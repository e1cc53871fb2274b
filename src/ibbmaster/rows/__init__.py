"""Rows beyond their bytes: values of SQL, and what statements and versions of a table mean for its rows.

- `expr`: values of SQL: their types, what is computed and compared of them, and as what a column stores them.

`effects` and `certainty` say which rows a statement makes uncertain, `shape` how the columns of two versions fit.

May import: replication, schema, sqltext, storage.
"""

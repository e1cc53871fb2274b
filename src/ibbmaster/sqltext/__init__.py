"""The text of SQL: cut into tokens, read as expressions, quoted and printed. Knows no table, no session, no log.

May import: no other wing.
"""

"""Statements that a real primary and ours answer alike, and what of an answer is compared."""

from lanes.sql_file import sql_beside

_SQL = sql_beside(__file__)
#: Answers equal in names and types of columns, in rows, and in the code of errors.
ALIKE = _SQL["alike"]

#: Answers equal in whether they are rows, OK or the code of an error.
OF_A_KIND = _SQL["of a kind"]

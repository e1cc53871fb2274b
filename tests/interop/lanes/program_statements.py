"""Triggers, routines and events that a real server logs, and statements about them that ours must answer alike."""

from lanes.sql_file import sql_beside

_SQL = sql_beside(__file__)
DDL = _SQL["ddl"]

#: What a server has as ours: the log has all that it says.
SHOWN = _SQL["shown"]
#: What a server has as ours but for columns that are NULL, because only a statement says what is in them.
LISTED = _SQL["listed"]
#: What an ALTER has changed, or a declaration of parameters says: refused.
REFUSED = _SQL["refused"]

"""Triggers, routines and events that a real server logs, and statements about them that ours must answer alike."""

from lanes.sql_file import sql_beside

DDL = sql_beside(__file__)["ddl"]

#: What a server has as ours: the log has all that it says.
SHOWN = (
    *(
        f"SHOW CREATE TRIGGER r1.`{name}`"
        for name in ("tr1", "tr 2", "tr3", "tr4", "tr5", "tr6", "tg", "x y", "tb", "TB")
    ),
    *(f"SHOW CREATE PROCEDURE r1.`{name}`" for name in ("p1", "p3", "p4", "p q", "po", "po2", "pl", "no")),
    *(f"SHOW CREATE FUNCTION r1.`{name}`" for name in ("f1", "f2", "f3", "f5", "fo")),
    *(f"SHOW CREATE EVENT r1.`{name}`" for name in ("e5", "ea", "past")),
    "SHOW CREATE PACKAGE r1.pk",
    "SHOW CREATE PACKAGE BODY r1.pk",
    "SHOW CREATE PACKAGE r1.pc",
    "SHOW CREATE PROCEDURE r3.p",
    "SHOW TRIGGERS FROM r1 LIKE 't'",
    "SHOW TRIGGERS FROM r1 LIKE 'v%'",
    "SHOW TRIGGERS FROM r1 WHERE `Trigger` = 'tb'",
    "SHOW TRIGGERS FROM r2",
    "SHOW TRIGGERS FROM r3",
    "SHOW TRIGGERS",
    "SHOW EVENTS FROM r3",
    "SHOW EVENTS",
    "SELECT * FROM information_schema.triggers WHERE trigger_schema IN ('r1', 'r2', 'r3') ORDER BY trigger_name",
)
#: What a server has as ours but for columns that are NULL, because only a declaration says what is in them.
LISTED = (
    *(f"SHOW {kind} STATUS WHERE Db = 'r1'" for kind in ("PROCEDURE", "FUNCTION", "PACKAGE", "PACKAGE BODY")),
    "SHOW PROCEDURE STATUS LIKE 'p_'",
    "SHOW EVENTS FROM r2",
    "SHOW EVENTS FROM r1 LIKE 'e%'",
    *(f"SHOW CREATE EVENT r1.`{name}`" for name in ("E1", "e3", "e7", "e q", "kept")),
    *(
        f"SELECT * FROM information_schema.{table}s WHERE {table}_schema IN ('r1', 'r2') ORDER BY {table}_name"
        for table in ("routine", "event")
    ),
)
#: What an ALTER has changed, or a declaration of parameters says: refused.
REFUSED = (
    "SHOW CREATE PROCEDURE r2.P2",
    "SHOW CREATE FUNCTION r2.f4",
    *(f"SHOW CREATE EVENT r2.{name}" for name in ("e4", "E6", "s5")),
    "SELECT * FROM information_schema.parameters WHERE specific_schema = 'r1'",
)

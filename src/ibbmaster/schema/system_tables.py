"""The one table of a server's own that clients read here, as DDL would define it."""

from __future__ import annotations

from ibbmaster.schema.model import IndexKind, IndexPart, SqlType, TableColumn, TableIndex, TableVersion

_INT = SqlType(word="int", length=10, is_unsigned=True)
_BIGINT = SqlType(word="bigint", length=20, is_unsigned=True)

GTID_SLAVE_POS = TableVersion(
    database="mysql",
    name="gtid_slave_pos",
    columns=tuple(
        TableColumn(id=no, name=name, type=column_type, is_nullable=False)
        for no, (name, column_type) in enumerate(
            (("domain_id", _INT), ("sub_id", _BIGINT), ("server_id", _INT), ("seq_no", _BIGINT))
        )
    ),
    indexes=(
        TableIndex(name="PRIMARY", kind=IndexKind.PRIMARY, parts=(IndexPart(column_id=0), IndexPart(column_id=1))),
    ),
    charset="latin1",
    collation="latin1_swedish_ci",
    options={"ENGINE": "InnoDB", "COMMENT": "Replication slave GTID position"},
)

"""Statements as a log has them, folded one after the other."""

import pytest

from ibbmaster.position import LogPosition
from ibbmaster.replication.event.statement.logged import LoggedStatement
from ibbmaster.schema.history import SchemaHistory
from ibbmaster.schema.model import SchemaPlace, TableVersion


def place(number, event_no=1):
    return SchemaPlace(LogPosition(0, number), event_no)


def logged(text, *, database="d", thread_id=1, sql_mode=0, has_effect=True, **others):
    return LoggedStatement(text, database, thread_id, sql_mode, has_effect, **others)


def column_text(column):
    type_ = column.type
    inside = ",".join(f"'{label}'" for label in type_.labels)
    if type_.length is not None:
        inside = f"{type_.length}" + (f",{type_.scale}" if type_.scale is not None else "")
    elif type_.scale is not None:
        inside = f"{type_.scale}"
    parts = [column.name, type_.word + (f"({inside})" if inside else "")]
    parts += ["unsigned"] * type_.is_unsigned + ["zerofill"] * type_.is_zerofill
    parts += [type_.collation] if type_.collation else []
    parts += ["not null"] * (not column.is_nullable)
    parts += [f"default {column.default}"] if column.default is not None else []
    parts += [f"as ({column.expression})"] if column.expression is not None else []
    flags = {"compressed": type_.is_compressed, "auto": column.is_auto_increment, "stored": column.is_stored}
    flags |= {"invisible": column.is_invisible, "hidden": column.is_hidden, "unversioned": column.is_unversioned}
    parts += [word for word, is_so in flags.items() if is_so]
    parts += [f"on update {column.on_update}"] if column.on_update else []
    parts += [f"check ({column.check})"] if column.check else []
    parts += [f"comment {column.comment}"] if column.comment else []
    return " ".join(parts)


def index_text(table, index):
    names = {column.id: column.name for column in table.columns}
    parts = [names[one.column_id] + (f"({one.length})" if one.length else "") for one in index.parts]
    return f"{index.kind.value.removesuffix(' KEY')} {index.name} ({', '.join(parts)})"


class Folded(SchemaHistory):
    count = 0

    def run(self, *statements, **given):
        for one in statements:
            self.count += 1
            self.add(place(self.count), f"0-1-{self.count}", 1000 + self.count, logged(one, **given))
        return self

    def known(self, name="t", database="d"):
        found = self.table_at(database, name)
        assert isinstance(found, TableVersion), found
        return found

    def columns(self, name="t", database="d"):
        return [column_text(column) for column in self.known(name, database).columns]

    def indexes(self, name="t", database="d"):
        table = self.known(name, database)
        return [index_text(table, index) for index in table.indexes]


@pytest.fixture
def folded():
    return Folded()


def type_of(declared):
    return Folded().run(f"CREATE TABLE t (c {declared})").known().columns[0].type

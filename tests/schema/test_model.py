from ibbmaster.position import LogPosition
from ibbmaster.schema.model import IndexKind, IndexPart, SchemaPlace, SqlType, TableColumn, TableIndex, TableVersion

ID = TableColumn(id=1, name="Id", type=SqlType(word="int", length=11), is_nullable=False)
NAME = TableColumn(id=2, name="name", type=SqlType(word="varchar", length=40))
KEY = TableIndex(name="PRIMARY", kind=IndexKind.PRIMARY, parts=(IndexPart(column_id=1),))


def test_a_column_is_found_by_its_name_in_any_case() -> None:
    table = TableVersion(database="shop", name="orders", columns=(ID, NAME))

    assert table.column("ID") is ID
    assert table.column("NaMe") is NAME
    assert table.column("price") is None


def test_a_table_has_a_primary_key_only_where_one_is_declared() -> None:
    unique = TableIndex(name="name", kind=IndexKind.UNIQUE, parts=(IndexPart(column_id=2),))

    assert TableVersion(database="shop", name="orders", indexes=(unique, KEY)).primary_key is KEY
    assert TableVersion(database="shop", name="orders", indexes=(unique,)).primary_key is None


def test_places_compare_in_the_order_of_the_log() -> None:
    second, first = SchemaPlace(LogPosition(0, 40), 2), SchemaPlace(LogPosition(0, 40), 1)

    assert first < second < SchemaPlace(LogPosition(1, 16), 0)

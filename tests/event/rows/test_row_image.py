import dataclasses

import pytest

from ibbmaster.event.rows.changes import ChangeKind
from ibbmaster.event.rows.encoding import WrittenTable, written_table
from ibbmaster.event.rows.row_image import RowImage, image_columns
from ibbmaster.event.rows.written_column import written_column

COLUMNS = {"id": "int", "a": "int", "b": "text", "c": "blob"}
KEYED = written_table("d.t", COLUMNS, table_id=1, primary_key=["id"])
KEYLESS = written_table("d.t", COLUMNS, table_id=1)
ALL = (0, 1, 2, 3)
UPDATE, INSERT, DELETE = ChangeKind.UPDATE, ChangeKind.INSERT, ChangeKind.DELETE


@pytest.mark.parametrize(
    ("image", "kind", "given", "before", "after"),
    [
        (RowImage.FULL, UPDATE, {2}, ALL, ALL),
        (RowImage.FULL_NODUP, UPDATE, {1, 2}, ALL, (1, 2)),
        (RowImage.MINIMAL, UPDATE, {1, 2}, (0,), (1, 2)),
        (RowImage.NOBLOB, UPDATE, {2}, (0, 1), (0, 1, 2)),
    ],
)
def test_an_update_has_the_columns_of_its_image(image, kind, given, before, after):
    assert image_columns(KEYED, image, kind, given) == (before, after)


def test_the_images_of_a_table_without_a_key_have_every_column():
    for image in RowImage:
        assert image_columns(KEYLESS, image, UPDATE, {2}) == (ALL, ALL)
        assert image_columns(KEYLESS, image, INSERT, {2})[1] == ALL


def test_a_blob_of_the_key_is_in_every_image():
    table = dataclasses.replace(KEYED, primary_key=(2,), key_prefixes=(5,))
    assert image_columns(table, RowImage.NOBLOB, UPDATE, {1}) == ((0, 1, 2), (0, 1, 2))
    assert image_columns(table, RowImage.MINIMAL, UPDATE, {1}) == ((2,), (1,))


def test_a_compressed_blob_is_a_blob_and_a_geometry_is_none():
    columns = (written_column("z", "text", is_compressed=True), written_column("g", "point"))
    table = WrittenTable(table_id=1, database="d", table="t", columns=KEYED.columns[:1] + columns, primary_key=(0,))
    assert image_columns(table, RowImage.NOBLOB, INSERT, {0})[1] == (0, 2)


@pytest.mark.parametrize(
    ("image", "after"), [(RowImage.FULL, ALL), (RowImage.FULL_NODUP, ALL), (RowImage.MINIMAL, (0, 2))]
)
def test_an_insert_has_the_columns_of_its_image(image, after):
    assert image_columns(KEYED, image, INSERT, {0, 2})[1] == after


@pytest.mark.parametrize(
    ("image", "before"), [(RowImage.FULL, ALL), (RowImage.MINIMAL, (0,)), (RowImage.NOBLOB, (0, 1))]
)
def test_a_delete_has_the_columns_of_its_image(image, before):
    assert image_columns(KEYED, image, DELETE, set())[0] == before

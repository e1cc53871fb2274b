"""What identifies the rows of a table: an index that has one row for each of its values, and all of them."""

import json
from pathlib import Path

import pytest

from ibbmaster.schema.indexing import row_key


@pytest.mark.parametrize(("indexes", "name"), json.loads(Path(__file__).with_suffix(".json").read_text()))
def test_rows_are_known_by_a_unique_index_of_whole_columns_that_are_never_null(folded, indexes, name):
    columns = "a INT NOT NULL, b INT NOT NULL, n INT, t VARCHAR(9) NOT NULL"
    key = row_key(folded.run(f"CREATE TABLE t ({columns}, {indexes})").known())
    assert (None if key is None else key.name) == name

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from ibbmaster.lake.maintain.target import directory_name
from tests.case_table import data_beside

NAMES = data_beside(__file__)


@pytest.mark.parametrize("name", NAMES)
def test_a_directory_of_any_table_can_be_that_of_a_delta_table(tmp_path: Path, name: str) -> None:
    assert not set("%/#? ") & set(directory_name(name))
    place = tmp_path / directory_name(name)
    write_deltalake(place, pa.table({"id": [1]}))
    assert [one.name for one in tmp_path.iterdir()] == [directory_name(name)]
    assert len(DeltaTable(place).to_pyarrow_table()) == 1


def test_each_table_has_a_directory_of_its_own_with_one_dot() -> None:
    names = {directory_name(one) for one in NAMES}
    assert len(names) == len(NAMES)
    assert {name.count(".") for name in names} == {1}
    assert directory_name("`shop.eu`.orders") == "shop~2Eeu.orders"

"""Directories are called as their tables, in letters that each reader of tables takes."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from ibbmaster.errors import StoreError
from ibbmaster.lake.delta import publish
from ibbmaster.lake.table_directory import directory_name, directory_of, rename_older, table_name

DOTTED = ("`shop.eu`.orders", "shop.`eu.orders`", "`.`.`..`", "`shop.eu`.`a,b`", "s.`a``b`")
NAMES = (
    "shop.orders",
    "shop.a b",
    "shop.50%",
    "shop.50%20",
    "shop.a~20b",
    "ü.ß",
    "s.a/b",
    "s.😀",
    "s.`a#b?c&d=e`",
    *DOTTED,
)


@pytest.mark.parametrize("name", NAMES)
def test_the_name_of_a_table_comes_back(name) -> None:
    assert table_name(directory_name(name)) == name
    assert not set("%/#? ") & set(directory_name(name))
    assert len({directory_name(one) for one in NAMES}) == len(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_directory_of_any_table_becomes_a_delta_table(tmp_path: Path, name) -> None:
    path = directory_of(tmp_path, name) / "_date=2026-01-01" / "part.parquet"
    path.parent.mkdir(parents=True)
    pq.write_table(pa.table({"id": [1]}), path)
    publish(path.parents[1], [[path]])
    assert [one.name for one in tmp_path.iterdir()] == [directory_name(name)]
    assert len(DeltaTable(str(path.parents[1])).to_pyarrow_table()) == 1


def test_the_dot_between_database_and_table_is_the_only_one(tmp_path: Path) -> None:
    assert directory_name("`shop.eu`.orders") == "shop~2Eeu.orders"
    (tmp_path / "shop.eu.orders").mkdir()  # of an older export, of either table
    assert not any(directory_of(tmp_path, name).exists() for name in DOTTED)
    with pytest.raises(StoreError, match=r"^shop\.eu\.orders: an older export wrote this directory"):
        table_name("shop.eu.orders")


def test_a_directory_of_an_older_export_goes_on_until_it_becomes_a_delta_table(tmp_path: Path) -> None:
    (tmp_path / "shop.a%20b").mkdir()
    assert directory_of(tmp_path, "shop.a b").name == "shop.a%20b"
    assert table_name("shop.a%20b") == "shop.a b"
    rename_older(tmp_path)
    assert directory_of(tmp_path, "shop.a b") == tmp_path / "shop.a~20b"
    assert [path.name for path in tmp_path.iterdir()] == ["shop.a~20b"]

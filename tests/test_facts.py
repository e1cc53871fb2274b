from pathlib import Path

import pytest

from ibbmaster.facts import rows_of

SOURCE = Path(__file__).parents[1] / "src"
TABLES = sorted(SOURCE.rglob("*.tsv"))
#: What this project gives, and no server.
OURS = {"commands", "figures", "gone", "grades", "landmarks", "options", "serving_options", "shape"}
OURS |= {"action_bounds", "profiles", "remote_file_systems", "small_server", "statements", "types"}
#: So many make a row one of its kind.
OF_MORE_CELLS = {
    "judged": 2,
    "letters": 2,
    "shape": 2,
    "table_columns": 2,
    "options": 3,
    "action_bounds": 2,
    "profiles": 2,
}


@pytest.mark.parametrize("path", TABLES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_table_says_where_it_is_from_and_has_rows_of_one_shape(path):
    lines = path.read_text().splitlines()
    comments = [line for line in lines if line.startswith("# ")]
    head = lines[len(comments)].split("\t")
    rows = rows_of(".".join(path.parent.relative_to(SOURCE).parts), path.stem)

    assert path.stem in OURS or "facts of MariaDB" in comments[0]
    assert len(rows) == len(lines) - len(comments) - 1 > 0
    is_list = path.stem == "table_columns"  # its last column is one or more cells
    assert all(len(row) >= len(head) if is_list else len(row) == len(head) for row in rows)
    keys = [tuple(row[: OF_MORE_CELLS.get(path.stem, 1)]) for row in rows]
    assert len(set(keys)) == len(keys)


def test_the_wheel_has_every_table(unpacked):
    assert len(TABLES) >= 3
    found = {path.relative_to(unpacked) for path in unpacked.rglob("*.tsv")}
    assert found == {path.relative_to(SOURCE) for path in TABLES}

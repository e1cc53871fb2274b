import random
from contextlib import closing

import pytest

from ibbmaster.kernel.loading import load
from ibbmaster.logs.log.group_content import RowReader, TableFilter, table_name
from ibbmaster.position import LOG_START
from ibbmaster.schema.model import SchemaPlace
from ibbmaster.tables.arrow import table_maps
from ibbmaster.tables.arrow.collecting import event_batches
from ibbmaster.tables.arrow.options import parse_options
from ibbmaster.tables.arrow.plan import maps_backwards, open_log, open_source
from ibbmaster.tables.arrow.table_maps import last_decoder, seen_maps, seen_maps_by_reference
from tests.lake.random_log import random_log


@pytest.fixture
def seed() -> int:
    return random.randrange(2**32)


@pytest.fixture(params=["xa-and-ddl", "large-groups", "11.8/types-full_nodup", "random"])
def log(request, imported, fixtures, tmp_path, seed):
    name = request.param
    if name == "random":
        path = random_log(random.Random(seed), tmp_path / "log")
    else:
        path = imported(name) if "/" in name else fixtures / "ibb" / name
    with closing(open_log(parse_options({"path": str(path)}))) as found:
        yield found


@pytest.mark.parametrize("few", [0, 20, 1 << 20])
def test_both_find_the_same_with_and_without_boundaries(log, seed, few, monkeypatch):
    monkeypatch.setattr(table_maps, "FEW", few)
    kernels = load()
    assert kernels is not None
    count = 0
    for log_range in log.ranges(LOG_START, log.end(), size=1 << 40):
        places = [SchemaPlace(group.start, 1) for group in log.groups_in(log_range)]
        for boundaries in ([], sorted(random.Random(seed).sample(places, min(5, len(places))))):
            fast = seen_maps(event_batches(log, log_range, kernels), boundaries, kernels)
            assert fast == seen_maps_by_reference(log.groups_in(log_range), boundaries)
            assert len(fast) == len(set(fast))
            count += len(fast)
    assert count > 0


def test_the_last_one_says_what_a_table_is(fixtures):
    options = parse_options({"path": str(fixtures / "ibb/xa-and-ddl")})
    with closing(open_source(options)) as source:
        (maps,) = maps_backwards(source, options, [])
    last = [seen for seen in maps if table_name(seen.event) == ("shop", "parent")][-1]
    found = last_decoder(maps, RowReader(TableFilter(("shop.parent",))))
    assert found is not None
    assert found.schema == RowReader().decoder(last.event).schema
    assert last_decoder(maps, RowReader(TableFilter(("shop.none",)))) is None

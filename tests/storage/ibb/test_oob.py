import random

import pytest

from ibbmaster.errors import RecordError
from ibbmaster.position import LogPosition
from ibbmaster.storage.ibb.commit import OobStream
from ibbmaster.storage.ibb.oob import OobForest, OobNode, decode_oob_node, encode_oob_node, walk_oob

HERE = LogPosition.on_page(0, 1)

HEADERS = {  # node of the format's example with seven nodes: its header
    0: "00 00 00 00 00",
    1: "08 00 00 00 2a 00 02",
    2: "10 00 2a 00 02 00 8a 00 02",
    3: "18 00 00 00 fa 00 02",
    4: "20 00 00 00 7a 01 02",
    5: "28 00 7a 01 02 00 ea 01 02",
    6: "30 00 fa 00 02 00 5a 02 02",
}
PLACES = [16389, 16401, 16415, 16431, 16445, 16459, 16475]


def grown(node_count):
    forest, nodes = OobForest(), {}
    for index in range(node_count):
        ref = LogPosition(index // 1000, 16389 + 40 * index)
        nodes[ref] = forest.next_node()
        forest.add(ref)
    return forest, nodes


def test_headers_are_those_of_the_example_and_cut_ones_are_refused():
    forest = OobForest()
    for index, place in enumerate(PLACES):
        node = forest.next_node()
        header = bytes.fromhex(HEADERS[index])
        assert encode_oob_node(node) == header
        assert decode_oob_node(header + b"data", HERE) == (node, len(header))
        for size in range(len(header)):
            with pytest.raises(RecordError):
                decode_oob_node(header[:size], HERE)
        forest.add(LogPosition(0, place))


@pytest.mark.parametrize("node_count", [*range(1, 70), 127, 128, 1000, 4095, 4096, 5000])
def test_nodes_come_in_the_order_they_were_written(node_count):
    forest, nodes = grown(node_count)
    assert [nodes[ref].node_index for ref in walk_oob(forest.stream(), nodes.__getitem__)] == list(range(node_count))


def test_what_was_rolled_back_is_never_reached():
    forest, nodes = OobForest(), {}

    def write(name):
        ref = LogPosition(0, 16389 + 12 * len(nodes))
        nodes[ref] = (name, forest.next_node())
        forest.add(ref)

    for name in "AB":
        write(name)
    savepoint = forest.copy()
    for name in "XY":
        write(name)
    forest = savepoint
    write("C")
    assert "".join(nodes[ref][0] for ref in walk_oob(forest.stream(), lambda ref: nodes[ref][1])) == "ABC"


@pytest.mark.parametrize("seed", range(100))
def test_swapped_links_end_in_an_error_after_bounded_work(seed):
    random_source = random.Random(seed)
    forest, nodes = grown(random_source.randint(3, 200))
    reads = 0

    def read(ref):
        nonlocal reads
        reads += 1
        return nodes[ref]

    one, other = random_source.sample(list(nodes), 2)
    nodes[one], nodes[other] = nodes[other], nodes[one]
    with pytest.raises(RecordError):
        list(walk_oob(forest.stream(), read))
    assert reads <= 2 * len(nodes)


def test_a_stream_that_claims_too_many_or_too_few_nodes_or_leads_in_circles_is_refused():
    forest, nodes = grown(7)
    stream, ref = forest.stream(), LogPosition(0, 20000)
    loop = OobNode(node_index=5, left=ref, right=ref)
    streams = [OobStream(node_count=count, first=stream.first, last=stream.last) for count in (1, 6, 8, 2**60)]
    for wrong in (*streams, OobStream(node_count=6, first=stream.first, last=ref)):
        with pytest.raises(RecordError):
            list(walk_oob(wrong, lambda place: nodes.get(place, loop)))

import pickle
import random

from ibbmaster.position import LOG_START, NOWHERE, PAGE_SIZE, LogPosition, NamedPosition


def test_positions_are_in_the_order_of_the_log_and_each_is_a_place_on_a_page():
    in_order = [
        *(NOWHERE, LOG_START, LogPosition(0, 5), LogPosition.on_page(0, 1), LogPosition.on_page(0, 1, 7)),
        LogPosition(1, 0),
    ]
    assert sorted(random.Random(1).sample(in_order, len(in_order))) == in_order
    rng = random.Random(2)
    for _ in range(1000):
        position = LogPosition(rng.randrange(1 << 20), rng.randrange(1 << 40))
        assert (position.page_no, position.page_offset) == divmod(position.offset, PAGE_SIZE)
        assert LogPosition.on_page(position.file_no, position.page_no, position.page_offset) == position
    assert str(LogPosition.on_page(3, 2, 1)) == "binlog-000003.ibb page 2 offset 1"


def test_a_position_in_a_traditional_file_is_the_same_place_and_shown_by_its_name():
    position = LogPosition(2, 400)
    named = NamedPosition.in_file(position, "binlog.000003")
    assert str(named) == "binlog.000003 offset 400"
    assert named == position
    assert hash(named) == hash(position)
    again = pickle.loads(pickle.dumps(named))
    assert (again, str(again)) == (position, str(named))

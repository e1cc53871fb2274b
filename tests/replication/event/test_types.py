from ibbmaster.replication.event.types import (
    TYPE_COUNT_CLASSIC,
    TYPE_COUNT_ENGINE,
    EventType,
    post_header_sizes,
    type_name,
)


def test_a_server_of_the_engine_binlog_announces_one_type_more():
    classic, engine = post_header_sizes(TYPE_COUNT_CLASSIC), post_header_sizes(TYPE_COUNT_ENGINE)

    itself = EventType.FORMAT_DESCRIPTION - 1  # its own size counts the types
    assert engine[itself] == classic[itself] + 1
    assert engine[:itself] + engine[itself + 1 : -1] == classic[:itself] + classic[itself + 1 :]
    assert engine[-1] == 9


def test_each_type_has_a_name_also_one_that_is_not_known():
    assert type_name(EventType.GTID_LIST) == "GTID_LIST"
    assert type_name(250) == "type 250"

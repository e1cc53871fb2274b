import pytest

from ibbmaster.errors import ChecksumError, RecordError
from ibbmaster.gtid import Gtid, GtidState
from ibbmaster.logs.log.pages import PageReader
from ibbmaster.logs.log.states import check_continuation, read_state_record, state_at
from ibbmaster.position import LogPosition
from ibbmaster.storage.ibb.gtid_state import GtidStateRecord

HERE = LogPosition.on_page(2, 1)


def gtids(text):
    return tuple(map(Gtid.parse, filter(None, text.split(","))))


def test_a_page_without_a_state_has_none_and_one_that_is_not_there_neither(long_log):
    pages = PageReader(long_log.disk)
    assert read_state_record(pages, 0, 3) is None
    assert read_state_record(pages, 9, 1) is None
    long_log.disk.files["binlog-000001.ibb"][20000] ^= 1
    with pytest.raises(ChecksumError):
        read_state_record(PageReader(long_log.disk), 1, 1)


CONTINUATIONS = {  # what a file begins with, the state before it, what the file before began with: is it so?
    "the same": ("0-1-5", "0-1-5", "", True),
    "a domain that was deleted": ("", "0-1-5", "", True),
    "a number that was lost": ("0-1-6", "0-1-5", "", False),
    "a number that came back": ("0-1-4", "0-1-5", "", False),
    "as the file before, after two restarts": ("0-1-4", "0-1-5", "0-1-4", True),
    "a first group that was written as empty": ("0-1-1", "", "", True),
    "a server nobody knows": ("0-2-7", "0-1-5", "", False),
}


@pytest.mark.parametrize(("begins", "state", "base", "is_so"), CONTINUATIONS.values(), ids=CONTINUATIONS)
def test_a_file_begins_where_the_groups_before_it_end(begins, state, base, is_so):
    arguments = (gtids(begins), GtidState(gtids(state)), HERE)
    if is_so:
        check_continuation(*arguments, base=GtidState(gtids(base)))
    else:
        with pytest.raises(RecordError, match=r"the file begins after .*, the groups before it end"):
            check_continuation(*arguments, base=GtidState(gtids(base)))


def test_pairs_may_be_missing_where_not_all_was_read_and_differentials_stand_on_page_1():
    check_continuation(gtids("0-2-7"), GtidState(gtids("0-1-5")), HERE, base=GtidState(), is_complete=False)
    base = GtidState(gtids("0-1-5,1-1-1"))
    found = state_at(base, GtidStateRecord(gtids=gtids("0-2-9"), xa_file_no=None))
    assert (str(found), str(base)) == ("0-1-5,0-2-9,1-1-1", "0-1-5,1-1-1")

import inspect
import pickle

import pytest

from ibbmaster import errors
from ibbmaster.errors import IbbMasterError, InexactError
from ibbmaster.position import LogPosition

CLASSES = {
    name: found for name, found in vars(errors).items() if inspect.isclass(found) and issubclass(found, IbbMasterError)
}
ARGUMENTS = {
    "location": LogPosition.on_page(1, 2, 3),
    "file_offset": 4,
    "domain_id": 5,
    "doubts": ["a", "b"],
}


def made(found: type[IbbMasterError]) -> IbbMasterError:
    if "__init__" not in {name for base in found.__mro__[:-4] for name in vars(base)}:
        return found("a problem")
    return found(*(ARGUMENTS.get(name, name) for name in inspect.signature(found).parameters))


@pytest.mark.parametrize("name", CLASSES)
def test_an_error_is_the_same_in_another_process(name):
    error = made(CLASSES[name])
    again = pickle.loads(pickle.dumps(error))

    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))
    assert "\n" not in str(error)


def test_a_format_error_begins_with_its_place_and_an_inexact_table_counts_its_reasons():
    assert str(made(CLASSES["ChunkError"])) == "binlog-000001.ibb page 2 offset 3: problem"
    assert str(InexactError("d.t", ["a"])) == "d.t: a; --accept-inexact takes it as it is, and lists them"
    assert "(and 2 more reasons)" in str(InexactError("d.t", ["a", "b", "c"]))

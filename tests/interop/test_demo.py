"""`ibbmaster demo` shows what it promises: a CDC client's changes and a private replica that follows."""

import contextlib
import os
import signal
import subprocess
import time

import pytest
from lanes.primary import ibbmaster, run_program


def test_the_demo_ends_with_a_replica_that_has_everything(captures, ibb_directory):
    assert "50-50-22" in run_program(ibbmaster("demo", str(ibb_directory(captures["10.11/chained"]))))


MOMENTS = {  # what is there then
    "while the server is installed": "ibbmaster-demo-*/template-*/data/ibdata1",
    "while it starts": "ibbmaster-demo-*/replica/data/ibtmp1",
}


@pytest.mark.usefixtures("hears_interrupts")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("moment", MOMENTS.values(), ids=MOMENTS)
def test_an_interrupted_demo_leaves_nothing_and_says_nothing(captures, ibb_directory, tmp_path, moment, number):
    scratch = tmp_path / "t"
    scratch.mkdir()
    demo = subprocess.Popen(
        ibbmaster("demo", str(ibb_directory(captures["10.11/chained"]))),
        env={**os.environ, "TMPDIR": str(scratch)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    while not list(scratch.glob(moment)) and demo.poll() is None:
        time.sleep(0.005)
    os.killpg(demo.pid, number)  # as a terminal does: everybody hears it
    _, said = demo.communicate(timeout=600)

    assert (demo.returncode, said) == (130, b"")
    assert list(scratch.iterdir()) == []
    with contextlib.suppress(ProcessLookupError):  # nobody is left of all that it started, once the system has noticed
        while True:
            os.killpg(demo.pid, 0)
            time.sleep(0.005)

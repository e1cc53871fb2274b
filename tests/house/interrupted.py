"""Run by test_suites alone: a suite in which ^C is typed."""

import os
import signal

import pytest
import trio


@pytest.mark.usefixtures("hears_interrupts")
async def test_in_which_somebody_types_it(tmp_path):
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.sleep_forever)
        os.kill(os.getpid(), signal.SIGINT)


def test_behind_it():
    raise AssertionError("the suite went on")

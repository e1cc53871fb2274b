import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from ibbmaster.commands.cli.progress import interruptible, progress


def test_without_a_terminal_nothing_is_drawn(capfd):
    with progress(total=10) as bar:
        bar.add(5)
    with progress("B", label="copying") as bar:
        bar.reach(5, 10)
    assert capfd.readouterr() == ("", "")


def test_what_is_done_is_passed_on():
    heard = []
    with interruptible(heard.append) as advance:
        advance(3)
        advance(4)
    assert heard == [3, 4]


def test_an_interrupt_ends_worker_threads_too():
    before = signal.getsignal(signal.SIGINT)
    is_working = threading.Event()

    def work():
        while True:
            advance(1)
            is_working.set()

    def command():
        is_working.wait()
        os.kill(os.getpid(), signal.SIGINT)
        for worker in workers:
            worker.result()

    with interruptible(lambda count: None) as advance, ThreadPoolExecutor(2) as executor:
        workers = [executor.submit(work) for _ in range(2)]
        with pytest.raises(KeyboardInterrupt):
            command()
    assert [type(worker.exception()) for worker in workers] == [KeyboardInterrupt] * 2
    assert signal.getsignal(signal.SIGINT) is before


def test_another_thread_than_the_first_may_run_a_command():
    with ThreadPoolExecutor(1) as executor:
        assert executor.submit(lambda: interruptible(len).__enter__()).result() is len

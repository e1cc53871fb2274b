import signal
import subprocess
import sys

import pytest

from tests.machinery.campaign import run_campaign


def checked(seed):
    if seed == 30:
        raise ValueError("seed 30 is wrong")
    return 10


def test_a_campaign_ends_once_enough_was_seen_or_with_its_seeds():
    assert run_campaign(checked, range(1, 20), total=50, unit="states", processes=2) >= 50
    assert run_campaign(checked, range(3), total=10**9, unit="states", processes=2) == 30


def test_a_campaign_tells_what_is_wrong():
    with pytest.raises(ValueError, match="seed 30 is wrong"):
        run_campaign(checked, range(25, 1000), total=10**9, unit="states", processes=2)


@pytest.mark.usefixtures("hears_interrupts")
@pytest.mark.parametrize("module", ["crash", "schedules"])
def test_an_interrupt_ends_a_command_without_a_traceback(module):
    """It is sent once the first worker is at work, which its process shows."""
    command = f"""
import os, signal, sys
from tests.machinery import {module} as module

sys.argv = ["{module}", "--states", "1000000000", "--processes", "2"]
import tests.machinery.campaign as campaign
wait = campaign.wait
def waited(waiting, **options):
    os.kill(os.getpid(), signal.SIGINT)
    return wait(waiting, **options)
campaign.wait = waited
module.main()
"""
    run = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, timeout=120, check=False)
    assert run.returncode == 128 + signal.SIGINT, run.stderr
    assert "interrupted after" in run.stderr
    assert "Traceback" not in run.stderr


def test_a_command_with_a_seed_runs_it_alone():
    command = [sys.executable, "-m", "tests.machinery.crash", "--seed", "77"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert run.stdout.endswith(" states, none of them wrong\n")

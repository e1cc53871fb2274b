"""Exports by one session, as a program: told in lines of JSON, each answered by one; or it ends itself in one."""

from __future__ import annotations

import json
import os
import signal
import sys

from ibbmaster.errors import IbbMasterError
from ibbmaster.lake.exporting import export
from ibbmaster.lake.session import open_session

CHANGES = ("os.mkdir", "os.remove", "os.rename", "os.rmdir", "shutil.rmtree")


class Killed:
    """Counts the changes of files below a directory, and ends this process in front of one."""

    def __init__(self) -> None:
        self.place = ""
        self.number = 0
        self.count = 0

    def __call__(self, event: str, arguments: tuple[object, ...]) -> None:
        is_change = event in CHANGES or (event == "open" and set(str(arguments[1])) & set("wax+"))
        if is_change and self.place and str(arguments[0]).startswith(self.place):
            self.count += 1
            if self.count == self.number:
                os.kill(os.getpid(), signal.SIGKILL)


def main(master: str, settings: dict[str, str]) -> None:
    session = open_session(master, name="exports", settings=settings)
    killed = Killed()
    sys.addaudithook(killed)
    for line in sys.stdin:
        log, target, form, killed.number = json.loads(line)
        killed.place, killed.count = target, 0
        try:
            said = export(session, log, target, as_delta=form == "delta")
        except IbbMasterError as error:
            said = {"error": str(error)}
        print(json.dumps(said | {"changes": killed.count}), flush=True)
    session.stop()


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))

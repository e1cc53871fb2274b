"""python-mysql-replication by file and position, as a program: HOST PORT USER PASSWORD [FILE POSITION].

It begins at the end of the primary where no file is named, and prints the rows, and where each transaction ends.
"""

import logging
import sys
import warnings

from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.event import XidEvent
from pymysqlreplication.row_event import WriteRowsEvent


def main(host: str, port: str, user: str, password: str, file: str = "", position: str = "") -> None:
    """Print lines until somebody ends this."""
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    stream = BinLogStreamReader(
        connection_settings={"host": host, "port": int(port), "user": user, "passwd": password, "ssl_disabled": True},
        server_id=7004,
        blocking=True,
        resume_stream=True,
        log_file=file or None,
        log_pos=int(position) if position else None,
        only_events=[WriteRowsEvent, XidEvent],
    )
    for event in stream:
        if isinstance(event, XidEvent):
            print(f"position\t{stream.log_file}\t{stream.log_pos}", flush=True)
        else:
            for row in event.rows:
                print(f"insert\t{next(iter(row['values'].values()))}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""A store in memory, for those who need a log and no directory."""

from dataclasses import replace

from ibbmaster.log.interface import LogFile
from ibbmaster.store.binlog_store import BinlogStore
from ibbmaster.store.store_options import StoreOptions
from tests.machinery.simulated_disk import SimulatedDisk


class MemoryBinlog(BinlogStore):
    """Its last file ends with the last group, and none is ready behind it."""

    def __init__(self) -> None:
        super().__init__(SimulatedDisk(), StoreOptions(max_file_bytes=4 << 20))

    def files(self) -> list[LogFile]:
        *files, active = super().files()[: self.end().file_no + 1]
        return [*files, replace(active, size=self.end().offset)]

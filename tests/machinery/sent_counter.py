"""A stage that counts what goes to a replica."""

from ibbmaster.primary.streaming.block import Block
from ibbmaster.primary.streaming.sink import Send


class SentCounter:
    only_counts = True

    def __init__(self) -> None:
        self.sent_bytes = 0

    def note_border(self) -> None:
        pass

    async def pass_on(self, block: Block, send: Send) -> None:
        await send(block)
        self.note_sent(len(block))

    def note_sent(self, size: int) -> None:
        self.sent_bytes += size

"""A stage that counts what goes to a replica."""

from ibbmaster.primary.streaming.block import Block
from ibbmaster.primary.streaming.sink import Send


class SentCounter:
    def __init__(self) -> None:
        self.sent_bytes = 0

    async def pass_on(self, block: Block, send: Send) -> None:
        await send(block)
        self.sent_bytes += len(block)

"""The place where a replica at a GTID position begins to read."""

from dataclasses import dataclass
from pathlib import Path

from ibbmaster.errors import PositionPurgedError, StoreError
from ibbmaster.gtid import Gtid, GtidPosition, GtidState
from ibbmaster.logs.log.interface import LogEngine
from ibbmaster.logs.log.seek import SeekPlan
from ibbmaster.position import LogPosition
from .log_files import LogFiles

Position = GtidPosition | Gtid | str  # how far a replica is; text as `0-1-100,1-1-7`


def as_position(position: Position) -> GtidPosition:
    """Raises GtidError: the text is none."""
    if isinstance(position, str):
        return GtidPosition.parse(position)
    return GtidPosition([position]) if isinstance(position, Gtid) else position


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """The start of a dump from a GTID position: at `place` in `file_name`, with `state` logged before and the search
    of `.ibb` files in `plan`; or the `refusal` that a replica gets, and its `reason`."""

    position: GtidPosition
    file_name: str | None = None
    place: LogPosition | None = None
    state: GtidState | None = None
    plan: SeekPlan | None = None
    refusal: str | None = None
    reason: str | None = None

    def explain(self) -> str:
        """The search in words, one step a line."""
        if self.refusal is not None:
            return f"position [{self.position}]\n  refused: {self.refusal}\n  because: {self.reason}"
        if self.plan is not None:
            return str(self.plan)
        assert self.place is not None
        return f"position [{self.position}]\nstart at {self.file_name} offset {self.place.offset}, state [{self.state}]"


def start_at(path: Path, engine: LogEngine, files: LogFiles, position: Position) -> Start:
    """Or its refusal; errors as `Log.seek`."""
    wanted = as_position(position)
    state = engine.state()
    if not len(state) and not any(file.size for file in engine.files()):
        raise StoreError(f"{path}: no binlog files (binlog-000000.ibb and so on)")
    logged = (state.seq_no(gtid.domain_id, gtid.server_id) for gtid in wanted.values())
    if any(seq_no is None or seq_no < gtid.seq_no for seq_no, gtid in zip(logged, wanted.values(), strict=True)):
        refusal = _refusal(wanted, state)
        if refusal is not None:
            return refusal
    try:
        plan = engine.seek(wanted)
    except PositionPurgedError as error:
        return Start(position=wanted, refusal="the position is too old", reason=str(error))
    return Start(
        position=wanted,
        file_name=engine.file_name(plan.position.file_no),
        place=files.place(plan.position),
        state=plan.state,
        plan=plan if isinstance(plan, SeekPlan) else None,
    )


def _refusal(wanted: GtidPosition, state: GtidState) -> Start | None:
    from ibbmaster.replication.dump.error import DumpError
    from ibbmaster.replication.dump.request import DumpRequest
    from ibbmaster.replication.dump.start import check_start

    try:
        check_start(DumpRequest(replica_server_id=0, position=wanted), state)
    except DumpError as error:
        return Start(position=wanted, refusal=error.text, reason=error.explanation)
    return None

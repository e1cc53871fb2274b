"""Sessions of dumps beneath the server."""

from ibbmaster.logs.log.interface import LogEngine, ReadPlan
from ibbmaster.replication.dump.profile import PROFILES, Profile
from ibbmaster.replication.dump.request import DumpRequest
from ibbmaster.replication.dump.session import DumpSession
from ibbmaster.replication.dump.start import check_start


def session_of(
    engine: LogEngine, request: DumpRequest, profile: Profile = PROFILES["engine"], place: ReadPlan | None = None
) -> tuple[DumpSession, ReadPlan]:
    check = check_start(request, engine.state())
    if place is None:
        place = engine.seek(check.position)
    session = DumpSession(
        request,
        check,
        profile=profile,
        server_id=1,
        start_state=place.state,
        current_state=engine.state,
        position=place.position,
        file_name=engine.file_name,
    )
    return session, place

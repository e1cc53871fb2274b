"""What a session of the dialogue has set, as expressions ask for it."""

from __future__ import annotations

from ibbmaster.dialogue.evaluating import Evaluator
from ibbmaster.expr.session_functions import QuerySession
from ibbmaster.wire.response import COLLATION_DEFAULT


def session_of(
    evaluator: Evaluator,
    version: int,
    charset: str | None = "utf8mb4",
    collation_id: int = COLLATION_DEFAULT,
    *,
    is_binary: bool = False,
) -> QuerySession:
    """What a session has set now; `charset` and `collation_id` are those that texts of results get."""
    settings = evaluator.settings
    digits = settings.value("div_precision_increment")
    return QuerySession(
        evaluator=evaluator,
        database=evaluator.who.database,
        collation=settings.collation,
        charset=charset,
        collation_id=collation_id,
        time_zone_s=settings.time_zone_s,
        division_digits=digits if isinstance(digits, int) else 4,
        version=version,
        is_binary=is_binary,
    )

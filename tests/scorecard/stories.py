"""What was logged and what a consumer told of it, in a few words a line: `begin 2`, `change 3`, `commit`, `error x`."""

from decimal import Decimal
from typing import Any

from ibbmaster_scorecard.journal import ToldEvent
from ibbmaster_scorecard.matching import LoggedChange, LoggedGroup


def change(number: int, **keys: Any) -> LoggedChange:
    image = {"id": number, "total": Decimal(f"{number}.00")}
    return LoggedChange(**{"table": "shop.orders", "kind": "insert", "after": image, "columns": tuple(image), **keys})


def logged(*sizes: int) -> list[LoggedGroup]:
    """Groups 0-3-1, 0-3-2, … of so many changes; these are numbered from 1."""
    numbers = iter(range(1, sum(sizes) + 1))
    return [
        LoggedGroup(gtid=f"0-3-{place}", changes=tuple(change(next(numbers)) for _ in range(size)))
        for place, size in enumerate(sizes, 1)
    ]


def told(story: str) -> list[ToldEvent]:
    """One line of the story is one that was told; `restart` is none, but begins another process."""
    found: list[ToldEvent] = []
    process = 1
    for line in filter(None, map(str.strip, story.splitlines())):
        what, _, rest = line.partition(" ")
        if what == "restart":
            process += 1
            continue
        keys: dict[str, Any] = {"what": what}
        match what:
            case "begin" | "commit":
                keys["gtid"] = f"0-3-{rest}" if rest else None
            case "change":
                number, _, total = rest.partition(" ")
                image = {"id": int(number), "total": total or f"{number}.0"}
                keys |= {"table": "shop.orders", "kind": "insert", "after": image}
            case "table":
                keys |= {"table": "shop.orders", "columns": tuple(rest.split())}
            case "statement":
                keys["text"] = rest
            case "fatal" | "retried" | "internal" | "error":
                keys |= {
                    "what": "error",
                    "text": rest,
                    "is_fatal": what in ("fatal", "internal"),
                    "is_retried": what == "retried",
                    "is_internal": what == "internal",
                }
        found.append(ToldEvent(**keys, process=process, at=float(len(found))))
    return found

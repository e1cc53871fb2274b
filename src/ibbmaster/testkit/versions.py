"""Which server a primary of tests is, by its version."""

from __future__ import annotations

from typing import TypedDict

#: Versions as scenarios name them: the profile whose shape their streams have, and the version they claim.
VERSIONS: dict[str, tuple[str, str]] = {
    "10.6": ("classic-10.11", "10.6.22-MariaDB-log"),
    "10.11": ("classic-10.11", "10.11.19-MariaDB-log"),
    "11.4": ("classic-11.8", "11.4.7-MariaDB-log"),
    "11.8": ("classic-11.8", "11.8.6-MariaDB-log"),
    "12.3": ("engine", "12.3.2-MariaDB-log"),
}


class VersionOptions(TypedDict, total=False):
    """Options of `ibbmaster.serve` that say which server it is."""

    profile: str
    server_version: str


def version_options(name: str) -> VersionOptions:
    """The options for a version of `VERSIONS`, or for a profile by its name."""
    if name not in VERSIONS:
        return {"profile": name}
    profile, server_version = VERSIONS[name]
    return {"profile": profile} if name == "12.3" else {"profile": profile, "server_version": server_version}

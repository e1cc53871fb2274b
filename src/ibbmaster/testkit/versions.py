"""Which server a primary of tests is, by its version."""

from __future__ import annotations

from ibbmaster.api.serving import check_options
from ibbmaster.api.serving_options import PlainServingOptions
from ibbmaster.dump.profile import Profile

#: Versions as scenarios name them: the profile whose shape their streams have, and the version they claim.
VERSIONS: dict[str, tuple[str, str]] = {
    "10.6": ("classic-10.11", "10.6.22-MariaDB-log"),
    "10.11": ("classic-10.11", "10.11.19-MariaDB-log"),
    "11.4": ("classic-11.8", "11.4.7-MariaDB-log"),
    "11.8": ("classic-11.8", "11.8.6-MariaDB-log"),
    "12.3": ("engine", "12.3.2-MariaDB-log"),
}


def profile_of(name: str) -> Profile:
    """The profile of a version, or of that name. Raises ConfigurationError: there is none."""
    return check_options(**version_options(name), tls="off").primary.profile


def version_options(name: str | None) -> PlainServingOptions:
    """The options for one of `VERSIONS`, or for a profile by its name; None: for the default one."""
    if name not in VERSIONS:
        return {} if name is None else {"profile": name}
    profile, server_version = VERSIONS[name]
    return {"profile": profile, "server_version": server_version} if profile != "engine" else {"profile": profile}

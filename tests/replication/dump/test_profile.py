import dataclasses

import pytest

from ibbmaster.errors import ConfigurationError
from ibbmaster.replication.dump.profile import PROFILES, Profile
from ibbmaster.replication.event.format_description import ChecksumAlgorithm


def test_there_are_four_profiles_and_engine_is_the_first() -> None:
    assert list(PROFILES) == ["engine", "compat", "classic-10.11", "classic-11.8"]
    assert all(profile.name == name for name, profile in PROFILES.items())


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
def test_every_mariadb_binlog_since_10_11_knows_the_version_of_an_engine_profile(profile: Profile) -> None:
    assert int(profile.sql_version.split(".")[0]) in ((5, 10) if profile.requires_gtid else (5, 10, 11))


def test_a_claimed_version_is_claimed_everywhere() -> None:
    profile = PROFILES["engine"].with_version("10.6.1-MariaDB-mine")
    assert profile.server_version == profile.sql_version == "10.6.1-MariaDB-mine"
    assert dataclasses.replace(profile, server_version="", sql_version="") == dataclasses.replace(
        PROFILES["engine"], server_version="", sql_version=""
    )


@pytest.mark.parametrize(
    "text", ["", "MariaDB", "12.3", "12.3.2\0", "12.3.2-" + "x" * 44, "12.3.2-Mariä", "-1.2.3", "12.3.2\n"]
)
def test_a_text_that_is_no_version_or_too_long_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"as in 12\.3\.2-MariaDB-log"):
        PROFILES["engine"].with_version(text)


def test_the_longest_version_that_fits_into_a_format_description_is_taken() -> None:
    assert PROFILES["engine"].with_version("12.3.2-" + "x" * 42).server_version.endswith("x")


def test_only_a_traditional_primary_has_checksums_positions_and_heads_of_files() -> None:
    for profile in PROFILES.values():
        is_classic = profile.storage_engine is None
        assert (profile.event_checksum is ChecksumAlgorithm.CRC32) == is_classic
        assert profile.rotates_with_files == is_classic
        assert profile.requires_gtid == (not is_classic)
        assert profile.type_count == (171 if is_classic else 172)

from typing import Any

from ibbmaster.replication.wire.capability import LOW_MASK, SERVER_DEFAULT, Capability

REAL_10_11_WITHOUT_TLS = 0x81FFF7FE  # dump-protocol, measured
REAL_11_8_WITH_TLS = 0x81FFFFFE


def test_a_server_offers_what_a_real_one_does_less_what_is_not_implemented() -> None:
    missing = Capability.COMPRESS | Capability.SESSION_TRACK | Capability.DEPRECATE_EOF
    assert REAL_10_11_WITHOUT_TLS & ~missing == SERVER_DEFAULT & LOW_MASK
    assert REAL_11_8_WITH_TLS & ~missing == SERVER_DEFAULT & LOW_MASK | Capability.TLS


def test_of_the_extended_bits_the_metadata_of_columns_is_offered() -> None:
    assert SERVER_DEFAULT & ~LOW_MASK == Capability.EXTENDED_METADATA


def test_unknown_bits_of_a_client_are_kept_and_do_no_harm() -> None:
    assert Capability(2**64 - 1) & SERVER_DEFAULT == SERVER_DEFAULT


def test_real_servers_offer_only_bits_with_a_name(conversation: Any) -> None:
    offered = conversation.greeting.capabilities
    named = Capability(0)
    for capability in Capability:
        named |= capability
    assert offered & ~named == 0

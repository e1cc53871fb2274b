from ibbmaster.lake.maintain.delta import innermost


def test_an_error_in_colours_is_cut_down_to_its_cause() -> None:
    text = (  # of deltalake 1.6, on a full disk
        "Generic LocalFileSystem error\n"
        "          \x1b[31m↳\x1b[0m Unable to copy data to file\n"
        "           \x1b[31m↳\x1b[0m No space left on device (os error 28)\n"
    )
    assert innermost(text) == "No space left on device (os error 28)"
    assert innermost("Failed to commit\ntransaction: 3") == "Failed to commit transaction: 3"
    assert innermost("") == "delta-rs gave no reason"
    assert innermost("Json error: Truncated\n   0: <unknown>\n   1: start") == "Json error: Truncated"

"""What an operator sees who asks with the `mariadb` client."""

import subprocess
from collections.abc import Callable

import pytest
from lanes.primary import IbbPrimary

RunTool = Callable[..., subprocess.CompletedProcess[str]]

VERSIONS = ["10.11", "11.8"]
ANSWERS = {  # statement: the answer in --batch form; a dot stands for anything
    "SHOW MASTER STATUS": [
        "File\tPosition\tBinlog_Do_DB\tBinlog_Ignore_DB\tGtid_Binlog_Pos",
        "binlog-000000.ibb\t.\t\t\t.",
    ],
    "SHOW BINARY LOGS": ["Log_name\tFile_size", "binlog-000000.ibb\t.", "binlog-000001.ibb\t."],
    "SHOW BINLOG EVENTS LIMIT 2": [
        "Log_name\tPos\tEvent_type\tServer_id\tEnd_log_pos\tInfo",
        "binlog-000000.ibb\t0\tGtid\t1\t0\tGTID 0-1-1",
        "binlog-000000.ibb\t0\tQuery\t1\t0\t.",
    ],
    "SHOW SLAVE HOSTS": [],
    "SELECT @@GLOBAL.gtid_binlog_pos AS pos": [
        "pos",
        "0-2-27,1-77-4611686023427388938,2-4294967295-34,7-2-29,4294967295-77-32",
    ],
    "SHOW VARIABLES LIKE 'server_id'": ["Variable_name\tValue", "server_id\t1"],
    "SELECT @@server_id, @@log_bin": ["@@server_id\t@@log_bin", "1\t1"],
}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("statement", "lines"), ANSWERS.items(), ids=ANSWERS)
def test_the_client_prints_the_answer(statement, lines, version, captures, new_ibb_primary, run_tool):
    done = ask(run_tool, version, new_ibb_primary(captures["10.11/domains"]), statement)

    assert (done.returncode, done.stderr) == (0, "")
    printed = [line.split("\t") for line in done.stdout.splitlines()]
    expected = [line.split("\t") for line in lines]
    assert [len(line) for line in printed] == [len(line) for line in expected]
    for got, wanted in zip(printed, expected, strict=True):
        assert all(one == other or other == "." for one, other in zip(got, wanted, strict=True)), got


@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_no_statement_of_a_primary_is_an_error(version, captures, new_ibb_primary, run_tool):
    done = ask(run_tool, version, new_ibb_primary(captures["10.11/domains"]), "DROP TABLE everything")

    assert done.returncode == 1
    assert "\nERROR 1290 (HY000) at line 1: " in done.stderr


def ask(run_tool: RunTool, version: str, primary: IbbPrimary, statement: str) -> subprocess.CompletedProcess[str]:
    """Run one statement with the client of a version, with that version's TLS defaults."""
    account = [f"--host={primary.host}", f"--port={primary.port}", f"--user={primary.user}"]
    return run_tool(
        version, "mariadb", "--protocol=TCP", *account, f"--password={primary.password}", "--batch", "-e", statement
    )

"""Copies go-mysql to `module`, changes a few words there, and adds `relayed_*.go`: its tests then find their server and
their streams where the environment says, SERVER and RELAY, and speak MariaDB's SQL."""

import shutil
import subprocess
from pathlib import Path

MODULE = "github.com/go-mysql-org/go-mysql"
START = "StartSync(pos mysql.Position) (*BinlogStreamer, error) {"
LATE = "if err == context.DeadlineExceeded {"
CHANGES = (
    ("client/conn.go", 'if network == "" {', 'addr = ServerOf(addr)\n\tif network == "" {'),
    ("client/conn.go", "var buf bytes.Buffer", "query = inWordsOfMariaDB(query)\n\tvar buf bytes.Buffer"),
    ("replication/binlogsyncer.go", 'timeoutCtx, "", addr,', 'timeoutCtx, "", client.StreamsOf(addr),'),
    ("replication/binlogsyncer.go", START, f"{START}\n\tif client.IsRelayed() {{\n\t\treturn b.startAfter(pos)\n\t}}"),
    # They cut the connection after 100 ms, when a busy server may not have said yet which file this is.
    ("replication/replication_test.go", "// Test re-sync.\n", "t.b.waitForFile()\n"),
    # They read until nothing came for two seconds. That may be all too early, and not be noticed where nothing comes.
    ("replication/replication_test.go", "t.wg.Add(1)", "isWritten.Store(false)\n\tt.wg.Add(1)"),
    ("replication/replication_test.go", "t.wg.Wait()", "isWritten.Store(true)\n\tt.wg.Wait()"),
    ("replication/replication_test.go", LATE, f"{LATE}\n\t\t\t\tif !t.b.hasAll() {{\n\t\t\t\t\tcontinue\n\t\t\t\t}}"),
    ("replication/replication_test.go", "t.c.Execute(showReplicas)", "t.b.askSource(showReplicas)"),
    ("replication/replication_test.go", 'Version("8.0.28")', 'Version("5.0.0")'),  # since when replicas have no UUID
    ("canal/canal_test.go", 'cfg.User = "root"', 'cfg.User = "root"\n\tcfg.Flavor = mysql.MariaDBFlavor'),
    ("canal/canal_test.go", "300 * time.Millisecond", "300 * time.Millisecond * patience"),
    ("canal/canal.go", "dumpPath,\n\t\tc.cfg.Addr,", "dumpPath,\n\t\tclient.ServerOf(c.cfg.Addr),"),
    ("canal/sync.go", "time.NewTimer(timeout)", "time.NewTimer(timeout * patience)"),
    ("canal/sync.go", "if curPos.Compare(pos) >= 0 {", "if c.hasReached(pos) {"),
)


def main() -> None:
    found = subprocess.run(["go", "list", "-m", "-f", "{{.Dir}}", MODULE], check=True, capture_output=True, text=True)
    copy = Path("module")
    shutil.copytree(found.stdout.strip(), copy, copy_function=shutil.copyfile)
    for one in (copy, *copy.rglob("*")):
        one.chmod(0o755 if one.is_dir() else 0o644)  # Go keeps modules read-only
    for name, theirs, ours in CHANGES:
        text = (copy / name).read_text()
        if text.count(theirs) != 1:
            raise SystemExit(
                f"go-mysql has {theirs!r} {text.count(theirs)} times in {name}: this is for another version"
            )
        (copy / name).write_text(text.replace(theirs, ours))
    for path in Path().glob("relayed_*.go"):
        shutil.copy(path, copy / path.stem.removeprefix("relayed_") / "relayed.go")


if __name__ == "__main__":
    main()

"""The documents as a site: every link leads to a page, also those that leave docs/, and an index for programs."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_site_is_built_without_a_broken_link_and_its_index_names_every_guide(tmp_path):
    command = [sys.executable, ROOT / ".ci" / "site.py", tmp_path / "site"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    page = (tmp_path / "site" / "docs" / "serving" / "index.html").read_text()
    assert "<h1" in page
    index = (tmp_path / "site" / "llms.txt").read_text()
    assert index.startswith("# ibbmaster\n\n> A MariaDB replication primary")
    listed = re.findall(r"^- \[[^]]+\]\(docs/([\w-]+)\.md\): \S", index, re.MULTILINE)
    guides = {path.stem for path in (ROOT / "docs").glob("*.md")} - {"README"}
    assert guides == set(listed)
    assert len(listed) == len(guides)

"""The documents as a site: `python .ci/site.py DIR`, with `pip install mkdocs-material`.

Pages keep their places, so that the same links work in a checkout and on the site; `llms.txt` is made of the index.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("README.md", "CHANGELOG.md", "LICENSE", "docs/*.md", "protocol/**/*", "fixtures/*.md")
ROW = re.compile(r"^(?:\||\d\.) (\[.+\]\(.+)$", re.MULTILINE)
LINK = re.compile(r"\[([^]]+)\]\(([^)]+)\)")
SETTINGS = """
site_name: ibbmaster
docs_dir: {pages}
theme:
  name: material
  features: [navigation.indexes, content.code.copy]
  font: false
markdown_extensions: [tables, admonition, pymdownx.superfences]
validation:
  links:
    anchors: warn
    unrecognized_links: warn
"""


def gather(target: Path) -> None:
    """Copy the pages, and what they show, to where the site is made of them."""
    for pattern in PAGES:
        for path in ROOT.glob(pattern):
            if path.is_file():
                place = target / path.relative_to(ROOT)
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, place)


def llms_text() -> str:
    """The index of the documents, for programs that read before they answer (llmstxt.org)."""
    title, _, rest = (ROOT / "README.md").read_text().partition("\n")
    lines = [title, "", f"> {rest.strip().partition(':')[0]}.", "", "## Documents", ""]
    for row in ROW.findall((ROOT / "docs" / "README.md").read_text()):
        about = LINK.sub(r"\1", row.partition(" | ")[2] or row.partition(": ")[2]).removesuffix(" |")
        lines += [f"- [{name}](docs/{page}): {about}" for name, page in LINK.findall(row.partition(" | ")[0])[:2]]
    return "\n".join(lines) + "\n"


def main(target: str) -> int:
    with tempfile.TemporaryDirectory() as scratch:
        pages = Path(scratch, "pages")
        gather(pages)
        settings = Path(scratch, "mkdocs.yml")
        settings.write_text(SETTINGS.format(pages=pages))
        command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-q", "-f", str(settings), "-d", target]
        code = subprocess.run(command, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, check=False).returncode
    Path(target, "llms.txt").write_text(llms_text())
    return code


if __name__ == "__main__":
    sys.exit(main(str(Path(sys.argv[1]).resolve())))

"""The image that Containerfile describes, as an operator starts it: a user of its own, nothing to write, no rights.

With --containers. Podman of Debian builds it, on a Debian of mmdebstrap in place of the image of Python, so that no
registry of images is needed; what pip fetches comes from where pip of this machine gets it.
"""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from lanes.primary import PASSWORD, USER

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.interop, pytest.mark.slow]
BASE = "localhost/ibbmaster-test-base"
IMAGE = "localhost/ibbmaster-test"
SETTINGS = """
[containers]
default_ulimits = ["nofile=20000:20000", "nproc=32768:32768"]
[engine]
cgroup_manager = "cgroupfs"
runtime = "runc"
events_logger = "file"
"""
CERTIFICATES = "/etc/ssl/certs"
PIP_CONF = "[global]\ncert = /etc/ssl/certs/ca-certificates.crt\nfind-links = {}\n"


@pytest.fixture(scope="module")
def podman(tmp_path_factory, request):
    if not request.config.getoption("--containers"):
        pytest.skip("builds an image, which takes minutes: --containers")
    if missing := [name for name in ("podman", "mmdebstrap", "runc") if shutil.which(name) is None]:
        pytest.skip(f"{', '.join(missing)} of Debian is not installed")
    place = tmp_path_factory.mktemp("podman")
    settings = place / "containers.conf"
    settings.write_text(SETTINGS)
    environment = {**os.environ, "CONTAINERS_CONF": str(settings), "BUILDAH_ISOLATION": "chroot"}

    def run(*arguments: object) -> str:
        command = ["podman", "--root", place / "root", "--runroot", place / "run", *map(str, arguments)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr * (arguments[0] == "logs")

    yield run
    run("rmi", "--all", "--force")
    subprocess.run(["podman", "--root", place / "root", "--runroot", place / "run", "system", "reset", "--force"],
                   env=environment, capture_output=True, check=False)  # fmt: skip


@pytest.fixture(scope="module")
def image(podman, tmp_path_factory) -> str:
    place = tmp_path_factory.mktemp("image")
    packages = "--include=python3,python3-venv,ca-certificates"
    subprocess.run(["mmdebstrap", "--quiet", "--variant=minbase", packages, "bookworm", place / "base.tar"], check=True)
    podman("import", place / "base.tar", BASE)
    (place / "base.tar").unlink()
    (place / "pip.conf").write_text(PIP_CONF.format(links := os.environ.get("PIP_FIND_LINKS", "")))
    mounts = [f"{CERTIFICATES}:{CERTIFICATES}:ro", f"{place}/pip.conf:/etc/pip.conf:ro"]
    mounts += [f"{links}:{links}:ro"] if Path(links).is_dir() else []
    options = [part for mount in mounts for part in ("-v", mount)]
    where = ["--network", "host", "--format", "docker", "--build-arg", f"PYTHON={BASE}"]
    podman("build", "-q", *where, *options, "-t", IMAGE, ROOT)
    return IMAGE


@pytest.fixture
def container(podman, image, captures) -> Iterator[SimpleNamespace]:
    """Serves a capture, read-only and without capabilities."""
    capture = captures["11.8/domains"]
    limits = ["--read-only", "--cap-drop=all", "--security-opt=no-new-privileges", "--network", "host"]
    account = ["-e", f"IBBMASTER_USER={USER}", "-e", f"IBBMASTER_PASSWORD={PASSWORD}"]
    log = ["-v", f"{ROOT}/fixtures/classic/11.8/domains:/log:ro"]
    serve = ["serve", "/log", "--listen", "127.0.0.1:0", "--tls", "off"]
    name = podman("run", "-d", *limits, *account, *log, image, *serve).strip()
    try:
        port = port_of(podman, name)
        yield SimpleNamespace(host="127.0.0.1", port=port, user=USER, password=PASSWORD, name=name, capture=capture)
    finally:
        podman("rm", "-f", name)


def port_of(podman: Callable[..., str], name: str) -> int:
    """Where a container listens, once it does."""
    while (found := re.search(r"^serving /log on \S+:(\d+) ", podman("logs", name), re.MULTILINE)) is None:
        assert json.loads(podman("inspect", name))[0]["State"]["Running"], podman("logs", name)
    return int(found[1])


def test_a_replica_follows_the_image_which_stops_in_order(podman, container, new_replica):
    replica = new_replica("11.8")
    replica.follow(container)
    replica.expect_end(container.capture)

    assert podman("exec", container.name, "id", "-u").strip() == "65532"
    kernels = "from ibbmaster.kernel.loading import load; print(load() is not None)"
    assert podman("exec", container.name, "python3", "-c", kernels).strip() == "True"
    podman("stop", "-t", "30", container.name)
    (state,) = json.loads(podman("inspect", container.name))
    assert state["State"]["ExitCode"] == 0


def test_the_image_says_that_it_is_well(podman, image):
    (found,) = json.loads(podman("inspect", image))
    assert found["User"] == "65532:65532"
    assert found["Config"]["Entrypoint"] == ["ibbmaster"]
    limits = ["--read-only", "--cap-drop=all", "--network=none"]
    given = ["-e", f"IBBMASTER_PASSWORD={PASSWORD}", "-v", f"{ROOT}/fixtures/ibb/xa-and-ddl:/log:ro"]
    name = podman("run", "-d", *limits, *given, image).strip()
    try:
        assert port_of(podman, name) == 3306
        podman("healthcheck", "run", name)
    finally:
        podman("rm", "-f", name)

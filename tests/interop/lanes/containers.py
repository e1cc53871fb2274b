"""Containers without a registry of images: Podman of Debian, and a Debian of mmdebstrap for what images are made of.

`python tests/interop/lanes/containers.py` makes the latter in the cache of this user, as `.ci/prepare tests` does.
"""

import contextlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from ibbmaster.errors import ConfigurationError
from ibbmaster.user_cache import cache_directory, make_directory, program_directory

ROOT = Path(__file__).parents[3]
IMAGES = ROOT / "tests/interop/images"
PROGRAMS = ("podman", "mmdebstrap", "runc")
PACKAGES = "python3,python3-venv,ca-certificates,mariadb-server-core,mariadb-client,wget,systemd"  # of all images
TIMEOUT_S = 900.0
BASE, IMAGE = "localhost/ibbmaster-test-base", "localhost/ibbmaster-test"
MARIADB, PROMETHEUS = "localhost/ibbmaster-test-mariadb", "localhost/ibbmaster-test-prometheus"
CERTIFICATES = "/etc/ssl/certs"
PIP_CONF = "[global]\ncert = /etc/ssl/certs/ca-certificates.crt\nfind-links = {}\n"
WITHOUT_NETWORK = (
    "Temporary failure in name resolution",
    "ConnectionError",
    "Could not fetch URL",
    "No matching distribution found",
    "ProxyError",
    "SSLError",
    "TimeoutError",
)
SETTINGS = """
[containers]
default_ulimits = ["nofile=20000:20000", "nproc=32768:32768"]
[engine]
cgroup_manager = "cgroupfs"
runtime = "runc"
events_logger = "file"
[network]
network_backend = "netavark"
network_config_dir = "{place}/networks"
"""
STORAGE = """
[storage]
driver = "overlay"
graphroot = "{place}/root"
runroot = "{place}/run"
"""


class ContainersMissingError(Exception):
    """Containers cannot run here; the text says why."""


def found_program(name: str) -> str | None:
    """Of PATH, or of Debian's Prometheus, which `.ci/prepare tests` unpacks."""
    unpacked = (cache_directory() or Path("/nowhere")) / "prometheus/usr/bin"
    return shutil.which(name) or shutil.which(name, path=str(unpacked))


def base_tar() -> Path:
    """The files of a Debian, made now if need be. Raises ContainersMissingError: it cannot be made here."""
    if missing := [name for name in PROGRAMS if shutil.which(name) is None]:
        raise ContainersMissingError(f"{', '.join(missing)} of Debian is not installed")
    try:
        made = program_directory() / "container-base-2.tar"
        if not made.exists():
            make_directory(made.parent)
            making = made.with_name(f"{made.name}.{os.getpid()}")
            command = ["mmdebstrap", "--quiet", "--variant=minbase", f"--include={PACKAGES}", "bookworm", str(making)]
            try:
                done = subprocess.run([*command, "--format=tar"], capture_output=True, text=True, timeout=TIMEOUT_S)
                if done.returncode:
                    raise ContainersMissingError(f"mmdebstrap cannot make a Debian here: {done.stderr[-600:]}")
                making.rename(made)
            finally:
                making.unlink(missing_ok=True)
    except (ConfigurationError, OSError, subprocess.TimeoutExpired) as error:
        raise ContainersMissingError(f"no Debian for containers: {error}") from error
    return made


class Podman:
    """Podman with images and networks of its own, below a directory."""

    def __init__(self, place: Path) -> None:
        """Raises ContainersMissingError: it does not work here."""
        tar = base_tar()
        (place / "containers.conf").write_text(SETTINGS.format(place=place))
        (place / "storage.conf").write_text(STORAGE.format(place=place))
        self.environment = {**os.environ, "BUILDAH_ISOLATION": "chroot"}
        for name in ("containers", "storage"):
            key = "CONTAINERS_CONF" if name == "containers" else "CONTAINERS_STORAGE_CONF"
            self.environment[key] = str(place / f"{name}.conf")
        self._place = place
        self._try("import", tar, BASE)
        self._try("run", "--rm", "--network=none", BASE, "true")

    def _try(self, *arguments: object) -> None:
        try:
            done = self.ended(*arguments)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ContainersMissingError(f"podman {arguments[0]}: {error}") from error
        if done.returncode:
            raise ContainersMissingError(f"podman {arguments[0]} does not work here: {done.stderr[-600:]}")

    def ended(self, *arguments: object, program: str = "podman", **given: str) -> subprocess.CompletedProcess[str]:
        """A command, with variables of its environment."""
        return subprocess.run(
            [program, *map(str, arguments)],
            env=self.environment | given,
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
            timeout=TIMEOUT_S,
        )

    def run(self, *arguments: object) -> str:
        """What a command prints that is to work; of `logs` also what the container says on standard error."""
        done = self.ended(*arguments)
        assert done.returncode == 0, f"podman {arguments[0]}: {done.stdout[-2000:]}{done.stderr[-4000:]}"
        return done.stdout + done.stderr * (arguments[0] == "logs")

    def expect_networks(self) -> None:
        """Skip the test where containers cannot see each other."""
        for command in (
            ("network", "create", "ibbmaster-try"),
            ("run", "--rm", "--network=ibbmaster-try", BASE, "true"),
        ):
            try:
                self._try(*command)
            except ContainersMissingError as error:
                pytest.skip(f"no network of containers: {error}")

    def build_image(self) -> str:
        """The image of Containerfile; what pip fetches comes from where pip of this machine gets it."""
        (self._place / "pip.conf").write_text(PIP_CONF.format(links := os.environ.get("PIP_FIND_LINKS", "")))
        mounts = [f"{CERTIFICATES}:{CERTIFICATES}:ro", f"{self._place}/pip.conf:/etc/pip.conf:ro"]
        mounts += [f"{links}:{links}:ro"] if Path(links).is_dir() else []
        options = [part for mount in mounts for part in ("-v", mount)]
        where = ["--network", "host", "--format", "docker", "--build-arg", f"PYTHON={BASE}"]
        done = self.ended("build", "-q", *where, *options, "-t", IMAGE, ROOT)
        if done.returncode and any(text in done.stderr for text in WITHOUT_NETWORK):
            pytest.skip(f"pip reaches no index from here: {done.stderr[-600:]}")
        assert done.returncode == 0, done.stderr[-4000:]
        return IMAGE

    def build_others(self) -> None:
        """Images of Debian's packages, for those of MariaDB and Prometheus; skip the test without Prometheus."""
        prometheus = found_program("prometheus")
        if prometheus is None:
            pytest.skip("no Prometheus of Debian: sh .ci/prepare tests")
        context = self._place / "others"
        shutil.copytree(IMAGES, context)
        shutil.copy(prometheus, context)
        common = f"FROM {BASE}\n"
        scripts = "COPY --chmod=755 mariadb.sh healthcheck.sh /usr/local/bin/\nVOLUME /var/lib/mysql\n"
        (context / "mariadb").write_text(f'{common}{scripts}ENTRYPOINT ["mariadb.sh"]\n')
        entry = '["prometheus", "--config.file=/etc/prometheus/prometheus.yml", "--storage.tsdb.path=/prometheus"]'
        (context / "prom").write_text(f"{common}COPY --chmod=755 prometheus /usr/local/bin/\nENTRYPOINT {entry}\n")
        for name, tag in (("mariadb", MARIADB), ("prom", PROMETHEUS)):
            self.run("build", "-q", "--network=host", "-f", context / name, "-t", tag, context)

    def close(self) -> None:
        """Remove all that there is."""
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            self.ended("system", "reset", "--force")


if __name__ == "__main__":
    try:
        print(f"files for containers are in {base_tar()}")
    except ContainersMissingError as error:
        print(f"no containers: {error}")

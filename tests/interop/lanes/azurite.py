"""Azurite: Microsoft's own emulator of Azure's object store, with its well-known account."""

import base64
import hashlib
import hmac
import re
import subprocess
import urllib.request
from email.utils import formatdate

from lanes.drivers import driver_command

ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
VERSION = "2021-08-06"  # of the protocol
OPTIONS = ("--inMemoryPersistence", "--disableTelemetry", "--skipApiVersionCheck", "--silent")


class Azurite:
    """A running store with one container, whose bytes are in its memory."""

    def __init__(self, container: str) -> None:
        command = [*driver_command("azurite", "blob"), *OPTIONS, "--blobHost", "127.0.0.1", "--blobPort", "0"]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        said = ""
        for line in self._process.stdout:
            said += line
            if found := re.search(r"successfully listens on (http://\S+)", line):
                self.endpoint = f"{found[1]}/{ACCOUNT}"
                self._make_container(container)
                return
        raise AssertionError(f"Azurite does not start: {said}")

    @property
    def environment(self) -> dict[str, str]:
        return {
            "AZURE_STORAGE_USE_EMULATOR": "true",  # else clients ask it to list from a name on, which it does not do
            "AZURITE_BLOB_STORAGE_URL": self.endpoint.removesuffix(f"/{ACCOUNT}"),
            "AZURE_STORAGE_ENDPOINT": self.endpoint,
            "AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT,
            "AZURE_STORAGE_ACCOUNT_KEY": KEY,
        }

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()

    def _make_container(self, name: str) -> None:
        date = formatdate(usegmt=True)
        headers = f"x-ms-date:{date}\nx-ms-version:{VERSION}\n"
        signed = "PUT" + "\n" * 12 + f"{headers}/{ACCOUNT}/{ACCOUNT}/{name}\nrestype:container"
        digest = hmac.digest(base64.b64decode(KEY), signed.encode(), hashlib.sha256)
        request = urllib.request.Request(
            f"{self.endpoint}/{name}?restype=container",
            method="PUT",
            headers={
                "x-ms-date": date,
                "x-ms-version": VERSION,
                "Authorization": f"SharedKey {ACCOUNT}:{base64.b64encode(digest).decode()}",
                "Content-Length": "0",
            },
        )
        urllib.request.urlopen(request).close()

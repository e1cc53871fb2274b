"""Before Spark is started it is looked whether it can be."""

from __future__ import annotations

import pytest

from ibbmaster.errors import ConfigurationError
from ibbmaster.lake.session import check_java


def test_without_java_it_is_said_in_one_line_what_to_do(tmp_path):
    with pytest.raises(ConfigurationError) as caught:
        check_java({"PATH": str(tmp_path)})
    assert str(caught.value) == (
        "Spark needs Java 17 or later: there is no java on the PATH; install openjdk-17-jre-headless, or set JAVA_HOME"
    )


def test_a_java_home_without_java_is_named(tmp_path):
    with pytest.raises(ConfigurationError, match=f"JAVA_HOME is {tmp_path}, and there is no {tmp_path}/bin/java"):
        check_java({"PATH": "/usr/bin", "JAVA_HOME": str(tmp_path)})


@pytest.mark.parametrize("variable", ["PATH", "JAVA_HOME"])
def test_java_is_found_on_the_path_or_in_its_home(tmp_path, variable):
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.touch(mode=0o755)
    check_java({"PATH": str(java.parent)} if variable == "PATH" else {"JAVA_HOME": str(tmp_path), "PATH": ""})

"""A session that asks SQLite."""

import pytest

from tests.sessions import session_evaluator


@pytest.fixture
def evaluator():
    return session_evaluator()

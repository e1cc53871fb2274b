"""A session that asks SQLite."""

from __future__ import annotations

import pytest

from tests.sessions import session_evaluator


@pytest.fixture
def evaluator():
    return session_evaluator()

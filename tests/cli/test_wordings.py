"""One question in many wordings is one question: drawn by a grammar, each must be read as what it means."""

from __future__ import annotations

import os

import pytest

from planner.catalog.load import Catalog
from tests.cli.drawn_questions import KINDS, question
from tests.cli.meanings import command_of, differs

CATALOG = Catalog(configs=True)
EACH = 12 * int(os.environ.get("PLANNER_FUZZ", "1"))
"""Questions of a kind."""


@pytest.mark.parametrize("kind", range(len(KINDS)), ids=[kind.__name__.strip("_") for kind in KINDS])
def test_wordings_of_a_question_mean_the_same(kind: int) -> None:
    asked = [question(kind + len(KINDS) * at) for at in range(EACH)]
    wrong = [(each.text, command_of(each.text, CATALOG), differs(each, CATALOG)) for each in asked
             if differs(each, CATALOG)]
    assert wrong == []

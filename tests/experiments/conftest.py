"""A configuration with its defaults, a tiny encoder, and trees that it can learn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from attree.plan.configuration import Configuration, configured
from attree.plan.jobs import Experiments
from attree.plan.plan import Plan
from tests.training.conftest import encoder, resolved, table  # noqa: F401

SOURCE = {"treebanks": ["toy/dev"], "trees": 3, "share": 1}

#: One entry of `runs`, to which a test adds keys.
RUN = {
    "encoders": ["tiny"],
    "parsers": ["fpio"],
    "train": "toy/dev",
    "test": ["toy/test"],
    "trees": [3],
}


def configure(runs: list[dict[str, Any]], figures: str | None = None, **keys: Any) -> Configuration:
    """Return a checked configuration with one experiment, ``e``, and a file of figures."""
    one = {"title": "E", "columns": "trees", "runs": [{**RUN, **run} for run in runs]}
    config = {
        "encoders": {"tiny": {"path": "encoder"}, "other": {"path": "encoder"}},
        "tuning": {"language": "toy", "split": "dev"},
        "parsers": {
            "upio": {"association": "raw", "score": "inside_outside", "decoder": "chart"},
        },
        "trained": {
            "marginal": {"recipe": "fpio", "decoder": "marginal_chart"},
            "many": {"recipe": "fpio", "sources": [SOURCE]},
        },
        "masked_lm": {"tuned": {"encoder": "tiny", "text": ["toy/dev"], "seeds": 2}},
        "tables": {},
        "published": figures,
        "experiments": {"e": {**one, **keys}},
    }
    return configured(config)


@pytest.fixture
def planned() -> Callable[..., Experiments]:
    """Plan an experiment with these runs."""

    def plan(*runs: dict[str, Any], **keys: Any) -> Experiments:
        config = configure(list(runs), **keys)
        splits = {"toy": ("dev", "test"), "other": ("dev", "test")}
        return Experiments(Plan(config, splits))

    return plan

import json

import numpy as np
import pytest

from tests.golden.simulation_results import CASES, FILE, simulated

KEPT = json.loads(FILE.read_text(encoding="utf-8"))


def test_every_simulation_is_kept() -> None:
    assert list(KEPT) == list(CASES)


@pytest.mark.parametrize("case", CASES)
def test_simulations_give_what_they_gave(case: str) -> None:
    found, kept = simulated(case), KEPT[case]
    assert found["visits"] == kept["visits"]
    for field in ("estimates", "standard_errors", "unvisited_probability"):
        np.testing.assert_allclose(found[field], kept[field], rtol=1e-9, atol=1e-12)

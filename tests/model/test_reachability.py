import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from revar.model.arrays import Layers
from revar.model.structure import all_layers, reachable_layers
from revar.problems import problems
from tests.plain_model import MODELS, PlainModel


def as_sets(layers: Layers) -> list[list[int]]:
    return [
        layers.states[layers.start[t] : layers.start[t + 1]].tolist()
        for t in range(layers.start.size - 1)
    ]


@given(st.sampled_from(sorted(MODELS)), st.integers(0, 10_000), st.integers(1, 30))
def test_layers_hold_what_the_allowed_actions_reach(kind: str, seed: int, horizon: int) -> None:
    model: PlainModel = MODELS[kind](seed)
    mdp = model.mdp()
    allowed = np.random.default_rng(seed).random((model.states, model.actions)) < 0.7
    layers = reachable_layers(mdp.arrays.outcomes, mdp.arrays.initial, allowed, horizon)
    present = {s for s in range(model.states) if model.initial[s] > 0}
    expected = []
    for _ in range(horizon):
        expected.append(sorted(present))
        present = {
            successor
            for s in present
            for a in range(model.actions)
            for successor in range(model.states)
            if allowed[s, a] and model.chance[s, a, successor] > 0
        }
    assert as_sets(layers) == expected


def test_layers_may_be_many_more_than_states() -> None:
    mdp = problems.find("riverswim")(horizon=500).mdp
    layers = reachable_layers(
        mdp.arrays.outcomes, mdp.arrays.initial, np.ones((6, 2), dtype=bool), 500
    )
    assert [len(layer) for layer in as_sets(layers)] == [1, 3, 4, 5] + [6] * 496


@pytest.mark.parametrize("horizon", [1, 3])
def test_all_layers_hold_every_state(horizon: int) -> None:
    assert as_sets(all_layers(4, horizon)) == [[0, 1, 2, 3]] * horizon

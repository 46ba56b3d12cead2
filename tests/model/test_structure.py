from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from revar import TabularMDP
from revar.model.arrays import Layers
from revar.model.structure import all_layers, reachable_layers
from revar.problems import problems
from tests.plain_model import MODELS, PlainModel

ONE_PARENT = "every reachable state is entered through one state and one action"


def graph(
    edges: dict[tuple[int, int], dict[int, float]],
    *,
    states: int,
    horizon: int,
    initial: Any = None,
    actions: int = 2,
) -> TabularMDP:
    """A model from {(state, action): {successor: probability}}; pairs not named end."""
    transitions = np.zeros((states, actions, states))
    for (state, action), successors in edges.items():
        for successor, chance in successors.items():
            transitions[state, action, successor] = chance
    start = np.eye(states)[0] if initial is None else initial
    return TabularMDP(transitions, 0.0, 1.0, start, horizon)


def test_one_state_that_always_ends_is_a_bandit() -> None:
    structure = graph({}, states=1, horizon=1).structure()
    assert structure.kind == "bandit"
    assert structure.reason == "one state is reachable and every action ends the episode"
    assert structure.is_tree
    assert structure.levels.tolist() == [0]


def test_a_bandit_may_have_a_longer_horizon_and_unreachable_states() -> None:
    structure = graph({(1, 0): {0: 1.0}}, states=2, horizon=5).structure()
    assert structure.kind == "bandit"
    assert structure.levels.tolist() == [0, -1]


def test_a_single_step_that_leads_on_is_cut_and_not_a_bandit() -> None:
    # Theorem 1 looks past the horizon, so that its recursion is not exact here.
    structure = graph({(0, 0): {0: 1.0}}, states=1, horizon=1).structure()
    assert structure.kind == "general"
    assert structure.reason == (
        "the horizon of 1 steps cuts episodes in state 0, which still leads to state 0"
    )


def test_a_tree() -> None:
    edges = {(0, 0): {1: 0.5, 2: 0.5}, (0, 1): {3: 0.9}, (3, 1): {4: 1.0}}
    structure = graph(edges, states=5, horizon=3).structure()
    assert (structure.kind, structure.reason) == ("tree", ONE_PARENT)
    assert structure.is_tree
    assert structure.levels.tolist() == [0, 1, 1, 1, 2]


def test_several_start_states_make_several_trees() -> None:
    structure = graph(
        {(0, 0): {2: 1.0}, (1, 1): {3: 1.0}}, states=4, horizon=2, initial=[0.5, 0.5, 0.0, 0.0]
    ).structure()
    assert structure.kind == "tree"
    assert structure.levels.tolist() == [0, 0, 1, 1]


def test_two_parents_make_it_layered() -> None:
    edges = {(0, 0): {1: 1.0}, (0, 1): {2: 1.0}, (1, 1): {3: 1.0}, (2, 0): {3: 0.5, 4: 0.5}}
    structure = graph(edges, states=5, horizon=3).structure()
    assert structure.kind == "layered"
    assert not structure.is_tree
    assert structure.reason == (
        "state 3 can be entered from state 1, action 1 and from state 2, action 0"
    )
    assert structure.levels.tolist() == [0, 1, 1, 2, 2]


def test_two_actions_of_one_parent_make_it_layered() -> None:
    structure = graph({(0, 0): {1: 1.0}, (0, 1): {1: 1.0}}, states=2, horizon=2).structure()
    assert structure.kind == "layered"
    assert structure.reason == (
        "state 1 can be entered from state 0, action 0 and from state 0, action 1"
    )


def test_a_state_at_two_steps_makes_it_general() -> None:
    edges = {(0, 0): {1: 1.0}, (0, 1): {2: 1.0}, (1, 0): {2: 1.0}}
    structure = graph(edges, states=3, horizon=3).structure()
    assert structure.kind == "general"
    assert not structure.is_tree
    assert structure.reason == "state 2 can be occupied at step 1 and at step 2"


def test_a_self_loop_makes_it_general() -> None:
    structure = graph({(0, 1): {0: 0.1}}, states=1, horizon=2).structure()
    assert structure.reason == "state 0 can be occupied at step 0 and at step 1"


def test_a_start_state_below_another_makes_it_general() -> None:
    structure = graph({(0, 0): {1: 1.0}}, states=2, horizon=2, initial=[0.5, 0.5]).structure()
    assert structure.reason == "state 1 can be occupied at step 0 and at step 1"


def test_a_horizon_that_cuts_makes_it_general() -> None:
    edges = {(0, 0): {1: 1.0}, (1, 1): {2: 1.0}, (2, 0): {3: 1.0}}
    assert graph(edges, states=4, horizon=4).structure().kind == "tree"
    structure = graph(edges, states=4, horizon=3).structure()
    assert structure.kind == "general"
    assert structure.reason == (
        "the horizon of 3 steps cuts episodes in state 2, which still leads to state 3"
    )


def test_unreachable_states_are_ignored() -> None:
    # States 3 and 4 loop and lead into the tree, but no episode gets to them.
    edges = {(0, 0): {1: 1.0}, (0, 1): {2: 1.0}, (3, 0): {4: 1.0}, (4, 0): {3: 0.5, 1: 0.5}}
    structure = graph(edges, states=5, horizon=3).structure()
    assert structure.kind == "tree"
    assert structure.levels.tolist() == [0, 1, 1, -1, -1]


def test_transitions_past_the_last_step_are_no_parents() -> None:
    # State 3 would be shared by 1 and 2, but with two steps nobody arrives there.
    edges = {(0, 0): {1: 1.0}, (0, 1): {2: 1.0}, (1, 0): {3: 1.0}, (2, 0): {3: 1.0}}
    assert graph(edges, states=4, horizon=3).structure().kind == "layered"
    assert "cuts episodes in state 1" in graph(edges, states=4, horizon=2).structure().reason


@pytest.mark.parametrize("kind", sorted(MODELS))
@given(seed=st.integers(0, 10_000))
def test_random_models_are_what_they_were_made_to_be(kind: str, seed: int) -> None:
    model = MODELS[kind](seed)
    found = model.mdp().structure().kind
    # By chance a "general" model may turn out simpler: compare with a direct search.
    assert found == _searched_kind(model.chance, model.initial, model.horizon)
    if kind != "general":
        assert found == kind


def _searched_kind(chance: Any, initial: Any, horizon: int) -> str:
    """The definition read aloud: sets of states by step, then parents by state."""
    states = len(initial)
    levels = [{s for s in range(states) if initial[s] > 0}]
    for _ in range(horizon - 1):
        levels.append({n for s in levels[-1] for n in range(states) if chance[s, :, n].any()})
    seen = [s for level in levels for s in level]
    if len(seen) > len(set(seen)):
        return "general"
    if any(chance[s, :, :states].any() for s in levels[-1]):
        return "general"
    if len(seen) == 1:
        return "bandit"
    parents = [int((chance[seen, :, n] > 0).sum()) for n in seen]
    return "tree" if max(parents) <= 1 else "layered"


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

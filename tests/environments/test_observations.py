from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from revar import Bins
from revar.environments.observations import make_encoding
from revar.errors import InputError

SPACES = [
    spaces.Discrete(5),
    spaces.Discrete(5, start=-2),
    spaces.MultiDiscrete([3, 4]),
    spaces.MultiDiscrete([3, 4], start=[1, -1]),
    spaces.MultiDiscrete(np.array([[3, 4], [2, 2]])),
    spaces.MultiBinary(3),
    spaces.Tuple([spaces.Discrete(3), spaces.Discrete(2)]),
    spaces.Dict({"b": spaces.Discrete(3), "a": spaces.MultiDiscrete([2, 2])}),
    spaces.Tuple([spaces.Dict({"x": spaces.Discrete(2)}), spaces.Tuple([spaces.Discrete(3)])]),
]


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_states_tell_observations_apart_and_lead_back(space: spaces.Space[object]) -> None:
    encoding = make_encoding(space)
    space.seed(0)
    table = np.zeros(encoding.shape)
    met = {}
    for _ in range(200):
        seen = space.sample()
        key = encoding.key(seen)
        back = encoding.observation(key)
        assert space.contains(back) or isinstance(space, spaces.Discrete)
        assert encoding.key(back) == key
        met[key] = encoding.place(key)
        assert encoding.key_at(met[key]) == key
        table[met[key]] = 1
    assert len(set(met.values())) == len(met) == table.sum()


@pytest.mark.parametrize("name", ["FrozenLake-v1", "Blackjack-v1", "Taxi-v4"])
def test_observations_of_real_environments(name: str) -> None:
    env = gymnasium.make(name)
    encoding = make_encoding(env.observation_space)
    seen, _ = env.reset(seed=0)
    assert hash(encoding.key(seen)) is not None
    assert env.observation_space.contains(encoding.observation(encoding.key(seen)))


@pytest.mark.parametrize(
    ("space", "seen"),
    [
        (spaces.Discrete(3, start=1), 0),
        (spaces.Discrete(3), "1"),
        (spaces.Discrete(3), float("inf")),
        (spaces.MultiDiscrete([3, 4]), np.array([1, 4])),
        (spaces.MultiDiscrete([3, 4]), np.array([1.0, 0.5])),
        (spaces.MultiDiscrete([3, 4]), np.array([1, 1, 1])),
        (spaces.MultiBinary(2), np.array([1, -1])),
        (spaces.Tuple([spaces.Discrete(3), spaces.Discrete(2)]), (2, 2)),
    ],
)
def test_observations_outside_the_space_are_refused(space: spaces.Space[object], seen: Any) -> None:
    with pytest.raises(InputError, match=r"observation .* does not belong to"):
        make_encoding(space).key(seen)


def test_a_box_among_others_is_to_be_flattened() -> None:
    mixed = spaces.Dict({"place": spaces.Discrete(3), "speed": spaces.Box(-1, 1, (1,))})
    with pytest.raises(InputError, match=r"Box.* is continuous; .*FlattenObservation.*give bins"):
        make_encoding(mixed)
    make_encoding(spaces.flatten_space(mixed), Bins([[0.5], [0.5], [0.5], [0.0]]))


def test_continuous_observations_need_bins() -> None:
    box = spaces.Box(-1, 1, (2,))
    with pytest.raises(InputError, match=r"which is continuous; .* bins=revar.Bins"):
        make_encoding(box)
    encoding = make_encoding(box, Bins([[0.0], [0.5]]))
    assert encoding.key(np.array([0.1, 0.1])) == (1, 0)
    assert box.contains(encoding.observation((1, 0)))
    with pytest.raises(InputError, match="observations have 2 numbers; bins are given for 1"):
        make_encoding(box, Bins([[0.0]]))
    with pytest.raises(InputError, match="not a Box"):
        make_encoding(spaces.Discrete(2), Bins([[0.0]]))
    with pytest.raises(InputError, match="they must be Discrete"):
        make_encoding(spaces.Text(4))


def test_states_are_the_places_between_edges() -> None:
    bins = Bins([[0.0], [-1.0, 1.0]])
    assert bins.counts == (2, 3)
    seen = {bins.state(o) for o in ([-5, -5], [-5, 0], [0, 1], [0.0, 0.999], [9, 9])}
    assert seen == {(0, 0), (0, 1), (1, 2), (1, 1)}


def test_uniform_bins_are_equally_wide_and_centres_lie_inside() -> None:
    bins = Bins.uniform([-2.0, 0.0], [2.0, 1.0], [4, 5])
    assert bins.edges[0] == (-1.0, 0.0, 1.0)
    for first in range(4):
        for second in range(5):
            assert bins.state(bins.centre((first, second))) == (first, second)
    assert bins.centre((0, 0)).tolist() == pytest.approx([-1.5, 0.1])
    assert bins.centre((3, 4)).tolist() == pytest.approx([1.5, 0.9])
    single = Bins([[], [2.0], [0.0]])
    for state in ((0, 0, 0), (0, 1, 1)):
        assert single.state(single.centre(state)) == state


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([[1.0, 0.0]], r"edges of number 0 are \[1.0, 0.0\]; they must ascend"),
        ([[0.0], [np.nan]], "edges of number 1"),
        ([], r"bins are \[\]; they must be a list of edges for each number"),
    ],
)
def test_bad_edges_are_refused(edges: list[list[float]], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Bins(edges)


def test_bad_observations_are_refused() -> None:
    bins = Bins([[0.0], [0.0]])
    with pytest.raises(InputError, match="number 1 of an observation is nan"):
        bins.state([0.0, np.nan])
    with pytest.raises(InputError, match="has 3 numbers; bins are given for 2"):
        bins.state([0.0, 0.0, 1.0])
    with pytest.raises(InputError, match="must be the same"):
        Bins.uniform([0.0], [1.0], [2, 3])
    with pytest.raises(InputError, match="must be finite"):
        Bins.uniform([0.0], [np.inf], [2])

"""Values of any space as rows of numbers, and back."""

import json
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from revar.environments.descriptions import describe_space, read_space
from revar.environments.features import Features
from revar.environments.spaces import check_finite, find_outside, inputs_of, layout_of
from revar.errors import InputError
from revar.model.episodes import Episodes

IMAGE = spaces.Box(0, 255, (84, 84, 3), np.uint8)
SPACES = [
    spaces.Box(-1.0, 1.0, (3,)),
    spaces.Box(np.array([-np.inf, 0.25]), np.array([np.inf, 1.5]), dtype=np.float64),
    spaces.Box(-2.0, 2.0, ()),
    spaces.Box(-100, 100, (2, 2), np.int16),
    IMAGE,
    spaces.Discrete(5, start=-2),
    spaces.MultiDiscrete([3, 300], start=[1, -1]),
    spaces.MultiDiscrete(np.array([[2, 3], [4, 5]])),
    spaces.MultiBinary(4),
    spaces.MultiBinary([2, 3]),
    spaces.Tuple([spaces.Discrete(3), spaces.Box(0.0, 1.0, (2, 2))]),
    spaces.Dict(
        place=spaces.Box(0.0, 1.0, (2,)),
        inner=spaces.Dict(flags=spaces.MultiBinary(2), kind=spaces.Discrete(4, start=1)),
    ),
]


def same(a: Any, b: Any) -> bool:
    if isinstance(a, dict):
        return set(a) == set(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(np.array_equal(a, b)) and np.shape(a) == np.shape(b)


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_values_come_back_from_their_rows(space: Any) -> None:
    layout = layout_of(space)
    space.seed(3)
    values = [space.sample() for _ in range(20)]
    rows = np.array([layout.row(value) for value in values])
    assert rows.shape == (20, layout.width)
    assert rows.dtype == layout.dtype
    for row, value in zip(rows, values, strict=True):
        again = layout.value(row)
        assert same(again, value)
        assert space.contains(again)
    inputs = layout.inputs(rows)
    assert inputs.dtype == np.float64
    assert inputs.shape[0] == 20


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_spaces_come_back_from_json(space: Any) -> None:
    text = describe_space(space)
    json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    again = read_space(text)
    assert again == space
    space.seed(4)
    rows = np.array([layout_of(space).row(space.sample()) for _ in range(20)])
    assert np.array_equal(layout_of(again).inputs(rows), layout_of(space).inputs(rows))


@pytest.mark.parametrize(
    "text",
    [
        "nonsense",
        "[]",
        '{"type":"Text"}',
        '{"type":"Discrete"}',
        '{"type":"Box","shape":[1],"dtype":"object","low":0,"high":1}',
        '{"type":"Box","shape":[2],"dtype":"float32","low":[0,1,2],"high":1}',
    ],
)
def test_what_describes_no_space_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="describes no space"):
        read_space(text)


def test_rows_are_compact_and_copies() -> None:
    assert layout_of(IMAGE).dtype == np.uint8
    assert layout_of(spaces.Discrete(4)).dtype == np.uint8
    both = spaces.Dict(image=IMAGE, speed=spaces.Box(-1.0, 1.0, (2,)), kind=spaces.Discrete(9))
    assert layout_of(both).dtype == np.float32
    seen = np.zeros(3, dtype=np.float32)
    row = layout_of(SPACES[0]).row(seen)
    seen[:] = 1.0
    assert not row.any()


def test_critics_see_kinds_apart_and_large_images_as_means() -> None:
    layout = layout_of(spaces.Discrete(3, start=1))
    rows = np.array([layout.row(value) for value in (1, 3)])
    np.testing.assert_array_equal(layout.inputs(rows), [[1, 0, 0], [0, 0, 1]])
    many = layout_of(spaces.Discrete(1000))
    np.testing.assert_array_equal(many.inputs(np.array([many.row(999)])), [[999]])

    images = layout_of(IMAGE)
    flat = np.full((1, 84, 84, 3), 7, dtype=np.uint8)
    flat[..., 2] = 200
    inputs = images.inputs(flat.reshape(1, -1))
    assert inputs.shape[1] <= 512
    assert set(inputs.ravel()) == {7.0, 200.0}
    rng = np.random.default_rng(0)
    odd = layout_of(spaces.Box(0.0, 1.0, (50, 33), np.float64))
    values = rng.random((2, 50, 33))
    coarse = odd.inputs(values.reshape(2, -1)).reshape(2, 25, 17)
    assert coarse[0, 0, 0] == pytest.approx(values[0, :2, :1].mean())
    assert coarse[1, 24, 16] == pytest.approx(values[1, 48:, 31:].mean())


@pytest.mark.parametrize(
    ("space", "value", "message"),
    [
        (SPACES[0], np.zeros(4), r"an observation has shape \(4,\); in Box.* it is \(3,\)"),
        (SPACES[0], "words", "observation 'words' does not belong to Box"),
        (SPACES[0], [0.0, [1.0], 2.0], "does not belong to Box"),
        (SPACES[5], 3, r"observation 3 does not belong to Discrete\(5, start=-2\)"),
        (SPACES[5], 0.5, "observation 0.5 does not belong"),
        (SPACES[5], None, "observation None does not belong"),
        (SPACES[6], [0, 0], "does not belong to MultiDiscrete"),
        (SPACES[6], [[1], [2, 3]], "does not belong to MultiDiscrete"),
        (SPACES[8], [0, 1, 2, 0], "does not belong to MultiBinary"),
        (SPACES[8], [0, 1], "does not belong to MultiBinary"),
        (SPACES[10], (1,), "does not belong to Tuple"),
        (SPACES[10], (1, np.zeros((2, 2)), 3), "does not belong to Tuple"),
        (SPACES[11], {"place": [0.0, 0.0]}, "does not belong to Dict"),
        (spaces.Box(0, 255, (2,), np.uint8), np.array([-3, 400]), "does not belong to Box"),
        (spaces.Box(0, 255, (1,), np.uint8), [0.5], "does not belong to Box"),
    ],
)
def test_values_outside_their_space_are_refused(space: Any, value: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        layout_of(space).row(value)


def test_what_is_not_finite_is_named() -> None:
    rows = np.zeros((4, 3))
    check_finite(rows, "observation", "step")
    rows[2, 1] = np.nan
    with pytest.raises(InputError, match="number 1 of the observation at step 2 is nan"):
        check_finite(rows, "observation", "step")


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_what_a_space_draws_is_not_outside(space: Any) -> None:
    layout = layout_of(space)
    rows = np.array([layout.row(space.sample()) for _ in range(20)])
    assert find_outside(layout, rows) == ""


def test_numbers_outside_their_bounds_are_named() -> None:
    layout = layout_of(spaces.Tuple([spaces.Discrete(3), spaces.Box(-np.inf, 2.0, (2,))]))
    rows = np.array([[2.0, -1e9, 2.00001], [0.0, 1.0, 2.0]])
    assert find_outside(layout, rows) == ""  # rounded
    rows[1, 2] = 2.5
    assert find_outside(layout, rows) == "number 2 of some is 2.5, outside [-inf, 2] of their space"
    assert find_outside(layout, rows[:0]) == ""


@pytest.mark.parametrize(
    "space",
    [
        spaces.Text(4),
        spaces.Sequence(spaces.Discrete(2)),
        spaces.Graph(spaces.Discrete(2), None),
        spaces.Tuple([spaces.Discrete(2), spaces.Text(4)]),
    ],
    ids=str,
)
def test_spaces_that_nobody_supports_are_refused(space: Any) -> None:
    with pytest.raises(InputError, match=r"actions are .*; they must be Box, Discrete"):
        layout_of(space, "action")
    with pytest.raises(InputError, match="cannot be described"):
        describe_space(space)


def test_features_are_numbers_of_one_size() -> None:
    features = Features(lambda seen: seen)
    np.testing.assert_array_equal(features.row([[1, 2], [3, 4]]), [1, 2, 3, 4])
    for answer, message in [
        ([1, 2], "there are 2 features of an observation, and were 4 before"),
        ("words", "the features function gives 'words'; it must give numbers"),
        (None, "the features function gives None"),
        ([1, np.nan, 2, 3], "feature 1 of an observation is nan"),
    ]:
        with pytest.raises(InputError, match=message):
            features.row(answer)
    with pytest.raises(InputError, match="the features function raised ZeroDivisionError"):
        Features(lambda seen: 1 / seen).row(0)
    with pytest.raises(InputError, match="features is an int"):
        Features(3)  # type: ignore[arg-type]


def test_critics_look_at_features_before_observations() -> None:
    plain: dict[str, Any] = {
        "start": np.array([0, 2]),
        "observations": np.array([[2], [0]], dtype=np.uint8),
        "final_observations": np.array([[0]], dtype=np.uint8),
        "actions": np.zeros((2, 1)),
        "rewards": np.zeros(2),
        "terminated": np.array([False]),
        "noise": np.zeros((2, 0)),
    }
    np.testing.assert_array_equal(inputs_of(Episodes(**plain)), [[2], [0]])
    plain["observation_space"] = describe_space(spaces.Discrete(3))
    np.testing.assert_array_equal(inputs_of(Episodes(**plain)), [[0, 0, 1], [1, 0, 0]])
    seen = Episodes(**plain, features=np.array([[0.5, 1.0], [0.0, 0.0]]))
    np.testing.assert_array_equal(inputs_of(seen), [[0.5, 1.0], [0.0, 0.0]])


@pytest.mark.parametrize("space", [spaces.Tuple([]), spaces.Dict({})], ids=str)
def test_spaces_without_parts_are_refused(space: Any) -> None:
    with pytest.raises(InputError, match="which has no parts"):
        layout_of(space)
    with pytest.raises(InputError, match=r"actions are .*, which has no parts"):
        layout_of(spaces.Tuple([spaces.Discrete(2), space]), "action")

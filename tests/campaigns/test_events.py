"""States: any JSON value, equal where JSON is equal, refused cleanly where it is none."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from revar.campaigns import Campaign, MemoryStorage
from revar.campaigns.events import DEEPEST, LARGEST, decode_state, encode_state
from revar.errors import InputError

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
)
json_values = st.recursive(
    scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=3), inner)
)


@given(json_values.filter(lambda value: value is not None))
def test_values_come_back_equal(value: Any) -> None:
    try:
        text = encode_state(value)
    except InputError as error:
        assert "not valid unicode" in str(error)  # keys may hold surrogates
        return
    assert decode_state(text) == value
    assert encode_state(decode_state(text)) == text


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0),
        (2**60, 2.0**60),
        (int(1e308), 1e308),
        (0, -0.0),
        ((1, "a"), [1.0, "a"]),
        ({"a": 1, "b": [2.0]}, {"b": [2], "a": 1.0}),
        (np.int64(3), 3),
        (np.float64(0.5), 0.5),
        (np.array([[1, 2]]), [[1, 2]]),
        (np.bool_(True), True),
    ],
)
def test_equal_states(one: Any, other: Any) -> None:
    assert encode_state(one) == encode_state(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, True),
        (0, False),
        ("1", 1),
        ([], {}),
        ([1, 2], [2, 1]),
        ("\u00e9", "e\u0301"),
        (2**60, 2.0**60 + 256),
    ],
)
def test_different_states(one: Any, other: Any) -> None:
    assert encode_state(one) != encode_state(other)


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "null, which stands for the end"),
        (float("nan"), "holds the number nan"),
        ([float("inf")], "holds the number inf"),
        (np.float32("nan"), "holds the number nan"),
        (nested(DEEPEST + 1), "nested deeper"),
        (nested(100_000), "nested deeper"),
        ("x" * LARGEST, "bytes as JSON"),
        (list(range(LARGEST)), "bytes as JSON"),
        ({1: 2}, "keys of a JSON object are texts"),
        ({"a": {2, 3}}, "holds set"),
        (b"bytes", "holds bytes"),
        ("\ud800", "not valid unicode"),
        ({"\udfff": 1}, "not valid unicode"),
        (object(), "holds object"),
        ([10**5_000], "a whole number of too many digits"),
    ],
)
def test_what_is_no_state(value: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        encode_state(value)
    assert len(str(caught.value)) < 300


HOSTILE = [
    "'; DROP TABLE revar_events; --",
    '"quoted"',
    "\x00\x01\x1f",
    "\U0001d54atate\u202e reversed",
    "</script><script>alert(1)</script>",
    {"": ""},
    [[], {}, [[]]],
    nested(DEEPEST),
    10**300,
    1e308,
    5e-324,
    -(2**63),
    "x" * (LARGEST - 2),
    True,
]


def test_hostile_states_are_stored(tmp_path: Any) -> None:
    for storage in (MemoryStorage(), f"sqlite:///{tmp_path}/hostile.db"):
        campaign = Campaign.create(
            storage, "hostile", actions=2, horizon=len(HOSTILE), episodes=1, seed=1
        )
        episode = campaign.start_episode()
        for step, state in enumerate(HOSTILE):
            episode.act(state, [0.5, 0.5])
            last = step + 1 == len(HOSTILE)
            episode.reward(1.0, None if last else HOSTILE[step + 1])
        again = Campaign.open(campaign.storage, "hostile")
        assert again.status().states == len(HOSTILE)
        assert again.estimate() == campaign.estimate()
        assert len(again.dataset()[0]) == len(HOSTILE)

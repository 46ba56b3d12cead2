"""What may be asked of workers, and what is refused in one sentence."""

import sys
from typing import Any

import pytest

import revar
from revar.errors import InputError, MissingExtraError
from tests.environments.custom import Corridor


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"workers": 0}, "workers is 0"),
        ({"workers": 2, "batch": 0}, "batch is 0"),
        ({"workers": 2, "engine": "threads"}, "engine is 'threads'; it must be one of processes"),
        ({"batch": 4}, "batch is given without workers"),
        ({"engine": "ray"}, "engine 'ray' is given without workers"),
        ({"workers": 2, "address": "auto"}, "an address is for engine 'ray'"),
        ({"workers": 2, "environments": 2}, "give workers or environments"),
        ({"workers": 2, "engine": "ray", "address": "127.0.0.1:9"}, "no Ray cluster answers"),
    ],
)
def test_bad_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        revar.evaluate(Corridor, "uniform", episodes=5, horizon=9, **options)


def test_an_open_environment_cannot_be_shared() -> None:
    with pytest.raises(InputError, match=r"workers open the environment themselves; .* Corridor$"):
        revar.evaluate(Corridor(3), "uniform", episodes=5, horizon=9, workers=2)


def test_without_ray_there_is_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'revar-rl\[ray\]'"):
        revar.evaluate(Corridor, "uniform", episodes=5, horizon=9, workers=2, engine="ray")
    result = revar.evaluate(Corridor, "uniform", episodes=5, horizon=9, workers=2, engine="inline")
    assert result.episodes == 5

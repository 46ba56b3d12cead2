"""Whether a features function gives what it gave before, as far as some observations tell."""

from typing import Any

from revar.environments.features import NOT_STEADY, same_numbers
from revar.errors import InputError
from revar.evaluation.returns.fingerprint import ASKED, asked_steps
from revar.evaluation.returns.records import Setting
from revar.model.arrays import FloatArray
from revar.model.episodes import Episodes

ASKED_TWICE = 64  # steps of a look: features may take their time


def check_steady(setting: Setting, episodes: Episodes) -> None:
    """Refuse features that change as they are asked for: critics would see what they have not."""
    if setting.features is None or setting.observation_space is None:
        return
    first, again = (_ask(setting, episodes, ASKED_TWICE) for _ in range(2))
    if not same_numbers(first, again):
        raise InputError(NOT_STEADY)


def check_stored_features(stored: Episodes, player: Any) -> None:
    """Refuse stored episodes with other features than those that the player has now."""
    setting: Setting = player.setting
    if (stored.features is None) != (setting.features is None):
        was = "without" if stored.features is None else "with"
        raise InputError(f"the file was collected {was} features=; give it as prior, or the same")
    if stored.features is None or setting.features is None:
        return
    if setting.observation_space is not None:
        before, now = stored.features[asked_steps(stored)], _ask(setting, stored, ASKED)
    else:  # of observations that are not kept there is the first, which a reset brings back
        before = stored.features[:1]
        now, again = (setting.inputs([player.first_observation()]) for _ in range(2))
        if now.shape == before.shape and not same_numbers(now, again):  # it does not
            return
    if before.shape[1] != now.shape[1]:
        raise InputError(
            f"the file was collected with {before.shape[1]} features of an observation; now there "
            f"are {now.shape[1]}"
        )
    if not same_numbers(before, now):
        raise InputError("the file was collected with other features")


def _ask(setting: Setting, episodes: Episodes, most: int) -> FloatArray:
    """The features at some of the observations, [n, F]."""
    rows = episodes.observations[asked_steps(episodes, most)]
    return setting.inputs(map(setting.observations.value, rows))

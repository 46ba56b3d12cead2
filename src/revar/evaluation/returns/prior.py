"""Earlier episodes: what they may be used for, and how critics see them."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from revar.datasets.files import Conditions, load_collected
from revar.environments.spaces import inputs_of
from revar.errors import InputError, kind_of
from revar.evaluation.returns.critics import Served
from revar.evaluation.returns.records import Setting
from revar.model.episodes import Episodes

# A fingerprint of the policies over some of the episodes; None where they draw on their own.
Digest = Callable[[Episodes], str | None]


def use_prior(
    env: Any, prior: Any, setting: Setting, now: Conditions, digest: Digest
) -> tuple[Episodes | None, int | None, Episodes | None]:
    """Earlier episodes that enter the estimate, their seed, and those that only train critics."""
    if prior is None:
        return None, None, None
    if now.names is not None:
        raise InputError(
            f"policies are compared by their own episodes with method {now.method!r}; earlier ones "
            f"are for `evaluate`"
        )
    found, known = load_collected(prior) if isinstance(prior, str | Path) else (prior, None)
    if not isinstance(found, Episodes):
        raise InputError(
            f"prior is {kind_of(found)}; method {now.method!r} needs whole Episodes, or their file"
        )
    if found.observation_space not in (None, setting.observation_space):
        raise InputError(
            f"prior has observations {found.observation_space}; here they are "
            f"{setting.observation_space}"
        )
    if known is not None and known.seed == now.seed:
        raise InputError(
            f"prior was collected with seed {known.seed}, whose episodes would be played again; "
            f"give another seed, or resume from it"
        )
    # Of one that is handed in, or made by a function, the class is known, and not how it was made.
    same = isinstance(env, str) and all(
        getattr(known, name, None) == getattr(now, name)
        for name in ("environment", "options", "horizon")
    )
    alike = found.features is None and setting.features is None  # functions cannot be compared
    own = known is not None and known.policy is not None and known.policy == digest(found)
    if known is not None and same and alike and own:
        return found, known.seed, None
    if now.method == "mean":
        raise InputError(
            "prior is not known to be of this policy and environment, and method 'mean' has no "
            "critics to learn from it"
        )
    return None, None, found


def check_practice(earlier: Episodes, setting: Setting, served: Served) -> Episodes:
    """Earlier episodes with the features that critics see now, if they can see them at all."""
    if len(earlier) == 0:
        return earlier
    kept = earlier.observation_space is not None
    if kept and setting.features is None:
        earlier = replace(earlier, features=None)
    elif kept and setting.features is not None:
        seen = map(setting.observations.value, earlier.observations)
        rows = [setting.features.row(each) for each in seen]
        earlier = replace(earlier, features=np.array(rows))
    before = inputs_of(earlier.part(0, 1)).shape[1]
    if before != served.inputs:
        raise InputError(
            f"critics see {before} numbers of an observation in the prior episodes, and "
            f"{served.inputs} now"
        )
    return earlier

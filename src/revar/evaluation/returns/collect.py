"""Collect whole episodes of target policies, in any environment, for their values."""

from collections.abc import Callable
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

from revar.collection.collection import new_seed
from revar.datasets.files import Conditions, load_collected
from revar.environments.opening import (
    built_in_discount,
    built_in_policy,
    horizon_of,
    is_environment,
)
from revar.errors import InputError
from revar.evaluation.amounts import describe
from revar.evaluation.episode_file import EpisodeFile
from revar.evaluation.goals import ComparisonGoal, ValueGoal
from revar.evaluation.result import CollectedResult
from revar.evaluation.resuming import SAME_RETURNS, check_same, refuse_overspent
from revar.evaluation.returns.critics import CriticChoice, Served, choose_critics
from revar.evaluation.returns.fingerprint import policy_digest
from revar.evaluation.returns.fitting import Resets, ReturnEstimator
from revar.evaluation.returns.paired import PairedEpisodes, PairedEstimator, make_players
from revar.evaluation.returns.play import EpisodePlayer
from revar.evaluation.returns.records import Setting
from revar.evaluation.returns.run import ReturnEvaluation
from revar.evaluation.returns.workers import EpisodesSetup, PoolEpisodes
from revar.evaluation.settings import (
    CollectionSettings,
    path_to_write,
    show_progress,
    with_words,
)
from revar.evaluation.target_policies import name_policy
from revar.evaluation.workers.pool import choose_pool
from revar.interrupts import catch_interrupts
from revar.model.episodes import Episodes
from revar.model.limits import check_limits
from revar.model.validation import check_discount, check_whole
from revar.policies.sampled import known_law
from revar.strategies.strategy import find_strategy

# A fingerprint of the policies over some of the episodes; None where they draw on their own.
Digest = Callable[[Episodes], str | None]


def collect_returns(
    env: Any,
    opened: Any,
    policies: dict[str, Any],
    goal: ValueGoal | ComparisonGoal,
    settings: CollectionSettings,
    method: str,
) -> CollectedResult:
    """Play the policies themselves until the goal is reached or the budget is spent."""
    _refuse_what_is_for_tables(settings, method)
    stored, earlier = _load_stored(settings.resume)
    seed = settings.seed
    if seed is None:
        seed = new_seed() if earlier is None else earlier.seed
    seed = check_whole(seed, "seed")
    options, budget = settings.env_options, goal.budget
    pool = choose_pool(
        env,
        settings.workers,
        settings.engine,
        settings.batch,
        settings.address,
        settings.environments,
    )
    for name, policy in policies.items():
        if policy is None:
            with name_policy(name):
                policies = {**policies, name: built_in_policy(env, options)}
    horizon = horizon_of(opened, settings.horizon)
    discount = built_in_discount(env, options) if settings.discount is None else settings.discount
    discount = check_discount(discount)
    cost = None if budget.unit == "steps" else settings.cost
    with catch_interrupts() as interrupt:
        local = make_players(
            opened,
            policies,
            horizon=horizon,
            seed=seed,
            features=settings.features,
            cost=cost,
            interrupt=interrupt,
        )
        setting: Setting = local.setting
        digest = partial(_digest, local)
        conditions = _conditions(env, opened, setting, method, discount, seed, goal, settings)
        if stored is not None and earlier is not None:
            check_same(earlier, conditions, SAME_RETURNS)
            refuse_overspent(stored, earlier, budget)
            _check_stored(stored, earlier, setting, digest)
        resets = _resets(env, local, settings.resets, earlier)
        joined, prior_seed, practice = _use_prior(env, settings.prior, setting, conditions, digest)
        if method == "mean" and practice is not None:
            raise InputError(
                "prior is not known to be of this policy and environment, and method 'mean' has no "
                "critics to learn from it"
            )
        choice = CriticChoice()
        if method == "critic":
            choice = choose_critics(
                settings.critics,
                Served(
                    setting.observations,
                    settings.features is not None,
                    tuple(
                        law
                        for each in getattr(local, "settings", [setting])
                        if (law := known_law(each.policy)) is not None
                    ),
                    (seed,) if prior_seed is None else (seed, prior_seed),
                ),
            )
        estimator: ReturnEstimator | PairedEstimator
        if isinstance(goal, ValueGoal):
            estimator = ReturnEstimator(
                method, horizon, discount, seed, goal.confidence, goal.quantile, choice, resets,
                joined, prior_seed, practice,
            )  # fmt: skip
        else:
            alone = (method, horizon, discount, seed, goal.confidence, inf, choice, resets)
            each = [ReturnEstimator(*alone) for _ in policies]
            estimator = PairedEstimator(goal.names, local.laws, each)
        player: EpisodePlayer | PairedEpisodes | PoolEpisodes = local
        if pool is not None:
            setup = EpisodesSetup(env, options, policies, horizon, seed, settings.features, cost)
            player = PoolEpisodes(local, pool, partial(pool.start, setup, interrupt), interrupt)
        evaluation = ReturnEvaluation(
            player,
            goal,
            estimator,
            conditions,
            digest,
            EpisodeFile(path_to_write(settings.save, settings.resume)),
            interrupt,
            stored,
        )
        try:
            with show_progress(settings.progress, method, budget.unit) as report:
                return evaluation.run(with_words(report))
        finally:
            if isinstance(player, PoolEpisodes):
                player.close()


def _refuse_what_is_for_tables(settings: CollectionSettings, method: str) -> None:
    strategy = find_strategy(settings.strategy).id
    if strategy not in ("flow", "on-policy"):
        raise InputError(
            f"method {method!r} plays the target policy itself; strategy {strategy!r} needs method "
            f"'table'"
        )
    if not check_limits(settings.limits).none:
        raise InputError(
            f"method {method!r} plays the target policy itself and cannot keep limits=; they need "
            f"method 'table'"
        )
    if settings.bins is not None:
        raise InputError(f"bins make a table; method {method!r} takes observations as they are")
    if method == "mean":
        for name in ("critics", "features", "resets"):
            if getattr(settings, name):
                raise InputError(f"method 'mean' has no critics, so that {name}= is for nothing")


def _load_stored(resume: Any) -> tuple[Episodes | None, Conditions | None]:
    if resume is None:
        return None, None
    stored, earlier = load_collected(resume)
    if earlier is None:
        raise InputError(f"{resume} was not collected by an evaluation; give it as prior")
    if not isinstance(stored, Episodes):
        raise InputError(f"{resume} was collected with method 'table', and has no observations")
    return stored, earlier


def _digest(player: Any, episodes: Episodes) -> str | None:
    """A fingerprint of the policy, or of all of them."""
    settings = player.settings if isinstance(player, PairedEpisodes) else [player.setting]
    found = [policy_digest(each.policy, each.observations, episodes) for each in settings]
    known = [each for each in found if each is not None]
    return "+".join(known) if len(known) == len(found) else None


def _check_stored(stored: Episodes, earlier: Conditions, setting: Setting, digest: Digest) -> None:
    """Refuse stored episodes of other spaces, features or another policy."""
    for name, now in (
        ("observation space", setting.observation_space),
        ("action space", setting.action_space),
    ):
        before = getattr(stored, name.replace(" ", "_"))
        if before != now:
            raise InputError(f"the file was collected with {name} {before}; now it is {now}")
    if (stored.features is None) != (setting.features is None):
        was = "without" if stored.features is None else "with"
        raise InputError(f"the file was collected {was} features=; give it as prior, or the same")
    if setting.features is not None and stored.features is not None and stored.observations.size:
        row = setting.features.row(setting.observations.value(stored.observations[0]))
        if not np.array_equal(row, stored.features[0]):
            raise InputError("the file was collected with other features")
    if earlier.policy is not None and earlier.policy != digest(stored):
        raise InputError("the file was collected for another policy")


def _resets(env: Any, player: Any, asked: int | None, earlier: Conditions | None) -> Resets:
    if asked is not None:
        return Resets(player.resets, count=check_whole(asked, "resets"))
    if is_environment(env):
        return Resets(player.resets, each=0, note="as the environment was handed in")
    return Resets(player.resets, each=None if earlier is None else earlier.resets)


def _use_prior(
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
            f"prior is a {type(found).__name__}; method {now.method!r} needs whole Episodes, or "
            f"their file"
        )
    if found.observation_space not in (None, setting.observation_space):
        raise InputError(
            f"prior has observations {found.observation_space}; here they are "
            f"{setting.observation_space}"
        )
    if known is None:
        return None, None, found
    if known.seed == now.seed:
        raise InputError(
            f"prior was collected with seed {known.seed}, whose episodes would be played again; "
            f"give another seed, or resume from it"
        )
    # Of one that is handed in, or made by a function, the class is known, and not how it was made.
    same = isinstance(env, str) and all(
        getattr(known, name) == getattr(now, name) for name in ("environment", "options", "horizon")
    )
    own = known.policy is not None and known.policy == digest(found)
    alike = found.features is None and setting.features is None  # functions cannot be compared
    return (found, known.seed, None) if same and own and alike else (None, None, found)


def _conditions(
    env: Any,
    opened: Any,
    setting: Setting,
    method: str,
    discount: float,
    seed: int,
    goal: ValueGoal | ComparisonGoal,
    settings: CollectionSettings,
) -> Conditions:
    """What a run that goes on from the file must be like."""
    several, budget = len(goal.names) > 1, goal.budget
    return Conditions(
        environment=env if isinstance(env, str) else _name(opened),
        strategy="on-policy",
        horizon=setting.horizon,
        discount=discount,
        seed=seed,
        episodes=int(budget.amount) if budget.by_episode else 0,
        budget_unit=budget.unit,
        budget_amount=budget.amount,
        cost=describe(settings.cost) if budget.unit == "cost" else None,
        options=repr(sorted((settings.env_options or {}).items())),
        method=method,
        names=goal.names if several else None,
        question=goal.question if several else None,
    )


def _name(opened: Any) -> str:
    """Of the environment's class, whether one or several are played side by side."""
    single = getattr(opened, "envs", [opened])[0]
    return type(single.unwrapped).__name__

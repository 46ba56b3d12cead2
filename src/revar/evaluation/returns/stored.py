"""A policy's value from stored episodes that are its own."""

from functools import partial
from typing import Any

from revar.collection.checkpoints import quantile
from revar.datasets.files import Conditions
from revar.environments.descriptions import read_space
from revar.environments.opening import open_environment
from revar.environments.spaces import layout_of
from revar.errors import InputError
from revar.evaluation.goals import ValueGoal
from revar.evaluation.result import Checkpoint, EvaluationResult
from revar.evaluation.returns.critics import Served, choose_critics
from revar.evaluation.returns.fingerprint import check_policy
from revar.evaluation.returns.fitting import ReturnEstimator
from revar.evaluation.returns.play import make_player
from revar.evaluation.returns.resets import Resets, begin_again
from revar.model.budget import Budget
from revar.model.episodes import Episodes
from revar.model.validation import check_discount, check_horizon, check_whole
from revar.policies.continuous import DeterministicPolicy


def evaluate_episodes(
    episodes: Episodes,
    known: Conditions | None,
    policy: Any,
    *,
    horizon: int,
    discount: float,
    confidence: float,
    env: Any = None,
    env_options: dict[str, Any] | None = None,
    method: str | None = None,
    critics: Any = None,
    resets: int | None = None,
) -> EvaluationResult:
    """The value of the policy that played the episodes; with `env`, also from extra resets.

    `policy` None stands for whoever played them.
    """
    if len(episodes) == 0:
        raise InputError("the dataset has no episodes")
    if method not in (None, "critic", "mean"):
        raise InputError(f"method is {method!r}; for whole episodes it is 'critic' or 'mean'")
    if known is not None and known.names is not None:
        raise InputError(
            f"the episodes are those of {len(known.names)} policies that were compared; resume the "
            f"comparison"
        )
    longest = int(episodes.lengths.max())
    if longest > check_horizon(horizon):
        raise InputError(f"an episode has {longest} steps; the horizon is {horizon}")
    if policy is not None:
        check_policy(policy, episodes, known)
    seed = 0 if known is None else known.seed
    method = method or "critic"
    source = Resets(_no_resets, count=0)
    opened = None
    try:
        if env is not None:
            opened = open_environment(env, env_options)
            # Numbers that the run itself used are not used again.
            nobody = DeterministicPolicy(_no_action) if policy is None else policy
            player: Any = make_player(opened, nobody, horizon=horizon, seed=seed + 1)
            if episodes.observation_space not in (None, player.setting.observation_space):
                raise InputError(
                    f"the episodes have observations {episodes.observation_space}; those of env "
                    f"are {player.setting.observation_space}"
                )
            source = Resets(player.resets, count=check_whole(resets or 0, "resets"))
            if known is not None:
                played = make_player(opened, nobody, horizon=horizon, seed=seed)
                source.again = partial(begin_again, played)
        elif resets:
            raise InputError("resets need env=..., the environment to reset")
        space = episodes.observation_space
        layout = None if space is None else layout_of(read_space(space))
        seeds = () if known is None else (seed,)
        features = episodes.features
        counted = None if features is None else partial(int, features.shape[1])
        served = Served(layout, counted, (episodes.law,), seeds)
        choice = choose_critics(critics, served)
        goal = ValueGoal(confidence, None, Budget(len(episodes)))
        estimator = ReturnEstimator(
            method,
            horizon,
            check_discount(discount),
            seed,
            goal.confidence,
            quantile(confidence),
            choice,
            source,
        )
        estimate, findings = estimator.find(episodes, 0.0)
    finally:
        if opened is not None and opened is not env:
            opened.close()
    assert estimate.quantile is not None
    return EvaluationResult(
        dataset=episodes,
        findings=findings,
        strategy="stored data",
        seed=seed,
        stopped="budget",
        budget=goal.budget,
        conditions=known,
        estimate=estimate,
        quantile=estimate.quantile,
        checkpoints=(Checkpoint(len(episodes), estimate, float(len(episodes))),),
    )


def _no_action(observation: Any) -> Any:
    raise InputError(f"there is no policy to act at observation {observation!r}")


def _no_resets(first: int, count: int) -> Any:
    raise InputError(f"there is no environment for resets {first} to {first + count}")

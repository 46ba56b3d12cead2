"""evaluate: collect episodes in a real environment, and say what the policy is worth."""

from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from revar.collection import Collection
from revar.datasets.files import Conditions, dataset_of, load_collected
from revar.environments.observations import Bins, make_encoding
from revar.environments.opening import (
    action_count,
    built_in_discount,
    built_in_policy,
    horizon_of,
    open_environments,
)
from revar.errors import InputError, require_extra
from revar.evaluation.checkpoints import checkpoint_times, quantile
from revar.evaluation.players import Interrupt, Player, VectorPlayer, catch_interrupts
from revar.evaluation.policies import TargetPolicy, target_policy_of
from revar.evaluation.result import EvaluationResult
from revar.evaluation.run import Evaluation, Progress
from revar.evaluation.workers.pool import PoolPlayer, choose_pool
from revar.evaluation.workers.worker import WorkerSetup
from revar.model.trajectory import Dataset
from revar.model.validation import (
    check_confidence,
    check_count,
    check_episodes,
    check_half_width,
)
from revar.progress import progress_bar
from revar.strategies.strategy import Strategy, find_strategy


def evaluate(
    env: Any,
    policy: Any,
    *,
    strategy: str | Strategy = "flow",
    episodes: int,
    horizon: int | None = None,
    discount: float | None = None,
    seed: int | None = None,
    half_width: float | None = None,
    confidence: float = 0.95,
    progress: bool | Progress = False,
    bins: Bins | None = None,
    environments: int = 1,
    env_options: dict[str, Any] | None = None,
    workers: int | None = None,
    engine: str = "processes",
    batch: int | None = None,
    address: str | None = None,
    prior: Dataset | str | Path | None = None,
    save: str | Path | None = None,
    resume: str | Path | None = None,
) -> EvaluationResult:
    """Collect at most `episodes` episodes of `env` with `strategy`; the value of `policy`.

    env: a Gymnasium environment or its id, 'module:factory', a function that makes one, a vector
        environment, a built-in problem, or a TabularMDP; `env_options` are for opening it,
        `environments` plays so many side by side. Continuous observations need `bins`.
    policy: an array [*observations, actions], a function from an observation to probabilities,
        a model with `predict`, "uniform", or a file or 'module:function' by name; None stands
        for the policy of a built-in problem.
    horizon: steps after which an episode is cut; by default the environment's time limit.
    discount: by default that of a built-in problem or a TabularMDP, and 1 for environments.
    half_width: stop when the interval is that narrow.
    workers: how many processes play at once, each with an environment of its own; 1, like None,
        is the serial run. `engine` "ray" makes them Ray's, of the cluster at `address` or else of
        this machine. `batch` is the most episodes that one is given at a time: docs/scaling.md
        has the rule.
    prior: a dataset collected earlier, under any behavior; it spends no budget.
    save, resume: the file (.npz or .parquet) to write episodes to, and to go on from. It is
        written at every checkpoint, too, so that a run that is killed can be resumed from there.

    Ctrl-C returns what there is, with `complete` False. An error raises EvaluationError, whose
    `result` holds it.
    """
    chosen = find_strategy(strategy)
    budget = check_episodes(episodes)
    _check_goal(half_width, confidence)
    stored, earlier = (None, None) if resume is None else load_collected(resume)
    if stored is not None and earlier is None:
        raise InputError(f"{resume} was not collected by an evaluation; give it as prior")
    if earlier is not None:
        seed = earlier.seed if seed is None else seed
        workers = earlier.workers if workers is None else workers
        batch = earlier.batch if batch is None else batch
    before = None if prior is None else dataset_of(prior, "prior")
    side_by_side = check_count(environments, "environments")
    pool = choose_pool(
        env,
        workers,
        engine,
        batch,
        address,
        budget,
        side_by_side,
        single=earlier is not None and earlier.workers == 1,
    )
    opened = open_environments(env, env_options, side_by_side)
    player: Player | VectorPlayer | PoolPlayer | None = None
    try:
        collection = Collection(
            chosen,
            horizon=horizon_of(opened, horizon),
            discount=built_in_discount(env, env_options) if discount is None else discount,
            episodes=budget,
            seed=seed,
            actions=action_count(opened),
        )
        chosen_policy = built_in_policy(env, env_options) if policy is None else policy
        target = target_policy_of(opened, chosen_policy, bins)
        collection.first_label = target.first_label
        with catch_interrupts() as interrupt:
            if before is not None:
                collection.learn_from(before, target)
            times = checkpoint_times(budget)
            if pool is None:
                player = _player(opened, bins, target, collection.seed, interrupt)
            else:
                setup = WorkerSetup(
                    env,
                    env_options,
                    chosen_policy,
                    bins,
                    chosen,
                    collection.horizon,
                    collection.discount,
                    budget,
                    collection.seed,
                    collection.prior_episodes,
                )
                start = partial(pool.start, setup, interrupt)
                player = PoolPlayer(collection, target, pool, start, interrupt)
            evaluation = Evaluation(
                collection,
                player,
                target,
                Conditions(
                    environment=env if isinstance(env, str) else type(opened.unwrapped).__name__,
                    strategy=repr(chosen),
                    horizon=collection.horizon,
                    discount=collection.discount,
                    seed=collection.seed,
                    episodes=budget,
                    environments=player.width,
                    workers=None if pool is None else pool.workers,
                    batch=None if pool is None else pool.longest,
                    prior_episodes=collection.prior_episodes,
                    options=repr(sorted((env_options or {}).items())),
                    bins=repr(bins),
                ),
                times,
                quantile(confidence, times if half_width is not None else None),
                confidence,
                half_width,
                before,
                _path_to_write(save, resume),
                interrupt,
            )
            if stored is not None and earlier is not None:
                evaluation.resume_from(stored, earlier)
            with _show_progress(progress, chosen.id) as report:
                return evaluation.run(report)
    finally:
        if isinstance(player, PoolPlayer):
            player.close()
        if opened is not env:
            opened.close()


def _player(
    opened: Any, bins: Bins | None, target: TargetPolicy, seed: int, interrupt: Interrupt
) -> Player | VectorPlayer:
    if hasattr(opened, "num_envs"):
        observations = make_encoding(opened.single_observation_space, bins)
        return VectorPlayer(opened, observations, target, seed, interrupt)
    observations = make_encoding(opened.observation_space, bins)
    return Player(opened, observations, target, seed, interrupt)


def _check_goal(half_width: float | None, confidence: float) -> None:
    if half_width is not None:
        check_half_width(half_width)
    check_confidence(confidence)


def _path_to_write(save: str | Path | None, resume: str | Path | None) -> Path | None:
    """Checked before the first episode: what was collected must not be lost to a misspelling."""
    path = save if save is not None else resume
    if path is None:
        return None
    target = Path(path)
    if target.suffix not in (".npz", ".parquet"):
        raise InputError(f"{path}: datasets are saved as .npz or .parquet")
    if not target.parent.is_dir():
        raise InputError(f"{path}: there is no folder {target.parent}")
    if target.is_dir():
        raise InputError(f"{path} is a folder; the episodes need a file")
    if target.suffix == ".parquet":
        require_extra("pyarrow.parquet", "parquet")
    if target.exists() and (resume is None or not target.samefile(resume)):
        raise InputError(f"{path} exists; resume from it, or name another file")
    return target


def _show_progress(
    progress: bool | Progress, label: str
) -> AbstractContextManager[Progress | None]:
    if progress is True:
        return progress_bar(label)
    return nullcontext(progress if callable(progress) else None)

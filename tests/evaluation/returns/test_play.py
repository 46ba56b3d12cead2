"""Players of whole episodes: the same ones in every way of playing, and what is kept of trouble."""

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import revar
from revar.environments.opening import environment_seed
from revar.environments.spaces import inputs_of
from revar.errors import InputError
from revar.evaluation.returns.play import make_player
from revar.evaluation.stopping import EpisodeError, Stopped
from revar.interrupts import Interrupt
from revar.model.episodes import Episodes

ARRAYS = (
    "start",
    "observations",
    "final_observations",
    "actions",
    "rewards",
    "terminated",
    "noise",
    "numbers",
)


class Drift(gymnasium.Env[Any, Any]):
    """A number that moves with the action until it leaves [-1, 1]; faults are put in from outside.

    It writes every observation over the one before, as some simulators do.
    """

    def __init__(self, fault: Callable[["Drift"], Any] | None = None, actions: Any = None) -> None:
        self.observation_space = spaces.Box(-2.0, 2.0, (2,))
        self.action_space = actions or spaces.Discrete(2)
        self.fault = fault
        self.seen = np.zeros(2, dtype=np.float32)
        self.seeds: list[int | None] = []
        self.steps = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.seeds.append(seed)
        self.seen[:] = self.np_random.uniform(-0.5, 0.5), 0.0
        return self.seen, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        move = float(np.sum(action)) - 0.5
        self.seen[0] += 0.3 * move + self.np_random.normal(0.0, 0.25)
        self.seen[1] += 0.1
        reward: Any = float(self.seen[0])
        if self.fault is not None:
            reward = self.fault(self) or reward
        gone = bool(abs(self.seen[0]) > 1.0)
        return self.seen, reward, gone, False, {"fuel": 0.5 + abs(move)}


class Parts(Drift):
    """The same, with observations and actions of parts."""

    def __init__(self) -> None:
        super().__init__()
        self.observation_space = spaces.Dict(
            image=spaces.Box(0, 255, (4, 4, 3), np.uint8), kind=spaces.Discrete(3)
        )
        self.action_space = spaces.Tuple([spaces.Discrete(2), spaces.MultiBinary(2)])

    def _parts(self) -> Any:
        image = np.full((4, 4, 3), int(100 + 50 * self.seen[0]) % 256, dtype=np.uint8)
        return {"image": image, "kind": int(self.np_random.integers(3))}

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        super().reset(**options)
        return self._parts(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(action)
        _, reward, gone, cut, info = super().step(action[0])
        return self._parts(), reward, gone, cut, info


def softmax(seen: Any) -> Any:
    right = 1.0 / (1.0 + np.exp(3.0 * float(seen[0])))
    return [1.0 - right, right]


def of_parts(seen: Any) -> Any:
    bright = float(seen["image"].mean()) / 255.0
    return [1.0 - bright, bright], [0.5, 0.1 * seen["kind"]]


class OtherVector(gymnasium.vector.SyncVectorEnv):
    """A vector environment of which no more is known than that it is one."""


def vector(make: Callable[[], Any], count: int, **options: Any) -> Any:
    return OtherVector([make] * count, **options)


def player(env: Any, policy: Any = softmax, **options: Any) -> Any:
    return make_player(env, policy, **{"horizon": 25, "seed": 4, **options})


def assert_same(a: Episodes, b: Episodes) -> None:
    for name in ARRAYS:
        x, y = getattr(a, name), getattr(b, name)
        assert x.dtype == y.dtype
        np.testing.assert_array_equal(x, y, err_msg=name)
    assert a.law == b.law
    assert (a.observation_space, a.action_space) == (b.observation_space, b.action_space)


CASES: dict[str, tuple[Callable[[], Any], Any]] = {
    "box to discrete": (Drift, softmax),
    "box to box": (
        lambda: Drift(actions=spaces.Box(-1.0, 1.0, (1,))),
        revar.GaussianPolicy(lambda seen: -seen[:1], 0.5),
    ),
    "batched": (
        lambda: Drift(actions=spaces.Box(-1.0, 1.0, (1,))),
        revar.GaussianPolicy(lambda seen: -seen[:, :1], 0.5, batched=True),
    ),
    "parts to parts": (Parts, of_parts),
    "uniform": (Parts, "uniform"),
}


@pytest.mark.parametrize("case", CASES)
def test_serial_and_vector_players_play_the_same_episodes(case: str) -> None:
    make, policy = CASES[case]
    episodes = player(make(), policy).play(3, 10)
    np.testing.assert_array_equal(episodes.numbers, np.arange(3, 13))
    assert episodes.lengths.max() > 1
    if case == "batched":  # alone as side by side: these functions work number by number
        assert_same(episodes, player(make(), CASES["box to box"][1]).play(3, 10))
    resets = player(make(), policy).resets(5, 6)
    assert resets.shape == (6, inputs_of(episodes).shape[1])
    for several in (vector(make, 4), gymnasium.vector.SyncVectorEnv([make] * 4)):
        side_by_side = player(several, policy)
        assert side_by_side.width == 4
        assert_same(episodes, side_by_side.play(3, 10))
        assert_same(episodes.part(0, 2), side_by_side.play(3, 2))
        np.testing.assert_array_equal(resets, side_by_side.resets(5, 6))
    again = player(make(), policy)
    assert_same(episodes, Episodes.join([again.play(3, 6), again.play(9, 4)]))


def test_what_is_recorded_is_what_happened() -> None:
    env = Drift()
    episodes = player(env, seed=9).play(0, 5)
    assert env.seeds == [environment_seed(9, number) for number in range(5)]
    first = 0
    for number, length in enumerate(episodes.lengths):
        env = Drift()
        seen, _ = env.reset(seed=environment_seed(9, number))
        rng = np.random.default_rng(np.random.SeedSequence((9, number, 1)))
        for step in range(first, first + length):
            np.testing.assert_array_equal(episodes.observations[step], seen)
            np.testing.assert_allclose(episodes.noise[step], softmax(seen))
            assert episodes.actions[step, 0] == int(rng.random() >= softmax(seen)[0])
            seen, reward, gone, _, _ = env.step(int(episodes.actions[step, 0]))
            assert episodes.rewards[step] == reward
        np.testing.assert_array_equal(episodes.final_observations[number], seen)
        assert episodes.terminated[number] == gone
        assert gone or length == 25
        first += length
    assert 0 < episodes.terminated.sum() < 5


def test_resets_are_none_of_the_episodes() -> None:
    env = Drift()
    play = player(env)
    play.play(0, 50)
    played = set(env.seeds)
    env.seeds.clear()
    resets = play.resets(0, 50)
    assert not played & set(env.seeds)
    assert len(set(env.seeds)) == 50
    assert np.unique(resets[:, 0]).size == 50


def test_the_environments_time_limit_and_the_horizon_cut() -> None:
    limited = gymnasium.wrappers.TimeLimit(Drift(), 4)
    episodes = make_player(limited, "uniform", seed=0).play(0, 20)
    assert episodes.lengths.max() == 4
    assert not episodes.terminated[episodes.lengths == 4].all()
    assert player(limited, horizon=2).play(0, 20).lengths.max() == 2
    with pytest.raises(InputError, match="Drift has no time limit"):
        make_player(Drift(), "uniform", seed=0)


def test_features_and_costs_stand_beside_the_steps() -> None:
    def features(seen: Any) -> Any:
        return [seen[0], seen[0] ** 2, 1.0]

    def cost(seen: Any, action: Any) -> float:
        return float(seen[1] + action)

    for env in (Drift(), vector(Drift, 3)):
        play = player(env, features=features, cost=cost)
        episodes = play.play(0, 7)
        seen, action = episodes.observations, episodes.actions
        np.testing.assert_allclose(episodes.features[:, 1], seen[:, 0] ** 2, rtol=1e-6)
        assert episodes.features.shape == (episodes.steps, 3)
        np.testing.assert_allclose(episodes.amounts["cost"], seen[:, 1] + action[:, 0])
        assert play.resets(0, 5).shape == (5, 3)
        told = player(env, cost="fuel").play(0, 7)
        np.testing.assert_allclose(told.amounts["cost"], 1.0)
        np.testing.assert_array_equal(told.rewards, episodes.rewards)
        assert player(env, cost="steps").play(0, 2).amounts["cost"].sum() > 0


class Words(Drift):
    """Observations that are text."""

    def __init__(self) -> None:
        super().__init__()
        self.observation_space = spaces.Text(8)

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        super().reset(**options)
        return f"{self.seen[0]:.3f}", {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        _, *rest = super().step(action)
        return f"{self.seen[0]:.3f}", *rest  # type: ignore[return-value]


def test_features_make_any_observation_numbers() -> None:
    def policy(seen: str) -> Any:
        return softmax([float(seen)])

    episodes = player(Words(), policy, features=float, cost="fuel").play(0, 4)
    assert inputs_of(episodes).shape == (episodes.steps, 1)
    assert episodes.observations.shape == (episodes.steps, 0)
    with pytest.raises(InputError, match=r"observations are Text.*; or give features"):
        player(Words(), policy)
    with pytest.raises(EpisodeError, match=r"observations of Text\(.*\) are not kept"):
        player(Words(), policy, features=float, cost=lambda seen, action: 1.0).play(0, 1)


def spoil(place: int, value: float) -> Callable[[Drift], Any]:
    def fault(env: Drift) -> None:
        if env.steps == 60:
            env.seen[place] = value

    return fault


def reward_of(value: Any) -> Callable[[Drift], Any]:
    return lambda env: value if env.steps == 60 else None


def crash(env: Drift) -> None:
    if env.steps == 60:
        raise RuntimeError("the simulator crashed\nat line 3")


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (spoil(1, np.nan), r"number 1 of the observation at step \d+ is nan"),
        (spoil(0, np.nan), r"number 0 of the observation at step \d+ is nan"),  # the policy's, too
        (spoil(0, np.inf), r"number 0 of the observation at step \d+ is inf"),
        (reward_of(np.nan), "the environment gave the reward nan"),
        (reward_of("much"), "the environment gave the reward 'much', not a number"),
        (crash, "the environment raised RuntimeError in step: the simulator crashed$"),
    ],
)
def test_trouble_keeps_the_episodes_before_it(fault: Any, message: str) -> None:
    healthy = player(Drift()).play(0, 40)
    with pytest.raises(EpisodeError, match=message) as caught:
        player(Drift(fault)).play(0, 40)
    complete = caught.value.complete
    assert complete is not None
    assert caught.value.episode == len(complete)
    assert int(healthy.start[len(complete)]) <= 60 <= int(healthy.start[len(complete) + 1])
    assert_same(complete, healthy.part(0, len(complete)))

    for several in (OtherVector, gymnasium.vector.SyncVectorEnv):
        with pytest.raises(EpisodeError) as caught:
            player(several([lambda: Drift(fault), Drift, Drift])).play(0, 40)
        complete = caught.value.complete
        assert complete is not None
        assert 3 <= len(complete) <= caught.value.episode
        assert_same(complete, healthy.part(0, len(complete)))


def test_trouble_in_the_first_episode_leaves_none() -> None:
    env = Drift()
    env.observation_space = spaces.Box(-2.0, 2.0, (3,))
    with pytest.raises(EpisodeError, match=r"an observation has shape \(2,\)") as caught:
        player(env).play(6, 2)
    assert caught.value.complete is None
    assert caught.value.episode == 6


def test_policies_and_features_that_fail_keep_episodes() -> None:
    asked = []

    def failing(seen: Any) -> Any:
        asked.append(seen)
        return [0.5, 0.6] if len(asked) == 50 else [0.5, 0.5]

    def growing(seen: Any) -> Any:
        asked.append(seen)
        return np.zeros(3 if len(asked) == 50 else 2)

    cases: list[tuple[dict[str, Any], str]] = [
        ({"policy": failing}, r"sum to 1.1 at observation array\("),
        ({"features": growing}, "there are 3 features of an observation, and were 2 before"),
        ({"cost": "price"}, "the environment's info has no 'price'"),
        ({"cost": lambda seen, action: -1.0}, "the cost of .* is -1; it must not be negative"),
    ]
    for options, message in cases:
        for env in (Drift(), vector(Drift, 3), gymnasium.vector.SyncVectorEnv([Drift] * 3)):
            asked.clear()
            with pytest.raises(EpisodeError, match=message) as caught:
                player(env, **options).play(0, 40)
            complete = caught.value.complete
            assert (complete is None) == ("cost" in options)
            if complete is not None:
                np.testing.assert_array_equal(complete.numbers, np.arange(len(complete)))


def test_resets_that_fail_are_said() -> None:
    class Broken(Drift):
        def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
            if len(self.seeds) == 3:
                raise RuntimeError("no start")
            return super().reset(**options)

    for ask in ("play", "resets"):
        with pytest.raises(InputError, match="the environment raised RuntimeError in reset: no st"):
            getattr(player(Broken()), ask)(0, 10)

    class Nan(Drift):
        def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
            return np.array([np.nan, 0.0]), {}

    with pytest.raises(InputError, match="number 0 of the observation at reset 0 is nan"):
        player(Nan()).resets(0, 2)


def test_a_wish_to_stop_keeps_complete_episodes() -> None:
    healthy = player(Drift()).play(0, 40)
    for make in (Drift, lambda fault: vector(lambda: Drift(fault), 2)):
        interrupt = Interrupt()

        def stop(env: Drift, interrupt: Interrupt = interrupt) -> None:
            interrupt.asked = env.steps >= 60

        with pytest.raises(Stopped) as caught:
            player(make(stop), interrupt=interrupt).play(0, 40)
        assert caught.value.complete is not None
        assert_same(caught.value.complete, healthy.part(0, len(caught.value.complete)))


def test_environments_that_cannot_be_played_are_refused() -> None:
    graph = Drift(actions=spaces.Graph(spaces.Discrete(2), None))
    with pytest.raises(InputError, match=r"actions are Graph\(.*\); they must be Box, Discrete"):
        player(graph)
    same_step = vector(Drift, 2, autoreset_mode=gymnasium.vector.AutoresetMode.SAME_STEP)
    with pytest.raises(InputError, match=r"resets in mode .*; it must be NEXT_STEP"):
        player(same_step)
    with pytest.raises(InputError, match="cost is a list"):
        player(Drift(), cost=[1.0])

    def widen(env: Drift) -> None:
        env.action_space = spaces.Discrete(3)

    with pytest.raises(EpisodeError, match=r"changed its actions from Discrete\(2\)"):
        player(Drift(widen)).play(0, 1)


def test_a_vector_environment_that_takes_one_seed_for_all() -> None:
    """What an episode is follows from the seed, its number and the width, however it is asked."""

    def player() -> Any:
        poles = gymnasium.make_vec("CartPole-v1", 3, vectorization_mode="vector_entry_point")
        return make_player(poles, "uniform", horizon=30, seed=4)

    whole = player().play(0, 8)
    assert whole.numbers is not None and whole.numbers.tolist() == list(range(8))
    assert len({tuple(whole.observations[i]) for i in whole.start[:-1]}) == 8
    pieces = Episodes.join([player().play(0, 2), player().play(2, 5), player().play(7, 1)])
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(whole, name), getattr(pieces, name))
    resets = player().resets(0, 7)
    np.testing.assert_array_equal(resets[2:6], player().resets(2, 4))
    assert len({tuple(row) for row in resets}) == 7

"""Collection with states that appear one by one, against the plain twin and against itself."""

from collections.abc import Hashable

import msgspec
import numpy as np
import pytest

import revar
from revar import Dataset, Task, VisitStatistics
from revar.collection import Collection
from revar.collection.saving import save
from revar.errors import InputError
from revar.model.budget import Budget
from revar.simulation.plain import PlainRun, play_episode
from revar.simulation.world import World
from revar.strategies import find_strategy, strategies
from tests.collection.worlds import play

LIVE = [name for name in strategies.ids() if not find_strategy(name).needs_model]
EPISODES = 60


def same_data(one: Dataset, other: Dataset) -> bool:
    fields = ("start", "states", "actions", "rewards", "successors", "propensities")
    return all(
        np.array_equal(getattr(one, name), getattr(other, name), equal_nan=True) for name in fields
    )


def same_statistics(one: VisitStatistics, other: VisitStatistics) -> bool:
    states = max(one.states, other.states)
    left, right = one.run_statistics(states), other.run_statistics(states)
    return all(
        np.array_equal(a, b)
        for a, b in [
            *zip(left.outcomes, right.outcomes, strict=True),
            (left.visits, right.visits),
            (left.reward_mean, right.reward_mean),
            (left.reward_squares, right.reward_squares),
            (left.outcome_reward_mean, right.outcome_reward_mean),
            (left.initial_count, right.initial_count),
        ]
    )


def taken(collection: Collection) -> dict[tuple[int, int], list[int]]:
    """What was taken under the plan in force, by table and state."""
    assert collection.plan_in_force is not None
    return {place: row.ravel().tolist() for place, row in collection.plan_in_force.taken.items()}


def shared_stream(collection: Collection, seed: int) -> np.random.Generator:
    """One stream for all episodes, as the plain twin has it."""
    rng = np.random.default_rng(seed)
    start = collection.start

    def started(number: int):  # type: ignore[no-untyped-def]
        episode = start(number)
        episode.rng = rng
        return episode

    collection.start = started  # type: ignore[method-assign]
    return rng


@pytest.mark.parametrize("problem_id", ["gridworld", "tree"])
@pytest.mark.parametrize("strategy", LIVE)
def test_decisions_are_those_of_a_simulation(strategy: str, problem_id: str) -> None:
    """All states told in the model's order, the same draws: the same episodes, bit for bit."""
    problem = revar.find_problem(problem_id)
    mdp, policy = problem.mdp, problem.policy
    task = Task(policy, mdp.horizon, mdp.discount, budget=Budget(EPISODES))
    twin = PlainRun(
        find_strategy(strategy),
        task,
        VisitStatistics(mdp.states, mdp.actions),
        np.random.default_rng(3),
    )
    expected = Dataset.of(play_episode(twin, World.of(mdp)) for _ in range(EPISODES))
    collection = Collection(
        strategy, horizon=mdp.horizon, discount=mdp.discount, budget=EPISODES, actions=mdp.actions
    )
    for state in range(mdp.states):
        collection.states.enter(state, policy[state])
    rng = shared_stream(collection, 3)
    for number in range(EPISODES):
        play(collection, mdp, policy, number, rng)
    assert same_data(collection.dataset, expected)
    assert same_statistics(collection.statistics, twin.statistics)


@pytest.mark.parametrize("strategy", LIVE)
def test_states_are_numbered_as_they_appear_under_any_key(strategy: str) -> None:
    """What a state is called changes nothing."""
    problem = revar.find_problem("gridworld")

    def named(state: int) -> Hashable:
        return ("cell", state // 4, state % 4)

    datasets = []
    for key in (lambda state: state, named):
        collection = Collection(strategy, horizon=12, actions=4, budget=EPISODES, seed=5)
        for number in range(EPISODES):
            play(collection, problem.mdp, problem.policy, number, key=key)
        datasets.append(collection.dataset)
        met = np.column_stack([datasets[-1].states, datasets[-1].successors]).ravel()
        order = met[np.sort(np.unique(met, return_index=True)[1])]
        assert order[order >= 0].tolist() == list(range(len(collection.states)))
        assert collection.states[0] == key(0)
    assert same_data(*datasets)


@pytest.mark.parametrize("strategy", LIVE)
@pytest.mark.parametrize("stop", [1, 17])
def test_replaying_stored_episodes_is_resuming(strategy: str, stop: int) -> None:
    problem = revar.find_problem("gridworld")

    def fresh() -> Collection:
        return Collection(strategy, horizon=12, actions=4, budget=EPISODES, seed=8)

    whole = fresh()
    for number in range(EPISODES):
        play(whole, problem.mdp, problem.policy, number)
    resumed = fresh()
    resumed.replay(whole.dataset.head(stop), lambda state: problem.policy[state])
    for number in range(stop, EPISODES):
        play(resumed, problem.mdp, problem.policy, number)
    assert same_data(whole.dataset, resumed.dataset)
    assert whole.states.keys == resumed.states.keys
    assert whole.estimate() == resumed.estimate()


def test_episodes_played_in_step_are_replayed_in_step() -> None:
    """Several open at once: their steps enter in the order of step and number, then as now."""
    problem = revar.find_problem("gridworld")
    world = World.of(problem.mdp)
    rng = np.random.default_rng(0)
    played = Collection("flow", horizon=12, actions=4, budget=EPISODES, seed=8)
    for first in range(0, EPISODES, 4):
        episodes = [played.start(first + i) for i in range(4)]
        at = [0] * 4
        while not all(episode.over for episode in episodes):
            for i, episode in enumerate(episodes):
                if episode.over:
                    continue
                action, _ = episode.act(at[i], problem.policy[at[i]])
                pair = at[i] * 4 + action
                slot = rng.integers(world.row_start[pair], world.row_start[pair + 1])
                at[i] = int(world.successor[slot])
                reward = rng.normal(scale=5.0**action)  # so different that a plan pays
                episode.observe(reward, None if at[i] == 16 else at[i])
        for episode in reversed(episodes):  # the dataset has them by number
            episode.finish()
    replayed = Collection("flow", horizon=12, actions=4, budget=EPISODES, seed=8)
    replayed.replay(played.dataset, lambda state: problem.policy[state], width=4)
    assert same_data(played.dataset, replayed.dataset)
    assert same_statistics(played.statistics, replayed.statistics)
    assert replayed.plan is not None
    assert played.plan is not None
    assert np.array_equal(replayed.plan.scores, played.plan.scores)
    assert taken(replayed) == taken(played) != {}


def test_prior_episodes_teach_and_spend_no_budget() -> None:
    problem = revar.find_problem("gridworld")
    elsewhere = Collection("uniform", horizon=12, actions=4, seed=1)
    for number in range(20):
        play(elsewhere, problem.mdp, problem.policy, number)
    collection = Collection("flow", horizon=12, actions=4, budget=10, seed=2)
    collection.learn_from(elsewhere.dataset, lambda state: problem.policy[state])
    assert collection.task.episodes == 30
    assert collection.estimate() == elsewhere.estimate()
    assert len(collection.dataset) == 0
    play(collection, problem.mdp, problem.policy, 0)
    assert collection.statistics.episodes == 21
    assert len(collection.dataset) == 1


def test_a_state_without_a_row_rests_on_no_data() -> None:
    """Met as the last successor alone: its mass counts as unvisited, whatever its row will be."""
    collection = Collection("on-policy", horizon=2, actions=2, seed=0)
    for number in range(4):
        episode = collection.start(number)
        for _ in range(2):
            episode.act("loop", [1.0, 0.0])
            episode.observe(1.0, "beyond" if number == 3 and episode.steps == 1 else "loop")
        episode.finish()
    estimate = collection.estimate()
    # One of eight steps led beyond, where a step is taken to be worth what it is elsewhere.
    assert estimate.value == pytest.approx(2.0)
    assert estimate.unvisited_probability == pytest.approx(1 / 8)


def test_a_dropped_episode_counts_with_its_complete_steps() -> None:
    collection = Collection("on-policy", horizon=5, actions=1, seed=0)
    episode = collection.start(0)
    episode.act("a", [1.0])
    episode.observe(1.0, "b")
    episode.act("b", [1.0])  # never observed
    assert collection.statistics.visits.sum() == 1
    assert len(collection.dataset) == 0
    nothing = collection.start(1)
    nothing.act("a", [1.0])
    assert collection.statistics.episodes == 1


def test_what_does_not_fit_is_refused_in_a_sentence() -> None:
    collection = Collection("flow", horizon=2, actions=2, seed=0)
    episode = collection.start(0)
    with pytest.raises(InputError, match=r"state 'a' gives probabilities that sum to 0.9"):
        episode.act("a", [0.5, 0.4])
    with pytest.raises(InputError, match=r"state 'a' gives action 1 the probability nan"):
        episode.act("a", [0.5, np.nan])
    with pytest.raises(InputError, match=r"shape \(3,\); there are 2 actions"):
        episode.act("a", [0.5, 0.5, 0.0])
    with pytest.raises(InputError, match="cannot be hashed"):
        episode.act([1], [0.5, 0.5])  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no action that can be observed"):
        episode.observe(1.0, "b")
    episode.act("a", [0.5, 0.5])
    with pytest.raises(InputError, match="waits for what its last action led to"):
        episode.act("a", [0.5, 0.5])
    with pytest.raises(InputError, match="is nan; it must be finite"):
        episode.observe(np.nan, "b")
    episode.observe(1.0, "b")
    with pytest.raises(InputError, match="is in state 'b', and is asked to act in state 'a'"):
        episode.act("a", [0.5, 0.5])
    episode.act("b", [0.5, 0.5])
    episode.observe(1.0, "a")
    with pytest.raises(InputError, match="is over after 2 steps"):
        episode.act("a", [0.5, 0.5])
    episode.finish()
    with pytest.raises(InputError, match="was finished before"):
        episode.finish()
    with pytest.raises(InputError, match=r"the probabilities \[0.5, 0.5\] before"):
        collection.start(1).act("a", [0.4, 0.6])
    with pytest.raises(InputError, match="'flow-oracle' needs the true model"):
        Collection("flow-oracle", horizon=2, actions=2)


def test_a_refused_act_leaves_nothing_behind() -> None:
    collection = Collection("flow", horizon=3, actions=2, budget=9, seed=0)
    episode = collection.start(0)
    episode.act("here", [0.5, 0.5])
    episode.observe(0.0, "there")
    before = msgspec.msgpack.encode(save(collection, [episode]))
    for state, row in (("elsewhere", [0.9, 0.1]), ("there", [0.9, 0.2]), ("there", [1.0])):
        with pytest.raises(InputError):
            episode.act(state, row)
        assert msgspec.msgpack.encode(save(collection, [episode])) == before
    episode.act("there", [0.5, 0.5])
    with pytest.raises(InputError, match="waits for"):
        episode.act("elsewhere", [0.9, 0.1])
    assert "elsewhere" not in collection.states


def test_a_new_state_is_treated_as_by_a_strategy_without_data() -> None:
    """Under a plan that does not know it, flow draws from the target policy."""
    collection = Collection("flow", horizon=1, actions=2, budget=1000, seed=0)
    for number in range(200):
        episode = collection.start(number)
        episode.act("known", [0.5, 0.5])
        episode.observe(float(number % 7), None)
        episode.finish()
    before = collection.plan
    asked = []
    for number in range(200, 206):
        episode = collection.start(number)
        asked.append(episode.act("new", [0.9, 0.1]))
        episode.observe(0.0, None)
        episode.finish()
    assert collection.plan is before
    assert asked == [(action, [0.9, 0.1][action]) for action, _ in asked]


@pytest.mark.parametrize("strategy", ["on-policy", "flow", "revar"])
def test_visits_have_a_row_for_a_state_that_was_never_left(strategy: str) -> None:
    """Compiled choices read the row of the state they act in, and nothing checks its bounds."""
    collection = Collection(strategy, horizon=2, actions=2, budget=9, seed=0)
    for number in range(40):
        state = f"start {number}"
        collection.start(number).act(state, [0.5, 0.5])
        assert collection.statistics.visits_in(number).tolist() == [[0, 0]]


@pytest.mark.parametrize("strategy", LIVE)
def test_choosing_changes_nothing_and_is_what_acting_does(strategy: str) -> None:
    """Also with a plan due, in new states, and with another row for a state not told yet."""
    problem = revar.find_problem("gridworld")
    collection = Collection(strategy, horizon=12, actions=4, budget=EPISODES, seed=5)
    world, rng = World.of(problem.mdp), np.random.default_rng(2)
    for number in range(EPISODES):
        episode = collection.start(number)
        state = 0
        while not episode.over:
            before = msgspec.msgpack.encode(save(collection, [episode]))
            stream = episode.rng.bit_generator.state
            decision = episode.choose(state, problem.policy[state])
            episode.choose(state, problem.policy[state])
            if collection.states.find(state) is None:
                episode.choose(state, problem.policy[state][::-1])
            assert msgspec.msgpack.encode(save(collection, [episode])) == before
            assert episode.rng.bit_generator.state == stream
            action, propensity = episode.act(state, problem.policy[state])
            np.testing.assert_equal((action, propensity), decision[:2])
            assert decision.draws == (episode.rng.bit_generator.state != stream)
            pair = state * 4 + action
            slot = rng.integers(world.row_start[pair], world.row_start[pair + 1])
            state = int(world.successor[slot])
            episode.observe(rng.normal(), None if state == 16 else state)
        episode.finish()

"""Blackjack against Gymnasium's own environment, with every card that it could draw."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.toy_text import blackjack as rules

from revar import policy_value, return_variance
from revar.errors import InputError
from revar.model.arrays import FloatArray
from revar.model.mdp import TabularMDP
from revar.problems import Problem, problems
from revar.problems.blackjack import DRAWN, HIT, LONGEST, LOST, OBSERVATIONS, STICK, WON

STATE: dict[Any, int] = {seen: state for state, seen in enumerate(OBSERVATIONS)}
OVER = {-1.0: LOST, 0.0: DRAWN, 1.0: WON}


@cache
def table(**options: Any) -> Problem:
    return problems.find("blackjack")(**options)


def dense(mdp: TabularMDP) -> FloatArray:
    return np.asarray(mdp.transitions.toarray().reshape(mdp.states, 2, mdp.states))


class MoreCardsError(Exception):
    """A card is drawn that nobody has chosen."""


class ChosenCards:
    """Stands in for a random generator: draws the cards that it was given, in turn."""

    def __init__(self, *cards: int) -> None:
        self.cards = list(cards)

    def choice(self, deck: list[Any]) -> Any:
        if isinstance(deck[0], str):  # pictures and suits, for the screen
            return deck[0]
        if not self.cards:
            raise MoreCardsError
        assert self.cards[0] in deck
        return self.cards.pop(0)


@cache
def gymnasium_table() -> Any:
    return gymnasium.make("Blackjack-v1").unwrapped


class WatchedDeck:
    """Stands in for a random generator: keeps what it was given to draw from."""

    def __init__(self) -> None:
        self.decks: list[list[int]] = []

    def choice(self, deck: list[Any]) -> Any:
        self.decks.append(deck)
        return deck[0]


@cache
def deck() -> Counter[int]:
    """How often each card is in the deck that Gymnasium draws from."""
    env = gymnasium_table()
    env.np_random = watched = WatchedDeck()
    env.player, env.dealer = [2, 2], [2, 2]
    env.step(HIT)
    return Counter(watched.decks[0])


def every_draw(play: Callable[[], Any]) -> Iterator[tuple[Fraction, Any]]:
    """What `play` returns for all cards that it may draw, each with its probability."""
    cards = deck()
    waiting: list[tuple[Fraction, tuple[int, ...]]] = [(Fraction(1), ())]
    while waiting:
        chance, drawn = waiting.pop()
        gymnasium_table().np_random = ChosenCards(*drawn)
        try:
            result = play()
        except MoreCardsError:
            waiting += [
                (chance * count / cards.total(), (*drawn, card)) for card, count in cards.items()
            ]
        else:
            yield chance, result


def hand_of(total: int, ace: int) -> list[int]:
    """Cards that come to that."""
    cards, rest = ([1], total - 11) if ace else ([], total)
    while rest > 10:
        cards.append(min(10, rest - 2))
        rest -= cards[-1]
    return [*cards, rest]


def test_every_hand_starts_as_often_as_in_gymnasium() -> None:
    found: dict[Any, Fraction] = defaultdict(Fraction)
    for chance, (seen, _) in every_draw(gymnasium_table().reset):
        found[tuple(map(int, seen))] += chance
    initial = table().mdp.initial
    assert sum(found.values()) == 1
    for seen, state in STATE.items():
        assert initial[state] == pytest.approx(float(found.pop(seen, 0)), abs=1e-15)
    assert not found
    assert not initial[[LOST, DRAWN, WON]].any()


def test_hitting_leads_where_gymnasium_s_cards_lead() -> None:
    env = gymnasium_table()
    transitions = dense(table().mdp)
    for (total, shown, ace), state in STATE.items():

        def hit(total: int = total, shown: int = shown, ace: int = ace) -> int:
            env.player, env.dealer = hand_of(total, ace), [shown, 10]
            assert env._get_obs() == (total, shown, ace)
            seen, reward, ended, _, _ = env.step(HIT)
            assert reward == (-1.0 if ended else 0.0)
            return LOST if ended else STATE[tuple(map(int, seen))]

        expected = np.zeros(len(transitions))
        for chance, after in every_draw(hit):
            expected[after] += chance
        np.testing.assert_allclose(transitions[state, HIT], expected, atol=1e-15)


@pytest.mark.parametrize("shown", range(1, 11))
def test_sticking_wins_as_often_as_in_gymnasium(shown: int) -> None:
    """The dealer plays the same whatever the player has, so that one play tells all rewards."""
    env = gymnasium_table()
    transitions = dense(table().mdp)

    def stick() -> int:
        env.player, env.dealer = [10, 10], [shown, env.np_random.choice(list(deck()))]
        _, reward, ended, _, _ = env.step(STICK)
        dealer = int(rules.sum_hand(env.dealer))  # type: ignore[no-untyped-call]
        assert ended
        assert reward == payment(20, dealer)
        return dealer

    totals: dict[int, Fraction] = defaultdict(Fraction)
    for chance, dealer in every_draw(stick):
        totals[dealer] += chance
    assert sum(totals.values()) == 1
    for (total, card, _), state in STATE.items():
        if card == shown:
            expected = np.zeros(len(transitions))
            for dealer, chance in totals.items():
                expected[OVER[payment(total, dealer)]] += chance
            np.testing.assert_allclose(transitions[state, STICK], expected, atol=1e-14)


def payment(total: int, dealer: int) -> float:
    """For sticking with that total, when the dealer has played."""
    return 1.0 if dealer > 21 else float(np.sign(total - dealer))


def test_sampled_steps_of_gymnasium_have_the_model_s_rewards() -> None:
    """Gymnasium's own draws: the mean reward of sticking, by total, within five standard errors."""
    env = gymnasium_table()
    mdp = table().mdp
    cards = list(deck().elements())
    env.np_random = rng = np.random.default_rng(1)
    for total in range(12, 22):
        rewards, means = [], []
        for _ in range(500):
            shown, hidden = rng.choice(cards), rng.choice(cards)
            env.player, env.dealer = hand_of(total, 0), [shown, hidden]
            rewards.append(env.step(STICK)[1])
            means.append(mdp.reward_mean[STATE[total, int(shown), 0], STICK])
        gaps = np.array(rewards) - means
        assert abs(gaps.mean()) < 5 * gaps.std(ddof=1) / np.sqrt(len(gaps))


def test_rewards_are_those_of_the_outcome() -> None:
    mdp = table().mdp
    paid = {LOST: -1.0, WON: 1.0}
    expected = [paid.get(int(successor), 0.0) for successor in mdp.outcomes.successor]
    assert mdp.outcome_reward_mean.tolist() == expected
    assert not mdp.outcome_reward_std.any()
    assert not dense(mdp)[[LOST, DRAWN, WON]].any()
    assert mdp.reward_bound == 1.0


def test_the_value_is_the_mean_return_of_gymnasium_s_episodes() -> None:
    problem = table()
    env = gymnasium_table()
    env.np_random = np.random.default_rng(2)
    noise = np.random.default_rng(3)
    returns = np.zeros(6000)
    for episode in range(len(returns)):
        seen, _ = env.reset()
        ended = False
        while not ended:
            hits = noise.random() < problem.policy[STATE[tuple(map(int, seen))], HIT]
            seen, reward, ended, _, _ = env.step(int(hits))
        returns[episode] = reward
    value = policy_value(problem.mdp, problem.policy)
    variance = return_variance(problem.mdp, problem.policy)
    assert abs(returns.mean() - value) < 5 * np.sqrt(variance / len(returns))


def test_no_hand_is_cut() -> None:
    """With one step more nothing follows, whatever the policy; with one less it does."""
    hits = dense(table().mdp)[:, HIT]
    reached = table().mdp.initial
    for _ in range(LONGEST - 1):
        reached = reached @ hits
    assert reached[LOST] > 0
    assert not np.delete(reached, LOST).any()


def test_the_policy_and_its_options() -> None:
    policy = table().policy
    for (total, _, _), state in STATE.items():
        expected = [0.9, 0.1] if total >= 20 else [0.1, 0.9]
        np.testing.assert_allclose(policy[state], expected, rtol=1e-15)
    assert policy[[LOST, DRAWN, WON]].tolist() == [[1.0, 0.0]] * 3
    early = table(stick=17, epsilon=0.0, horizon=5, discount=0.9)
    assert early.policy[STATE[17, 10, 0]].tolist() == [1.0, 0.0]
    assert early.policy[STATE[16, 10, 1]].tolist() == [0.0, 1.0]
    assert (early.mdp.horizon, early.mdp.discount) == (5, 0.9)
    with pytest.raises(InputError, match="stick is 0"):
        table(stick=0)
    with pytest.raises(InputError, match="epsilon is 2"):
        table(epsilon=2)

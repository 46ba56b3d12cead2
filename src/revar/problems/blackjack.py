"""Blackjack: Gymnasium's Blackjack-v1 as an exact model."""

from functools import cache

import numpy as np

from revar.model.arrays import FloatArray
from revar.model.mdp import TabularMDP
from revar.model.validation import check_count, check_share
from revar.problems import Problem, problems

Hand = tuple[int, bool]  # the total, and whether an ace counts as 11 in it

# An endless deck; tens, jacks, queens and kings count 10, and 1 is an ace.
CHANCE = {card: (4 if card == 10 else 1) / 13 for card in range(1, 11)}
MOST = 21  # more than this is bust
DEALER_STICKS = 17  # whether or not an ace counts as 11
# What the player can see in states 0, 1, ...: total, the dealer's card, usable ace.
OBSERVATIONS = tuple(
    (total, card, ace)
    for total in range(4, MOST + 1)
    for card in CHANCE
    for ace in (0, 1)
    if total >= 12 or not ace
)
# The states after the last card, and what is paid on the way there.
LOST, DRAWN, WON = range(len(OBSERVATIONS), len(OBSERVATIONS) + 3)
REWARDS = {LOST: -1.0, DRAWN: 0.0, WON: 1.0}
STICK, HIT = 0, 1
# Two aces and nineteen more are 21; the next card is bust, and one more step ends the episode.
LONGEST = 21


@problems.register("blackjack")
def blackjack(
    stick: int = 20,
    *,
    epsilon: float = 0.2,
    horizon: int = LONGEST,
    discount: float = 1.0,
    reward_law: str = "deterministic",
) -> Problem:
    """Blackjack with an endless deck, and an epsilon-soft policy that sticks at `stick` or more.

    Gymnasium's Blackjack-v1, built from its rules (no extra for a natural): action 0 sticks, 1
    hits; the dealer takes cards below 17; winning pays 1, a draw 0, losing -1. States are what the
    player sees (`OBSERVATIONS`), and three more, lost, drawn and won, in which the next step ends
    the episode. So the reward follows from the successor and is exactly -1, 0 or 1, which no law
    of noise around a mean gives, and as the end of the episode is a single outcome, it could not
    pay three rewards. The price is that every episode has one step more than Gymnasium's, in which
    nothing happens. The horizon cuts no hand.

    The target policy does what it should with probability 1 - epsilon / 2. When the hand is over
    it takes action 0.
    """
    check_count(stick, "stick")
    check_share(epsilon, "epsilon")
    states = len(OBSERVATIONS) + len(REWARDS)
    number = {seen: state for state, seen in enumerate(OBSERVATIONS)}
    transitions = np.zeros((states, 2, states))
    for state, (total, shown, ace) in enumerate(OBSERVATIONS):
        for card, chance in CHANCE.items():
            reached, usable = add_card((total, bool(ace)), card)
            after = number[reached, shown, int(usable)] if reached <= MOST else LOST
            transitions[state, HIT, after] += chance
        dealer = dealer_totals(add_card((0, False), shown))
        transitions[state, STICK, LOST] = dealer[total + 1 : MOST + 1].sum()
        transitions[state, STICK, DRAWN] = dealer[total]
        transitions[state, STICK, WON] = dealer[:total].sum() + dealer[MOST + 1 :].sum()
    rewards = np.zeros((states, 2, states + 1))
    rewards[..., list(REWARDS)] = list(REWARDS.values())
    initial = np.zeros(states)
    for first, second, shown in np.ndindex(10, 10, 10):
        total, usable = add_card(add_card((0, False), first + 1), second + 1)
        chance = CHANCE[first + 1] * CHANCE[second + 1] * CHANCE[shown + 1]
        initial[number[total, shown + 1, int(usable)]] += chance
    policy = np.full((states, 2), epsilon / 2)
    for state, (total, _, _) in enumerate(OBSERVATIONS):
        policy[state, STICK if total >= stick else HIT] += 1.0 - epsilon
    policy[list(REWARDS)] = np.eye(2)[STICK]
    mdp = TabularMDP(transitions, rewards, 0.0, initial, horizon, discount, reward_law=reward_law)
    return Problem("blackjack", mdp, policy)


def add_card(hand: Hand, card: int) -> Hand:
    """The hand with one card more: an ace counts as 11 as long as that is not bust."""
    total, usable = hand
    total += card
    if card == 1 and not usable and total + 10 <= MOST:
        return total + 10, True
    if usable and total > MOST:
        return total - 10, False
    return total, usable


@cache
def dealer_totals(hand: Hand) -> FloatArray:
    """The chance of each total that the dealer ends with, [total], from this hand on."""
    totals = np.zeros(DEALER_STICKS + 10)
    if hand[0] >= DEALER_STICKS:
        totals[hand[0]] = 1.0
        return totals
    for card, chance in CHANCE.items():
        totals += chance * dealer_totals(add_card(hand, card))
    return totals

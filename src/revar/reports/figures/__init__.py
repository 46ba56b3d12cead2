"""Figures by name: each a function of results, found in a registry; and how strategies look."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from revar.charts.chart import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    Chart,
    Picture,
    Style,
)
from revar.experiments.experiment import StrategyChoice
from revar.experiments.results import Results
from revar.registry import Registry

Figure = Callable[[Results], Chart | Picture]
figures: Registry[Figure] = Registry("figure", "revar.reports.figures")

_OF_STRATEGY = {
    "on-policy": Style(GREY, "solid", "s"),
    "uniform": Style(ORANGE, "dash", "v"),
    "cb-var": Style(PURPLE, "dashdot", "D"),
    "oracle": Style(BLUE, "dash", "^"),
    "revar": Style(VERMILION, "solid", "o"),
    "flow": Style(GREEN, "solid", "*"),
    "flow-oracle": Style(SKY, "dash", "P"),
    "ros": Style(ORANGE, "solid", "<"),
    "bandit": Style(PURPLE, "solid", ">"),
    "bpg": Style(SKY, "dot", "X"),
    "odi": Style(BLUE, "dot", "d"),
    "dopt": Style(BLACK, "dot", "h"),
}
_IN_ORDER = (
    Style(BLUE, "solid", "o"),
    Style(ORANGE, "dash", "s"),
    Style(GREEN, "solid", "^"),
    Style(VERMILION, "dashdot", "D"),
    Style(PURPLE, "solid", "v"),
    Style(SKY, "dash", "P"),
    Style(BLACK, "dot", "*"),
    Style(GREY, "dashdot", "X"),
)
EXACT = Style(BLACK, "dot", "")
_EXACT_OF = {"on-policy": Style(GREY, "dot", ""), "oracle": Style(BLUE, "dot", "")}


def exact_style(name: str) -> Style:
    """The style of a closed form: the colour of its strategy, dotted."""
    return _EXACT_OF.get(name, EXACT)


def strategy_styles(choices: Sequence[StrategyChoice]) -> dict[str, Style]:
    """A style for each strategy, by label.

    A strategy looks the same in every report, and dashed where it collects apart. Where one stands
    several times with other options, styles go by order.
    """
    ways = [(choice.id, bool(choice.apart)) for choice in choices]
    styles: dict[str, Style] = {}
    for i, choice in enumerate(choices):
        own = _OF_STRATEGY.get(choice.id)
        if own is None or ways.count(ways[i]) > 1:
            own = _IN_ORDER[i % len(_IN_ORDER)]
        styles[choice.name] = replace(own, dash="dash") if choice.apart else own
    return styles

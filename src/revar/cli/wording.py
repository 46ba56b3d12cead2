"""Messages in the words of the command line: the same sentences, with options for parameters."""

import re

# What Python's parameters are called here; others by their own names.
OPTIONS = {
    **{"env_options": "--env-option", "limits": "limits", "save": "--output"},
    **{"policy": "--policy", "threads": "--threads", "engine": "--engine"},
}
PARAMETERS = (
    *("address", "batch", "bins", "budget", "confidence", "cost", "critics", "decide", "discount"),
    *("environments", "episodes", "epsilon", "features", "half_width", "horizon", "indifference"),
    *("max_ratio", "method", "min_return"),
    *("prior", "resets", "resume", "seed", "steps", "strategy", "workers"),
)
# A parameter and its equals sign, with what is given, if that is a word or a number.
_GIVEN = re.compile(rf"\b({'|'.join((*PARAMETERS, *OPTIONS))})=(\.\.\.|[\w.]+|'\w+')?(?=[ ,;:)]|$)")
# A parameter that a sentence begins with, and what it is.
_BEGINNING = re.compile(rf"^({'|'.join(PARAMETERS)})(?= (?:is|are) (?:for |[-\d.'\[]))")
_PHRASES = {
    "bins=revar.Bins(...) of edges, or equal ones between bounds: revar.Bins.uniform(low, high, "
    "counts)": "--bins '[[-1.0, 0.0, 1.0], [0.0]]'",
    "bins=revar.Bins(...)": "--bins '[[-1.0, 0.0, 1.0], [0.0]]'",
    "revar.epsilon_greedy": "--epsilon 0",
    "no policy is given; give one,": "no policy is given; give one with --policy,",
}


def in_options(message: str) -> str:
    """The sentence with `--name value` for `name=value`, and `--name is` for `name is`."""
    for phrase, here in _PHRASES.items():
        message = message.replace(phrase, here)

    def option(found: re.Match[str]) -> str:
        name, value = found[1], (found[2] or "").strip("'")
        return _option(name) if value in ("", "...") else f"{_option(name)} {value}"

    message = _BEGINNING.sub(lambda found: _option(found[0]), message)
    return _GIVEN.sub(option, message)


def _option(parameter: str) -> str:
    return OPTIONS.get(parameter, f"--{parameter.replace('_', '-')}")

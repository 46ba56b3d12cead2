"""What environments and policies do wrong, said in a sentence."""

from typing import Any

from revar.errors import InputError
from revar.model.validation import checked_reward


def blamed(error: Exception, call: str) -> InputError:
    """The sentence about an environment that raised."""
    return InputError(
        f"the environment raised {type(error).__name__} in {call}: {_first_line(error)}"
    )


def reward_number(reward: Any) -> float:
    """A reward as a number that statistics can hold."""
    try:
        number = float(reward)
    except (TypeError, ValueError):
        raise InputError(f"the environment gave the reward {reward!r}, not a number") from None
    return checked_reward(number, "the environment gave the reward")


def answer_of(policy: Any, observation: Any) -> Any:
    """What a policy answers to an observation."""
    try:
        return policy(observation)
    except InputError:
        raise
    except Exception as error:
        raise InputError(
            f"the policy raised {type(error).__name__} at observation {observation!r}: "
            f"{_first_line(error)}"
        ) from error


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]

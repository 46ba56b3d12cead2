"""Models that Stable-Baselines3 has saved, loaded by Stable-Baselines3 itself.

Its loader unpickles parts of the file, which can run code. What is looked at here, to find the
algorithm, is the JSON beside them.
"""

import importlib
import json
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

from revar.environments.opening import describe_error
from revar.errors import InputError, MissingExtraError

# What only the models of an algorithm store; the first that is there tells.
ALGORITHMS = {
    "clip_range": "PPO",
    "exploration_fraction": "DQN",
    "target_entropy": "SAC",
    "target_policy_noise": "TD3",
    "gae_lambda": "A2C",
}


def load_model(path: str) -> Any:
    """The model in a .zip of Stable-Baselines3, which must be installed."""
    algorithm = _algorithm_of(path)
    try:
        library = importlib.import_module("stable_baselines3")
    except ImportError as error:
        raise MissingExtraError(
            f"{path} is a model of Stable-Baselines3, which is not installed: "
            f"pip install stable-baselines3"
        ) from error
    try:
        return getattr(library, algorithm).load(path, device="cpu")
    except Exception as error:  # whatever is in the file
        raise InputError(
            f"{path} cannot be loaded as {algorithm} of Stable-Baselines3 ({describe_error(error)})"
        ) from error


def _algorithm_of(path: str) -> str:
    if not Path(path).is_file():
        raise InputError(f"{path}: no such file")
    try:
        with ZipFile(path) as archive:
            stored = json.loads(archive.read("data"))
        policy_class = stored["policy_class"]
    except (OSError, BadZipFile, KeyError, TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"{path} is no model that Stable-Baselines3 has saved ({error})") from None
    own = str(policy_class.get("__module__", "") if isinstance(policy_class, dict) else "")
    found = next((name for field, name in ALGORITHMS.items() if field in stored), None)
    if found is None or own.startswith("sb3_contrib"):
        raise InputError(
            f"{path} is of none of {', '.join(sorted(ALGORITHMS.values()))}; load it in a module "
            f"of yours, and give 'module:model'"
        )
    return found

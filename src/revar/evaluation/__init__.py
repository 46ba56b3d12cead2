"""Evaluating a target policy in an environment, with an interval."""

"""Evaluating a policy in any environment from returns of whole episodes, with critics."""

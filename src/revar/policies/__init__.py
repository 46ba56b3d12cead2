"""Policies in the forms that users have them in, and as laws that actions are drawn from."""

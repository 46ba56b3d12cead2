"""Collected episodes on disk: files of our own, and Minari."""

"""Pure functions of a model: no randomness, no input or output."""

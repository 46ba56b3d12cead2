"""Episodes played by several workers at once: processes of this machine, or Ray's."""

"""The command line: one file a command. Heavy imports stand inside the commands."""

"""The commands of `vpo`, one file each: `add` states the options, `run` calls and prints and returns the exit code."""

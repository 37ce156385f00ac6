"""The code that runs inside a sandbox. Only this folder is mounted there, so it imports the standard library alone."""

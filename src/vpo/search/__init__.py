"""Search: spend a budget of answers on a trained policy, for a goal that it need not have been trained for.

A strategy (`strategies`) chooses moves for a problem and a goal (`goals`). Operators turn moves into prompts
(`operators`), a generator writes the completions (`generators`), and the task scores their answers (`scorer`) in
processes with a time limit (`scoring_pool`). The loop over all problems (`loop`) logs every step (`log`), so that a
search can be resumed at any point. `setup` makes these parts from a config (`config`), `run` does one search, `jobs`
many in parallel; `result` reads from the log what was solved at which budget. `openevolve` hands the search to
OpenEvolve.
"""

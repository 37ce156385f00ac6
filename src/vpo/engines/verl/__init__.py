"""VPO and the methods beside it on a stock verl, unpatched. Run against verl 0.9.1; nothing of verl is imported here.

    vpo train toolrl --engine verl --python .venv-verl/bin/python --model Qwen/Qwen3-1.7B --data rlla_4k/
    vpo export verl toolrl --data rlla_4k/ --out data     # only the files, for a verl command of your own

verl calls a reward function for one completion at a time, and its advantage estimators see one number per completion.
`reward` returns that number and the vectors; `plugin` registers a trainer, verl's own but for the advantages, which
come from `vpo.advantages`.
"""

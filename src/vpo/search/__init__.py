"""Search: spend a budget of answers on a trained policy, for a goal that need not have been trained for.

A strategy is asked what to try next and told what came of it (`strategies`), for a problem and a goal (`goals`). Its
moves become prompts (`operators`), a model or an endpoint writes (`writers`), the task scores in processes with a time
limit (`judge`), and all of it is logged so that a search can be taken up anywhere (`loop`, `log`). `run` puts them
together, and `outcome` says what was solved at which budget.
"""

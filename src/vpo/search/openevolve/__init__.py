"""Search with OpenEvolve.

`evolution`   OpenEvolve's loop, where every answer of a completion becomes a child; for any OpenEvolve project
`population`  OpenEvolve's database, prompts and checkpoints
`llm`         our endpoint client as a model of OpenEvolve
`evaluation`  programs evaluated in a process that can be killed (`evaluation_worker`)
`stopping`    early stopping
`children`    what that loop makes, and its log
`files`       the prompt template and the checkpoints
`project`     an OpenEvolve project for a problem of a task: configuration, evaluator, template
`strategy`    `vpo search --strategy openevolve`: one project after another, into the log of the search
"""

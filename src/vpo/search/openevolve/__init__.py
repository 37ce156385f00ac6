"""Search with OpenEvolve.

`evolution`   OpenEvolve's loop, where every answer of a completion becomes a child; for any OpenEvolve project
`children`    what that loop makes, and its log
`files`       the prompt template and the checkpoints
`project`     an OpenEvolve project for a problem of a task: configuration, evaluator, template
`strategy`    `vpo search --strategy openevolve`: one project after another, into the log of the search
"""

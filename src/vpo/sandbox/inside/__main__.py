"""Starts the zygote. This file is compiled at every start, so the code is in modules."""

import zygote  # type: ignore[import-not-found]  # this folder is sys.path[0]

zygote.main()

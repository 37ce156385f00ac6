"""Starts the runner. This file is compiled at every start, so the code is in modules."""

import runner  # type: ignore[import-not-found]  # this folder is sys.path[0]

runner.main()

"""Where a sandbox begins. This file is compiled at every start, so the rest stands in modules."""

import candidate  # type: ignore[import-not-found]  # this folder is the path

candidate.main()

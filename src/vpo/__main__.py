"""`python -m vpo` is `vpo`."""

from vpo.cli import main

raise SystemExit(main())

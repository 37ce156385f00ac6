"""`python -m vpo` is `vpo`."""

from vpo.cli.main import main
from vpo.util.processes import end

end(main())

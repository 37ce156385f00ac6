"""`python -m vpo` is `vpo`."""

from vpo.cli import main
from vpo.processes import end

end(main())

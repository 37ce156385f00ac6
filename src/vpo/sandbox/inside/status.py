"""How the process of a program ended: what the one that watches it tells the judge."""

import struct

STATUS = struct.Struct("=id")  # the status as wait4 gives it, and seconds of processor time

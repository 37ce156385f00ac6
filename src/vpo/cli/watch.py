"""`vpo watch`: a live view of a run that is being trained."""

import argparse
import sys
from pathlib import Path

from vpo.cli.arguments import Commands, add_examples, add_json, add_out
from vpo.cli.output import as_json, plain

PAGE = "watch.html"


def add(commands: Commands) -> None:
    """Add `vpo watch`."""
    command = commands.add_parser(
        "watch",
        help="watch a run that is being trained, in a browser",
        description="Serve a page that follows a run while it is trained: curves of reward, set reward, parse rate, "
        "diversity, loss and entropy, the time left, and the newest rollouts with the scores of each answer. It reads "
        "the logs of the run folder; the training is not affected. Only this machine can open it. Ctrl-C ends it.",
    )
    command.add_argument("folder", metavar="RUN", help="the folder of a run, begun or finished")
    command.add_argument("--port", type=int, default=0, metavar="N", help="port to listen on (default: a free one)")
    command.add_argument("--once", action="store_true", help="write the page of this moment to a file instead")
    add_out(command, "with --once: the page to write", shown=f"RUN/{PAGE}")
    add_json(command)
    add_examples(
        command,
        "vpo watch runs/maze-vpo",
        "vpo watch runs/maze-vpo --port 8123   # elsewhere: ssh -L 8123:127.0.0.1:8123 HOST, then open that port",
        "vpo watch runs/maze-vpo --once        # writes runs/maze-vpo/watch.html",
    )
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Serve the page until Ctrl-C, or write it, or print the state."""
    from vpo.report.watch import RunWatch, page
    from vpo.util.errors import InputError
    from vpo.util.files import write_text
    from vpo.util.outputs import check_file

    folder, port = Path(options.folder), options.port
    if not 0 <= port <= 65535:
        raise InputError(f"port must lie in 0..65535, not {port}")
    if options.out and not options.once:
        raise InputError(f"out is for --once: vpo watch {folder} --once --out {options.out}")
    if not (options.once or options.json):
        return _serve(folder, port)
    state = RunWatch(folder).state()
    out = Path(options.out or folder / PAGE)
    if options.once:
        check_file(out)
        write_text(out, page(state, live=False))
    print(as_json(state) if options.json else plain(f"{out}: step {state['step']} of {folder}, {state['status']}"))
    return 0


def _serve(folder: Path, port: int) -> int:
    from vpo.report.watch_server import WatchServer

    with WatchServer(folder, port) as server:
        print(plain(f"{folder} is shown at {server.address} (Ctrl-C ends it)"), flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print(file=sys.stderr)
    return 0

"""Several processes of the simulated server on one port: the kernel deals connections out to them."""

import contextlib
import ctypes
import os
import resource
import signal

_PDEATHSIG = 1


class Siblings:
    """Processes forked before the event loop begins; `mine` is False in those that were forked.

    They end with the process that forked them, and with `stop`.
    """

    def __init__(self, count: int) -> None:
        self._pids: list[int] = []
        self.mine = True
        parent = os.getpid()
        for _ in range(count):
            pid = os.fork()
            if not pid:
                self.mine, self._pids = False, []
                ctypes.CDLL(None).prctl(_PDEATHSIG, signal.SIGKILL)
                if os.getppid() != parent:
                    os._exit(1)
                return
            self._pids.append(pid)

    def stop(self) -> None:
        """End them and wait for their ends."""
        for pid in self._pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for pid in self._pids:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)


def raise_file_limit() -> None:
    """Let this process have as many connections open as its hard limit allows."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

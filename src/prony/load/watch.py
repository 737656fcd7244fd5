"""What is looked at just before and just after the measured phase, while no request is in flight."""

from prony.load.cputime import disturbance, read_cpu
from prony.load.engine import engine_facts, read_counters, read_slots
from prony.load.request import Watch
from prony.measure.observed import Disturbance, EngineFacts


class Watcher:
    """Takes two readings and says what lies between them. Without a watch it does nothing."""

    def __init__(self, watch: Watch | None) -> None:
        self._watch = watch
        self.disturbance: Disturbance | None = None
        self.engine: EngineFacts | None = None

    def begin(self) -> None:
        """Read slots, counters and CPU time, which warm-up is then not part of."""
        if self._watch is None:
            return
        self._slots = read_slots(self._watch.urls)
        self._counters = read_counters(self._watch.urls)
        self._cpu = read_cpu(self._watch.root_pid)

    def end(self) -> None:
        """Read again and keep the differences."""
        if self._watch is None:
            return
        self.disturbance = disturbance(self._cpu, read_cpu(self._watch.root_pid))
        self.engine = engine_facts(self._counters, read_counters(self._watch.urls), self._slots)

"""Running a load in this process, on the loop that the client process uses."""

import asyncio

import uvloop

from prony.load.request import Target
from prony.load.run import Recording, run_load
from prony.measure.eventlog import EventLog, Fault
from prony.spec.load import LoadPlan


def record(url: str, tokenizer: str = "none", **plan: object) -> Recording:
    target = Target.model_validate({"url": url, "model": "m", "tokenizer": tokenizer})
    fields = {"isl": 16, "osl": 8, "concurrency": 1, "requests": 1, **plan}
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(run_load(target, LoadPlan.model_validate(fields), lambda progress: None))


def load(url: str, tokenizer: str = "none", **plan: object) -> EventLog:
    log = record(url, tokenizer, **plan).log
    assert log is not None
    return log


def faults(log: EventLog) -> list[Fault]:
    return [Fault(fault) for fault in log.requests.fault.tolist()]

"""Running a load in this process, as the client process does."""

from prony.load.request import Target
from prony.load.run import Recording, run_load
from prony.measure.eventlog import EventLog, Fault
from prony.spec.load import LoadPlan


def record(url: str, tokenizer: str = "none", workers: int = 1, **plan: object) -> Recording:
    target = Target.model_validate({"url": url, "model": "m", "tokenizer": tokenizer})
    fields = {"isl": 16, "osl": 8, "concurrency": 1, "requests": 1, **plan}
    return run_load(target, LoadPlan.model_validate(fields), lambda progress: None, workers=workers)


def load(url: str, tokenizer: str = "none", workers: int = 1, **plan: object) -> EventLog:
    log = record(url, tokenizer, workers, **plan).log
    assert log is not None
    return log


def faults(log: EventLog) -> list[Fault]:
    return [Fault(fault) for fault in log.requests.fault.tolist()]

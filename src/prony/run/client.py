"""One load: the client as a process of its own, watched beside the server, within the time limit."""

import os
import sys
from dataclasses import dataclass
from typing import Literal

from prony.base.clock import Clock
from prony.base.model import write_model
from prony.load.request import PREFIX, LoadRequest, Target, Watch
from prony.plan.job import Job
from prony.run import launch
from prony.run.folder import FaultClass, JobFolder
from prony.run.process import Process, Supervisor

GRACE_SHARE = 0.1
GRACE_MAX_S = 30.0
_STOP_GRACE_S = 2.0
_LOG = "client"
_FAULTS: dict[int, FaultClass] = {2: "config", 3: "launch", 4: "measurement"}


@dataclass(frozen=True)
class Outcome:
    """How a load ended, with what to tell about it."""

    status: Literal["loaded", "failed", "timeout"]
    fault: FaultClass = "none"
    exit_code: int = 0
    message: str = ""
    fix: str = ""


def run_load(job: Job, folder: JobFolder, server: launch.Server, owner: Supervisor, mark: str, clock: Clock) -> Outcome:
    """Load the server until the client ends, the server dies, or the time is up. Raises LaunchError, Cancelled."""
    write_model(folder.request_file, load_request(job, folder, server))
    deadline = clock.now_s() + job.time_limit_s - min(GRACE_MAX_S, GRACE_SHARE * job.time_limit_s)
    argv = (sys.executable, "-P", "-m", "prony.load.worker", str(folder.request_file))
    client = owner.start(_LOG, argv, {}, mark)
    while client.exit is None:
        owner.check()
        if server.dead is not None or clock.now_s() > deadline:
            break
        owner.wait()
    dead = server.dead
    if dead is not None:
        owner.stop(client, _STOP_GRACE_S)
        raise launch.died_while_loaded(dead, owner)
    if client.exit is None:
        owner.stop(client, _STOP_GRACE_S)
        return _timeout(job)
    return _loaded(client, owner)


def load_request(job: Job, folder: JobFolder, server: launch.Server) -> LoadRequest:
    """Return what the client is told."""
    target = Target(url=server.url, model=job.deployment.served_model, tokenizer=job.deployment.tokenizer)
    return LoadRequest(
        target=target,
        load=job.load,
        events_file=str(folder.events_file),
        progress_file=str(folder.progress_file),
        watch=Watch(root_pid=os.getpid(), urls=server.generating),
    )


def _loaded(client: Process, owner: Supervisor) -> Outcome:
    code = client.exit or 0
    if code == 0:
        return Outcome("loaded")
    said = owner.pump.tail(_LOG)
    _, ours, fault = f"\n{said}".rpartition(f"\n{PREFIX}")
    if code in _FAULTS and ours:
        message, _, fix = fault.partition("\n  what to do: ")
        return Outcome("failed", _FAULTS[code], code, message, fix)
    return Outcome(
        "failed",
        "infrastructure",
        3,
        f"the load client {client.death}{launch.quoted(said)}",
        "look for the out-of-memory killer in the kernel log (dmesg), then run the job again",
    )


def _timeout(job: Job) -> Outcome:
    return Outcome(
        "timeout",
        "launch",
        3,
        f"the load did not end within its time limit of {job.time_limit_s:g} s",
        "raise time-limit-s in the load file, ask for fewer requests, or look why the server is slow (logs/)",
    )

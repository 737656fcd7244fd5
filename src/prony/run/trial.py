"""A point tried by hand: one server kept warm over several loads, sides launched in turns, nothing official."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from prony.base.clock import Clock, iso
from prony.base.errors import LaunchError
from prony.base.files import make_folder
from prony.base.model import write_model
from prony.measure.result import Row
from prony.plan.job import Job
from prony.recipe.deployment import Deployment
from prony.run import launch
from prony.run.client import run_load
from prony.run.folder import JobFolder
from prony.run.process import Cancelled, Supervisor

_STOP_GRACE_S = 10.0


@dataclass(frozen=True)
class Side:
    """One way of serving, and the loads that its server gets one after the other."""

    name: str
    jobs: tuple[Job, ...]

    @property
    def deployment(self) -> Deployment:
        """What serves all of them: that of the first."""
        return self.jobs[0].deployment


@dataclass(frozen=True)
class Tried:
    """One load of one launch: whose, in which round, and what came out."""

    side: str
    round: int
    row: Row


def try_sides(
    sides: Sequence[Side], rounds: int, folder: Path, clock: Clock, show: Callable[[str], None], hold: bool
) -> tuple[Tried, ...]:
    """Launch the sides in turns (A B, then B A, …) and load each; return the rows in that order.

    hold: the last server is kept until somebody interrupts. What was measured before an interrupt is returned. Raises
    LaunchError, ConfigError when a server cannot be started or loaded.
    """
    tried: list[Tried] = []
    with Supervisor(str(folder), ()) as owner:
        try:
            for number in range(rounds):
                order = sides if number % 2 == 0 else tuple(reversed(sides))
                for side in order:
                    place = folder / f"{number + 1}-{side.name}"
                    last = hold and number == rounds - 1 and side is order[-1]
                    tried += _launch(side, number + 1, place, owner, clock, show, hold=last)
        except Cancelled:
            show("interrupted; what was measured until then is told")
    return tuple(tried)


def _launch(
    side: Side, number: int, place: Path, owner: Supervisor, clock: Clock, show: Callable[[str], None], *, hold: bool
) -> list[Tried]:
    first = JobFolder(place)
    make_folder(first.logs)
    owner.pump.direct(first.logs)
    mark = f"try/{place.name}"
    show(f"round {number}: starting {side.name}")
    server = launch.start(side.deployment, owner, mark, clock, first.scratch)
    tried = []
    for job in side.jobs:
        show(f"round {number}: {side.name} at {job.point.concurrency}")
        tried.append(Tried(side.name, number, _load(job, place, server, owner, mark, clock)))
    if hold:
        show(f"held at {server.url} (model {side.deployment.served_model}); Ctrl-C ends it")
        while server.dead is None:
            owner.check()
            owner.wait()
    owner.stop_all(_STOP_GRACE_S)
    return tried


def _load(job: Job, place: Path, server: launch.Server, owner: Supervisor, mark: str, clock: Clock) -> Row:
    from prony.run.record import Served, build_result  # NumPy loads slowly: the server starts first

    folder = JobFolder(place / f"conc-{job.point.concurrency}")
    make_folder(folder.logs)
    write_model(folder.job_file, job)
    began = iso(clock.wall())
    outcome = run_load(job, folder, server, owner, mark, clock)
    if outcome.status != "loaded":
        raise LaunchError(outcome.message, fix=outcome.fix)
    result = build_result(job, folder, Served(server.version, began, iso(clock.wall()), server.kv_pool_tokens))
    write_model(folder.result_file, result)
    return result.row

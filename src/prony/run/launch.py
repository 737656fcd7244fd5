"""A deployment brought up: placeholders bound, processes started, ready when every replica answers its probe."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson

from prony.base.clock import Clock
from prony.base.errors import ConfigError, LaunchError
from prony.base.fetch import fetch
from prony.recipe.deployment import Deployment, Role
from prony.recipe.engines import version
from prony.recipe.engines.telling import known_failure, kv_pool_tokens
from prony.run import model, procfs
from prony.run.bindings import HOST, Seat, bind, common, seats, values_of
from prony.run.process import Process, Supervisor

_PORT_TAKEN = re.compile(r"address already in use|EADDRINUSE|errno 98\b|couldn't bind", re.IGNORECASE)
_ADVICE = "  what to do: "
_USAGE_ERROR = 2  # argparse's exit code, also that of vLLM and SGLang
_PROBE_TIMEOUT_S = 1.0
_PROBE_BYTES = 2**20
_PROBE_EVERY_S = 0.1
_LOG_BYTES = 4 * 2**20


class _PortTaken(Exception):  # noqa: N818 - it is answered with another port
    pass


@dataclass(frozen=True)
class Replica:
    """One process of a role, and the ports that were bound for it."""

    role: Role
    process: Process
    ports: Mapping[str, int]


@dataclass(frozen=True)
class Server:
    """A deployment that is ready for requests at `url`; `version` is what the engine says of itself, if it does.

    kv_pool_tokens: of the generating processes together, None where one does not tell.
    """

    url: str
    replicas: tuple[Replica, ...]
    version: str | None
    kv_pool_tokens: int | None = None

    @property
    def generating(self) -> tuple[str, ...]:
        """The URLs of the processes that generate tokens: neither routers nor prefill."""
        some = [one for one in self.replicas if one.role.name in ("agg", "decode")]
        return tuple(f"http://{HOST}:{one.ports[one.role.ready.port]}" for one in some)

    @property
    def dead(self) -> Process | None:
        """The first process that has ended, or None while all run. Ending with code 0 is death too."""
        return next((one.process for one in self.replicas if one.process.exit is not None), None)


def start(deployment: Deployment, owner: Supervisor, job: str, clock: Clock, scratch: Path) -> Server:
    """Check the model, start every replica, wait until all are ready.

    When another process takes a port in between, all is started once more on other ports. scratch: the folder for files
    that processes read or share. Raises LaunchError.
    """
    directory = model.locate(deployment.model)
    if directory is not None:
        model.check(deployment.model, directory)
    shared = common(deployment, directory, scratch)
    try:
        return _start_once(deployment, owner, job, clock, shared, scratch)
    except _PortTaken:
        owner.stop_all(grace_s=5.0)
    try:
        return _start_once(deployment, owner, job, clock, shared, scratch)
    except _PortTaken as error:
        raise LaunchError(
            f"{error}: its port was taken by another process, twice",
            fix="see what listens on this machine (ss -ltnp), then run again",
        ) from None


def _start_once(
    deployment: Deployment, owner: Supervisor, job: str, clock: Clock, shared: Mapping[str, str], scratch: Path
) -> Server:
    """Start the workers together and, once all are ready, what stands before them."""
    everyone = seats(deployment)
    replicas: list[Replica] = []
    for routers in (False, True):
        group = [seat for seat in everyone if (seat.role.name == "router") is routers]
        started = [_start_seat(seat, everyone, owner, job, shared, scratch) for seat in group]
        replicas += started
        _await_ready(replicas, started, owner, clock)
    entry = next(one for one in replicas if one.role.name == deployment.entry_role)
    announcer = next(one for one in replicas if one.role.name != "router")
    announced = version.find(owner.pump.head(announcer.process.name))
    port = announcer.ports[announcer.role.ready.port]
    url = f"http://{HOST}:{entry.ports[entry.role.ready.port]}"
    return Server(url, tuple(replicas), announced or _version(port), _kv_pool(replicas, owner))


def _kv_pool(replicas: Sequence[Replica], owner: Supervisor) -> int | None:
    """Return the size of the KV pools that the logs tell, None when one does not."""
    told = [kv_pool_tokens(_log(one.process, owner)) for one in replicas if one.role.name in ("agg", "decode")]
    known = [size for size in told if size is not None]
    return sum(known) if known and len(known) == len(told) else None


def _log(process: Process, owner: Supervisor) -> str:
    """Return the last megabytes of what a process has said."""
    owner.pump.drain()
    try:
        with owner.pump.file(process.name).open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - _LOG_BYTES))
            return file.read().decode(errors="replace")
    except OSError:
        return owner.pump.tail(process.name)


def _start_seat(
    seat: Seat, everyone: tuple[Seat, ...], owner: Supervisor, job: str, shared: Mapping[str, str], scratch: Path
) -> Replica:
    bound = values_of(seat, everyone, shared, scratch)
    what = f"role {seat.role.name}"
    argv = [bind(part, bound, what) for part in seat.role.argv]
    env = {one.name: bind(one.value, bound, what) for one in seat.role.env}
    return Replica(seat.role, owner.start(seat.name, argv, env, job), seat.ports)


def _await_ready(replicas: Sequence[Replica], waiting: Sequence[Replica], owner: Supervisor, clock: Clock) -> None:
    """Wait for some processes while none of all may die. Raises LaunchError, ConfigError, Cancelled."""
    started = clock.now_s()
    while waiting:
        owner.check()
        for one in replicas:
            if one.process.exit is not None:
                raise _died_at_start(one, owner)
        waiting = [one for one in waiting if not _is_ready(one, owner)]
        late = [one for one in waiting if clock.now_s() - started > one.role.ready.timeout_s]
        if late:
            raise _too_late(late[0], owner)
        if waiting:
            owner.wait(_PROBE_EVERY_S)


def _is_ready(one: Replica, owner: Supervisor) -> bool:
    port = one.ports[one.role.ready.port]
    if _get(port, one.role.ready.path) is None:
        return False
    if procfs.listener_is_among(port, owner.tree(one.process)) is False and one.process.exit is None:
        raise _PortTaken(one.process.name)
    return one.process.exit is None


def _get(port: int, path: str) -> bytes | None:
    return fetch(f"http://{HOST}:{port}", path, _PROBE_TIMEOUT_S, _PROBE_BYTES)


def _died_at_start(one: Replica, owner: Supervisor) -> Exception:
    tail = owner.pump.tail(one.process.name)
    if _PORT_TAKEN.search(tail):
        return _PortTaken(one.process.name)
    message = f"{one.process.name}: the server {one.process.death} before it was ready{quoted(tail)}"
    read = f"read {owner.pump.file(one.process.name)}; started as: {' '.join(one.process.argv)}"
    message, said = _with_cause(message, _log(one.process, owner), _advice(tail))
    fix = f"{said}; else {read}" if said else read
    if one.process.exit == _USAGE_ERROR:
        return ConfigError(message, fix=f"mend the arguments in the recipe: {fix}")
    return LaunchError(message, fix=fix)


def _too_late(one: Replica, owner: Supervisor) -> LaunchError:
    probe = one.role.ready
    return LaunchError(
        f"{one.process.name}: GET {probe.path} was not answered with 200 within {probe.timeout_s:g} s"
        f"{quoted(owner.pump.tail(one.process.name))}",
        fix=f"read {owner.pump.file(one.process.name)}; raise the probe's timeout if it only loads slowly",
    )


def died_while_loaded(process: Process, owner: Supervisor) -> LaunchError:
    """Say how a server ended under load."""
    message = f"{process.name}: the server {process.death} under load{quoted(owner.pump.tail(process.name))}"
    message, said = _with_cause(message, _log(process, owner), "")
    read = f"read {owner.pump.file(process.name)}; the other jobs get a fresh server"
    return LaunchError(message, fix=f"{said}; else {read}" if said else read)


def _with_cause(message: str, log: str, said: str) -> tuple[str, str]:
    """Return a message with the known failure that a log shows, and what to do about it."""
    sign = known_failure(log)
    if sign is None:
        return message, said
    first, newline, rest = message.partition("\n")
    return f"{first} [{sign.name}: {sign.cause}]{newline}{rest}", said or sign.fix


def quoted(tail: str) -> str:
    """Return what ends a message about a process: its last lines, below the message, without advice."""
    lines = [line for line in tail.splitlines() if not line.startswith(_ADVICE)]
    return "\n  its last lines:\n" + "\n".join(f"  | {line}" for line in lines) if lines else ", silently"


def _advice(tail: str) -> str:
    """Return what one of our own servers said is to be done."""
    return next((line.removeprefix(_ADVICE) for line in tail.splitlines() if line.startswith(_ADVICE)), "")


def _version(port: int) -> str | None:
    """Ask the engine for its version: /version (vLLM, SGLang, TensorRT-LLM) or /props (llama.cpp)."""
    for path, field in (("/version", "version"), ("/props", "build_info")):
        body = _get(port, path)
        try:
            answer = orjson.loads(body) if body else None
        except orjson.JSONDecodeError:
            continue
        said = answer.get(field) if isinstance(answer, dict) else None
        if isinstance(said, str) and "unknown" not in said:  # a build outside its repository: b0-unknown
            return said
    return None

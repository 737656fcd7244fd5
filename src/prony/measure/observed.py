"""What is known of a load beside its requests: the client, the rest of the machine, the engine's own counters."""

from typing import Literal

from pydantic import Field

from prony.base.model import Frozen


class ClientFacts(Frozen):
    """What the client says of itself, so that nobody has to trust it.

    clock: `kernel` (SO_TIMESTAMPNS receive stamps) or `user`. Lags and CPU in seconds. clock_steps: how often the
    machine's wall clock was set while measuring. cpu_s: of all workers in the measured phase; cpu_share: of its core,
    of the busiest worker; total_cpu_s: since its start, of all workers. dns_s: of the one look-up; connect_mean_s,
    tls_mean_s: per connection. start_s: from the start of the process to the first request of all.
    """

    clock: Literal["kernel", "user"]
    loop_lag_p99_s: float
    send_lag_p99_s: float
    merged_reads: int
    reads: int
    cpu_s: float
    peak_rss_bytes: int
    connections: int
    connect_mean_s: float
    started_unix_s: float
    prompt_lengths: Literal["token-ids", "server-tokenizer", "approximate"]
    clock_steps: int = 0
    workers: int = Field(default=1, gt=0)
    cpu_share: float | None = Field(default=None, ge=0)
    total_cpu_s: float | None = Field(default=None, ge=0)
    dns_s: float | None = Field(default=None, ge=0)
    tls_mean_s: float | None = Field(default=None, ge=0)
    start_s: float | None = Field(default=None, ge=0)
    detail: str = ""


class Disturbance(Frozen):
    """Who else used this machine in the measured phase. Shares are of the time of all its cores, 0 to 1.

    foreign_cpu_share: programs that are not of the job (neither its server nor its client nor what supervises them);
    steal_share: what the hypervisor gave to other machines; load1: 1-minute load average when the phase began.
    """

    foreign_cpu_share: float = Field(ge=0, le=1)
    steal_share: float = Field(ge=0, le=1)
    load1: float = Field(ge=0)
    cores: int = Field(gt=0)


class EngineFacts(Frozen):
    """What the servers' counters say of the measured phase, summed over replicas; None: not told.

    slots: requests served at once; output_tokens: generated; drafts: verified drafts; accepted: draft tokens accepted;
    accepted_at: of these, how many at each position of a draft. external_hits: prompt tokens whose KV was fetched, not
    computed: from prefill workers, or from a store outside the device.
    """

    slots: int | None = Field(default=None, ge=0)
    output_tokens: int | None = Field(default=None, ge=0)
    drafts: int | None = Field(default=None, ge=0)
    accepted: int | None = Field(default=None, ge=0)
    accepted_at: tuple[int, ...] = ()
    external_hits: int | None = Field(default=None, ge=0)


class Acceptance(Frozen):
    """How drafts fared in one load. Lengths are tokens per verification step, the bonus token included.

    asked: the committed length of `curve` (its content: curve_digest) where acceptance is golden, else None. realised,
    standard_error: from the engine's counters over the measured phase, None where it tells none; rates: the share of
    drafts that was accepted up to each position.
    """

    mode: Literal["real", "golden"]
    method: str
    steps: int = Field(ge=1)
    asked: float | None = None
    curve: str | None = None
    curve_digest: str | None = None
    realised: float | None = None
    standard_error: float | None = None
    drafts: int | None = None
    rates: tuple[float, ...] = ()

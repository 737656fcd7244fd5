"""Rows for tests: real published ones, and made ones that look as a local measurement does."""

import hashlib
import random
from pathlib import Path
from typing import Any

from prony.base.finding import Finding
from prony.measure.result import Machine, Measurement, Provenance, Row
from prony.spec.point import RolePool, SpecDecoding, Topology
from prony.store.published import read_published


def published(shared: Path) -> tuple[Row, ...]:
    """The 435 real rows of 2026-06."""
    return read_published(shared / "data/published/app_fixtures/benchmarks.json").rows


def local(
    concurrency: int = 1,
    *,
    repeat: int = 0,
    spec_decoding: SpecDecoding = "none",
    measured_at: str = "2026-12-01T02:43:52Z",
    verdicts: tuple[Finding, ...] = (),
    measurements: tuple[Measurement, ...] | None = None,
    **changes: Any,
) -> Row:
    """A row as a measurement on this machine makes it."""
    rng = random.Random(f"{concurrency} {repeat} {spec_decoding}")
    pace = 60 if spec_decoding == "none" else 85
    speed = pace / (1 + 0.35 * concurrency) * rng.uniform(0.97, 1.03)
    key = hashlib.sha256(repr((concurrency, repeat, spec_decoding, sorted(changes.items()))).encode()).hexdigest()
    fields: dict[str, Any] = {
        "key": key,
        "origin": "measured",
        "source": f"prony-out/jobs/{key[:12]}",
        "config_key": "smollm2-135m-q4-cpu-llamacpp",
        "model": "HuggingFaceTB/SmolLM2-135M-Instruct",
        "model_prefix": "smollm2",
        "hardware": "cpu",
        "framework": "llamacpp",
        "engine_version": "b7000",
        "precision": "q4",
        "spec_decoding": spec_decoding,
        "disagg": False,
        "multinode": False,
        "topology": Topology(pools=(RolePool(role="agg"),)),
        "gpus_used": 1,
        "workload": "fixed-seq-len",
        "isl": 128,
        "osl": 32,
        "concurrency": concurrency,
        "repeat": repeat,
        "measured_at": measured_at,
        "client": "prony 0.1.0",
        "measurements": measurements if measurements is not None else _measured(speed, concurrency),
        "verdicts": verdicts,
        "provenance": _provenance(key),
    }
    return Row(**{**fields, **changes})


def _measured(speed: float, concurrency: int) -> tuple[Measurement, ...]:
    tput = speed * concurrency * 5
    return (
        Measurement(metric="interactivity", stat="p50", value=speed, ci95=(speed * 0.95, speed * 1.05), n=8),
        Measurement(metric="tpot", stat="p50", value=1 / speed, n=8),
        Measurement(metric="tpot", stat="p99", value=1.4 / speed, n=8, supported=False),
        Measurement(metric="ttft", stat="p50", value=0.12 * concurrency, n=8),
        Measurement(metric="e2el", stat="p50", value=0.12 * concurrency + 31 / speed, n=8),
        Measurement(metric="tput_per_gpu", stat="value", value=tput, ci95=(tput * 0.97, tput * 1.03)),
        Measurement(metric="requests_failed", stat="value", value=0.0),
    )


def _provenance(key: str) -> Provenance:
    digest = "0123456789abcdef" * 4
    machine = Machine(hostname="bench", cpu="Example CPU", cores=2, memory_bytes=8 << 30, kernel="6.1")
    return Provenance(
        prony_version="0.1.0",
        git_commit="d" * 40,
        config_file="examples/local/master.yaml",
        config_digest=digest,
        recipe="llamacpp-cpu",
        recipe_digest=digest[::-1],
        job_key=key,
        launch_key=digest,
        engine="llamacpp",
        engine_version="b7000",
        image="host",
        image_digest=None,
        machine=machine,
        clock="CLOCK_MONOTONIC, kernel receive stamps",
        seed=7,
        started_at="2026-12-01T02:42:52Z",
        ended_at="2026-12-01T02:43:52Z",
        definitions="prony/1",
    )


def locals_with_repeats() -> tuple[Row, ...]:
    """Concurrency 1, 2, 4, each twice, with and without speculative decoding."""
    return tuple(
        local(concurrency, repeat=repeat, spec_decoding=spec)
        for spec in ("none", "draft_model")
        for concurrency in (1, 2, 4)
        for repeat in (0, 1)
    )

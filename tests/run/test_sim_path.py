"""The whole path on the simulated engine: every fault of a server ends in one clear record, and leaves nothing."""

import sys

import pytest

from prony.base.model import read_model
from prony.measure.result import Result
from prony.recipe.deployment import Deployment, ModelRef, Probe, Role
from prony.sim.service import VERSION
from tests.run.conftest import Bench
from tests.run.kit import TOPOLOGY, ended, make_job


def sim(*faults: str, probe_s: float = 20.0) -> Deployment:
    """Return a deployment of the simulated engine with faults."""
    argv = ("{python}", "-m", "prony.sim.server", "--port", "{port:http}", "--model", "sim", "--ttft-ms", "20")
    wanted = tuple(part for fault in faults for part in ("--fault", fault))
    return Deployment(
        engine="sim",
        image="none",
        model=ModelRef(id="sim"),
        served_model="sim",
        topology=TOPOLOGY,
        roles=(Role(name="agg", argv=(*argv, *wanted), ready=Probe(timeout_s=probe_s)),),
        python=sys.executable,
        tokenizer="vllm",
        simulated=True,
    )


def test_sound_server_gives_exact_tokens_and_is_marked_as_simulated(bench: Bench) -> None:
    folder = bench.folder(make_job(sim(), 2, requests=8))
    assert bench.run(folder).returncode == 0, ended(folder)
    row = read_model(folder.result_file, Result).row
    assert row.simulated
    assert row.engine_version == VERSION
    assert row.value("requests_completed") == 8
    assert row.value("output_tokens") == 32
    assert row.value("ttft", "p50") == pytest.approx(0.02, abs=0.015)


@pytest.mark.parametrize(
    ("fault", "status", "message"),
    [
        ("die-at-start", "failed", "before it was ready"),
        ("oom-at-load", "failed", "before it was ready"),
        ("die-after=3", "failed", "under load"),
        ("http-500=2", "invalid", "requests failed"),
        ("garbage-sse=2", "invalid", "requests failed"),
        ("close-early=2", "invalid", "requests failed"),
    ],
)
def test_fault_of_the_server_is_told(bench: Bench, fault: str, status: str, message: str) -> None:
    folder = bench.folder(make_job(sim(fault), 2, requests=8))
    assert bench.run(folder).returncode == (4 if status == "invalid" else 3)
    record = ended(folder)
    assert record.status == status
    assert message in record.message
    assert record.fix
    assert bench.survivors() == ()


def test_server_that_hangs_at_start_and_ignores_term_is_killed(bench: Bench) -> None:
    folder = bench.folder(make_job(sim("hang-at-start", "ignore-term", probe_s=1.0)))
    assert bench.run(folder).returncode == 3
    assert "was not answered with 200 within 1 s" in ended(folder).message
    assert bench.survivors() == ()

"""Launches of several roles: who knows whose address, what they share, and who starts first."""

import sys
from pathlib import Path

import pytest

from prony.base.model import read_model
from prony.measure.observed import EngineFacts
from prony.measure.result import Result
from prony.recipe.deployment import Deployment, ModelRef, Probe, Role, RoleFile
from prony.run.bindings import common, seats, values_of
from prony.run.record import _transfer_verdicts
from prony.spec.point import RolePool, Topology
from tests.run.conftest import Bench
from tests.run.kit import TOPOLOGY, ended, make_job

APART = Topology(pools=(RolePool(role="prefill", replicas=2), RolePool(role="decode", replicas=2)))
SIM = "exec '{python}' -m prony.sim.server --port {port:http} --model sim --ttft-ms 5"
ROUTER = (
    "exec '{prony_python}' -m prony.recipe.engines.pd_router --port {port:http} --prefill {url:prefill-0}"
    " --prefill {url:prefill-1} --decode {url:decode-0} --decode {url:decode-1}"
)


def apart(prefill: str = SIM, decode: str = SIM, router: str = ROUTER, probe_s: float = 20.0) -> Deployment:
    """Return two prefill and two decode workers of the simulated engine behind our router, each as a shell script."""

    def role(name: str, script: str, **more: object) -> Role:
        return Role.model_validate(
            {"name": name, "argv": ("sh", "-c", script), "ready": Probe(timeout_s=probe_s), **more}
        )

    return Deployment(
        engine="sim",
        image="none",
        model=ModelRef(id="sim"),
        served_model="sim",
        topology=APART,
        roles=(role("prefill", prefill, replicas=2), role("decode", decode, replicas=2), role("router", router)),
        entry_role="router",
        python=sys.executable,
        tokenizer="vllm",
        simulated=True,
    )


def test_requests_enter_at_the_router_which_starts_when_its_workers_are_ready(bench: Bench) -> None:
    order = bench.directory / "order"
    late = f"sleep 0.4; echo worker >> {order}; {SIM}"
    deployment = apart(prefill=late, decode=late, router=f"echo router >> {order}; {ROUTER}")
    folder = bench.folder(make_job(deployment, 4, requests=12))
    assert bench.run(folder).returncode == 0, ended(folder)
    assert order.read_text().split() == ["worker"] * 4 + ["router"]
    row = read_model(folder.result_file, Result).row
    assert row.value("requests_completed") == 12
    assert row.value("output_tokens") == 48
    assert [command.role for command in row.provenance.commands] == ["prefill", "decode", "router"]  # type: ignore[union-attr]


def test_a_worker_that_dies_at_start_is_told_and_no_router_is_started(bench: Bench) -> None:
    sign = bench.directory / "router"
    deployment = apart(decode="echo no such device; exit 7", router=f"touch {sign}; {ROUTER}")
    folder = bench.folder(make_job(deployment))
    assert bench.run(folder).returncode == 3
    message = ended(folder).message
    assert message.startswith("decode-") and "no such device" in message
    assert not sign.exists()


def test_a_router_that_dies_under_load_is_told_by_its_name(bench: Bench) -> None:
    counted = "urllib.request.urlopen('{url:router-0}/metrics').read().decode()"
    asked = f"import sys, urllib.request; sys.exit('requests_total 0' in {counted})"
    dying = f"({ROUTER}) & until '{{python}}' -c \"{asked}\" 2> /dev/null; do sleep 0.1; done; kill $!; exit 9"
    folder = bench.folder(make_job(apart(prefill=SIM + " --itl-ms 100", router=dying), 1, requests=400))
    assert bench.run(folder).returncode == 3
    assert ended(folder).message.startswith("router-0: the server exited with code 9 under load"), ended(folder)


def test_processes_share_a_folder_that_is_gone_when_they_are(bench: Bench) -> None:
    seen = bench.directory / "seen"
    write = f"echo {{host:decode-0}} {{port:decode-0:http}} > {{shared_dir}}/$$; echo {{shared_dir}} >> {seen}; {SIM}"
    folder = bench.folder(make_job(apart(prefill=write, decode=write)))
    assert bench.run(folder).returncode == 0, ended(folder)
    (shared,) = {Path(line) for line in seen.read_text().split()}
    assert shared.is_relative_to(folder.path) and not shared.exists()


def test_every_process_has_ports_and_files_of_its_own_and_knows_the_others(tmp_path: Path) -> None:
    deployment = apart()
    file = RoleFile(name="engine.yaml", text="tp: 1\n")
    roles = [one.model_copy(update={"ports": ("http", "kv"), "files": (file,)}) for one in deployment.roles]
    deployment = deployment.model_copy(update={"roles": tuple(roles)})
    everyone = seats(deployment)
    ports = [port for seat in everyone for port in seat.ports.values()]
    assert len(set(ports)) == len(ports) == 10
    shared = common(deployment, None, tmp_path)
    values = {seat.name: values_of(seat, everyone, shared, tmp_path) for seat in everyone}
    first = values["prefill-0"]
    assert first["port:kv"] == values["router-0"]["port:prefill-0:kv"] != values["prefill-1"]["port:kv"]
    assert first["url:decode-1"] == f"http://127.0.0.1:{values['decode-1']['port:http']}"
    paths = {value["file:engine.yaml"] for value in values.values()}
    assert len(paths) == 5 and {Path(path).read_text() for path in paths} == {"tp: 1\n"}


def test_a_start_finds_nothing_of_the_start_before_it(tmp_path: Path) -> None:
    deployment = apart(prefill="ls {shared_dir}")
    folder = Path(common(deployment, None, tmp_path)["shared_dir"])
    (folder / "kv").write_text("of a start that was killed")
    assert list(Path(common(deployment, None, tmp_path)["shared_dir"]).iterdir()) == []


@pytest.mark.parametrize(("hits", "severities"), [(0, ["invalid"]), (128, []), (None, [])])
def test_decode_that_fetched_nothing_is_not_what_its_label_says(hits: int | None, severities: list[str]) -> None:
    facts = EngineFacts(external_hits=hits)
    assert [one.severity for one in _transfer_verdicts(make_job(apart()), facts)] == severities
    together = make_job(apart().model_copy(update={"topology": TOPOLOGY}))
    assert _transfer_verdicts(together, facts) == ()

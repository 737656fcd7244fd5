"""What is read beside the load: counters of servers, and the CPU time of the job and of others."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from prony.load.cputime import CpuTimes, disturbance, read_cpu
from prony.load.engine import engine_facts, read_counters, read_slots
from prony.load.exposition import samples
from prony.measure.observed import EngineFacts

BURN = "import time\nend = time.monotonic() + 30\nwhile time.monotonic() < end: pass"
SPEC = "vllm:spec_decode_num_"


@contextmanager
def serving(answers: dict[str, str]) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            self.send_response(200 if self.path in answers else 404)
            self.end_headers()
            self.wfile.write(answers.get(self.path, "").encode())

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def test_labels_escapes_timestamps_and_damaged_lines_do_not_confuse_the_reader() -> None:
    text = (
        '# HELP a_total {text} 7\na_total{x="}",y="q\\"1 2"} 3.5 1700000000\na_total 1e2\nb_total NaN\n'
        'broken{ 1\nc_total\nd_total{} 4 # {trace="1"} 1\n\n9nine 1\ne_total word\n'
    )
    found = [(one.name, one.value) for one in samples(text)]
    assert found == [("a_total", 3.5), ("a_total", 100.0), ("d_total", 4.0)]
    assert next(samples(text)).labels == {"x": "}", "y": 'q\\"1 2'}


def test_counters_add_up_over_labels_and_servers() -> None:
    one = (
        f'{SPEC}drafts_total{{engine="0"}} 3\n{SPEC}drafts_total{{engine="1"}} 4\n{SPEC}accepted_tokens_total 9\n'
        f'{SPEC}accepted_tokens_per_pos_total{{position="0"}} 6\n{SPEC}accepted_tokens_per_pos_total{{position="1"}} 3'
        "\nvllm:external_prefix_cache_hits_total 256\n"
    )
    with serving({"/metrics": one}) as first, serving({"/metrics": one}) as second:
        found = read_counters([first, second])
    assert found is not None
    assert (found.drafts, found.accepted, found.output_tokens) == (14, 18, None)
    assert found.accepted_at == {0: 12, 1: 6}
    assert found.external_hits == 512
    assert engine_facts(found, found, None) == EngineFacts(drafts=0, accepted=0, accepted_at=(0, 0), external_hits=0)


def test_only_what_was_counted_in_the_measured_phase_counts() -> None:
    texts = {"/metrics": "llamacpp:tokens_predicted_total 100\nllamacpp:spec_decode_num_drafts_total 5\n"}
    with serving(texts) as url:
        before = read_counters([url])
        texts["/metrics"] = "llamacpp:tokens_predicted_total 164\nllamacpp:spec_decode_num_drafts_total 1\n"
        facts = engine_facts(before, read_counters([url]), read_slots([url]))
    assert facts == EngineFacts(output_tokens=64)


def test_servers_without_metrics_or_slots_leave_them_unmeasured() -> None:
    with serving({"/props": '{"total_slots": 2}'}) as url:
        assert read_counters([url]) is None
        assert read_slots([url, url]) == 4
    with serving({"/props": '{"total_slots": "many"}'}) as url:
        assert read_slots([url]) is None
    assert engine_facts(None, None, None) is None
    assert read_counters(["http://127.0.0.1:1"]) is None


@pytest.fixture
def burner() -> Iterator[Callable[[], None]]:
    process = subprocess.Popen([sys.executable, "-c", BURN])
    yield lambda: time.sleep(1.5)
    process.kill()
    process.wait()


def test_a_child_is_the_jobs_own_and_the_same_child_is_foreign_to_another_job(burner: Callable[[], None]) -> None:
    with subprocess.Popen(["sleep", "30"]) as another:
        mine, others = read_cpu(os.getpid()), read_cpu(another.pid)
        burner()
        mine_after, others_after = read_cpu(os.getpid()), read_cpu(another.pid)
        another.kill()
    own, foreign = disturbance(mine, mine_after), disturbance(others, others_after)
    assert own is not None and foreign is not None
    assert foreign.foreign_cpu_share > own.foreign_cpu_share


def test_too_short_a_phase_tells_nothing() -> None:
    before = CpuTimes(total=1000, busy=10, steal=0, own=5, cores=2, load1=0.5)
    assert disturbance(before, CpuTimes(1050, 60, 0, 5, 2, 0.5)) is None
    found = disturbance(before, CpuTimes(1200, 110, 20, 25, 2, 0.5))
    assert found is not None
    assert (found.foreign_cpu_share, found.steal_share) == (0.4, 0.1)

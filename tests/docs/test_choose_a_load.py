"""Every load file and every request file that the how-to shows works as written."""

import re
from pathlib import Path

import pytest

from prony.base.yamldoc import parse_yaml
from prony.load.request import Target
from prony.load.workload import prepare
from prony.plan.planner import plan
from prony.spec.load import LoadRules
from prony.spec.loadfile import load_rules, read_rules
from prony.spec.point import FixedSeqLen
from tests.conftest import REPOSITORY
from tests.plan.test_planner import deploy, point

PAGE = (REPOSITORY / "docs/how-to/choose-a-load.md").read_text()
LOADS = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
FILES = dict(re.findall(r"^(\S+\.jsonl?):\n\n```json\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))


def test_the_page_shows_loads_and_files() -> None:
    assert len(LOADS) == 8 and set(FILES) == {"log.jsonl", "talks.json"}


@pytest.mark.parametrize("text", LOADS, ids=[str(number) for number in range(len(LOADS))])
def test_each_load_file_gives_requests_that_can_be_sent(tmp_path: Path, text: str) -> None:
    for name, content in FILES.items():
        (tmp_path / name).write_text(content)
    (tmp_path / "load.yaml").write_text(text)
    rules = load_rules(tmp_path / "load.yaml")
    (launch,) = plan((point(4, workload=FixedSeqLen(isl=1024, osl=64)),), deploy, rules, "master.yaml", "")
    (job,) = launch.jobs
    work = prepare(Target(url="http://127.0.0.1:1", model="m", tokenizer="ids"), job.load)
    source = work.source(0, 1)
    source.begin(0)
    assert source.due() is not None and source.take().payload.startswith(b"POST /v1/")
    assert len(work.measured) == job.load.requests and len(work.warmups) == job.load.warmups


def test_the_first_block_states_the_defaults() -> None:
    assert read_rules(parse_yaml(LOADS[0], "load.yaml")) == LoadRules()

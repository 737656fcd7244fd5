"""What the documentation shows works as written, and its links lead somewhere."""

import re
from pathlib import Path

import pytest

from prony.base.files import sha256_of
from prony.plan.planner import plan
from prony.recipe.catalogue import load_catalogue
from prony.recipe.resolve import resolve
from prony.spec.arrival import OpenLoop
from prony.spec.loadfile import load_rules
from prony.spec.master import load_master
from prony.spec.matrix import expand
from prony.spec.runners import load_runners
from prony.spec.workload import RandomTokens
from tests.conftest import REPOSITORY

PAGES = sorted([REPOSITORY / "README.md", *REPOSITORY.glob("docs/**/*.md")])
_BLOCK = re.compile(r"^## (?P<file>my-bench/\S+):.*?^```yaml\n(?P<text>.*?)^```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)")


def test_the_files_of_the_how_to_make_a_plan_as_written(tmp_path: Path) -> None:
    page = (REPOSITORY / "docs/how-to/add-a-config.md").read_text()
    blocks = {match["file"]: match["text"] for match in _BLOCK.finditer(page)}
    assert len(blocks) == 4
    for name, text in blocks.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    bench = tmp_path / "my-bench"
    points = expand(load_master([bench / "master.yaml"]).keys, load_runners(bench / "runners.yaml")).points
    catalogue = load_catalogue([bench / "recipes"])
    rules = load_rules(bench / "load.yaml")
    launches = plan(
        points,
        lambda point: resolve(catalogue, point),
        rules,
        config_file=str(bench / "master.yaml"),
        config_digest=sha256_of(bench / "master.yaml"),
    )
    assert [job.point.concurrency for launch in launches for job in launch.jobs] == [1, 4, 8]
    argvs = [launch.deployment.roles[0].argv for launch in launches]
    slots = [argv[argv.index("--parallel") + 1] for argv in argvs]
    assert slots == ["1", "4", "8"]
    assert "--batch-size" in argvs[2] and "--batch-size" not in argvs[1]


def test_the_load_file_of_the_how_to_is_read_as_written(tmp_path: Path) -> None:
    page = (REPOSITORY / "docs/how-to/load-a-server.md").read_text()
    (text,) = re.findall(r"^```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "load.yaml").write_text(text)
    rules = load_rules(tmp_path / "load.yaml")
    assert isinstance(rules.arrival, OpenLoop) and [stage.rate for stage in rules.arrival.stages] == [1, 8]
    assert isinstance(rules.workload, RandomTokens) and rules.workload.prefix is not None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_links_lead_to_files_that_exist(page: Path) -> None:
    for target in _LINK.findall(page.read_text()):
        assert (page.parent / target).exists(), target

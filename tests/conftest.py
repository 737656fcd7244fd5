"""What every test may use."""

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import settings

# A busy machine is no fault of the code under test.
settings.register_profile("prony", deadline=None)
settings.load_profile("prony")

REPOSITORY = Path(__file__).resolve().parent.parent
REQUIRE_ALL = os.environ.get("PRONY_REQUIRE_ALL") == "1"


def optional_part(present: bool, what: str) -> None:
    """Skip a test whose part is not here; fail where every part is required."""
    if present:
        return
    if REQUIRE_ALL:
        pytest.fail(f"{what} is required here and missing")
    pytest.skip(f"needs {what}")


@pytest.fixture(scope="session")
def shared() -> Path:
    """Real data that lives beside the project and is never committed."""
    path = REPOSITORY.parent / "shared"
    optional_part(path.is_dir(), "the data folder ../shared")
    return path


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the project."""
    return REPOSITORY


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of a real browser."""
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    optional_part(path is not None, "chromium")
    assert path is not None
    return path

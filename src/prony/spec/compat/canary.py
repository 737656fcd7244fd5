"""The reference's canary: one job that runs before all others."""

from collections.abc import Iterable

from prony.spec.compat.expand import AGENTIC, SEQ_LENS, JsonRow


def reference_canary(rows: Iterable[JsonRow]) -> JsonRow | None:
    """Return the single-node 1k1k or 8k1k row of the lowest concurrency, the first on a tie; None without one.

    Rows that run an eval are none, nor are agentic and multi-node ones [BUG 11].
    """
    return min(filter(_is_candidate, rows), key=lambda row: int(row["conc"]), default=None)


def _is_candidate(row: JsonRow) -> bool:
    if "prefill" in row or row.get("scenario-type") == AGENTIC or row.get("run-eval") is True:
        return False
    return (row["isl"], row["osl"]) in SEQ_LENS.values()

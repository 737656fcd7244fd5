"""Scores and queue tokens written into the reference's JSON, wherever in it a job stands."""

import hashlib
import json
from typing import Any

from prony.base.errors import ConfigError
from prony.spec.compat.expand import AGENTIC, JsonRow
from prony.spec.policy import Context, Facts, Policy, check_criteria, score

MAX_DEPTH = 400


def annotate(payload: Any, policy: Policy, context: Context, namespace: str = "", pr_number: int | None = None) -> Any:
    """Return a copy in which every job has its `priority` and `queue-token`; a job has a runner and a framework.

    With a pull request's number and its label for it, also `skip-queue-pr`. Raises ConfigError for unknown criteria.
    """
    check_criteria(policy, context.criteria or ())
    skip = policy.labels.skip_queue
    skipping = pr_number if skip is not None and skip.name in context.labels else None

    def walk(value: Any, path: tuple[str, ...]) -> Any:
        if len(path) > MAX_DEPTH:
            raise ConfigError(
                f"the JSON is nested more than {MAX_DEPTH} levels deep", fix="give the generator's output"
            )
        if isinstance(value, list):
            return [walk(item, (*path, str(index))) for index, item in enumerate(value)]
        if not isinstance(value, dict):
            return value
        if "runner" in value and "framework" in value:
            found = score(facts_of_row(value), policy, context)
            marks: JsonRow = {"priority": f"{found:.3f}", "queue-token": queue_token(value, namespace, path)}
            return {**value, **marks, **({} if skipping is None else {"skip-queue-pr": skipping})}
        return {name: walk(item, (*path, str(name))) for name, item in value.items()}

    return walk(payload, ())


def queue_token(row: JsonRow, namespace: str, path: tuple[str, ...]) -> str:
    """Return 32 hex digits that are the same for the same job at the same place of the same run."""
    canonical = json.dumps(row, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(f"{namespace}:{'/'.join(path)}:{canonical}".encode()).hexdigest()[:32]


def facts_of_row(row: JsonRow) -> Facts:
    """Return what a score depends on in a row; fields that are not there add nothing."""

    def text(name: str) -> str:
        value = row.get(name)
        return value if isinstance(value, str) else ""

    return Facts(
        framework=text("framework"),
        precision=text("precision"),
        spec_decoding=text("spec-decoding"),
        model_prefix=text("model-prefix"),
        multinode="prefill" in row,
        agentic=row.get("scenario-type") == AGENTIC,
        eval_only=row.get("eval-only") is True,
    )

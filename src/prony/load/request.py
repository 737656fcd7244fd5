"""What the supervisor hands to the client process: a target and a literal load."""

from typing import Literal

from pydantic import Field

from prony.base.model import Frozen
from prony.spec.load import LoadPlan

PREFIX = "prony: "
"""Begins the client's last message on stderr, when it could not measure."""

MAX_WORKERS = 256

Tokenizer = Literal["llamacpp", "vllm", "ids", "none"]


class Target(Frozen):
    """A server to load.

    url: `http(s)://HOST:PORT[/PREFIX]`, the prefix goes before `/v1/…`. tokenizer: whose tokenizer endpoints it
    offers; `ids`: none, token ids that every usual vocabulary has are sent unasked; `none`: none, words are sent.
    api_key_env: name of the environment variable that holds the key. ca_file: PEM with the authorities that may have
    signed the server's certificate, instead of the system's. insecure: take any certificate.
    """

    url: str
    model: str
    tokenizer: Tokenizer = "none"
    api_key_env: str | None = None
    ca_file: str | None = None
    insecure: bool = False


class Watch(Frozen):
    """What the client looks at before and after the measured phase.

    root_pid: its CPU time and that of all that descends from it is the job's own. urls: of the servers that generate.
    """

    root_pid: int = Field(gt=0)
    urls: tuple[str, ...] = ()


class LoadRequest(Frozen):
    """One load to run, and the files to leave behind: the event log and the live progress.

    workers: processes of the client, each with its share of the slots and requests.
    """

    schema_version: Literal["prony.load-request/1"] = "prony.load-request/1"
    target: Target
    load: LoadPlan
    events_file: str
    progress_file: str
    watch: Watch | None = None
    workers: int = Field(default=1, gt=0, le=MAX_WORKERS)

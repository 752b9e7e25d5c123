# Contrail. `make help` prints the targets; `make run` and `make test` need Go, Python 3 and make.
GO       ?= go
PYTHON   ?= python3
FUZZTIME ?= 10s

VENV  := integration/.venv
PY    := $(VENV)/bin/python
READY := $(VENV)/.ready
# What the benchmarks compare with has a virtual environment of its own.
BENCH_VENV  := integration/bench/.venv
BENCH_READY := $(BENCH_VENV)/.ready
# The race detector needs a C compiler. CI must have one; elsewhere its absence only leaves the detector out.
RACE  := $(if $(CI),-race,$(shell command -v "$$($(GO) env CC)" >/dev/null 2>&1 && echo -race))

.DEFAULT_GOAL := help
.PHONY: help run demo build test check lint vet unit race model life walk fuzz python test-spark torture bench spill

help: ## print this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

run: build ## start the server on 127.0.0.1:8815 with its tables under ./warehouse
	./bin/flightsrv --listen 127.0.0.1:8815 --warehouse ./warehouse

demo: build $(READY) ## a server on a free port, a year of weather, every step printed
	$(PY) integration/demo.py

build: ## compile bin/flightsrv and bin/flight-admin
	$(GO) build -o bin/ ./cmd/flightsrv ./cmd/flight-admin

check: lint test ## what CI runs: lint, then test

lint: $(READY) ## gofmt, go vet, staticcheck, ruff
	@unformatted=$$(gofmt -l $$(git ls-files --cached --others --exclude-standard '*.go') </dev/null) && \
	  if [ -n "$$unformatted" ]; then printf 'not gofmt-ed:\n%s\n' "$$unformatted"; exit 1; fi
	$(GO) vet ./...
	$(GO) vet -C integration/bench/stockflight .
	$(GO) tool -modfile=.ci/tools.mod staticcheck ./...
	cd integration && .venv/bin/ruff check --quiet . ../.ci
	cd integration && .venv/bin/ruff format --quiet --check --config ruff.toml . ../.ci

test: vet unit race fuzz python ## every test: Go, race detector, fuzz smoke, layers, Python clients

vet:
	$(GO) vet ./...

unit: ## the Go tests, the layer test among them; in CI with 200 seeds of the model test
	$(if $(CI),SEEDS=$(or $(SEEDS),200)) $(GO) test -count=1 -timeout 90m ./...

race: ## the Go tests under the race detector, in another time zone, with 10 seeds each
	SEEDS=$(or $(SEEDS),10) TZ=Asia/Kolkata $(GO) test -count=1 -timeout 90m $(RACE) ./...

model: ## random operations against the reference, SEEDS (200) scripts of 300 steps; SEED=n begins with script n
	SEEDS=$(or $(SEEDS),200) $(GO) test -count=1 -timeout 0 -run '^TestModel' ./tablecore

life: ## 20,000 commits with expiry, and a week's hold at one commit a second, on a simulated clock; about 20 minutes
	CONTRAIL_TEST_LIFE=full $(GO) test -count=1 -timeout 2h -v -run '^TestLong(Life|Hold)$$' ./tablecore

walk: ## the table engine with a fault at each store operation in turn; part of unit
	$(GO) test -count=1 -run 'Faults$$' ./tablecore

fuzz: ## every fuzz target for FUZZTIME (10s)
	$(PYTHON) .ci/fuzz.py $(FUZZTIME)

python: build $(READY) ## the real clients against a real server, in another time zone
	TZ=Asia/Kolkata $(PY) -m pytest integration/tests

test-spark: build $(READY) ## what Spark reads and writes, by the service and by the directory; needs Java 17 and Maven, part of python
	TZ=Asia/Kolkata $(PY) -m pytest integration/tests -k spark

torture: build $(READY) ## ROUNDS (20) of servers killed under writers, compared with an oracle; SEED=n; a short one is part of python
	$(PY) integration/torture/torture.py --rounds $(or $(ROUNDS),20) $(if $(SEED),--seed $(SEED))

bench: $(BENCH_READY) ## beside the peers, into integration/BENCHMARKS.md, 20 minutes; QUICK=1: 5, ONLY=append,scan, RESUME=1: elsewhere
	$(BENCH_VENV)/bin/python integration/bench/bench.py $(if $(QUICK),--quick) $(if $(ONLY),--only $(ONLY)) \
	  $(if $(PEERS),--peers $(PEERS)) $(if $(RESUME),--resume) $(if $(MINUTES),--minutes $(MINUTES))

spill: ## 50 M shuffled rows, and 4 GiB of text, through scratch files in little memory
	CONTRAIL_TEST_SPILL_ROWS=50000000 CONTRAIL_TEST_SPILL_TEXT=4294967296 \
	  $(GO) test -count=1 -timeout=1h -v -run '^(TestSpillMemory|TestLongTexts)$$' ./tablecore/internal/ingest

$(READY): integration/requirements.txt
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check --retries 10 --timeout 120 -r integration/requirements.txt
	touch $(READY)

$(BENCH_READY): integration/bench/requirements.txt
	$(PYTHON) -m venv $(BENCH_VENV)
	$(BENCH_VENV)/bin/pip install --quiet --disable-pip-version-check --retries 10 --timeout 120 -r integration/bench/requirements.txt
	touch $(BENCH_READY)

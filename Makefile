# Needs Python 3.11 to 3.13 with venv, Java 17 or 21, and git; everything else goes into .venv and .cache.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
# A container may keep Python from writing bytecode: then each process here compiles all that it imports anew.
export PYTHONDONTWRITEBYTECODE :=

VENV := .venv
BIN := $(VENV)/bin
# What pip installs one after the other is compiled behind it, on all processors, and without the libraries' own tests.
# Spark comes as source, of which pip makes a wheel: UNCOMPRESSED spares it to compress jars once more.
UNCOMPRESSED := $(CURDIR)/$(VENV)/uncompressed-wheels.cfg
PIP := DIST_EXTRA_CONFIG="$(UNCOMPRESSED)" $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --no-compile
# Those requirements of the lock of which awk's condition $(1) holds.
install = $(PIP) --require-hashes --requirement <(awk '/^[^ \#]/ { is_wanted = $(1) } is_wanted' requirements.lock)
BUILDS := /^(pip|setuptools|hatchling|editables|packaging|pathspec|pluggy|trove-classifiers)==/
PYTEST := $(BIN)/python -m pytest
# $(1): which of these tests, by their markers.
chosen = $(PYTEST) -m "not cluster and not benchmark$(1)" -rs --durations=10 $(BOUND)
# More for pytest: make test PYTEST_ARGS="-k session"
PYTEST_ARGS ?=
STAMP := $(VENV)/.made-from-lock
# One process leaves a processor idle: Spark for a third of its time, Python always, a command that a test waits for most
# of it. So in make test two run beside each other first: the demo, which leaves an archive of Java's classes to whatever
# starts a Java later, and mypy and the tests with brokers; and then two: what reads a lake that tests share (marked so by
# tests/conftest.py; in one process, or it would be made twice), and all other tests with Spark. Two more without Spark
# take from the begin what these leave of the processors, and both processors in the end; in make test-hard, where each
# process is bounded, a share alike. In make test-quick two, UNIT_FIRST beside ruff, mypy and the other units.
UNIT_FIRST := tests/unit/reconstruct tests/unit/ingest/readers
TEST_FIRST := tests/spark/jobs/test_cli_demo.py tests/spark/jobs/test_cli_submit.py
TEST_BESIDE := tests/cluster
TEST_SPARKLESS := tests/unit tests/bends
BEHIND_OTHERS := nice -n 15
# What $(1) and $(2) print: that of the other when both have ended, and then $(3). Fails if any does, but 5 (nothing
# collected).
define BESIDE_EACH_OTHER
mkdir -p .cache; told=.cache/beside-$$BASHPID.txt; \
{ $(2); } >$$told 2>&1 & other=$$!; \
trap 'kill $$other 2>/dev/null || true' INT TERM; \
codes=; code=0; { $(1); } || code=$$?; codes+=$$code; \
code=0; wait $$other || code=$$?; codes+=$$code; \
cat $$told; rm $$told; \
$(if $(3),$(3);) \
case $$codes in 55) echo "no such test"; exit 5;; *[!05]*) exit 1;; esac
endef
# Those of make test and make test-hard; each tells of its tests in a file below .cache, which the figures are summed from.
told_in = --junitxml=.cache/lanes/$(1).xml $(PYTEST_ARGS)
but = $(addprefix --ignore=,$(1))
define WITH_SPARK
first=0; last=0; \
( $(call BESIDE_EACH_OTHER,\
	$(call chosen) $(TEST_FIRST) $(call told_in,commands),\
	$(BIN)/mypy && $(call chosen) $(TEST_BESIDE) $(call told_in,brokers)) ) || first=$$?; \
case $$first in 0|5) ;; *) exit 1;; esac; \
( $(call BESIDE_EACH_OTHER,\
	$(call chosen, and not shared) $(call but,$(TEST_FIRST) $(TEST_BESIDE) $(TEST_SPARKLESS)) $(call told_in,spark),\
	$(call chosen, and shared) tests/spark $(call told_in,shared)) ) || last=$$?; \
case $$last in 5) exit $$first;; *) exit $$last;; esac
endef
define WITHOUT_SPARK
$(call BESIDE_EACH_OTHER,\
	$(BEHIND_OTHERS) $(call chosen) tests/unit $(call told_in,units),\
	$(BEHIND_OTHERS) $(call chosen) tests/bends $(call told_in,bends))
endef
define LANES
rm -rf .cache/lanes; \
$(call BESIDE_EACH_OTHER,\
	( $(WITH_SPARK) ),\
	( $(WITHOUT_SPARK) ),\
	$(BIN)/python -m tests.figures .cache/lanes/*.xml)
endef

# pytest's exit code 5, nothing collected, is no failure of a target that selects by marker.
NONE_YET = || { code=$$?; [ $$code -eq 5 ] && echo "no such test yet" || exit $$code; }

.PHONY: help env demo test test-quick lint test-cluster test-hard bends public-folders benchmark table-hashes lock wheel sbom docs clean

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1|/' | awk -F'|' '{ printf "make %-14s %s\n", $$1, $$2 }'

env: $(STAMP) ## make the environment in .venv, exactly as requirements.lock says

# Microseconds of a loop; no end of them where the Python can make no environment. Fails if its version is another.
define TIMED
import sys, timeit
from importlib.util import find_spec
if not (3, 11) <= sys.version_info[:2] < (3, 14):
    sys.exit(1)
print(int(1e6 * min(timeit.repeat("for i in range(200_000): i * i", number=1))) if find_spec("ensurepip") else 10**9)
endef
export TIMED
# Of several of one version on the path the first, or a later one that takes less than three quarters of its time: many a
# Python that was built from source was built without the compiler's optimisations by profile.
$(STAMP): pyproject.toml requirements.lock
	@python=""; \
	for name in $(PYTHON) python3.11 python3 python3.12 python3.13 python; do \
	  for candidate in $$(type -ap "$$name"); do \
	    took=$$("$$candidate" -c "$$TIMED" 2>/dev/null) || continue; \
	    if [ -z "$$python" ] || [ $$((4 * took)) -lt $$((3 * least)) ]; then python=$$candidate; least=$$took; fi; \
	  done; \
	  if [ -n "$$python" ]; then break; fi; \
	done; \
	if [ -z "$$python" ]; then echo "Python 3.11, 3.12 or 3.13 is missing: install one, e.g. apt-get install python3.11 python3.11-venv" >&2; exit 1; fi; \
	if ! [ -x $(BIN)/python ] || ! $(BIN)/python -m pip --version >/dev/null 2>&1; then \
	  "$$python" -m venv --clear $(VENV) || { echo "$$python cannot make an environment: install its venv module, e.g. apt-get install python3-venv" >&2; exit 1; }; \
	fi
	@echo "installing into $(VENV) what requirements.lock names; the first time that is some 600 MB to download"
	@# Without isolation builds use the locked setuptools and hatchling, not the newest of the day; the locked pip installs
	@# the others, in two halves, since it unpacks on one processor.
	@printf '[bdist_wheel]\ncompression = stored\n' > "$(UNCOMPRESSED)"
	@$(call install,$(BUILDS))
	@$(call BESIDE_EACH_OTHER,$(call install,!$(BUILDS) && n++ % 2),$(call install,!$(BUILDS) && n++ % 2 == 0))
	@$(PIP) --editable .
	@$(BIN)/python -m compileall -q -j 0 -x /tests/ $(VENV)/lib || true
	@touch $@

demo: env ## the whole pipeline on the real capture that ships here; ends with a summary and the report's place
	$(BIN)/kafka-state-replay demo --out report

test: env ## lint, types and all tests that need no cluster; names what was skipped and what took longest
	$(BIN)/ruff check .
	@$(LANES)

test-quick: env ## lint, types and units: what needs neither Spark nor captures bent in a hundred ways; a minute and a half
	@$(call BESIDE_EACH_OTHER,\
	$(call chosen) $(UNIT_FIRST) $(PYTEST_ARGS),\
	$(BIN)/ruff check . && $(BIN)/mypy && $(call chosen) tests/unit $(addprefix --ignore=,$(UNIT_FIRST)) $(PYTEST_ARGS))

lint: env ## ruff, and mypy --strict
	$(BIN)/ruff check .
	$(BIN)/mypy

# Airflow and what it needs agree with no other pins: an environment of its own, only to read the example with.
.cache/airflow/made: Makefile
	rm -rf .cache/airflow
	$(BIN)/python -m venv .cache/airflow
	.cache/airflow/bin/pip install --quiet --disable-pip-version-check apache-airflow==3.3.2 apache-airflow-providers-apache-spark==6.3.4
	@touch $@

# So is Superset's, to import our dashboard with; with what it speaks to serve by.
.cache/superset/made: Makefile
	rm -rf .cache/superset
	$(BIN)/python -m venv .cache/superset
	.cache/superset/bin/pip install --quiet --disable-pip-version-check apache-superset==6.0.0 pyhive==0.7.0 thrift==0.22.0 thrift-sasl==0.4.3 pure-sasl==0.6.2
	@touch $@

# And a server with S3's interface.
.cache/moto/made: Makefile
	rm -rf .cache/moto
	$(BIN)/python -m venv .cache/moto
	.cache/moto/bin/pip install --quiet --disable-pip-version-check "moto[server]==5.2.5"
	@touch $@

test-cluster: env .cache/airflow/made .cache/superset/made .cache/moto/made ## every scenario on real brokers: four versions with ZooKeeper, measured, and three without; some on seven more (over two hours)
	$(PYTEST) tests/cluster -rs $(PYTEST_ARGS)

# No test takes longer than its timeout (15 minutes unless it says so), and no lane begins another after these seconds.
test-hard: export HYPOTHESIS_PROFILE := hard
test-hard: BOUND := --session-timeout=5400
test-hard: BEHIND_OTHERS :=
test-hard: env ## everything but clusters and benchmarks, with more kills, meetings, damage, losses and examples (at most about 90 minutes)
	@$(LANES)

bends: env ## real captures bent and damaged in raw text: what is found of 46 kinds of faults, what 12,000 losses accuse (an hour)
	mkdir -p .cache/captures
	for pack in tests/captures/*.tar.xz; do tar -xJf $$pack -C .cache/captures; done
	$(BIN)/python -m tests.support.bends.faults.measure .cache/captures 20
	$(BIN)/python -m tests.support.bends.losses .cache/captures 10000
	$(BIN)/python -m tests.support.bends.offset_losses .cache/captures 2000

# What to run of tests/data/public-folders.txt, and options: see tests/support/public_folders.py.
PUBLIC_FOLDERS ?=
public-folders: env ## what is found on public folders, against docs/public-folders.md: fetches some hundred repositories
	$(BIN)/python -m tests.support.public_folders $(PUBLIC_FOLDERS)

benchmark: env ## speed, measured and printed
	$(PYTEST) -m benchmark -s $(PYTEST_ARGS) $(NONE_YET)

table-hashes: env ## a hash of each table's rows over all captures: the same before and after a change that changes none
	@$(BIN)/python -m tests.table_hashes

docs: env ## write docs/tables.md from the table specs, docs/transitions.md from the model's tables, docs/rules.md from the rules, docs/event-types.md from the message shapes
	$(BIN)/python -m jobs.docs

# The newest versions inside pyproject.toml's ranges, one set for every Python, Linux and macOS, with the hashes of all
# files of each release. colorama and pywin32 are wanted on Windows only.
lock: ## resolve pyproject.toml anew into requirements.lock
	rm -rf .cache/lock
	$${PYTHON:-python3.11} -m venv .cache/lock
	.cache/lock/bin/python -m pip install --quiet --disable-pip-version-check uv==0.13.9
	{ sed '/^[^#]/,$$d' requirements.lock; .cache/lock/bin/uv pip compile --quiet --universal --fork-strategy fewest --python-version 3.11 --extra dev --extra mcp --generate-hashes \
	  --no-emit-package colorama --no-emit-package pywin32 --no-emit-index-url --no-annotate --no-header pyproject.toml; } > .cache/requirements.lock
	mv .cache/requirements.lock requirements.lock
	rm -rf .cache/lock

wheel: env ## make dist/kafka_state_replay-*.whl
	$(BIN)/python -m hatchling build -t wheel

sbom: env ## list what is installed, fetched and vendored, with licences: .cache/sbom/sbom.cdx.json (CycloneDX)
	rm -rf .cache/sbom
	$(BIN)/python -m venv .cache/sbom
	.cache/sbom/bin/python -m pip install --quiet --disable-pip-version-check cyclonedx-bom==7.5.0
	.cache/sbom/bin/cyclonedx-py environment --pyproject pyproject.toml --output-file .cache/sbom/packages.json $(BIN)/python
	.cache/sbom/bin/python -m tests.bill_of_materials .cache/sbom/packages.json .cache/sbom/sbom.cdx.json

clean: ## remove what the targets above made, but not .venv
	rm -rf .cache dist build report lake spark-warehouse

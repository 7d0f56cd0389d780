# The commands of this project: the same by hand and in CI (`.ci/run`).
#
# Needs: make, a C compiler, Python >= 3.10 with venv.  Everything else comes from PyPI into
# $(VENV).  `make PYTHON=python3.12 VENV=.venv312 test` uses another interpreter beside it.

SHELL := /bin/bash
PYTHON ?= python3
VENV ?= .venv
JOBS ?= 2
PYTEST_ARGS ?=
MUTANTS ?= 1000000
BENCH ?= codec
BENCH_ARGS ?=

PY := $(VENV)/bin/python
TAG := $(subst /,_,$(VENV))
BUILT := build/built-$(TAG)
SANITIZED := build/sanitize
SANITIZE_ARGS ?= tests/wire tests/message tests/codecs tests/test_mutation.py

SOURCES := $(shell find capnwire -name '*.pyx' -o -name '*.pxd')
# A stub counts only when its module is compiled: the .pyx stands beside it.
STUBS = $(shell find capnwire -name '*.pyx' | sort | sed 's/\.pyx$$//' | while read stem; do \
	test -f $$stem.pyi && echo $$stem | tr / .; done)

.PHONY: help venv build demo test pycapnp-suite lint bench bench-quick figures fuzz peers soak sanitize package docs clean distclean

help:
	@echo "make demo      write and read 10 000 records, beside JSON"
	@echo "make test      build, then all tests (PYTEST_ARGS='-k name'; offline: -m 'not network')"
	@echo "make pycapnp-suite   pycapnp's own tests against capnwire.pycapnp"
	@echo "make lint      ruff, cython-lint, mypy --strict, stubtest, layering"
	@echo "make bench     figures beside the peers (BENCH_ARGS='--quick --only rows')"
	@echo "make figures   all of it, into the tables of README.md"
	@echo "make fuzz      the property tests, 50 times as long, and $(MUTANTS) changed messages"
	@echo "make sanitize  the tests on extensions built with ASan and UBSan"
	@echo "make peers     the programs of other implementations that RPC is tested against"
	@echo "make soak      a million calls, 10 000 connections, 100 clients for minutes"
	@echo "make package   sdist and wheel, built and installed into an empty venv"
	@echo "make docs      HTML into docs/_build"
	@echo "make clean     remove what the build made (distclean: and $(VENV))"

# ── the environment ─────────────────────────────────────────────────────────────────────────────

$(PY):
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "capnwire needs Python 3.10 or newer, $(PYTHON) is " + sys.version)'
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed-base: pyproject.toml | $(PY)
	$(PY) -m pip install --quiet --upgrade pip
	$(PY) -m pip install --quiet "setuptools>=77" wheel "cython>=3.1"
	touch $@

# In place and without compiling: the extensions are $(BUILT)'s, which knows what changed.
$(VENV)/installed-core: $(VENV)/installed-base setup.py
	$(PY) -m pip uninstall --quiet --yes capnwire # or its old entry points take part in this build
	CAPNWIRE_WITHOUT_EXTENSIONS=1 PYTHONWARNINGS=ignore $(PY) -m pip install --quiet --no-build-isolation -e .
	touch $@

# What an extra of pyproject.toml names, read from the installed metadata.
$(VENV)/installed-%: $(VENV)/installed-core
	$(PY) -m pip install --quiet $$($(PY) -c 'import importlib.metadata as m; print(*(r.split(";")[0].replace(" ", "") for r in m.requires("capnwire") if "extra == \"$*\"" in r))')
	touch $@

$(BUILT): $(SOURCES) setup.py $(VENV)/installed-base
	$(PY) setup.py --quiet build_ext --inplace --parallel $(JOBS)
	mkdir -p build && touch $@

venv: $(VENV)/installed-test $(VENV)/installed-lint $(VENV)/installed-bench

build: $(VENV)/installed-core $(BUILT)

# ── what people run ─────────────────────────────────────────────────────────────────────────────

demo: build
	$(PY) examples/demo.py

# The peers have a process of their own: their tests collect garbage often, which costs what is
# alive.  Exit code 5: PYTEST_ARGS chose none of them.
test: build $(VENV)/installed-test
	$(PY) -m pytest --ignore=tests/peers $(PYTEST_ARGS)
	$(PY) -m pytest tests/peers $(PYTEST_ARGS) || test $$? = 5

# pycapnp's own tests and examples, unmodified, from its source distribution (tests/pycapnp/suite.py).
pycapnp-suite: build
	$(PY) tests/pycapnp/suite.py -q

# What cannot be built is named at the end; its tests then skip (tests/peers/README.md).
peers: $(VENV)/installed-test
	$(MAKE) --silent -f tests/peers/Makefile VENV=$(abspath $(VENV)) JOBS=$(JOBS)

soak: build $(VENV)/installed-test
	CAPNWIRE_SOAK=1 CAPNWIRE_ROUNDS=20 $(PY) -m pytest tests/aio/test_soak.py tests/peers/test_bad_network.py --durations=0 $(PYTEST_ARGS)

fuzz: build $(VENV)/installed-test
	CAPNWIRE_MUTANTS=$(MUTANTS) CAPNWIRE_MUTATED_SCHEMAS=100000 CAPNWIRE_COMPARED_MUTATIONS=10000 \
	$(PY) -m pytest -m "not package and not network" --hypothesis-profile=fuzz --hypothesis-show-statistics $(PYTEST_ARGS)

package: build $(VENV)/installed-test
	$(PY) -m pytest -m package $(PYTEST_ARGS)

lint: build $(VENV)/installed-lint $(VENV)/installed-test
	$(PY) -m ruff check .
	PATH="$(abspath $(VENV))/bin:$$PATH" $(VENV)/bin/cython-lint capnwire
	$(PY) -m mypy --strict capnwire capnwire_setuptools.py
	@set -e; for module in $(STUBS); do \
		echo stubtest $$module; \
		$(PY) -m mypy.stubtest --concise --allowlist tests/stubtest-allowlist.txt --ignore-unused-allowlist $$module; \
	done
	$(PY) -m pytest --quiet tests/test_layering.py tests/test_exports.py

bench: build $(VENV)/installed-bench
	$(PY) -m bench $(BENCH) $(BENCH_ARGS)

bench-quick: build $(VENV)/installed-bench
	$(PY) -m bench codec --quick $(BENCH_ARGS)

figures: build $(VENV)/installed-bench
	$(PY) -m bench codec --update README.md
	$(PY) -m bench rpc --update README.md

docs: build $(VENV)/installed-docs
	$(PY) -m sphinx -W --keep-going -q docs docs/_build
	@echo "docs/_build/index.html"

# A copy of the tree, so that instrumented extensions never stand where others import from.
# Only Python's own streams are captured, or the sanitizer's report would be lost with the process.
# libstdc++ is preloaded beside libasan so that the peers' C++ exceptions are intercepted rightly.
sanitize: build $(VENV)/installed-test
	mkdir -p $(SANITIZED)
	git ls-files -co --exclude-standard -z | while IFS= read -r -d '' file; do test -f "$$file" && printf '%s\0' "$$file"; done \
		| tar --null -T - -cf - | tar -xf - -C $(SANITIZED)
	cd $(SANITIZED) && CAPNWIRE_SANITIZE=address,undefined $(abspath $(PY)) setup.py --quiet build_ext --inplace --parallel $(JOBS)
	cd $(SANITIZED) && env \
		LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libstdc++.so)" \
		ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:quarantine_size_mb=64 \
		UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 \
		PYTHONMALLOC=malloc PYTHONPATH=. CAPNWIRE_SANITIZED=1 CAPNWIRE_PEERS=$(abspath build/peers) \
		$(abspath $(PY)) -m pytest -p no:cacheprovider --capture=sys -m "not package and not slow and not network" $(SANITIZE_ARGS)

clean:
	rm -rf build dist docs/_build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find capnwire \( -name '*.c' -o -name '*.so' -o -name '*.html' \) -delete
	find . -name __pycache__ -not -path './.venv*' -prune -exec rm -rf {} +

distclean: clean
	rm -rf $(VENV)

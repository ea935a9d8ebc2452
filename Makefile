# The targets a user or a contributor needs; what they do stands in scripts/, demo/, bench/ and tests/run.

PG_CONFIG ?= /usr/lib/postgresql/15/bin/pg_config

# pgrx builds for the server named here; every cargo call has to see the same value, or it builds all over again.
export PG_CONFIG
export PGRX_PG_CONFIG_PATH := $(PG_CONFIG)
export PATH := $(or $(CARGO_HOME),$(HOME)/.cargo)/bin:$(PATH)

PYTHON := target/venv/bin/python
SUITES := core layers regress isolation tap clients faults oracle oracle-standby

# `--features` of cargo calls, so that they check the code for the same server.
PG_MAJOR = $(shell $(PG_CONFIG) --version | sed -E 's/[^0-9]*([0-9]+).*/\1/')

.DEFAULT_GOAL := help
# Cargo and the tests use all cores by themselves; two set-ups at once would wait for each other's apt-get.
.NOTPARALLEL:
.PHONY: help setup install demo-setup demo demo-replica test bench bench-quick bench-setup bench-arrow bench-dashboard bench-staleness bench-standby lint clean \
        test-long test-postgres test-drivers test-monitoring test-others test-matrix test-mutants test-pg-upgrade test-packages deb dist audit-functions audit-dependencies miri loom coverage valgrind soak $(SUITES:%=test-%)

help:
	@echo 'make demo            a private server, a dashboard of 8 queries, cold, warm and after an UPDATE; draws target/demo.svg'
	@echo 'make demo-replica    a primary without the library and two standbys with it, read through libpq while rows arrive; a minute'
	@echo 'make test            all tests; the last line reads "N passed, N failed"'
	@echo 'make test-long       random tests with more rounds, and the oracles for longer'
	@echo 'make test-SUITE      one of: $(SUITES)'
	@echo 'make test-postgres   the test suites of PostgreSQL itself, with and without the library'
	@echo 'make test-drivers    a dashboard with relative dates through drivers of Python, Java, Go, Node and ODBC, and PgBouncer; pages of ORMs'
	@echo 'make test-monitoring the dashboard of monitoring/ through Debian'\''s exporter and Prometheus'
	@echo 'make test-others     beside pgaudit, pg_stat_statements, hypopg, pg_cron and others that Debian has; ten minutes'
	@echo 'make test-matrix     all suites on PostgreSQL 15, 17 and 18, in chroots that it makes; as root, some two hours'
	@echo 'make test-mutants    plants faults where a mistake gives a wrong answer, and expects each to be seen; as root, some three quarters of an hour'
	@echo 'make test-pg-upgrade pg_upgrade from 15 to 17 and from 17 to 18, in chroots that it makes; as root'
	@echo 'make install         build and install the extension for PG_CONFIG'
	@echo 'make deb             Debian packages for each installed major version, in target/deb'
	@echo 'make dist            a zip for PGXN, and a tarball that builds offline, in target/dist'
	@echo 'make test-packages   build, install, upgrade and remove the packages in chroots of Debian releases; needs root'
	@echo 'make bench           measure it beside plain PostgreSQL, pgpool-II, materialized views and Redis (20 minutes)'
	@echo 'make bench-quick     the same with small data, in some minutes'
	@echo 'make bench-arrow     measure results as Arrow, beside ADBC and a bare socket'
	@echo 'make bench-dashboard measure a dashboard over partitions that are written to, beside refreshed materialized views'
	@echo 'make bench-staleness ways to change data, and whether this cache and pgpool-II answer afresh'
	@echo 'make bench-standby   what the library costs replay on a hot standby, hits there, recovery conflicts'
	@echo 'make lint            formatting, clippy (also for 16), layering rules, agreement of the versions'
	@echo 'make audit-functions are the functions that count as reading no setting still those of the server? See CONTRIBUTING.md'
	@echo 'make audit-dependencies  licences and advisories of the crates (cargo-deny, which it compiles)'
	@echo 'make loom            orders of memory accesses in the core, in all executions of small models; a minute, and one to compile'
	@echo 'make miri            undefined behaviour in tests of the core, with a nightly compiler; some ten minutes'
	@echo 'make soak            one server for two hours (SOAK_SECONDS): answers, check() and the memory of each process; draws a plot'
	@echo 'make setup           only what the others do first: packages, target/venv'
	@echo 'make clean           remove target/'
	@echo
	@echo 'PG_CONFIG=$(PG_CONFIG)'

setup:
	@scripts/setup.sh

install:
	@scripts/setup.sh build
	@scripts/install.sh

# What is compiled in little time does, if no release is installed.
demo-setup:
	@scripts/setup.sh demo
	@BUILD_PROFILE=quick scripts/install.sh

demo: demo-setup
	@$(PYTHON) demo/run.py

# Nothing else is installed: the client library in target/venv balances between servers.
demo-replica: demo-setup
	@$(PYTHON) demo/replica.py

# What is compared with: pgpool-II, Redis, valgrind, the data of TPC-H. Neither `make test` nor `make demo` needs them.
bench-setup: setup install
	@scripts/setup.sh bench

bench: bench-setup
	@$(PYTHON) bench/run.py

bench-quick: bench-setup
	@$(PYTHON) bench/run.py --quick

bench-arrow: setup install
	@$(PYTHON) bench/arrow.py

bench-dashboard: bench-setup
	@$(PYTHON) bench/dashboard.py

bench-staleness: bench-setup
	@$(PYTHON) bench/staleness.py

bench-standby: bench-setup
	@$(PYTHON) bench/standby.py

test: setup install
	@tests/run $(SUITES)

# What finds rare faults only when it runs for longer.
test-long: setup install
	@tests/run --long

# These need no server and no extension.
test-core:
	@scripts/setup.sh rust
	@tests/run core

test-layers:
	@tests/run layers

$(filter-out test-core test-layers,$(SUITES:%=test-%)): test-%: setup install
	@tests/run $*

# Not among the suites: it downloads the source of PostgreSQL, and takes longer than they do.
test-postgres: setup install
	@tests/postgres/run.py

# Not among the suites: it installs Java, Go, Node, ODBC and PgBouncer, and gets the drivers from their registries.
test-drivers: setup install
	@scripts/setup.sh drivers
	@$(PYTHON) -B tests/drivers/run.py

# The dashboard's metrics through Debian's exporter and Prometheus, on ports of their own.
test-monitoring: setup install
	@scripts/setup.sh monitoring
	@$(PYTHON) -B tests/monitoring/run.py

# Not among the suites: it installs the other libraries.
test-others: setup install
	@scripts/setup.sh others
	@$(PYTHON) -B tests/others/run.py

# Each major version in a chroot of the Debian release that has it; 16, which none has, is compiled.
test-matrix:
	@[ "$$(id -u)" = 0 ] || { echo 'make test-matrix needs root to make chroots: run it as root, or with sudo' >&2; exit 1; }
	@tests/matrix/run.py

# A fault in each file of the kernel of trust, one after the other, and some outside of it that must change no answer.
test-mutants: setup
	@[ "$$(id -u)" = 0 ] || { echo 'make test-mutants needs root for mounts of its own: run it as root, or with sudo' >&2; exit 1; }
	@$(PYTHON) -B tests/mutants/run.py

deb:
	@scripts/setup.sh deb
	@scripts/deb.sh

dist:
	@scripts/dist.sh

# Not among the suites: it needs root, makes chroots of Debian releases, and builds the library in each.
test-packages:
	@tests/packages/run

audit-dependencies:
	@scripts/setup.sh rust
	@scripts/audit-dependencies.sh

# Not among the suites. In loom, each place that asks for an order is made weaker, one after the other.
loom:
	@scripts/setup.sh rust
	cd core/loom && CARGO_TARGET_DIR=$(CURDIR)/target/loom cargo test --locked --lib models:: -- --nocapture --test-threads=1

# Those tests of the core that work on shared memory, with smaller sizes. Tests of text and numbers have hardly any unsafe code.
MIRI_TESTS ?= races store seats stress
miri:
	@scripts/setup.sh rust
	@rustup component list --toolchain nightly --installed 2>/dev/null | grep -q '^miri' || rustup component add --toolchain nightly miri rust-src || \
	    { echo 'make miri needs a nightly compiler with miri: rustup toolchain install nightly --component miri,rust-src' >&2; exit 69; }
	MIRIFLAGS=-Zmiri-disable-isolation cargo +nightly miri test --package arrow_cache_core $(MIRI_TESTS:%=--test %)

# Lines of the core that its own tests run, and those that they do not.
coverage:
	@scripts/setup.sh rust
	@command -v cargo-llvm-cov >/dev/null || { echo 'make coverage needs: rustup component add llvm-tools && cargo install cargo-llvm-cov' >&2; exit 69; }
	CARGO_TARGET_DIR=$(CURDIR)/target/coverage cargo llvm-cov --package arrow_cache_core --show-missing-lines --fail-under-lines 95

# The library's own errors of memory, in the suite regress.
valgrind: setup install
	@command -v valgrind >/dev/null || { echo 'make valgrind needs the package valgrind' >&2; exit 69; }
	@$(PYTHON) tests/valgrind.py

# Not among the suites: it takes SOAK_SECONDS, two hours unless told otherwise.
soak: bench-setup
	@$(PYTHON) -B tests/soak/run.py

# Two servers beside each other, which a chroot has from two Debian releases.
test-pg-upgrade:
	@[ "$$(id -u)" = 0 ] || { echo 'make test-pg-upgrade needs root to make chroots: run it as root, or with sudo' >&2; exit 1; }
	@tests/pg_upgrade/run.py

# Asks the code of each major version, which it downloads and compiles once, in some ten minutes.
audit-functions:
	@scripts/setup.sh audit
	@scripts/functions/audit.py --check

lint: setup
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --no-default-features --features pg$(PG_MAJOR) -- -D warnings
	scripts/lint-16.sh
	python3 -B scripts/lint-layers.py
	python3 -B tests/packages/test_metadata.py
	shellcheck .ci/run scripts/*.sh tests/drivers/*.sh tests/packages/*.sh tests/pg_upgrade/*.sh

clean:
	rm -rf target

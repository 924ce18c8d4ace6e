# The front door. Each target does its own set-up on a fresh Debian 12: it installs
# the packages that are missing, configures and builds. The build itself is CMake's.

PREFIX  ?= /usr/local
DESTDIR ?=
JOBS    ?= $(shell nproc)
# Of make test: which flavours, and only tests whose name matches.
FLAVOURS ?= plain asan tsan
TESTS    ?=
FUZZ_RUNS ?= 10000000
# Of make bench: nothing, or options of scripts/bench.sh, for example --stripe.
BENCH ?=

SETUP := scripts/setup.sh
REPORT := build/bench/report.html
export JOBS

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help build demo test bench install fuzz format lint clean

help:
	@echo "Weft: a software RNIC for any verbs program, and fat-tree clusters on one machine,"
	@echo "without kernel module or root."
	@echo
	@echo "  make demo      stock perftest on the software RNIC, beside raw sockets; an MPI program"
	@echo "                 on a fat tree of 24 hosts under three routings; some figures of the"
	@echo "                 papers beside what is measured here, as a page (4 minutes)"
	@echo "  make test      everything that is tested, also under sanitizers"
	@echo "                 FLAVOURS='plain asan tsan' TESTS=regex"
	@echo "  make bench     every figure of the papers that can be measured or simulated here (up to"
	@echo "                 20 minutes), and the report: $(REPORT)"
	@echo "                 BENCH=--full: Weft beside other stacks, each target as PASS or MISS, in"
	@echo "                 hours; --quick in minutes; --mpi, --stripe, --reuse, --coll, --fabric: one"
	@echo "  make build     build/bin/weft and the libraries in build/lib"
	@echo "  make install   into PREFIX (now $(PREFIX)), below DESTDIR"
	@echo "  make fuzz      fuzzes every parser, FUZZ_RUNS=$(FUZZ_RUNS) executions each"
	@echo "  make format    clang-format over all sources"
	@echo "  make lint      clang-tidy, bugprone and concurrency checks"
	@echo "  make clean     removes the build directories"
	@echo
	@echo "Missing Debian packages are installed on the way (as root, or with sudo)."

build:
	@$(SETUP) build
	@scripts/build.sh build

demo:
	@$(SETUP) build demo
	@scripts/build.sh build
	@scripts/demo.sh
	@echo
	@scripts/demo_lab.sh
	@echo
	@scripts/demo_report.sh

test:
	@$(SETUP) build test
	@scripts/test.sh $(FLAVOURS)

bench:
	@$(SETUP) build bench
	@scripts/build.sh build
ifeq ($(strip $(BENCH)),)
	@build/bin/weft reproduce --all --quick --out build/bench/papers --report $(REPORT)
	@echo "The report, one page: $(CURDIR)/$(REPORT)"
else
	@scripts/bench.sh $(BENCH)
endif

install:
	@$(SETUP) build
	@scripts/build.sh build
	@DESTDIR='$(DESTDIR)' cmake --install build --prefix '$(PREFIX)'

fuzz:
	@$(SETUP) fuzz
	@tests/fuzz/run.sh $(FUZZ_RUNS)

format:
	@$(SETUP) lint
	@scripts/format.sh

lint:
	@$(SETUP) build lint
	@scripts/build.sh build
	@scripts/lint.sh

clean:
	rm -rf build build-asan build-tsan

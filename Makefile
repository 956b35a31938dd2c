# `make` lists the targets.
SHELL := /bin/bash
.DEFAULT_GOAL := help
NARROWS := $(or $(CARGO_TARGET_DIR),target)/release/narrows

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build the program: target/release/narrows (or below CARGO_TARGET_DIR)
	cargo build --release --locked -p narrows-cli

demo: build ## show the main use: programs behind an emulated network, live and in virtual time
	@scripts/demo

demo-delays: build ## show delays from a feed, a trace, NetEm syntax: live
	@scripts/demo-delays

demo-schedulers: build ## show a call competing with downloads under FIFO, QFQ and FQ-CoDel: live
	@scripts/demo-schedulers

demo-dbhpd: build ## show web pages, downloads, a call and noise under FIFO, priorities, CBQ and DBHPD: live
	@scripts/demo-dbhpd

dbhpd: ## repeat the simulations of a thesis on DBHPD in virtual time; writes a page to OUT (default target/dbhpd)
	cargo run --release --locked -p narrows-dbhpd -- --out $(or $(OUT),target/dbhpd) $(ARGS)

demo-rules: build ## show an ipfw script, and three routers with two paths: live
	@scripts/demo-rules

demo-attach: build ## attach a network to an interface and detach it without breaking a connection: live, as root
	@scripts/demo-attach

demo-virtual: build ## show programs on Linux's own stack in exact virtual time: ping, web pages, CUBIC and BBR, a CI test
	@scripts/demo-virtual

test: ## run every check, quick ones first; as an ordinary user, those that are possible (20 minutes or more the first time)
	@scripts/test

test-fast: ## run only the quick checks: formatting, lints, unit tests
	@scripts/test --fast

test-hosts: ## test real packets under host settings: forwarding, no IPv6, other firewalls, control groups; as root
	@scripts/test-hosts

test-kernel: ## compare the kernel's queueing disciplines with ours, packet by packet, in a guest kernel; test exact virtual time
	@scripts/test-kernel

test-bpf: ## test links inside the kernel (--backend kernel) in an emulated machine with a newer kernel, which is downloaded
	@scripts/test-bpf $(ARGS)

test-clock: ## set the wall clock during live runs, in an emulated machine: delays stay as they are
	@scripts/test-clock $(ARGS)

instructions: ## count the engine's instructions for a packet; fails if they differ by 3 % from the table in the repository
	@scripts/instructions

wheel: ## build the Python package, which includes the program: target/wheels
	@scripts/wheel

release: ## build wheels, tarballs, Debian packages for x86-64 and aarch64, bill of materials, checksums: target/release-files
	@scripts/release

test-release: ## install, test and remove the files of `make release` in clean Debian roots, aarch64 under QEMU; as root
	@scripts/test-release

test-python: ## test the Python package: wheel in its own virtual environment, type checks, tests
	@scripts/test-python

fuzz: ## fuzz the parsers of outside bytes for 30 s each (make fuzz SECONDS_EACH=600 TARGETS="frame log")
	@scripts/fuzz $(COUNT) $(or $(SECONDS_EACH),30) $(TARGETS)

chaos: ## kill runs of all kinds at random moments for an hour, as root, and compare the host before and after `narrows clean` (make chaos SPAN=10m)
	@scripts/chaos --span $(or $(SPAN),1h) $(ARGS)

leaks: build ## run much of narrows for an hour, and virtual time for eight, and check that memory, descriptors and threads stay (make leaks SPAN=10m)
	@scripts/leaks --narrows "$(abspath $(NARROWS))" --span $(or $(SPAN),1h) $(ARGS)

models: ## run code that works without locks in every order of its steps
	@scripts/models

miri: ## check memory accesses of rings and buffers with Miri (needs a nightly toolchain)
	@scripts/miri

bench: ## measure speed and memory, next to a baseline
	@scripts/bench

bench-live: ## compare live runs with bare forwarders and the kernel, as root (make bench-live ARGS="tcp udp --long")
	@scripts/bench-live $(ARGS)

soak: ## run at the highest sustainable load for up to ten minutes: check for growth and losses
	@scripts/bench-live --soak $(or $(SPAN),10m) $(ARGS)

fmt: ## format the sources
	cargo fmt --all

doc: ## build the API documentation: target/doc
	cargo doc --no-deps --workspace --locked

book: ## build the documentation as HTML and check every link: target/book
	@scripts/book

pictures: build ## measure and redraw the measured pictures of the book
	@PATH="$(dir $(abspath $(NARROWS))):$$PATH" scripts/pictures

install: build ## install program, manual pages, completions and systemd units below PREFIX (default /usr/local)
	@scripts/install $(or $(PREFIX),/usr/local) $(NARROWS) $(DESTDIR)

uninstall: ## remove the files of make install
	@scripts/install --remove $(or $(PREFIX),/usr/local)

clean: ## remove build outputs
	cargo clean

.PHONY: help build book pictures dbhpd demo demo-delays demo-schedulers demo-dbhpd demo-rules demo-attach demo-virtual test test-fast test-hosts test-kernel test-bpf test-clock instructions wheel release test-release test-python fuzz models miri bench fmt doc install uninstall clean bench-live soak chaos leaks

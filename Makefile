# Targets a person would guess. `make` alone says what there is.
SHELL := /bin/bash
.DEFAULT_GOAL := help
NARROWS := $(or $(CARGO_TARGET_DIR),target)/release/narrows

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## the program, in target/release/narrows (or where CARGO_TARGET_DIR says)
	cargo build --release --locked -p narrows-cli

demo: build ## the main job: a program behind a modelled network, live and in virtual time
	@scripts/demo

demo-delays: build ## delays fed from outside, a trace, NetEm's words: live
	@scripts/demo-delays

demo-schedulers: build ## a call beside downloads, live, under FIFO, QFQ and FQ-CoDel
	@scripts/demo-schedulers

demo-dbhpd: build ## web pages, downloads, a call and noise, live, under FIFO, priorities, CBQ and DBHPD
	@scripts/demo-dbhpd

dbhpd: ## a thesis on DBHPD, its simulations run again in virtual time: a page in OUT (default target/dbhpd)
	cargo run --release --locked -p narrows-dbhpd -- --out $(or $(OUT),target/dbhpd) $(ARGS)

demo-rules: build ## a script of ipfw, and three routers with two paths: live
	@scripts/demo-rules

demo-attach: build ## a connection lives on while a network is put onto its interface and taken off: live, as root
	@scripts/demo-attach

demo-virtual: build ## programs on Linux's own stack in exact virtual time: a ping, web pages, CUBIC and BBR, a test for CI
	@scripts/demo-virtual

test: ## every check, quick ones first; as an ordinary user, those that are possible (20 minutes or more the first time)
	@scripts/test

test-fast: ## the quick checks alone: formatting, lints, unit tests
	@scripts/test --fast

test-hosts: ## real packets under settings of hosts: forwarding, no IPv6, firewalls of others, control groups; as root
	@scripts/test-hosts

test-kernel: ## in a guest kernel: the kernel's queueing disciplines beside ours, packet by packet; runs in exact virtual time
	@scripts/test-kernel

wheel: ## the Python package with the program in it, in target/wheels
	@scripts/wheel

release: ## wheels, tarballs, Debian packages for x86-64 and aarch64, a bill of materials, checksums, in target/release-files
	@scripts/release

test-release: ## what `make release` made: installed, tried and removed in clean roots of Debian, aarch64 by QEMU; as root
	@scripts/test-release

test-python: ## the Python package: its wheel installed in an environment of its own, types, tests
	@scripts/test-python

fuzz: ## readers of bytes from outside, fuzzed for 30 s each (make fuzz SECONDS_EACH=600 TARGETS="frame log")
	@scripts/fuzz $(or $(SECONDS_EACH),30) $(TARGETS)

miri: ## memory rules of rings and buffers, by Miri (needs a nightly toolchain)
	@scripts/miri

bench: ## speed and memory, side by side with a baseline
	@scripts/bench

bench-live: ## real packets beside bare forwarders and the kernel, as root (make bench-live ARGS="tcp udp --long")
	@scripts/bench-live $(ARGS)

soak: ## ten minutes at most of what a run can take: whether anything grows or goes missing
	@scripts/bench-live --soak $(or $(SPAN),10m) $(ARGS)

fmt: ## format the sources
	cargo fmt --all

doc: ## the API's documentation, in target/doc
	cargo doc --no-deps --workspace --locked

book: ## the documentation as HTML, in target/book, with every link checked
	@scripts/book

pictures: build ## the book's pictures that are measured, made again
	@PATH="$(dir $(abspath $(NARROWS))):$$PATH" scripts/pictures

install: build ## the program, manual pages, completions and systemd units, below PREFIX (default /usr/local)
	@scripts/install $(or $(PREFIX),/usr/local) $(NARROWS) $(DESTDIR)

uninstall: ## takes away what install put there
	@scripts/install --remove $(or $(PREFIX),/usr/local)

clean: ## what was built
	cargo clean

.PHONY: help build book pictures dbhpd demo demo-delays demo-schedulers demo-dbhpd demo-rules demo-attach demo-virtual test test-fast test-hosts test-kernel wheel release test-release test-python fuzz miri bench fmt doc install uninstall clean bench-live soak

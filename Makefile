# `make demo` and `make test` are all that a user needs; `make help` lists the rest.
# demo and test use one build profile (dev: slightly optimised, with all assertions), so that they share one build.

SHELL := /bin/bash
CARGO ?= cargo
export PATH := $(PATH):$(HOME)/.cargo/bin
TARGET := $(or $(CARGO_TARGET_DIR),target)
PACELINE := $(TARGET)/debug/paceline
FUZZ_SECONDS ?= 60
SOAK_SECONDS ?= 1800
LONG_FROM ?= 1
LONG_RUNS ?= 10000
POINTS ?= 10000

RIVALS := rivals-traces rivals-loss rivals-objects
SPLIT := split-profiles split-tables split-three-bdp split-uplink

.PHONY: help demo test build prove live rivals live-rivals split live-split results reproduce harm long map lint rules doc check deb debtest image imagetest cross crosstest fuzz bench soak floods speed clean setup

help: ## list the targets
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1\t/' | expand -t 18

demo: build ## compare a real download without and with the gateway; under a minute (root)
	@$(PACELINE) demo

test: setup ## run every test; without root, only tests that need no privilege
	$(CARGO) test --workspace --locked --no-fail-fast
	@scripts/left-out

build: setup ## build the paceline program with the profile of demo and test
	$(CARGO) build --locked --package paceline-cli

setup: # installs a Rust toolchain and a linker when they are missing
	@scripts/setup

prove: setup ## run the scenarios in the virtual-time kernel, and judge their bounds (docs/evidence/results.md; an hour and more)
	tests/kernel-lab/prove $(SCENARIOS)

live: build ## run the scenarios on this machine's kernel, in network namespaces (docs/evidence/results.md; root)
	@for name in $(or $(SCENARIOS),$(basename $(notdir $(wildcard scenarios/accelerator/*.toml)))); do \
		$(PACELINE) run scenarios/accelerator/$$name.toml --on lab --out results/live/$$name $(ARGS) || exit 1; \
	done
	$(CARGO) xtask results

rivals: build ## compare the gateway with CUBIC, BBR and a proxy of kernel sockets, in the simulator (docs/evidence/rivals.md)
	@for name in $(or $(SCENARIOS),$(RIVALS)); do \
		$(PACELINE) run scenarios/rivals/$$name.toml --on sim --runs 3 --out results/sim/$$name $(ARGS) || exit 1; \
	done
	$(CARGO) xtask rivals

live-rivals: build # the same on this machine's own kernel (root)
	@for name in $(or $(SCENARIOS),$(RIVALS)); do \
		$(PACELINE) run scenarios/rivals/$$name.toml --on lab --out results/live/$$name $(ARGS) || exit 1; \
	done
	$(CARGO) xtask rivals

split: build ## run the gateway's own senders in the simulator (docs/evidence/split.md)
	@for name in $(or $(SCENARIOS),$(SPLIT)); do \
		$(PACELINE) run scenarios/split/$$name.toml --on sim --out results/sim/$$name $(ARGS) || exit 1; \
	done
	$(CARGO) xtask split

live-split: build # the same on this machine's own kernel (root)
	@for name in $(or $(SCENARIOS),$(SPLIT)); do \
		$(PACELINE) run scenarios/split/$$name.toml --on lab --out results/live/$$name $(ARGS) || exit 1; \
	done
	$(CARGO) xtask split

results: setup ## generate docs/evidence/results.md again from results/, and judge the bounds
	$(CARGO) xtask results

reproduce: setup ## run the published experiments in the simulator (docs/evidence/reproduction.md; half an hour)
	$(CARGO) run --release --locked --package paceline-cli -- reproduce or $(ARGS)
	$(CARGO) run --release --locked --package paceline-cli -- reproduce printed $(ARGS)
	$(CARGO) run --release --locked --package paceline-cli -- reproduce accelerator $(ARGS)
	$(CARGO) run --release --locked --package paceline-cli -- reproduce drwa $(ARGS)
	$(CARGO) run --release --locked --package paceline-cli -- reproduce ncl $(ARGS)
	$(CARGO) run --release --locked --package paceline-cli -- reproduce rre $(ARGS)
	$(CARGO) xtask reproduction

long: setup ## run LONG_RUNS random downloads of 1,000 s and more, from seed LONG_FROM on; they must stay as fast as in the first minute
	LONG_FROM=$(LONG_FROM) LONG_RUNS=$(LONG_RUNS) LONG_ALL=1 $(CARGO) test --release --locked --package paceline-sim --test long -- --nocapture

harm: setup ## run scenarios/harm in the simulator: paths on which a flow was once worse off with the gateway
	$(CARGO) build --release --locked --package paceline-cli
	@for file in scenarios/harm/*.toml; do \
		name=$$(basename $$file .toml); \
		$(TARGET)/release/paceline run $$file --on sim --out results/sim/$$name $(ARGS) > /dev/null || exit 1; \
	done
	scripts/harm

map: setup ## run POINTS random paths with and without gateway, and a tenth as many points of each other kind (docs/evidence/map.md; hours)
	$(CARGO) run --release --locked --package paceline-cli -- map --kind path --count $(POINTS) $(ARGS)
	$(CARGO) run --release --locked --package paceline-cli -- map --kind mixed --kind mixed-down --kind clients \
		--count $$(($(POINTS) / 10)) $(ARGS)

check: rules ## quick check, under a minute if already built: format, rules of CONTRIBUTING.md, clippy, unit tests of the packet-handling crates
	$(CARGO) test --quiet --locked --lib --package paceline-wire --package paceline-path --package paceline-tcp --package paceline-gateway

lint: rules ## check formatting, clippy, and the rules of CONTRIBUTING.md; warnings are errors
	$(CARGO) clippy --package paceline-cli --no-default-features --locked -- -D warnings

rules:
	$(CARGO) fmt --all --check
	$(CARGO) xtask check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

doc: ## build the API documentation, private items included; warnings are errors
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked --document-private-items

deb: setup ## build the Debian package and its debug symbols in target/debian
	scripts/deb

cross: setup ## build the program for x86_64, aarch64 and armv7 in target/cross (CROSS="TARGET ...")
	scripts/cross $(CROSS)

crosstest: setup ## run tests of wire, tcp and gateway for aarch64 and armv7 under qemu-user
	scripts/cross test $(or $(CROSS),aarch64-unknown-linux-musl armv7-unknown-linux-musleabihf)

debtest: deb ## install, upgrade, remove and purge the package in copies of this system; lintian (root)
	tests/package/run

image: setup ## build the operator's program, and from it a container image without network access (Debian: podman)
	scripts/image

imagetest: image ## run the image between two namespaces (root; Debian: podman, runc)
	tests/package/image.py

fuzz: ## run every fuzz target for FUZZ_SECONDS; continues from earlier runs (nightly Rust, cargo-fuzz)
	scripts/fuzz $(FUZZ_SECONDS)

bench: ## compare the cost of the gateway with that of kernel forwarding and of a null forwarder (root)
	$(CARGO) run --release --locked --package paceline-cli -- bench gateway

soak: setup ## run SOAK_SECONDS of mixed load, attackers, faults and upgrades; nothing may leak, hang or be lost (root)
	$(CARGO) build --release --locked --package paceline-cli
	PACELINE=$(TARGET)/release/paceline tests/scale/soak.py $(SOAK_SECONDS) --series $(TARGET)/soak.json
	@test -x $(TARGET)/plots/bin/pip || python3 -m venv $(TARGET)/plots
	@$(TARGET)/plots/bin/pip install --quiet matplotlib
	$(TARGET)/plots/bin/python tests/scale/plot.py $(TARGET)/soak.json $(TARGET)/soak.png

floods: setup ## run floods and forged segments beside honest flows (root)
	$(CARGO) build --release --locked --package paceline-cli
	PACELINE=$(TARGET)/release/paceline tests/scale/floods.py
	PACELINE=$(TARGET)/release/paceline tests/scale/injection.py 100

speed: ## measure time, instructions and memory of the simulator, and of ns-3 for comparison (docs/evidence/speed.md)
	$(CARGO) bench --locked --package paceline-sim
	benches/ns3/run

clean: ## remove what was built
	$(CARGO) clean

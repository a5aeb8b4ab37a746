# hanji: build, test, install. GNU make; `make help` lists the targets.
#
# Sources and tests are found by wildcard; everything built lives under $(BUILD), so that several builds (plain,
# sanitizers, cross) lie side by side. A change of compiler, flags or version rebuilds; a removed source relinks.

VERSION := 0.1.0
BUILD ?= build
PREFIX ?= /usr
PYTHON ?= /usr/bin/python3
PKG_CONFIG ?= pkg-config
CLANG ?= clang
CFLAGS ?= -O2 -g
JOBS ?= $(shell nproc)
# Seconds that `make fuzz` gives each target.
FUZZ_SECONDS ?= 60
# Words for bench/quick.sh and bench/documents.sh, for example BENCH_ARGS='--quick watchers'.
BENCH_ARGS ?=
# Words for pytest, for example PYTEST_ARGS='-m smoke'; and the processes that share the end-to-end tests.
PYTEST_ARGS ?=
E2E_JOBS ?= 1
# WERROR=1: warnings are errors. SANITIZE=address,undefined | thread | fuzzer: what to build with.
WERROR ?=
SANITIZE ?=
# V=1: show whole commands.
V ?=
say = $(if $(V),,@echo '  $(1)';)
# Command put before a unit test program (an emulator, valgrind, …), and the seconds each may take.
RUNNER ?=
UNIT_TIMEOUT ?= 300
# UNIT_ONLY=threads: only the unit tests that can start threads.
UNIT_ONLY ?=

.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules --no-print-directory

# ---- flags ----------------------------------------------------------------------------------------------------------

machine := $(shell $(CC) -dumpmachine 2>/dev/null)
takes = $(shell $(CC) -Werror $(1) -x c -c -o /dev/null /dev/null 2>/dev/null && echo '$(1)')

packages := sqlite3 libsodium inih
# What only hanji-courier is linked with.
courier_packages := libcurl
ifneq ($(filter-out deps clean help demo demo-stop,$(or $(MAKECMDGOALS),all)),)
  pkg_cflags := $(shell $(PKG_CONFIG) --cflags $(packages))
  pkg_libs := $(shell $(PKG_CONFIG) --libs $(packages))
  courier_cflags := $(shell $(PKG_CONFIG) --cflags $(courier_packages))
  courier_libs := $(shell $(PKG_CONFIG) --libs $(courier_packages))
  ifeq ($(and $(pkg_libs),$(courier_libs)),)
    $(error libraries are missing ($(packages) $(courier_packages)): run `make deps`)
  endif
  check_cflags := $(shell $(PKG_CONFIG) --cflags check 2>/dev/null)
  check_libs := $(shell $(PKG_CONFIG) --libs check 2>/dev/null)
endif

cppflags := -I. -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -D_TIME_BITS=64 -DHANJI_VERSION='"$(VERSION)"' $(pkg_cflags)
warnings := -Wall -Wextra -Wconversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith \
	-Wformat=2 -Wundef -Wvla $(if $(WERROR),-Werror)
hardening := -fPIE -fstack-protector-strong $(call takes,-fstack-clash-protection)
ifneq ($(filter x86_64-%,$(machine)),)
  hardening += $(call takes,-fcf-protection)
endif
ifneq ($(filter aarch64-%,$(machine)),)
  hardening += $(call takes,-mbranch-protection=standard)
endif
ldflags := -pie -Wl,-z,relro,-z,now,-z,noexecstack -Wl,--as-needed

ifeq ($(SANITIZE),)
  hardening += -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3
else ifeq ($(SANITIZE),fuzzer)
  san_flags := -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
else
  san_flags := -fsanitize=$(SANITIZE) -fno-sanitize-recover=all -fno-omit-frame-pointer
endif

c_flags = -std=c11 $(cppflags) $(warnings) $(CFLAGS) $(hardening) $(san_flags) -pthread $(CPPFLAGS)
# Test programs use check's macros, which do not survive -Wconversion; libFuzzer's entry point has no header.
test_flags = $(c_flags) $(check_cflags) -Wno-conversion -Wno-sign-conversion -Wno-missing-prototypes
# Only the courier's own files see its library.
c_flags += $(if $(filter handlers/courier% tests/unit/test_courier% tests/fuzz/fuzz_courier%,$<),$(courier_cflags))
libs := -l:libfcgi.a $(pkg_libs) -lm -pthread

# ---- files ----------------------------------------------------------------------------------------------------------

# Two programs: hanji, and hanji-courier, which is handlers/courier*.c with what it uses of the rest.
courier_sources := $(sort $(wildcard handlers/courier*.c))
courier_main := handlers/courier.c
sources := $(filter-out $(courier_sources),$(sort $(wildcard fcgi/*.c handlers/*.c db/*.c seal/*.c)))
schema := $(sort $(wildcard db/schema/*.sql))
# Apps that are part of the program. Names in them may have a ':', which make cannot have as a prerequisite: see stamp.apps.
embedded := console new
objects := $(sources:%.c=$(BUILD)/obj/%.o) $(BUILD)/obj/gen/schema.o $(BUILD)/obj/gen/apps.o
lib_objects := $(filter-out $(BUILD)/obj/fcgi/main.o,$(objects))
courier_objects := $(courier_sources:%.c=$(BUILD)/obj/%.o)
courier_lib_objects := $(filter-out $(courier_main:%.c=$(BUILD)/obj/%.o),$(courier_objects))

unit_helpers := $(filter-out tests/unit/test_%.c,$(wildcard tests/unit/*.c))
unit_tests := $(sort $(wildcard tests/unit/test_*.c))
unit_bins := $(unit_tests:tests/unit/%.c=$(BUILD)/unit/%)
fuzz_sources := $(sort $(wildcard tests/fuzz/fuzz_*.c))
fuzz_bins := $(fuzz_sources:tests/fuzz/%.c=$(BUILD)/fuzz/%)

.PHONY: all objects units help deps demo demo-stop test nightly check e2e lint asan asan-check asan-e2e tsan tsan-check \
	tsan-e2e fuzz fuzz-build install bench-quick bench-documents bench-apps bench-sends interop check-armhf werror clean FORCE
all: $(BUILD)/hanji $(BUILD)/hanji-courier
objects: $(objects) $(courier_objects)
units: $(unit_bins)

# ---- build ----------------------------------------------------------------------------------------------------------

# A stamp is rewritten only when its text changes, so what depends on it is rebuilt exactly then.
define stamp
@mkdir -p $(@D)
@printf '%s\n' '$(subst ','\'',$(1))' >$@.new
@if cmp -s $@.new $@; then rm -f $@.new; else mv -f $@.new $@; fi
endef
$(BUILD)/stamp.flags: FORCE ; $(call stamp,$(CC) $(c_flags) $(courier_cflags) $(ldflags) $(libs) $(courier_libs) $(check_libs))
$(BUILD)/stamp.sources: FORCE ; $(call stamp,$(sources))
$(BUILD)/stamp.courier: FORCE ; $(call stamp,$(courier_sources))
$(BUILD)/stamp.schema: FORCE ; $(call stamp,$(schema))
$(BUILD)/stamp.apps: FORCE ; $(call stamp,$(shell cd handlers/bundled && find $(embedded) -type f -printf '%p %s %T@\n' 2>/dev/null | sort -u))
FORCE:

$(BUILD)/obj/%.o: %.c $(BUILD)/stamp.flags
	@mkdir -p $(@D)
	$(call say,cc $<)$(CC) $(c_flags) -MMD -MP -c -o $@ $<

$(BUILD)/gen/schema.c: db/embed.sh $(schema) $(BUILD)/stamp.schema
	@mkdir -p $(@D)
	$(call say,embed $@)sh db/embed.sh $(schema) >$@

$(BUILD)/gen/apps.c: handlers/embed_apps.sh $(BUILD)/stamp.apps
	@mkdir -p $(@D)
	$(call say,embed $@)sh handlers/embed_apps.sh $(embedded) >$@

$(BUILD)/obj/gen/apps.o: $(BUILD)/gen/apps.c $(BUILD)/stamp.flags
	@mkdir -p $(@D)
	$(call say,cc $<)$(CC) $(c_flags) -MMD -MP -c -o $@ $<

$(BUILD)/obj/gen/schema.o: $(BUILD)/gen/schema.c $(BUILD)/stamp.flags
	@mkdir -p $(@D)
	$(call say,cc $<)$(CC) $(c_flags) -MMD -MP -c -o $@ $<

$(BUILD)/libhanji.a: $(lib_objects) $(BUILD)/stamp.sources
	$(call say,ar $@)rm -f $@ && $(AR) rcs $@ $(lib_objects)

$(BUILD)/hanji: $(objects) $(BUILD)/stamp.sources
	$(call say,link $@)$(CC) $(CFLAGS) $(hardening) $(san_flags) $(ldflags) $(LDFLAGS) -o $@ $(objects) $(libs)

# Of the courier, what tests link too.
$(BUILD)/libcourier.a: $(courier_lib_objects) $(BUILD)/stamp.courier
	$(call say,ar $@)rm -f $@ && $(AR) rcs $@ $(courier_lib_objects)

$(BUILD)/hanji-courier: $(courier_objects) $(BUILD)/libhanji.a $(BUILD)/stamp.courier
	$(call say,link $@)$(CC) $(CFLAGS) $(hardening) $(san_flags) $(ldflags) $(LDFLAGS) -o $@ $(courier_objects) \
		$(BUILD)/libhanji.a $(libs) $(courier_libs)

$(BUILD)/obj/tests/%.o: tests/%.c $(BUILD)/stamp.flags
	@mkdir -p $(@D)
	$(call say,cc $<)$(CC) $(test_flags) -MMD -MP -c -o $@ $<

# An archive: a program gets only those helpers that it uses, and with them only what they use (unit.sh asks which have threads).
$(BUILD)/libunit.a: $(unit_helpers:%.c=$(BUILD)/obj/%.o)
	$(call say,ar $@)rm -f $@ && $(AR) rcs $@ $^

# A test gets of the courier, and of its library, only what it asks for (--as-needed).
$(BUILD)/unit/%: $(BUILD)/obj/tests/unit/%.o $(BUILD)/libunit.a $(BUILD)/libcourier.a $(BUILD)/libhanji.a
	@mkdir -p $(@D)
	$(call say,link $@)$(CC) $(CFLAGS) $(hardening) $(san_flags) $(ldflags) $(LDFLAGS) -o $@ $^ $(libs) $(courier_libs) $(check_libs)

$(BUILD)/fuzz/%: $(BUILD)/obj/tests/fuzz/%.o $(BUILD)/libcourier.a $(BUILD)/libhanji.a
	@mkdir -p $(@D)
	$(call say,link $@)$(CC) $(CFLAGS) $(hardening) $(san_flags) -fsanitize=fuzzer $(ldflags) $(LDFLAGS) -o $@ $^ $(libs) $(courier_libs)

-include $(wildcard $(BUILD)/obj/*/*.d $(BUILD)/obj/tests/*/*.d)
.SECONDARY:

# ---- tests ----------------------------------------------------------------------------------------------------------

export ASAN_OPTIONS ?= detect_leaks=1:detect_stack_use_after_return=1:strict_string_checks=1
export UBSAN_OPTIONS ?= print_stacktrace=1
export TSAN_OPTIONS ?= halt_on_error=1:second_deadlock_stack=1

# Everything, stage by stage, with a summary; fails if any stage failed.
test:
	@MAKE='$(MAKE)' JOBS='$(JOBS)' sh tests/stages.sh

# The same without cuts: all under both sanitizers, and every fuzz target for minutes. About two hours.
nightly:
	@MAKE='$(MAKE)' JOBS='$(JOBS)' STAGES='build check lint e2e asan asan-e2e tsan-all tsan-e2e crash-long fuzz-long' sh tests/stages.sh

# Unit tests of $(BUILD).
check: $(unit_bins)
	@JOBS='$(JOBS)' RUNNER='$(RUNNER)' UNIT_TIMEOUT='$(UNIT_TIMEOUT)' UNIT_ONLY='$(UNIT_ONLY)' sh tests/unit.sh $(unit_bins)

# End-to-end tests against $(BUILD)/hanji, which starts the courier beside it.
e2e: all
	HANJI_BIN='$(abspath $(BUILD)/hanji)' PYTHONDONTWRITEBYTECODE=1 \
		$(PYTHON) -m pytest -q -p no:cacheprovider tests/e2e $(if $(filter-out 1,$(E2E_JOBS)),-n $(E2E_JOBS)) $(PYTEST_ARGS)

asan_args := BUILD=build/asan SANITIZE=address,undefined CFLAGS='-O1 -g'
tsan_args := BUILD=build/tsan SANITIZE=thread CFLAGS='-O1 -g'
asan: ; $(MAKE) $(asan_args) check && $(MAKE) $(asan_args) e2e
asan-check: ; $(MAKE) $(asan_args) check
asan-e2e: ; $(MAKE) $(asan_args) e2e
tsan: ; $(MAKE) $(tsan_args) check && $(MAKE) $(tsan_args) e2e
tsan-check: ; $(MAKE) $(tsan_args) check
tsan-e2e: ; $(MAKE) $(tsan_args) e2e

fuzz_args := BUILD=build/fuzz SANITIZE=fuzzer CC='$(CLANG)' CFLAGS='-O1 -g'
fuzz: ; $(MAKE) $(fuzz_args) fuzz-build && JOBS='$(JOBS)' FUZZ_SECONDS='$(FUZZ_SECONDS)' sh tests/fuzz.sh build/fuzz/fuzz
fuzz-build: $(fuzz_bins)

# All of it with warnings as errors, by itself so that other builds stay as they are.
werror: ; $(MAKE) BUILD=build/werror WERROR=1 all units

lint: all
	@BUILD='$(BUILD)' MAKE='$(MAKE)' JOBS='$(JOBS)' \
		LINT_CFLAGS='-std=c11 $(subst ','\'',$(cppflags) $(filter-out -Werror,$(warnings)))' sh tests/lint/run.sh

# Unit tests built for 32-bit ARM and run under qemu; installs a cross compiler and foreign packages.
check-armhf: ; sh tests/armhf.sh

bench-quick: all ; sh bench/quick.sh $(BENCH_ARGS)
bench-documents: all ; sh bench/documents.sh $(BENCH_ARGS)
bench-apps: all ; sh bench/apps.sh $(BENCH_ARGS)
bench-sends: all ; sh bench/sends.sh $(BENCH_ARGS)

# Against the official libraries of Standard Webhooks; installs them into a temporary folder, so it is only run when asked.
interop: all ; sh tests/interop.sh

# ---- machine --------------------------------------------------------------------------------------------------------

deps: ; sh deploy/deps.sh run build test bench
demo: ; deploy/demo.sh start
demo-stop: ; deploy/demo.sh stop

UNITDIR ?= $(PREFIX)/lib/systemd/system
install: all
	install -d '$(DESTDIR)$(PREFIX)/bin' '$(DESTDIR)$(PREFIX)/share/hanji/nginx' '$(DESTDIR)$(UNITDIR)' \
		'$(DESTDIR)$(PREFIX)/share/man/man1' '$(DESTDIR)$(PREFIX)/share/man/man5' '$(DESTDIR)$(PREFIX)/share/man/man8' \
		'$(DESTDIR)$(PREFIX)/share/doc/hanji'
	for program in $(BUILD)/hanji $(BUILD)/hanji-courier; do install -m 755 "$$program" '$(DESTDIR)$(PREFIX)/bin/'; done
	install -m 644 docs/man/*.1 '$(DESTDIR)$(PREFIX)/share/man/man1/'
	install -m 644 docs/man/*.5 '$(DESTDIR)$(PREFIX)/share/man/man5/'
	install -m 644 docs/man/*.8 '$(DESTDIR)$(PREFIX)/share/man/man8/'
	install -m 644 nginx-conf/*.conf '$(DESTDIR)$(PREFIX)/share/hanji/nginx/'
	install -m 644 deploy/hanji.conf '$(DESTDIR)$(PREFIX)/share/hanji/hanji.conf'
	for app in scores household; do [ ! -d handlers/bundled/$$app ] || (cd handlers/bundled && find $$app -type f | \
		while read -r file; do install -D -m 644 "$$file" '$(DESTDIR)$(PREFIX)/share/hanji/apps/'"$$file"; done); done
	install -m 644 LICENSE '$(DESTDIR)$(PREFIX)/share/doc/hanji/LICENSE'
	for unit in hanji.socket hanji.service hanji-courier.socket hanji-courier.service; do \
		sed 's|@PREFIX@|$(PREFIX)|g' deploy/systemd/$$unit >'$(DESTDIR)$(UNITDIR)/'$$unit && \
		chmod 644 '$(DESTDIR)$(UNITDIR)/'$$unit || exit 1; done

clean: ; rm -rf build

help:
	@echo 'make             build/hanji, hanji-courier      make demo, demo-stop   try it on loopback (deploy/demo.sh)'
	@echo 'make deps        install missing packages        make test              most of this, short; CI runs it'
	@echo 'make check       unit tests                      make e2e               end to end (PYTEST_ARGS=…)'
	@echo 'make asan, tsan  both under sanitizers           make fuzz              FUZZ_SECONDS=60 for each target'
	@echo 'make lint        all static checks               make check-armhf       unit tests on 32-bit ARM (qemu)'
	@echo 'make nightly     everything, long'
	@echo 'make bench-quick the bars of the README          make bench-documents   large bodies, batches, watchers, backups'
	@echo 'make bench-apps, bench-sends  (BENCH_ARGS=…)     make install           DESTDIR= PREFIX=/usr'

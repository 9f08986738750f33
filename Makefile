# csched: make, make check, make demo, make bench, make corpus, make tables,
# make install|uninstall (PREFIX, DESTDIR), make deb|dist, make deps, make clean.
# SAN=1 builds the analyzer and the readers with ASan and UBSan into build-san/;
# BUILD=DIR builds, tests and measures in another place than build/.
#
# Sources are found by folder: a new .c file in a room needs no line here.

PREFIX ?= /usr/local
# Quiet and parallel by default: V=1 shows the commands, QUIET=1 nothing but warnings, -jN says how many at a time.
V ?=
QUIET ?=
Q := $(if $(V),,@)
say = $(if $(V)$(QUIET),,@printf '  %-4s %s\n' '$(1)' '$(2)')
SUBMAKE = $(MAKE) --no-print-directory $(if $(V),,-s)
ifeq ($(MAKELEVEL)$(findstring -j,$(MAKEFLAGS))$(findstring jobserver,$(MAKEFLAGS)),0)
MAKEFLAGS += -j$(shell nproc 2>/dev/null || echo 2)
endif
CC ?= cc
PKG_CONFIG ?= pkg-config
VERSION := 0.1

SAN ?=
BUILD := $(if $(SAN),build-san,build)

WARN := -Wall -Wextra
CFLAGS ?= -O2 -g
# _GNU_SOURCE for the whole tree: every folder leans on GNU extensions.
CPPFLAGS += -I. -D_GNU_SOURCE -DCSCHED_VERSION='"$(VERSION)"'
override CFLAGS += -std=gnu11 $(WARN) -fno-strict-aliasing
comma := ,
SANFLAGS := $(if $(SAN),-fsanitize=address$(comma)undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)

VEX_LIB := $(shell scripts/vex-archive)
ANALYZER_LIBS := $(VEX_LIB) -lz3 -ldw -lelf -lzstd -lZydis -lm -lpthread -ldl

COMMON_SRC := $(wildcard common/*.c)
ANALYZER_SRC := $(filter-out analyzer/csched.c,$(wildcard analyzer/*.c analyzer/*/*.c))
PRELOAD_SRC := $(wildcard preload/*.c preload/*/*.c)
PRELOAD_ASM := $(wildcard preload/*.S preload/*/*.S)

LIB_OBJ := $(COMMON_SRC:%.c=$(BUILD)/obj/%.o) $(ANALYZER_SRC:%.c=$(BUILD)/obj/%.o)
MAIN_OBJ := $(BUILD)/obj/analyzer/csched.o
# The shim shares only the headers of common/ and the files marked *_shim.c there.
PRELOAD_OBJ := $(PRELOAD_SRC:%.c=$(BUILD)/pic/%.o) $(PRELOAD_ASM:%.S=$(BUILD)/pic/%.o)

# gcc must not turn the loops of mem.c into calls of themselves; clang does not know the option.
NO_LOOP_IDIOMS := $(shell $(CC) -fno-tree-loop-distribute-patterns -E -x c /dev/null \
	>/dev/null 2>&1 && echo -fno-tree-loop-distribute-patterns)
PRELOAD_CFLAGS := -fPIC -mgeneral-regs-only -fvisibility=hidden -fno-stack-protector -fno-builtin \
	-fcf-protection=none -fno-plt -fomit-frame-pointer $(NO_LOOP_IDIOMS)
PRELOAD_LDFLAGS := -shared -Wl,-z,now,-z,relro,-z,noexecstack,-z,initfirst,-z,noseparate-code,-Bsymbolic,--sort-section=name \
	-Wl,--version-script=preload/libcsched.map -Wl,-soname,libcsched.so

all: have-deps
	+@$(SUBMAKE) $(BUILD)/csched $(BUILD)/libcsched.so

$(BUILD)/libanalyzer.a: $(LIB_OBJ)
	$(call say,AR,$@)
	@rm -f $@
	$(Q)$(AR) rcs $@ $^

# Bound at once: each of testgen's thousands of children would look the same functions up again.
$(BUILD)/csched: $(MAIN_OBJ) $(BUILD)/libanalyzer.a
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) $(SANFLAGS) -Wl,-z,now -o $@ $(MAIN_OBJ) $(BUILD)/libanalyzer.a $(ANALYZER_LIBS)

# The shim rides in other people's programs: never sanitized.
$(BUILD)/libcsched.so: $(PRELOAD_OBJ) preload/libcsched.map
	$(call say,LD,$@)
	$(Q)$(CC) $(PRELOAD_LDFLAGS) -o $@ $(PRELOAD_OBJ) -ldl

$(BUILD)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(SANFLAGS) -MMD -MP -c -o $@ $<

# The page's style and script are taken in as they are.
$(BUILD)/obj/analyzer/report/html_page.o $(BUILD)/fuzz/analyzer/report/html_page.o: analyzer/report/page.css analyzer/report/page.js

$(BUILD)/pic/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(PRELOAD_CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/pic/%.o: %.S
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(PRELOAD_CFLAGS) -MMD -MP -c -o $@ $<

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)

# Tests: see tests/README.md.
UNIT_SRC := $(wildcard tests/unit/*.c)
UNIT_BIN := $(UNIT_SRC:tests/unit/%.c=$(BUILD)/tests/unit/%)

$(BUILD)/tests/unit/%: tests/unit/%.c $(BUILD)/libanalyzer.a
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(SANFLAGS) -MMD -MP -o $@ $< $(BUILD)/libanalyzer.a $(ANALYZER_LIBS)

# Fuzz tests are always sanitized; so is what they read with, built apart.
FUZZ_SRC := $(COMMON_SRC) analyzer/term.c analyzer/trace_image.c $(wildcard analyzer/image/*.c analyzer/sandbox/*.c) \
	$(wildcard analyzer/report/clean*.c) $(addprefix analyzer/report/,html_page.c html_text.c sha256.c utf8.c) \
	$(wildcard analyzer/symtrace/sym_*.c analyzer/expr/*.c) analyzer/symtrace/symtrace.c \
	$(addprefix analyzer/cmd/,cmd.c nearest.c confined.c show.c info.c redacted_read.c dump.c dump_fields.c dump_path.c dump_records.c)
FUZZ_OBJ := $(FUZZ_SRC:%.c=$(BUILD)/fuzz/%.o)
FUZZ_CFLAGS := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined \
	-fno-omit-frame-pointer

$(BUILD)/fuzz/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(FUZZ_CFLAGS) -Wno-format-truncation -MMD -MP -c -o $@ $<

FUZZ_BIN := $(filter $(BUILD)/tests/unit/fuzz_%,$(UNIT_BIN))
$(FUZZ_BIN): $(BUILD)/tests/unit/%: tests/unit/%.c $(FUZZ_OBJ)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(FUZZ_CFLAGS) -MMD -MP -o $@ $< $(FUZZ_OBJ) \
		-ldw -lelf -lzstd -lZydis -lm -ldl

# Fuzzing guided by coverage: its targets count the edges they pass.
GUIDED_SRC := $(COMMON_SRC) $(wildcard analyzer/image/*.c analyzer/symtrace/sym_*.c analyzer/expr/*.c) analyzer/symtrace/symtrace.c \
	$(addprefix analyzer/,testgen/stack.c testgen/stack_core.c debug/packet.c hunt/shard.c cmd/test_known.c enforce/schedule.c \
	explore/coverage.c explore/coverage_files.c)
GUIDED_OBJ := $(GUIDED_SRC:%.c=$(BUILD)/guided/%.o) $(BUILD)/guided/tests/guided/targets.o
$(BUILD)/guided/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(FUZZ_CFLAGS) -fsanitize-coverage=trace-pc -Wno-format-truncation -MMD -MP -c -o $@ $<
$(BUILD)/guided/guided: tests/guided/guided.c $(GUIDED_OBJ) $(BUILD)/libanalyzer.a
	$(call say,LD,$@)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(FUZZ_CFLAGS) -MMD -MP -o $@ $< $(GUIDED_OBJ) $(BUILD)/libanalyzer.a $(ANALYZER_LIBS)

# The analyzer without its first wall against guest code (native_allow.c, exec_space.c), for the test of
# what stands behind it. Never installed.
NO_WALL_OBJ := $(BUILD)/no-wall/native_allow.o $(BUILD)/no-wall/exec_space.o
$(BUILD)/no-wall/%.o: analyzer/engine/%.c
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(SANFLAGS) -DMACHINE_TEST_NO_WALL -MMD -MP -c -o $@ $<
$(BUILD)/no-wall/csched: $(MAIN_OBJ) $(NO_WALL_OBJ) $(BUILD)/libanalyzer.a
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) $(SANFLAGS) -o $@ $(MAIN_OBJ) $(NO_WALL_OBJ) $(BUILD)/libanalyzer.a $(ANALYZER_LIBS)

# The shim whose own system calls can be made to fail, for program/safe-faults. Never installed.
FAULTY_OBJ := $(PRELOAD_SRC:%.c=$(BUILD)/faulty/%.o) $(BUILD)/faulty/tests/lib/raw_fault.o $(PRELOAD_ASM:%.S=$(BUILD)/pic/%.o)
$(BUILD)/faulty/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(PRELOAD_CFLAGS) -DRAW_TEST_FAULTS -MMD -MP -c -o $@ $<
$(BUILD)/faulty/libcsched.so: $(FAULTY_OBJ) preload/libcsched.map
	$(call say,LD,$@)
	$(Q)$(CC) $(PRELOAD_LDFLAGS) -o $@ $(FAULTY_OBJ) -ldl

# After `all`, which makes the archive that they are linked with: two makes must not write it at once. With TESTS only what these
# tests run is built: linking all of them takes longer than most tests.
TEST_HELPERS := program/safe-walls=$(BUILD)/no-wall/csched program/safe-faults=$(BUILD)/faulty/libcsched.so \
	program/fuzz-guided=$(BUILD)/guided/guided $(foreach t,json-schemas report-formats report-html report-sarif report-solve,\
	program/$(t)=$(BUILD)/tests/unit/report_formats)
ALL_TEST_BINS := $(foreach b,$(UNIT_BIN),unit/$(notdir $(b))=$(b)) $(TEST_HELPERS)
wanted = $(if $(strip $(TESTS)),$(foreach b,$(1),$(if $(strip $(foreach t,$(TESTS),$(findstring $(t),$(firstword $(subst =, ,$(b)))))),$(b))),$(1))
unit-tests: all
	+@$(SUBMAKE) unit-bins
unit-bins: $(sort $(foreach b,$(call wanted,$(ALL_TEST_BINS)),$(lastword $(subst =, ,$(b)))))

check: deps-check
	+@$(SUBMAKE) all
	+@$(SUBMAKE) unit-tests
	@BUILD=$(BUILD) scripts/check $(TESTS)

bench: deps-check
	+@$(SUBMAKE) all
	@BUILD=$(BUILD) scripts/bench $(BENCH)

# Hostile input through everything; the corpus stays in $(BUILD)/fuzz-corpus.
MINUTES ?= 10
fuzz: deps-check
	+@$(SUBMAKE) all
	+@$(SUBMAKE) $(BUILD)/guided/guided
	@BUILD=$(abspath $(BUILD)) scripts/fuzz --minutes $(MINUTES)

demo: deps
	@echo "Building csched: about half a minute of one processor."
	+@$(SUBMAKE) QUIET=1 all
	+@BUILD=$(BUILD) scripts/demo

corpus: have-deps
	+@$(SUBMAKE) -C tests/corpus BUILD=$(abspath $(BUILD))/corpus

tables: deps-check
	+@$(SUBMAKE) all
	+@$(SUBMAKE) corpus
	@CSCHED=$(abspath $(BUILD))/csched CORPUS_BUILD=$(abspath $(BUILD))/corpus scripts/tables

# deps installs what the build and the demo need, deps-check also what the tests use.
deps:
	@scripts/deps build
deps-check:
	@scripts/deps check
have-deps:
	@scripts/deps --have build

install: all
	@scripts/install "$(DESTDIR)" "$(PREFIX)" $(BUILD)
uninstall:
	@scripts/install --remove "$(DESTDIR)" "$(PREFIX)"

# The version that git knows: written anew only when it is another one.
COMMIT := $(shell git describe --always --dirty --abbrev=12 2>/dev/null)
$(BUILD)/commit.h: FORCE
	@mkdir -p $(@D)
	@echo '#define CSCHED_COMMIT "$(COMMIT)"' | cmp -s - $@ || echo '#define CSCHED_COMMIT "$(COMMIT)"' >$@
$(MAIN_OBJ): $(BUILD)/commit.h
$(MAIN_OBJ): CPPFLAGS += -I$(BUILD)

# A Debian package from what is built, and the tar file of a release: scripts/packaging/README.md.
deb: all
	@scripts/packaging/deb $(BUILD) $(VERSION)
dist:
	@git archive --prefix=csched-$(VERSION)/ -o $(BUILD)/csched-$(VERSION).tar.gz HEAD && echo $(BUILD)/csched-$(VERSION).tar.gz

clean:
	rm -rf build build-san

.PHONY: all check fuzz bench demo corpus tables deps deps-check have-deps install uninstall deb dist clean unit-tests unit-bins FORCE
.DELETE_ON_ERROR:
.SECONDARY:

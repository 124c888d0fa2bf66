# make            the program: build/foretoken
# make deps       install what is missing from Debian's packages
# make demo       all of it, then the main question answered on a real example
# make check      layers, headers, then every test (TAP, through prove)
# make validate   predictions against every measured row we have
# make profiles   GPU profiles of published and measured rows anew; review the diff
# make residuals  study/residuals*.csv and groups.csv anew: errors of all measured steps, for ranges
# make search     the constants of the predictors' covariances, searched again; prints them
# make bench      speed, one line a case
# make SAN=1 ...  the same under ASan and UBSan, in a build folder of its own
# make coverage   lines and branches that the tests run, by folder (gcov)
# make mutants    small defects put into the code; says which no test notices
# make fuzz       FUZZ_S seconds of libFuzzer on each reader (needs clang)
# make fuzz-mutants  50,000 spoilt inputs over all readers
# make format     clang-format over all C; `make rules` checks it
# make golden     write the examples' expected output anew; review the diff
# make install    PREFIX=/usr/local: program, data, manual, library, Python module; make uninstall
# make deb        build/foretoken_*.deb, and the probes apart; make dist: the sources
# V=1 prints whole commands
Q       := $(if $(V),,@)
CC      ?= cc
CFLAGS  ?= $(if $(SAN),-O1 -g1,-O2 -g)
PREFIX  ?= /usr/local
comma   := ,
B       := build/$(if $(SAN),san,$(if $(COV),cov,rel))
FOLDERS := base hw models stacks traces sim recorded cost study calibrate reports serve
VERSION := 0.1

PKGS := yaml-0.1 jansson gsl sqlite3 smartcols yajl zlib libzstd libprotobuf-c
# `foretoken serve` loads it; nothing is linked with it
HTTP := $(shell pkg-config --exists libmicrohttpd && echo libmicrohttpd)
# `mpirun foretoken sweep` and `plan` load this beside the program; all else does not
MPI  := $(shell command -v mpicc >/dev/null && echo $B/foretoken-mpi.so)
WARN := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wundef -Wvla \
        -Wstrict-prototypes -Wmissing-prototypes -Wwrite-strings
ALL_CFLAGS = -std=c11 -D_GNU_SOURCE -DFORETOKEN_VERSION='"$(VERSION)"' \
        $(if $(HTTP),-DFORETOKEN_HTTP) -I. -Iinclude -Itests/bench $(WARN) $(CFLAGS) \
        $(HARD) $(shell pkg-config --cflags $(PKGS) $(HTTP)) -pthread -I$(if $(findstring build/fuzz,$@),build/fuzz,$B)/recorded
LDLIBS = $(shell pkg-config --libs $(PKGS)) -lm -ldl -pthread
# what makes a defect an end rather than a way in; FORTIFY needs an optimiser and no ASan
HARD     = -fPIC -fno-semantic-interposition -fstack-protector-strong $(if $(SAN)$(COV)$(filter -O0,$(CFLAGS)),,-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
LDFLAGS += -pie -Wl,-z,relro,-z,now
ifdef SAN
ALL_CFLAGS += -fsanitize=address,undefined -fno-sanitize-recover=all
LDFLAGS    += -fsanitize=address,undefined $(if $(shell command -v ld.gold),-fuse-ld=gold)
endif

ifdef COV
# no inlining: a branch counts once, not once for each caller
ALL_CFLAGS += --coverage -O1 -fno-inline -DTESTS_FEW
LDFLAGS    += --coverage -Wl,--wrap=_exit
COUNTER    := $B/tests/coverage.o
endif

# calibrate/probes/ is a program with plug-ins of its own: see calibrate/probes/probes.mk
LIB_SRC  := $(wildcard $(FOLDERS:%=%/*.c))
CLI_SRC  := $(wildcard cli/*.c)
HEADERS  := $(wildcard include/foretoken/*.h $(FOLDERS:%=%/*.h) cli/*.h)
FORMATTED = $(shell git ls-files '*.c' '*.h')
OBJ      = $(1:%.c=$B/%.o)
TESTS    := $(patsubst tests/%.c,$B/tests/%,$(wildcard tests/test_*.c))
SHTESTS  := $(wildcard tests/test_*.sh)
ifdef SAN
SHTESTS  := $(patsubst %,tests/%.sh,$(shell sed -n 's/^\(test_[a-z_]*\) .*/\1/p' tests/sanitized.txt))
TESTS    := $(filter-out $(patsubst %,$B/tests/%,$(shell sed -n 's/^but \(test_[a-z_]*\) .*/\1/p' tests/sanitized.txt)),$(TESTS))
endif
# Two groups of tests of which one runs at a time: those that run make in this folder, and
# those that start many programs at once. prove starts tests in the order of its rules, if each has one: these
# groups, as they end last, then the longest, then the rest.
RUN_MAKE   := calibrate,packages,tutorial,install
START_MANY := serve_clients,serve,mpi,sweep
LONGEST    := trace replayed plan trace_stages goal probe_gpu decide evidence
REST       := $(filter-out $(LONGEST) $(subst $(comma), ,$(RUN_MAKE) $(START_MANY)),$(SHTESTS:tests/test_%.sh=%))
SHELL_RULES := --rules 'seq=tests/test_{$(RUN_MAKE)}.sh' --rules 'seq=tests/test_{$(START_MANY)}.sh' \
	$(foreach t,$(LONGEST) $(REST),--rules 'seq=tests/test_$t.sh')
CORES    := $(shell nproc)
# two of them mostly wait: for time to pass, for a browser, for a client
SHELL_JOBS := $(shell expr $(CORES) + 2)
BENCHES  := $(patsubst tests/bench/%.c,$B/tests/bench/%,$(wildcard tests/bench/*.c))
FUZZED   := $(shell sed -n 's/^\t{ "\([a-z-]*\)".*/\1/p' tests/fuzz/targets.c)
FUZZERS  := $(FUZZED:%=build/fuzz/fuzz_%)
# pages, styles and scripts, which the build embeds as constants
REPORT_PAGE := reports/page/report.html reports/page/report.css reports/page/report.js
SERVE_PAGE  := $(wildcard serve/page/*)
PAGES       := $B/report_page.o $B/serve_page.o
DATA     := $(wildcard hw/gpus/* hw/nodes/* hw/fabrics/* hw/parts/* hw/sites/* models/*.yaml stacks/*.yaml stacks/ccl/* cost/prices/* cost/factors.yaml \
            study/ranges.yaml study/groups.csv study/residuals.csv study/residuals-unnamed.csv)

.PHONY: all help deps demo check check-only coverage coverage-tests mutants rules format validate residuals profiles search bench fuzz fuzz-mutants golden clean
.SECONDARY:
all: $(if $(SAN)$(COV),$B/foretoken,build/foretoken) $(MPI)

-include calibrate/probes/probes.mk

build/foretoken: build/rel/foretoken $(filter build/rel/%,$(MPI))
	@ln -sf rel/foretoken $@
$B/foretoken: $(call OBJ,$(CLI_SRC)) $B/new.o $B/pages_5.o $B/pages_md.o $(COUNTER) $B/libforetoken.a
	@echo "  LINK  $@"
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS)
$B/foretoken-mpi.so: cli/mpi/plugin.c cli/mpi.h include/foretoken/study_ranks.h
	@mkdir -p $(@D)
	@echo "  MPI   $@"
	$(Q)mpicc -std=c11 -D_GNU_SOURCE -I. -Iinclude $(filter-out -W%,$(WARN)) -Wall -Wextra $(CFLAGS) -fPIC -fvisibility=hidden \
		-shared -Wl,-z,relro,-z,now -o $@ $<
$B/libforetoken.a: $(call OBJ,$(LIB_SRC)) $(PAGES)
	@echo "  AR    $@"
	@rm -f $@
	$(Q)$(AR) rcs $@ $^
$B/tests/%: $B/tests/%.o $(COUNTER) $B/libforetoken.a
	@echo "  LINK  $@"
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS) -lcmocka
$B/tests/bench/%: $B/tests/bench/%.o $B/libforetoken.a
	@echo "  LINK  $@"
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS)
$B/tests/mutate: $B/tests/fuzz/mutate.o $B/tests/fuzz/changes.o $B/tests/fuzz/targets.o $B/tests/fuzz/request.o $(COUNTER) $B/libforetoken.a
	@echo "  LINK  $@"
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS)
$B/report_page.o build/fuzz/report_page.o: $(REPORT_PAGE) scripts/embed.sh reports/page.h
	@mkdir -p $(@D)
	@echo "  EMBED reports/page"
	$(Q)sh scripts/embed.sh reports/page.h page $(REPORT_PAGE) >$(@:.o=.c)
	$(Q)$(CC) $(ALL_CFLAGS) -c -o $@ $(@:.o=.c)
# the skeletons of `foretoken new`
NEW := $(sort $(wildcard cli/new/*.yaml))
$B/new.o: $(NEW) scripts/embed.sh cli/new.h
	@mkdir -p $(@D)
	@echo "  EMBED cli/new"
	$(Q)sh scripts/embed.sh cli/new.h new $(NEW) >$(@:.o=.c)
	$(Q)$(CC) $(ALL_CFLAGS) -c -o $@ $(@:.o=.c)
# the manual pages of files, which `foretoken explain` reads keys in
PAGES_5 := $(patsubst %,man/foretoken-%.5,stack gpu node fabric site ccl prices)
$B/pages_5.o: $(PAGES_5) scripts/embed.sh cli/pages.h
	@mkdir -p $(@D)
	@echo "  EMBED man"
	$(Q)sh scripts/embed.sh cli/pages.h page $(PAGES_5) >$(@:.o=.c)
	$(Q)$(CC) $(ALL_CFLAGS) -c -o $@ $(@:.o=.c)
# the documents that explain answers, whose tables it reads, too
PAGES_MD := docs/reading-the-output.md docs/glossary.md
$B/pages_md.o: $(PAGES_MD) scripts/embed.sh cli/tables.h
	@mkdir -p $(@D)
	@echo "  EMBED docs"
	$(Q)sh scripts/embed.sh cli/tables.h page $(PAGES_MD) >$(@:.o=.c)
	$(Q)$(CC) $(ALL_CFLAGS) -c -o $@ $(@:.o=.c)
$B/serve_page.o build/fuzz/serve_page.o: $(SERVE_PAGE) scripts/embed.sh serve/page.h
	@mkdir -p $(@D)
	@echo "  EMBED serve/page"
	$(Q)sh scripts/embed.sh serve/page.h serve $(SERVE_PAGE) >$(@:.o=.c)
	$(Q)$(CC) $(ALL_CFLAGS) -c -o $@ $(@:.o=.c)
build/fuzz/%.o: %.c
	@mkdir -p $(@D)
	@echo "  FUZZ  $<"
	$(Q)clang $(filter-out -O2 -g -D_FORTIFY_SOURCE=2,$(ALL_CFLAGS)) -O1 -g1 -fsanitize=fuzzer-no-link,address,undefined \
		-fno-sanitize-recover=all -MMD -MP -c -o $@ $<
build/fuzz/fuzz: $(LIB_SRC:%.c=build/fuzz/%.o) build/fuzz/report_page.o build/fuzz/serve_page.o build/fuzz/tests/fuzz/fuzz.o build/fuzz/tests/fuzz/targets.o build/fuzz/tests/fuzz/request.o
	$(Q)clang -fsanitize=fuzzer,address,undefined -o $@ $^ $(LDLIBS)
$(FUZZERS): build/fuzz/fuzz
	@ln -sf fuzz $@
# knows all sources: what one program answered, another build does not take as its own
$B/base/version.o: base/version.c $(LIB_SRC) $(HEADERS)
	@mkdir -p $(@D)
	@echo "  CC    $<"
	$(Q)$(CC) $(ALL_CFLAGS) -DFORETOKEN_BUILD="\"$$(cat $(LIB_SRC) $(HEADERS) | cksum | tr ' ' -)\"" -c -o $@ $<
$B/%.o: %.c
	@mkdir -p $(@D)
	@echo "  CC    $<"
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<
# written by protoc-c from the messages; not ours to be warned of
%/recorded/chakra.pb-c.c: recorded/chakra.proto
	@mkdir -p $(@D)
	@echo "  PROTO $<"
	$(Q)protoc-c --proto_path=$(<D) --c_out=$(@D) $<
%/recorded/chakra.pb-c.o: %/recorded/chakra.pb-c.c
	@echo "  CC    $<"
	$(Q)$(if $(findstring fuzz,$@),clang -fsanitize=fuzzer-no-link$(comma)address$(comma)undefined,$(CC)) $(filter-out -W%,$(ALL_CFLAGS)) -w -c -o $@ $<
$B/libforetoken.a $B/install/libforetoken.a $B/install/libforetoken.so: $B/recorded/chakra.pb-c.o
build/fuzz/fuzz: build/fuzz/recorded/chakra.pb-c.o
$B/recorded/chakra_read.o $B/recorded/chakra_write.o: $B/recorded/chakra.pb-c.c
build/fuzz/recorded/chakra_read.o build/fuzz/recorded/chakra_write.o: build/fuzz/recorded/chakra.pb-c.c

help:
	@sed -n 's/^# \(make .*\)/\1/p' Makefile

rules:
	@awk -f tests/layers.awk layers $(HEADERS) $(LIB_SRC) $(CLI_SRC) $(PROBE_ALL)
	@for h in $(HEADERS); do $(CC) $(ALL_CFLAGS) -fsyntax-only -x c $$h || exit; done
	@if command -v $(CXX) >/dev/null; then for h in include/foretoken/*.h; do \
		$(CXX) -std=c++17 -Wall -Wextra -Werror -fsyntax-only -Iinclude -x c++ $$h || exit; done; fi
	@sh tests/sizes.sh
	@sh tests/banned.sh
	@if command -v clang-format-14 >/dev/null; then clang-format-14 --dry-run -Werror $(FORMATTED); fi

format:
	clang-format-14 -i $(FORMATTED)

deps:
	sh scripts/deps.sh

demo: deps
	$(MAKE) build/foretoken
	sh scripts/demo.sh

check: deps
	$(MAKE) check-only

check-only: rules all $(TESTS) $(PROBES) $B/tests/mutate
	CMOCKA_MESSAGE_OUTPUT=TAP prove -j $(CORES) -e '' $(TESTS)
	FORETOKEN=$(abspath $B/foretoken) B=$(abspath $B) prove -j $(SHELL_JOBS) $(SHELL_RULES) $(SHTESTS)

# gcov counts in files of each test's own; a test that fails is told, and counts all the same
coverage:
	find build/cov -name '*.gcda' -delete 2>/dev/null || :
	rm -rf build/cov/by
	$(MAKE) COV=1 coverage-tests
	python3 scripts/coverage.py build/cov $(FOLDERS) cli
COUNTED := COUNTS=$(abspath $B/by) prove -j $(CORES) -e 'sh scripts/counted.sh'
coverage-tests: $B/foretoken $(TESTS) $B/tests/mutate
	-CMOCKA_MESSAGE_OUTPUT=TAP $(COUNTED) $(TESTS)
	-FORETOKEN=$(abspath $B/foretoken) B=$(abspath $B) $(COUNTED) $(SHELL_RULES) \
		$(filter-out %valgrind.sh %tutorial.sh %install.sh %packages.sh,$(SHTESTS))

mutants:
	python3 scripts/mutants.py

validate: build/foretoken $B/tests/test_kernel_held_out $B/tests/test_inside $B/tests/test_parts $B/tests/test_published_costs
	sh scripts/validate.sh build/foretoken $B

residuals: build/foretoken
	python3 scripts/residuals.py build/foretoken

profiles: build/foretoken
	sh scripts/fit_published.sh build/foretoken hw/gpus
	sh scripts/fit_measured.sh build/foretoken hw/gpus
	sh scripts/unseen.sh build/foretoken measurements/kernels
	python3 scripts/simumax.py >measurements/kernels/simumax-b200.csv
	for f in h100-96g-500w gh200; do \
		python3 scripts/derive_memory.py --same-die --twin hw/gpus/h200.yaml hw/gpus/h100-sxm.yaml hw/gpus/$$f.yaml || exit 1; done

search: $B/tests/test_kernel_held_out
	CC="$(CC)" CFLAGS="$(filter-out -DFORETOKEN_%,$(ALL_CFLAGS))" LDLIBS="$(LDFLAGS) $(LDLIBS) -lcmocka" python3 scripts/search_kriging.py $B

bench: build/foretoken $(BENCHES)
	sh scripts/bench.sh $B

fuzz: $(FUZZERS) $B/tests/mutate
	sh scripts/fuzz.sh $B/tests/mutate $(FUZZERS)

fuzz-mutants: $B/tests/mutate
	$B/tests/mutate -n 50000 -j $(shell nproc) -k build/mutants

golden: build/foretoken
	FORETOKEN=$(abspath build/foretoken) sh tests/test_examples.sh --write

-include scripts/install.mk

clean:
	rm -rf build
-include $(wildcard $B/*/*.d $B/tests/*/*.d build/fuzz/*/*.d build/fuzz/tests/*/*.d)

# Pinwheel. `make demo` shows it, `make test` tests it; each installs what is
# missing (packages.txt), builds out of tree and can be repeated. `make help`.

BUILD   ?= build
PREFIX  ?= /usr/local
DESTDIR ?=
JOBS    ?= $(shell nproc)
# What is measured or installed trains itself first (cmake/profile.cmake); off: it does not.
PROFILE ?= use
# Most tests wait for more than half of their time, so there are three at a time for each core; one
# that is busy for most of it has PROCESSORS 2 in its folder's CMakeLists.txt.
CTEST   = ctest --output-on-failure --no-tests=error -j $$((3 * $(JOBS)))
# With some 300 targets make takes 11 s of CPU time to find that nothing is to be done.
export CMAKE_GENERATOR ?= Ninja

.PHONY: help all demo test test-long builds abi asan tsan bench count fuzz install deb format lint clean

help:
	@echo "make all        install what is missing, build"
	@echo "make demo       install what is missing, build, run the demo (results in demo-out/)"
	@echo "make test       install what is missing, build with gcc and clang, run the tests"
	@echo "make test-long  the long suites besides: soaks, a million races"
	@echo "make builds     build and test as packagers do: types, compilers, flags, LTO (BUILDS: those of tools/builds.sh -l)"
	@echo "make abi        libraries, command and environment against ABI_BASE=$(ABI_BASE): what is new, what is gone"
	@echo "make asan       the tests under AddressSanitizer and UBSan"
	@echo "make tsan       the tests of threads under ThreadSanitizer"
	@echo "make bench      measure against the machine's limits and other libraries (BENCH_OPTIONS, PROFILE=off)"
	@echo "make count      count the instructions of each kind of message, against bench/count/expected (COUNT_OPTIONS)"
	@echo "make fuzz       the fuzz targets under libFuzzer, FUZZ_SECONDS each"
	@echo "make install    PREFIX=$(PREFIX) DESTDIR=$(DESTDIR) PROFILE=$(PROFILE)"
	@echo "make deb        the Debian packages, in $(BUILD)-deb/ (PROFILE=off)"
	@echo "make format     clang-format in place"
	@echo "make lint       rooms and sizes, clang-format, cppcheck, clang-tidy, shellcheck, documents"
	@echo "make clean      remove the build folders"

# For those who change this code; a build that is to be used never stops at a warning.
WERROR = -DPINWHEEL_WERROR=ON

# $(call configure,FOLDER,OPTIONS)
define configure
	@cmake -S . -B $(1) $(2) > $(1).log 2>&1 || { cat $(1).log; exit 1; }; rm -f $(1).log
	cmake --build $(1) -j $(JOBS)
endef

all:
	@tools/packages.sh build
	$(call configure,$(BUILD),-DPINWHEEL_TESTS=OFF)

demo:
	@tools/packages.sh demo
	$(call configure,$(BUILD),-DPINWHEEL_TESTS=OFF)
	$(BUILD)/tools/pinwheel/pinwheel demo

# The build with clang is for its warnings; nothing of it is run.
CLANG = $(WERROR) -DPINWHEEL_TESTS=ON -DCMAKE_C_COMPILER=clang -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG=-O0

test:
	@tools/packages.sh test
	$(call configure,$(BUILD),-DPINWHEEL_TESTS=ON $(WERROR))
	$(call configure,$(BUILD)-clang,$(CLANG))
	@rm -f $(BUILD)/Testing/Temporary/LastTestsDisabled.log
	(cd $(BUILD) && $(CTEST) -LE long); status=$$?; tools/left_out.py $(BUILD); exit $$status

test-long: test
	@tools/packages.sh deb
	cd $(BUILD) && $(CTEST) -L long

# Hours, if BUILDS names none; before a release, and after a change of CMake files, flags or headers.
BUILDS ?=
builds:
	@tools/packages.sh test
	@tools/packages.sh builds
	tools/builds.sh -j $(JOBS) $(BUILD)-builds $(BUILDS)

ABI_BASE ?= 548af3f
abi:
	@tools/packages.sh build
	@tools/packages.sh abi
	tools/abi.sh $(ABI_BASE) $(BUILD)-abi

asan:
	@tools/packages.sh test
	$(call configure,$(BUILD)-asan,$(WERROR) -DPINWHEEL_SANITIZE=address$(COMMA)undefined)
	cd $(BUILD)-asan && $(CTEST) -LE "long|no-asan"

# TSan sees threads, not processes: what races between processes is tested here
# as two NICs of one process.
tsan:
	@tools/packages.sh test
	$(call configure,$(BUILD)-tsan,$(WERROR) -DPINWHEEL_SANITIZE=thread)
	cd $(BUILD)-tsan && $(CTEST) -L "^tsan$$" -LE long

# Peers whose packages cannot be had are left out, which the report says.
BENCH_OPTIONS ?=
bench:
	@tools/packages.sh bench || echo "make bench: going on without the packages above"
	$(call configure,$(BUILD)-bench,-DPINWHEEL_TESTS=OFF -DPINWHEEL_BENCH=ON -DPINWHEEL_PROFILE=$(PROFILE))
	$(BUILD)-bench/tools/pinwheel/pinwheel bench $(BENCH_OPTIONS)

# Always the same compiler and flags, whatever the environment says.
COUNT_OPTIONS ?=
COUNT = -DPINWHEEL_TESTS=OFF -DPINWHEEL_COUNT=ON -DPINWHEEL_PROFILE=off -DPINWHEEL_SANITIZE= \
    -DCMAKE_C_COMPILER=gcc -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_C_FLAGS_RELWITHDEBINFO='-O2 -g -DNDEBUG' \
    -DCMAKE_C_FLAGS= -DCMAKE_EXE_LINKER_FLAGS= -DCMAKE_SHARED_LINKER_FLAGS=
count:
	@tools/packages.sh count
	@cmake -S . -B $(BUILD)-count $(COUNT) > $(BUILD)-count.log 2>&1 || { cat $(BUILD)-count.log; exit 1; }; rm -f $(BUILD)-count.log
	cmake --build $(BUILD)-count -j $(JOBS) --target count_programs
	bench/count/count.sh $(COUNT_OPTIONS) $(BUILD)-count

FUZZ_SECONDS ?= 60
fuzz:
	@tools/packages.sh test
	$(call configure,$(BUILD)-fuzz,-DCMAKE_C_COMPILER=clang -DPINWHEEL_LIBFUZZER=ON -DPINWHEEL_SANITIZE=address$(COMMA)undefined)
	for f in $(BUILD)-fuzz/tests/fuzz/*_libfuzzer; do $$f -max_total_time=$(FUZZ_SECONDS) || exit 1; done

install:
	@tools/packages.sh build
	$(call configure,$(BUILD)-install,-DPINWHEEL_TESTS=OFF -DPINWHEEL_PROFILE=$(PROFILE))
	DESTDIR=$(DESTDIR) cmake --install $(BUILD)-install --prefix $(PREFIX)

deb:
	@tools/packages.sh deb
	@PROFILE=$(PROFILE) tools/deb.sh $(BUILD)-deb $(JOBS)

SOURCES = $(shell git ls-files '*.c' '*.h')

format:
	@tools/packages.sh lint
	clang-format -i $(SOURCES)

# cppcheck's ctuuninitvar takes a buffer that a function fills for one that it reads; compilers and
# clang-tidy look for what is read before it is set.
lint:
	@tools/packages.sh lint
	tools/check_tree.py --self-test
	tools/check_tree.py
	clang-format --dry-run --Werror $(SOURCES)
	shellcheck -x $(shell git ls-files '*.sh') .ci/run
	python3 tools/lint_docs.py $(shell git ls-files '*.md')
	$(call configure,$(BUILD)-clang,$(CLANG))
	cppcheck --quiet --error-exitcode=1 --enable=warning,portability --inline-suppr --std=c11 \
	    --suppress=nullPointerArithmetic -Iinclude -Isrc -Ibench -Itools -D_GNU_SOURCE -D__x86_64__ \
	    -DPINWHEEL_VERSION='""' -DPINWHEEL_LIBDIR='""' --suppress=arrayIndexThenCheck \
	    --suppress=invalidPointerCast --suppress=autoVariables:src/nic/lookup.c \
	    --suppress=ctuuninitvar src tools include bench
	clang-tidy --quiet -p $(BUILD)-clang $(shell git ls-files 'src/*.c' 'tools/*.c' 'bench/ours/*.c' 'bench/conductor/*.c')

clean:
	rm -rf $(BUILD) $(BUILD)-install $(BUILD)-clang $(BUILD)-asan $(BUILD)-tsan $(BUILD)-bench $(BUILD)-count $(BUILD)-fuzz $(BUILD)-builds $(BUILD)-abi

COMMA = ,

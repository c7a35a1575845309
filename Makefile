# libblktune: `make` builds the library and the launcher here; no configure step.
CC     ?= cc
CFLAGS ?= -O2 -g
PREFIX ?= /usr/local
# Where the loader looks, so that the bare name works: LD_PRELOAD=libblktune.so
LIBDIR ?= $(PREFIX)/lib
DEBDIR ?= build
VERSION := 0.1.0

# Large-file redirections of what is wrapped are met nowhere.
override CFLAGS += -std=gnu11 -D_GNU_SOURCE -D_LARGEFILE64_SOURCE -U_FILE_OFFSET_BITS \
	-U_TIME_BITS -fPIC -fvisibility=hidden -fno-strict-aliasing -fno-builtin-abort \
	-Wall -Wextra -Wstrict-prototypes -Wmissing-prototypes -MMD -MP

SOURCES := shim/real.c $(wildcard shim/intercept/*.c shim/core/*.c shim/engine/*.c)
OBJECTS := $(SOURCES:%.c=build/%.o)

all: libblktune.so blktune

libblktune.so: $(OBJECTS) build/exports.map
	$(CC) -shared -Wl,-soname,$@ -Wl,--version-script=build/exports.map \
		-Wl,-z,relro,-z,now $(LDFLAGS) -o $@ $(OBJECTS) -ldl

# The launcher judges values and places as the library does, with the same code.
TOOL := $(patsubst %.c,build/%.o,$(wildcard shim/tool/*.c)) build/shim/core/config.o build/shim/core/glob.o \
	build/shim/core/place.o build/shim/core/table.o build/shim/core/text.o

blktune: $(TOOL)
	$(CC) -Wl,-z,relro,-z,now $(LDFLAGS) -o $@ $(TOOL)

# What it was built for: another LIBDIR or VERSION builds it anew.
build/shim/tool/main.o: override CFLAGS += -DLIBDIR='"$(LIBDIR)"' -DVERSION='"$(VERSION)"'
build/shim/tool/main.o: build/built-for

build/built-for: FORCE
	@mkdir -p $(@D)
	@echo '$(LIBDIR) $(VERSION)' | cmp -s - $@ || echo '$(LIBDIR) $(VERSION)' >$@

build/shim/tool/%.o: override CFLAGS += -D_FILE_OFFSET_BITS=64

# Wrappers must not meet fortified inlines of their own names; the rest may be built with them.
build/shim/intercept/%.o: override CFLAGS += -U_FORTIFY_SOURCE

build/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -c -o $@ $<

# What the library exports is what calls.def lists, and nothing else.
build/exports.map: shim/exports.map.in shim/calls.def shim/calls.h Makefile
	@mkdir -p $(@D)
	$(CC) -E -P -x c -D_GNU_SOURCE -DCALLS_NAMES_ONLY $< >$@

demo: all
	bench/demo

# Gets what the tests need where that is missing (apt-get, as root), and runs them.
check: all
	tests/check

# With the tests that take long: about an hour.
check-all: all
	BLKTUNE_CHECK=all tests/check

# Runs the real programs and puts what was measured into README.md: minutes, as root.
clients-table: all
	tests/clients-table

# Which lines the tests reach: make coverage, or FILES="tests/stdio.bats ..." for those of some.
coverage:
	tests/coverage $(FILES)

# Minutes of random operations, bare and under the shim, each time others: make soak MINUTES=30
MINUTES ?= 10
SEED ?= $(shell date +%s)
soak: all
	tests/exerciser --matrix -w each -n 2000 -s $(SEED) -t $(MINUTES)

# All experiments, under 40 minutes; the essentials, how far from the disk's limit first, under 4.
bench: all
	bench/all
bench-quick: all
	bench/all -q

BINDIR  = $(DESTDIR)$(PREFIX)/bin
MANDIR  = $(DESTDIR)$(PREFIX)/share/man/man1
COMPDIR = $(DESTDIR)$(PREFIX)/share/bash-completion/completions

install: all
	install -d $(BINDIR) $(DESTDIR)$(LIBDIR) $(MANDIR) $(COMPDIR)
	install -m 755 blktune $(BINDIR)/blktune
	install -m 644 libblktune.so $(DESTDIR)$(LIBDIR)/libblktune.so
	install -m 644 shim/tool/blktune.1 $(MANDIR)/blktune.1
	install -m 644 shim/tool/blktune.bash $(COMPDIR)/blktune
	$(if $(DESTDIR),,ldconfig)

uninstall:
	rm -f $(BINDIR)/blktune $(DESTDIR)$(LIBDIR)/libblktune.so $(MANDIR)/blktune.1 \
		$(COMPDIR)/blktune
	$(if $(DESTDIR),,ldconfig)

# A tree of its own: the launcher is built for the package's directories.
DEB_LIBDIR = /usr/lib/$(shell dpkg-architecture -qDEB_HOST_MULTIARCH 2>/dev/null || $(CC) -print-multiarch)

deb:
	rm -rf build/deb
	mkdir -p build/deb/src
	cp -R Makefile shim build/deb/src
	$(MAKE) -C build/deb/src install DESTDIR=$(CURDIR)/build/deb/stage PREFIX=/usr LIBDIR=$(DEB_LIBDIR)
	VERSION=$(VERSION) packaging/deb build/deb/stage $(DEBDIR)

clean:
	rm -rf build libblktune.so blktune

.PHONY: all demo check check-all clients-table coverage soak bench bench-quick install uninstall deb clean FORCE
-include $(OBJECTS:.o=.d) $(TOOL:.o=.d)

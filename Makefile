# libblktune: `make` builds the library and the launcher here; no configure step.
CC     ?= cc
CFLAGS ?= -O2 -g
PREFIX ?= /usr/local

# Wrappers must not meet fortified inlines or large-file redirections of their own names.
override CFLAGS += -std=gnu11 -D_GNU_SOURCE -D_LARGEFILE64_SOURCE -U_FORTIFY_SOURCE \
	-U_FILE_OFFSET_BITS -fPIC -fvisibility=hidden -fno-strict-aliasing -fno-builtin-abort \
	-Wall -Wextra -Wstrict-prototypes -Wmissing-prototypes -MMD -MP

SOURCES := shim/real.c $(wildcard shim/intercept/*.c shim/core/*.c shim/engine/*.c)
OBJECTS := $(SOURCES:%.c=build/%.o)

all: libblktune.so blktune

libblktune.so: $(OBJECTS) build/exports.map
	$(CC) -shared -Wl,-soname,$@ -Wl,--version-script=build/exports.map \
		-Wl,-z,relro,-z,now $(LDFLAGS) -o $@ $(OBJECTS) -ldl

blktune: build/shim/tool/blktune.o
	$(CC) $(LDFLAGS) -o $@ $^

build/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -c -o $@ $<

# What the library exports is what calls.def lists, and nothing else.
build/exports.map: shim/exports.map.in shim/calls.def shim/calls.h Makefile
	@mkdir -p $(@D)
	$(CC) -E -P -x c -D_GNU_SOURCE -DCALLS_NAMES_ONLY $< >$@

clean:
	rm -rf build libblktune.so blktune

.PHONY: all clean
-include $(OBJECTS:.o=.d)

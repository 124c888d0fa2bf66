# scripts/install.mk - `make install` and `make uninstall`: the program, its data and manual
# pages, examples, completions for bash; and the library with headers and a pkg-config file
$(if $(or $(word 2,$(DESTDIR)),$(word 2,$(PREFIX))),$(error DESTDIR and PREFIX hold no spaces))
ROOT    = $(DESTDIR)$(PREFIX)
SHARE   = $(ROOT)/share
MANUALS := $(wildcard man/*.[15])
# documents, and what they link to
OTHERS  := README.md ARCHITECTURE.md CONTRIBUTING.md layers $(wildcard docs/*.md) hw/gpus/SOURCES.md measurements/README.md \
	tests/bench/RESULTS.md tests/library/answer.c $(shell git ls-files examples 2>/dev/null || find examples -type f)

# where the system's Python looks below PREFIX
PYTHON  ?= $(firstword $(wildcard /usr/bin/python3) python3)
PYTHON_DIR ?= $(or $(shell $(PYTHON) -c 'import site; print(next((p for p in site.getsitepackages() if p.startswith("$(PREFIX)/lib/")), ""))' 2>/dev/null),$(PREFIX)/lib/python3/dist-packages)
MODULE   = $(DESTDIR)$(PYTHON_DIR)/foretoken

.PHONY: install uninstall new-prefix

# what says where data lie knows PREFIX in the libraries, and is made anew under another: a file names the last. The
# program knows by where it lies itself
PREFIX_IS := $B/install/prefix$(subst /,-,$(PREFIX))
PREFIX_NEW := $(if $(wildcard $(PREFIX_IS)),,new-prefix)
INSTALLED := $(filter-out $B/base/find.o,$(call OBJ,$(LIB_SRC))) $B/install/find.o
new-prefix:
	@mkdir -p $B/install
	@rm -f $B/install/prefix-*
	@touch $(PREFIX_IS)
$B/install/find.o: base/find.c base/file.h $(PREFIX_NEW)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -DFORETOKEN_PREFIX='"$(PREFIX)"' -c -o $@ $<

# one object in which only ft_* is seen from outside
$B/install/libforetoken.a: $(INSTALLED) $(PAGES)
	@mkdir -p $(@D)
	@echo "  AR    $@"
	$(Q)$(LD) -r -o $(@D)/foretoken.o $^
	$(Q)objcopy --wildcard --keep-global-symbol='ft_*' $(@D)/foretoken.o
	@rm -f $@
	$(Q)$(AR) rcs $@ $(@D)/foretoken.o

# the same as a shared library: what ft_* says stays within a major version
SONAME := libforetoken.so.$(firstword $(subst ., ,$(VERSION)))
$B/install/libforetoken.so: $(INSTALLED) $(PAGES) scripts/foretoken.map
	@mkdir -p $(@D)
	@echo "  LINK  $@"
	$(Q)$(CC) -shared -Wl,-z,relro,-z,now -Wl,-soname,$(SONAME) \
		-Wl,--version-script=scripts/foretoken.map $(filter -fsan%,$(LDFLAGS)) -o $@ $(filter %.o,$^) $(LDLIBS)

$B/install/foretoken.pc: Makefile scripts/install.mk $(PREFIX_NEW)
	@mkdir -p $(@D)
	@printf '%s\n' 'prefix=$(PREFIX)' 'includedir=$${prefix}/include' \
		'libdir=$${prefix}/lib' '' 'Name: foretoken' \
		'Description: trace-driven simulator of training clusters and their cost' \
		'Version: $(VERSION)' 'Requires.private: $(PKGS)' 'Cflags: -I$${includedir}' \
		'Libs: -L$${libdir} -lforetoken' 'Libs.private: -lm -ldl -pthread' >$@

install: $(if $(SAN),$B/foretoken,build/foretoken) $(MPI) $B/install/libforetoken.a $B/install/libforetoken.so $B/install/foretoken.pc
	install -d $(ROOT)/bin $(ROOT)/lib/pkgconfig $(ROOT)/include/foretoken $(SHARE)/foretoken
	install build/foretoken $(ROOT)/bin/
	$(if $(MPI),install -D -m 644 $(MPI) $(ROOT)/lib/foretoken/foretoken-mpi.so)
	install -m 644 include/foretoken/*.h $(ROOT)/include/foretoken/
	install -m 644 $B/install/libforetoken.a $(ROOT)/lib/
	install -m 644 $B/install/libforetoken.so $(ROOT)/lib/$(SONAME).$(VERSION)
	ln -sf $(SONAME).$(VERSION) $(ROOT)/lib/$(SONAME)
	ln -sf $(SONAME) $(ROOT)/lib/libforetoken.so
	install -d $(MODULE)
	install -m 644 python/foretoken/*.py python/foretoken/py.typed $(MODULE)/
	install -m 644 $B/install/foretoken.pc $(ROOT)/lib/pkgconfig/
	tar -cf - $(DATA) | tar -C $(SHARE)/foretoken -xf -
	for f in $(OTHERS); do install -D -m 644 $$f $(SHARE)/doc/foretoken/$$f || exit; done
	for m in $(MANUALS); do install -D -m 644 $$m \
		$(SHARE)/man/man$${m##*.}/$${m##*/} || exit; done
	install -D -m 644 scripts/foretoken.bash $(SHARE)/bash-completion/completions/foretoken
	@$(if $(DESTDIR),,[ "$$(id -u)" != 0 ] || ldconfig || true)

# only what install wrote; folders go when they are empty
uninstall:
	rm -f $(ROOT)/bin/foretoken $(ROOT)/lib/libforetoken.a $(ROOT)/lib/libforetoken.so* \
		$(ROOT)/lib/pkgconfig/foretoken.pc $(SHARE)/bash-completion/completions/foretoken
	rm -f $(addprefix $(ROOT)/include/foretoken/,$(notdir $(wildcard include/foretoken/*.h)))
	rm -f $(addprefix $(SHARE)/foretoken/,$(DATA)) $(addprefix $(SHARE)/doc/foretoken/,$(OTHERS))
	rm -f $(foreach m,$(MANUALS),$(SHARE)/man/man$(subst .,,$(suffix $m))/$(notdir $m))
	rm -rf $(MODULE)
	rm -f $(ROOT)/lib/foretoken/foretoken-mpi.so
	for d in $(ROOT)/lib/foretoken $(SHARE)/foretoken $(SHARE)/doc/foretoken $(ROOT)/include/foretoken; do \
		[ ! -d $$d ] || find $$d -depth -type d -exec rmdir {} + 2>/dev/null || true; done

# ---- packages: the same commit gives the same bytes
.PHONY: deb dist
deb:
	@sh scripts/deb.sh $(VERSION)
dist:
	@mkdir -p build
	git archive --format=tar.gz --prefix=foretoken-$(VERSION)/ -o build/foretoken-$(VERSION).tar.gz HEAD
	@echo build/foretoken-$(VERSION).tar.gz

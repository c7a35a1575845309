/*
 * Can the library work in a command? What its file shows: how it is linked,
 * for which machine, whether it gains privileges, whether it was made by Go.
 * What it does not show is whether a program with a libc of its own language
 * makes system calls past it.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "tool.h"

#define SCRIPTS_MOST 4 /* interpreters that are scripts themselves: as binfmt_script.c */

/* What a program file says of itself. */
struct program {
	unsigned char class, data; /* of e_ident */
	uint16_t machine;
	bool foreign; /* not of this machine's class and byte order: nothing below is known */
	bool dynamic; /* a loader is asked for */
	bool library; /* a shared object with a name: the loader itself, run as a program */
	bool go;
	char loader[256];
};

static bool read_at(int fd, void *to, size_t n, off_t at)
{
	return pread(fd, to, n, at) == (ssize_t)n;
}

static void read_dynamic(int fd, const ElfW(Phdr) *segment, struct program *p)
{
	ElfW(Dyn) d;

	for (size_t at = 0; at + sizeof(d) <= segment->p_filesz; at += sizeof(d)) {
		if (!read_at(fd, &d, sizeof(d), segment->p_offset + at) || d.d_tag == DT_NULL)
			return;
		if (d.d_tag == DT_SONAME)
			p->library = true;
	}
}

static void read_segments(int fd, const ElfW(Ehdr) *head, struct program *p)
{
	ElfW(Phdr) s;

	for (int i = 0; i < head->e_phnum; i++) {
		if (!read_at(fd, &s, sizeof(s), head->e_phoff + (off_t)i * head->e_phentsize))
			return;
		if (s.p_type == PT_DYNAMIC)
			read_dynamic(fd, &s, p);
		if (s.p_type != PT_INTERP)
			continue;
		p->dynamic = true;
		if (s.p_filesz >= sizeof(p->loader) ||
			!read_at(fd, p->loader, s.p_filesz, s.p_offset))
			*p->loader = 0;
	}
}

static void read_sections(int fd, const ElfW(Ehdr) *head, struct program *p)
{
	ElfW(Shdr) s, names;
	char name[24];

	if (!head->e_shoff || head->e_shstrndx >= head->e_shnum ||
		!read_at(fd, &names, sizeof(names),
			head->e_shoff + (off_t)head->e_shstrndx * head->e_shentsize))
		return;
	for (int i = 0; i < head->e_shnum && !p->go; i++) {
		ssize_t n;

		if (!read_at(fd, &s, sizeof(s), head->e_shoff + (off_t)i * head->e_shentsize))
			return;
		n = pread(fd, name, sizeof(name) - 1, names.sh_offset + s.sh_name);
		if (n <= 0)
			continue;
		name[n] = 0;
		p->go = !strcmp(name, ".go.buildinfo") || !strcmp(name, ".note.go.buildid");
	}
}

/* False when the file is not ELF. */
static bool read_program(int fd, struct program *p)
{
	ElfW(Ehdr) head;

	memset(p, 0, sizeof(*p));
	/* The machine stands at the same place in both classes. */
	if (!read_at(fd, &head, offsetof(ElfW(Ehdr), e_version), 0) ||
		memcmp(head.e_ident, ELFMAG, SELFMAG))
		return false;
	p->class = head.e_ident[EI_CLASS];
	p->data = head.e_ident[EI_DATA];
	p->machine = head.e_machine;
	p->foreign =
		p->class != (__SIZEOF_POINTER__ == 8 ? ELFCLASS64 : ELFCLASS32) ||
		p->data != (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB);
	if (p->foreign) {
		if (p->data !=
			(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB))
			p->machine = __builtin_bswap16(p->machine);
		return true;
	}
	if (!read_at(fd, &head, sizeof(head), 0))
		return true;
	read_segments(fd, &head, p);
	read_sections(fd, &head, p);
	return true;
}

static bool read_program_at(const char *path, struct program *p)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool elf = fd >= 0 && read_program(fd, p);

	if (fd >= 0)
		close(fd);
	return elf;
}

static const char *machine(const struct program *p, char *text, size_t room)
{
	static const struct {
		uint16_t number;
		const char *name;
	} names[] = {
		{EM_386, "i386"},
		{EM_X86_64, "x86-64"},
		{EM_ARM, "ARM"},
		{EM_AARCH64, "aarch64"},
		{EM_RISCV, "RISC-V"},
		{EM_PPC64, "PowerPC"},
		{EM_S390, "S/390"},
		{EM_MIPS, "MIPS"},
	};
	const char *bits = p->class == ELFCLASS64 ? "64" : "32";

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (names[i].number != p->machine)
			continue;
		snprintf(text, room, "%s-bit %s", bits, names[i].name);
		return text;
	}
	snprintf(text, room, "%s-bit (machine %u)", bits, p->machine);
	return text;
}

/* What the loader takes as a reason to ignore LD_PRELOAD: ld.so(8), secure-execution mode. */
static void check_privileges(const char *path, const char *subject)
{
	struct statvfs mount;
	struct stat st;

	if (stat(path, &st) || prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ||
		(!statvfs(path, &mount) && mount.f_flag & ST_NOSUID))
		return;
	if (st.st_mode & S_ISUID && st.st_uid != getuid())
		complain("warning: %s is setuid: the loader ignores the library in it", subject);
	/* Without the group's x bit, setgid means something else. */
	if ((st.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) && st.st_gid != getgid())
		complain("warning: %s is setgid: the loader ignores the library in it", subject);
	if (getuid() && getxattr(path, "security.capability", NULL, 0) > 0)
		complain("warning: %s has file capabilities: the loader ignores the library in it",
			subject);
}

static const char *base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static void check_program(const struct program *p, const char *subject, const char *library)
{
	struct program of_library, self;
	char text[64], other[64];

	if (read_program_at(library, &of_library) &&
		(p->class != of_library.class || p->data != of_library.data ||
			p->machine != of_library.machine)) {
		complain("warning: %s is a %s program, the library is %s: it runs without it",
			subject, machine(p, text, sizeof(text)),
			machine(&of_library, other, sizeof(other)));
		return;
	}
	if (p->go) {
		complain("warning: %s is a Go program, which makes its system calls itself: "
			 "the library sees none of them",
			subject);
	} else if (!p->dynamic && !p->library) {
		complain("warning: %s is statically linked: the library cannot be loaded into it",
			subject);
	} else if (*p->loader && read_program_at("/proc/self/exe", &self) && *self.loader &&
		   strcmp(base(p->loader), base(self.loader))) {
		complain("warning: %s is loaded by %s, not %s: another C library may refuse it",
			subject, p->loader, base(self.loader));
	}
}

/* Where execvp will find a command; false when nowhere. */
static bool find(const char *command, char *path, size_t room)
{
	const char *p = getenv("PATH");
	struct stat st;

	if (strchr(command, '/'))
		return (size_t)snprintf(path, room, "%s", command) < room;
	if (!p)
		p = "/bin:/usr/bin";
	for (;; p++) {
		int n = strcspn(p, ":");

		if ((size_t)snprintf(path, room, "%.*s%s%s", n, p, n ? "/" : "", command) < room &&
			!stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK))
			return true;
		p += n;
		if (!*p)
			return false;
	}
}

static void check(const char *path, const char *script, const char *library, int level);

/* The interpreter that a #! line names, and the program that env(1) is to find there. */
static void check_script(char *line, const char *script, const char *library, int level)
{
	char path[PATH_MAX], *rest, *interpreter, *argument;

	line[strcspn(line, "\n")] = 0;
	interpreter = strtok_r(line, " \t", &rest);
	argument = interpreter ? strtok_r(NULL, " \t", &rest) : NULL;
	if (!interpreter || level >= SCRIPTS_MOST)
		return;
	check(interpreter, script, library, level + 1);
	if (strcmp(base(interpreter), "env"))
		return;
	if (argument && !strcmp(argument, "-S"))
		argument = strtok_r(NULL, " \t", &rest);
	if (argument && *argument != '-' && !strchr(argument, '=') &&
		find(argument, path, sizeof(path)))
		check(path, script, library, level + 1);
}

static void check(const char *path, const char *script, const char *library, int level)
{
	char head[256], subject[2 * PATH_MAX];
	struct program program;
	struct stat st;
	ssize_t n;
	int fd;

	snprintf(subject, sizeof(subject), script ? "%s (which runs %s)" : "%s", path, script);
	/* What cannot be run at all is for exec to say. */
	if (stat(path, &st) || !S_ISREG(st.st_mode) || access(path, X_OK))
		return;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		check_privileges(path, subject);
		complain("warning: %s cannot be read: whether it can be tuned is not known",
			subject);
		return;
	}
	if (read_program(fd, &program)) {
		check_privileges(path, subject);
		check_program(&program, subject, library);
	} else {
		n = pread(fd, head, sizeof(head) - 1, 0);
		head[n > 0 ? n : 0] = 0;
		if (!strncmp(head, "#!", 2))
			check_script(head + 2, script ? script : path, library, level);
		else
			complain("warning: %s is neither an ELF program nor a script: "
				 "what runs it is not known",
				subject);
	}
	close(fd);
}

void target_check(const char *command, const char *library)
{
	char path[PATH_MAX];

	if (find(command, path, sizeof(path)))
		check(path, NULL, library, 0);
}

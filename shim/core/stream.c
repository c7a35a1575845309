#include <errno.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../real.h"
#include "../sys.h"
#include "config.h"
#include "file.h"
#include "pass.h"
#include "stream.h"

typedef ssize_t read_slot(FILE *s, void *buf, ssize_t n);
typedef ssize_t write_slot(FILE *s, const void *buf, ssize_t n);
typedef off64_t seek_slot(FILE *s, off64_t off, int whence);
typedef int close_slot(FILE *s);
typedef int stat_slot(FILE *s, void *st);

/* libc's own. */
static read_slot *libc_read;
static write_slot *libc_write;
static seek_slot *libc_seek;
static close_slot *libc_close;
static stat_slot *libc_stat;

static ssize_t stream_read(FILE *s, void *buf, ssize_t n)
{
	struct file *f = file_enter(s->_fileno);

	if (!f) {
		heard();
		return before_block(s->_fileno, POLLIN) ? -1 : libc_read(s, buf, n);
	}
	ssize_t r = file_read(f, buf, n);
	file_put(f);
	if (r < 0)
		errno = -r;
	return r < 0 ? -1 : r;
}

/* All of it or an error, as libc's: the error is the stream's, the answer what was written. */
static ssize_t stream_write(FILE *s, const void *buf, ssize_t n)
{
	ssize_t done = 0;

	while (done < n) {
		struct file *f = file_enter(s->_fileno);
		ssize_t r;

		if (!f && !done && !before_word(s->_fileno))
			return libc_write(s, buf, n);
		if (f) {
			r = file_write(f, (const char *)buf + done, n - done);
			file_put(f);
		} else { /* released on the way, or interrupted before it began */
			r = done ? pass_write(s->_fileno, (const char *)buf + done, n - done) : -1;
			r = r < 0 ? -errno : r;
		}
		if (r < 0) {
			errno = -r;
			s->_flags |= _IO_ERR_SEEN;
			break;
		}
		done += r;
	}
	if (s->_offset >= 0)
		s->_offset += done;
	return done;
}

static off64_t stream_seek(FILE *s, off64_t off, int whence)
{
	if (whence > SEEK_CUR)
		file_drain_path(s->_fileno, "", AT_EMPTY_PATH);
	struct file *f = file_get(s->_fileno);
	if (!f)
		return libc_seek(s, off, whence);
	off64_t r = file_seek(f, off, whence);
	file_put(f);
	if (r < 0)
		errno = -r;
	return r < 0 ? -1 : r;
}

static int stream_close(FILE *s)
{
	int e = fdtable_close(s->_fileno);
	int r = libc_close(s);

	if (!e || r)
		return r;
	errno = -e;
	return -1;
}

static int stream_stat(FILE *s, void *st)
{
	file_drain_path(s->_fileno, "", AT_EMPTY_PATH);
	return file_told(libc_stat(s, st), st);
}

#define SLOTS         5
#define WITHOUT_CLOSE 3 /* streams of popen(3) close and wait by themselves */
#define TABLE_SIZE    21 /* entries of struct _IO_jump_t, in every glibc */

static void *const ours[SLOTS] = {
	(void *)stream_read,
	(void *)stream_write,
	(void *)stream_seek,
	(void *)stream_close,
	(void *)stream_stat,
};
static void **const theirs[SLOTS] = {
	(void **)&libc_read,
	(void **)&libc_write,
	(void **)&libc_seek,
	(void **)&libc_close,
	(void **)&libc_stat,
};
static const char *const names[SLOTS] = {
	"_IO_file_read",
	"_IO_file_write",
	"_IO_file_seek",
	"_IO_file_close",
	"_IO_file_stat",
};

/* Memory that the loader made read-only after relocation. */
struct relro {
	uintptr_t at, low, high;
};

static int look_for(struct dl_phdr_info *o, size_t size, void *arg)
{
	struct relro *r = arg;

	(void)size;
	for (int i = 0; i < o->dlpi_phnum; i++) {
		uintptr_t low = o->dlpi_addr + o->dlpi_phdr[i].p_vaddr;

		if (o->dlpi_phdr[i].p_type != PT_GNU_RELRO || r->at < low ||
			r->at >= low + o->dlpi_phdr[i].p_memsz)
			continue;
		r->low = low;
		r->high = low + o->dlpi_phdr[i].p_memsz;
		return 1;
	}
	return 0;
}

/* Puts ours where theirs are: all of them, or none. */
static bool change(void **table, int slots)
{
	struct relro r = {.at = (uintptr_t)table};
	int place[SLOTS];

	for (int i = 0; i < slots; i++) {
		int n = 0;

		while (n < TABLE_SIZE && table[n] != *theirs[i])
			n++;
		if (n == TABLE_SIZE)
			return false;
		place[i] = n;
	}
	uintptr_t page = page_size();
	uintptr_t low = r.at & ~(page - 1);
	size_t size = ((r.at + TABLE_SIZE * sizeof(*table) + page - 1) & ~(page - 1)) - low;
	bool locked = dl_iterate_phdr(look_for, &r);
	if (locked && sys_failed(sys(SYS_mprotect, low, size, PROT_READ | PROT_WRITE)))
		return false;
	for (int i = 0; i < slots; i++)
		__atomic_store_n(&table[place[i]], ours[i], __ATOMIC_RELEASE);
	if (locked)
		sys(SYS_mprotect, low, size, PROT_READ);
	return true;
}

static bool take_all(void)
{
	void **table = real_symbol("_IO_file_jumps"), **wide = real_symbol("_IO_wfile_jumps");

	for (int i = 0; i < SLOTS; i++) {
		*theirs[i] = real_symbol(names[i]);
		if (!*theirs[i])
			return false;
	}
	return table && wide && change(table, SLOTS) && change(wide, SLOTS);
}

static enum { UNDECIDED, TAKEN, LEFT } state;
static struct lock stream_lock;
static void **popen_table; /* of the streams of popen(3), which libc does not export */

bool stream_taken(void)
{
	return __atomic_load_n(&state, __ATOMIC_ACQUIRE) == TAKEN;
}

bool stream_take(void)
{
	struct quiet q;

	if (__atomic_load_n(&state, __ATOMIC_ACQUIRE) != UNDECIDED)
		return state == TAKEN;
	quiet_begin(&q);
	lock_take(&stream_lock);
	if (state == UNDECIDED) {
		bool all = take_all();

		if (all && popen_table)
			change(popen_table, WITHOUT_CLOSE);
		__atomic_store_n(&state, all ? TAKEN : LEFT, __ATOMIC_RELEASE);
	}
	lock_drop(&stream_lock);
	quiet_end(&q);
	return state == TAKEN;
}

void stream_popen(FILE *s)
{
	struct quiet q;

	if (__atomic_load_n(&popen_table, __ATOMIC_ACQUIRE))
		return;
	quiet_begin(&q);
	lock_take(&stream_lock);
	if (!popen_table) {
		void **table;

		/* struct _IO_FILE_plus: the table's address behind the FILE. */
		memcpy(&table, s + 1, sizeof(table));
		__atomic_store_n(&popen_table, table, __ATOMIC_RELEASE);
		if (state == TAKEN)
			change(table, WITHOUT_CLOSE);
	}
	lock_drop(&stream_lock);
	quiet_end(&q);
}

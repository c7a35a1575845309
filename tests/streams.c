/*
 * streams JOB IN OUT: uses stdio in the way that JOB names, prints what it saw,
 * the descriptors' offsets among it (asked from the kernel by lseek(2)).
 */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <pthread.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wchar.h>

static const char *in, *out;

static FILE *must(FILE *f)
{
	if (!f)
		err(1, "a stream");
	return f;
}

static unsigned sum_of(const unsigned char *p, size_t n, unsigned sum)
{
	while (n--)
		sum = sum * 31 + *p++;
	return sum;
}

static void where(const char *what, FILE *f)
{
	long at = ftell(f);
	long long fd = lseek(fileno(f), 0, SEEK_CUR);

	printf("%s: ftell %ld, descriptor %lld, eof %d, error %d\n", what, at, fd, feof(f) != 0,
		ferror(f) != 0);
}

static void bytes(void)
{
	FILE *a = must(fopen(in, "r")), *b = must(fopen(out, "w"));
	int c;

	while ((c = getc(a)) != EOF)
		putc(c, b);
	where("in", a);
	where("out", b);
	printf("%d %d\n", fclose(a), fclose(b));
}

static void blocks(void)
{
	static unsigned char buf[300000];
	static const size_t sizes[] = {1, 100, 4095, 4096, 4097, 70000, 300000};
	FILE *a = must(fopen64(in, "rb")), *b = must(fopen64(out, "wbe"));
	size_t n;

	for (int i = 0; (n = fread(buf, 1, sizes[i % 7], a)) > 0; i++) {
		if (fwrite(buf, 1, n, b) != n)
			err(1, "fwrite");
		if (i < 20)
			where("in", a);
		if (i < 20)
			where("out", b);
	}
	printf("%d %d\n", fclose(a), fclose(b));
}

static void lines(void)
{
	FILE *a = must(fopen(in, "r")), *b = must(fopen(out, "w+"));
	char *line = NULL;
	size_t size = 0;
	ssize_t n;
	unsigned sum = 0;

	while ((n = getline(&line, &size, a)) > 0) {
		fprintf(b, "%zd:", n);
		fwrite(line, 1, n, b);
	}
	rewind(b);
	while ((n = getdelim(&line, &size, 'x', b)) > 0)
		sum = sum_of((unsigned char *)line, n, sum);
	printf("%x\n", sum);
	free(line);
	printf("%d %d\n", fclose(a), fclose(b));
}

static void seeks(void)
{
	FILE *f = must(fopen(in, "r+"));
	unsigned char buf[5000];
	unsigned seed = 7;
	struct stat st;
	fpos_t pos;

	stat(in, &st);
	for (int i = 0; i < 400; i++) {
		seed = seed * 1103515245 + 12345;
		long at = seed / 16 % (st.st_size + 10000);
		size_t n = seed % sizeof(buf);

		switch (seed / 8192 % 9) {
		case 0:
			printf("set %d ", fseek(f, at, SEEK_SET));
			break;
		case 1:
			printf("cur %d ", fseeko(f, (long)(n % 3000) - 1500, SEEK_CUR));
			break;
		case 2:
			printf("end %d ", fseek(f, -(long)n, SEEK_END));
			break;
		case 3:
			n = fread(buf, 1, n, f);
			printf("read %zu %x ", n, sum_of(buf, n, 0));
			break;
		case 4:
			fseek(f, 0, SEEK_CUR);
			memset(buf, i, n);
			printf("write %zu ", fwrite(buf, 1, n, f));
			fseek(f, 0, SEEK_CUR);
			break;
		case 5:
			printf("unget %d ", ungetc('u', f));
			break;
		case 6:
			printf("flush %d ", fflush(f));
			break;
		case 7:
			printf("pos %d ", fgetpos(f, &pos));
			printf("%d ", fsetpos(f, &pos));
			break;
		case 8:
			printf("raw %zd ", (fflush(f), read(fileno(f), buf, n)));
			fseek(f, 0, SEEK_CUR);
			break;
		}
		where("", f);
		clearerr(f);
	}
	printf("%d\n", fclose(f));
}

static void buffers(void)
{
	static char big[1 << 20];
	static const struct {
		int mode;
		size_t size;
	} ways[] = {{_IONBF, 0}, {_IOLBF, 100}, {_IOFBF, 1000}, {_IOFBF, 65536}, {_IOFBF, sizeof(big)}};
	char line[200];

	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		FILE *a = must(fopen(in, "r")), *b = must(fopen(out, i ? "r+" : "w"));

		setvbuf(a, NULL, ways[i].mode, ways[i].size);
		setvbuf(b, big, ways[i].mode, ways[i].size);
		fseek(b, 0, SEEK_END);
		for (int k = 0; k < 3000 && fgets(line, sizeof(line), a); k++)
			fputs(line, b);
		where("in", a);
		where("out", b);
		printf("buffer %zu pending %zu\n", __fbufsize(a), __fpending(b));
		printf("%d %d\n", fclose(a), fclose(b));
	}
}

static void again(void)
{
	FILE *f = must(fopen(in, "r"));
	char buf[100];
	int fd = fileno(f), copy = dup(fd);

	fread(buf, 1, 100, f);
	f = must(freopen(out, "w+", f));
	/* where it was read to is not where the stream was */
	printf("same number %d, %ld\n", fileno(f) == fd, (long)lseek(copy, 0, SEEK_CUR));
	close(copy);
	for (int i = 0; i < 200000; i++)
		fprintf(f, "line %d\n", i);
	where("written", f);
	f = must(freopen(NULL, "r", f));
	printf("same number %d %s", fileno(f) == fd, fgets(buf, sizeof(buf), f));
	where("read", f);
	fseek(f, -7, SEEK_END);
	printf("%s", fgets(buf, sizeof(buf), f));
	printf("%d\n", fclose(f));
	f = must(fopen(out, "a+"));
	fputs("appended\n", f);
	where("appended", f);
	printf("%d\n", fclose(f));
}

static void wide(void)
{
	FILE *a = must(fopen(in, "r")), *b = must(fopen(out, "w"));
	FILE *c;
	wint_t w;
	long n = 0;

	setlocale(LC_ALL, "C.UTF-8");
	for (int i = 0; i < 300000; i++)
		fputwc(i % 5 ? L'a' + i % 26 : 0x20ac, b);
	printf("%d %ls\n", fwide(b, 0) > 0, L"\u00e9");
	where("wide", b);
	printf("%d\n", fclose(b));
	b = must(fopen(out, "r"));
	while ((w = fgetwc(b)) != WEOF)
		n += w;
	printf("%ld\n", n);
	where("wide", b);
	printf("%d %d\n", fclose(a), fclose(b));
	c = must(fopen(out, "r,ccs=UTF-8"));
	for (n = 0; n < 5000 && (w = fgetwc(c)) != WEOF; n++)
		;
	printf("%ld %lc\n", n, w);
	fclose(c);
}

/* The same description through a stream and through its number. */
static void mixed(void)
{
	int fd = open(out, O_RDWR | O_CREAT | O_TRUNC, 0644);
	char buf[8192];
	FILE *f;

	memset(buf, 'r', sizeof(buf));
	for (int i = 0; i < 300; i++)
		write(fd, buf, sizeof(buf));
	f = must(fdopen(fd, "r+"));
	where("opened", f);
	for (int i = 0; i < 100000; i++)
		fputs("stream", f);
	fflush(f);
	for (int i = 0; i < 300; i++)
		write(fd, buf, sizeof(buf));
	where("written", f);
	fseek(f, 1000, SEEK_SET);
	fread(buf, 1, 100, f);
	printf("raw %zd\n", read(fd, buf, 1000));
	where("read", f);
	dup2(fd, 1);
	printf("by the standard stream\n");
	fflush(stdout);
	write(1, "and raw\n", 8);
	printf("and by the stream again\n");
	fclose(f);
}

/* Who looks: a child, stat, another stream; and what exit does with what is not flushed. */
static void looked_at(void)
{
	FILE *f = must(fopen(out, "w")), *g;
	struct stat st;
	char command[5000], line[100];

	for (int i = 0; i < 100000; i++)
		fprintf(f, "%d\n", i);
	fflush(f);
	stat(out, &st);
	printf("size %lld\n", (long long)st.st_size);
	snprintf(command, sizeof(command), "cksum <%s", out);
	fflush(stdout);
	system(command);
	g = must(popen(command, "r"));
	printf("%s", fgets(line, sizeof(line), g));
	pclose(g);
	for (int i = 0; i < 100000; i++)
		fprintf(f, "%d\n", i);
	g = must(fopen(out, "r"));
	fseek(g, 0, SEEK_END);
	printf("multiple of the buffer %d\n", ftell(g) % 4096 == 0);
	fclose(g);
	fflush(stdout);
	if (!fork()) {
		fputs("child", f);
		fclose(f);
		_exit(0);
	}
	wait(NULL);
	fputs("parent", f);
	if (!must(tmpfile()))
		return;
}

/* libc writes the standard output before anything else is seen of the file. */
static void standard(void)
{
	static char b[700000];
	int fd = open(out, O_RDWR | O_CREAT | O_TRUNC, 0644);

	memset(b, 'r', sizeof(b));
	dup2(fd, 1);
	close(fd);
	printf("first\n");
	fflush(stdout);
	write(1, b, sizeof(b));
	printf("third\n");
	fflush(stdout);
	write(1, b, 100);
	write(1, b, sizeof(b));
	printf("the last, by exit\n");
}

static void errors(void)
{
	FILE *f = must(fopen(in, "r"));
	char c;

	printf("%d ", fputs("x", f) < 0);
	printf("%d %d ", fputc('x', f), errno);
	where("read only", f);
	fclose(f);
	f = must(fopen(out, "w"));
	printf("%zu %d ", fread(&c, 1, 1, f), errno);
	where("write only", f);
	for (int i = 0; i < 5000; i++)
		fputs("0123456789", f);
	close(fileno(f));
	printf("%d ", fflush(f));
	printf("%d\n", errno);
	printf("%d ", fclose(f));
	printf("%d\n", errno);
	f = fopen("/dev/full", "w");
	for (int i = 0; f && i < 5000; i++)
		fputs("0123456789", f);
	printf("%d ", fflush(f));
	printf("%d\n", errno);
	printf("%d\n", fopen("/nothing/there", "r") == NULL);
	f = must(fopen("/proc/self/comm", "r"));
	printf("%d\n", fgetc(f));
	fclose(f);
}

static FILE *shared;

static void *many(void *arg)
{
	for (int i = 0; i < 20000; i++)
		fprintf(shared, "thread %ld line %6d\n", (long)arg, i);
	return NULL;
}

static void threads(void)
{
	pthread_t t[4];
	char line[100];
	long n = 0, bad = 0, next[4] = {0};

	shared = must(fopen(out, "w"));
	for (long i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, many, (void *)i);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	fclose(shared);
	shared = must(fopen(out, "r"));
	for (; fgets(line, sizeof(line), shared); n++) {
		long who, number;

		bad += sscanf(line, "thread %ld line %ld", &who, &number) != 2 || who < 0 || who > 3 ||
			number != next[who]++;
	}
	printf("%ld lines, %ld out of order\n", n, bad);
	remove(out);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*job)(void);
	} jobs[] = {{"bytes", bytes}, {"blocks", blocks}, {"lines", lines}, {"seeks", seeks},
		{"buffers", buffers}, {"again", again}, {"wide", wide}, {"mixed", mixed},
		{"looked-at", looked_at}, {"standard", standard}, {"errors", errors}, {"threads", threads}};

	if (argc != 4)
		errx(2, "usage: streams JOB IN OUT");
	in = argv[2];
	out = argv[3];
	for (size_t i = 0; i < sizeof(jobs) / sizeof(*jobs); i++)
		if (!strcmp(jobs[i].name, argv[1]))
			return jobs[i].job(), 0;
	errx(2, "no job %s", argv[1]);
}

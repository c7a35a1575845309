/* What the injector and the program that drives it know together. */
#ifndef INJECT_LOG_H
#define INJECT_LOG_H

#define INJECT_MOST 4096

struct inject_log {
	int calls;        /* that the shim made, of all processes of the run */
	int fired;        /* calls that were made to fail */
	char fired_class; /* of the first that failed; R, W: data is read, written; K: fcntl,
	                     lseek; P: what the program may be told; O: the shim's own */
	char name[24];    /* of the first that failed */
	struct {
		char class, name[23];
	} call[INJECT_MOST];
};

#endif

/* Emits the other names of this family's calls: included last, with CALLS set. */
#define CALL(type, name, parameters)
#define SAME(alias_, name)                                                                         \
	EXPORT extern __typeof(wrap_##name) same_##alias_ __asm__(#alias_)                         \
		__attribute__((alias(#name)));
#include "../calls.def"

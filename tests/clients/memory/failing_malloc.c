/*
 * Preloaded into a server, lets allocations of pg_arrow_cache fail from the n-th on, or only that one, in the backend that asks for it:
 * the memory of everybody else, the server itself included, is left alone. `memory_fails_after(n, once)` begins, a negative number ends
 * it; both tell how many allocations there were since the last call.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "postgres.h"
#include "fmgr.h"

PG_MODULE_MAGIC;

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

static uintptr_t start, end;	/* where the code of the library is */
static int64 left = -1;			/* allocations that succeed; negative: all */
static bool once;				/* only one fails */
static int64 count;

static int
find(struct dl_phdr_info *info, size_t size, void *arg)
{
	if (strstr(info->dlpi_name, "/pg_arrow_cache.so") == NULL)
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++)
	{
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];

		if (segment->p_type == PT_LOAD && (segment->p_flags & PF_X))
		{
			start = info->dlpi_addr + segment->p_vaddr;
			end = start + segment->p_memsz;
		}
	}
	return 1;
}

static bool
fails(void *caller)
{
	if (left < 0 || (uintptr_t) caller < start || (uintptr_t) caller >= end)
		return false;
	count++;
	if (left > 0)
	{
		left--;
		return false;
	}
	if (once)
		left = INT64_MAX;
	errno = ENOMEM;
	return true;
}

void *
malloc(size_t size)
{
	return fails(__builtin_return_address(0)) ? NULL : __libc_malloc(size);
}

void *
calloc(size_t items, size_t size)
{
	return fails(__builtin_return_address(0)) ? NULL : __libc_calloc(items, size);
}

void *
realloc(void *place, size_t size)
{
	return fails(__builtin_return_address(0)) ? NULL : __libc_realloc(place, size);
}

int
posix_memalign(void **place, size_t alignment, size_t size)
{
	if (fails(__builtin_return_address(0)))
		return ENOMEM;
	*place = __libc_memalign(alignment, size);
	return *place == NULL ? ENOMEM : 0;
}

void *
aligned_alloc(size_t alignment, size_t size)
{
	return fails(__builtin_return_address(0)) ? NULL : __libc_memalign(alignment, size);
}

PG_FUNCTION_INFO_V1(memory_fails_after);

Datum
memory_fails_after(PG_FUNCTION_ARGS)
{
	int64		before = count;

	if (start == 0)
		dl_iterate_phdr(find, NULL);
	left = PG_GETARG_INT64(0);
	once = PG_GETARG_BOOL(1);
	count = 0;
	PG_RETURN_INT64(before);
}

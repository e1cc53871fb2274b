/* What all kernels share. `fields.h` is made of `ibbmaster.kernel.fields` and `calls`. Numbers wrap around (-fwrapv),
nothing is allocated, and every length is checked before it is used. Functions named put_... write at a place, and
return the one behind; NULL for the reference. */
#ifndef IBBMASTER_KERNELS_H
#define IBBMASTER_KERNELS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "fields.h"

_Static_assert(sizeof(long) == 8, "numbers have 64 bits");
typedef uint8_t byte;

#define EVENT_HEADER EVENT_HEADER_SIZE
#define EVENT_MAX (1 << 30)
#define GROUP_BEGIN (GTID_FLAGS_OFFSET + 1) /* bytes of a GTID event that identify its group */
#define CHUNK_HEADER CHUNK_HEADER_SIZE
#define COMMIT RecordType_COMMIT
#define OOB_DATA RecordType_OOB_DATA
#define GTID_STATE RecordType_GTID_STATE

#define ROW(type, table, number) ((type *)(table).at + (number))

static inline long *number_at(Rows table, long row, long column) {
    return (long *)table.at + row * table.columns + column;
}

/* A function that Python calls: `a` are its arguments; where it gives two words, `more` is the second. */
#define KERNEL(name) long ibbmaster_##name(const name##_args *a, __attribute__((unused)) long *more)

static inline long min64(long one, long other) { return one < other ? one : other; }
static inline long max64(long one, long other) { return one > other ? one : other; }

static inline void copy(byte *to, const byte *from, long size) { memcpy(to, from, (size_t)size); }

/* Numbers at any address. */
typedef struct { uint16_t is; } __attribute__((packed)) Any16;
typedef struct { uint32_t is; } __attribute__((packed)) Any32;
typedef struct { uint64_t is; } __attribute__((packed)) Any64;

static inline long load16(const byte *at) { return ((const Any16 *)at)->is; }
static inline long load32(const byte *at) { return ((const Any32 *)at)->is; }
static inline uint64_t load64(const byte *at) { return ((const Any64 *)at)->is; }

static inline void store16(byte *at, long value) { ((Any16 *)at)->is = (uint16_t)value; }
static inline void store32(byte *at, long value) { ((Any32 *)at)->is = (uint32_t)value; }
static inline void store64(byte *at, uint64_t value) { ((Any64 *)at)->is = value; }

#endif

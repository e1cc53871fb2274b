/* What all kernels share: memory as it comes from Python, loads and stores at any address.

`fields.h` is made of `ibbmaster.kernel.fields` and `calls`: types of arrays and tuples, places in them, arguments of
each kernel. Numbers wrap around (-fwrapv), nothing is allocated, and every length is checked before it is used. */
#ifndef IBBMASTER_KERNELS_H
#define IBBMASTER_KERNELS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "fields.h"

/* A row of a table. */
#define ROW(type, table, number) ((type *)(table).at + (number))

/* A place in a table of plain numbers. */
static inline int64_t *number_at(NumberRows table, int64_t row, int64_t column) {
    return (int64_t *)table.at + row * table.columns + column;
}

/* A function that Python calls: `a` are its arguments; where it gives two words, `more` is the second. */
#define KERNEL(name) int64_t ibbmaster_##name(const name##_args *a, __attribute__((unused)) int64_t *more)

static inline int64_t min64(int64_t one, int64_t other) { return one < other ? one : other; }
static inline int64_t max64(int64_t one, int64_t other) { return one > other ? one : other; }

static inline int64_t load16(const uint8_t *at) {
    uint16_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static inline int64_t load32(const uint8_t *at) {
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static inline uint64_t load64(const uint8_t *at) {
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static inline uint64_t load64_big(const uint8_t *at) { return __builtin_bswap64(load64(at)); }

static inline void store32(uint8_t *at, int64_t value) {
    uint32_t number = (uint32_t)value;
    memcpy(at, &number, sizeof number);
}

static inline void store64(uint8_t *at, uint64_t value) { memcpy(at, &value, sizeof value); }

#endif

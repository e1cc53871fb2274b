/* Values as rows hold them; false if one is not as it should be. The references: `ibbmaster.replication.event.rows`. */

#define DAY_S 86400
#define WORD_DIGITS 9   /* of a DECIMAL: four bytes hold nine digits ... */
#define SMALL_DIGITS 19 /* of a number that fits into 64 bits */

static const byte PART_SIZES[] = {0, 1, 1, 2, 2, 3, 3, 4, 4, 4}; /* ... and of fewer digits */
static const long POWERS[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000, 1000000000};

typedef struct { long year, month, day; } Date;
typedef struct { long hour, minute, second, microsecond; } Clock; /* of a TIME, hours go on beyond a day */
typedef struct { Date date; Clock clock; } Moment;

/* A number of 1 to 8 bytes, the lowest first; `big`: the highest. */
static inline uint64_t little(Bytes data, long offset, long size) {
    if (offset + 8 <= data.size)
        return load64(data.at + offset) & (UINT64_MAX >> (64 - 8 * size));
    uint64_t value = 0;
    for (long index = 0; index < size; index++)
        value |= (uint64_t)data.at[offset + index] << 8 * index;
    return value;
}

static inline uint64_t big(Bytes data, long offset, long size) {
    if (offset + 8 <= data.size)
        return __builtin_bswap64(load64(data.at + offset)) >> (64 - 8 * size);
    uint64_t value = 0;
    for (long index = 0; index < size; index++)
        value = value << 8 | data.at[offset + index];
    return value;
}

static inline long floor_div(long number, long divisor) {
    return number / divisor - (number % divisor != 0 && (number < 0) != (divisor < 0));
}

/* Find days since 1970 of a day; false if the years 1 to 9999 have no such day. */
static inline bool days_of(long year, long month, long day, long *days) {
    *days = 0;
    if (year < 1 || year > 9999 || month < 1 || month > 12 || day < 1)
        return false;
    /* Years that begin in March, so that the leap day is their last; unsigned numbers are divided sooner. */
    uint64_t is_early = month <= 2;
    uint64_t years = (uint64_t)year - is_early, months = (uint64_t)month + 12 * is_early - 3;
    uint64_t centuries = years / 100;
    uint64_t before = years * 365 + (years >> 2) - centuries + (centuries >> 2) + (153 * months + 2) / 5;
    *days = (long)before + day - 719469;
    if (day <= 28)
        return true;
    bool is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return day <= (month == 2 ? 28 + is_leap : 30 + ((month + (month >> 3)) & 1));
}

static inline Date date_of(long days) {
    long shifted = days + 719468;
    long era = floor_div(shifted, 146097), day_of_era = shifted - era * 146097;
    long year = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    long day_of_year = day_of_era - (365 * year + year / 4 - year / 100);
    long month = (5 * day_of_year + 2) / 153; /* from March on */
    long day = day_of_year - (153 * month + 2) / 5 + 1;
    month += month < 10 ? 3 : -9;
    return (Date){era * 400 + year + (month <= 2), month, day};
}

/* Microseconds of a fraction of a second with `digits` digits; -1 if it is none. */
static inline long fraction_of(Bytes data, long offset, long digits) {
    if (digits == 0)
        return 0;
    long size = (digits + 1) / 2, value = (long)big(data, offset, size);
    if (value >= POWERS[2 * size])
        return -1;
    if (digits % 2 == 1)
        value = value / 10 * 10; /* one digit more is stored than there is */
    return value * POWERS[6 - 2 * size];
}

static inline Date date_at(Bytes data, long offset) {
    long value = (long)little(data, offset, 3);
    return (Date){value >> 9, value >> 5 & 15, value & 31};
}

static inline bool datetime_at(Bytes data, long offset, long digits, Moment *moment) {
    long value = (long)big(data, offset, 5) - (INT64_C(1) << 39);
    long microsecond = fraction_of(data, offset + 5, digits);
    long year_month = value >> 22, year = (long)((uint64_t)year_month / 13);
    moment->date = (Date){year, year_month - 13 * year, value >> 17 & 31};
    moment->clock = (Clock){value >> 12 & 31, value >> 6 & 63, value & 63, microsecond};
    return value >= 0 && microsecond >= 0;
}

static inline bool time_at(Bytes data, long offset, long digits, Clock *clock, bool *is_negative) {
    long size = (digits + 1) / 2, bits = 8 * size;
    long packed = (long)big(data, offset, 3 + size) - (INT64_C(0x800000) << bits);
    *is_negative = packed < 0;
    if (packed < 0)
        packed = -packed;
    long value = packed >> bits, fraction = packed & ((INT64_C(1) << bits) - 1);
    long microsecond = fraction * POWERS[6 - 2 * size];
    if (digits % 2 == 1)
        microsecond -= microsecond % POWERS[6 - digits];
    *clock = (Clock){value >> 12 & 1023, value >> 6 & 63, value & 63, microsecond};
    return fraction < POWERS[2 * size];
}

static inline Moment moment_of(long seconds, long microsecond) {
    long days = floor_div(seconds, DAY_S), of_day = seconds - days * DAY_S;
    return (Moment){date_of(days), {of_day / 3600, of_day / 60 % 60, of_day % 60, microsecond}};
}

/* Read a TIMESTAMP, shown some seconds east of UTC; all zeros if all its bytes are. */
static inline bool timestamp_at(Bytes data, long offset, long size, long digits, long zone_s, Moment *moment) {
    long microsecond = fraction_of(data, offset + 4, digits);
    *moment = (Moment){{0, 0, 0}, {0, 0, 0, microsecond}};
    if (big(data, offset, size)) /* also a digit that is not shown */
        *moment = moment_of((long)big(data, offset, 4) + zone_s, microsecond);
    return microsecond >= 0;
}

/* A part of a DECIMAL; the first one has the sign. Signs come as they like: a branch would be guessed wrong. */
static inline uint64_t part_of(Bytes data, long offset, long size, bool is_first, bool is_negative) {
    uint64_t part = big(data, offset, size) ^ (uint64_t)is_first << (8 * size - 1);
    return part ^ (((uint64_t)is_negative << 8 * size) - is_negative);
}

/* Read a DECIMAL of up to 38 digits. */
static inline bool read_decimal(Bytes data, long offset, long digits, long scale, __int128 *value) {
    long whole = digits - scale;
    bool is_negative = !(data.at[offset] & 0x80);
    if (0 < whole && whole < WORD_DIGITS && 0 < scale && scale < WORD_DIGITS) { /* two parts, as most have */
        uint64_t part = part_of(data, offset, PART_SIZES[whole], true, is_negative);
        uint64_t behind = part_of(data, offset + PART_SIZES[whole], PART_SIZES[scale], false, is_negative);
        uint64_t limit = (uint64_t)POWERS[scale], low = part * limit + behind;
        *value = (long)((low ^ -(uint64_t)is_negative) + is_negative);
        return part < (uint64_t)POWERS[whole] && behind < limit;
    }
    long first = whole % WORD_DIGITS, last = scale % WORD_DIGITS;
    long total = (first > 0) + whole / WORD_DIGITS + scale / WORD_DIGITS + (last > 0);
    unsigned __int128 found = 0;
    for (long group = 0; group < total; group++) {
        long count = group == 0 && first ? first : group == total - 1 && last ? last : WORD_DIGITS;
        uint64_t part = part_of(data, offset, PART_SIZES[count], group == 0, is_negative);
        uint64_t limit = (uint64_t)POWERS[count];
        if (part >= limit)
            return false;
        found = digits <= SMALL_DIGITS ? (uint64_t)found * limit + part : found * limit + part;
        offset += PART_SIZES[count];
    }
    *value = (__int128)(is_negative ? -found : found);
    return true;
}

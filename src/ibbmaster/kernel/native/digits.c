/* Numbers, days and clocks as text. Each function writes at a place, and returns the one behind what it has written. */

#define DAY_S 86400

static const char PAIRS[] = /* two digits, side by side */
    "0001020304050607080910111213141516171819202122232425262728293031323334353637383940414243444546474849"
    "5051525354555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899";
static const uint64_t LIMITS[] = {
    1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000, 1000000000, 10000000000, 100000000000,
    1000000000000, 10000000000000, 100000000000000, 1000000000000000, 10000000000000000, 100000000000000000,
    1000000000000000000, 10000000000000000000u,
};

typedef struct { int64_t year, month, day; } Date;

/* Write two digits. */
static inline uint8_t *put_two(uint8_t *at, int64_t value) {
    memcpy(at, PAIRS + 2 * value, 2);
    return at + 2;
}

/* Write the last `count` digits of a number. */
static inline uint8_t *put_digits(uint8_t *at, uint64_t value, int64_t count) {
    uint8_t *end = at + count, *place = end;
    for (; place - at >= 2; value /= 100) {
        place -= 2;
        put_two(place, (int64_t)(value % 100));
    }
    if (place > at)
        *at = (uint8_t)('0' + value % 10);
    return end;
}

/* Write a number with zeros in front up to a width. */
static inline uint8_t *put_number(uint8_t *at, uint64_t value, int64_t width) {
    int64_t count = 1;
    while (count < 20 && value >= LIMITS[count])
        count++;
    return put_digits(at, value, max64(count, width));
}

/* Year, month and day of a day since 1970. */
static inline Date date_of(int64_t days) {
    int64_t shifted = days + 719468;
    int64_t era = floor_div(shifted, 146097), day_of_era = shifted - era * 146097;
    int64_t year = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year + year / 4 - year / 100);
    int64_t month = (5 * day_of_year + 2) / 153; /* from March on */
    int64_t day = day_of_year - (153 * month + 2) / 5 + 1;
    month += month < 10 ? 3 : -9;
    return (Date){era * 400 + year + (month <= 2), month, day};
}

/* Write a date. */
static inline uint8_t *put_date(uint8_t *at, Date date) {
    at = put_digits(at, (uint64_t)date.year, 4);
    *at++ = '-';
    at = put_two(at, date.month);
    *at++ = '-';
    return put_two(at, date.day);
}

/* Write hours, minutes, seconds and some digits of a second. */
static inline uint8_t *put_clock(uint8_t *at, int64_t hour, int64_t minute, int64_t second, int64_t microsecond,
                                 int64_t digits) {
    at = put_number(at, (uint64_t)hour, 2);
    *at++ = ':';
    at = put_two(at, minute);
    *at++ = ':';
    at = put_two(at, second);
    if (digits) {
        *at++ = '.';
        at = put_digits(at, (uint64_t)(microsecond / POWERS[6 - digits]), digits);
    }
    return at;
}

/* Numbers, days and clocks as text. */

static const char PAIRS[] = /* two digits, side by side */
    "0001020304050607080910111213141516171819202122232425262728293031323334353637383940414243444546474849"
    "5051525354555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899";
static const uint64_t LIMITS[] = {
    1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000, 1000000000, 10000000000, 100000000000,
    1000000000000, 10000000000000, 100000000000000, 1000000000000000, 10000000000000000, 100000000000000000,
    1000000000000000000, 10000000000000000000u,
};

static inline byte *put_two(byte *at, long value) {
    memcpy(at, PAIRS + 2 * value, 2);
    return at + 2;
}

static inline byte *put_digits(byte *at, uint64_t value, long count) {
    byte *end = at + count, *place = end;
    for (; place - at >= 2; value /= 100) {
        place -= 2;
        put_two(place, (long)(value % 100));
    }
    if (place > at)
        *at = (byte)('0' + value % 10);
    return end;
}

/* A number with zeros in front up to a width. */
static inline byte *put_number(byte *at, uint64_t value, long width) {
    long count = 1;
    while (count < 20 && value >= LIMITS[count])
        count++;
    return put_digits(at, value, max64(count, width));
}

static inline byte *put_date(byte *at, Date date) {
    at = put_digits(at, (uint64_t)date.year, 4);
    *at++ = '-';
    at = put_two(at, date.month);
    *at++ = '-';
    return put_two(at, date.day);
}

static inline byte *put_clock(byte *at, Clock clock, long digits) {
    at = put_number(at, (uint64_t)clock.hour, 2);
    *at++ = ':';
    at = put_two(at, clock.minute);
    *at++ = ':';
    at = put_two(at, clock.second);
    if (digits) {
        *at++ = '.';
        at = put_digits(at, (uint64_t)(clock.microsecond / POWERS[6 - digits]), digits);
    }
    return at;
}

static inline byte *put_moment(byte *at, Moment moment, char letter, long digits) {
    at = put_date(at, moment.date);
    *at++ = (byte)letter;
    return put_clock(at, moment.clock, digits);
}

static inline byte *put_signed(byte *at, long value) {
    if (value < 0)
        *at++ = '-';
    return put_number(at, value < 0 ? -(uint64_t)value : (uint64_t)value, 1);
}

/* The reference: `ibbmaster.replication.event.rows.kinds.decimals`. */
static byte *put_decimal(byte *at, Bytes data, long start, long digits, long scale) {
    bool is_negative = !(data.at[start] & 0x80), has_digit = false, is_zero = true;
    long whole = digits - scale, first = whole % WORD_DIGITS, last = scale % WORD_DIGITS;
    long whole_groups = whole / WORD_DIGITS + (first > 0);
    long total = whole_groups + scale / WORD_DIGITS + (last > 0);
    byte *begin = at++; /* for the sign */
    for (long group = 0; group < total; group++) {
        long count = group == 0 && first ? first : group == total - 1 && last ? last : WORD_DIGITS;
        uint64_t part = part_of(data, start, PART_SIZES[count], group == 0, is_negative);
        if (part >= (uint64_t)POWERS[count])
            return NULL;
        start += PART_SIZES[count];
        is_zero = is_zero && !part;
        if (group == whole_groups) {
            if (!has_digit)
                *at++ = '0';
            *at++ = '.';
            has_digit = true;
        }
        if (has_digit) {
            at = put_digits(at, part, count);
        } else if (part) {
            at = put_number(at, part, 1);
            has_digit = true;
        }
    }
    if (!has_digit)
        *at++ = '0';
    if (is_negative && !is_zero) {
        *begin = '-';
        return at;
    }
    memmove(begin, begin + 1, (size_t)(at - begin - 1));
    return at - 1;
}

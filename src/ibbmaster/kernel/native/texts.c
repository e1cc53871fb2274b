/* A kernel that writes a column of values as the text MariaDB shows. The references: `ibbmaster.replication.event.column_types`. */

#define INET6_WORDS 8
#define UUID_SIZE 16
#define UUID_VARIANT_BIT 0x80
#define REORDERED_VARIANT_BYTE 6 /* where a stored UUID in reverse order has its variant ... */
#define REORDERED_VERSION_BYTE 8 /* ... and its version */
#define REORDERED_VERSION_END 0x60

static const uint8_t STORED_AT[] = {12, 13, 14, 15, 10, 11, 8, 9, 6, 7, 0, 1, 2, 3, 4, 5}; /* its bytes, so stored */
static const char HEX_DIGITS[] = "0123456789abcdef";

/* A byte of a string of fixed length, which travels without the zeros at its end. */
static inline int64_t byte_of(const uint8_t *value, int64_t size, int64_t index) {
    return index < size ? value[index] : 0;
}

/* Write a UUID; returns the place behind it. */
static uint8_t *put_uuid(uint8_t *at, const uint8_t *value, int64_t size) {
    int64_t version = byte_of(value, size, REORDERED_VERSION_BYTE);
    bool is_reordered = byte_of(value, size, REORDERED_VARIANT_BYTE) & UUID_VARIANT_BIT && 0 < version &&
                        version < REORDERED_VERSION_END;
    for (int64_t index = 0; index < UUID_SIZE; index++) {
        if (index == 4 || index == 6 || index == 8 || index == 10)
            *at++ = '-';
        int64_t byte = byte_of(value, size, is_reordered ? STORED_AT[index] : index);
        *at++ = (uint8_t)HEX_DIGITS[byte >> 4];
        *at++ = (uint8_t)HEX_DIGITS[byte & 15];
    }
    return at;
}

/* Write four bytes from number `first` on as dotted decimals; returns the place behind them. */
static uint8_t *put_inet4(uint8_t *at, const uint8_t *value, int64_t size, int64_t first) {
    for (int64_t index = first; index < first + 4; index++) {
        if (index > first)
            *at++ = '.';
        at = put_number(at, (uint64_t)byte_of(value, size, index), 1);
    }
    return at;
}

/* A word of an INET6. */
static inline int64_t word_of(const uint8_t *value, int64_t size, int64_t index) {
    return byte_of(value, size, 2 * index) << 8 | byte_of(value, size, 2 * index + 1);
}

/* Write a word in hexadecimal digits without zeros in front; returns the place behind it. */
static inline uint8_t *put_word(uint8_t *at, int64_t word) {
    int64_t shift = 12;
    while (shift && !(word >> shift))
        shift -= 4;
    for (; shift >= 0; shift -= 4)
        *at++ = (uint8_t)HEX_DIGITS[word >> shift & 15];
    return at;
}

/* Write an INET6; returns the place behind it. */
static uint8_t *put_inet6(uint8_t *at, const uint8_t *value, int64_t size) {
    int64_t gap = 0, gap_size = 0, begin = 0; /* the longest run of zeros */
    for (int64_t index = 0; index <= INET6_WORDS; index++) {
        if (index < INET6_WORDS && !word_of(value, size, index))
            continue;
        if (index - begin > gap_size) {
            gap = begin;
            gap_size = index - begin;
        }
        begin = index + 1;
    }
    bool is_mapped = gap == 0 && gap_size == 5 && word_of(value, size, 5) == 0xFFFF;
    bool has_decimals = is_mapped || (gap == 0 && gap_size == 6);
    int64_t index = 0;
    while (index < (has_decimals ? 6 : INET6_WORDS)) {
        if (gap_size && index == gap) {
            *at++ = ':';
            *at++ = ':';
            index += gap_size;
            continue;
        }
        if (index && index != gap + gap_size)
            *at++ = ':';
        at = put_word(at, word_of(value, size, index));
        index++;
    }
    if (!has_decimals)
        return at;
    if (is_mapped)
        *at++ = ':';
    return put_inet4(at, value, size, 12);
}

/* Write a TIME with some digits of a second; returns the place behind it, or NULL if it is none. */
static uint8_t *put_time(uint8_t *at, Bytes data, int64_t start, int64_t digits) {
    Clock clock;
    bool is_negative;
    if (!time_at(data, start, digits, &clock, &is_negative))
        return NULL;
    if (is_negative)
        *at++ = '-';
    return put_clock(at, clock, digits);
}

/* Write a TIMESTAMP in UTC, with a letter before its clock; returns the place behind it, or NULL if it is none. */
static uint8_t *put_timestamp(uint8_t *at, Bytes data, int64_t start, int64_t size, int64_t digits, char letter) {
    int64_t microsecond = fraction_of(data, start + 4, digits);
    bool is_zero = !big(data, start, size); /* also a digit that is not shown */
    if (microsecond < 0 || (is_zero && letter == 'T'))
        return NULL;
    Moment moment = {{0, 0, 0}, {0, 0, 0, microsecond}};
    if (!is_zero)
        moment = moment_of((int64_t)big(data, start, 4), microsecond);
    return put_moment(at, moment, letter, digits);
}

/* Write a DATETIME; returns the place behind it, or NULL if it is none. */
static uint8_t *put_datetime(uint8_t *at, Bytes data, int64_t start, int64_t digits) {
    Moment moment;
    bool is_good = datetime_at(data, start, digits, &moment) && moment.date.year <= 9999;
    return is_good ? put_moment(at, moment, ' ', digits) : NULL;
}

/* Write a DATE; returns the place behind it, or NULL if it is none. */
static uint8_t *put_plain_date(uint8_t *at, Bytes data, int64_t start) {
    int64_t value = (int64_t)little(data, start, 3);
    return value >> 9 > 9999 ? NULL : put_date(at, (Date){value >> 9, value >> 5 & 15, value & 31});
}

/* Write a value of this kind, of at most `argument` bytes; with a clock, `argument` is the digits of a second.

Returns the place behind it, or NULL if it is for the reference. */
static inline uint8_t *put_text(uint8_t *at, Bytes data, int64_t start, int64_t size, int64_t op, int64_t argument) {
    switch (op) {
    case TextOp_TIME:
        return put_time(at, data, start, argument);
    case TextOp_DATE:
        return put_plain_date(at, data, start);
    case TextOp_DATETIME:
        return put_datetime(at, data, start, argument);
    case TextOp_TIMESTAMP:
        return put_timestamp(at, data, start, size, argument, ' ');
    }
    if (size > argument)
        return NULL;
    if (op == TextOp_UUID)
        return put_uuid(at, data.at + start, size);
    if (op == TextOp_INET6)
        return put_inet6(at, data.at + start, size);
    return put_inet4(at, data.at + start, size, 0);
}

/* Write values as texts side by side, see `put_text`; absent ones are empty. `out` has room for the longest ones.

Returns how many bytes they take, -1 if one of them is for the reference. */
KERNEL(write_texts) {
    uint8_t *at = a->out.at;
    a->offsets.at[0] = 0;
    for (int64_t index = 0; index < a->starts.size; index++) {
        if (a->valid.at[index])
            at = put_text(at, a->data, a->starts.at[index], a->sizes.at[index], a->op, a->argument);
        if (!at)
            return -1;
        a->offsets.at[index + 1] = (int32_t)(at - a->out.at);
    }
    return at - a->out.at;
}

/* A kernel that writes values as MariaDB shows them. The references: `ibbmaster.replication.event.column_types`. */

#define INET6_WORDS 8
#define UUID_SIZE 16
#define UUID_VARIANT_BIT 0x80
#define REORDERED_VARIANT_BYTE 6 /* where a stored UUID in reverse order has its variant ... */
#define REORDERED_VERSION_BYTE 8 /* ... and its version */
#define REORDERED_VERSION_END 0x60

static const byte STORED_AT[] = {12, 13, 14, 15, 10, 11, 8, 9, 6, 7, 0, 1, 2, 3, 4, 5}; /* its bytes, so stored */
static const char HEX_DIGITS[] = "0123456789abcdef";

/* A byte of a string of fixed length, which travels without the zeros at its end. */
static inline long byte_of(const byte *value, long size, long index) { return index < size ? value[index] : 0; }

static byte *put_uuid(byte *at, const byte *value, long size) {
    long version = byte_of(value, size, REORDERED_VERSION_BYTE);
    bool is_reordered = byte_of(value, size, REORDERED_VARIANT_BYTE) & UUID_VARIANT_BIT && 0 < version &&
                        version < REORDERED_VERSION_END;
    for (long index = 0; index < UUID_SIZE; index++) {
        if (index == 4 || index == 6 || index == 8 || index == 10)
            *at++ = '-';
        long one = byte_of(value, size, is_reordered ? STORED_AT[index] : index);
        *at++ = (byte)HEX_DIGITS[one >> 4];
        *at++ = (byte)HEX_DIGITS[one & 15];
    }
    return at;
}

/* Four bytes from number `first` on as dotted decimals. */
static byte *put_inet4(byte *at, const byte *value, long size, long first) {
    for (long index = first; index < first + 4; index++) {
        if (index > first)
            *at++ = '.';
        at = put_number(at, (uint64_t)byte_of(value, size, index), 1);
    }
    return at;
}

static inline long word_of(const byte *value, long size, long index) {
    return byte_of(value, size, 2 * index) << 8 | byte_of(value, size, 2 * index + 1);
}

static inline byte *put_word(byte *at, long word) {
    long shift = 12;
    while (shift && !(word >> shift))
        shift -= 4;
    for (; shift >= 0; shift -= 4)
        *at++ = (byte)HEX_DIGITS[word >> shift & 15];
    return at;
}

static byte *put_inet6(byte *at, const byte *value, long size) {
    long gap = 0, gap_size = 0, begin = 0; /* the longest run of zeros */
    for (long index = 0; index <= INET6_WORDS; index++) {
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
    for (long index = 0; index < (has_decimals ? 6 : INET6_WORDS); index++) {
        if (gap_size && index == gap) {
            *at++ = ':';
            *at++ = ':';
            index += gap_size - 1;
            continue;
        }
        if (index && index != gap + gap_size)
            *at++ = ':';
        at = put_word(at, word_of(value, size, index));
    }
    if (!has_decimals)
        return at;
    if (is_mapped)
        *at++ = ':';
    return put_inet4(at, value, size, 12);
}

static byte *put_time(byte *at, Bytes data, long start, long digits, long shown) {
    Clock clock;
    bool is_negative;
    if (!time_at(data, start, digits, &clock, &is_negative))
        return NULL;
    if (is_negative)
        *at++ = '-';
    return put_clock(at, clock, shown);
}

/* A value of this kind, of at most `argument` bytes; with a clock, `argument` is the digits of a second. A TIMESTAMP is
in UTC, with `letter` before its clock; all zeros need a space there. */
static inline byte *put_text(byte *at, Bytes data, long start, long size, long op, long argument, char letter) {
    Moment moment;
    switch (op) {
    case TextOp_TIME:
        return put_time(at, data, start, argument, argument);
    case TextOp_DATE:
        moment.date = date_at(data, start);
        return moment.date.year > 9999 ? NULL : put_date(at, moment.date);
    case TextOp_DATETIME:
        if (!datetime_at(data, start, argument, &moment) || moment.date.year > 9999)
            return NULL;
        return put_moment(at, moment, ' ', argument);
    case TextOp_TIMESTAMP:
        if (!timestamp_at(data, start, size, argument, 0, &moment) || (letter == 'T' && !moment.date.year))
            return NULL;
        return put_moment(at, moment, letter, argument);
    }
    if (size > argument)
        return NULL;
    if (op == TextOp_UUID)
        return put_uuid(at, data.at + start, size);
    if (op == TextOp_INET6)
        return put_inet6(at, data.at + start, size);
    return put_inet4(at, data.at + start, size, 0);
}

/* Write values as texts side by side; absent ones are empty. `out` has room for the longest ones. Returns how many
bytes they take, -1 if one of them is for the reference. */
KERNEL(write_texts) {
    byte *at = a->out.at;
    a->offsets.at[0] = 0;
    for (long index = 0; index < a->starts.size; index++) {
        if (a->valid.at[index])
            at = put_text(at, a->data, a->starts.at[index], a->sizes.at[index], a->op, a->how, ' ');
        if (!at)
            return -1;
        a->offsets.at[index + 1] = (int32_t)(at - a->out.at);
    }
    return at - a->out.at;
}

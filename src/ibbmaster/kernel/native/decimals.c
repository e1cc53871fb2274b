/* What writes a DECIMAL as text. The reference: `ibbmaster.event.rows.kinds.decimals`. */

/* Write a DECIMAL; returns the place behind it, or NULL if it is none. */
static uint8_t *put_decimal(uint8_t *at, Bytes data, int64_t start, int64_t digits, int64_t scale) {
    bool is_negative = !(data.at[start] & 0x80), has_digit = false, is_zero = true;
    int64_t whole = digits - scale;
    int64_t first = whole % WORD_DIGITS, last = scale % WORD_DIGITS;
    int64_t whole_groups = whole / WORD_DIGITS + (first > 0);
    int64_t total = whole_groups + scale / WORD_DIGITS + (last > 0);
    uint8_t *begin = at++; /* for the sign */
    for (int64_t group = 0; group < total; group++) {
        int64_t count = group == 0 && first ? first : group == total - 1 && last ? last : WORD_DIGITS;
        uint64_t part = part_of(data, start, PART_SIZES[count], group == 0, is_negative);
        if (part >= (uint64_t)POWERS[count])
            return NULL;
        start += PART_SIZES[count];
        if (part)
            is_zero = false;
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

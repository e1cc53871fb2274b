/* Kernels that write changes of rows as lines of text: steps say what a line has.

The references: the printers of `ibbmaster.printing`. */

#define DELETED 127
#define SLACK 64                /* bytes of room that every step has beyond what is counted */
#define VALUE_SIZE_MAX (39 + 2) /* bytes of values other than strings and decimals: two more than the longest text */
#define EACH UINT64_C(0x0101010101010101) /* times a byte: eight of it */

static const char LETTERS_64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const char SHORT[128] = { /* the letter after a backslash of what has one */
    ['"'] = '"', ['\\'] = '\\', ['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't',
};

/* Copy some bytes, to a place before `end`; returns the place behind them. */
static inline uint8_t *put_bytes(uint8_t *at, const uint8_t *end, Bytes source, int64_t start, int64_t size) {
    if (size <= 32 && start + 32 <= source.size && end - at >= 32)
        memcpy(at, source.at + start, 32); /* what is too much is written over */
    else
        memcpy(at, source.at + start, (size_t)size);
    return at + size;
}

/* Write the number of a letter in four hexadecimal digits; returns the place behind it. */
static inline uint8_t *put_escape(uint8_t *at, int64_t letter) {
    *at++ = '\\';
    *at++ = 'u';
    for (int64_t shift = 12; shift >= 0; shift -= 4)
        *at++ = (uint8_t)HEX_DIGITS[letter >> shift & 15];
    return at;
}

/* Whether a byte goes on with a letter that has begun. */
static inline bool is_rest(uint8_t byte) { return (byte & 0xC0) == 0x80; }

/* Read the letter of several bytes that begins a text of `left` bytes; returns its bytes, 0 if there is none. */
static int64_t letter_at(const uint8_t *text, int64_t left, int64_t *letter) {
    int64_t first = text[0];
    if (first < 0xC2 || first >= 0xF5 || left < 2 || !is_rest(text[1]))
        return 0;
    int64_t found = text[1] & 63;
    if (first < 0xE0) {
        *letter = (first & 31) << 6 | found;
        return 2;
    }
    if (left < 3 || !is_rest(text[2]))
        return 0;
    found = found << 6 | (text[2] & 63);
    if (first < 0xF0) {
        *letter = (first & 15) << 12 | found;
        return *letter >= 0x800 && (*letter < 0xD800 || *letter >= 0xE000) ? 3 : 0;
    }
    if (left < 4 || !is_rest(text[3]))
        return 0;
    *letter = (first & 7) << 18 | found << 6 | (text[3] & 63);
    return *letter >= 0x10000 && *letter < 0x110000 ? 4 : 0;
}

/* Whether a letter beyond ASCII is written as it is. */
static inline bool is_seen(int64_t letter) {
    return letter > 0x9F && !(letter >= 0x2028 && letter <= 0x202E) && !(letter >= 0x2066 && letter <= 0x2069) &&
           letter != 0xFEFF;
}

/* Write a text in UTF-8 as a string of JSON without its quotes; returns the place behind it, NULL if it is none. */
static uint8_t *put_json(uint8_t *at, Bytes data, int64_t start, int64_t size) {
    int64_t end = start + size;
    while (start < end) {
        int64_t left = end - start;
        const uint8_t *text = data.at + start;
        if (start + 8 <= data.size) {
            uint64_t word = load64(text);
            if (left < 8)
                word = (word & ((UINT64_C(1) << 8 * left) - 1)) | EACH * ' ' << 8 * left;
            uint64_t odd = (word - EACH * ' ') | ((word ^ EACH * '"') - EACH) | ((word ^ EACH * '\\') - EACH) |
                           ((word ^ EACH * DELETED) - EACH) | word;
            if (!(odd & EACH * 0x80)) {
                store64(at, word);
                int64_t taken = min64(left, 8);
                start += taken;
                at += taken;
                continue;
            }
        }
        int64_t letter = text[0], taken = 1;
        if (letter >= 0x80) {
            taken = letter_at(text, left, &letter);
            if (taken == 0)
                return NULL;
            if (is_seen(letter))
                for (int64_t index = 0; index < taken; index++)
                    *at++ = text[index];
            else
                at = put_escape(at, letter);
        } else if (SHORT[letter]) {
            *at++ = '\\';
            *at++ = (uint8_t)SHORT[letter];
        } else if (letter < ' ' || letter == DELETED) {
            at = put_escape(at, letter);
        } else {
            *at++ = (uint8_t)letter;
        }
        start += taken;
    }
    return at;
}

/* Write the first `count` of three bytes, which are those of `word`, as four letters of base64. */
static inline uint8_t *put_three(uint8_t *at, uint64_t word, int64_t count) {
    *at++ = (uint8_t)LETTERS_64[word >> 18];
    *at++ = (uint8_t)LETTERS_64[word >> 12 & 63];
    *at++ = (uint8_t)(count > 1 ? LETTERS_64[word >> 6 & 63] : '=');
    *at++ = (uint8_t)(count > 2 ? LETTERS_64[word & 63] : '=');
    return at;
}

/* Write bytes as base64, with zeros up to `filled` bytes; returns the place behind them. */
static uint8_t *put_base64(uint8_t *at, const uint8_t *bytes, int64_t size, int64_t filled) {
    int64_t total = max64(size, filled);
    for (int64_t index = 0; index < total; index += 3) {
        uint64_t word = 0;
        for (int64_t place = index; place < index + 3; place++)
            word = word << 8 | (place < size ? bytes[place] : 0);
        at = put_three(at, word, total - index);
    }
    return at;
}

/* Write a number of 128 bits as base64 of the fewest bytes that hold it, the highest first; returns what is behind.

`low` and `high` are its halves, the second one with the sign. */
static uint8_t *put_wide_base64(uint8_t *at, int64_t low, int64_t high) {
    unsigned __int128 value = (unsigned __int128)(uint64_t)high << 64 | (uint64_t)low;
    uint8_t bytes[16], sign = (uint8_t)(high >> 63);
    for (int64_t index = 15; index >= 0; index--, value >>= 8)
        bytes[index] = (uint8_t)value;
    int64_t first = 0;
    while (first < 15 && bytes[first] == sign && (bytes[first + 1] ^ sign) < 0x80)
        first++;
    return put_base64(at, bytes + first, 16 - first, 0);
}

/* Write a TIMESTAMP in UTC, with a letter before its clock; returns the place behind it, or NULL if it is none. */
static uint8_t *put_timestamp(uint8_t *at, Bytes data, int64_t start, int64_t size, int64_t digits, int64_t letter) {
    int64_t seconds = (int64_t)big(data, start, 4), microsecond = fraction_of(data, start + 4, digits);
    if (microsecond < 0)
        return NULL;
    bool is_zero = seconds == 0;
    for (int64_t index = 4; index < size; index++)
        is_zero = is_zero && !data.at[start + index]; /* also a digit that is not shown */
    if (is_zero && letter == 'T')
        return NULL;
    at = put_date(at, is_zero ? (Date){0, 0, 0} : date_of(seconds / DAY_S));
    *at++ = (uint8_t)letter;
    int64_t clock = seconds % DAY_S;
    return put_clock(at, clock / 3600, clock / 60 % 60, clock % 60, microsecond, digits);
}

/* Write a DATETIME; returns the place behind it, or NULL if it is none. */
static uint8_t *put_datetime(uint8_t *at, Bytes data, int64_t start, int64_t digits) {
    int64_t value = (int64_t)big(data, start, 5) - (INT64_C(1) << 39);
    int64_t microsecond = fraction_of(data, start + 5, digits);
    if (value < 0 || microsecond < 0)
        return NULL;
    int64_t year_month = value >> 22, year = year_month / 13;
    if (year > 9999)
        return NULL;
    at = put_date(at, (Date){year, year_month - 13 * year, value >> 17 & 31});
    *at++ = ' ';
    return put_clock(at, value >> 12 & 31, value >> 6 & 63, value & 63, microsecond, digits);
}

/* Write a DATE; returns the place behind it, or NULL if it is none. */
static uint8_t *put_plain_date(uint8_t *at, Bytes data, int64_t start) {
    int64_t value = (int64_t)little(data, start, 3);
    return value >> 9 > 9999 ? NULL : put_date(at, (Date){value >> 9, value >> 5 & 15, value & 31});
}

/* Write what has quotes and is no string of letters; returns the place behind it, or NULL if it is none. */
static uint8_t *put_shown(uint8_t *at, Bytes data, int64_t start, int64_t size, int64_t op, int64_t argument,
                          int64_t letter) {
    switch (op) {
    case LineOp_DATETIME:
        return put_datetime(at, data, start, argument);
    case LineOp_TIMESTAMP:
        return put_timestamp(at, data, start, size, argument, letter);
    case LineOp_DATE:
        return put_plain_date(at, data, start);
    case LineOp_TIME:
        return put_text(at, data, start, size, TextOp_TIME, argument);
    case LineOp_UUID:
        return put_text(at, data, start, size, TextOp_UUID, argument);
    case LineOp_INET4:
        return put_text(at, data, start, size, TextOp_INET4, argument);
    default:
        return put_text(at, data, start, size, TextOp_INET6, argument);
    }
}

/* Write a number; returns the place behind it. */
static inline uint8_t *put_integer(uint8_t *at, int64_t value, bool has_sign) {
    if (!has_sign || value >= 0)
        return put_number(at, (uint64_t)value, 1);
    *at++ = '-';
    return put_number(at, -(uint64_t)value, 1);
}

/* Write single bytes as the texts they stand for; returns the place behind them, or NULL if one stands for none. */
static uint8_t *put_letters(uint8_t *at, const uint8_t *bytes, int64_t size, const int64_t *choices,
                            const uint8_t *store) {
    for (int64_t index = 0; index < size; index++) {
        const int64_t *choice = choices + 2 * bytes[index];
        if (choice[1] < 0)
            return NULL;
        for (int64_t place = 0; place < choice[1]; place++)
            *at++ = store[choice[0] + place];
    }
    return at;
}

/* Write head number `head` of each group behind those before it; returns how many bytes all take.

`out` has room for them. */
static int64_t write_heads(NumberRows groups, const int64_t *note_offsets, Bytes notes, const int64_t *steps,
                           int64_t count, Bytes store, int64_t head, int64_t *offsets, Bytes out) {
    offsets += head * groups.rows;
    uint8_t *at = out.at + (head == 0 ? 0 : offsets[0]), *end = out.at + out.size;
    for (int64_t row = 0; row < groups.rows; row++) {
        const int64_t *group = groups.at + row * GroupColumn_COLUMNS;
        offsets[row] = at - out.at;
        for (const int64_t *step = steps; step < steps + count * LineColumn_COLUMNS; step += LineColumn_COLUMNS) {
            at = put_bytes(at, end, store, step[LineColumn_START], step[LineColumn_SIZE]);
            if (step[LineColumn_OP] == LineOp_GTID) {
                at = put_gtid(at, group);
            } else if (step[LineColumn_OP] == LineOp_MOMENT) {
                int64_t days = floor_div(group[GroupColumn_TIMESTAMP], DAY_S);
                int64_t clock = group[GroupColumn_TIMESTAMP] - days * DAY_S;
                at = put_date(at, date_of(days));
                *at++ = 'T';
                at = put_clock(at, clock / 3600, clock / 60 % 60, clock % 60, 0, 0);
                *at++ = 'Z';
            } else if (step[LineColumn_OP] == LineOp_GROUP) {
                at = put_number(at, (uint64_t)(group[step[LineColumn_FIRST]] * step[LineColumn_SECOND]), 1);
            } else if (step[LineColumn_OP] == LineOp_NOTE) {
                at = put_bytes(at, end, notes, note_offsets[row], note_offsets[row + 1] - note_offsets[row]);
            }
        }
    }
    offsets[groups.rows] = at - out.at;
    return at - out.at;
}

/* Write rows as lines until there are no more, or no more room; of a line that is not whole nothing counts. */
static int64_t write_lines(Bytes data, int64_t *state, LinePlan plan, DecodedRows rows, Bytes out) {
    Bytes store = plan.store;
    NumberRows values = rows.values, sides = plan.side_offsets;
    int64_t row = state[LineField_ROW], groups = state[LineField_GROUPS], status = LineStatus_END;
    uint8_t *at = out.at + state[LineField_OUT];
    const uint8_t *out_end = out.at + out.size, *room = out_end - SLACK;
    while (row < state[LineField_ROWS]) {
        int64_t kind = rows.row_kinds.at[row], group = rows.row_groups.at[row];
        int64_t number = group == state[LineField_GROUP] ? state[LineField_NUMBER] : 0;
        const int64_t *program = plan.programs.at + 2 * (kind >> KIND_BITS);
        uint8_t *begin = at;
        for (int64_t index = program[0]; index < program[0] + program[1]; index++) {
            const int64_t *step = plan.steps.at + index * LineColumn_COLUMNS;
            if (room - at < step[LineColumn_SIZE] + VALUE_SIZE_MAX) {
                status = LineStatus_FULL;
                break;
            }
            at = put_bytes(at, out_end, store, step[LineColumn_START], step[LineColumn_SIZE]);
            int64_t op = step[LineColumn_OP], first = step[LineColumn_FIRST], second = step[LineColumn_SECOND];
            int64_t place = row + step[LineColumn_IS_AFTER];
            if (op == LineOp_TEXT)
                continue;
            if (op == LineOp_NUMBER) {
                at = put_number(at, (uint64_t)number, 1);
                number++;
                continue;
            }
            if (op == LineOp_HEAD || op == LineOp_SIDE) {
                const int64_t *offset = op == LineOp_HEAD
                                            ? plan.head_offsets.at + first * groups + group
                                            : sides.at + first * sides.columns + place - state[LineField_SIDE_ROW];
                int64_t size = offset[1] - offset[0];
                if (room - at < size) {
                    status = LineStatus_FULL;
                    break;
                }
                at = put_bytes(at, out_end, op == LineOp_HEAD ? plan.heads : plan.sides, offset[0], size);
                continue;
            }
            int64_t slot = step[LineColumn_SLOT];
            if (!rows.valid.at[slot * rows.valid.columns + place]) {
                at = put_bytes(at, out_end, store, step[LineColumn_NULL], step[LineColumn_NULL_SIZE]);
                continue;
            }
            const int64_t *slot_at = values.at + slot * values.columns + place;
            const int64_t *choices = plan.choices.at + 2 * first;
            int64_t value = slot_at[0], size = 0, needed = 0;
            if (op == LineOp_CHOICE) {
                size = 0 <= value && value < second ? choices[2 * value + 1] : -1;
                needed = size;
            } else if (op != LineOp_INTEGER && op != LineOp_UNSCALED) {
                size = slot_at[values.columns];
                needed = 6 * max64(size, first);
            }
            int64_t opening = step[LineColumn_OPENING_SIZE], closing = step[LineColumn_CLOSING_SIZE];
            if (room - at < needed + opening + closing + VALUE_SIZE_MAX) {
                status = LineStatus_FULL;
                break;
            }
            at = put_bytes(at, out_end, store, step[LineColumn_OPENING], opening);
            if (op == LineOp_INTEGER)
                at = put_integer(at, second ? floor_div(value, second) : value, first);
            else if (op == LineOp_UNSCALED)
                at = put_wide_base64(at, value, slot_at[values.columns]);
            else if (op == LineOp_CHOICE)
                at = size >= 0 ? put_bytes(at, out_end, store, choices[2 * value], size) : NULL;
            else if (op == LineOp_UTF8)
                at = put_json(at, data, value, size);
            else if (op == LineOp_DECIMAL)
                at = put_decimal(at, data, value, first, second);
            else if (op == LineOp_BASE64)
                at = put_base64(at, data.at + value, size, first);
            else if (op == LineOp_LETTERS)
                at = put_letters(at, data.at + value, size, choices, store.at);
            else
                at = put_shown(at, data, value, size, op, first, second);
            if (!at) {
                state[LineField_STEP] = index;
                status = LineStatus_FALLBACK;
                break;
            }
            at = put_bytes(at, out_end, store, step[LineColumn_CLOSING], closing);
        }
        if (status != LineStatus_END) {
            at = begin;
            break;
        }
        state[LineField_GROUP] = group;
        state[LineField_NUMBER] = number;
        row += (kind & ((1 << KIND_BITS) - 1)) == UPDATE_BEFORE ? 2 : 1;
    }
    state[LineField_ROW] = row;
    state[LineField_OUT] = at - out.at;
    return status;
}

KERNEL(write_heads) {
    const int64_t *steps = a->steps.at + a->first * LineColumn_COLUMNS;
    results[0] = write_heads(a->groups, a->note_offsets.at, a->notes, steps, a->count, a->store, a->head,
                             a->offsets.at, a->out);
}

KERNEL(write_lines) { results[0] = write_lines(a->data, a->state.at, a->plan, a->rows, a->out); }

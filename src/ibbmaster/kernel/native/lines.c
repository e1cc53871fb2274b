/* Kernels that write changes of rows as lines of text: steps say what a line has.

The references: the printers of `ibbmaster.commands.printing`. */

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

/* Write the heads of groups from the first offset on, and leave their offsets; returns how many bytes are written then.

`out` has room for them. */
KERNEL(write_heads) {
    int64_t *offsets = a->offsets.at;
    uint8_t *at = a->out.at + offsets[0], *end = a->out.at + a->out.size;
    const int64_t *note = a->note_offsets.at;
    const LineRow *steps_end = ROW(LineRow, a->steps, a->steps.rows);
    for (int64_t row = 0; row < a->groups.rows; row++, note++) {
        const GroupRow *group = ROW(GroupRow, a->groups, row);
        offsets[row] = at - a->out.at;
        for (const LineRow *step = a->steps.at; step < steps_end; step++) {
            at = put_bytes(at, end, a->store, step->start, step->size);
            switch (step->op) {
            case LineOp_GTID:
                at = put_gtid(at, group);
                break;
            case LineOp_MOMENT:
                at = put_moment(at, moment_of(group->timestamp, 0), 'T', 0);
                *at++ = 'Z';
                break;
            case LineOp_GROUP:
                at = put_number(at, (uint64_t)(((const int64_t *)group)[step->first] * step->second), 1);
                break;
            case LineOp_NOTE:
                at = put_bytes(at, end, a->notes, note[0], note[1] - note[0]);
                break;
            }
        }
    }
    offsets[a->groups.rows] = at - a->out.at;
    return at - a->out.at;
}

/* Write the value of a step that is not NULL, of `size` bytes or, of a choice, -1 if there is none such.

Returns the place behind it, or NULL if it is for the reference. */
static inline uint8_t *put_step(uint8_t *at, const uint8_t *end, Bytes data, const LineRow *step, const LinePlan *plan,
                                const int64_t *slot, const int64_t *behind, int64_t size) {
    int64_t value = *slot, first = step->first, second = step->second;
    const int64_t *choices = number_at(plan->choices, first, 0);
    switch (step->op) {
    case LineOp_INTEGER:
        value = second ? floor_div(value, second) : value;
        return first ? put_signed(at, value) : put_number(at, (uint64_t)value, 1);
    case LineOp_UNSCALED:
        return put_wide_base64(at, value, *behind);
    case LineOp_CHOICE:
        return size < 0 ? NULL : put_bytes(at, end, plan->store, choices[2 * value], size);
    case LineOp_UTF8:
        return put_json(at, data, value, size);
    case LineOp_DECIMAL:
        return put_decimal(at, data, value, first, second);
    case LineOp_BASE64:
        return put_base64(at, data.at + value, size, first);
    case LineOp_LETTERS:
        return put_letters(at, data.at + value, size, choices, plan->store.at);
    case LineOp_DATETIME:
        return put_datetime(at, data, value, first);
    case LineOp_TIMESTAMP:
        return put_timestamp(at, data, value, size, first, (char)second);
    case LineOp_DATE:
        return put_plain_date(at, data, value);
    case LineOp_TIME:
        return put_time(at, data, value, first);
    case LineOp_UUID:
        return put_text(at, data, value, size, TextOp_UUID, first);
    case LineOp_INET4:
        return put_text(at, data, value, size, TextOp_INET4, first);
    default:
        return put_text(at, data, value, size, TextOp_INET6, first);
    }
}

/* Write a row as a line; NULL, and why in `status`, if it has no room or a value is for the reference. */
static inline uint8_t *put_line(uint8_t *at, const uint8_t *end, Bytes data, const LinePlan *plan, const Decoded *rows,
                                LineField *state, int64_t *number, int64_t *status) {
    int64_t row = state->row, group = rows->row_groups.at[row], kind = rows->row_kinds.at[row];
    Bytes store = plan->store;
    const uint8_t *room = end - SLACK;
    const int64_t *program = number_at(plan->programs, kind >> KIND_BITS, 0);
    *status = LineStatus_FULL;
    for (int64_t index = program[0]; index < program[0] + program[1]; index++) {
        const LineRow *step = ROW(LineRow, plan->steps, index);
        if (room - at < step->size + VALUE_SIZE_MAX)
            return NULL;
        at = put_bytes(at, end, store, step->start, step->size);
        int64_t op = step->op, first = step->first, place = row + step->is_after;
        if (op == LineOp_TEXT)
            continue;
        if (op == LineOp_NUMBER) {
            at = put_number(at, (uint64_t)*number, 1);
            (*number)++;
            continue;
        }
        if (op == LineOp_HEAD || op == LineOp_SIDE) {
            const int64_t *offset = op == LineOp_HEAD ? plan->head_offsets.at + first * state->groups + group
                                                      : number_at(plan->side_offsets, first, place - state->side_row);
            int64_t size = offset[1] - offset[0];
            if (room - at < size)
                return NULL;
            at = put_bytes(at, end, op == LineOp_HEAD ? plan->heads : plan->sides, offset[0], size);
            continue;
        }
        int64_t slot = step->slot;
        if (!rows->valid.at[slot * rows->valid.columns + place]) {
            at = put_bytes(at, end, store, step->null, step->null_size);
            continue;
        }
        const int64_t *slot_at = number_at(rows->values, slot, place), *behind = slot_at + rows->values.columns;
        int64_t size = 0, needed = 0;
        if (op == LineOp_CHOICE) {
            bool is_there = 0 <= *slot_at && *slot_at < step->second;
            size = is_there ? *number_at(plan->choices, first + *slot_at, 1) : -1;
            needed = size;
        } else if (op != LineOp_INTEGER && op != LineOp_UNSCALED) {
            size = *behind;
            needed = 6 * max64(size, first);
        }
        int64_t opening = step->opening_size, closing = step->closing_size;
        if (room - at < needed + opening + closing + VALUE_SIZE_MAX)
            return NULL;
        at = put_bytes(at, end, store, step->opening, opening);
        at = put_step(at, end, data, step, plan, slot_at, behind, size);
        if (!at) {
            state->step = index;
            *status = LineStatus_FALLBACK;
            return NULL;
        }
        at = put_bytes(at, end, store, step->closing, closing);
    }
    return at;
}

/* Write rows as lines until there are no more, or no more room; of a line that is not whole nothing counts. */
KERNEL(write_lines) {
    const LinePlan plan = a->plan; /* copies, which no byte that is written can change */
    const Decoded rows = a->rows;
    LineField *state = a->state.at;
    int64_t status;
    while (state->row < state->rows) {
        int64_t row = state->row, kind = rows.row_kinds.at[row], group = rows.row_groups.at[row];
        int64_t number = group == state->group ? state->number : 0;
        uint8_t *begin = a->out.at + state->out, *out_end = a->out.at + a->out.size;
        uint8_t *at = put_line(begin, out_end, a->data, &plan, &rows, state, &number, &status);
        if (!at)
            return status;
        state->out = at - a->out.at;
        state->group = group;
        state->number = number;
        state->row += (kind & ((1 << KIND_BITS) - 1)) == UPDATE_BEFORE ? 2 : 1;
    }
    return LineStatus_END;
}

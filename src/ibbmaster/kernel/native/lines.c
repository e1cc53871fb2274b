/* Kernels that write changes of rows as lines of text. The references: `ibbmaster.commands.printing`. */

#define DELETED 127
#define SLACK 64                /* bytes of room that every step has beyond what is counted */
#define VALUE_SIZE_MAX (39 + 2) /* bytes of values other than strings and decimals: two more than the longest text */
#define EACH UINT64_C(0x0101010101010101) /* times a byte: eight of it */

static const char LETTERS_64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const char SHORT[128] = { /* the letter after a backslash of what has one */
    ['"'] = '"', ['\\'] = '\\', ['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't',
};

/* Copy some bytes, to a place before `end`. */
static inline byte *put_bytes(byte *at, const byte *end, Bytes source, long start, long size) {
    if (size <= 32 && start + 32 <= source.size && end - at >= 32)
        memcpy(at, source.at + start, 32); /* what is too much is written over */
    else
        copy(at, source.at + start, size);
    return at + size;
}

static inline byte *put_escape(byte *at, long letter) {
    *at++ = '\\';
    *at++ = 'u';
    for (long shift = 12; shift >= 0; shift -= 4)
        *at++ = (byte)HEX_DIGITS[letter >> shift & 15];
    return at;
}

static inline bool is_rest(byte one) { return (one & 0xC0) == 0x80; }

/* Read a letter of several bytes from a text of `left` bytes; returns its bytes, 0 if it is none. */
static long letter_at(const byte *text, long left, long *letter) {
    long first = text[0];
    if (first < 0xC2 || first >= 0xF5 || left < 2 || !is_rest(text[1]))
        return 0;
    long found = text[1] & 63;
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

/* A text in UTF-8 as a string of JSON without its quotes. */
static byte *put_json(byte *at, Bytes data, long start, long size) {
    long end = start + size;
    while (start < end) {
        long left = end - start;
        const byte *text = data.at + start;
        if (start + 8 <= data.size) {
            uint64_t word = load64(text);
            if (left < 8)
                word = (word & ((UINT64_C(1) << 8 * left) - 1)) | EACH * ' ' << 8 * left;
            uint64_t odd = (word - EACH * ' ') | ((word ^ EACH * '"') - EACH) | ((word ^ EACH * '\\') - EACH) |
                           ((word ^ EACH * DELETED) - EACH) | word;
            if (!(odd & EACH * 0x80)) {
                store64(at, word);
                long taken = min64(left, 8);
                start += taken;
                at += taken;
                continue;
            }
        }
        long letter = text[0], taken = 1;
        if (letter >= 0x80) {
            taken = letter_at(text, left, &letter);
            if (taken == 0)
                return NULL;
            bool is_hidden = (letter >= 0x2028 && letter <= 0x202E) || (letter >= 0x2066 && letter <= 0x2069);
            if (letter > 0x9F && letter != 0xFEFF && !is_hidden)
                for (long index = 0; index < taken; index++)
                    *at++ = text[index];
            else
                at = put_escape(at, letter);
        } else if (SHORT[letter]) {
            *at++ = '\\';
            *at++ = (byte)SHORT[letter];
        } else if (letter < ' ' || letter == DELETED) {
            at = put_escape(at, letter);
        } else {
            *at++ = (byte)letter;
        }
        start += taken;
    }
    return at;
}

/* Bytes as base64, with zeros up to `filled` bytes. */
static byte *put_base64(byte *at, const byte *bytes, long size, long filled) {
    long total = max64(size, filled);
    for (long index = 0; index < total; index += 3) {
        uint64_t word = 0;
        for (long place = index; place < index + 3; place++)
            word = word << 8 | (place < size ? bytes[place] : 0);
        *at++ = (byte)LETTERS_64[word >> 18];
        *at++ = (byte)LETTERS_64[word >> 12 & 63];
        *at++ = (byte)(total - index > 1 ? LETTERS_64[word >> 6 & 63] : '=');
        *at++ = (byte)(total - index > 2 ? LETTERS_64[word & 63] : '=');
    }
    return at;
}

/* A number of 128 bits as base64 of the fewest bytes that hold it, the highest first. */
static byte *put_wide_base64(byte *at, long low, long high) {
    unsigned __int128 value = (unsigned __int128)(uint64_t)high << 64 | (uint64_t)low;
    byte bytes[16], sign = (byte)(high >> 63);
    for (long index = 15; index >= 0; index--, value >>= 8)
        bytes[index] = (byte)value;
    long first = 0;
    while (first < 15 && bytes[first] == sign && (bytes[first + 1] ^ sign) < 0x80)
        first++;
    return put_base64(at, bytes + first, 16 - first, 0);
}

static byte *put_letters(byte *at, const byte *bytes, long size, const long *choices, const byte *store) {
    for (long index = 0; index < size; index++) {
        const long *choice = choices + 2 * bytes[index];
        if (choice[1] < 0)
            return NULL;
        for (long place = 0; place < choice[1]; place++)
            *at++ = store[choice[0] + place];
    }
    return at;
}

/* Write the heads of groups from the first offset on, and leave their offsets; `out` has room for them. Returns where
the last one ends. */
KERNEL(write_heads) {
    long *offsets = a->offsets.at;
    byte *at = a->out.at + offsets[0], *end = a->out.at + a->out.size;
    const long *note = a->note_offsets.at;
    const LineRow *steps_end = ROW(LineRow, a->steps, a->steps.rows);
    for (long row = 0; row < a->groups.rows; row++, note++) {
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
                at = put_number(at, (uint64_t)(((const long *)group)[step->first] * step->second), 1);
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

/* The value of a step that is not NULL, of `size` bytes; -1 of a choice that is not there. */
static inline byte *put_step(byte *at, const byte *end, Bytes data, const LineRow *step, const LinePlan *plan,
                             const long *slot, const long *behind, long size) {
    long op = step->op, value = *slot, first = step->first, second = step->second;
    const long *choices = number_at(plan->choices, first, 0);
    switch (op) {
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
    default:
        return put_text(at, data, value, size, op - LineOp_UUID + TextOp_UUID, first, (char)second);
    }
}

/* A row as a line; NULL, and why in `status`, if it does not go. */
static inline byte *put_line(byte *at, const byte *end, Bytes data, const LinePlan *plan, const Decoded *rows,
                             LineField *state, long *number, long *status) {
    long row = state->row, group = rows->row_groups.at[row], kind = rows->row_kinds.at[row];
    Bytes store = plan->store;
    const byte *room = end - SLACK;
    const long *program = number_at(plan->programs, kind >> KIND_BITS, 0);
    *status = OutStatus_FULL;
    for (long index = program[0]; index < program[0] + program[1]; index++) {
        const LineRow *step = ROW(LineRow, plan->steps, index);
        if (room - at < step->size + VALUE_SIZE_MAX)
            return NULL;
        at = put_bytes(at, end, store, step->start, step->size);
        long op = step->op, first = step->first, place = row + step->is_after;
        if (op == LineOp_TEXT)
            continue;
        if (op == LineOp_NUMBER) {
            at = put_number(at, (uint64_t)*number, 1);
            (*number)++;
            continue;
        }
        if (op == LineOp_HEAD || op == LineOp_SIDE) {
            const long *offset = op == LineOp_HEAD ? plan->head_offsets.at + first * state->groups + group
                                                   : number_at(plan->side_offsets, first, place - state->side_row);
            long size = offset[1] - offset[0];
            if (room - at < size)
                return NULL;
            at = put_bytes(at, end, op == LineOp_HEAD ? plan->heads : plan->sides, offset[0], size);
            continue;
        }
        long slot = step->slot;
        if (!rows->valid.at[slot * rows->valid.columns + place]) {
            at = put_bytes(at, end, store, step->null, step->null_size);
            continue;
        }
        const long *slot_at = number_at(rows->values, slot, place), *behind = slot_at + rows->values.columns;
        long size = 0, needed = 0;
        if (op == LineOp_CHOICE) {
            bool is_there = 0 <= *slot_at && *slot_at < step->second;
            needed = size = is_there ? *number_at(plan->choices, first + *slot_at, 1) : -1;
        } else if (op != LineOp_INTEGER && op != LineOp_UNSCALED) {
            size = *behind;
            needed = 6 * max64(size, first);
        }
        long opening = step->opening_size, closing = step->closing_size;
        if (room - at < needed + opening + closing + VALUE_SIZE_MAX)
            return NULL;
        at = put_bytes(at, end, store, step->opening, opening);
        at = put_step(at, end, data, step, plan, slot_at, behind, size);
        if (!at) {
            state->step = index;
            *status = OutStatus_FALLBACK;
            return NULL;
        }
        at = put_bytes(at, end, store, step->closing, closing);
    }
    return at;
}

/* Write rows as lines; of a line that is not whole nothing counts. */
KERNEL(write_lines) {
    const LinePlan plan = a->plan; /* copies, which no byte that is written can change */
    const Decoded rows = a->rows;
    LineField *state = a->state.at;
    long status;
    byte *out = a->out.at;
    while (state->row < state->rows) {
        long row = state->row, kind = rows.row_kinds.at[row], group = rows.row_groups.at[row];
        long number = group == state->group ? state->number : 0;
        byte *at = put_line(out + state->out, out + a->out.size, a->data, &plan, &rows, state, &number, &status);
        if (!at)
            return status;
        state->out = at - out;
        state->group = group;
        state->number = number;
        state->row += (kind & ((1 << KIND_BITS) - 1)) == UPDATE_BEFORE ? 2 : 1;
    }
    return OutStatus_END;
}

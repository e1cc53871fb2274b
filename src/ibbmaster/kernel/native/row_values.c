/* A kernel that writes stored rows as the packets of an answer. The reference: `ibbmaster.primary.select.row_values`. */

#define NULL_VALUE 0xFB
#define TWO_BYTES 0xFC
#define THREE_BYTES 0xFD
#define SHORT_MAX 250
#define PACKET_HEADER 4

/* Write a number of some bytes, the lowest first; returns the place behind it. */
static inline uint8_t *put_little(uint8_t *at, uint64_t value, int64_t size) {
    for (; size > 0; size--, value >>= 8)
        *at++ = (uint8_t)value;
    return at;
}

/* Write the length of a text; returns the place behind it. */
static inline uint8_t *put_length(uint8_t *at, int64_t size) {
    if (size <= SHORT_MAX)
        return put_little(at, (uint64_t)size, 1);
    *at++ = size < 1 << 16 ? TWO_BYTES : THREE_BYTES;
    return put_little(at, (uint64_t)size, size < 1 << 16 ? 2 : 3);
}

/* Write a moment as the binary protocol has it; returns the place behind it. */
static uint8_t *put_moment_parts(uint8_t *at, Moment moment) {
    Date date = moment.date;
    Clock clock = moment.clock;
    uint8_t size = 0;
    if (clock.microsecond)
        size = 11;
    else if (clock.hour || clock.minute || clock.second)
        size = 7;
    else if (date.year || date.month || date.day)
        size = 4;
    *at++ = size;
    if (size >= 4) {
        at = put_little(at, (uint64_t)date.year, 2);
        *at++ = (uint8_t)date.month;
        *at++ = (uint8_t)date.day;
    }
    if (size >= 7) {
        *at++ = (uint8_t)clock.hour;
        *at++ = (uint8_t)clock.minute;
        *at++ = (uint8_t)clock.second;
    }
    return size == 11 ? put_little(at, (uint64_t)clock.microsecond, 4) : at;
}

/* Write a TIME as the binary protocol has it; returns the place behind it. */
static uint8_t *put_time_parts(uint8_t *at, Clock clock, bool is_negative) {
    if (!(clock.hour || clock.minute || clock.second || clock.microsecond)) {
        *at++ = 0;
        return at;
    }
    *at++ = clock.microsecond ? 12 : 8;
    *at++ = is_negative;
    at = put_little(at, (uint64_t)(clock.hour / 24), 4);
    *at++ = (uint8_t)(clock.hour % 24);
    *at++ = (uint8_t)clock.minute;
    *at++ = (uint8_t)clock.second;
    return clock.microsecond ? put_little(at, (uint64_t)clock.microsecond, 4) : at;
}

/* Write a DECIMAL behind its length, with zeros after its digits and in front; returns the place behind it.

NULL if it is none. `shown` digits come after the point, and `width` bytes at least if it is not negative. */
static uint8_t *put_wide_decimal(uint8_t *at, Bytes data, int64_t start, int64_t digits, int64_t scale, int64_t shown,
                                 int64_t width) {
    uint8_t *begin = at + 1, *end = put_decimal(begin, data, start, digits, scale);
    if (!end)
        return NULL;
    if (shown > scale && scale == 0)
        *end++ = '.';
    for (int64_t place = scale; place < shown; place++)
        *end++ = '0';
    int64_t size = end - begin, missing = width - size;
    if (missing > 0 && *begin != '-') {
        memmove(begin + missing, begin, (size_t)size);
        memset(begin, '0', (size_t)missing);
        size = width;
    }
    *at = (uint8_t)size;
    return begin + size;
}

/* Write a TIME, see `put_value`. */
static uint8_t *put_time_value(uint8_t *at, Bytes data, int64_t start, const ValueRow *step) {
    Clock clock;
    bool is_negative;
    if (!time_at(data, start, step->first, &clock, &is_negative))
        return NULL;
    if (step->op == ValueOp_TIME_PARTS)
        return put_time_parts(at, clock, is_negative);
    uint8_t *end = at + 1;
    if (is_negative)
        *end++ = '-';
    end = put_clock(end, clock, step->second);
    *at = (uint8_t)(end - at - 1);
    return end;
}

/* Write a DATETIME or a TIMESTAMP, see `put_value`. */
static uint8_t *put_moment_value(uint8_t *at, Bytes data, int64_t start, int64_t size, const ValueRow *step,
                                 int64_t zone_s) {
    int64_t op = step->op, digits = step->first, shown = step->second;
    Moment moment;
    if (op == ValueOp_TIMESTAMP || op == ValueOp_TIMESTAMP_PARTS) {
        int64_t microsecond = fraction_of(data, start + 4, digits);
        if (microsecond < 0)
            return NULL;
        moment = (Moment){{0, 0, 0}, {0, 0, 0, microsecond}};
        if (big(data, start, size))
            moment = moment_of((int64_t)big(data, start, 4) + zone_s, microsecond);
    } else if (!datetime_at(data, start, digits, &moment)) {
        return NULL;
    }
    if (op == ValueOp_DATETIME_PARTS || op == ValueOp_TIMESTAMP_PARTS)
        return put_moment_parts(at, moment);
    *at++ = (uint8_t)(19 + (shown ? shown + 1 : 0));
    return put_moment(at, moment, ' ', shown);
}

/* Write an integer, see `put_value`. */
static inline uint8_t *put_integer_value(uint8_t *at, Bytes data, int64_t start, int64_t size, const ValueRow *step) {
    int64_t has_sign = step->first, second = step->second;
    uint64_t value = little(data, start, size);
    bool is_negative = has_sign && value >> (8 * size - 1) & 1;
    if (is_negative && size < 8)
        value -= UINT64_C(1) << 8 * size;
    if (step->op == ValueOp_NUMBER)
        return put_little(at, value, second);
    uint8_t *end = at + 1;
    if (is_negative)
        *end++ = '-';
    end = put_number(end, is_negative ? -value : value, second);
    *at = (uint8_t)(end - at - 1);
    return end;
}

/* Write a text of those that were made before. */
static inline uint8_t *put_made(uint8_t *at, const uint8_t *out_end, Bytes texts, const int64_t *offset) {
    return put_bytes(at, out_end, texts, offset[0], offset[1] - offset[0]);
}

/* Write a value that is not NULL, of row `row` of the sides; returns the place behind it, or NULL if the reference
must. */
static inline uint8_t *put_value(uint8_t *at, const uint8_t *out_end, Bytes data, int64_t start, int64_t size,
                                 int64_t row, const ValueRow *step, const AnswerPlan *plan, int64_t zone_s) {
    const int64_t *offsets = plan->offsets.at;
    int64_t op = step->op, first = step->first, second = step->second;
    switch (op) {
    case ValueOp_COPY:
        at = put_length(at, size);
        return put_bytes(at, out_end, data, start, size);
    case ValueOp_INTEGER:
    case ValueOp_NUMBER:
        return put_integer_value(at, data, start, size, step);
    case ValueOp_DECIMAL:
        return put_wide_decimal(at, data, start, first, second, step->third, step->fourth);
    case ValueOp_SIDE: {
        const int64_t *side = number_at(plan->side_offsets, first, row);
        return put_made(at, out_end, plan->sides, side);
    }
    case ValueOp_CHOICE: {
        int64_t number = (int64_t)little(data, start, size);
        return number < second ? put_made(at, out_end, plan->texts, offsets + first + number) : NULL;
    }
    case ValueOp_BYTES: {
        int64_t total = 0;
        for (int64_t index = start; index < start + size; index++) {
            const int64_t *text = offsets + first + data.at[index];
            total += text[1] - text[0];
        }
        at = put_length(at, total);
        for (int64_t index = start; index < start + size; index++) {
            const int64_t *text = offsets + first + data.at[index];
            for (int64_t place = text[0]; place < text[1]; place++)
                *at++ = plan->texts.at[place];
        }
        return at;
    }
    case ValueOp_PAD:
        at = put_length(at, max64(first, size));
        at = put_bytes(at, out_end, data, start, size);
        for (; size < first; size++)
            *at++ = 0;
        return at;
    case ValueOp_FIXED:
        return put_bytes(at, out_end, data, start, size);
    case ValueOp_YEAR:
    case ValueOp_YEAR_NUMBER: {
        uint64_t stored = data.at[start], year = stored ? stored + 1900 : 0;
        if (op == ValueOp_YEAR_NUMBER)
            return put_little(at, year, 2);
        *at++ = (uint8_t)first;
        return put_digits(at, first == 2 ? stored : year, first);
    }
    case ValueOp_DATE:
    case ValueOp_DATE_PARTS: {
        int64_t value = (int64_t)little(data, start, 3);
        Date date = {value >> 9, value >> 5 & 15, value & 31};
        if (op == ValueOp_DATE_PARTS)
            return put_moment_parts(at, (Moment){date, {0, 0, 0, 0}});
        *at++ = 10;
        return put_date(at, date);
    }
    case ValueOp_TIME:
    case ValueOp_TIME_PARTS:
        return put_time_value(at, data, start, step);
    default:
        return put_moment_value(at, data, start, size, step, zone_s);
    }
}

/* Find where each value of a stored row lies; false if it ends too early. */
static inline bool find_values(Bytes data, int64_t at, const LayoutRow *layout, const AnswerPlan *plan) {
    const ImageRow *columns = ROW(ImageRow, plan->stored, layout->first);
    Span *spans = (Span *)plan->spans.at;
    return find_spans(data, at + ROW_HEAD, data.size, columns, layout->count, spans) >= 0;
}

/* The layout of a stored row; NULL if the reference must write it. */
static inline const LayoutRow *layout_at(const uint8_t *stored_row, NumberRows layouts) {
    int64_t number = load16(stored_row + 4);
    const LayoutRow *layout = ROW(LayoutRow, layouts, number);
    return number < layouts.rows && layout->first >= 0 ? layout : NULL;
}

/* Find where the values of one column of an answer lie, of the rows that come next; -1 for NULL.

Returns how many rows were looked at: up to the first that the reference must write. */
KERNEL(locate_values) {
    const AnswerField *state = a->state.at;
    const int64_t *places = a->places.at + state->next;
    const Span *spans = (const Span *)a->plan.spans.at;
    int64_t count = min64(a->starts.size, state->end - state->next);
    for (int64_t row = 0; row < count; row++) {
        const LayoutRow *layout = layout_at(a->data.at + places[row], a->plan.layouts);
        if (!layout || !find_values(a->data, places[row], layout, &a->plan))
            return row;
        int64_t number = layout->values + a->step;
        int64_t place = ROW(ValueRow, a->plan.values, number)->place;
        Span span = place >= 0 ? spans[place] : (Span){-1, 0};
        a->starts.at[row] = span.start;
        a->sizes.at[row] = span.size;
    }
    return count;
}

/* Write the values of a row, whose places are known, behind the header of its packet; NULL if the reference must. */
static uint8_t *put_row(uint8_t *at, const uint8_t *out_end, const write_rows_args *a, const ValueRow *step,
                        int64_t side_row) {
    const AnswerPlan *plan = &a->plan;
    const AnswerField *state = a->state.at;
    const Span *spans = (const Span *)a->plan.spans.at;
    int64_t shown = state->shown, is_binary = state->is_binary;
    uint8_t *nulls = at + 1;
    if (is_binary) {
        int64_t bits = (shown + 2 + 7) / 8;
        memset(at, 0, (size_t)(1 + bits));
        at = nulls + bits;
    }
    for (int64_t column = 0; column < shown && at; column++, step++) {
        bool is_constant = step->op == ValueOp_CONSTANT;
        const Span *span = spans + step->place;
        int64_t start = is_constant ? step->first : span->start;
        if (start < 0 && is_binary)
            nulls[(column + 2) >> 3] |= (uint8_t)(1 << ((column + 2) & 7));
        else if (start < 0)
            *at++ = NULL_VALUE;
        else if (is_constant)
            at = put_made(at, out_end, plan->texts, plan->offsets.at + start);
        else
            at = put_value(at, out_end, a->data, start, span->size, side_row, step, plan, state->zone_s);
    }
    return at;
}

/* Write rows as packets until there are no more, or no more room. */
KERNEL(write_rows) {
    AnswerField *state = a->state.at;
    NumberRows sides = a->plan.side_offsets;
    const uint8_t *out_end = a->out.at + a->out.size;
    for (; state->next < state->end; state->next++) {
        int64_t place = a->places.at[state->next];
        const LayoutRow *layout = layout_at(a->data.at + place, a->plan.layouts);
        if (!layout || !find_values(a->data, place, layout, &a->plan))
            return AnswerStatus_FALLBACK;
        int64_t bound = layout->bound + layout->factor * load32(a->data.at + place);
        int64_t side_row = state->next - state->side_start;
        for (int64_t side = 0; side < sides.rows && side_row + 1 < sides.columns; side++) {
            const int64_t *offset = number_at(sides, side, side_row);
            bound += offset[1] - offset[0];
        }
        uint8_t *packet = a->out.at + state->out;
        if (out_end - packet < bound)
            return packet > a->out.at ? AnswerStatus_FULL : AnswerStatus_FALLBACK;
        const ValueRow *step = ROW(ValueRow, a->plan.values, layout->values);
        uint8_t *end = put_row(packet + PACKET_HEADER, out_end, a, step, side_row);
        int64_t size = end ? end - packet - PACKET_HEADER : PACKET_MAX;
        if (size >= PACKET_MAX)
            return AnswerStatus_FALLBACK;
        store32(packet, size | state->sequence << 24);
        state->sequence = (state->sequence + 1) & 255;
        state->out = end - a->out.at;
    }
    return AnswerStatus_END;
}

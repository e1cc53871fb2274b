/* A kernel that writes stored rows as packets. The reference: `ibbmaster.primary.select.row_values`. */

#define NULL_VALUE 0xFB
#define TWO_BYTES 0xFC
#define THREE_BYTES 0xFD
#define SHORT_MAX 250
#define PACKET_HEADER 4

static inline byte *put_little(byte *at, uint64_t value, long size) {
    store64(at, value); /* bytes too many are overwritten */
    return at + size;
}

static inline byte *put_length(byte *at, long size) {
    if (size <= SHORT_MAX)
        return put_little(at, (uint64_t)size, 1);
    *at++ = size < 1 << 16 ? TWO_BYTES : THREE_BYTES;
    return put_little(at, (uint64_t)size, size < 1 << 16 ? 2 : 3);
}

/* A moment as the binary protocol has it; as of the next one, bytes too many are overwritten. */
static byte *put_moment_parts(byte *at, Moment moment) {
    Date date = moment.date;
    Clock clock = moment.clock;
    bool has_clock = clock.hour || clock.minute || clock.second, has_date = date.year || date.month || date.day;
    *at = clock.microsecond ? 11 : has_clock ? 7 : has_date ? 4 : 0;
    store16(at + 1, date.year);
    at[3] = (byte)date.month;
    at[4] = (byte)date.day;
    at[5] = (byte)clock.hour;
    at[6] = (byte)clock.minute;
    at[7] = (byte)clock.second;
    store32(at + 8, clock.microsecond);
    return at + 1 + *at;
}

static byte *put_time_parts(byte *at, Clock clock, bool is_negative) {
    *at = clock.microsecond ? 12 : clock.hour || clock.minute || clock.second ? 8 : 0;
    at[1] = is_negative;
    store32(at + 2, clock.hour / 24);
    at[6] = (byte)(clock.hour % 24);
    at[7] = (byte)clock.minute;
    at[8] = (byte)clock.second;
    store32(at + 9, clock.microsecond);
    return at + 1 + *at;
}

/* Have a text of up to 250 bytes, which ends at a place, begin with its length. */
static inline byte *with_length(byte *begin, byte *end) {
    if (end)
        *begin = (byte)(end - begin - 1);
    return end;
}

/* A DECIMAL behind its length; `shown` digits come after the point, at least `width` bytes if it is not negative. */
static byte *put_wide_decimal(byte *at, Bytes data, long start, long digits, long scale, long shown, long width) {
    byte *begin = at + 1, *end = put_decimal(begin, data, start, digits, scale);
    if (!end)
        return NULL;
    if (shown > scale && scale == 0)
        *end++ = '.';
    for (long place = scale; place < shown; place++)
        *end++ = '0';
    long size = end - begin, missing = width - size;
    if (missing > 0 && *begin != '-') {
        memmove(begin + missing, begin, (size_t)size);
        memset(begin, '0', (size_t)missing);
        size = width;
    }
    *at = (byte)size;
    return begin + size;
}

static byte *put_time_value(byte *at, Bytes data, long start, const ValueRow *step) {
    Clock clock;
    bool is_negative;
    if (step->op == ValueOp_TIME)
        return with_length(at, put_time(at + 1, data, start, step->first, step->second));
    bool is_good = time_at(data, start, step->first, &clock, &is_negative);
    return is_good ? put_time_parts(at, clock, is_negative) : NULL;
}

static byte *put_moment_value(byte *at, Bytes data, long start, long size, const ValueRow *step, long zone_s) {
    long op = step->op, digits = step->first;
    Moment moment;
    bool is_good = op == ValueOp_TIMESTAMP || op == ValueOp_TIMESTAMP_PARTS
                       ? timestamp_at(data, start, size, digits, zone_s, &moment)
                       : datetime_at(data, start, digits, &moment);
    if (!is_good)
        return NULL;
    if (op == ValueOp_DATETIME_PARTS || op == ValueOp_TIMESTAMP_PARTS)
        return put_moment_parts(at, moment);
    return with_length(at, put_moment(at + 1, moment, ' ', step->second));
}

static inline byte *put_integer_value(byte *at, Bytes data, long start, long size, const ValueRow *step) {
    long has_sign = step->first, second = step->second;
    uint64_t value = little(data, start, size);
    bool is_negative = has_sign && value >> (8 * size - 1) & 1;
    if (is_negative && size < 8)
        value -= UINT64_C(1) << 8 * size;
    if (step->op == ValueOp_NUMBER)
        return put_little(at, value, second);
    byte *end = at + 1;
    if (is_negative)
        *end++ = '-';
    return with_length(at, put_number(end, is_negative ? -value : value, second));
}

static inline byte *put_made(byte *at, const byte *out_end, Bytes texts, const long *offset) {
    return put_bytes(at, out_end, texts, offset[0], offset[1] - offset[0]);
}

/* A value that is not NULL, of row `row` of the sides. */
static inline byte *put_value(byte *at, const byte *out_end, Bytes data, long start, long size, long row,
                              const ValueRow *step, const AnswerPlan *plan, long zone_s) {
    const long *offsets = plan->offsets.at;
    long op = step->op, first = step->first, second = step->second;
    switch (op) {
    case ValueOp_COPY:
        at = put_length(at, size);
        return put_bytes(at, out_end, data, start, size);
    case ValueOp_INTEGER:
    case ValueOp_NUMBER:
        return put_integer_value(at, data, start, size, step);
    case ValueOp_DECIMAL:
        return put_wide_decimal(at, data, start, first, second, step->third, step->fourth);
    case ValueOp_SIDE:
        return put_made(at, out_end, plan->sides, number_at(plan->side_offsets, first, row));
    case ValueOp_CHOICE: {
        long number = (long)little(data, start, size);
        return number < second ? put_made(at, out_end, plan->texts, offsets + first + number) : NULL;
    }
    case ValueOp_BYTES: {
        long total = 0;
        for (long index = start; index < start + size; index++) {
            const long *text = offsets + first + data.at[index];
            total += text[1] - text[0];
        }
        at = put_length(at, total);
        for (long index = start; index < start + size; index++) {
            const long *text = offsets + first + data.at[index];
            for (long place = text[0]; place < text[1]; place++)
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
        return with_length(at, put_digits(at + 1, first == 2 ? stored : year, first));
    }
    case ValueOp_DATE:
        return with_length(at, put_date(at + 1, date_at(data, start)));
    case ValueOp_DATE_PARTS:
        return put_moment_parts(at, (Moment){date_at(data, start), {0, 0, 0, 0}});
    case ValueOp_TIME:
    case ValueOp_TIME_PARTS:
        return put_time_value(at, data, start, step);
    default:
        return put_moment_value(at, data, start, size, step, zone_s);
    }
}

static inline bool find_values(Bytes data, long at, const LayoutRow *layout, const AnswerPlan *plan) {
    const ImageRow *columns = ROW(ImageRow, plan->stored, layout->first);
    return find_spans(data, at + ROW_HEAD, data.size, columns, layout->count, plan->spans.at) >= 0;
}

/* The layout of a stored row; NULL for the reference. */
static inline const LayoutRow *layout_at(const byte *stored_row, Rows layouts) {
    long number = load16(stored_row + 4);
    const LayoutRow *layout = ROW(LayoutRow, layouts, number);
    return number < layouts.rows && layout->first >= 0 ? layout : NULL;
}

/* Find where the values of one column of an answer lie in the next rows; -1 for NULL. Returns how many rows were looked
at: up to the first for the reference. */
KERNEL(locate_values) {
    const AnswerField *state = a->state.at;
    const long *places = a->places.at + state->next;
    const Span *spans = a->plan.spans.at;
    long count = min64(a->starts.size, state->end - state->next);
    for (long row = 0; row < count; row++) {
        const LayoutRow *layout = layout_at(a->data.at + places[row], a->plan.layouts);
        if (!layout || !find_values(a->data, places[row], layout, &a->plan))
            return row;
        long number = layout->values + a->step;
        long place = ROW(ValueRow, a->plan.values, number)->place;
        Span span = place >= 0 ? spans[place] : (Span){-1, 0};
        a->starts.at[row] = span.start;
        a->sizes.at[row] = span.size;
    }
    return count;
}

static byte *put_row(byte *at, const byte *out_end, const write_rows_args *a, const ValueRow *step, long side_row) {
    const AnswerPlan *plan = &a->plan;
    const AnswerField *state = a->state.at;
    const Span *spans = plan->spans.at;
    long shown = state->shown, is_binary = state->is_binary;
    byte *nulls = at + 1;
    if (is_binary) {
        long bits = (shown + 2 + 7) / 8;
        memset(at, 0, (size_t)(1 + bits));
        at = nulls + bits;
    }
    for (long column = 0; column < shown && at; column++, step++) {
        bool is_constant = step->op == ValueOp_CONSTANT;
        const Span *span = spans + step->place;
        long start = is_constant ? step->first : span->start;
        if (start < 0 && is_binary)
            nulls[(column + 2) >> 3] |= (byte)(1 << ((column + 2) & 7));
        else if (start < 0)
            *at++ = NULL_VALUE;
        else if (is_constant)
            at = put_made(at, out_end, plan->texts, plan->offsets.at + start);
        else
            at = put_value(at, out_end, a->data, start, span->size, side_row, step, plan, state->zone_s);
    }
    return at;
}

KERNEL(write_rows) {
    AnswerField *state = a->state.at;
    Rows sides = a->plan.side_offsets;
    const byte *out_end = a->out.at + a->out.size;
    for (; state->next < state->end; state->next++) {
        long place = a->places.at[state->next];
        const LayoutRow *layout = layout_at(a->data.at + place, a->plan.layouts);
        if (!layout || !find_values(a->data, place, layout, &a->plan))
            return OutStatus_FALLBACK;
        long bound = layout->bound + layout->factor * load32(a->data.at + place);
        long side_row = state->next - state->side_start;
        for (long side = 0; side < sides.rows && side_row + 1 < sides.columns; side++) {
            const long *offset = number_at(sides, side, side_row);
            bound += offset[1] - offset[0];
        }
        byte *packet = a->out.at + state->out;
        if (out_end - packet < bound)
            return packet > a->out.at ? OutStatus_FULL : OutStatus_FALLBACK;
        const ValueRow *step = ROW(ValueRow, a->plan.values, layout->values);
        byte *end = put_row(packet + PACKET_HEADER, out_end, a, step, side_row);
        long size = end ? end - packet - PACKET_HEADER : PACKET_MAX;
        if (size >= PACKET_MAX)
            return OutStatus_FALLBACK;
        store32(packet, size | state->sequence << 24);
        state->sequence = (state->sequence + 1) & 255;
        state->out = end - a->out.at;
    }
    return OutStatus_END;
}

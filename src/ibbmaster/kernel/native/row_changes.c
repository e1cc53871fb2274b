/* A kernel that collects changes of rows: keys and images. The references: `ibbmaster.tables.fold.row_events`, and for
keys `ibbmaster.tables.fold.stored`. */

#define ROW_HEAD 6 /* bytes before an image that is kept: its size, its layout */

/* Where a value of an image lies; its start is -1 for NULL. */
typedef struct { long start, size; } Span;

/* Find the values of an image; returns the offset behind it, -1 if it ends too early. */
static inline long find_spans(Bytes data, long offset, long end, const ImageRow *columns, long count, Span *spans) {
    const byte *nulls = data.at + offset;
    offset += (count + 7) / 8;
    for (long place = 0; place < count && offset <= end; place++, columns++) {
        if (nulls[place >> 3] >> (place & 7) & 1) {
            spans[place].start = -1;
            continue;
        }
        long size = columns->size;
        if (size < 0) {
            long prefix = columns->length_size;
            if (end - offset < prefix)
                return -1;
            size = (long)little(data, offset, prefix);
            offset += prefix;
        }
        if (end - offset < size)
            return -1;
        spans[place] = (Span){offset, size};
        offset += size;
    }
    return offset <= end ? offset : -1;
}

/* The lowest bytes of a number, the highest first. */
static inline byte *put_big(byte *at, uint64_t value, long size) {
    for (long shift = 8 * size - 8; shift >= 0; shift -= 8)
        *at++ = (byte)(value >> shift);
    return at;
}

/* A part of a key; NULL if it does not fit. */
static byte *put_part(byte *at, const byte *end, Bytes data, Span span, long op) {
    const byte *value = data.at + span.start;
    long size = span.size;
    if (op == KeyOp_TEXT || op == KeyOp_PADDED_TEXT) {
        while (op == KeyOp_PADDED_TEXT && size > 0 && value[size - 1] == ' ')
            size--;
        for (long index = 0; index < size; index++) {
            if (end - at < 4)
                return NULL;
            *at++ = value[index];
            if (value[index] == 0)
                *at++ = 255;
        }
        if (end - at < 2)
            return NULL;
        memset(at, 0, 2);
        return at + 2;
    }
    if (end - at < max64(size, 8))
        return NULL;
    if (op == KeyOp_FIXED) {
        copy(at, value, size);
        return at + size;
    }
    if (op == KeyOp_REVERSED) {
        while (size > 0)
            *at++ = value[--size];
        return at;
    }
    uint64_t number = little(data, span.start, size), top = UINT64_C(1) << (8 * size - 1);
    if (op == KeyOp_FLOATING) {
        if (number == top)
            number = 0;
        return put_big(at, number & top ? ~number : number | top, size);
    }
    if (op == KeyOp_TIME)
        return put_big(at, number ^ top, 3);
    if (op == KeyOp_SIGNED) {
        if (size < 8 && number & top)
            number |= ~((top << 1) - 1);
        number ^= UINT64_C(1) << 63;
    }
    return put_big(at, number, 8);
}

/* Write the key of an image, and zeros behind it, one at least; its size, -1 if it has none or is too long. */
static long put_key(byte *key, Bytes data, const KeyRow *parts, long count, const Span *spans) {
    memset(key, 0, KEY_MAX);
    byte *at = key;
    for (const KeyRow *part = parts; part < parts + count; part++) {
        Span span = spans[part->place];
        if (span.start < 0)
            return -1;
        byte *behind = put_part(at, key + KEY_MAX - 1, data, span, part->op);
        if (!behind)
            return -1;
        for (; part->is_descending && at < behind; at++)
            *at = (byte) ~*at;
        at = behind;
    }
    return at - key;
}

/* Find the values of an image at an offset, which moves, and write its key; its size, -1 as of `put_key`. */
static long take_image(Bytes data, long *offset, long end, const ChangedTables *tables, const VariantRow *variant,
                       bool is_after, byte *key) {
    Span *spans = tables->spans.at;
    long count = is_after ? variant->after_steps : variant->steps;
    long first = is_after ? variant->after_first_step : variant->first_step;
    const ImageRow *columns = ROW(ImageRow, tables->columns, first);
    const KeyRow *parts = ROW(KeyRow, tables->parts, is_after ? variant->after_first_part : variant->first_part);
    *offset = find_spans(data, *offset, end, columns, count, spans);
    return *offset < 0 ? -1 : put_key(key, data, parts, variant->part_count, spans);
}

static long take_rows(Bytes data, RowsEvent *event, RowField *state, const ChangedTables *tables,
                      const KeptChanges *changes) {
    const VariantRow *variant = event->variant;
    long *ops = changes->ops.at, *maps = changes->maps.at, *key_sizes = changes->key_sizes.at;
    while (event->offset < event->end) {
        long row = state->rows, image = event->offset, behind = image;
        if (row + 2 > changes->ops.size)
            return RowStatus_FULL;
        byte *key = changes->keys.at + row * KEY_MAX;
        long size = take_image(data, &behind, event->end, tables, variant, false, key);
        if (size < 0)
            return RowStatus_BY_REFERENCE;
        maps[row] = event->map_row;
        key_sizes[row] = size;
        ops[row] = event->kind == INSERT ? ChangeOp_INSERT : ChangeOp_DELETE;
        if (event->kind == UPDATE_BEFORE) {
            image = behind;
            size = take_image(data, &behind, event->end, tables, variant, true, key + KEY_MAX);
            if (size < 0)
                return RowStatus_BY_REFERENCE;
            if (size == key_sizes[row] && !memcmp(key, key + KEY_MAX, KEY_MAX)) {
                ops[row] = ChangeOp_REPLACE;
            } else {
                ops[++row] = ChangeOp_INSERT;
                maps[row] = event->map_row;
                key_sizes[row] = size;
            }
        }
        if (ops[row] != ChangeOp_DELETE) {
            long image_size = behind - image;
            if (changes->images.size - state->out < ROW_HEAD + image_size)
                return RowStatus_FULL;
            byte *kept = changes->images.at + state->out;
            store32(kept, image_size);
            store16(kept + 4, variant->layout);
            copy(kept + ROW_HEAD, data.at + image, image_size);
            changes->places.at[row] = state->out;
            state->out += ROW_HEAD + image_size;
        }
        state->rows = row + 1;
        event->offset = behind;
    }
    return RowStatus_END;
}

/* Collect the changes of row events from the current one on; as `decode_rows`. */
KERNEL(collect_changes) {
    RowField *state = a->state.at;
    long status;
    RowsEvent event = {.last_map = -1};
    while ((status = next_rows(a->data, a->events, state, &a->known, &event)) == RowStatus_ROWS) {
        if (event.variant->is_by_reference)
            return RowStatus_BY_REFERENCE;
        status = take_rows(a->data, &event, state, &a->how, &a->out);
        if (status != RowStatus_END) {
            state->offset = event.offset;
            return status;
        }
        state->offset = 0;
        state->event++;
    }
    return status;
}

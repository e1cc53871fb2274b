/* A kernel that collects what row events do to the rows of tables: keys, and whole images as they are kept.

The references: `ibbmaster.tables.fold.row_events`, and for keys `ibbmaster.tables.fold.stored`. */

/* Where a value of an image lies; its start is -1 for NULL. */
typedef struct { int64_t start, size; } Span;

/* Find where each value of an image lies; returns the offset behind it, -1 if it ends too early. */
static inline int64_t find_spans(Bytes data, int64_t offset, int64_t end, const ImageRow *columns, int64_t count,
                                 Span *spans) {
    const uint8_t *nulls = data.at + offset;
    offset += (count + 7) / 8;
    for (int64_t place = 0; place < count && offset <= end; place++, columns++) {
        if (nulls[place >> 3] >> (place & 7) & 1) {
            spans[place].start = -1;
            continue;
        }
        int64_t size = columns->size;
        if (size < 0) {
            int64_t prefix = columns->length_size;
            if (end - offset < prefix)
                return -1;
            size = (int64_t)little(data, offset, prefix);
            offset += prefix;
        }
        if (end - offset < size)
            return -1;
        spans[place] = (Span){offset, size};
        offset += size;
    }
    return offset <= end ? offset : -1;
}

/* Write the lowest bytes of a number, the highest first; returns the place behind them. */
static inline uint8_t *put_big(uint8_t *at, uint64_t value, int64_t size) {
    for (int64_t shift = 8 * size - 8; shift >= 0; shift -= 8)
        *at++ = (uint8_t)(value >> shift);
    return at;
}

/* Write a part of a key; returns the place behind it, NULL if it does not fit. */
static uint8_t *put_part(uint8_t *at, const uint8_t *end, Bytes data, Span span, int64_t op) {
    const uint8_t *value = data.at + span.start;
    int64_t size = span.size;
    if (op == KeyOp_TEXT || op == KeyOp_PADDED_TEXT) {
        while (op == KeyOp_PADDED_TEXT && size > 0 && value[size - 1] == ' ')
            size--;
        for (int64_t index = 0; index < size; index++) {
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
        memcpy(at, value, (size_t)size);
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

/* Write the key of an image, and zeros behind it, one at least.

Returns its size, -1 if it has none, or one that is too long. */
static int64_t put_key(uint8_t *key, Bytes data, const KeyRow *parts, int64_t count, const Span *spans) {
    memset(key, 0, KEY_MAX);
    uint8_t *at = key;
    for (const KeyRow *part = parts; part < parts + count; part++) {
        Span span = spans[part->place];
        if (span.start < 0)
            return -1;
        uint8_t *behind = put_part(at, key + KEY_MAX - 1, data, span, part->op);
        if (!behind)
            return -1;
        for (; part->is_descending && at < behind; at++)
            *at = (uint8_t)~*at;
        at = behind;
    }
    return at - key;
}

/* Find the values of an image at an offset, which moves behind it, and write its key; its size, -1 as of `put_key`. */
static int64_t take_image(Bytes data, int64_t *offset, int64_t end, const ChangedTables *tables, int64_t first_column,
                          int64_t count, int64_t first_part, int64_t part_count, uint8_t *key) {
    Span *spans = (Span *)tables->spans.at;
    *offset = find_spans(data, *offset, end, ROW(ImageRow, tables->columns, first_column), count, spans);
    if (*offset < 0)
        return -1;
    return put_key(key, data, ROW(KeyRow, tables->parts, first_part), part_count, spans);
}

/* Collect the changes of the rows of an event, whose offset moves behind those that are collected. */
static int64_t take_rows(Bytes data, RowsEvent *event, RowField *state, const ChangedTables *tables,
                         const KeptChanges *changes) {
    const VariantRow *variant = event->variant;
    int64_t part_count = variant->part_count, layout = variant->layout;
    int64_t *ops = changes->ops.at, *maps = changes->maps.at, *key_sizes = changes->key_sizes.at;
    while (event->offset < event->end) {
        int64_t row = state->rows, image = event->offset, behind = image;
        if (row + 2 > changes->ops.size)
            return RowStatus_FULL;
        uint8_t *key = changes->keys.at + row * KEY_MAX;
        int64_t size = take_image(data, &behind, event->end, tables, variant->first_step, variant->steps,
                                  variant->first_part, part_count, key);
        if (size < 0)
            return RowStatus_BY_REFERENCE;
        maps[row] = event->map_row;
        key_sizes[row] = size;
        ops[row] = event->kind == INSERT ? ChangeOp_INSERT : ChangeOp_DELETE;
        if (event->kind == UPDATE_BEFORE) {
            image = behind;
            size = take_image(data, &behind, event->end, tables, variant->after_first_step, variant->after_steps,
                              variant->after_first_part, part_count, key + KEY_MAX);
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
            int64_t image_size = behind - image;
            if (changes->images.size - state->out < ROW_HEAD + image_size)
                return RowStatus_FULL;
            uint8_t *kept = changes->images.at + state->out;
            store32(kept, image_size);
            kept[4] = (uint8_t)layout;
            kept[5] = (uint8_t)(layout >> 8);
            memcpy(kept + ROW_HEAD, data.at + image, (size_t)image_size);
            changes->places.at[row] = state->out;
            state->out += ROW_HEAD + image_size;
        }
        state->rows = row + 1;
        event->offset = behind;
    }
    return RowStatus_END;
}

/* Collect the changes of row events from the current one on.

Stops at an event for which the caller has to do something; call it again then. */
KERNEL(collect_changes) {
    RowField *state = a->state.at;
    int64_t status;
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

/* A kernel that collects what row events do to the rows of tables: keys, and whole images as they are kept.

The references: `ibbmaster.fold.row_events`, and for keys `ibbmaster.fold.stored`. */

#define QUERY_FIXED 13 /* bytes before the status of a QUERY event */

/* Where a value of an image lies; its start is -1 for NULL. */
typedef struct { int64_t start, size; } Span;

/* Where the collecting of an event's changes ended: the offset behind them, how many there are, and the images' end. */
typedef struct { int64_t status, offset, count, out; } ChangesEnd;

/* Find where each value of an image lies; returns the offset behind it, -1 if it ends too early. */
static inline int64_t find_spans(Bytes data, int64_t offset, int64_t end, const int64_t *columns, int64_t count,
                                 Span *spans) {
    const uint8_t *nulls = data.at + offset;
    offset += (count + 7) / 8;
    for (int64_t place = 0; place < count && offset <= end; place++, columns += ImageColumn_COLUMNS) {
        if (nulls[place >> 3] >> (place & 7) & 1) {
            spans[place].start = -1;
            continue;
        }
        int64_t size = columns[ImageColumn_SIZE];
        if (size < 0) {
            int64_t prefix = columns[ImageColumn_LENGTH_SIZE];
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
static int64_t put_key(uint8_t *key, Bytes data, const int64_t *parts, int64_t count, const Span *spans) {
    memset(key, 0, KEY_MAX);
    uint8_t *at = key;
    for (const int64_t *part = parts; part < parts + count * KeyColumn_COLUMNS; part += KeyColumn_COLUMNS) {
        Span span = spans[part[KeyColumn_PLACE]];
        if (span.start < 0)
            return -1;
        uint8_t *behind = put_part(at, key + KEY_MAX - 1, data, span, part[KeyColumn_OP]);
        if (!behind)
            return -1;
        for (; part[KeyColumn_IS_DESCENDING] && at < behind; at++)
            *at = (uint8_t)~*at;
        at = behind;
    }
    return at - key;
}

/* Collect the changes of the rows of an event that lie in data[offset:end]. */
static ChangesEnd take_rows(Bytes data, int64_t offset, int64_t end, int64_t kind, int64_t map_row,
                            const int64_t *variant, const ChangedTables *known, KeptChanges changes, int64_t count,
                            int64_t out) {
    const int64_t *columns = known->columns.at, *parts = known->parts.at;
    const int64_t *before = columns + variant[ChangeVariantColumn_FIRST_COLUMN] * ImageColumn_COLUMNS;
    const int64_t *after = columns + variant[ChangeVariantColumn_AFTER_FIRST_COLUMN] * ImageColumn_COLUMNS;
    const int64_t *before_parts = parts + variant[ChangeVariantColumn_FIRST_PART] * KeyColumn_COLUMNS;
    const int64_t *after_parts = parts + variant[ChangeVariantColumn_AFTER_FIRST_PART] * KeyColumn_COLUMNS;
    int64_t part_count = variant[ChangeVariantColumn_PART_COUNT], layout = variant[ChangeVariantColumn_LAYOUT];
    int64_t *ops = changes.ops.at, *maps = changes.maps.at, *key_sizes = changes.key_sizes.at;
    Span *spans = (Span *)known->spans.at;
    while (offset < end) {
        if (count + 2 > changes.ops.size)
            return (ChangesEnd){ChangeStatus_FULL, offset, count, out};
        uint8_t *key = changes.keys.at + count * KEY_MAX;
        int64_t image = offset, row = count, size = -1;
        int64_t behind = find_spans(data, image, end, before, variant[ChangeVariantColumn_COLUMN_COUNT], spans);
        if (behind >= 0)
            size = put_key(key, data, before_parts, part_count, spans);
        if (size < 0)
            return (ChangesEnd){ChangeStatus_BY_REFERENCE, offset, count, out};
        maps[row] = map_row;
        key_sizes[row] = size;
        if (kind == INSERT) {
            ops[row] = ChangeOp_INSERT;
        } else if (kind != UPDATE_BEFORE) {
            ops[row] = ChangeOp_DELETE;
            count++;
            offset = behind;
            continue;
        } else {
            image = behind;
            behind = find_spans(data, image, end, after, variant[ChangeVariantColumn_AFTER_COLUMN_COUNT], spans);
            size = behind < 0 ? -1 : put_key(key + KEY_MAX, data, after_parts, part_count, spans);
            if (size < 0)
                return (ChangesEnd){ChangeStatus_BY_REFERENCE, offset, count, out};
            if (size == key_sizes[row] && !memcmp(key, key + KEY_MAX, KEY_MAX)) {
                ops[row] = ChangeOp_REPLACE;
            } else {
                ops[row++] = ChangeOp_DELETE;
                ops[row] = ChangeOp_INSERT;
                maps[row] = map_row;
                key_sizes[row] = size;
            }
        }
        int64_t image_size = behind - image;
        if (changes.images.size - out < ROW_HEAD + image_size)
            return (ChangesEnd){ChangeStatus_FULL, offset, count, out};
        changes.places.at[row] = out;
        uint8_t *kept = changes.images.at + out;
        store32(kept, image_size);
        kept[4] = (uint8_t)layout;
        kept[5] = (uint8_t)(layout >> 8);
        memcpy(kept + ROW_HEAD, data.at + image, (size_t)image_size);
        out += ROW_HEAD + image_size;
        count = row + 1;
        offset = behind;
    }
    return (ChangesEnd){ChangeStatus_END, offset, count, out};
}

/* Whether a QUERY event is COMMIT or BEGIN, which change nothing. */
static bool ends_or_begins(Bytes data, int64_t start, int64_t end) {
    int64_t body = start + EVENT_HEADER;
    if (end - body < QUERY_FIXED)
        return false;
    int64_t text = body + QUERY_FIXED + load16(data.at + body + 11) + data.at[body + 8] + 1;
    return (end - text == 5 && !memcmp(data.at + text, "BEGIN", 5)) ||
           (end - text == 6 && !memcmp(data.at + text, "COMMIT", 6));
}

/* Collect the changes of row events from the current one on, in groups from its group's first event on.

Stops at an event for which the caller has to do something; call it again then. */
static int64_t collect_changes(Bytes data, NumberRows events, int64_t *state, ChangedTables known,
                               KeptChanges changes) {
    int64_t count = state[ChangeField_COUNT], out = state[ChangeField_OUT], event = state[ChangeField_EVENT];
    int64_t last_map = -1, status = ChangeStatus_END;
    for (; event < events.rows; event++) {
        const int64_t *place = events.at + event * EventColumn_COLUMNS;
        int64_t start = place[EventColumn_START], size = place[EventColumn_SIZE], end = start + size;
        if (place[EventColumn_GROUP] != state[ChangeField_GROUP]) {
            state[ChangeField_GROUP] = place[EventColumn_GROUP];
            state[ChangeField_OPEN] = 0;
            state[ChangeField_TURN]++;
        }
        int64_t event_type = data.at[start + TYPE_OFFSET];
        if (event_type == EventType_TABLE_MAP) {
            if (size < EVENT_HEADER + 8) {
                status = ChangeStatus_OTHER_EVENT;
                break;
            }
            int64_t map_row = find_map(data.at + start + EVENT_HEADER + 6, size - EVENT_HEADER - 6, known.maps.at,
                                       known.map_count, known.store.at, last_map);
            if (map_row < 0) {
                status = ChangeStatus_NEW_MAP;
                break;
            }
            last_map = map_row;
            int64_t table_id = (int64_t)little(data, start + EVENT_HEADER, 6);
            int64_t open_count =
                name_table(known.open_tables, state[ChangeField_OPEN], table_id, state[ChangeField_TURN], map_row);
            if (open_count < 0) {
                status = ChangeStatus_MANY_TABLES;
                break;
            }
            state[ChangeField_OPEN] = open_count;
            continue;
        }
        if (known.is_other.at[event_type]) {
            if (event_type == EventType_QUERY && ends_or_begins(data, start, end))
                continue;
            status = ChangeStatus_OTHER_EVENT;
            break;
        }
        RowsHead head = rows_head(data, start, end);
        if (head.kind == NO_ROWS)
            continue;
        int64_t map_row = -1;
        if (head.kind != BAD_ROWS)
            map_row = open_map(known.open_tables, head.table_id, state[ChangeField_TURN]);
        if (map_row < 0) {
            status = ChangeStatus_OTHER_EVENT;
            break;
        }
        if (!known.maps.at[map_row * MapColumn_COLUMNS + MapColumn_IS_WANTED])
            continue;
        const int64_t *variant = find_variant(data.at, &head, end, map_row, known.variants.at, known.variant_count,
                                              ChangeVariantColumn_COLUMNS, known.store.at);
        if (!variant || variant[ChangeVariantColumn_IS_BY_REFERENCE]) {
            status = variant ? ChangeStatus_BY_REFERENCE : ChangeStatus_NEW_VARIANT;
            break;
        }
        int64_t offset = head.offset + variant[VariantColumn_BITS_SIZE];
        if (state[ChangeField_OFFSET] > 0)
            offset = state[ChangeField_OFFSET];
        ChangesEnd taken =
            take_rows(data, offset, end, head.kind, map_row, variant, &known, changes, count, out);
        status = taken.status;
        count = taken.count;
        out = taken.out;
        state[ChangeField_OFFSET] = status == ChangeStatus_END ? 0 : taken.offset;
        if (status != ChangeStatus_END)
            break;
    }
    state[ChangeField_COUNT] = count;
    state[ChangeField_OUT] = out;
    state[ChangeField_EVENT] = event;
    return status;
}

KERNEL(collect_changes) { results[0] = collect_changes(a->data, a->events, a->state.at, a->known, a->changes); }

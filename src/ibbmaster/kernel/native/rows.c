/* A kernel that reads the rows of row events into columns.

Every value becomes one number of 64 bits, or two; of what is longer they are the place. One kernel serves all tables:
steps say how each column is read. The reference, which also says what is wrong with an event:
`ibbmaster.replication.event.rows`. */

#define DAY_US (DAY_S * INT64_C(1000000))

/* A row event of a table that is wanted: the kind of its changes, where the next row begins, the table's row of the
maps and the kind of row event; besides, which table was named last. */
typedef struct {
    int64_t start, end, kind, offset, map_row, last_map;
    const VariantRow *variant;
} RowsEvent;

/* What a row event begins with: the table's number, where the columns present begin, and how many columns there are,
-1 for too many. */
typedef struct { int64_t table_id, offset, column_count; } RowsHead;

/* The kind of the changes of a row event that is not compressed; -1 of another event. */
static inline int64_t kind_of_rows(int64_t event_type) {
    if (event_type == EventType_WRITE_ROWS_V1 || event_type == EventType_WRITE_ROWS)
        return INSERT;
    if (event_type == EventType_UPDATE_ROWS_V1 || event_type == EventType_UPDATE_ROWS)
        return UPDATE_BEFORE;
    return event_type == EventType_DELETE_ROWS_V1 || event_type == EventType_DELETE_ROWS ? DELETE : -1;
}

/* Read what the row event data[start:end] begins with; false if it is too short. */
static inline bool read_rows_head(Bytes data, int64_t start, int64_t end, RowsHead *head) {
    int64_t event_type = data.at[start + TYPE_OFFSET], offset = start + EVENT_HEADER;
    if (end - offset < 8 + 2 + 3)
        return false;
    head->table_id = (int64_t)little(data, offset, TABLE_ID_SIZE);
    offset += 8;
    if (event_type >= EventType_WRITE_ROWS && event_type <= EventType_DELETE_ROWS) {
        int64_t extra = load16(data.at + offset);
        offset += extra;
        if (extra < 2 || end - offset < 3)
            return false;
    }
    head->column_count = data.at[offset++];
    if (head->column_count == 252) {
        head->column_count = load16(data.at + offset);
        offset += 2;
    } else if (head->column_count > 252) {
        head->column_count = -1; /* no table has so many */
    }
    head->offset = offset;
    return true;
}

/* The row of the table with these bytes, -1 for none; looks at row `last` first. */
static int64_t find_map(const uint8_t *bytes, int64_t size, const KnownTables *known, int64_t last) {
    for (int64_t turn = -1; turn < known->map_count; turn++) {
        int64_t row = turn < 0 ? last : turn;
        const MapRow *map = ROW(MapRow, known->maps, row);
        if (0 <= row && row < known->map_count && map->size == size &&
            !memcmp(bytes, known->store.at + map->start, (size_t)size))
            return row;
    }
    return -1;
}

/* The kind of row event whose columns present are where its head ends, NULL for none. */
static const VariantRow *find_variant(const uint8_t *data, const RowsHead *head, const RowsEvent *event,
                                      const KnownTables *known) {
    const VariantRow *variant = known->variants.at;
    for (int64_t row = 0; row < known->variant_count; row++, variant++) {
        int64_t size = variant->bits_size;
        if (variant->map == event->map_row && variant->kind == event->kind &&
            variant->column_count == head->column_count && head->offset + size <= event->end &&
            !memcmp(data + head->offset, known->store.at + variant->bits_start, (size_t)size))
            return variant;
    }
    return NULL;
}

/* The place of a table among those that a group has named, or the free one where it belongs. */
static int64_t find_open(NumberRows open_tables, int64_t table_id, int64_t turn) {
    int64_t mask = open_tables.rows - 1, place = table_id & mask;
    for (;; place = (place + 1) & mask) {
        const OpenRow *open = ROW(OpenRow, open_tables, place);
        if (open->turn != turn || open->id == table_id)
            return place;
    }
}

/* Note what a group calls a table, by its TABLE_MAP event; END, or why the caller has to do something. */
static int64_t name_table(Bytes data, int64_t start, int64_t end, RowField *state, const KnownTables *known,
                          int64_t *last_map) {
    int64_t body = start + EVENT_HEADER;
    if (end - body < 8)
        return RowStatus_BAD;
    int64_t map_row = find_map(data.at + start + known->map_at, end - start - known->map_at, known, *last_map);
    if (map_row < 0)
        return RowStatus_NEW_MAP;
    *last_map = map_row;
    int64_t table_id = (int64_t)little(data, body, TABLE_ID_SIZE), turn = state->turn;
    OpenRow *open = ROW(OpenRow, known->open_tables, find_open(known->open_tables, table_id, turn));
    if (open->turn != turn) {
        if (2 * state->open >= known->open_tables.rows)
            return RowStatus_MANY_TABLES;
        open->id = table_id;
        open->turn = turn;
        state->open++;
    }
    open->map = map_row;
    return RowStatus_END;
}

/* Whether a QUERY event is COMMIT or BEGIN, which change nothing. */
static bool ends_or_begins(const uint8_t *event, int64_t size) {
    if (size < EVENT_HEADER + QUERY_FIXED)
        return false;
    int64_t text = query_text_at(event), left = size - text;
    return (left == 5 && !memcmp(event + text, "BEGIN", 5)) || (left == 6 && !memcmp(event + text, "COMMIT", 6));
}

/* Look at an event: END if it has no rows that are wanted, ROWS if it has, or why the caller has to do something. */
static inline int64_t look_at_event(Bytes data, RowField *state, const KnownTables *known, RowsEvent *event) {
    int64_t event_type = data.at[event->start + TYPE_OFFSET];
    if (event_type == EventType_TABLE_MAP)
        return name_table(data, event->start, event->end, state, known, &event->last_map);
    if (known->is_other.size && known->is_other.at[event_type]) {
        int64_t size = event->end - event->start;
        bool is_plain = event_type == EventType_QUERY && ends_or_begins(data.at + event->start, size);
        return is_plain ? RowStatus_END : RowStatus_OTHER_EVENT;
    }
    event->kind = kind_of_rows(event_type);
    if (event->kind < 0)
        return RowStatus_END;
    RowsHead head;
    if (!read_rows_head(data, event->start, event->end, &head))
        return RowStatus_BAD;
    NumberRows tables = known->open_tables;
    const OpenRow *open = ROW(OpenRow, tables, find_open(tables, head.table_id, state->turn));
    if (open->turn != state->turn)
        return RowStatus_BAD;
    event->map_row = open->map;
    if (!ROW(MapRow, known->maps, event->map_row)->is_wanted)
        return RowStatus_END;
    if (event->map_row != state->table && state->table != ANY_TABLE) {
        state->table = event->map_row;
        return RowStatus_NEW_TABLE;
    }
    event->variant = find_variant(data.at, &head, event, known);
    if (!event->variant)
        return RowStatus_NEW_VARIANT;
    event->offset = head.offset + event->variant->bits_size;
    if (state->offset > 0)
        event->offset = state->offset;
    return RowStatus_ROWS;
}

/* Go on from the current event, in groups from its group's first event on, to one that has rows that are wanted: ROWS;
END after the last one. */
static inline int64_t next_rows(Bytes data, NumberRows events, RowField *state, const KnownTables *known,
                                RowsEvent *event) {
    for (; state->event < events.rows; state->event++) {
        const EventRow *place = ROW(EventRow, events, state->event);
        event->start = place->start;
        event->end = event->start + place->size;
        if (place->group != state->group) {
            state->group = place->group;
            state->open = 0;
            state->turn++;
        }
        int64_t status = look_at_event(data, state, known, event);
        if (status != RowStatus_END)
            return status;
    }
    return RowStatus_END;
}

/* Write a moment as microseconds since 1970; false if there is none such. */
static inline bool put_microseconds(Moment moment, int64_t *out) {
    int64_t days;
    bool is_day = days_of(moment.date.year, moment.date.month, moment.date.day, &days);
    Clock clock = moment.clock;
    *out = days * DAY_US + ((clock.hour * 60 + clock.minute) * 60 + clock.second) * 1000000 + clock.microsecond;
    return is_day && clock.hour < 24 && clock.minute < 60 && clock.second < 60;
}

/* Read a value of fixed size into `out`, and the second half of one that has two into `behind`.

1; 0 if it stands for no value, or is skipped; -1 if it is not as it should be. */
static inline int64_t read_value(Bytes data, int64_t offset, const StepRow *step, int64_t *out, int64_t *behind) {
    int64_t first = step->first, second = step->second, size = step->size;
    switch (step->op) {
    case RowOp_INTEGER: {
        int64_t spare = second ? 64 - 8 * size : 0; /* bits that become copies of the sign, without a branch */
        *out = (int64_t)(little(data, offset, size) << spare) >> spare;
        return 1;
    }
    case RowOp_BIG_ENDIAN:
        *out = (int64_t)big(data, offset, size);
        return 1;
    case RowOp_FLOAT:
        *out = load32(data.at + offset);
        return 1;
    case RowOp_DOUBLE:
        *out = (int64_t)load64(data.at + offset);
        return 1;
    case RowOp_YEAR:
        *out = data.at[offset] ? data.at[offset] + 1900 : 0;
        return 1;
    case RowOp_DECIMAL: {
        __int128 value;
        if (!read_decimal(data, offset, first, second, &value))
            return -1;
        *out = (int64_t)value;
        *behind = (int64_t)(value >> 64);
        return 1;
    }
    case RowOp_DATE: {
        int64_t value = (int64_t)little(data, offset, 3);
        return days_of(value >> 9, value >> 5 & 15, value & 31, out);
    }
    case RowOp_DATETIME: {
        Moment moment;
        return datetime_at(data, offset, first, &moment) ? put_microseconds(moment, out) : -1;
    }
    case RowOp_TIMESTAMP: {
        int64_t seconds = (int64_t)big(data, offset, 4), microsecond = fraction_of(data, offset + 4, first);
        *out = seconds * 1000000 + microsecond;
        return microsecond < 0 ? -1 : big(data, offset, size) != 0; /* also a digit that is not shown */
    }
    case RowOp_RAW_FIXED:
        *out = offset;
        *behind = size;
        return 1;
    default:
        return 0;
    }
}

/* Read an image at an offset, which moves, into a row of the output by `count` steps; false if it is not as it should
be. */
static inline bool read_image(Bytes data, int64_t *at, int64_t end, const StepRow *step, int64_t count, int64_t row,
                              NumberRows values, ByteRows valid) {
    const uint8_t *nulls = data.at + *at;
    int64_t offset = *at + (count + 7) / 8;
    if (offset > end)
        return false;
    for (int64_t bit = 0; bit < count; bit++, step++) {
        if (nulls[bit >> 3] >> (bit & 7) & 1)
            continue;
        int64_t op = step->op, slot = step->slot, size = step->size;
        int64_t *out = number_at(values, slot, row), *behind = out + values.columns;
        uint8_t *is_there = valid.at + slot * valid.columns + row;
        if (end - offset < size)
            return false;
        if (op != RowOp_SKIP_PREFIXED && op != RowOp_RAW_PREFIXED) {
            int64_t found = read_value(data, offset, step, out, behind);
            if (found < 0)
                return false;
            if (found)
                *is_there = 1;
            offset += size;
            continue;
        }
        int64_t length = (int64_t)little(data, offset, size);
        offset += size;
        if (end - offset < length)
            return false;
        if (op == RowOp_RAW_PREFIXED) {
            *out = offset;
            *behind = length;
            *is_there = 1;
        }
        offset += length;
    }
    *at = offset;
    return true;
}

/* Read the rows of an event, whose offset moves. Each image is a row of the output: an update has two. */
static int64_t read_rows(Bytes data, RowsEvent *event, RowField *state, const StepRow *steps, int64_t variant_number,
                         const Decoded *decoded) {
    const VariantRow *variant = event->variant;
    int64_t offset = event->offset, end = event->end, row = state->rows, kind = event->kind;
    int64_t row_max = decoded->row_groups.size, status = RowStatus_END;
    while (offset < end && status == RowStatus_END) {
        const StepRow *step = steps + (kind == UPDATE_AFTER ? variant->after_first_step : variant->first_step);
        int64_t count = kind == UPDATE_AFTER ? variant->after_steps : variant->steps;
        if (kind != UPDATE_AFTER && row + 2 > row_max) {
            status = RowStatus_FULL;
        } else if (!read_image(data, &offset, end, step, count, row, decoded->values, decoded->valid)) {
            status = RowStatus_BAD;
        } else {
            decoded->row_groups.at[row] = state->group;
            decoded->row_kinds.at[row] = variant_number << KIND_BITS | kind;
            row++;
            if (event->kind == UPDATE_BEFORE)
                kind = kind == UPDATE_BEFORE ? UPDATE_AFTER : UPDATE_BEFORE;
        }
    }
    state->rows = row;
    state->offset = status == RowStatus_FULL ? offset : 0;
    return kind == UPDATE_AFTER ? RowStatus_BAD : status;
}

/* Read the rows of events from the current one on.

Stops at an event for which the caller has to do something; call it again then. */
KERNEL(decode_rows) {
    RowField *state = a->state.at;
    int64_t status;
    RowsEvent event = {.last_map = -1};
    while ((status = next_rows(a->data, a->events, state, &a->known, &event)) == RowStatus_ROWS) {
        const VariantRow *variant = event.variant;
        int64_t number = variant - (const VariantRow *)a->known.variants.at;
        if (variant->steps + variant->after_steps == 0 && event.offset < event.end)
            return RowStatus_BAD;
        status = read_rows(a->data, &event, state, a->steps.at, number, &a->decoded);
        if (status != RowStatus_END)
            return status;
        a->decoded.event_sizes.at[number] += event.end - event.start;
        state->event++;
    }
    return status;
}

KERNEL(find_open) { return find_open(a->open_tables, a->table_id, a->turn); }

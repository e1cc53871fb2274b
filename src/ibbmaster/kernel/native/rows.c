/* A kernel that reads row events into columns. Every value becomes one number of 64 bits, or two; of what is longer
they are the place. Steps say how each column is read. The reference: `ibbmaster.replication.event.rows`. */

#define DAY_US (DAY_S * INT64_C(1000000))

/* A row event: the kind of its changes, the table's number and row of the maps, how many columns it has, where the next
row begins, which table was named last, and the kind of row event. */
typedef struct {
    long start, end, kind, table_id, map_row, column_count, offset, last_map;
    const VariantRow *variant;
} RowsEvent;

/* The kind of changes of an uncompressed row event; -1 of another event. */
static inline long kind_of_rows(long event_type) {
    if (event_type == EventType_WRITE_ROWS_V1 || event_type == EventType_WRITE_ROWS)
        return INSERT;
    if (event_type == EventType_UPDATE_ROWS_V1 || event_type == EventType_UPDATE_ROWS)
        return UPDATE_BEFORE;
    return event_type == EventType_DELETE_ROWS_V1 || event_type == EventType_DELETE_ROWS ? DELETE : -1;
}

/* Read a row event up to the columns present; false if it is too short. */
static inline bool read_rows_head(Bytes data, RowsEvent *event) {
    long event_type = data.at[event->start + TYPE_OFFSET], offset = event->start + EVENT_HEADER;
    if (event->end - offset < 8 + 2 + 3)
        return false;
    event->table_id = (long)little(data, offset, TABLE_ID_SIZE);
    offset += 8;
    if (event_type >= EventType_WRITE_ROWS && event_type <= EventType_DELETE_ROWS) {
        long extra = load16(data.at + offset);
        offset += extra;
        if (extra < 2 || event->end - offset < 3)
            return false;
    }
    event->column_count = data.at[offset++];
    if (event->column_count == 252) {
        event->column_count = load16(data.at + offset);
        offset += 2;
    } else if (event->column_count > 252) {
        event->column_count = -1; /* no table has so many */
    }
    event->offset = offset;
    return true;
}

/* The row of the table with these bytes, -1 for none; looks at row `last` first. */
static long find_map(const byte *bytes, long size, const KnownTables *known, long last) {
    for (long turn = -1; turn < known->map_count; turn++) {
        long row = turn < 0 ? last : turn;
        const MapRow *map = ROW(MapRow, known->maps, row);
        if (0 <= row && row < known->map_count && map->size == size &&
            !memcmp(bytes, known->store.at + map->start, (size_t)size))
            return row;
    }
    return -1;
}

/* The kind of a row event, NULL for none. */
static const VariantRow *find_variant(const byte *data, const RowsEvent *event, const KnownTables *known) {
    const VariantRow *variant = known->variants.at;
    for (long row = 0; row < known->variant_count; row++, variant++) {
        long size = variant->bits_size;
        if (variant->map == event->map_row && variant->kind == event->kind &&
            variant->column_count == event->column_count && event->offset + size <= event->end &&
            !memcmp(data + event->offset, known->store.at + variant->bits_start, (size_t)size))
            return variant;
    }
    return NULL;
}

static long find_open(Rows open_tables, long table_id, long turn) {
    long mask = open_tables.rows - 1, place = table_id & mask;
    for (;; place = (place + 1) & mask) {
        const OpenRow *open = ROW(OpenRow, open_tables, place);
        if (open->turn != turn || open->id == table_id)
            return place;
    }
}

/* Note what a group calls a table; END, or why the caller has to do something. */
static long name_table(Bytes data, RowField *state, const KnownTables *known, RowsEvent *event) {
    long body = event->start + EVENT_HEADER, bytes_at = event->start + known->map_at;
    if (event->end - body < 8)
        return RowStatus_BAD;
    long map_row = find_map(data.at + bytes_at, event->end - bytes_at, known, event->last_map);
    if (map_row < 0)
        return RowStatus_NEW_MAP;
    event->last_map = map_row;
    long table_id = (long)little(data, body, TABLE_ID_SIZE), turn = state->turn;
    OpenRow *open = ROW(OpenRow, known->open_tables, find_open(known->open_tables, table_id, turn));
    if (open->turn != turn) {
        if (2 * state->open >= known->open_tables.rows)
            return RowStatus_MANY_TABLES;
        state->open++;
    }
    *open = (OpenRow){table_id, map_row, turn};
    return RowStatus_END;
}

static bool ends_or_begins(const byte *event, long size) {
    if (size < EVENT_HEADER + QUERY_FIXED)
        return false;
    long text = query_text_at(event), left = size - text;
    return (left == 5 && !memcmp(event + text, "BEGIN", 5)) || (left == 6 && !memcmp(event + text, "COMMIT", 6));
}

/* Whether an event has wanted rows: END, ROWS, or why the caller has to do something. */
static inline long look_at_event(Bytes data, RowField *state, const KnownTables *known, RowsEvent *event) {
    long event_type = data.at[event->start + TYPE_OFFSET];
    if (event_type == EventType_TABLE_MAP)
        return name_table(data, state, known, event);
    if (known->is_other.size && known->is_other.at[event_type]) {
        long size = event->end - event->start;
        bool is_plain = event_type == EventType_QUERY && ends_or_begins(data.at + event->start, size);
        return is_plain ? RowStatus_END : RowStatus_OTHER_EVENT;
    }
    event->kind = kind_of_rows(event_type);
    if (event->kind < 0)
        return RowStatus_END;
    if (!read_rows_head(data, event))
        return RowStatus_BAD;
    Rows tables = known->open_tables;
    const OpenRow *open = ROW(OpenRow, tables, find_open(tables, event->table_id, state->turn));
    if (open->turn != state->turn)
        return RowStatus_BAD;
    event->map_row = open->map;
    if (!ROW(MapRow, known->maps, event->map_row)->is_wanted)
        return RowStatus_END;
    if (event->map_row != state->table && state->table != ANY_TABLE) {
        state->table = event->map_row;
        return RowStatus_NEW_TABLE;
    }
    event->variant = find_variant(data.at, event, known);
    if (!event->variant)
        return RowStatus_NEW_VARIANT;
    event->offset = state->offset > 0 ? state->offset : event->offset + event->variant->bits_size;
    return RowStatus_ROWS;
}

/* Go on to an event with wanted rows: ROWS; END after the last one. */
static inline long next_rows(Bytes data, Rows events, RowField *state, const KnownTables *known,
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
        long status = look_at_event(data, state, known, event);
        if (status != RowStatus_END)
            return status;
    }
    return RowStatus_END;
}

/* Find microseconds since 1970; false if there is no such moment. */
static inline bool put_microseconds(Moment moment, long *out) {
    long days;
    bool is_day = days_of(moment.date.year, moment.date.month, moment.date.day, &days);
    Clock clock = moment.clock;
    *out = days * DAY_US + ((clock.hour * 60 + clock.minute) * 60 + clock.second) * 1000000 + clock.microsecond;
    return is_day && clock.hour < 24 && clock.minute < 60 && clock.second < 60;
}

/* Read a value of fixed size into `out`, and a second half into `behind`: 1; 0 if it stands for no value, or is
skipped; -1 if it is wrong. */
static inline long read_value(Bytes data, long offset, const StepRow *step, long *out, long *behind) {
    long first = step->first, second = step->second, size = step->size;
    switch (step->op) {
    case RowOp_INTEGER: {
        long spare = second ? 64 - 8 * size : 0; /* bits that become copies of the sign, without a branch */
        *out = (long)(little(data, offset, size) << spare) >> spare;
        return 1;
    }
    case RowOp_BIG_ENDIAN:
        *out = (long)big(data, offset, size);
        return 1;
    case RowOp_FLOAT:
        *out = load32(data.at + offset);
        return 1;
    case RowOp_DOUBLE:
        *out = (long)load64(data.at + offset);
        return 1;
    case RowOp_YEAR:
        *out = data.at[offset] ? data.at[offset] + 1900 : 0;
        return 1;
    case RowOp_DECIMAL: {
        __int128 value;
        if (!read_decimal(data, offset, first, second, &value))
            return -1;
        *out = (long)value;
        *behind = (long)(value >> 64);
        return 1;
    }
    case RowOp_DATE: {
        Date date = date_at(data, offset);
        return days_of(date.year, date.month, date.day, out);
    }
    case RowOp_DATETIME: {
        Moment moment;
        return datetime_at(data, offset, first, &moment) ? put_microseconds(moment, out) : -1;
    }
    case RowOp_TIMESTAMP: {
        long seconds = (long)big(data, offset, 4), microsecond = fraction_of(data, offset + 4, first);
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

/* Read an image at an offset, which moves, into a row of the output by `count` steps; false if it is wrong. */
static inline bool read_image(Bytes data, long *at, long end, const StepRow *step, long count, long row,
                              Rows values, ByteRows valid) {
    const byte *nulls = data.at + *at;
    long offset = *at + (count + 7) / 8;
    if (offset > end)
        return false;
    for (long bit = 0; bit < count; bit++, step++) {
        if (nulls[bit >> 3] >> (bit & 7) & 1)
            continue;
        long op = step->op, slot = step->slot, size = step->size;
        long *out = number_at(values, slot, row), *behind = out + values.columns;
        byte *is_there = valid.at + slot * valid.columns + row;
        if (end - offset < size)
            return false;
        if (op != RowOp_SKIP_PREFIXED && op != RowOp_RAW_PREFIXED) {
            long found = read_value(data, offset, step, out, behind);
            if (found < 0)
                return false;
            if (found)
                *is_there = 1;
            offset += size;
            continue;
        }
        long length = (long)little(data, offset, size);
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

/* Read the rows of an event. Each image is a row of the output: an update has two. */
static long read_rows(Bytes data, RowsEvent *event, RowField *state, const StepRow *steps, long variant_number,
                      const Decoded *decoded) {
    const VariantRow *variant = event->variant;
    long offset = event->offset, end = event->end, row = state->rows, kind = event->kind;
    long row_max = decoded->row_groups.size, status = RowStatus_END;
    while (offset < end && status == RowStatus_END) {
        const StepRow *step = steps + (kind == UPDATE_AFTER ? variant->after_first_step : variant->first_step);
        long count = kind == UPDATE_AFTER ? variant->after_steps : variant->steps;
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

/* Read the rows of events from the current one on, up to one for which the caller has to do something. */
KERNEL(decode_rows) {
    RowField *state = a->state.at;
    long status;
    RowsEvent event = {.last_map = -1};
    while ((status = next_rows(a->data, a->events, state, &a->known, &event)) == RowStatus_ROWS) {
        const VariantRow *variant = event.variant;
        long number = variant - (const VariantRow *)a->known.variants.at;
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

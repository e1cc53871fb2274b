/* A kernel that reads the rows of row events into columns.

Every value becomes one number of 64 bits, or two; of what is longer they are the place. One kernel serves all tables:
steps say how each column is read. The reference, which also says what is wrong with an event:
`ibbmaster.event.rows`. */

#define NO_ROWS -1 /* instead of a kind of changes */
#define BAD_ROWS -2
#define DAY_US (DAY_S * INT64_C(1000000))

/* Where the reading of an event's rows ended: the offset behind what was read, and the next free row. */
typedef struct { int64_t status, offset, row; } RowsEnd;

/* What a row event begins with: the kind of its changes, NO_ROWS if it is no row event; the table's number, where the
columns present begin, and how many columns there are, -1 for too many. */
typedef struct { int64_t kind, table_id, offset, column_count; } RowsHead;

/* Read a DATETIME as microseconds since 1970: 1, 0 if there is no such moment, or -1 if it is none. */
static inline int64_t read_datetime(Bytes data, int64_t offset, int64_t digits, int64_t *moment) {
    int64_t value = (int64_t)big(data, offset, 5) - (INT64_C(1) << 39);
    int64_t fraction = fraction_of(data, offset + 5, digits);
    if (value < 0 || fraction < 0)
        return -1;
    uint64_t year_month = (uint64_t)(value >> 22), year = year_month / 13;
    int64_t days, hour = value >> 12 & 31, minute = value >> 6 & 63, second = value & 63;
    bool is_day = days_of((int64_t)year, (int64_t)(year_month - 13 * year), value >> 17 & 31, &days);
    *moment = days * DAY_US + ((hour * 60 + minute) * 60 + second) * 1000000 + fraction;
    return is_day && hour < 24 && minute < 60 && second < 60;
}

/* Read the rows of an event that lie in data[offset:end].

Each image is a row of the output; an update has two, read with the steps from `first` and from `after_first`. */
static RowsEnd read_rows(Bytes data, int64_t offset, int64_t end, const int64_t *steps, const int64_t *variant,
                         bool is_update, int64_t row, int64_t row_max, NumberRows values, ByteRows valid) {
    bool is_after = false;
    while (offset < end) {
        if (!is_after && row + 2 > row_max)
            return (RowsEnd){RowStatus_FULL, offset, row};
        const int64_t *of_image = variant + (is_after ? VariantColumn_AFTER_FIRST_STEP : VariantColumn_FIRST_STEP);
        const int64_t *step = steps + of_image[0] * StepColumn_COLUMNS;
        int64_t count = of_image[1];
        const uint8_t *nulls = data.at + offset;
        offset += (count + 7) / 8;
        if (offset > end)
            return (RowsEnd){RowStatus_BAD, offset, row};
        for (int64_t bit = 0; bit < count; bit++, step += StepColumn_COLUMNS) {
            if (nulls[bit >> 3] >> (bit & 7) & 1)
                continue;
            int64_t op = step[StepColumn_OP], first = step[StepColumn_FIRST], second = step[StepColumn_SECOND];
            int64_t slot = step[StepColumn_SLOT], size = step[StepColumn_SIZE];
            int64_t *out = values.at + slot * values.columns + row; /* the second slot is a row of `values` further */
            uint8_t *is_there = valid.at + slot * valid.columns + row;
            if (end - offset < size)
                return (RowsEnd){RowStatus_BAD, offset, row};
            if (op == RowOp_SKIP_PREFIXED || op == RowOp_RAW_PREFIXED) {
                int64_t length = (int64_t)little(data, offset, size);
                offset += size;
                if (end - offset < length)
                    return (RowsEnd){RowStatus_BAD, offset, row};
                if (op == RowOp_RAW_PREFIXED) {
                    out[0] = offset;
                    out[values.columns] = length;
                    *is_there = 1;
                }
                offset += length;
                continue;
            }
            bool is_valid = true;
            switch (op) {
            case RowOp_INTEGER: {
                int64_t spare = second ? 64 - 8 * size : 0; /* bits that become copies of the sign, without a branch */
                *out = (int64_t)(little(data, offset, size) << spare) >> spare;
                break;
            }
            case RowOp_BIG_ENDIAN:
                *out = (int64_t)big(data, offset, size);
                break;
            case RowOp_FLOAT:
                *out = load32(data.at + offset);
                break;
            case RowOp_DOUBLE:
                *out = (int64_t)load64(data.at + offset);
                break;
            case RowOp_YEAR:
                *out = data.at[offset] ? data.at[offset] + 1900 : 0;
                break;
            case RowOp_DECIMAL: {
                __int128 value;
                if (!read_decimal(data, offset, first, second, &value))
                    return (RowsEnd){RowStatus_BAD, offset, row};
                out[0] = (int64_t)value;
                out[values.columns] = (int64_t)(value >> 64);
                break;
            }
            case RowOp_DATE: {
                int64_t value = (int64_t)little(data, offset, 3);
                is_valid = days_of(value >> 9, value >> 5 & 15, value & 31, out);
                break;
            }
            case RowOp_DATETIME: {
                int64_t found = read_datetime(data, offset, first, out);
                if (found < 0)
                    return (RowsEnd){RowStatus_BAD, offset, row};
                is_valid = found;
                break;
            }
            case RowOp_TIMESTAMP: {
                int64_t seconds = (int64_t)big(data, offset, 4), fraction = fraction_of(data, offset + 4, first);
                if (fraction < 0)
                    return (RowsEnd){RowStatus_BAD, offset, row};
                is_valid = seconds != 0 || (size > 4 && big(data, offset + 4, size - 4)); /* also a digit not shown */
                *out = seconds * 1000000 + fraction;
                break;
            }
            case RowOp_RAW_FIXED:
                out[0] = offset;
                out[values.columns] = size;
                break;
            }
            if (op != RowOp_SKIP_FIXED && is_valid)
                *is_there = 1;
            offset += size;
        }
        row++;
        is_after = is_update && !is_after;
    }
    return (RowsEnd){is_after ? RowStatus_BAD : RowStatus_END, offset, row};
}

/* Read what the event data[start:end] begins with. */
static inline RowsHead rows_head(Bytes data, int64_t start, int64_t end) {
    int64_t event_type = data.at[start + TYPE_OFFSET], offset = start + EVENT_HEADER;
    bool is_v2 = event_type >= EventType_WRITE_ROWS && event_type <= EventType_DELETE_ROWS;
    RowsHead head = {NO_ROWS, 0, offset, 0};
    if (event_type == EventType_UPDATE_ROWS_V1 || event_type == EventType_UPDATE_ROWS)
        head.kind = UPDATE_BEFORE;
    else if (event_type == EventType_DELETE_ROWS_V1 || event_type == EventType_DELETE_ROWS)
        head.kind = DELETE;
    else if (event_type == EventType_WRITE_ROWS_V1 || event_type == EventType_WRITE_ROWS)
        head.kind = INSERT;
    else
        return head;
    if (end - offset < 8 + 2 + 3) {
        head.kind = BAD_ROWS;
        return head;
    }
    head.table_id = (int64_t)little(data, offset, 6);
    offset += 8;
    if (is_v2) {
        int64_t extra = load16(data.at + offset);
        offset += extra;
        if (extra < 2 || end - offset < 3) {
            head.kind = BAD_ROWS;
            return head;
        }
    }
    head.column_count = data.at[offset++];
    if (head.column_count == 252) {
        head.column_count = load16(data.at + offset);
        offset += 2;
    } else if (head.column_count > 252) {
        head.column_count = -1; /* no table has so many */
    }
    head.offset = offset;
    return head;
}

/* The row of the table with these bytes, -1 for none; looks at row `last` first. */
static int64_t find_map(const uint8_t *bytes, int64_t size, const int64_t *maps, int64_t map_count,
                        const uint8_t *store, int64_t last) {
    for (int64_t turn = -1; turn < map_count; turn++) {
        int64_t row = turn < 0 ? last : turn;
        const int64_t *map = maps + row * MapColumn_COLUMNS;
        if (0 <= row && row < map_count && map[MapColumn_SIZE] == size &&
            !memcmp(bytes, store + map[MapColumn_START], (size_t)size))
            return row;
    }
    return -1;
}

/* The kind of row event whose columns present are where `head` ends, NULL for none; rows of `variants` have `width`. */
static const int64_t *find_variant(const uint8_t *data, const RowsHead *head, int64_t end, int64_t map_row,
                                   const int64_t *variants, int64_t variant_count, int64_t width,
                                   const uint8_t *store) {
    for (const int64_t *variant = variants; variant < variants + variant_count * width; variant += width) {
        int64_t size = variant[VariantColumn_BITS_SIZE];
        if (variant[VariantColumn_MAP] == map_row && variant[VariantColumn_KIND] == head->kind &&
            variant[VariantColumn_COLUMN_COUNT] == head->column_count && head->offset + size <= end &&
            !memcmp(data + head->offset, store + variant[VariantColumn_BITS_START], (size_t)size))
            return variant;
    }
    return NULL;
}

/* The place of a table among those that a group has named, or the free one where it belongs. */
static int64_t find_open(NumberRows open_tables, int64_t table_id, int64_t turn) {
    int64_t mask = open_tables.rows - 1, place = table_id & mask;
    for (;; place = (place + 1) & mask) {
        const int64_t *open = open_tables.at + place * OpenColumn_COLUMNS;
        if (open[OpenColumn_TURN] != turn || open[OpenColumn_ID] == table_id)
            return place;
    }
}

/* The row of the maps of a table that a group has named, -1 if it has not. */
static inline int64_t open_map(NumberRows open_tables, int64_t table_id, int64_t turn) {
    const int64_t *open = open_tables.at + find_open(open_tables, table_id, turn) * OpenColumn_COLUMNS;
    return open[OpenColumn_TURN] == turn ? open[OpenColumn_MAP] : -1;
}

/* Note what a group calls a table; how many it has named then, or -1 where there is no room for one more. */
static int64_t name_table(NumberRows open_tables, int64_t open_count, int64_t table_id, int64_t turn,
                          int64_t map_row) {
    int64_t *open = open_tables.at + find_open(open_tables, table_id, turn) * OpenColumn_COLUMNS;
    if (open[OpenColumn_TURN] != turn) {
        if (2 * open_count >= open_tables.rows)
            return -1;
        open[OpenColumn_ID] = table_id;
        open[OpenColumn_TURN] = turn;
        open_count++;
    }
    open[OpenColumn_MAP] = map_row;
    return open_count;
}

/* Read the rows of events from the current one on, in groups from its group's first event on.

Stops at an event for which the caller has to do something; call it again then. */
static int64_t decode_rows(Bytes data, NumberRows events, int64_t *state, KnownTables known, Decoded decoded) {
    int64_t row = state[RowField_ROWS], event = state[RowField_EVENT], row_max = decoded.row_groups.size;
    int64_t *row_kinds = decoded.row_kinds.at;
    int64_t last_map = -1, status = RowStatus_END;
    for (; event < events.rows; event++) {
        const int64_t *place = events.at + event * EventColumn_COLUMNS;
        int64_t start = place[EventColumn_START], size = place[EventColumn_SIZE], end = start + size;
        if (place[EventColumn_GROUP] != state[RowField_GROUP]) {
            state[RowField_GROUP] = place[EventColumn_GROUP];
            state[RowField_OPEN] = 0;
            state[RowField_TURN]++;
        }
        if (data.at[start + TYPE_OFFSET] == EventType_TABLE_MAP) {
            if (size < EVENT_HEADER + 8) {
                status = RowStatus_BAD;
                break;
            }
            int64_t map_row = find_map(data.at + start + EVENT_HEADER, size - EVENT_HEADER, known.maps.at,
                                       known.map_count, known.store.at, last_map);
            if (map_row < 0) {
                status = RowStatus_NEW_MAP;
                break;
            }
            last_map = map_row;
            int64_t table_id = (int64_t)little(data, start + EVENT_HEADER, 6);
            int64_t open_count =
                name_table(known.open_tables, state[RowField_OPEN], table_id, state[RowField_TURN], map_row);
            if (open_count < 0) {
                status = RowStatus_MANY_TABLES;
                break;
            }
            state[RowField_OPEN] = open_count;
            continue;
        }
        RowsHead head = rows_head(data, start, end);
        if (head.kind == NO_ROWS)
            continue;
        int64_t map_row = -1;
        if (head.kind != BAD_ROWS)
            map_row = open_map(known.open_tables, head.table_id, state[RowField_TURN]);
        if (map_row < 0) {
            status = RowStatus_BAD;
            break;
        }
        if (!known.maps.at[map_row * MapColumn_COLUMNS + MapColumn_IS_WANTED])
            continue;
        if (map_row != state[RowField_TABLE] && state[RowField_TABLE] != ANY_TABLE) {
            state[RowField_TABLE] = map_row;
            status = RowStatus_NEW_TABLE;
            break;
        }
        const int64_t *variant = find_variant(data.at, &head, end, map_row, known.variants.at, known.variant_count,
                                              VariantColumn_COLUMNS, known.store.at);
        if (!variant) {
            status = RowStatus_NEW_VARIANT;
            break;
        }
        int64_t offset = head.offset + variant[VariantColumn_BITS_SIZE];
        if (state[RowField_OFFSET] > 0)
            offset = state[RowField_OFFSET];
        if (variant[VariantColumn_STEPS] + variant[VariantColumn_AFTER_STEPS] == 0 && offset < end) {
            status = RowStatus_BAD;
            break;
        }
        bool is_update = head.kind == UPDATE_BEFORE;
        RowsEnd read = read_rows(data, offset, end, known.steps.at, variant, is_update, row, row_max, decoded.values,
                                 decoded.valid);
        int64_t number = (variant - known.variants.at) / VariantColumn_COLUMNS;
        for (int64_t begun = row; row < read.row; row++) {
            bool is_after = is_update && (row - begun) % 2;
            decoded.row_groups.at[row] = state[RowField_GROUP];
            row_kinds[row] = number << KIND_BITS | (is_after ? UPDATE_AFTER : head.kind);
        }
        status = read.status;
        if (status != RowStatus_END) {
            state[RowField_OFFSET] = status == RowStatus_FULL ? read.offset : 0;
            break;
        }
        decoded.event_sizes.at[number] += size;
        state[RowField_OFFSET] = 0;
    }
    state[RowField_ROWS] = row;
    state[RowField_EVENT] = event;
    return status;
}

KERNEL(find_open) { results[0] = find_open(a->open_tables, a->table_id, a->turn); }

KERNEL(decode_rows) { results[0] = decode_rows(a->data, a->events, a->state.at, a->known, a->decoded); }

/* The kernel that leaves out groups, and events of tables, of framed packets. It hands back each group that needs a
decision. The references: `ibbmaster.logs.stages.filtering`, and `ibbmaster.logs.stages.stage` for emptied groups. */

#define NAMES_AT (EVENT_HEADER + TABLE_ID_SIZE + 2) /* of a TABLE_MAP */
#define NOT_OF_EMPTIED (GtidFlag_STANDALONE | GtidFlag_DDL | GtidFlag_WAITED | HAS_XID)
#define COMMIT_EVENT_BYTES (EVENT_HEADER + QUERY_FIXED + 1 + 6)

static long verdict_of(const byte *named, long size, const byte *names, Rows tables) {
    long digest = crc32(named, size, 0), mask = tables.rows - 1;
    for (long row = digest & mask;; row = (row + 1) & mask) {
        const TableRow *table = ROW(TableRow, tables, row);
        if (table->bytes == 0)
            return UNKNOWN;
        if (table->hash == digest && table->bytes == size && memcmp(names + table->offset, named, (size_t)size) == 0)
            return table->verdict;
    }
}

/* Bytes of the names of a TABLE_MAP event; 0 if they do not end in it. */
static inline long names_bytes(const byte *event, long size) {
    if (NAMES_AT >= size)
        return 0;
    long table_at = NAMES_AT + event[NAMES_AT] + 2;
    if (table_at >= size || table_at + event[table_at] + 1 >= size)
        return 0;
    return table_at + event[table_at] + 2 - NAMES_AT;
}

static inline long table_id_of(const byte *event) {
    return load32(event + EVENT_HEADER) | load16(event + EVENT_HEADER + 4) << 32;
}

typedef struct { long table_id, verdict; } Opened;

/* The row of a table; `count` if it has none. */
static inline long find_opened(const Opened *opened, long count, long table_id) {
    long row = 0;
    while (row < count && opened[row].table_id != table_id)
        row++;
    return row;
}

static inline bool has_rows(long event_type) {
    return (event_type >= EventType_WRITE_ROWS_V1 && event_type <= EventType_DELETE_ROWS_V1) ||
           (event_type >= EventType_WRITE_ROWS && event_type <= EventType_DELETE_ROWS) ||
           (event_type >= EventType_WRITE_ROWS_COMPRESSED_V1 && event_type <= EventType_DELETE_ROWS_COMPRESSED);
}

static bool is_chosen(const byte *event, Rows numbers) {
    bool has_domains = false, has_servers = false, is_of_domain = false, is_of_server = false;
    const NumberRule *rule = numbers.at;
    for (long row = 0; row < numbers.rows; row++, rule++) {
        if (rule->what == CHOSEN_DOMAIN) {
            has_domains = true;
            is_of_domain = is_of_domain || rule->old == domain_of(event);
        } else {
            has_servers = true;
            is_of_server = is_of_server || rule->old == server_of(event);
        }
    }
    return (is_of_domain || !has_domains) && (is_of_server || !has_servers);
}

/* Write a group with the GTID event of this packet and a COMMIT; returns how many bytes. */
static long put_emptied(const byte *packet, long packet_size, long prefix_size, long sequence, byte *out) {
    long before = 4 + prefix_size;
    const byte *event = packet + before;
    long flags = event[GTID_FLAGS_OFFSET];
    long kept = FIELDS_OFFSET + (flags & HAS_COMMIT_ID ? COMMIT_ID_BYTES : 0);
    long size = max64(kept, GTID_EVENT_SIZE_MIN);
    byte *head = out + before;
    copy(out, packet, before + kept);
    store32(out, (prefix_size + size) | sequence << 24);
    store32(head + SIZE_OFFSET, size);
    head[GTID_FLAGS_OFFSET] = (byte)(flags & ~NOT_OF_EMPTIED);
    memset(head + kept, 0, (size_t)(size - kept));
    byte *second = head + size, *commit = second + before;
    copy(second, packet, before + EVENT_HEADER);
    store32(second, (prefix_size + COMMIT_EVENT_BYTES) | ((sequence + 1) & 0xFF) << 24);
    commit[TYPE_OFFSET] = EventType_QUERY;
    store32(commit + SIZE_OFFSET, COMMIT_EVENT_BYTES);
    memset(commit + LOG_POS_OFFSET, 0, COMMIT_EVENT_BYTES - LOG_POS_OFFSET);
    long at = extra_flags_at(event);
    bool has_thread = at < packet_size - before && event[at] & HAS_THREAD_ID;
    store32(commit + EVENT_HEADER, has_thread ? load32(event + thread_at(event, at)) : 0);
    store64(commit + EVENT_HEADER + QUERY_FIXED + 1, COMMIT_TEXT);
    return commit + COMMIT_EVENT_BYTES - out;
}

static inline long put_packet(const byte *packet, long size, long *sequence, byte *out) {
    copy(out, packet, size);
    out[3] = (byte)*sequence;
    *sequence = (*sequence + 1) & 0xFF;
    return size;
}

/* Copy the packets of source[READ_AT:], which are whole groups, without what is not chosen. Rows of `numbers`:
CHOSEN_DOMAIN or CHOSEN_SERVER, and which; others are emptied. `names` and `tables` say what becomes of the events of
tables, `opened` has room for those of one group. OUT and SEQUENCE continue. Returns a `FilterStatus`. */
KERNEL(leave_out) {
    const byte *source = a->source.at;
    FilterField *state = a->state.at, here = *state; /* kept at the begin of each group */
    Opened *opened = a->opened.at;
    byte *out = a->out.at;
    long size = a->source.size, prefix_size = here.prefix_size, before = 4 + prefix_size;
    for (; here.read_at < size; *state = here) {
        long end = packet_end(source, here.read_at, size, prefix_size), offset = here.read_at;
        const byte *event = source + offset + before;
        if (end < 0 || event[TYPE_OFFSET] != EventType_GTID || here.out + EMPTIED_MAX + end - offset > a->out.size)
            return FilterStatus_WRONG;
        long kind = group_kind(event, end - offset - before);
        if (kind == NO_GROUP)
            return FilterStatus_WRONG;
        bool is_emptied = !is_chosen(event, a->numbers);
        if (is_emptied) {
            here.out += put_emptied(source + offset, end - offset, prefix_size, here.sequence, out + here.out);
            here.sequence = (here.sequence + 2) & 0xFF;
        } else {
            here.out += put_packet(source + offset, end - offset, &here.sequence, out + here.out);
        }
        long open_count = 0, annotated_at = -1, annotated_end = -1;
        bool has_kept = false, has_left_out = false; /* of the group */
        bool is_kept = false, is_left_out = false; /* of the statement */
        for (offset = end; offset < size; offset = end) {
            end = packet_end(source, offset, size, prefix_size);
            if (end < 0)
                return FilterStatus_WRONG;
            event = source + offset + before;
            long event_type = event[TYPE_OFFSET], event_bytes = end - offset - before;
            if (event_type == EventType_GTID)
                break;
            bool takes = !is_emptied;
            if (here.by_table && takes) {
                if (has_rows(event_type)) {
                    if (event_bytes < NAMES_AT)
                        return FilterStatus_GROUP;
                    long row = find_opened(opened, open_count, table_id_of(event));
                    if (row == open_count)
                        return FilterStatus_GROUP;
                    takes = opened[row].verdict == KEPT;
                    if (event[EVENT_HEADER + TABLE_ID_SIZE] & FLAG_STATEMENT_END) {
                        is_kept = is_left_out = false;
                        annotated_at = -1;
                    }
                } else if (event_type == EventType_TABLE_MAP) {
                    long named = names_bytes(event, event_bytes), verdict = DOUBTFUL;
                    if (named > 0)
                        verdict = verdict_of(event + NAMES_AT, named, a->names.at, a->tables);
                    if (verdict == UNKNOWN) {
                        state->table_at = offset + before;
                        return FilterStatus_TABLE;
                    }
                    takes = verdict == KEPT;
                    is_kept = is_kept || takes;
                    is_left_out = is_left_out || !takes;
                    has_kept = has_kept || takes;
                    has_left_out = has_left_out || !takes;
                    if (verdict == DOUBTFUL || (is_kept && is_left_out))
                        return FilterStatus_GROUP;
                    long row = find_opened(opened, open_count, table_id_of(event));
                    if (row == a->opened.rows)
                        return FilterStatus_GROUP;
                    opened[row] = (Opened){table_id_of(event), verdict};
                    open_count = max64(open_count, row + 1);
                    if (takes && annotated_at >= 0) {
                        long annotated = annotated_end - annotated_at;
                        if (here.out + annotated + EMPTIED_MAX > a->out.size)
                            return FilterStatus_WRONG;
                        here.out += put_packet(source + annotated_at, annotated, &here.sequence, out + here.out);
                        annotated_at = -1;
                    }
                } else if (event_type == EventType_ANNOTATE_ROWS) {
                    annotated_at = offset;
                    annotated_end = end;
                    takes = false;
                } else if (event_type != EventType_XID && event_type != EventType_XA_PREPARE &&
                           !(event_type == EventType_QUERY && is_ending_query(event, event_bytes))) {
                    return FilterStatus_GROUP;
                }
            }
            if (takes) {
                if (here.out + end - offset + EMPTIED_MAX > a->out.size)
                    return FilterStatus_WRONG;
                here.out += put_packet(source + offset, end - offset, &here.sequence, out + here.out);
            }
        }
        if (kind == STANDALONE && has_left_out && !has_kept)
            return FilterStatus_GROUP;
        here.read_at = offset;
    }
    return FilterStatus_DONE;
}

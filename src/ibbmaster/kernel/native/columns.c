/* Kernels that make columns of what was collected: event headers, GTIDs as text, strings side by side. */

/* Type, time in microseconds, server id and flags of each event. */
static void header_columns(const uint8_t *data, const int64_t *events, int64_t count, int32_t *types,
                           int64_t *timestamps, int64_t *server_ids, int32_t *flags) {
    for (int64_t index = 0; index < count; index++) {
        const uint8_t *event = data + events[index * EventColumn_COLUMNS + EventColumn_START];
        timestamps[index] = load32(event) * 1000000;
        types[index] = event[TYPE_OFFSET];
        server_ids[index] = server_of(event);
        flags[index] = (int32_t)load16(event + FLAGS_OFFSET);
    }
}

/* Write the GTID of a group; returns the place behind it. */
static uint8_t *put_gtid(uint8_t *at, const int64_t *group) {
    at = put_number(at, (uint64_t)group[GroupColumn_DOMAIN], 1);
    *at++ = '-';
    at = put_number(at, (uint64_t)group[GroupColumn_SERVER], 1);
    *at++ = '-';
    return put_number(at, (uint64_t)group[GroupColumn_SEQ_NO], 1);
}

/* Write the GTIDs of the groups in `wanted` as text, side by side; `out` has room for the longest ones. */
static void gtid_texts(const int64_t *groups, const int64_t *wanted, int64_t count, int32_t *offsets, uint8_t *out) {
    uint8_t *at = out, *last_at = out;
    int64_t last = -1, last_size = 0;
    offsets[0] = 0;
    for (int64_t index = 0; index < count; index++) {
        if (wanted[index] == last) {
            memcpy(at, last_at, (size_t)last_size);
            at += last_size;
        } else {
            last = wanted[index];
            last_at = at;
            at = put_gtid(at, groups + last * GroupColumn_COLUMNS);
            last_size = at - last_at;
        }
        offsets[index + 1] = (int32_t)(at - out);
    }
}

/* Put strings side by side, each with zeros up to `padded` bytes; absent ones are empty.

Returns how many bytes they take; the copying ends where `out` does. */
static int64_t copy_strings(Bytes data, const int64_t *starts, const int64_t *sizes, const uint8_t *valid,
                            int64_t count, int64_t padded, int32_t *offsets, Bytes out) {
    int64_t position = 0;
    offsets[0] = 0;
    for (int64_t index = 0; index < count; index++) {
        if (valid[index]) {
            int64_t start = starts[index], size = sizes[index], taken = max64(size, padded);
            if (size <= 32 && start + 32 <= data.size && position + max64(taken, 32) <= out.size)
                memcpy(out.at + position, data.at + start, 32); /* what is too much is written over, or cut off */
            else if (position + taken <= out.size)
                memcpy(out.at + position, data.at + start, (size_t)size);
            if (taken > size && position + taken <= out.size)
                memset(out.at + position + size, 0, (size_t)(taken - size));
            position += taken;
        }
        offsets[index + 1] = (int32_t)min64(position, INT32_MAX);
    }
    return position;
}

KERNEL(header_columns) {
    (void)results;
    header_columns(a->data.at, a->events.at, a->count, a->types.at, a->timestamps.at, a->server_ids.at, a->flags.at);
}

KERNEL(gtid_texts) {
    (void)results;
    gtid_texts(a->groups.at, a->wanted.at, a->count, a->offsets.at, a->out.at);
}

KERNEL(copy_strings) {
    results[0] = copy_strings(a->data, a->starts.at, a->sizes.at, a->valid.at, a->count, a->padded, a->offsets.at,
                              a->out);
}

/* Kernels that make columns of what was collected. */

KERNEL(header_columns) {
    for (long index = 0; index < a->events.rows; index++) {
        const byte *event = a->data.at + ROW(EventRow, a->events, index)->start;
        a->timestamps.at[index] = load32(event) * 1000000;
        a->types.at[index] = event[TYPE_OFFSET];
        a->server_ids.at[index] = server_of(event);
        a->flags.at[index] = (int32_t)load16(event + FLAGS_OFFSET);
    }
    return 0;
}

static byte *put_gtid(byte *at, const GroupRow *group) {
    at = put_number(at, (uint64_t)group->domain, 1);
    *at++ = '-';
    at = put_number(at, (uint64_t)group->server, 1);
    *at++ = '-';
    return put_number(at, (uint64_t)group->seq_no, 1);
}

/* Write the GTIDs of the groups in `wanted` side by side; `out` has room for the longest ones. */
KERNEL(gtid_texts) {
    byte *at = a->out.at, *last_at = at;
    long last = -1, last_size = 0;
    a->offsets.at[0] = 0;
    for (long index = 0; index < a->wanted.size; index++) {
        if (a->wanted.at[index] == last) {
            copy(at, last_at, last_size);
            at += last_size;
        } else {
            last = a->wanted.at[index];
            last_at = at;
            at = put_gtid(at, ROW(GroupRow, a->groups, last));
            last_size = at - last_at;
        }
        a->offsets.at[index + 1] = (int32_t)(at - a->out.at);
    }
    return 0;
}

/* Put strings side by side, each with zeros up to `padded` bytes; absent ones are empty. Returns how many bytes they
take; the copying ends where `out` does. */
KERNEL(copy_strings) {
    const byte *data = a->data.at, *valid = a->valid.at;
    byte *out = a->out.at;
    int32_t *offsets = a->offsets.at;
    long position = 0, readable = a->data.size - 32, room = a->out.size, padded = a->padded;
    offsets[0] = 0;
    for (long index = 0; index < a->starts.size; index++) {
        if (valid[index]) {
            long start = a->starts.at[index], size = a->sizes.at[index], taken = max64(size, padded);
            if (size <= 32 && start <= readable && position + max64(taken, 32) <= room)
                memcpy(out + position, data + start, 32); /* what is too much is written over, or cut off */
            else if (position + taken <= room)
                copy(out + position, data + start, size);
            if (taken > size && position + taken <= room)
                memset(out + position + size, 0, (size_t)(taken - size));
            position += taken;
        }
        offsets[index + 1] = (int32_t)min64(position, INT32_MAX);
    }
    return position;
}

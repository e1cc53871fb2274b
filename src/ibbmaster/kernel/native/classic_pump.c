/* A kernel that reads traditional files, frames and sends by itself. */

#define BYTES_PER_READ (1 << 18)      /* that and what is made of it stay in the second cache of a core */
#define BYTES_PER_LONG_READ (1 << 20) /* of groups that are longer */

/* Frame and send until the budget is used, the socket takes no more, or the caller has to decide. */
static int64_t pump_classic(int64_t file, int64_t socket, Bytes source, const Framing *framing, const Roles *roles,
                            const Sending *sending) {
    int64_t *state = framing->state.at, *progress = sending->progress.at;
    int64_t wanted = BYTES_PER_READ;
    while (progress[Progress_FRAMED] < progress[Progress_BUDGET]) {
        int64_t size = pread((int)file, source.at, (size_t)wanted, progress[Progress_FILE_OFFSET]);
        if (progress[Progress_END] > 0 && state[ClassicField_IN_PARTS] == 0)
            size = min64(size, progress[Progress_END] - progress[Progress_FILE_OFFSET]);
        if (size <= 0)
            return Status_NEED_MORE;
        state[ClassicField_READ_AT] = 0;
        state[ClassicField_SOURCE_OFFSET] = progress[Progress_FILE_OFFSET];
        state[Field_OUT] = 0;
        int64_t status = frame_classic(source, size, framing, roles, (NumberRows){0});
        bool has_advanced = state[ClassicField_READ_AT] > 0 || state[Field_OUT] > 0;
        progress[Progress_FILE_OFFSET] += state[ClassicField_READ_AT];
        if (!send_framed(socket, source, framing, sending))
            return Status_FULL;
        if (status == Status_DONE) {
            state[ClassicField_IN_PARTS] = 0;
            wanted = BYTES_PER_READ;
        } else if (status == Status_FALLBACK) {
            return Status_FALLBACK;
        } else if (has_advanced) {
            wanted = state[ClassicField_IN_PARTS] ? BYTES_PER_LONG_READ : BYTES_PER_READ;
        } else if (status == Status_NEED_MORE && size < wanted) {
            return Status_NEED_MORE;
        } else if (status == Status_NEED_MORE && wanted < BYTES_PER_LONG_READ) {
            wanted = BYTES_PER_LONG_READ;
        } else if (state[ClassicField_IN_PARTS] || !state[ClassicField_MAY_BE_IN_PARTS]) {
            return status;
        } else {
            state[ClassicField_IN_PARTS] = 1;
        }
    }
    return Status_FULL;
}

KERNEL(pump_classic) {
    cork(a->socket, 1);
    return uncorked(a->socket, pump_classic(a->file, a->socket, a->source, &a->framing, &a->roles, &a->sending));
}

/* A kernel that finds the plain groups of a traditional binlog, and puts their events side by side. It stops before
what is not plain. The reference: `ibbmaster.logs.classic.groups`. */

enum { NO_GROUP, TRANSACTION, STANDALONE }; /* what begins with an event */
enum { CUT = 0, WRONG = -1 };               /* of an event: not all of it is here; the reference says what is wrong */
enum { CUT_GROUP = -2, NOT_PLAIN = -1 };    /* instead of the end of a group */
enum { COMMIT_ID_BYTES = 8, XID_BYTES = 6, ALTER_SEQ_NO_BYTES = 8, THREAD_ID_BYTES = 4 }; /* of a GTID event */
#define HAS_ENGINE_COUNT GtidExtraFlag_MULTI_ENGINE
#define HAS_ALTER_SEQ_NO (GtidExtraFlag_COMMIT_ALTER | GtidExtraFlag_ROLLBACK_ALTER)
#define PACKET_HEAD 5    /* bytes before an event in a dump: size, number, status */
#define SEMI_SYNC_HEAD 7 /* and of a semi-synchronous one, whose packets may have any number: magic, whether to answer */
#define SEMI_SYNC_MAGIC 0xEF
#define QUERY_FIXED 13 /* bytes before the status of a QUERY event */
#define ENDING_QUERY_MAX (64 * 1024)
#define COMMIT_TEXT UINT64_C(0x54494D4D4F43) /* the letters, from the lowest byte on */
#define ROLLBACK_TEXT UINT64_C(0x4B4341424C4C4F52)

/* The size of an event that is whole in `here` bytes, and right; else CUT or WRONG. */
static inline long event_size(const byte *event, long here, long file_offset, long checksum_bytes) {
    if (here < EVENT_HEADER)
        return CUT;
    long size = size_of(event), log_pos = load32(event + LOG_POS_OFFSET);
    if (size < EVENT_HEADER + checksum_bytes || size - checksum_bytes > EVENT_MAX)
        return WRONG;
    if (log_pos != 0 && log_pos != ((file_offset + size) & 0xFFFFFFFF))
        return WRONG;
    if (size > here)
        return CUT;
    if (checksum_bytes > 0 && crc32(event, size - CHECKSUM_SIZE, 0) != load32(event + size - CHECKSUM_SIZE))
        return WRONG;
    return size;
}

/* As `event_size`; of the next packet of a dump if there is a head. */
static inline long next_size(const byte *at, long here, long file_offset, long checksum_bytes, long head,
                             long *number) {
    if (!head)
        return event_size(at, here, file_offset, checksum_bytes);
    if (here < head + EVENT_HEADER) /* where that is a whole packet it is no event */
        return here >= 4 && (load32(at) & PACKET_MAX) < head - 4 + EVENT_HEADER ? WRONG : CUT;
    const byte *event = at + head;
    long size = size_of(event), payload = size + head - 4, sequence = (*number)++;
    bool is_plain = payload < PACKET_MAX && at[4] == 0 && !(event[FLAGS_OFFSET] & EventFlag_ARTIFICIAL);
    if (head == SEMI_SYNC_HEAD) {
        is_plain = is_plain && at[5] == SEMI_SYNC_MAGIC;
        sequence = at[3];
    }
    if (!is_plain || load32(at) != (payload | (sequence & 0xFF) << 24))
        return WRONG;
    return event_size(event, here - head, load32(event + LOG_POS_OFFSET) - size, checksum_bytes);
}

/* Where the extra flags of a GTID event are, if it has some. */
static inline long extra_flags_at(const byte *event) {
    long flags = event[GTID_FLAGS_OFFSET], at = FIELDS_OFFSET + (flags & HAS_COMMIT_ID ? COMMIT_ID_BYTES : 0);
    return flags & HAS_XID ? at + XID_BYTES + event[at + 4] + event[at + 5] : at;
}

/* Where the thread id of a GTID event would be, whose extra flags are at a place. */
static inline long thread_at(const byte *event, long at) {
    long extra_flags = event[at];
    return at + 1 + !!(extra_flags & HAS_ENGINE_COUNT) + (extra_flags & HAS_ALTER_SEQ_NO ? ALTER_SEQ_NO_BYTES : 0);
}

/* What begins with an event of `size` bytes, without its checksum; NO_GROUP also for the reference. */
static inline long group_kind(const byte *event, long size) {
    if (size < GTID_EVENT_SIZE_MIN || event[TYPE_OFFSET] != EventType_GTID)
        return NO_GROUP;
    long flags = event[GTID_FLAGS_OFFSET], at = FIELDS_OFFSET + (flags & HAS_COMMIT_ID ? COMMIT_ID_BYTES : 0);
    if (flags & HAS_XID &&
        (size - at < XID_BYTES || event[at + 4] > XID_PART_SIZE_MAX || event[at + 5] > XID_PART_SIZE_MAX))
        return NO_GROUP;
    at = extra_flags_at(event);
    if (at < size)
        at = thread_at(event, at) + (event[at] & HAS_THREAD_ID ? THREAD_ID_BYTES : 0);
    return at > size ? NO_GROUP : flags & GtidFlag_STANDALONE ? STANDALONE : TRANSACTION;
}

/* Where the text of a QUERY event is. */
static inline long query_text_at(const byte *event) {
    return EVENT_HEADER + QUERY_FIXED + load16(event + EVENT_HEADER + 11) + event[EVENT_HEADER + 8] + 1;
}

static bool is_ending_query(const byte *event, long size) {
    if (size <= EVENT_HEADER + QUERY_FIXED || size > ENDING_QUERY_MAX)
        return false;
    long text = query_text_at(event);
    if (size - text == 6)
        return load64(event + text - 2) >> 16 == COMMIT_TEXT;
    return size - text == 8 && load64(event + text) == ROLLBACK_TEXT;
}

static inline const byte *roles_in(long kind, const Roles *roles) {
    return kind == STANDALONE ? roles->standalone.at : roles->transaction.at;
}

static inline long event_role(const byte *event, long size, long role) {
    if (role != MAY_END)
        return role;
    return is_ending_query(event, size) ? ENDS : CONTINUES;
}

/* Where a group ends that begins here; leaves the bytes of its events without checksums. In packets of a dump the first
has that number, which is counted on; without one there are no packets. CUT_GROUP where not all of it is here, NOT_PLAIN
for the reference. */
static long group_end(Bytes data, long offset, long source_offset, long checksum_bytes, long head, long *number,
                      const Roles *roles, long *total) {
    const byte *at = data.at + offset;
    long end = data.size;
    *total = 0;
    long size = next_size(at, end - offset, source_offset + offset, checksum_bytes, head, number);
    if (size <= 0)
        return size == CUT ? CUT_GROUP : NOT_PLAIN;
    const byte *event = at + head;
    long kind = group_kind(event, size - checksum_bytes);
    if (kind == NO_GROUP || event[GTID_FLAGS_OFFSET] & HAS_XID)
        return NOT_PLAIN;
    const byte *role_of = roles_in(kind, roles);
    long bytes = size - checksum_bytes, role = CONTINUES;
    for (offset += head + size; role == CONTINUES; offset += head + size) {
        at = data.at + offset, event = at + head;
        size = next_size(at, end - offset, source_offset + offset, checksum_bytes, head, number);
        if (size <= 0)
            return size == CUT ? CUT_GROUP : NOT_PLAIN;
        role = event_role(event, size - checksum_bytes, role_of[event[TYPE_OFFSET]]);
        bytes += size - checksum_bytes;
    }
    if (role != ENDS)
        return NOT_PLAIN;
    *total = bytes;
    return offset;
}

/* Have an event be as an engine's stream has it: without checksum and place. */
static inline void strip(byte *event, long size) {
    store32(event + SIZE_OFFSET, size);
    store32(event + LOG_POS_OFFSET, 0);
}

/* Copy events, each behind `head` bytes, and `strip` them; returns how many bytes. */
static long copy_events(const byte *events, long size, long head, long checksum_bytes, byte *target) {
    long position = 0;
    for (long offset = head; offset < size;) {
        long event_bytes = size_of(events + offset), kept = event_bytes - checksum_bytes;
        copy(target + position, events + offset, kept);
        strip(target + position, kept);
        position += kept;
        offset += event_bytes + head;
    }
    return position;
}

/* Copy the events of plain groups of source[READ_AT:]; groups and data continue from GROUPS and OUT. Groups that begin
before the range are skipped. Stops before a group behind it, or not plain, or not whole here, and without room. */
KERNEL(collect_classic_groups) {
    const byte *source = a->source.at;
    Field *state = a->collecting.state.at;
    Conversion *numbers = a->numbers.at;
    Rows groups = a->collecting.groups;
    Bytes data = a->collecting.data;
    long base = numbers->source_offset, checksum_bytes = numbers->checksum_bytes;
    long offset = numbers->read_at, position = state->out, count = state->groups;
    while (count < groups.rows && base + offset < a->file_range.end_offset) {
        long total, behind = group_end(a->source, offset, base, checksum_bytes, 0, NULL, &a->roles, &total);
        if (behind < 0 || total > data.size - position)
            break;
        if (base + offset >= a->file_range.start_offset) {
            long size = copy_events(source + offset, behind - offset, 0, checksum_bytes, data.at + position);
            *ROW(GroupRow, groups, count++) =
                group_of(data.at, position, position + size, a->file_range.file_no, base + offset, base + behind);
            position += size;
        }
        offset = behind;
    }
    numbers->read_at = offset;
    state->out = position;
    state->groups = count;
    return 0;
}

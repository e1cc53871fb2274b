/* A kernel that finds the out-of-band nodes of a stream in the order of their data.

The reference: `ibbmaster.storage.ibb.oob.walk_oob`, together with `ibbmaster.logs.log.out_of_band`. */

#define TAG_BITS 3
#define TAG_MASK 7
#define LONG_TAG 7 /* of a compressed integer; the long form is for the reference */

/* A compressed integer; leaves the offset after it, -1 if it runs over the end or is long. */
static inline int64_t decode_int(const uint8_t *source, int64_t *offset, int64_t end) {
    int64_t size = (source[*offset] & TAG_MASK) + 1;
    if (*offset + size > end || size > LONG_TAG) {
        *offset = -1;
        return 0;
    }
    uint64_t value = load64(source + *offset) & ((UINT64_C(1) << (8 * size)) - 1);
    *offset += size;
    return (int64_t)(value >> TAG_BITS);
}

/* Read the page at an offset of the file; false where there is none that is good. */
static bool read_page(int64_t file, int64_t first, uint8_t *page) {
    return first >= PAGE && pread((int)file, page, PAGE, first) == PAGE && is_page_good(page);
}

/* Keep the head of a node in a chunk of this type behind the page, after `held` bytes of it; how many there are then.

-1 if this is not such a chunk. */
static int64_t keep_head(uint8_t *page, int64_t offset, int64_t chunk_type, int64_t held) {
    int64_t chunk = load32(page + offset), start = offset + CHUNK_HEADER, size = chunk >> 8 & 0xFFFF;
    if ((chunk & 0xFF & ~LAST) != chunk_type || size == 0 || start + size > DATA)
        return -1;
    int64_t taken = min64(size, NODE_HEAD_MIN - held);
    memcpy(page + PAGE + held, page + start, (size_t)taken);
    return held + taken;
}

/* Read the header of the node at a place of the file; false where there is none.

It may go on at the begin of the next page, after the state that may stand there. */
static bool read_header(int64_t file, int64_t place, uint8_t *page, int64_t *header) {
    int64_t offset = place & (PAGE - 1), first = place - offset;
    if (!read_page(file, first, page) || offset > DATA - CHUNK_HEADER - 1)
        return false;
    int64_t held = keep_head(page, offset, OOB_DATA, 0);
    if (0 < held && held < NODE_HEAD_MIN && !(page[offset] & LAST)) {
        if (!read_page(file, first + PAGE, page))
            return false;
        offset = page[0] == (GTID_STATE | LAST) ? CHUNK_HEADER + (load32(page) >> 8 & 0xFFFF) : 0;
        if (offset > DATA - CHUNK_HEADER - 1)
            return false;
        held = keep_head(page, offset, OOB_DATA | CONT, held);
    }
    if (held < 0)
        return false;
    int64_t end = PAGE + held;
    offset = PAGE;
    for (int index = 0; index < 5; index++) {
        if (offset >= end)
            return false;
        header[index] = decode_int(page, &offset, end);
        if (offset < 0)
            return false;
    }
    header[5] = offset - PAGE;
    return true;
}

/* A node that is still to be looked at. */
static inline void put_unread(UnreadNodeRow *unread, int64_t place, int64_t number, bool is_leftmost) {
    unread->place = place;
    unread->number = number;
    unread->is_leftmost = is_leftmost;
    unread->header_size = 0;
}

/* Note the nodes that come next in `nodes`, as many as there is room for; gives how many, and why no more.

`path` is what is left to look at, at first the last node of the stream. DONE after the last node, FULL where there are
more; FALLBACK where a node is in another file, or something is not as it should be: then the reference says what. */
KERNEL(find_nodes) {
    NodeScan *search = a->search.at;
    int64_t *header = a->header.at, found = 0;
    NumberRows path = a->path;
    *more = Status_FALLBACK;
    while (search->path > 0 && found < a->nodes.rows) {
        int64_t row = search->path - 1;
        UnreadNodeRow *unread = ROW(UnreadNodeRow, path, row);
        int64_t place = unread->place, number = unread->number;
        if (unread->header_size > 0) { /* all that comes before it was given */
            if (number != search->next || (number == 0 && place != search->first))
                return found;
            NodeRow *node = ROW(NodeRow, a->nodes, found);
            node->file_no = search->file_no;
            node->place = place;
            node->header_size = unread->header_size;
            found++;
            search->next++;
            search->path--;
            continue;
        }
        if (!read_header(a->file, place, a->page.at, header))
            return found;
        int64_t index = header[0], left_file = header[1], left = header[2], right_file = header[3], right = header[4];
        bool has_left = left_file != 0 || left != 0, has_right = right_file != 0 || right != 0;
        if ((number >= 0 && number != index) || (has_left && (!has_right || left_file != search->file_no)) ||
            (has_right && right_file != search->file_no) || has_right == (index == 0) || row + 3 > path.rows)
            return found;
        unread->number = index;
        unread->header_size = header[5];
        bool is_leftmost = unread->is_leftmost;
        if (has_right && (has_left || is_leftmost))
            put_unread(ROW(UnreadNodeRow, path, ++row), right, index - 1, is_leftmost && !has_left);
        if (has_left)
            put_unread(ROW(UnreadNodeRow, path, ++row), left, -1, is_leftmost);
        search->path = row + 1;
    }
    if (search->path > 0)
        *more = Status_FULL;
    else if (search->next == search->nodes)
        *more = Status_DONE;
    return found;
}

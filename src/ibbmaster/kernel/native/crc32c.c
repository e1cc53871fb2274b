/* CRC-32C of pages, with the instruction of the CPU. The reference: `ibbmaster.storage.ibb.page.verify_page`. */

#if defined(__x86_64__)
#include <nmmintrin.h>
#define crc_word(crc, word) _mm_crc32_u64(crc, word)
#define crc_byte(crc, one) _mm_crc32_u8((uint32_t)(crc), one)
#elif defined(__aarch64__)
#include <arm_acle.h>
#define crc_word(crc, word) __crc32cd((uint32_t)(crc), word)
#define crc_byte(crc, one) __crc32cb((uint32_t)(crc), one)
#else
#error "no instruction for CRC-32C is known for this CPU"
#endif

#define PAGE ((long)PAGE_SIZE)
#define DATA (PAGE - 4)
#define CASTAGNOLI 0x82F63B78u /* polynomial of CRC-32C */
#define STREAM_WORDS 682 /* three streams of that many words are 16368 bytes of a page; one and a half are left */
#define STREAM_BYTES (8 * STREAM_WORDS)

static uint32_t shift_tables[4][256]; /* what each byte of the register becomes after a stream of zeros */

__attribute__((constructor)) static void make_shift_tables(void) {
    uint32_t registers[32];
    for (int bit = 0; bit < 32; bit++) {
        registers[bit] = 1u << bit;
        for (int step = 0; step < 8 * STREAM_BYTES; step++)
            registers[bit] = (registers[bit] >> 1) ^ (registers[bit] & 1 ? CASTAGNOLI : 0);
    }
    for (int index = 0; index < 4; index++)
        for (int one = 0; one < 256; one++)
            for (int bit = 0; bit < 8; bit++)
                shift_tables[index][one] ^= one >> bit & 1 ? registers[8 * index + bit] : 0;
}

static inline uint64_t shift(uint64_t crc) {
    return shift_tables[0][crc & 0xFF] ^ shift_tables[1][crc >> 8 & 0xFF] ^ shift_tables[2][crc >> 16 & 0xFF] ^
           shift_tables[3][crc >> 24 & 0xFF];
}

/* CRC-32C of the data area of a page: three streams at once, then the rest. */
static uint32_t page_crc(const byte *page) {
    uint64_t first = 0xFFFFFFFF, second = 0, third = 0;
    const byte *at = page;
    for (int word = 0; word < STREAM_WORDS; word++, at += 8) {
        first = crc_word(first, load64(at));
        second = crc_word(second, load64(at + STREAM_BYTES));
        third = crc_word(third, load64(at + 2 * STREAM_BYTES));
    }
    uint64_t crc = shift(shift(first) ^ second) ^ third;
    at = page + 3 * STREAM_BYTES;
    crc = crc_word(crc, load64(at));
    for (int one = 8; one < 12; one++)
        crc = crc_byte(crc, at[one]);
    return (uint32_t)crc ^ 0xFFFFFFFF;
}

/* Whether a page's checksum is right, or the page is blank. */
static bool is_page_good(const byte *page) {
    if (page_crc(page) == load32(page + DATA))
        return true;
    return !load64(page) && !memcmp(page, page + 8, (size_t)(PAGE - 8));
}

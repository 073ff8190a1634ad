/* A quantized matrix, packed in the order in which a product reads it. */
#ifndef MIDSPAN_MATRIX_H
#define MIDSPAN_MATRIX_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sys/mman.h>
#endif

#define BLOCK 64 /* outputs that are packed together; positions of a slab; what outputs are padded to */
#define GROUP 64 /* inputs of int8 that share a scale: shape.py */
#define HALF 32  /* inputs of 4 bits that share a scale and an offset */

static inline size_t padded(size_t count) { return (count + BLOCK - 1) / BLOCK * BLOCK; }

/* Weights [outputs, inputs] of 4 or 8 bits: [padded outputs / 64][inputs / 64] pieces, one read after the other. A piece
   is fp16 scales, then words [64 / 8 or 64 / 4][64] of 32 bits, one for each output. All paths read the same words.

   A word of int8 is 4 inputs; the scales are [64]. A word of 4 bits is 8 inputs: byte i has input i in its low half and
   input i + 4 in its high one, so one mask gives 4 inputs in order. There are scales [2][64] and offsets [2][64], a pair
   for each HALF of the inputs: a weight is its number from 0 to 15 times the scale, plus the offset, as in GGUF's Q4_1.
   CENTERED has no offsets there: each is -8 scales, as in GGUF's Q4_0. */
typedef enum { INT8, INT4, CENTERED } Storage;

typedef struct {
    size_t outputs, inputs;
    Storage storage;
    uint8_t *blocks;
    int borrowed; /* The blocks are Python's, and not to be freed or written. */
} Matrix;

static inline size_t bits_of(Storage storage) { return storage == INT8 ? 8 : 4; }

/* Numbers beside the weights of an output's group: a scale, two of them, or two scales and two offsets. */
static inline size_t scale_count(Storage storage) { return storage == INT8 ? 1 : storage == CENTERED ? 2 : 4; }

/* Bytes of the scales of a piece, which come before its words. */
static inline size_t scale_bytes(Storage storage) { return BLOCK * sizeof(uint16_t) * scale_count(storage); }

static inline size_t piece_bytes(Storage storage) {
    return scale_bytes(storage) + BLOCK * GROUP / 8 * bits_of(storage);
}

static inline size_t matrix_bytes(const Matrix *matrix) {
    return padded(matrix->outputs) / BLOCK * (matrix->inputs / GROUP) * piece_bytes(matrix->storage);
}

static inline void free_matrix(Matrix *matrix) {
    if (!matrix->borrowed) free(matrix->blocks);
}

#define HUGE_PAGE ((size_t)2 << 20)

/* What is large gets huge pages where the system has them: a tenth of the time of passes of 4 to 12 rows. */
static void *aligned_zeros(size_t bytes) {
    void *memory = NULL;
    bytes = (bytes + 63) / 64 * 64;
    if (posix_memalign(&memory, bytes < HUGE_PAGE ? 64 : HUGE_PAGE, bytes)) return NULL;
#ifdef MADV_HUGEPAGE
    if (bytes >= HUGE_PAGE) madvise(memory, bytes, MADV_HUGEPAGE);
#endif
    return memset(memory, 0, bytes);
}

/* Move 4 halves of bytes, in 16 bits, to the low half of a byte each. */
static inline uint32_t spread(uint32_t halves) {
    halves = (halves | halves << 8) & 0x00ff00ffu;
    return (halves | halves << 4) & 0x0f0f0f0fu;
}

/* Pack the words of one output's group: `from` has 64 inputs in order, those of 4 bits with two in a byte. */
static inline void pack_group(uint32_t *words, const uint8_t *from, size_t bits) {
    for (size_t step = 0; step < 2 * bits; step++, from += 4) {
        uint32_t word = (uint32_t)from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16 | (uint32_t)from[3] << 24;
        words[step * BLOCK] = bits == 8 ? word : spread(word & 0xffff) | spread(word >> 16) << 4;
    }
}

/* Return 0 if there is no memory. weights: [outputs, inputs / 2] of 4 bits or [outputs, inputs] of int8. scales: fp16
   [outputs, inputs / 64, scale_count], of any alignment. */
static int pack(Matrix *matrix, const uint8_t *weights, const uint8_t *scales, size_t outputs, size_t inputs,
                Storage storage) {
    size_t groups = inputs / GROUP, bytes = piece_bytes(storage), wide = GROUP / 8 * bits_of(storage);
    size_t numbers = scale_count(storage);
    *matrix = (Matrix){outputs, inputs, storage, NULL, 0};
    matrix->blocks = aligned_zeros(matrix_bytes(matrix));
    if (!matrix->blocks) return 0;
    for (size_t output = 0; output < outputs; output++)
        for (size_t group = 0; group < groups; group++) {
            uint8_t *piece = matrix->blocks + (output / BLOCK * groups + group) * bytes;
            for (size_t at = 0; at < numbers; at++)
                memcpy((uint16_t *)piece + at * BLOCK + output % BLOCK,
                       scales + ((output * groups + group) * numbers + at) * sizeof(uint16_t), sizeof(uint16_t));
            pack_group((uint32_t *)(piece + scale_bytes(storage)) + output % BLOCK,
                       weights + (output * groups + group) * wide, bits_of(storage));
        }
    return 1;
}

static inline float half_to_float(uint16_t half) {
    union {
        uint32_t bits;
        float value;
    } number = {(uint32_t)(half & 0x7fffu) << 13};
    number.value *= 0x1p112f; /* the exponent's bias: 127 - 15 */
    number.bits |= (uint32_t)(half & 0x8000u) << 16;
    return number.value;
}

/* Write the weights of one output to `row` [inputs]. */
static void look_up(const Matrix *matrix, size_t output, float *row) {
    Storage storage = matrix->storage;
    size_t groups = matrix->inputs / GROUP, inputs = 32 / bits_of(storage);
    for (size_t group = 0; group < groups; group++, row += GROUP) {
        const uint8_t *piece = matrix->blocks + (output / BLOCK * groups + group) * piece_bytes(storage);
        const uint32_t *words = (const uint32_t *)(piece + scale_bytes(storage)) + output % BLOCK;
        const uint16_t *scales = (const uint16_t *)piece + output % BLOCK;
        for (size_t input = 0; input < GROUP; input++) {
            uint32_t word = words[input / inputs * BLOCK] >> input % 4 * 8;
            int whole = inputs == 4 ? (int8_t)(word & 0xff) : (int)(word >> input % 8 / 4 * 4 & 15);
            float scale = half_to_float(scales[storage == INT8 ? 0 : input / HALF * BLOCK]);
            if (storage == CENTERED) whole -= 8;
            row[input] = (float)whole * scale;
            if (storage == INT4) row[input] += half_to_float(scales[(2 + input / HALF) * BLOCK]);
        }
    }
}
#endif

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
   for each HALF of the inputs: a weight is its number from 0 to 15 times the scale, plus the offset, as in GGUF's Q4_1. */
typedef struct {
    size_t outputs, inputs;
    int weight_bits;
    uint8_t *blocks;
} Matrix;

/* Numbers beside the weights of an output's group: a scale, or two scales and two offsets. */
static inline size_t scale_count(int bits) { return bits == 8 ? 1 : 4; }

/* Bytes of the scales of a piece, which come before its words. */
static inline size_t scale_bytes(int bits) { return BLOCK * sizeof(uint16_t) * scale_count(bits); }

static inline size_t piece_bytes(int bits) { return scale_bytes(bits) + BLOCK * GROUP / 8 * (size_t)bits; }

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
static inline void pack_group(uint32_t *words, const uint8_t *from, int bits) {
    for (size_t step = 0; step < (size_t)(2 * bits); step++, from += 4) {
        uint32_t word = (uint32_t)from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16 | (uint32_t)from[3] << 24;
        words[step * BLOCK] = bits == 8 ? word : spread(word & 0xffff) | spread(word >> 16) << 4;
    }
}

/* Return 0 if there is no memory. weights: [outputs, inputs / 2] of 4 bits or [outputs, inputs] of int8. scales: fp16
   [outputs, inputs / 64, scale_count], of any alignment. */
static int pack(Matrix *matrix, const uint8_t *weights, const uint8_t *scales, size_t outputs, size_t inputs,
                int bits) {
    size_t groups = inputs / GROUP, bytes = piece_bytes(bits), wide = GROUP / 8 * (size_t)bits;
    size_t numbers = scale_count(bits);
    *matrix = (Matrix){outputs, inputs, bits, aligned_zeros(padded(outputs) / BLOCK * groups * bytes)};
    if (!matrix->blocks) return 0;
    for (size_t output = 0; output < outputs; output++)
        for (size_t group = 0; group < groups; group++) {
            uint8_t *piece = matrix->blocks + (output / BLOCK * groups + group) * bytes;
            for (size_t at = 0; at < numbers; at++)
                memcpy((uint16_t *)piece + at * BLOCK + output % BLOCK,
                       scales + ((output * groups + group) * numbers + at) * sizeof(uint16_t), sizeof(uint16_t));
            pack_group((uint32_t *)(piece + scale_bytes(bits)) + output % BLOCK,
                       weights + (output * groups + group) * wide, bits);
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
    size_t groups = matrix->inputs / GROUP, bits = (size_t)matrix->weight_bits, inputs = bits == 8 ? 4 : 8;
    for (size_t group = 0; group < groups; group++, row += GROUP) {
        const uint8_t *piece = matrix->blocks + (output / BLOCK * groups + group) * piece_bytes((int)bits);
        const uint32_t *words = (const uint32_t *)(piece + scale_bytes((int)bits)) + output % BLOCK;
        const uint16_t *scales = (const uint16_t *)piece + output % BLOCK;
        for (size_t input = 0; input < GROUP; input++) {
            uint32_t word = words[input / inputs * BLOCK] >> input % 4 * 8;
            int whole = inputs == 4 ? (int8_t)(word & 0xff) : (int)(word >> input % 8 / 4 * 4 & 15);
            row[input] = bits == 8 ? (float)whole * half_to_float(scales[0])
                                   : (float)whole * half_to_float(scales[input / HALF * BLOCK]) +
                                         half_to_float(scales[(2 + input / HALF) * BLOCK]);
        }
    }
}
#endif

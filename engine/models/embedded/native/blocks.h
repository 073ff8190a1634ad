/* Matrices of other people's files, packed as they are read: no more than a step of a row is ever unpacked.

   The types are those of ggml (ggml-quants.c describes their blocks), and plain numbers. What is in 4 bits there stays
   as it is; the rest is rounded to int8, or to int4 with offsets, as embedded/weights.py does. */
#ifndef MIDSPAN_BLOCKS_H
#define MIDSPAN_BLOCKS_H

#include <math.h>

#include "matrix.h"
#include "threads.h"

#define LARGE 256 /* weights of the largest blocks */
#define LARGEST_HALF 65504.0f
#define SMALLEST_HALF 0x1p-14f
#define PLAIN 32 /* weights that are read at once where there are no blocks */

/* A type's blocks. read: writes a block's weights. take: writes its numbers from 0 to 15, one a byte, and a scale and
   an offset for each HALF of them; NULL where it has other bits. centered: each offset is -8 scales. */
typedef struct {
    const char *name;
    size_t weights, bytes;
    void (*read)(const uint8_t *block, float *weights);
    void (*take)(const uint8_t *block, uint8_t *numbers, uint16_t *scales, uint16_t *offsets);
    int centered;
} BlockType;

/* Return a number in fp16 from a file, which may be infinite or none. */
static inline float stored_half(const uint8_t *from) {
    union {
        float value;
        uint32_t bits;
    } number;
    uint16_t half = (uint16_t)(from[0] | from[1] << 8);
    number.value = half_to_float(half);
    number.bits |= (half & 0x7c00u) == 0x7c00u ? 0x7f800000u : 0;
    return number.value;
}

/* Round to fp16, to the even one of two that are equally near. */
static inline uint16_t to_half(float value) {
    union {
        float value;
        uint32_t bits;
    } number = {value}, magic = {0.5f};
    uint32_t sign = number.bits >> 16 & 0x8000u;
    number.bits &= 0x7fffffffu;
    if (number.bits >= 0x47800000u) return (uint16_t)(sign | (number.bits > 0x7f800000u ? 0x7e00u : 0x7c00u));
    if (number.bits < 0x38800000u) { /* Subnormal: the addition rounds. */
        number.value += magic.value;
        return (uint16_t)(sign | (number.bits - magic.bits));
    }
    return (uint16_t)(sign | ((number.bits + 0xc8000fffu + (number.bits >> 13 & 1)) >> 13));
}

static void read_f32(const uint8_t *block, float *weights) { memcpy(weights, block, PLAIN * sizeof(float)); }

static void read_f16(const uint8_t *block, float *weights) {
    for (size_t at = 0; at < PLAIN; at++) weights[at] = stored_half(block + 2 * at);
}

static void read_bf16(const uint8_t *block, float *weights) {
    for (size_t at = 0; at < PLAIN; at++) {
        uint32_t bits = (uint32_t)block[2 * at] << 16 | (uint32_t)block[2 * at + 1] << 24;
        memcpy(weights + at, &bits, sizeof bits);
    }
}

static void read_q8_0(const uint8_t *block, float *weights) {
    float scale = stored_half(block);
    for (size_t at = 0; at < 32; at++) weights[at] = scale * (float)(int8_t)block[2 + at];
}

/* Write the 32 numbers of 16 bytes: the low halves, and the high ones after them. */
static inline void split_16(const uint8_t *from, uint8_t *numbers) {
    for (size_t at = 0; at < 16; at++) numbers[at] = from[at] & 15, numbers[at + 16] = from[at] >> 4;
}

static void take_q4_0(const uint8_t *block, uint8_t *numbers, uint16_t *scales, uint16_t *offsets) {
    split_16(block + 2, numbers);
    *scales = (uint16_t)(block[0] | block[1] << 8), *offsets = to_half(-8 * stored_half(block));
}

static void take_q4_1(const uint8_t *block, uint8_t *numbers, uint16_t *scales, uint16_t *offsets) {
    split_16(block + 4, numbers);
    *scales = (uint16_t)(block[0] | block[1] << 8), *offsets = (uint16_t)(block[2] | block[3] << 8);
}

/* Read 32 numbers of 5 bits: the fifth ones are a word, the others split_16. */
static inline void read_5_bits(const uint8_t *fifth, const uint8_t *from, float scale, int less, float offset,
                               float *weights) {
    uint32_t bits = (uint32_t)fifth[0] | (uint32_t)fifth[1] << 8 | (uint32_t)fifth[2] << 16 | (uint32_t)fifth[3] << 24;
    uint8_t numbers[32];
    split_16(from, numbers);
    for (size_t at = 0; at < 32; at++)
        weights[at] = scale * (float)((int)(numbers[at] | (bits >> at & 1) << 4) - less) + offset;
}

static void read_q4_0(const uint8_t *block, float *weights) {
    float scale = stored_half(block);
    uint8_t numbers[32];
    split_16(block + 2, numbers);
    for (size_t at = 0; at < 32; at++) weights[at] = scale * (float)((int)numbers[at] - 8);
}

static void read_q4_1(const uint8_t *block, float *weights) {
    float scale = stored_half(block), offset = stored_half(block + 2);
    uint8_t numbers[32];
    split_16(block + 4, numbers);
    for (size_t at = 0; at < 32; at++) weights[at] = scale * (float)numbers[at] + offset;
}

static void read_q5_0(const uint8_t *block, float *weights) {
    read_5_bits(block + 2, block + 6, stored_half(block), 16, 0, weights);
}

static void read_q5_1(const uint8_t *block, float *weights) {
    read_5_bits(block + 4, block + 8, stored_half(block), 0, stored_half(block + 2), weights);
}

/* The scale and the least number, of 6 bits each, of the 32 weights `part` of a block of Q4_K or Q5_K. */
static inline int scale_of(const uint8_t *from, size_t part) {
    return part < 4 ? from[part] & 63 : (from[part + 4] & 15) | from[part - 4] >> 6 << 4;
}

static inline int least_of(const uint8_t *from, size_t part) {
    return part < 4 ? from[part + 4] & 63 : from[part + 4] >> 4 | from[part] >> 6 << 4;
}

/* Write the 256 numbers of 128 bytes: of each 32 bytes the low halves, and the high ones after them. */
static inline void split_128(const uint8_t *from, uint8_t *numbers) {
    for (size_t part = 0; part < 4; part++, from += 32, numbers += 64)
        for (size_t at = 0; at < 32; at++) numbers[at] = from[at] & 15, numbers[at + 32] = from[at] >> 4;
}

static void take_q4_k(const uint8_t *block, uint8_t *numbers, uint16_t *scales, uint16_t *offsets) {
    float scale = stored_half(block), least = stored_half(block + 2);
    split_128(block + 16, numbers);
    for (size_t part = 0; part < 8; part++) {
        scales[part] = to_half(scale * (float)scale_of(block + 4, part));
        offsets[part] = to_half(-(least * (float)least_of(block + 4, part)));
    }
}

static void read_with_parts(const uint8_t *block, const uint8_t *numbers, float *weights) {
    float scale = stored_half(block), least = stored_half(block + 2);
    for (size_t part = 0; part < 8; part++, weights += 32, numbers += 32) {
        float own = scale * (float)scale_of(block + 4, part), offset = least * (float)least_of(block + 4, part);
        for (size_t at = 0; at < 32; at++) weights[at] = own * (float)numbers[at] - offset;
    }
}

static void read_q4_k(const uint8_t *block, float *weights) {
    uint8_t numbers[LARGE];
    split_128(block + 16, numbers);
    read_with_parts(block, numbers, weights);
}

static void read_q5_k(const uint8_t *block, float *weights) {
    uint8_t numbers[LARGE];
    split_128(block + 48, numbers);
    for (size_t part = 0; part < 8; part++)
        for (size_t at = 0; at < 32; at++) numbers[32 * part + at] |= (uint8_t)((block[16 + at] >> part & 1) << 4);
    read_with_parts(block, numbers, weights);
}

static void read_q6_k(const uint8_t *block, float *weights) {
    const uint8_t *low = block, *high = block + 128;
    const int8_t *scales = (const int8_t *)block + 192;
    float scale = stored_half(block + 208);
    for (size_t side = 0; side < 2; side++, low += 64, high += 32, scales += 8)
        for (size_t part = 0; part < 4; part++, weights += 32)
            for (size_t at = 0; at < 32; at++) {
                int four = part < 2 ? low[32 * part + at] & 15 : low[32 * (part - 2) + at] >> 4;
                int number = (four | (high[at] >> 2 * part & 3) << 4) - 32;
                weights[at] = scale * (float)scales[2 * part + at / 16] * (float)number;
            }
}

static void read_q2_k(const uint8_t *block, float *weights) {
    const uint8_t *scales = block, *from = block + 16;
    float scale = stored_half(block + 80), least = stored_half(block + 82);
    for (size_t side = 0; side < 2; side++, from += 32)
        for (size_t part = 0; part < 4; part++, scales += 2, weights += 32)
            for (size_t at = 0; at < 32; at++) {
                uint8_t both = scales[at / 16];
                weights[at] = scale * (float)(both & 15) * (float)(from[at] >> 2 * part & 3) - least * (float)(both >> 4);
            }
}

static void read_q3_k(const uint8_t *block, float *weights) {
    const uint8_t *high = block, *from = block + 32, *packed = block + 96;
    float scale = stored_half(block + 108);
    for (size_t part = 0; part < 8; part++, weights += 32)
        for (size_t at = 0; at < 32; at++) {
            size_t index = 2 * part + at / 16;
            int four = index < 8 ? packed[index] & 15 : packed[index - 8] >> 4;
            int own = (four | (packed[8 + index % 4] >> 2 * (index / 4) & 3) << 4) - 32;
            int number = (from[part / 4 * 32 + at] >> 2 * (part % 4) & 3) - (high[at] >> part & 1 ? 0 : 4);
            weights[at] = scale * (float)own * (float)number;
        }
}

static const BlockType BLOCK_TYPES[] = {
    {"F32", PLAIN, 4 * PLAIN, read_f32, NULL, 0}, {"F16", PLAIN, 2 * PLAIN, read_f16, NULL, 0},
    {"BF16", PLAIN, 2 * PLAIN, read_bf16, NULL, 0}, {"Q4_0", 32, 18, read_q4_0, take_q4_0, 1},
    {"Q4_1", 32, 20, read_q4_1, take_q4_1, 0},    {"Q5_0", 32, 22, read_q5_0, NULL, 0},
    {"Q5_1", 32, 24, read_q5_1, NULL, 0},         {"Q8_0", 32, 34, read_q8_0, NULL, 0},
    {"Q2_K", LARGE, 84, read_q2_k, NULL, 0},      {"Q3_K", LARGE, 110, read_q3_k, NULL, 0},
    {"Q4_K", LARGE, 144, read_q4_k, take_q4_k, 0}, {"Q5_K", LARGE, 176, read_q5_k, NULL, 0},
    {"Q6_K", LARGE, 210, read_q6_k, NULL, 0},
};

static const BlockType *block_type(const char *name) {
    for (size_t at = 0; at < sizeof BLOCK_TYPES / sizeof *BLOCK_TYPES; at++)
        if (!strcmp(BLOCK_TYPES[at].name, name)) return &BLOCK_TYPES[at];
    return NULL;
}

static inline float bounded(float value, float least, float most) {
    return value < least ? least : value > most ? most : value;
}

/* The bits of the largest weight without its sign; NOT_FINITE or more if one is not finite. */
#define NOT_FINITE 0x7f800000
static inline int32_t largest_bits(const float *weights, size_t count) {
    int32_t largest = 0;
    for (size_t at = 0; at < count; at++) {
        int32_t bits;
        memcpy(&bits, weights + at, sizeof bits);
        bits &= 0x7fffffff;
        largest = bits > largest ? bits : largest;
    }
    return largest;
}

/* Return the whole number nearest to a value of less than a million, the even one of two. */
static inline float to_whole(float value) { return value + 12582912.0f - 12582912.0f; }

/* Round GROUP weights to int8. Return 0 where one is not finite. */
static int round_to_8(const float *weights, uint8_t *numbers, uint16_t *scale) {
    int32_t bits = largest_bits(weights, GROUP);
    if (bits >= NOT_FINITE) return 0;
    float largest;
    memcpy(&largest, &bits, sizeof bits);
    *scale = to_half(bounded(largest / 127, SMALLEST_HALF, LARGEST_HALF));
    float unit = half_to_float(*scale);
    for (size_t at = 0; at < GROUP; at++)
        numbers[at] = (uint8_t)(int8_t)(int)to_whole(bounded(weights[at] / unit, -127, 127));
    return 1;
}

#define REFITS 3 /* Scale and offset are fitted to the numbers again so often: more changes next to nothing. */

/* Round HALF weights to numbers with a scale and an offset, and return the sum of the squares of what they miss. */
static inline double round_with(const float *weights, uint8_t *numbers, uint16_t scale, uint16_t offset) {
    float unit = half_to_float(scale), from = half_to_float(offset);
    double missed = 0;
    for (size_t at = 0; at < HALF; at++) {
        float whole = to_whole(bounded((weights[at] - from) / unit, 0, 15));
        double miss = (double)weights[at] - from - (double)whole * unit;
        numbers[at] = (uint8_t)(int)whole;
        missed += miss * miss;
    }
    return missed;
}

/* Round HALF weights to numbers from 0 to 15. Return 0 where one is not finite.

   At first they reach from the smallest weight to the largest one. Then scale and offset are those of least squares for
   the numbers, and the numbers those for the scale and the offset, in turns. */
static inline int round_to_4(const float *weights, uint8_t *numbers, uint16_t *scale, uint16_t *offset) {
    if (largest_bits(weights, HALF) >= NOT_FINITE) return 0;
    float least = weights[0], most = weights[0];
    for (size_t at = 1; at < HALF; at++)
        least = weights[at] < least ? weights[at] : least, most = weights[at] > most ? weights[at] : most;
    *offset = to_half(bounded(least, -LARGEST_HALF, LARGEST_HALF));
    *scale = to_half(bounded((most - least) / 15, SMALLEST_HALF, LARGEST_HALF));
    double missed = round_with(weights, numbers, *scale, *offset);
    for (int turn = 0; turn < REFITS && missed > 0; turn++) {
        double sum = 0, squares = 0, of_weights = 0, products = 0; /* so that no order of additions matters */
        for (size_t at = 0; at < HALF; at++) {
            double number = numbers[at];
            sum += number, squares += number * number, of_weights += weights[at], products += number * weights[at];
        }
        double spread = HALF * squares - sum * sum;
        if (spread <= 0) break;
        double unit = (HALF * products - sum * of_weights) / spread;
        uint8_t others[HALF];
        uint16_t other_scale = to_half(bounded((float)unit, SMALLEST_HALF, LARGEST_HALF));
        uint16_t other_offset = to_half(bounded((float)((of_weights - unit * sum) / HALF), -LARGEST_HALF, LARGEST_HALF));
        double other = round_with(weights, others, other_scale, other_offset);
        if (!(other < missed)) break;
        memcpy(numbers, others, HALF), *scale = other_scale, *offset = other_offset, missed = other;
    }
    return 1;
}

/* One tensor of a file, some of a matrix's outputs. head_width: where the halves of a head are side by side, else 0. */
typedef struct {
    const char *name;
    const BlockType *type;
    const uint8_t *blocks;
    size_t first, outputs, head_width;
} Part;

typedef struct {
    Matrix *matrix;
    const Part *parts;
    size_t count;
    _Atomic size_t failed; /* the number of a part that holds numbers that are not finite, counted from 1 */
} Packing;

/* Return the row of the file that is an output of a part. */
static inline size_t row_of(const Part *part, size_t output) {
    if (!part->head_width) return output;
    size_t within = output % part->head_width, half = part->head_width / 2;
    return output - within + within % half * 2 + within / half;
}

/* Pack a step of an output: the weights of a large block, or a group. Return 0 where one is not finite. */
static int pack_step(const Matrix *matrix, const BlockType *type, const uint8_t *from, size_t step, uint8_t *pieces,
                     size_t lane) {
    Storage storage = matrix->storage;
    int kept = storage != INT8 && type->take;
    uint8_t numbers[LARGE];
    uint16_t scales[LARGE / HALF], offsets[LARGE / HALF];
    float weights[LARGE];
    for (size_t at = 0; at < step; at += type->weights, from += type->bytes) {
        if (kept) type->take(from, numbers + at, scales + at / HALF, offsets + at / HALF);
        else type->read(from, weights + at);
    }
    for (size_t group = 0; group < step / GROUP; group++, pieces += piece_bytes(storage)) {
        uint16_t *to = (uint16_t *)pieces + lane;
        uint32_t *words = (uint32_t *)(pieces + scale_bytes(storage)) + lane;
        uint8_t *own = numbers + group * GROUP;
        if (storage == INT8) {
            if (!round_to_8(weights + group * GROUP, own, to)) return 0;
            for (size_t word = 0; word < GROUP / 4; word++) memcpy(words + word * BLOCK, own + 4 * word, 4);
            continue;
        }
        for (size_t half = 2 * group; half < 2 * group + 2; half++) {
            if (!kept && !round_to_4(weights + half * HALF, numbers + half * HALF, scales + half, offsets + half))
                return 0;
            if ((scales[half] & 0x7c00) == 0x7c00 || (offsets[half] & 0x7c00) == 0x7c00) return 0;
            to[half % 2 * BLOCK] = scales[half];
            if (storage == INT4) to[(2 + half % 2) * BLOCK] = offsets[half];
        }
        for (size_t word = 0; word < GROUP / 8; word++, own += 8) {
            uint32_t low, high;
            memcpy(&low, own, 4), memcpy(&high, own + 4, 4);
            words[word * BLOCK] = low | high << 4;
        }
    }
    return 1;
}

/* Pack BLOCK outputs. Implements threads.h's Work. */
static void pack_block(void *argument, size_t block, size_t thread) {
    Packing *packing = argument;
    const Matrix *matrix = packing->matrix;
    size_t inputs = matrix->inputs, bytes = piece_bytes(matrix->storage);
    (void)thread;
    for (size_t at = 0; at < packing->count; at++) {
        const Part *part = &packing->parts[at];
        size_t first = block * BLOCK > part->first ? block * BLOCK : part->first, stop = part->first + part->outputs;
        if (stop > (block + 1) * BLOCK) stop = (block + 1) * BLOCK;
        size_t step = part->type->weights > GROUP ? part->type->weights : GROUP;
        size_t row_bytes = inputs / part->type->weights * part->type->bytes;
        for (size_t input = 0; input < inputs; input += step) {
            uint8_t *pieces = matrix->blocks + (block * (inputs / GROUP) + input / GROUP) * bytes;
            for (size_t output = first; output < stop; output++) {
                const uint8_t *row = part->blocks + row_of(part, output - part->first) * row_bytes;
                row += input / part->type->weights * part->type->bytes;
                if (!pack_step(matrix, part->type, row, step, pieces, output % BLOCK)) {
                    atomic_store(&packing->failed, at + 1);
                    return;
                }
            }
        }
    }
}

/* Return how weights of 4 or 8 bits are stored. */
static Storage storage_of(const Part *parts, size_t count, int bits) {
    if (bits == 8) return INT8;
    for (size_t at = 0; at < count; at++)
        if (!parts[at].type->centered) return INT4;
    return CENTERED;
}

/* Pack a matrix of `count` parts, whose inputs are whole steps of each. Return 0 if there is no memory. The number of a
   part with numbers that are not finite goes to `failed`, counted from 1. */
static int pack_parts(Matrix *matrix, const Part *parts, size_t count, size_t outputs, size_t inputs, int bits,
                      Team *team, size_t *failed) {
    *matrix = (Matrix){outputs, inputs, storage_of(parts, count, bits), NULL, 0};
    matrix->blocks = aligned_zeros(matrix_bytes(matrix));
    if (!matrix->blocks) return 0;
    Packing packing = {matrix, parts, count, 0};
    do_step(team, pack_block, &packing, padded(outputs) / BLOCK);
    *failed = atomic_load(&packing.failed);
    return 1;
}
#endif

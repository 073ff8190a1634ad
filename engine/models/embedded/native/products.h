/* Matrix products of one path: rows of int8 times weights of 4 or 8 bits. Included after vectors.h.

   The sum over a group of 64 inputs is a whole number, exact in int32. Sums of groups are added in fp32, in order, each
   times the scale of the weights and the scale of the row. So a row's result depends on that row alone. */

/* Rows as products take them: numbers int8 [rows, inputs]; for each group of a row its scale and the sum of its numbers,
   [rows, inputs / 64]. Weights that have a number added to them are corrected by that sum. Where weights have offsets,
   the sums of the halves of each group are there too, times its scale: [rows, inputs / 32]. */
typedef struct {
    const Matrix *matrix;
    const int8_t *quantized;
    const float *scales;
    const int32_t *sums;
    const float *half_sums;
    float *result; /* [rows, padded outputs] */
    size_t rows, chunk;
    int add; /* to what `result` has */
} NAME(Product);

/* Quantize a row, normalized by `factor` and with the gains of its norm [inputs], or as it is if they are NULL. */
INLINE void NAME(quantize)(const float *row, size_t inputs, float factor, const float *gains, int8_t *quantized,
                           float *scales, int32_t *sums, float *half_sums) {
    for (size_t group = 0; group < inputs / GROUP; group++, row += GROUP, quantized += GROUP) {
        floats value[GROUP / LANES], largest = NAME(all)(1e-30f);
#pragma GCC unroll 16
        for (int vector = 0; vector < GROUP / LANES; vector++) {
            value[vector] = NAME(load)(row + vector * LANES);
            if (gains) value[vector] = value[vector] * factor * NAME(load)(gains + group * GROUP + vector * LANES);
            largest = NAME(maximum)(largest, NAME(absolute)(value[vector]));
        }
        float most = NAME(largest_of)(largest), finer = 127.0f / most;
        bits sum = {0}, first = {0};
#pragma GCC unroll 16
        for (int vector = 0; vector < GROUP / LANES; vector++) {
            ints whole = NAME(rounded)(value[vector] * finer);
            sum += (bits)whole;
            if (vector == HALF / LANES - 1) first = sum;
            NARROW(quantized + vector * LANES, whole);
        }
        scales[group] = most * (1.0f / 127.0f);
        sums[group] = NAME(whole_sum_of)((ints)sum);
        if (half_sums) {
            int32_t of_first = NAME(whole_sum_of)((ints)first);
            half_sums[2 * group] = (float)of_first * scales[group];
            half_sums[2 * group + 1] = (float)(sums[group] - of_first) * scales[group];
        }
    }
}

INLINE bits NAME(load_words)(const uint8_t *from) {
    bits value;
    memcpy(&value, from, sizeof value);
    return value;
}

/* Four numbers of a row, for each lane. */
INLINE ints NAME(four)(const int8_t *from) {
    int32_t numbers;
    memcpy(&numbers, from, sizeof numbers);
    return numbers - (ints){0};
}

/* Add the products of a group's inputs `from` to `end`. A word of 4 bits gives its inputs in two halves, one after the
   other: both at once would leave too few registers for sums. */
INLINE void NAME(add_inputs)(ints sums[TILE_ROWS][MOST_VECTORS], const uint8_t *words, const int8_t *quantized,
                             size_t inputs, int from, int end, const int rows, const int vectors, const int width) {
    for (int at = from; at < end; at += 32 / width) {
#pragma GCC unroll 2
        for (int half = 0; half < 8 / width; half++) {
            ints column[MOST_VECTORS];
            /* Otherwise gcc loads early what comes later, and puts sums into memory for it. */
            __asm__ volatile("" ::: "memory");
#pragma GCC unroll 8
            for (int vector = 0; vector < vectors; vector++) {
                bits word = NAME(load_words)(words + at * width / 32 * BLOCK * 4 + vector * LANES * 4);
                if (width == 4) word = word >> 4 * half & 0x0f0f0f0fu;
                else if (ADDED_TO_8) word ^= 0x80808080u;
                column[vector] = (ints)word;
            }
#pragma GCC unroll 6
            for (int one = 0; one < rows; one++) {
                ints numbers = NAME(four)(quantized + (size_t)one * inputs + at + 4 * half);
#pragma GCC unroll 8
                for (int vector = 0; vector < vectors; vector++)
                    sums[one][vector] = width == 4 ? ADD_SMALL(sums[one][vector], column[vector], numbers)
                                                   : ADD_DOT(sums[one][vector], column[vector], numbers);
            }
        }
    }
}

#define STRIP (2 * TILE_ROWS) /* rows that read a group of weights while it is in the first cache */

/* The products of a strip's rows with a block's outputs. They stay in memory, so that registers are for the sums of a group. */
typedef floats NAME(Strip)[STRIP][BLOCK / LANES];

/* Add a group's products of `rows` rows (1 to TILE_ROWS) from `row` on with `vectors` vectors of a block's outputs, from
   vector `from` on. The weights are int8. All from `from` on are constants where this is inlined. */
INLINE void NAME(add_group_of_8)(const NAME(Product) *product, const uint8_t *piece, size_t group, size_t row,
                                 floats (*values)[BLOCK / LANES], const int from, const int rows, const int vectors) {
    size_t inputs = product->matrix->inputs, groups = inputs / GROUP;
    const int32_t *row_sums = product->sums + row * groups + group;
    const float *row_scales = product->scales + row * groups + group;
    const uint16_t *scales = (const uint16_t *)piece + from * LANES;
    const uint8_t *words = piece + scale_bytes(INT8) + from * LANES * 4;
    ints sums[TILE_ROWS][MOST_VECTORS];
#pragma GCC unroll 6
    for (int one = 0; one < rows; one++) {
        uint32_t start = 0u - (uint32_t)ADDED_TO_8 * (uint32_t)row_sums[(size_t)one * groups];
#pragma GCC unroll 8
        for (int vector = 0; vector < vectors; vector++) sums[one][vector] = (ints)(start + (bits){0});
    }
    NAME(add_inputs)(sums, words, product->quantized + row * inputs + group * GROUP, inputs, 0, GROUP, rows, vectors, 8);
#pragma GCC unroll 8
    for (int vector = 0; vector < vectors; vector++) {
        floats scale = NAME(load_half)(scales + vector * LANES);
#pragma GCC unroll 6
        for (int one = 0; one < rows; one++) {
            floats *value = &values[one][from + vector];
            *value = MULTIPLY_ADD(__builtin_convertvector(sums[one][vector], floats) * scale,
                                  NAME(all)(row_scales[one * groups]), *value);
        }
    }
}

/* The same for weights of 4 bits: each half of a group is summed by itself. */
INLINE void NAME(add_group_of_4)(const NAME(Product) *product, const uint8_t *piece, size_t group, size_t row,
                                 floats (*values)[BLOCK / LANES], const int from, const int rows, const int vectors,
                                 const Storage storage) {
    size_t inputs = product->matrix->inputs, groups = inputs / GROUP;
    const float *row_scales = product->scales + row * groups + group;
    const uint8_t *words = piece + scale_bytes(storage) + from * LANES * 4;
    for (int half = 0; half < 2; half++) {
        const float *half_sums = product->half_sums + (row * groups + group) * 2 + half;
        const uint16_t *scales = (const uint16_t *)piece + half * BLOCK + from * LANES;
        ints sums[TILE_ROWS][MOST_VECTORS];
#pragma GCC unroll 6
        for (int one = 0; one < rows; one++)
#pragma GCC unroll 8
            for (int vector = 0; vector < vectors; vector++) sums[one][vector] = (ints){0};
        NAME(add_inputs)(sums, words, product->quantized + row * inputs + group * GROUP, inputs, half * HALF,
                         half * HALF + HALF, rows, vectors, 4);
#pragma GCC unroll 8
        for (int vector = 0; vector < vectors; vector++) {
            floats scale = NAME(load_half)(scales + vector * LANES);
            /* Without offsets nothing is rounded otherwise: -8 scales are exact. */
            floats offset = storage == INT4 ? NAME(load_half)(scales + 2 * BLOCK + vector * LANES) : scale * -8.0f;
#pragma GCC unroll 6
            for (int one = 0; one < rows; one++) {
                floats *to = &values[one][from + vector];
                floats value = MULTIPLY_ADD(offset, NAME(all)(half_sums[one * groups * 2]), *to);
#ifdef WIDEN
                ints whole = WIDEN(sums[one][vector]);
#else
                ints whole = sums[one][vector];
#endif
                *to = MULTIPLY_ADD(__builtin_convertvector(whole, floats) * scale,
                                   NAME(all)(row_scales[one * groups]), value);
            }
        }
    }
}

#define TILES(rows, vectors, storage)                                                                             \
    case rows:                                                                                                    \
        for (size_t next = group; next < until; next++, piece += piece_bytes(storage)) {                          \
            if (!at) NAME(prefetch)(piece, piece_bytes(storage));                                                 \
            for (int from = 0; from < BLOCK / LANES; from += vectors)                                             \
                if ((storage) == INT8) NAME(add_group_of_8)(product, piece, next, at, to, from, rows, vectors);   \
                else NAME(add_group_of_4)(product, piece, next, at, to, from, rows, vectors, storage);            \
        }                                                                                                         \
        break

#if TILE_ROWS > 4
#define MORE_TILES(storage)          \
    TILES(5, TILE_VECTORS, storage); \
    TILES(6, TILE_VECTORS, storage);
#else
#define MORE_TILES(storage)
#endif

/* Weights that no cache holds come a third sooner if they are asked for some groups ahead. */
INLINE void NAME(prefetch)(const uint8_t *piece, size_t bytes) {
#if LANES > 4
    for (size_t at = 0; at < bytes; at += 64) __builtin_prefetch(piece + AHEAD + at);
#else
    (void)piece, (void)bytes;
#endif
}

INLINE void NAME(store_strip)(float *result, size_t stride, floats (*values)[BLOCK / LANES], size_t rows, int add) {
    for (size_t one = 0; one < rows; one++, result += stride)
#pragma GCC unroll 16
        for (int vector = 0; vector < BLOCK / LANES; vector++) {
            float *to = result + vector * LANES;
            NAME(store)(to, add ? values[one][vector] + NAME(load)(to) : values[one][vector]);
        }
}

#define MULTIPLY(name, storage)                                                                              \
    FUNCTION void NAME(name)(const NAME(Product) *product, size_t output, size_t row, size_t end) {          \
        size_t groups = product->matrix->inputs / GROUP, stride = padded(product->matrix->outputs);          \
        const uint8_t *block = product->matrix->blocks + output / BLOCK * groups * piece_bytes(storage);     \
        for (size_t strip; row < end; row += strip) {                                                        \
            NAME(Strip) values;                                                                              \
            size_t left = end - row, strips = (left + STRIP - 1) / STRIP;                                    \
            strip = (left + strips - 1) / strips; /* of even sizes: few rows leave registers unused */       \
            size_t tiles = (strip + TILE_ROWS - 1) / TILE_ROWS, tile = (strip + tiles - 1) / tiles;          \
            memset(values, 0, strip * sizeof *values);                                                       \
            for (size_t group = 0, until; group < groups; group = until) {                                   \
                until = tiles == 1 ? groups : group + 1;                                                     \
                for (size_t at = row, count; at < row + strip; at += count) {                                \
                    const uint8_t *piece = block + group * piece_bytes(storage);                             \
                    floats(*to)[BLOCK / LANES] = values + (at - row);                                        \
                    count = row + strip - at < tile ? row + strip - at : tile;                               \
                    switch (count) {                                                                         \
                        TILES(1, ROW_VECTORS, storage);                                                      \
                        TILES(2, TILE_VECTORS, storage);                                                     \
                        TILES(3, TILE_VECTORS, storage);                                                     \
                        TILES(4, TILE_VECTORS, storage);                                                     \
                        MORE_TILES(storage)                                                                  \
                    }                                                                                        \
                }                                                                                            \
            }                                                                                                \
            NAME(store_strip)(product->result + row * stride + output, stride, values, strip, product->add); \
        }                                                                                                    \
    }

MULTIPLY(multiply_8_bits, INT8)
MULTIPLY(multiply_4_bits, INT4)
MULTIPLY(multiply_centered, CENTERED)

/* A task is a block of outputs of a chunk of rows. */
FUNCTION void NAME(product_task)(void *argument, size_t task, size_t thread) {
    const NAME(Product) *product = argument;
    size_t blocks = padded(product->matrix->outputs) / BLOCK, row = task / blocks * product->chunk;
    size_t end = row + product->chunk < product->rows ? row + product->chunk : product->rows;
    (void)thread;
    size_t output = task % blocks * BLOCK;
    switch (product->matrix->storage) {
        case INT8: NAME(multiply_8_bits)(product, output, row, end); break;
        case INT4: NAME(multiply_4_bits)(product, output, row, end); break;
        case CENTERED: NAME(multiply_centered)(product, output, row, end); break;
    }
}

/* Matrix products of one path: rows of int8 times weights of 4 or 8 bits. Included after vectors.h.

   The sum over a group of 64 inputs is a whole number, exact in int32. Sums of groups are added in fp32, in order, each
   times the scale of the weights and the scale of the row. So a row's result depends on that row alone. */

/* Rows as products take them: numbers int8 [rows, inputs]; for each group of a row its scale and the sum of its numbers,
   [rows, inputs / 64]. Weights that have a number added to them are corrected by that sum. */
typedef struct {
    const Matrix *matrix;
    const int8_t *quantized;
    const float *scales;
    const int32_t *sums;
    float *result; /* [rows, padded outputs] */
    size_t rows, chunk;
    int add; /* to what `result` has */
} NAME(Product);

/* Quantize a row, normalized by `factor` and with the gains of its norm [inputs], or as it is if they are NULL. */
INLINE void NAME(quantize)(const float *row, size_t inputs, float factor, const float *gains, int8_t *quantized,
                           float *scales, int32_t *sums) {
    for (size_t group = 0; group < inputs / GROUP; group++, row += GROUP, quantized += GROUP) {
        floats value[GROUP / LANES], largest = NAME(all)(1e-30f);
#pragma GCC unroll 16
        for (int vector = 0; vector < GROUP / LANES; vector++) {
            value[vector] = NAME(load)(row + vector * LANES);
            if (gains) value[vector] = value[vector] * factor * NAME(load)(gains + group * GROUP + vector * LANES);
            largest = NAME(maximum)(largest, NAME(absolute)(value[vector]));
        }
        float most = NAME(largest_of)(largest), finer = 127.0f / most;
        ints sum = {0};
#pragma GCC unroll 16
        for (int vector = 0; vector < GROUP / LANES; vector++) {
            bytes narrow = __builtin_convertvector(NAME(rounded)(value[vector] * finer), bytes);
            sum += __builtin_convertvector(narrow, ints);
            memcpy(quantized + vector * LANES, &narrow, sizeof narrow);
        }
        scales[group] = most * (1.0f / 127.0f);
        sums[group] = NAME(whole_sum_of)(sum);
    }
}

INLINE ints NAME(load_words)(const uint8_t *from) {
    ints value;
    memcpy(&value, from, sizeof value);
    return value;
}

/* Four numbers of a row, for each lane. */
INLINE ints NAME(four)(const int8_t *from) {
    int32_t numbers;
    memcpy(&numbers, from, sizeof numbers);
    return numbers - (ints){0};
}

/* Compute `rows` rows (1 to TILE_ROWS) of `vectors` vectors of outputs. The last three are constants where this is
   inlined. */
INLINE void NAME(tile)(const NAME(Product) *product, size_t row, size_t output, const int rows, const int vectors,
                       const int width) {
    size_t inputs = product->matrix->inputs, groups = inputs / GROUP, stride = padded(product->matrix->outputs);
    const uint8_t *piece = product->matrix->blocks + output / BLOCK * groups * piece_bytes(width);
    const int8_t *quantized = product->quantized + row * inputs;
    const int32_t added = width == 4 ? 8 : ADDED_TO_8;
    floats values[TILE_ROWS][8] = {0};
    for (size_t group = 0; group < groups; group++, piece += piece_bytes(width), quantized += GROUP) {
        const uint16_t *scales = (const uint16_t *)piece + output % BLOCK;
        const uint8_t *words = piece + BLOCK * sizeof *scales + output % BLOCK * 4;
        ints sums[TILE_ROWS][8];
#pragma GCC unroll 6
        for (int one = 0; one < rows; one++)
#pragma GCC unroll 8
            for (int vector = 0; vector < vectors; vector++)
                sums[one][vector] = (ints){0} - added * product->sums[(row + one) * groups + group];
        for (int at = 0; at < GROUP; at += 32 / width, words += BLOCK * 4) {
            ints low[8], high[8];
#pragma GCC unroll 8
            for (int vector = 0; vector < vectors; vector++) {
                low[vector] = NAME(load_words)(words + vector * LANES * 4);
                if (width == 4) {
                    high[vector] = (ints)((bits)low[vector] >> 4 & 0x0f0f0f0fu);
                    low[vector] = (ints)((bits)low[vector] & 0x0f0f0f0fu);
                } else if (added) {
                    low[vector] = (ints)((bits)low[vector] ^ 0x80808080u);
                }
            }
#pragma GCC unroll 6
            for (int one = 0; one < rows; one++) {
                ints first = NAME(four)(quantized + one * inputs + at);
                if (width == 4) {
                    ints second = NAME(four)(quantized + one * inputs + at + 4);
#pragma GCC unroll 8
                    for (int vector = 0; vector < vectors; vector++)
                        sums[one][vector] = ADD_SMALL(sums[one][vector], low[vector], first, high[vector], second);
                } else {
#pragma GCC unroll 8
                    for (int vector = 0; vector < vectors; vector++)
                        sums[one][vector] = ADD_DOT(sums[one][vector], low[vector], first);
                }
            }
        }
#pragma GCC unroll 8
        for (int vector = 0; vector < vectors; vector++) {
            floats scale = NAME(load_half)(scales + vector * LANES);
#pragma GCC unroll 6
            for (int one = 0; one < rows; one++)
                values[one][vector] = MULTIPLY_ADD(__builtin_convertvector(sums[one][vector], floats) * scale,
                                                   NAME(all)(product->scales[(row + one) * groups + group]),
                                                   values[one][vector]);
        }
    }
#pragma GCC unroll 6
    for (int one = 0; one < rows; one++)
#pragma GCC unroll 8
        for (int vector = 0; vector < vectors; vector++) {
            float *to = product->result + (row + one) * stride + output + vector * LANES;
            NAME(store)(to, product->add ? values[one][vector] + NAME(load)(to) : values[one][vector]);
        }
}

#define TILES(rows, vectors, width)                                    \
    case rows:                                                         \
        for (size_t next = 0; next < BLOCK; next += (vectors) * LANES) \
            NAME(tile)(product, row, output + next, rows, vectors, width); \
        break

#if TILE_ROWS > 4
#define MORE_TILES(width)        \
    TILES(5, TILE_VECTORS, width); \
    TILES(6, TILE_VECTORS, width);
#else
#define MORE_TILES(width)
#endif

#define MULTIPLY(name, width)                                                                              \
    FUNCTION void NAME(name)(const NAME(Product) *product, size_t output, size_t row, size_t end) {        \
        for (size_t count; row < end; row += count) {                                                      \
            size_t left = end - row, tiles = (left + TILE_ROWS - 1) / TILE_ROWS;                           \
            count = (left + tiles - 1) / tiles; /* tiles of even sizes: few rows leave registers unused */ \
            switch (count) {                                                                               \
                TILES(1, ROW_VECTORS, width);                                                              \
                TILES(2, TILE_VECTORS, width);                                                             \
                TILES(3, TILE_VECTORS, width);                                                             \
                TILES(4, TILE_VECTORS, width);                                                             \
                MORE_TILES(width)                                                                          \
            }                                                                                              \
        }                                                                                                  \
    }

MULTIPLY(multiply_int4, 4)
MULTIPLY(multiply_int8, 8)

/* A task is a block of outputs of a chunk of rows. */
FUNCTION void NAME(product_task)(void *argument, size_t task, size_t thread) {
    const NAME(Product) *product = argument;
    size_t blocks = padded(product->matrix->outputs) / BLOCK, row = task / blocks * product->chunk;
    size_t end = row + product->chunk < product->rows ? row + product->chunk : product->rows;
    (void)thread;
    if (product->matrix->weight_bits == 4) NAME(multiply_int4)(product, task % blocks * BLOCK, row, end);
    else NAME(multiply_int8)(product, task % blocks * BLOCK, row, end);
}

/* Matrix products of one path: int16 rows times int8 weights, summed exactly in int32. Included after vectors.h. */

/* Quantize a row [padded inputs], which counts `gain` times. Return the scale of its whole numbers. */
INLINE float NAME(quantize)(const float *row, size_t inputs, int levels, float gain, int16_t *quantized) {
    floats largest = NAME(all)(0);
    for (size_t at = 0; at < inputs; at += LANES)
        largest = NAME(maximum)(largest, NAME(absolute)(NAME(load)(row + at)));
    float most = NAME(largest_of)(largest);
    if (!(most > 1e-30f)) most = 1e-30f;
    float factor = (float)levels / most;
    for (size_t at = 0; at < inputs; at += LANES) {
        shorts whole = __builtin_convertvector(NAME(rounded)(NAME(load)(row + at) * factor), shorts);
        memcpy(quantized + at, &whole, sizeof whole);
    }
    return most / (float)levels * gain;
}

enum NAME(Ending) { NAME(STORE), NAME(ADD), NAME(SQUARED_RELU) };

typedef struct {
    const Matrix *matrix;
    const int16_t *quantized; /* [rows, padded inputs] */
    const float *row_scales;
    float *result; /* [rows, stride] */
    size_t stride;
    enum NAME(Ending) ending;
} NAME(Product);

INLINE void NAME(finish)(const NAME(Product) *product, size_t row, size_t output, ints sum) {
    floats scales = NAME(load)(product->matrix->scales + output);
    floats value = __builtin_convertvector(sum, floats) * product->row_scales[row] * scales;
    float *to = product->result + row * product->stride + output;
    if (product->ending == NAME(ADD)) value += NAME(load)(to);
    if (product->ending == NAME(SQUARED_RELU)) {
        value = NAME(maximum)(value, NAME(all)(0));
        value *= value;
    }
    NAME(store)(to, value);
}

/* Compute `rows` rows (1 to TILE_ROWS) of `vectors` vectors of outputs. Both are constants where this is inlined. */
INLINE void NAME(tile)(const NAME(Product) *product, size_t row, size_t output, const int rows, const int vectors) {
    size_t inputs = padded(product->matrix->inputs);
    const int8_t *weights = product->matrix->weights + output / BLOCK * BLOCK * inputs + output % BLOCK * 2;
    const int16_t *quantized = product->quantized + row * inputs;
    ints sums[TILE_ROWS][8] = {0};
    for (size_t pair = 0; pair < inputs / 2; pair++) {
        ints column[8];
#pragma GCC unroll 8
        for (int vector = 0; vector < vectors; vector++)
            column[vector] = LOAD_WEIGHTS(weights + pair * BLOCK * 2 + vector * LANES * 2);
#pragma GCC unroll 6
        for (int one = 0; one < rows; one++) {
            int32_t numbers;
            memcpy(&numbers, quantized + one * inputs + pair * 2, sizeof numbers);
            ints both = ALL_PAIRS(numbers);
#pragma GCC unroll 8
            for (int vector = 0; vector < vectors; vector++)
                sums[one][vector] = ADD_PAIRS(sums[one][vector], column[vector], both);
        }
    }
#pragma GCC unroll 6
    for (int one = 0; one < rows; one++)
#pragma GCC unroll 8
        for (int vector = 0; vector < vectors; vector++)
            NAME(finish)(product, row + one, output + vector * LANES, sums[one][vector]);
}

#define TILES(rows, vectors)                                       \
    case rows:                                                     \
        for (size_t next = 0; next < BLOCK; next += (vectors) * LANES) \
            NAME(tile)(product, row, output + next, rows, vectors); \
        break

/* A row's sums are whole numbers, so they do not depend on which rows are computed together. */
FUNCTION void NAME(multiply)(const NAME(Product) *product, size_t rows) {
    for (size_t output = 0; output < product->matrix->outputs; output += BLOCK)
        for (size_t row = 0, count; row < rows; row += count) {
            size_t left = rows - row, tiles = (left + TILE_ROWS - 1) / TILE_ROWS;
            count = (left + tiles - 1) / tiles; /* tiles of even sizes: few rows leave registers unused */
            switch (count) {
                TILES(1, ROW_VECTORS);
                TILES(2, TILE_VECTORS);
                TILES(3, TILE_VECTORS);
                TILES(4, TILE_VECTORS);
#if TILE_ROWS > 4
                TILES(5, TILE_VECTORS);
                TILES(6, TILE_VECTORS);
#endif
            }
        }
}

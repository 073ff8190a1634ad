/* Matrix products of one path: int16 rows times int8 weights, summed exactly in int32. Included after vectors.h. */

enum NAME(Ending) { NAME(STORE), NAME(ADD), NAME(SQUARED_RELU) };

typedef struct {
    const Matrix *matrix;
    const int16_t *quantized; /* [rows, padded inputs], as `put` writes them */
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

#if TOGETHER == 2
#include "pairs.h"
#else
#include "dots.h"
#endif

/* Quantize a row [padded inputs], which counts `gain` times. Return the scale of its whole numbers. */
INLINE float NAME(quantize)(const float *row, size_t inputs, int levels, float gain, int16_t *quantized) {
    floats largest = NAME(all)(0);
    for (size_t at = 0; at < inputs; at += LANES)
        largest = NAME(maximum)(largest, NAME(absolute)(NAME(load)(row + at)));
    float most = NAME(largest_of)(largest);
    if (!(most > 1e-30f)) most = 1e-30f;
    float factor = (float)levels / most;
    for (size_t at = 0; at < inputs; at += LANES)
        NAME(put)(quantized, at, NAME(rounded)(NAME(load)(row + at) * factor));
    return most / (float)levels * gain;
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

/* The network as the kernel holds it, and the batch of one pass. docs/kernel.md explains both. */
#ifndef MIDSPAN_NETWORK_H
#define MIDSPAN_NETWORK_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK 64 /* outputs that are packed together; positions of a slab; what rows are padded to */
#define FIELDS 6 /* tokens, positions, hints, strengths and two grams: embedded/rows.py */
#define MOST_LEVELS 32639

static inline size_t padded(size_t count) { return (count + BLOCK - 1) / BLOCK * BLOCK; }

/* int8 weights [outputs, inputs] with a scale for each output, packed [outputs / 64][inputs / t][64][t], both padded; t
   inputs of an output are together, as many as the path multiplies at once. Inputs are quantized to -levels .. levels, which is as fine as sums in int32 allow. */
typedef struct {
    size_t outputs, inputs;
    int levels;
    int8_t *weights;
    float *scales;
} Matrix;

/* int8 rows [count, width] with a scale for each, looked up. */
typedef struct {
    int8_t *weights;
    float *scales;
} Table;

typedef struct {
    Matrix qkv, out, up, down;
} Layer;

typedef struct {
    size_t vocabulary, width, layers, heads, hidden, buckets, gram_width, positions, strengths, head_width;
    size_t together; /* of the path: see Matrix */
    Table embed, hint, gram;
    Matrix head;
    Layer *layer;
    float *strength; /* [strengths, width] */
    float *gram_out; /* [2 * gram_width, padded width]: the transposed matrix */
    float *copy;     /* [strengths, width + 1] */
    float *cosine, *sine; /* [positions, head_width / 2] */
} Network;

/* The rows of one hole. Row i of it is at position start + i of its slabs; an appended row sees the rows up to its own,
   a canvas row sees all. A slab has 64 positions: fp16 [layers, heads, 2, 64 * head_width], keys as [head_width, 64]
   and values as [64, head_width]. */
typedef struct {
    size_t first, rows, start, append;
    uint16_t **slabs;
} Hole;

typedef struct {
    size_t rows, holes, wanted;
    const int64_t *numbers; /* [FIELDS, rows] */
    const int64_t *wanted_rows;
    Hole *hole;
    float *logits;       /* [wanted, padded vocabulary] */
    float *wanted_trunk; /* [wanted, width] */
} Batch;

/* Memory of one pass. All rows are padded, and what is after a row's end is zero. */
typedef struct {
    size_t bytes;
    void *memory;
    float *rows, *qkv, *mixed, *hidden, *scores, *row_scales;
    int16_t *quantized;
} Scratch;

static void *aligned_zeros(size_t bytes) {
    void *memory = NULL;
    bytes = (bytes + 63) / 64 * 64;
    if (posix_memalign(&memory, 64, bytes)) return NULL;
    return memset(memory, 0, bytes);
}

/* Return 0 if there is no memory. */
static int pack(Matrix *matrix, const int8_t *weights, const float *scales, size_t outputs, size_t inputs,
                size_t together) {
    size_t wide = padded(inputs), levels = 2147483647u / (128 * inputs);
    matrix->outputs = outputs, matrix->inputs = inputs;
    matrix->levels = levels < MOST_LEVELS ? (int)levels : MOST_LEVELS;
    matrix->weights = aligned_zeros(padded(outputs) * wide);
    matrix->scales = aligned_zeros(padded(outputs) * sizeof(float));
    if (!matrix->weights || !matrix->scales) return 0;
    memcpy(matrix->scales, scales, outputs * sizeof(float));
    for (size_t output = 0; output < outputs; output++)
        for (size_t input = 0; input < inputs; input++) {
            size_t place = input / together * BLOCK + output % BLOCK;
            matrix->weights[output / BLOCK * BLOCK * wide + place * together + input % together] = weights[output * inputs + input];
        }
    return 1;
}

static void free_matrix(Matrix *matrix) {
    free(matrix->weights);
    free(matrix->scales);
}

static void free_network(Network *network) {
    Table *tables[] = {&network->embed, &network->hint, &network->gram};
    for (int i = 0; i < 3; i++) free(tables[i]->weights), free(tables[i]->scales);
    for (size_t i = 0; network->layer && i < network->layers; i++) {
        Layer *layer = &network->layer[i];
        free_matrix(&layer->qkv), free_matrix(&layer->out), free_matrix(&layer->up), free_matrix(&layer->down);
    }
    free_matrix(&network->head);
    free(network->layer), free(network->strength), free(network->gram_out), free(network->copy);
    free(network->cosine), free(network->sine);
    memset(network, 0, sizeof *network);
}

static size_t larger(size_t one, size_t other) { return one > other ? one : other; }

/* Make room for a batch. Return 0 if there is no memory. */
static int reserve(Scratch *scratch, const Network *network, const Batch *batch) {
    size_t width = padded(network->width), hidden = padded(network->hidden), qkv = padded(3 * network->width);
    size_t positions = 0, grams = padded(2 * network->gram_width);
    for (size_t i = 0; i < batch->holes; i++)
        positions = larger(positions, padded(batch->hole[i].start + batch->hole[i].rows));
    size_t rows = larger(batch->rows, batch->wanted), widest = larger(larger(hidden, width), grams);
    size_t floats[] = {rows * width, rows * qkv, rows * width, rows * widest, 6 * positions, padded(rows)};
    size_t total = rows * widest * sizeof(int16_t);
    for (int i = 0; i < 6; i++) total += floats[i] * sizeof(float);
    if (scratch->bytes < total) {
        free(scratch->memory);
        scratch->memory = aligned_zeros(total);
        scratch->bytes = scratch->memory ? total : 0;
        if (!scratch->memory) return 0;
    }
    float *next = scratch->memory, **parts[] = {&scratch->rows,   &scratch->qkv,    &scratch->mixed,
                                                &scratch->hidden, &scratch->scores, &scratch->row_scales};
    for (int i = 0; i < 6; i++) *parts[i] = next, next += floats[i];
    scratch->quantized = (int16_t *)next;
    return 1;
}
#endif

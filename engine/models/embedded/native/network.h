/* The network as the kernel holds it, and the batch of one pass. docs/kernel.md explains both. */
#ifndef MIDSPAN_NETWORK_H
#define MIDSPAN_NETWORK_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define GROUP 64  /* inputs that share a scale, in weights and in rows */
#define OUTPUTS 16 /* outputs that are packed together */
#define CHUNK 64  /* outputs that a thread computes at a time; matrices are padded to it */
#define BLOCK 64  /* positions of a slab */
#define FIELDS 2  /* tokens and positions: embedded/rows.py */
#define HEAD_MOST 6 /* queries whose attention is computed together, at most */

static inline size_t padded(size_t count, size_t to) { return (count + to - 1) / to * to; }

/* Weights [outputs, inputs] of 4 or 8 bits, each group with a scale in fp16: [outputs / 16][groups][16].

   Words [outputs / 16][steps][16]: a word has 8 inputs of an output in int4 or 4 in int8, so one vector of words feeds a
   dot product of bytes. int4: byte i has input i in its low half and input 4 + i in its high half. Numbers are stored
   as whole numbers from 0 on, 8 or 128 too large; a product takes that off with the sum of a row's group. */
typedef struct {
    size_t outputs, inputs, groups, bits;
    uint32_t *words;
    uint16_t *scales;
} Matrix;

typedef struct {
    float *norm, *feed_norm; /* [width] */
    Matrix qkv, out, gate_up, down;
} Layer;

typedef struct {
    size_t vocabulary, width, layers, heads, key_heads, head_width, hidden, positions;
    float epsilon;
    Matrix embed; /* looked up, and the head */
    Layer *layer;
    float *norm;          /* [width] */
    float *cosine, *sine; /* [positions, head_width / 2] */
} Network;

/* The rows of one hole. Row i of it is at position start + i of its slabs; an appended row sees the rows up to its own,
   a canvas row sees all. A slab has 64 positions: fp16 [layers, key_heads, 2, 64 * head_width], keys as
   [head_width, 64] and values as [64, head_width]. */
typedef struct {
    size_t first, rows, start, append;
    uint16_t **slabs;
} Hole;

typedef struct {
    size_t rows, holes, wanted;
    const int64_t *numbers; /* [FIELDS, rows] */
    const int64_t *wanted_rows;
    Hole *hole;
    float *logits; /* [wanted, padded vocabulary] */
} Batch;

/* Memory of one pass. */
typedef struct {
    size_t bytes;
    void *memory;
    float *rows, *qkv, *mixed, *hidden;
    float *scores;     /* [threads, HEAD_MOST, padded positions] */
    size_t positions;  /* padded */
    float *row_scales; /* [rows, groups]: rows in int8, each group with a scale */
    int32_t *row_sums; /* [rows, groups]: sums of a group's whole numbers */
    int8_t *quantized; /* [rows, inputs] */
} Scratch;

static void *aligned_zeros(size_t bytes) {
    void *memory = NULL;
    bytes = padded(bytes ? bytes : 1, 64);
    if (posix_memalign(&memory, 64, bytes)) return NULL;
    return memset(memory, 0, bytes);
}

/* Take weights as they are on disk (embedded/weights.py). Return 0 if there is no memory. */
static int pack(Matrix *matrix, const uint8_t *weights, const uint16_t *scales, size_t outputs, size_t inputs,
                size_t bits) {
    size_t each = 32 / bits, steps = inputs / each, groups = inputs / GROUP, bytes = inputs * bits / 8;
    *matrix = (Matrix){outputs, inputs, groups, bits, NULL, NULL};
    matrix->words = aligned_zeros(padded(outputs, CHUNK) * steps * sizeof(uint32_t));
    matrix->scales = aligned_zeros(padded(outputs, CHUNK) * groups * sizeof(uint16_t));
    if (!matrix->words || !matrix->scales) return 0;
    for (size_t output = 0; output < outputs; output++) {
        const uint8_t *row = weights + output * bytes;
        uint32_t *to = matrix->words + output / OUTPUTS * OUTPUTS * steps + output % OUTPUTS;
        for (size_t step = 0; step < steps; step++) {
            uint32_t word = 0;
            for (size_t byte = 0; byte < 4; byte++) {
                uint32_t value;
                if (bits == 4) { /* on disk, inputs 2j and 2j + 1 share a byte */
                    size_t low = step * 8 + byte, high = low + 4;
                    value = (row[low / 2] >> low % 2 * 4 & 15u) | (row[high / 2] >> high % 2 * 4 & 15u) << 4;
                } else value = row[step * 4 + byte] ^ 128u;
                word |= value << 8 * byte;
            }
            to[step * OUTPUTS] = word;
        }
        for (size_t group = 0; group < groups; group++)
            matrix->scales[(output / OUTPUTS * groups + group) * OUTPUTS + output % OUTPUTS] =
                scales[output * groups + group];
    }
    return 1;
}

static void free_matrix(Matrix *matrix) {
    free(matrix->words);
    free(matrix->scales);
}

static void free_network(Network *network) {
    for (size_t i = 0; network->layer && i < network->layers; i++) {
        Layer *layer = &network->layer[i];
        free(layer->norm), free(layer->feed_norm);
        free_matrix(&layer->qkv), free_matrix(&layer->out), free_matrix(&layer->gate_up), free_matrix(&layer->down);
    }
    free_matrix(&network->embed);
    free(network->layer), free(network->norm), free(network->cosine), free(network->sine);
    memset(network, 0, sizeof *network);
}

static size_t larger(size_t one, size_t other) { return one > other ? one : other; }

static size_t qkv_width(const Network *network) {
    return (network->heads + 2 * network->key_heads) * network->head_width;
}

/* Make room for a batch. Return 0 if there is no memory. */
static int reserve(Scratch *scratch, const Network *network, const Batch *batch, size_t threads) {
    size_t width = network->width, mixed = network->heads * network->head_width, positions = 0;
    for (size_t i = 0; i < batch->holes; i++)
        positions = larger(positions, padded(batch->hole[i].start + batch->hole[i].rows, BLOCK));
    size_t rows = larger(batch->rows, batch->wanted), widest = larger(larger(width, mixed), network->hidden);
    size_t qkv = padded(qkv_width(network), CHUNK), groups = widest / GROUP;
    size_t sizes[] = {rows * width * 4, rows * qkv * 4,    rows * mixed * 4,  rows * 2 * network->hidden * 4,
                      threads * HEAD_MOST * positions * 4, rows * groups * 4, rows * groups * 4,
                      rows * widest};
    size_t total = 0;
    for (int i = 0; i < 8; i++) total += sizes[i] = padded(sizes[i], 64);
    if (scratch->bytes < total) {
        free(scratch->memory);
        scratch->memory = aligned_zeros(total);
        scratch->bytes = scratch->memory ? total : 0;
        if (!scratch->memory) return 0;
    }
    char *next = scratch->memory;
    void **parts[] = {(void **)&scratch->rows,   (void **)&scratch->qkv,        (void **)&scratch->mixed,
                      (void **)&scratch->hidden, (void **)&scratch->scores,     (void **)&scratch->row_scales,
                      (void **)&scratch->row_sums, (void **)&scratch->quantized};
    for (int i = 0; i < 8; i++) *parts[i] = next, next += sizes[i];
    scratch->positions = positions;
    return 1;
}
#endif

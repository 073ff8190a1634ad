/* The network as the kernel holds it, and the batch of one pass. docs/kernel.md explains both. */
#ifndef MIDSPAN_NETWORK_H
#define MIDSPAN_NETWORK_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "matrix.h"
#include "threads.h"

#define FIELDS 2 /* tokens and positions: embedded/runner.py */
#define MOST_TILE 6 /* queries that attention computes together, on any path */

/* What an adapter adds to a product of canvas rows: b times (a times the rows). The rank is padded to GROUP. */
typedef struct {
    Matrix a, b; /* [GROUP, inputs], [outputs, GROUP] */
} LowRank;

typedef struct {
    Matrix qkv, out, gate_up, down;
    LowRank low_qkv, low_out, low_gate_up, low_down; /* nothing without an adapter */
    float *norm, *feed_norm; /* [width] */
    /* What some networks have, or NULL: a bias of queries, keys and values, and norms of each query's and key's head. */
    float *bias;                   /* [heads + 2 * key_heads, head_width] */
    float *query_norm, *key_norm; /* [head_width] */
} Layer;

typedef struct {
    size_t vocabulary, width, layers, heads, key_heads, head_width, hidden, positions;
    size_t outputs; /* logits of a row: of all tokens, or of those that the head has */
    size_t bytes; /* of all matrices */
    int has_offsets;
    float epsilon;
    Matrix embed; /* what tokens enter with, and what logits are products with if there is no head */
    Matrix head;  /* without blocks if there is none */
    Layer *layer;
    float *norm;          /* [width] */
    float *mask;          /* [width], what an adapter's mask enters with; NULL without an adapter */
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
    float *logits; /* [wanted, padded outputs] */
} Batch;

#define PARTS 10 /* of that memory in fp32 or int32 */

/* Memory of one pass. */
typedef struct {
    size_t bytes, positions;
    void *memory;
    float *rows;       /* [rows, width] */
    float *wide;       /* [rows, the more of padded qkv and 2 * hidden] */
    float *mixed;      /* [rows, heads * head_width] */
    float *scores;     /* [threads, MOST_TILE, positions] */
    float *scales;     /* [rows, groups]: see products.h */
    int32_t *sums;     /* [rows, groups] */
    float *half_sums;  /* [rows, groups, 2]; NULL where no matrix has offsets */
    int8_t *quantized; /* [rows, inputs] */
    /* Of an adapter, for rows on a canvas: the products with `a`, and the same quantized. */
    float *low, *low_scales; /* [rows, GROUP], [rows] */
    int32_t *low_sums;       /* [rows] */
    int8_t *low_quantized;   /* [rows, GROUP] */
} Scratch;

static size_t mixed_width(const Network *network) { return network->heads * network->head_width; }

static size_t qkv_width(const Network *network) {
    return (network->heads + 2 * network->key_heads) * network->head_width;
}

/* Forget an adapter, also one of which only a part was taken. */
static void free_adapter(Network *network) {
    for (size_t i = 0; network->layer && i < network->layers; i++) {
        Layer *layer = &network->layer[i];
        LowRank *low[] = {&layer->low_qkv, &layer->low_out, &layer->low_gate_up, &layer->low_down};
        for (int at = 0; at < 4; at++) {
            free_matrix(&low[at]->a), free_matrix(&low[at]->b);
            memset(low[at], 0, sizeof *low[at]);
        }
    }
    free(network->mask);
    network->mask = NULL;
}

static void free_network(Network *network) {
    free_adapter(network);
    for (size_t i = 0; network->layer && i < network->layers; i++) {
        Layer *layer = &network->layer[i];
        free_matrix(&layer->qkv), free_matrix(&layer->out), free_matrix(&layer->gate_up), free_matrix(&layer->down);
        free(layer->norm), free(layer->feed_norm);
        free(layer->bias), free(layer->query_norm), free(layer->key_norm);
    }
    free_matrix(&network->embed), free_matrix(&network->head);
    free(network->layer), free(network->norm), free(network->cosine), free(network->sine);
    memset(network, 0, sizeof *network);
}

static size_t larger(size_t one, size_t other) { return one > other ? one : other; }

/* Make room for a batch. Return 0 if there is no memory. */
static int reserve(Scratch *scratch, const Network *network, const Batch *batch, size_t threads) {
    size_t mixed = mixed_width(network), wide = larger(padded(qkv_width(network)), 2 * network->hidden);
    size_t inputs = larger(larger(network->width, mixed), network->hidden), positions = 0;
    for (size_t i = 0; i < batch->holes; i++)
        positions = larger(positions, padded(batch->hole[i].start + batch->hole[i].rows));
    size_t rows = larger(batch->rows, batch->wanted), groups = padded(rows * inputs / GROUP);
    size_t adapted = network->mask ? batch->rows : 0;
    size_t floats[PARTS] = {padded(batch->rows * network->width),
                            padded(batch->rows * wide),
                            padded(batch->rows * mixed),
                            threads * MOST_TILE * positions,
                            groups,
                            groups,
                            network->has_offsets ? 2 * groups : 0,
                            adapted * GROUP,
                            padded(adapted),
                            padded(adapted)};
    size_t total = rows * inputs + adapted * GROUP;
    for (int i = 0; i < PARTS; i++) total += floats[i] * sizeof(float);
    if (scratch->bytes < total) {
        free(scratch->memory);
        scratch->memory = aligned_zeros(total);
        scratch->bytes = scratch->memory ? total : 0;
        if (!scratch->memory) return 0;
    }
    float *next = scratch->memory;
    float **parts[PARTS] = {&scratch->rows,      &scratch->wide,       &scratch->mixed,
                            &scratch->scores,    &scratch->scales,     (float **)&scratch->sums,
                            &scratch->half_sums, &scratch->low,        &scratch->low_scales,
                            (float **)&scratch->low_sums};
    for (int i = 0; i < PARTS; i++) *parts[i] = next, next += floats[i];
    scratch->quantized = (int8_t *)next;
    scratch->low_quantized = scratch->quantized + rows * inputs;
    if (!network->has_offsets) scratch->half_sums = NULL;
    scratch->positions = positions;
    return 1;
}
#endif

/* A whole pass of one path. Included after vectors.h, products.h and attention.h.

   Each step of a layer is a number of items that threads share (pool.h); the next step begins when all are done. */

typedef struct {
    const Network *network;
    const Batch *batch;
    const Scratch *scratch;
    size_t layer;
    const float *from;  /* rows to quantize [rows, inputs] */
    const float *gains; /* of the norm before a product; NULL without a norm */
    size_t inputs;
} NAME(Step);

/* Look the tokens' embeddings up: one row. */
FUNCTION void NAME(enter)(void *context, size_t row, size_t thread) {
    const NAME(Step) *step = context;
    const Matrix *embed = &step->network->embed;
    size_t width = step->network->width, token = (size_t)step->batch->numbers[row], each = 32 / embed->bits;
    const uint32_t *words = embed->words + token / OUTPUTS * OUTPUTS * (width / each) + token % OUTPUTS;
    const uint16_t *scales = embed->scales + token / OUTPUTS * OUTPUTS * embed->groups + token % OUTPUTS;
    float *to = step->scratch->rows + row * width;
    (void)thread;
    for (size_t at = 0; at < width; at++) {
        uint16_t halves[LANES] = {scales[at / GROUP * OUTPUTS]};
        floats scale = NAME(load_half)(halves);
        uint32_t word = words[at / each * OUTPUTS], value;
        if (embed->bits == 4) value = word >> (at % 4 * 8 + (at % 8 > 3 ? 4 : 0)) & 15u;
        else value = word >> at % 4 * 8 & 255u;
        to[at] = (float)((int32_t)value - (embed->bits == 4 ? 8 : 128)) * scale[0];
    }
}

/* Quantize one row for a product. A norm's factor goes into it, and no normalized row is ever written. */
FUNCTION void NAME(prepare)(void *context, size_t row, size_t thread) {
    const NAME(Step) *step = context;
    size_t inputs = step->inputs, groups = inputs / GROUP;
    const float *from = step->from + row * inputs;
    float gain = step->gains ? NAME(norm_factor)(from, inputs, step->network->epsilon) : 1.0f;
    (void)thread;
    NAME(quantize)(from, step->gains, gain, inputs, step->scratch->row_scales + row * groups,
                   step->scratch->row_sums + row * groups, step->scratch->quantized + row * inputs);
}

/* The same for the rows of the feed-forward's second product: silu(gate) * up. */
FUNCTION void NAME(activate)(void *context, size_t row, size_t thread) {
    const NAME(Step) *step = context;
    size_t hidden = step->network->hidden, groups = hidden / GROUP;
    float *gate = step->scratch->hidden + row * 2 * hidden;
    (void)thread;
    for (size_t at = 0; at < hidden; at += LANES)
        NAME(store)(gate + at, NAME(silu)(NAME(load)(gate + at)) * NAME(load)(gate + hidden + at));
    NAME(quantize)(gate, NULL, 1.0f, hidden, step->scratch->row_scales + row * groups,
                   step->scratch->row_sums + row * groups, step->scratch->quantized + row * hidden);
}

FUNCTION void NAME(rotate_row)(void *context, size_t row, size_t thread) {
    const NAME(Step) *step = context;
    const Hole *hole = step->batch->hole;
    (void)thread;
    while (row >= hole->first + hole->rows) hole++;
    NAME(write_keys)(step->network, step->batch, hole, step->layer,
                     step->scratch->qkv + row * padded(qkv_width(step->network), CHUNK), row - hole->first);
}

/* How many tiles of HEAD_ROWS queries one head of keys has in a hole. */
INLINE size_t NAME(tiles_of)(const Network *network, const Hole *hole) {
    return (hole->rows * (network->heads / network->key_heads) + HEAD_ROWS - 1) / HEAD_ROWS;
}

FUNCTION void NAME(attend_item)(void *context, size_t item, size_t thread) {
    const NAME(Step) *step = context;
    const Network *network = step->network;
    const Hole *hole = step->batch->hole;
    for (; item >= network->key_heads * NAME(tiles_of)(network, hole); hole++)
        item -= network->key_heads * NAME(tiles_of)(network, hole);
    size_t tiles = NAME(tiles_of)(network, hole), queries = hole->rows * (network->heads / network->key_heads);
    size_t tile = item % tiles, first = tile * queries / tiles, stop = (tile + 1) * queries / tiles;
    float *scores = step->scratch->scores + thread * HEAD_MOST * step->scratch->positions;
    NAME(attend)(network, hole, step->layer, item / tiles, step->scratch, scores, first, stop - first);
}

FUNCTION void NAME(product)(Pool *pool, const Scratch *scratch, size_t rows, const Matrix *matrix, float *result,
                            int add) {
    NAME(Product) product = {matrix, scratch, rows, padded(matrix->outputs, CHUNK), result, add};
    share(pool, NAME(multiply), &product, product.stride / CHUNK);
}

/* The logits of the wanted rows. */
FUNCTION void NAME(leave)(NAME(Step) *step, Pool *pool) {
    const Network *network = step->network;
    const Batch *batch = step->batch;
    size_t width = network->width;
    float *chosen = step->scratch->hidden;
    for (size_t one = 0; one < batch->wanted; one++)
        memcpy(chosen + one * width, step->scratch->rows + (size_t)batch->wanted_rows[one] * width, width * sizeof *chosen);
    step->from = chosen, step->gains = network->norm, step->inputs = width;
    share(pool, NAME(prepare), step, batch->wanted);
    NAME(product)(pool, step->scratch, batch->wanted, &network->embed, batch->logits, 0);
}

FUNCTION void NAME(run)(const Network *network, const Batch *batch, const Scratch *scratch, Pool *pool) {
    size_t rows = batch->rows, width = network->width, mixed = network->heads * network->head_width, items = 0;
    NAME(Step) step = {network, batch, scratch, 0, NULL, NULL, width};
    for (size_t hole = 0; hole < batch->holes; hole++)
        items += network->key_heads * NAME(tiles_of)(network, &batch->hole[hole]);
    share(pool, NAME(enter), &step, rows);
    for (step.layer = 0; step.layer < network->layers; step.layer++) {
        const Layer *layer = &network->layer[step.layer];
        step.from = scratch->rows, step.gains = layer->norm, step.inputs = width;
        share(pool, NAME(prepare), &step, rows);
        NAME(product)(pool, scratch, rows, &layer->qkv, scratch->qkv, 0);
        share(pool, NAME(rotate_row), &step, rows);
        share(pool, NAME(attend_item), &step, items);
        step.from = scratch->mixed, step.gains = NULL, step.inputs = mixed;
        share(pool, NAME(prepare), &step, rows);
        NAME(product)(pool, scratch, rows, &layer->out, scratch->rows, 1);
        step.from = scratch->rows, step.gains = layer->feed_norm, step.inputs = width;
        share(pool, NAME(prepare), &step, rows);
        NAME(product)(pool, scratch, rows, &layer->gate_up, scratch->hidden, 0);
        share(pool, NAME(activate), &step, rows);
        NAME(product)(pool, scratch, rows, &layer->down, scratch->rows, 1);
    }
    if (batch->wanted) NAME(leave)(&step, pool);
}

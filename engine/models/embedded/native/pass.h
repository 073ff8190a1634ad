/* A whole pass of one path, as steps of tasks. Included after vectors.h, products.h and attention.h. */

typedef struct {
    const Network *network;
    const Batch *batch;
    const Scratch *scratch;
    Team *team;
    size_t threads, layer;
    /* Of a step over rows: how many are a task, and what is quantized. */
    size_t count, chunk, inputs;
    const float *from, *gains;
    const int64_t *chosen; /* the rows of `from`, or NULL for all */
} NAME(Pass);

/* Rows of a task, so that each thread gets several tasks, but no more than `most` rows in one. */
INLINE size_t NAME(chunk_of)(const NAME(Pass) *pass, size_t rows, size_t most) {
    size_t chunk = rows / (4 * pass->threads) + 1;
    return chunk < most ? chunk : most;
}

INLINE void NAME(over_rows)(NAME(Pass) *pass, Work *work, size_t count) {
    pass->count = count, pass->chunk = NAME(chunk_of)(pass, count, 32);
    do_step(pass->team, work, pass, (count + pass->chunk - 1) / pass->chunk);
}

#define EACH_ROW(pass, task)                                                                  \
    for (size_t row = (task) * (pass)->chunk, end = row + (pass)->chunk; row < end && row < (pass)->count; row++)

FUNCTION void NAME(enter_task)(void *argument, size_t task, size_t thread) {
    const NAME(Pass) *pass = argument;
    (void)thread;
    EACH_ROW(pass, task) {
        const Network *network = pass->network;
        size_t token = (size_t)pass->batch->numbers[row];
        float *to = pass->scratch->rows + row * network->width;
        if (token == network->vocabulary) memcpy(to, network->mask, network->width * sizeof *to);
        else look_up(&network->embed, token, to);
    }
}

/* Quantize rows for a product. Normalized, if there are gains. */
FUNCTION void NAME(quantize_task)(void *argument, size_t task, size_t thread) {
    const NAME(Pass) *pass = argument;
    const Scratch *scratch = pass->scratch;
    size_t inputs = pass->inputs, groups = inputs / GROUP;
    (void)thread;
    EACH_ROW(pass, task) {
        const float *from = pass->from + (pass->chosen ? (size_t)pass->chosen[row] : row) * inputs;
        float factor = pass->gains ? NAME(norm_factor)(from, inputs, pass->network->epsilon) : 1.0f;
        NAME(quantize)(from, inputs, factor, pass->gains, scratch->quantized + row * inputs,
                       scratch->scales + row * groups, scratch->sums + row * groups,
                       scratch->half_sums ? scratch->half_sums + row * groups * 2 : NULL);
    }
}

/* Quantize silu(gate) * up for the feed-forward's second product. */
FUNCTION void NAME(activate_task)(void *argument, size_t task, size_t thread) {
    const NAME(Pass) *pass = argument;
    const Scratch *scratch = pass->scratch;
    size_t hidden = pass->network->hidden, groups = hidden / GROUP;
    (void)thread;
    EACH_ROW(pass, task) {
        float *gate = scratch->wide + row * 2 * hidden, *up = gate + hidden;
        for (size_t at = 0; at < hidden; at += LANES)
            NAME(store)(gate + at, NAME(silu)(NAME(load)(gate + at)) * NAME(load)(up + at));
        NAME(quantize)(gate, hidden, 1.0f, NULL, scratch->quantized + row * hidden, scratch->scales + row * groups,
                       scratch->sums + row * groups,
                       scratch->half_sums ? scratch->half_sums + row * groups * 2 : NULL);
    }
}

FUNCTION void NAME(write_task)(void *argument, size_t task, size_t thread) {
    const NAME(Pass) *pass = argument;
    const Hole *hole = pass->batch->hole;
    size_t stride = padded(qkv_width(pass->network));
    (void)thread;
    EACH_ROW(pass, task) {
        while (row >= hole->first + hole->rows) hole++;
        NAME(write_row)(pass->network, pass->batch, hole, pass->layer, row, pass->scratch->wide + row * stride);
    }
}

/* A task is a chunk of a hole's rows with one key head. */
FUNCTION void NAME(attend_task)(void *argument, size_t task, size_t thread) {
    const NAME(Pass) *pass = argument;
    const Hole *hole = pass->batch->hole;
    size_t heads = pass->network->key_heads, chunk = pass->chunk, tasks;
    for (; task >= (tasks = (hole->rows + chunk - 1) / chunk * heads); hole++) task -= tasks;
    size_t row = task / heads * chunk, end = row + chunk < hole->rows ? row + chunk : hole->rows;
    NAME(attend)(pass->network, hole, pass->layer, task % heads, row, end, pass->scratch, thread);
}

FUNCTION void NAME(attention)(NAME(Pass) *pass) {
    size_t tasks = 0;
    NAME(over_rows)(pass, NAME(write_task), pass->batch->rows);
    pass->chunk = NAME(chunk_of)(pass, pass->batch->rows, 16);
    for (size_t at = 0; at < pass->batch->holes; at++)
        tasks += (pass->batch->hole[at].rows + pass->chunk - 1) / pass->chunk * pass->network->key_heads;
    do_step(pass->team, NAME(attend_task), pass, tasks);
}

FUNCTION void NAME(multiply)(const NAME(Pass) *pass, NAME(Product) *product) {
    do_step(pass->team, NAME(product_task), product,
            (product->rows + CHUNK - 1) / CHUNK * (padded(product->matrix->outputs) / BLOCK));
}

/* Multiply the rows that were quantized last. */
FUNCTION void NAME(product)(const NAME(Pass) *pass, size_t rows, const Matrix *matrix, float *result, int add) {
    const Scratch *scratch = pass->scratch;
    NAME(Product) product = {matrix, scratch->quantized, scratch->scales, scratch->sums,
                             scratch->half_sums, result, rows, CHUNK, add};
    NAME(multiply)(pass, &product);
}

/* Add to the result of a product what the adapter adds to the rows of a hole's canvas, which were quantized last. */
FUNCTION void NAME(adapt_hole)(const NAME(Pass) *pass, const Hole *hole, const LowRank *low, float *result) {
    const Scratch *scratch = pass->scratch;
    size_t row = hole->first + hole->append, rows = hole->rows - hole->append;
    size_t inputs = low->a.inputs, groups = inputs / GROUP;
    float *own = scratch->low + row * GROUP;
    NAME(Product) first = {&low->a, scratch->quantized + row * inputs, scratch->scales + row * groups,
                           scratch->sums + row * groups, NULL, own, rows, CHUNK, 0};
    NAME(multiply)(pass, &first);
    int8_t *quantized = scratch->low_quantized + row * GROUP;
    for (size_t at = 0; at < rows; at++)
        NAME(quantize)(own + at * GROUP, GROUP, 1.0f, NULL, quantized + at * GROUP, scratch->low_scales + row + at,
                       scratch->low_sums + row + at, NULL);
    NAME(Product) second = {&low->b, quantized, scratch->low_scales + row, scratch->low_sums + row, NULL,
                            result + row * padded(low->b.outputs), rows, CHUNK, 1};
    NAME(multiply)(pass, &second);
}

FUNCTION void NAME(adapt)(const NAME(Pass) *pass, const LowRank *low, float *result) {
    const Batch *batch = pass->batch;
    for (size_t at = 0; pass->network->mask && at < batch->holes; at++)
        if (batch->hole[at].append < batch->hole[at].rows) NAME(adapt_hole)(pass, &batch->hole[at], low, result);
}

FUNCTION void NAME(quantize_rows)(NAME(Pass) *pass, const float *from, size_t inputs, const float *gains) {
    pass->from = from, pass->inputs = inputs, pass->gains = gains;
    NAME(over_rows)(pass, NAME(quantize_task), pass->batch->rows);
}

FUNCTION void NAME(run)(const Network *network, const Batch *batch, const Scratch *scratch, Team *team,
                        size_t threads) {
    NAME(Pass) pass = {.network = network, .batch = batch, .scratch = scratch, .team = team, .threads = threads};
    size_t rows = batch->rows;
    NAME(over_rows)(&pass, NAME(enter_task), rows);
    for (pass.layer = 0; pass.layer < network->layers; pass.layer++) {
        const Layer *layer = &network->layer[pass.layer];
        NAME(quantize_rows)(&pass, scratch->rows, network->width, layer->norm);
        NAME(product)(&pass, rows, &layer->qkv, scratch->wide, 0);
        NAME(adapt)(&pass, &layer->low_qkv, scratch->wide);
        NAME(attention)(&pass);
        NAME(quantize_rows)(&pass, scratch->mixed, mixed_width(network), NULL);
        NAME(product)(&pass, rows, &layer->out, scratch->rows, 1);
        NAME(adapt)(&pass, &layer->low_out, scratch->rows);
        NAME(quantize_rows)(&pass, scratch->rows, network->width, layer->feed_norm);
        NAME(product)(&pass, rows, &layer->gate_up, scratch->wide, 0);
        NAME(adapt)(&pass, &layer->low_gate_up, scratch->wide);
        NAME(over_rows)(&pass, NAME(activate_task), rows);
        NAME(product)(&pass, rows, &layer->down, scratch->rows, 1);
        NAME(adapt)(&pass, &layer->low_down, scratch->rows);
    }
    if (!batch->wanted) return;
    pass.from = scratch->rows, pass.inputs = network->width, pass.gains = network->norm;
    pass.chosen = batch->wanted_rows;
    NAME(over_rows)(&pass, NAME(quantize_task), batch->wanted);
    NAME(product)(&pass, batch->wanted, network->head.blocks ? &network->head : &network->embed, batch->logits, 0);
}
#undef EACH_ROW

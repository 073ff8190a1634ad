/* A whole pass of one path. Included after vectors.h, products.h and attention.h. */

/* row [width] += weights [width], as far as they go, times factor. */
INLINE void NAME(add_looked_up)(float *row, const Table *table, size_t index, const float *gains, size_t width) {
    const int8_t *weights = table->weights + index * width;
    float scale = table->scales[index];
    for (size_t at = 0; at < width; at++) row[at] += (float)weights[at] * scale * (gains ? gains[at] : 1.0f);
}

/* Add rows [4, padded gram_width * 2] times the matrix gram_out to rows [4, padded width], for four vectors. */
INLINE void NAME(add_grams)(const Network *network, const float *grams, float *rows, size_t at, const int count) {
    size_t width = padded(network->width), inputs = 2 * network->gram_width;
    floats sums[4][4] = {0};
    for (size_t from = 0; from < inputs; from++) {
        floats column[4];
#pragma GCC unroll 4
        for (int vector = 0; vector < 4; vector++)
            column[vector] = NAME(load)(network->gram_out + from * width + at + vector * LANES);
#pragma GCC unroll 4
        for (int row = 0; row < count; row++)
#pragma GCC unroll 4
            for (int vector = 0; vector < 4; vector++)
                sums[row][vector] =
                    MULTIPLY_ADD(NAME(all)(grams[row * padded(inputs) + from]), column[vector], sums[row][vector]);
    }
#pragma GCC unroll 4
    for (int row = 0; row < count; row++)
#pragma GCC unroll 4
        for (int vector = 0; vector < 4; vector++)
            NAME(store)(rows + row * width + at + vector * LANES, sums[row][vector]);
}

/* Compute the input of the first layer: network.Network.entry, for rows [padded width]. */
FUNCTION void NAME(enter)(const Network *network, const Batch *batch, const Scratch *scratch) {
    size_t width = network->width, stride = padded(width), rows = batch->rows, half = network->gram_width;
    size_t wide = padded(2 * half);
    const int64_t *tokens = batch->numbers, *hints = tokens + 2 * rows, *strengths = tokens + 3 * rows;
    memset(scratch->hidden, 0, rows * wide * sizeof(float));
    for (size_t row = 0; row < rows; row++)
        for (size_t kind = 0; kind < 2; kind++) {
            size_t gram = (size_t)batch->numbers[(4 + kind) * rows + row] + kind * network->buckets;
            NAME(add_looked_up)(scratch->hidden + row * wide + kind * half, &network->gram, gram, NULL, half);
        }
    for (size_t row = 0, count; row < rows; row += count) {
        const float *grams = scratch->hidden + row * wide;
        float *to = scratch->rows + row * stride;
        count = rows - row < 4 ? 1 : 4;
        for (size_t at = 0; at < stride; at += 4 * LANES)
            if (count == 4) NAME(add_grams)(network, grams, to, at, 4);
            else NAME(add_grams)(network, grams, to, at, 1);
    }
    for (size_t row = 0; row < rows; row++) {
        float *to = scratch->rows + row * stride;
        NAME(add_looked_up)(to, &network->embed, (size_t)tokens[row], NULL, width);
        NAME(add_looked_up)(to, &network->hint, (size_t)hints[row], network->strength + strengths[row] * width, width);
        float factor = NAME(norm_factor)(to, stride, width);
        for (size_t at = 0; at < stride; at += LANES) NAME(store)(to + at, NAME(load)(to + at) * factor);
    }
}

/* Quantize rows [count, padded inputs] for a product. Normalized, if `norm` is not 0: then a row's factor goes into its
   scale, and no normalized row is ever written. */
FUNCTION void NAME(quantize_rows)(const Scratch *scratch, const float *rows, size_t count, const Matrix *matrix,
                                  int norm) {
    size_t inputs = padded(matrix->inputs);
    for (size_t row = 0; row < count; row++) {
        const float *from = rows + row * inputs;
        float gain = norm ? NAME(norm_factor)(from, inputs, matrix->inputs) : 1.0f;
        scratch->row_scales[row] =
            NAME(quantize)(from, inputs, matrix->levels, gain, scratch->quantized + row * inputs);
    }
}

FUNCTION void NAME(product)(const Scratch *scratch, const float *rows, size_t count, const Matrix *matrix, int norm,
                            float *result, enum NAME(Ending) ending) {
    NAME(quantize_rows)(scratch, rows, count, matrix, norm);
    NAME(Product) product = {matrix, scratch->quantized, scratch->row_scales,
                             result, padded(matrix->outputs), ending};
    NAME(multiply)(&product, count);
}

/* The logits of the wanted rows, and these rows as they come from the trunk: network.Network.logits. */
FUNCTION void NAME(leave)(const Network *network, const Batch *batch, const Scratch *scratch) {
    size_t width = network->width, stride = padded(width), words = padded(network->vocabulary);
    float *chosen = scratch->mixed;
    for (size_t one = 0; one < batch->wanted; one++)
        memcpy(chosen + one * stride, scratch->rows + batch->wanted_rows[one] * stride, stride * sizeof *chosen);
    NAME(product)(scratch, chosen, batch->wanted, &network->head, 1, batch->logits, NAME(STORE));
    for (size_t one = 0; one < batch->wanted; one++) {
        size_t row = (size_t)batch->wanted_rows[one];
        float *trunk = batch->wanted_trunk + one * width, *from = chosen + one * stride;
        const float *copy = network->copy + batch->numbers[3 * batch->rows + row] * (width + 1);
        floats added = {0};
        float factor = NAME(norm_factor)(from, stride, width);
        for (size_t at = 0; at < width; at += LANES) { /* a whole number of vectors: heads are multiples of 16 */
            floats value = NAME(load)(from + at) * factor;
            NAME(store)(trunk + at, value);
            added = MULTIPLY_ADD(value, NAME(load)(copy + at), added);
        }
        batch->logits[one * words + batch->numbers[2 * batch->rows + row]] += NAME(sum_of)(added) + copy[width];
    }
}

FUNCTION void NAME(run)(const Network *network, const Batch *batch, const Scratch *scratch) {
    size_t rows = batch->rows;
    memset(scratch->mixed, 0, rows * padded(network->width) * sizeof(float)); /* what is after the heads stays zero */
    NAME(enter)(network, batch, scratch);
    for (size_t at = 0; at < network->layers; at++) {
        const Layer *layer = &network->layer[at];
        NAME(product)(scratch, scratch->rows, rows, &layer->qkv, 1, scratch->qkv, NAME(STORE));
        for (size_t hole = 0; hole < batch->holes; hole++) {
            NAME(write_keys)(network, batch, &batch->hole[hole], at, scratch->qkv);
            NAME(attend)(network, &batch->hole[hole], at, scratch);
        }
        NAME(product)(scratch, scratch->mixed, rows, &layer->out, 0, scratch->rows, NAME(ADD));
        NAME(product)(scratch, scratch->rows, rows, &layer->up, 1, scratch->hidden, NAME(SQUARED_RELU));
        NAME(product)(scratch, scratch->hidden, rows, &layer->down, 0, scratch->rows, NAME(ADD));
    }
    if (batch->wanted) NAME(leave)(network, batch, scratch);
}

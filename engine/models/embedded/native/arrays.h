/* The weights of a network, taken from Python's arrays. Included by module.c alone. */
#ifndef MIDSPAN_ARRAYS_H
#define MIDSPAN_ARRAYS_H

#include "blocks.h"
#include "network.h"

#define MATRICES_A_LAYER 4 /* each weights and scales */
#define VECTORS_A_LAYER 5 /* two norms; a bias and the norms of heads, or None */
#define MOST_PARTS 3       /* of a matrix, as queries, keys and values are */
#define OTHER_ARRAYS 7    /* cosines, sines, the last norm; embedding; head, or None twice */

/* Take the buffer of a sequence's item, which must have `bytes` bytes, or `or_bytes`, and drop the item. Return 0 with
   an exception set, which may be there already if there is no item. */
static int buffer_in(PyObject *item, Py_ssize_t index, size_t bytes, size_t or_bytes, int flags, Py_buffer *view) {
    if (!item) return 0;
    int failed = PyObject_GetBuffer(item, view, flags);
    Py_DECREF(item);
    if (failed) return 0;
    if ((size_t)view->len == bytes || (size_t)view->len == or_bytes) return 1;
    PyErr_Format(PyExc_ValueError, "array %zd has %zd bytes; the sizes say %zu", index, view->len, bytes);
    PyBuffer_Release(view);
    return 0;
}

static int buffer_at(PyObject *sequence, Py_ssize_t index, size_t bytes, int flags, Py_buffer *view) {
    return buffer_in(PySequence_GetItem(sequence, index), index, bytes, bytes, flags, view);
}

/* Return whether the next array is None, and pass it by. */
static int is_none(PyObject *arrays, Py_ssize_t *next) {
    PyObject *item = PySequence_GetItem(arrays, *next);
    int none = item == Py_None;
    if (!item) PyErr_Clear(); /* Who takes it raises the error again. */
    Py_XDECREF(item);
    *next += none;
    return none;
}

static void *copied(PyObject *arrays, Py_ssize_t *next, size_t count, size_t item) {
    Py_buffer view;
    if (!buffer_at(arrays, (*next)++, count * item, PyBUF_C_CONTIGUOUS, &view)) return NULL;
    void *copy = aligned_zeros(count * item);
    if (copy) memcpy(copy, view.buf, count * item);
    else PyErr_NoMemory();
    PyBuffer_Release(&view);
    return copy;
}

/* The threads of a network, which start when they are needed, and what holds the buffers that it borrows. */
typedef struct {
    Team *team;
    size_t threads;
    PyObject *borrowed; /* a list */
} Crew;

/* Return the team, or NULL without one. */
static Team *team_of(Crew *crew) {
    if (crew->threads < 2) return NULL;
    if (!crew->team) crew->team = start_team(crew->threads - 1);
    return crew->team && crew->team->helpers ? crew->team : NULL;
}

/* Take a part of a matrix from a tuple: its name, its type, its blocks, its outputs, and a width of heads or 0.
   `view` keeps the blocks. Return 0 with an exception set. */
static int take_part(PyObject *tuple, Part *part, Py_buffer *view, size_t inputs) {
    const char *type;
    PyObject *blocks;
    Py_ssize_t outputs, head_width;
    if (!PyArg_ParseTuple(tuple, "ssOnn", &part->name, &type, &blocks, &outputs, &head_width)) return 0;
    part->type = block_type(type), part->outputs = (size_t)outputs, part->head_width = (size_t)head_width;
    if (!part->type) return PyErr_Format(PyExc_ValueError, "the tensor %s is of type %s", part->name, type), 0;
    if (outputs < 1 || outputs > 1 << 20 || inputs % part->type->weights ||
        (head_width && (head_width < 2 || head_width % 2 || outputs % head_width)))
        return PyErr_Format(PyExc_ValueError, "the tensor %s does not fit", part->name), 0;
    size_t bytes = part->outputs * (inputs / part->type->weights) * part->type->bytes;
    if (PyObject_GetBuffer(blocks, view, PyBUF_C_CONTIGUOUS)) return 0;
    part->blocks = view->buf;
    if ((size_t)view->len == bytes) return 1;
    PyErr_Format(PyExc_ValueError, "the tensor %s has %zd bytes; the sizes say %zu", part->name, view->len, bytes);
    PyBuffer_Release(view);
    return 0;
}

/* Take a matrix as a tuple: its bits, and a tuple of its parts. Return 0 with an exception set. */
static int take_parts(PyObject *tuple, Matrix *matrix, size_t outputs, size_t inputs, Team *team) {
    Part parts[MOST_PARTS];
    Py_buffer views[MOST_PARTS];
    PyObject *items;
    int bits, packed = 0;
    size_t failed = 0, next = 0;
    if (!PyArg_ParseTuple(tuple, "iO!", &bits, &PyTuple_Type, &items)) return 0;
    Py_ssize_t count = PyTuple_Size(items), taken = 0;
    if (count < 1 || count > MOST_PARTS || (bits != 4 && bits != 8))
        return PyErr_SetString(PyExc_ValueError, "a matrix has 1 to 3 parts, and 4 or 8 bits"), 0;
    for (; taken < count; taken++) {
        if (!take_part(PyTuple_GetItem(items, taken), &parts[taken], &views[taken], inputs)) break;
        parts[taken].first = next, next += parts[taken].outputs;
    }
    if (taken == count && next != outputs)
        PyErr_Format(PyExc_ValueError, "the tensor %s does not fit", parts[0].name);
    if (!PyErr_Occurred()) {
        Py_BEGIN_ALLOW_THREADS;
        if (team) atomic_store(&team->active, 1);
        packed = pack_parts(matrix, parts, (size_t)count, outputs, inputs, (int)bits, team, &failed);
        if (team) atomic_store(&team->active, 0);
        Py_END_ALLOW_THREADS;
        if (!packed) PyErr_NoMemory();
        else if (failed)
            PyErr_Format(PyExc_ValueError, "the tensor %s holds numbers that are not finite", parts[failed - 1].name);
    }
    while (taken) PyBuffer_Release(&views[--taken]);
    return packed && !failed;
}

/* Borrow a matrix that was packed before: its blocks, whose storage their size tells. Return 0 with an exception set. */
static int borrow(PyObject *item, Py_ssize_t index, Crew *crew, Matrix *matrix, size_t outputs, size_t inputs) {
    Py_buffer view;
    PyObject *holder = PyMemoryView_FromObject(item);
    if (!holder) return 0;
    int held = !PyObject_GetBuffer(holder, &view, PyBUF_C_CONTIGUOUS) && !PyList_Append(crew->borrowed, holder);
    Py_DECREF(holder);
    if (!held) return 0;
    *matrix = (Matrix){outputs, inputs, INT8, view.buf, 1};
    size_t bytes = (size_t)view.len;
    PyBuffer_Release(&view);
    for (int storage = INT8; storage <= CENTERED; storage++) {
        matrix->storage = (Storage)storage;
        if (matrix_bytes(matrix) == bytes && (uintptr_t)matrix->blocks % 64 == 0) return 1;
    }
    return PyErr_Format(PyExc_ValueError, "array %zd is no packed matrix of these sizes", index), 0;
}

/* Take a matrix: parts of files (take_parts) and nothing after them, packed blocks and None, or weights and then scales.
   Weights of 4 bits have half as many bytes as those of int8. `arrays` may make an array when it is asked for, so no two
   matrices are there unpacked. */
static int take_matrix(PyObject *arrays, Py_ssize_t *next, Network *network, Crew *crew, Matrix *matrix,
                       size_t outputs, size_t inputs) {
    PyObject *item = PySequence_GetItem(arrays, *next);
    Py_ssize_t index = *next, packed = index + 1;
    int done = 0;
    *next += 2;
    if (item && PyTuple_Check(item)) {
        done = take_parts(item, matrix, outputs, inputs, team_of(crew));
        Py_DECREF(item);
    } else if (item && is_none(arrays, &packed)) {
        done = borrow(item, index, crew, matrix, outputs, inputs);
        Py_DECREF(item);
    } else {
        Py_buffer view, scales;
        size_t count = outputs * inputs;
        if (!buffer_in(item, index, count, count / 2, PyBUF_C_CONTIGUOUS, &view)) return 0;
        Storage storage = (size_t)view.len == count ? INT8 : INT4;
        size_t of_scales = count / GROUP * scale_count(storage) * sizeof(uint16_t);
        item = PySequence_GetItem(arrays, ++index);
        if (buffer_in(item, index, of_scales, of_scales, PyBUF_C_CONTIGUOUS, &scales)) {
            if (!(done = pack(matrix, view.buf, scales.buf, outputs, inputs, storage))) PyErr_NoMemory();
            PyBuffer_Release(&scales);
        }
        PyBuffer_Release(&view);
    }
    if (!done) return 0;
    network->has_offsets |= matrix->storage != INT8;
    network->bytes += matrix_bytes(matrix);
    return 1;
}

static int take_vector(PyObject *arrays, Py_ssize_t *next, float **vector, size_t count) {
    return (*vector = copied(arrays, next, count, sizeof(float))) != NULL;
}

static int take_optional(PyObject *arrays, Py_ssize_t *next, float **vector, size_t count) {
    return is_none(arrays, next) || take_vector(arrays, next, vector, count);
}

/* Take all arrays in the order of runner.py. */
static int take_arrays(PyObject *arrays, Network *network, Crew *crew) {
    size_t width = network->width, hidden = network->hidden, half = network->head_width / 2;
    Py_ssize_t next = 0, expected = (2 * MATRICES_A_LAYER + VECTORS_A_LAYER) * (Py_ssize_t)network->layers;
    expected += OTHER_ARRAYS;
    if (PySequence_Size(arrays) != expected) {
        PyErr_Format(PyExc_ValueError, "%zd arrays were given; the network has %zd", PySequence_Size(arrays), expected);
        return 0;
    }
    network->layer = aligned_zeros(network->layers * sizeof(Layer));
    if (!network->layer) return PyErr_NoMemory(), 0;
    if (!take_vector(arrays, &next, &network->cosine, network->positions * half)) return 0;
    if (!take_vector(arrays, &next, &network->sine, network->positions * half)) return 0;
    if (!take_vector(arrays, &next, &network->norm, width)) return 0;
    for (size_t at = 0; at < network->layers; at++) {
        if (!take_vector(arrays, &next, &network->layer[at].norm, width)) return 0;
        if (!take_vector(arrays, &next, &network->layer[at].feed_norm, width)) return 0;
    }
    if (!take_matrix(arrays, &next, network, crew, &network->embed, network->vocabulary, width)) return 0;
    for (size_t at = 0; at < network->layers; at++) {
        Layer *layer = &network->layer[at];
        if (!take_matrix(arrays, &next, network, crew, &layer->qkv, qkv_width(network), width)) return 0;
        if (!take_matrix(arrays, &next, network, crew, &layer->out, width, mixed_width(network))) return 0;
        if (!take_matrix(arrays, &next, network, crew, &layer->gate_up, 2 * hidden, width)) return 0;
        if (!take_matrix(arrays, &next, network, crew, &layer->down, width, hidden)) return 0;
        if (!take_optional(arrays, &next, &layer->bias, qkv_width(network))) return 0;
        if (!take_optional(arrays, &next, &layer->query_norm, network->head_width)) return 0;
        if (!take_optional(arrays, &next, &layer->key_norm, network->head_width)) return 0;
    }
    if (is_none(arrays, &next)) {
        if (network->outputs == network->vocabulary) return 1;
        return PyErr_SetString(PyExc_ValueError, "without a head all tokens have logits"), 0;
    }
    return take_matrix(arrays, &next, network, crew, &network->head, network->outputs, width);
}

static int take_low_rank(PyObject *arrays, Py_ssize_t *next, Network *network, Crew *crew, LowRank *low,
                         const Matrix *matrix) {
    return take_matrix(arrays, next, network, crew, &low->a, GROUP, matrix->inputs) &&
           take_matrix(arrays, next, network, crew, &low->b, matrix->outputs, GROUP);
}

/* Take an adapter: its mask, then what it adds to each matrix of the layers, in their order. */
static int take_adapter(PyObject *arrays, Network *network, Crew *crew) {
    Py_ssize_t next = 0, expected = 1 + 4 * MATRICES_A_LAYER * (Py_ssize_t)network->layers;
    float *mask = NULL;
    if (network->mask) return PyErr_SetString(PyExc_ValueError, "the network has an adapter"), 0;
    if (PySequence_Size(arrays) != expected) return PyErr_SetString(PyExc_ValueError, "an adapter has other arrays"), 0;
    if (!take_vector(arrays, &next, &mask, network->width)) return 0;
    int taken = 1;
    for (size_t at = 0; taken && at < network->layers; at++) {
        Layer *layer = &network->layer[at];
        taken = take_low_rank(arrays, &next, network, crew, &layer->low_qkv, &layer->qkv) &&
                take_low_rank(arrays, &next, network, crew, &layer->low_out, &layer->out) &&
                take_low_rank(arrays, &next, network, crew, &layer->low_gate_up, &layer->gate_up) &&
                take_low_rank(arrays, &next, network, crew, &layer->low_down, &layer->down);
    }
    network->mask = mask;
    if (!taken) free_adapter(network);
    return taken;
}
#endif

/* Takes a batch from Python: run(numbers, holes, wanted, logits), where a hole is (rows, append, start, slabs).

   numbers: int64 [FIELDS, rows]. wanted: int64 [n]. logits: fp32 [n, padded outputs], written. slabs: a list of
   writable arrays. Included by module.c alone. */

typedef struct {
    Batch batch;
    Py_buffer views[3], *slab_views;
    size_t view_count, slab_count;
    uint16_t **slabs;
} Taken;

static PyObject *give_back(Taken *taken) {
    for (size_t at = 0; at < taken->view_count; at++) PyBuffer_Release(&taken->views[at]);
    for (size_t at = 0; at < taken->slab_count; at++) PyBuffer_Release(&taken->slab_views[at]);
    free(taken->slab_views), free(taken->slabs), free(taken->batch.hole);
    return NULL;
}

static int refuse(const char *what) { return PyErr_SetString(PyExc_ValueError, what), 0; }

/* Check that every number of a field is below its bound. */
static int check_numbers(const Network *network, const Batch *batch) {
    const char *names[] = {"a token", "a position"};
    size_t bounds[] = {network->vocabulary + (network->mask != NULL), network->positions};
    for (size_t field = 0; field < FIELDS; field++)
        for (size_t row = 0; row < batch->rows; row++) {
            int64_t number = batch->numbers[field * batch->rows + row];
            if (number < 0 || (uint64_t)number >= bounds[field])
                return PyErr_Format(PyExc_ValueError, "%s is %lld; it must be from 0 to %zu", names[field],
                                    (long long)number, bounds[field] - 1),
                       0;
        }
    for (size_t at = 0; at < batch->wanted; at++)
        if (batch->wanted_rows[at] < 0 || (uint64_t)batch->wanted_rows[at] >= batch->rows)
            return refuse("a wanted row is none of the batch");
    return 1;
}

static int take_hole(const Network *network, PyObject *item, Taken *taken, Hole *hole, size_t first) {
    Py_ssize_t rows, append, start;
    PyObject *slabs;
    if (!PyArg_ParseTuple(item, "nnnO", &rows, &append, &start, &slabs)) return 0;
    if (rows < 0 || append < 0 || start < 0 || append > rows) return refuse("a hole has wrong numbers of rows");
    if (first + (size_t)rows > taken->batch.rows) return refuse("the holes have more rows than the batch");
    size_t most = network->positions, last = (size_t)start + (size_t)rows;
    if (last > most) return refuse("a hole needs more positions than the network has");
    size_t bytes = network->layers * 2 * BLOCK * network->key_heads * network->head_width * sizeof(uint16_t);
    *hole = (Hole){first, (size_t)rows, (size_t)start, (size_t)append, taken->slabs + taken->slab_count};
    if (!PyList_Check(slabs) || (size_t)PyList_Size(slabs) * BLOCK < last)
        return refuse("a hole has too few slabs for its positions");
    for (size_t at = 0; at * BLOCK < last; at++) {
        Py_buffer *view = &taken->slab_views[taken->slab_count];
        if (!buffer_at(slabs, (Py_ssize_t)at, bytes, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE, view)) return 0;
        taken->slabs[taken->slab_count++] = view->buf;
        if ((uintptr_t)view->buf % sizeof(uint16_t)) return refuse("a slab is not aligned");
    }
    return 1;
}

static int take_holes(const Network *network, PyObject *holes, Taken *taken) {
    if (!PyList_Check(holes)) return refuse("the holes must be a list");
    size_t count = (size_t)PyList_Size(holes), first = 0, slabs = count * (padded(network->positions) / BLOCK);
    taken->batch.hole = calloc(count + 1, sizeof(Hole));
    taken->slab_views = calloc(slabs + 1, sizeof(Py_buffer));
    taken->slabs = calloc(slabs + 1, sizeof(uint16_t *));
    if (!taken->batch.hole || !taken->slab_views || !taken->slabs) return PyErr_NoMemory(), 0;
    for (; taken->batch.holes < count; taken->batch.holes++) {
        Hole *hole = &taken->batch.hole[taken->batch.holes];
        PyObject *item = PyList_GetItem(holes, (Py_ssize_t)taken->batch.holes);
        if (!take_hole(network, item, taken, hole, first)) return 0;
        first += hole->rows;
    }
    return first == taken->batch.rows ? 1 : refuse("the holes have fewer rows than the batch");
}

static int take_view(PyObject *array, int flags, size_t item, Taken *taken) {
    Py_buffer *view = &taken->views[taken->view_count];
    if (PyObject_GetBuffer(array, view, PyBUF_C_CONTIGUOUS | flags)) return 0;
    taken->view_count++;
    size_t alignment = item < 8 ? item : 8;
    if ((size_t)view->len % item || (uintptr_t)view->buf % alignment) return refuse("an array has a wrong size");
    return 1;
}

/* Return 0 with an exception set. Then, and after the pass, `give_back` what was taken. */
static int take_batch(const Network *network, PyObject *arguments, Taken *taken) {
    PyObject *numbers, *holes, *wanted, *logits;
    Batch *batch = &taken->batch;
    Py_buffer *views = taken->views;
    if (!PyArg_ParseTuple(arguments, "OOOO", &numbers, &holes, &wanted, &logits)) return 0;
    if (!take_view(numbers, 0, FIELDS * sizeof(int64_t), taken)) return 0;
    if (!take_view(wanted, 0, sizeof(int64_t), taken)) return 0;
    if (!take_view(logits, PyBUF_WRITABLE, sizeof(float), taken)) return 0;
    batch->rows = (size_t)views[0].len / (FIELDS * sizeof(int64_t));
    batch->wanted = (size_t)views[1].len / sizeof(int64_t);
    batch->numbers = views[0].buf, batch->wanted_rows = views[1].buf;
    batch->logits = views[2].buf;
    if ((size_t)views[2].len != batch->wanted * padded(network->outputs) * sizeof(float))
        return refuse("the array of logits has a wrong size");
    return check_numbers(network, batch) && take_holes(network, holes, taken);
}

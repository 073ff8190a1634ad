/* The boundary to Python: checks every size and index, then runs a pass without the interpreter's lock.

   kernel_pass.py is the only caller, and says what each argument is. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "paths.h"

#define MATRICES_A_LAYER 4 /* each weights and scales */
#define VECTORS_A_LAYER 5 /* two norms; a bias and the norms of heads, or None */
#define OTHER_ARRAYS 7    /* cosines, sines, the last norm; embedding; head, or None twice */
#define SIZE_COUNT 8
#define THREADS_FROM 8 /* rows of a pass that helpers are woken for: docs/kernel.md */
#define CACHE_BYTES ((size_t)128 << 20) /* A larger network comes from memory, which two cores read faster than one. */

typedef struct {
    PyObject_HEAD Network network;
    Path path;
    Scratch *scratch; /* NULL while a pass has it */
    Team *team; /* NULL before the first pass that needs it */
    size_t threads;
    int team_is_taken;
} KernelNetwork;

static const char *const SIZES[] = {"vocabulary", "width",      "layers", "heads",
                                    "key_heads",  "head_width", "hidden", "positions"};

/* Take the buffer of an item of a sequence, which must have `bytes` bytes, or `or_bytes`. Return 0 with an exception
   set. */
static int buffer_of(PyObject *sequence, Py_ssize_t index, size_t bytes, size_t or_bytes, int flags, Py_buffer *view) {
    PyObject *item = PySequence_GetItem(sequence, index);
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
    return buffer_of(sequence, index, bytes, bytes, flags, view);
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

/* Take weights and scales, and pack them. Weights of int4 have half as many bytes as those of int8, and with offsets
   more scales. `arrays` may make an array when it is asked for, so no two matrices are there unpacked. */
static int take_matrix(PyObject *arrays, Py_ssize_t *next, Network *network, Matrix *matrix, size_t outputs,
                       size_t inputs) {
    Py_buffer view, scales;
    size_t count = outputs * inputs, of_scales = count / GROUP * sizeof(uint16_t);
    if (!buffer_of(arrays, (*next)++, count, count / 2, PyBUF_C_CONTIGUOUS, &view)) return 0;
    int bits = (size_t)view.len == count ? 8 : 4, done = 0;
    size_t or_scales = bits == 4 ? of_scales * OFFSET_SCALES : of_scales;
    if (buffer_of(arrays, (*next)++, of_scales, or_scales, PyBUF_C_CONTIGUOUS, &scales)) {
        if ((size_t)scales.len > of_scales) bits = WITH_OFFSETS, network->has_offsets = 1;
        if (!(done = pack(matrix, view.buf, scales.buf, outputs, inputs, bits))) PyErr_NoMemory();
        network->bytes += padded(outputs) / BLOCK * (inputs / GROUP) * piece_bytes(bits);
        PyBuffer_Release(&scales);
    }
    PyBuffer_Release(&view);
    return done;
}

static int take_vector(PyObject *arrays, Py_ssize_t *next, float **vector, size_t count) {
    return (*vector = copied(arrays, next, count, sizeof(float))) != NULL;
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

static int take_optional(PyObject *arrays, Py_ssize_t *next, float **vector, size_t count) {
    return is_none(arrays, next) || take_vector(arrays, next, vector, count);
}

/* Take all arrays in the order of kernel_pass.py. */
static int take_arrays(PyObject *arrays, Network *network) {
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
    if (!take_matrix(arrays, &next, network, &network->embed, network->vocabulary, width)) return 0;
    for (size_t at = 0; at < network->layers; at++) {
        Layer *layer = &network->layer[at];
        if (!take_matrix(arrays, &next, network, &layer->qkv, qkv_width(network), width)) return 0;
        if (!take_matrix(arrays, &next, network, &layer->out, width, mixed_width(network))) return 0;
        if (!take_matrix(arrays, &next, network, &layer->gate_up, 2 * hidden, width)) return 0;
        if (!take_matrix(arrays, &next, network, &layer->down, width, hidden)) return 0;
        if (!take_optional(arrays, &next, &layer->bias, qkv_width(network))) return 0;
        if (!take_optional(arrays, &next, &layer->query_norm, network->head_width)) return 0;
        if (!take_optional(arrays, &next, &layer->key_norm, network->head_width)) return 0;
    }
    if (!is_none(arrays, &next)) return take_matrix(arrays, &next, network, &network->head, network->vocabulary, width);
    return 1;
}

static int take_sizes(PyObject *sizes, Network *network) {
    size_t *to[SIZE_COUNT] = {&network->vocabulary, &network->width,      &network->layers, &network->heads,
                              &network->key_heads,  &network->head_width, &network->hidden, &network->positions};
    if (PySequence_Size(sizes) != SIZE_COUNT) return PyErr_SetString(PyExc_ValueError, "8 sizes are needed"), 0;
    for (int at = 0; at < SIZE_COUNT; at++) {
        PyObject *item = PySequence_GetItem(sizes, at);
        Py_ssize_t size = item ? PyNumber_AsSsize_t(item, PyExc_OverflowError) : -1;
        Py_XDECREF(item);
        if (PyErr_Occurred()) return 0;
        if (size < 1 || size > 1 << 20) return PyErr_Format(PyExc_ValueError, "%s is %zd", SIZES[at], size), 0;
        *to[at] = (size_t)size;
    }
    if (network->heads % network->key_heads || network->head_width % 16)
        return PyErr_SetString(PyExc_ValueError, "the heads do not fit"), 0;
    if (network->width % GROUP || network->hidden % GROUP || mixed_width(network) % GROUP)
        return PyErr_SetString(PyExc_ValueError, "a row of weights must be a multiple of 64"), 0;
    return 1;
}

static int choose_path(const char *name, Path *chosen) {
    Path paths[PATHS];
    find_paths(paths);
    for (int at = 0; at < PATHS; at++)
        if (paths[at].available && !strcmp(paths[at].name, name)) return *chosen = paths[at], 1;
    return PyErr_Format(PyExc_ValueError, "this processor or build has no path %s", name), 0;
}

static PyObject *new_network(PyTypeObject *type, PyObject *arguments, PyObject *names) {
    const char *path;
    PyObject *sizes, *arrays;
    Py_ssize_t threads;
    double epsilon;
    (void)names;
    if (!PyArg_ParseTuple(arguments, "sndOO", &path, &threads, &epsilon, &sizes, &arrays)) return NULL;
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    KernelNetwork *self = (KernelNetwork *)allocate(type, 0);
    if (!self) return NULL;
    self->threads = threads < 1 ? 1 : threads > MOST_THREADS ? MOST_THREADS : (size_t)threads;
    self->network.epsilon = (float)epsilon;
    if (choose_path(path, &self->path) && take_sizes(sizes, &self->network) && take_arrays(arrays, &self->network))
        return (PyObject *)self;
    Py_DECREF(self);
    return NULL;
}

static void free_scratch(Scratch *scratch) {
    if (scratch) free(scratch->memory);
    free(scratch);
}

static void delete_network(KernelNetwork *self) {
    PyTypeObject *type = Py_TYPE((PyObject *)self);
    free_network(&self->network);
    free_scratch(self->scratch);
    end_team(self->team);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

#include "batch.h"

/* Return the threads for a pass, or NULL for none: it is small, or another pass has them. They start with the first
   pass that needs them. */
static Team *borrow_team(KernelNetwork *self, const Batch *batch) {
    size_t from = self->network.bytes > CACHE_BYTES ? 1 : THREADS_FROM;
    if (self->threads < 2 || batch->rows < from || self->team_is_taken) return NULL;
    if (!self->team) self->team = start_team(self->threads - 1);
    if (!self->team || !self->team->helpers) return NULL;
    self->team_is_taken = 1;
    return self->team;
}

static PyObject *run_batch(KernelNetwork *self, PyObject *arguments) {
    Taken taken = {0};
    if (!take_batch(&self->network, arguments, &taken)) return give_back(&taken), NULL;
    Scratch *scratch = self->scratch ? self->scratch : calloc(1, sizeof *scratch);
    self->scratch = NULL; /* Another thread gets memory of its own. */
    Team *team = borrow_team(self, &taken.batch);
    size_t threads = team ? team->helpers + 1 : 1;
    int done = scratch && (!taken.batch.rows || reserve(scratch, &self->network, &taken.batch, threads));
    if (done && taken.batch.rows) {
        Py_BEGIN_ALLOW_THREADS;
        if (team) atomic_store(&team->active, 1);
        self->path.run(&self->network, &taken.batch, scratch, team, threads);
        if (team) atomic_store(&team->active, 0);
        Py_END_ALLOW_THREADS;
    }
    if (team) self->team_is_taken = 0;
    give_back(&taken);
    if (self->scratch) free_scratch(scratch);
    else self->scratch = scratch;
    if (!done) return PyErr_NoMemory();
    Py_RETURN_NONE;
}

static PyObject *path_names(PyObject *module, PyObject *nothing) {
    Path paths[PATHS];
    PyObject *names = PyList_New(0);
    (void)module, (void)nothing;
    find_paths(paths);
    for (int at = 0; names && at < PATHS; at++) {
        PyObject *name = paths[at].available ? PyUnicode_FromString(paths[at].name) : NULL;
        if (paths[at].available && (!name || PyList_Append(names, name))) Py_CLEAR(names);
        Py_XDECREF(name);
    }
    return names;
}

static PyMethodDef network_methods[] = {{"run", (PyCFunction)run_batch, METH_VARARGS, "Run a pass."}, {0}};
static PyType_Slot slots[] = {{Py_tp_new, (void *)new_network},
                              {Py_tp_dealloc, (void *)delete_network},
                              {Py_tp_methods, network_methods},
                              {0, NULL}};
static PyType_Spec network_type = {"engine.models.embedded._kernel.Network", sizeof(KernelNetwork), 0,
                                   Py_TPFLAGS_DEFAULT, slots};
static PyMethodDef functions[] = {{"paths", path_names, METH_NOARGS, "The paths of this processor, the fastest first."},
                                  {0}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_kernel", NULL, 0, functions, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__kernel(void) {
    PyObject *module = PyModule_Create(&definition), *type = PyType_FromSpec(&network_type);
    if (module && type && !PyModule_AddObjectRef(module, "Network", type)) return Py_DECREF(type), module;
    Py_XDECREF(type);
    Py_XDECREF(module);
    return NULL;
}

/* The boundary to Python: checks every size and index, then runs a pass without the interpreter's lock.

   kernel_pass.py is the only caller, and says what each argument is. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "paths.h"

typedef struct {
    PyObject_HEAD Network network;
    Path path;
    size_t threads;
    Scratch *scratch; /* NULL while a pass has it */
    Pool *pool;       /* the same; made by the first pass that has rows enough */
} KernelNetwork;

static const char *const SIZES[] = {"vocabulary", "width",      "layers", "heads",
                                    "key_heads",  "head_width", "hidden", "positions"};
#define SIZE_COUNT 8
#define THREADED_ROWS 12 /* A pass of fewer rows is read faster than threads meet. */

/* Take the buffer of an item of a sequence, which must have `bytes` bytes. Return 0 with an exception set. */
static int buffer_at(PyObject *sequence, Py_ssize_t index, size_t bytes, int flags, Py_buffer *view) {
    PyObject *item = PySequence_GetItem(sequence, index);
    if (!item) return 0;
    int failed = PyObject_GetBuffer(item, view, flags);
    Py_DECREF(item);
    if (failed) return 0;
    if ((size_t)view->len == bytes) return 1;
    PyErr_Format(PyExc_ValueError, "array %zd has %zd bytes; the sizes say %zu", index, view->len, bytes);
    PyBuffer_Release(view);
    return 0;
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

/* Take a matrix: its weights in int4 or int8, which their size tells, and its scales in fp16. */
static int take_matrix(PyObject *arrays, Py_ssize_t *next, Matrix *matrix, size_t outputs, size_t inputs) {
    Py_buffer weights, scales;
    PyObject *item = PySequence_GetItem(arrays, *next);
    Py_ssize_t length = item ? PyObject_Size(item) : -1; /* of the flat array: its bytes */
    Py_XDECREF(item);
    if (length < 0) return 0;
    size_t bits = (size_t)length == outputs * inputs / 2 ? 4 : 8;
    if (!buffer_at(arrays, (*next)++, outputs * inputs * bits / 8, PyBUF_C_CONTIGUOUS, &weights)) return 0;
    int done = buffer_at(arrays, (*next)++, outputs * inputs / GROUP * sizeof(uint16_t), PyBUF_C_CONTIGUOUS, &scales);
    if (done) {
        done = pack(matrix, weights.buf, scales.buf, outputs, inputs, bits);
        if (!done) PyErr_NoMemory();
        PyBuffer_Release(&scales);
    }
    PyBuffer_Release(&weights);
    return done;
}

/* Take all arrays in the order of kernel_pass.py. */
static int take_arrays(PyObject *arrays, Network *network) {
    size_t width = network->width, half = network->head_width / 2, mixed = network->heads * network->head_width;
    size_t angles = network->positions * half;
    Py_ssize_t next = 0, expected = 5 + 10 * (Py_ssize_t)network->layers;
    if (PySequence_Size(arrays) != expected) {
        PyErr_Format(PyExc_ValueError, "%zd arrays were given; the network has %zd", PySequence_Size(arrays), expected);
        return 0;
    }
    network->layer = aligned_zeros(network->layers * sizeof(Layer));
    if (!network->layer) return PyErr_NoMemory(), 0;
    if (!take_matrix(arrays, &next, &network->embed, network->vocabulary, width)) return 0;
    if (!(network->norm = copied(arrays, &next, width, sizeof(float)))) return 0;
    if (!(network->cosine = copied(arrays, &next, angles, sizeof(float)))) return 0;
    if (!(network->sine = copied(arrays, &next, angles, sizeof(float)))) return 0;
    for (size_t at = 0; at < network->layers; at++) {
        Layer *layer = &network->layer[at];
        if (!(layer->norm = copied(arrays, &next, width, sizeof(float)))) return 0;
        if (!take_matrix(arrays, &next, &layer->qkv, qkv_width(network), width)) return 0;
        if (!take_matrix(arrays, &next, &layer->out, width, mixed)) return 0;
        if (!(layer->feed_norm = copied(arrays, &next, width, sizeof(float)))) return 0;
        if (!take_matrix(arrays, &next, &layer->gate_up, 2 * network->hidden, width)) return 0;
        if (!take_matrix(arrays, &next, &layer->down, width, network->hidden)) return 0;
    }
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
    if (network->width % GROUP || network->hidden % GROUP || network->heads * network->head_width % GROUP)
        return PyErr_SetString(PyExc_ValueError, "a product's inputs must be a multiple of 64"), 0;
    if (network->head_width % 16)
        return PyErr_SetString(PyExc_ValueError, "a head's width must be a multiple of 16"), 0;
    if (network->heads % network->key_heads)
        return PyErr_SetString(PyExc_ValueError, "heads must be a multiple of key_heads"), 0;
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
    double epsilon;
    Py_ssize_t threads;
    PyObject *sizes, *arrays;
    (void)names;
    if (!PyArg_ParseTuple(arguments, "sOdOn", &path, &sizes, &epsilon, &arrays, &threads)) return NULL;
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    KernelNetwork *self = (KernelNetwork *)allocate(type, 0);
    if (!self) return NULL;
    if (choose_path(path, &self->path) && take_sizes(sizes, &self->network)) {
        self->network.epsilon = (float)epsilon;
        self->threads = threads < 1 ? 1 : threads > MOST_THREADS ? MOST_THREADS : (size_t)threads;
        if (take_arrays(arrays, &self->network)) return (PyObject *)self;
    }
    Py_DECREF(self);
    return NULL;
}

static void free_scratch(Scratch *scratch) {
    if (scratch) free(scratch->memory);
    free(scratch);
}

static void delete_network(KernelNetwork *self) {
    PyTypeObject *type = Py_TYPE((PyObject *)self);
    free_pool(self->pool);
    free_network(&self->network);
    free_scratch(self->scratch);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

#include "batch.h"

static PyObject *run_batch(KernelNetwork *self, PyObject *arguments) {
    Taken taken = {0};
    if (!take_batch(&self->network, arguments, &taken)) return give_back(&taken), NULL;
    Scratch *scratch = self->scratch ? self->scratch : calloc(1, sizeof *scratch);
    Pool *pool = NULL;
    self->scratch = NULL; /* Another thread of Python's gets memory of its own, and no other threads. */
    if (self->threads > 1 && taken.batch.rows >= THREADED_ROWS) {
        pool = self->pool ? self->pool : new_pool(self->threads);
        self->pool = NULL;
    }
    int done = scratch && (!taken.batch.rows || reserve(scratch, &self->network, &taken.batch, self->threads));
    if (done && taken.batch.rows) {
        Py_BEGIN_ALLOW_THREADS;
        self->path.run(&self->network, &taken.batch, scratch, pool);
        Py_END_ALLOW_THREADS;
    }
    give_back(&taken);
    if (self->scratch) free_scratch(scratch);
    else self->scratch = scratch;
    if (self->pool) free_pool(pool);
    else if (pool) self->pool = pool;
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

/* The boundary to Python: checks every size and index, then runs a pass without the interpreter's lock.

   runner.py is the only caller, and says what each argument is. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "paths.h"

#include "arrays.h"

#define SIZE_COUNT 9
#define THREADS_FROM 8 /* rows of a pass that helpers are woken for: docs/kernel.md */
#define CACHE_BYTES ((size_t)128 << 20) /* A larger network comes from memory, which two cores read faster than one. */

typedef struct {
    PyObject_HEAD Network network;
    Path path;
    Scratch *scratch; /* NULL while a pass has it */
    Crew crew;
    int team_is_taken;
} KernelNetwork;

static const char *const SIZES[] = {"vocabulary", "width",      "layers", "heads",
                                    "key_heads",  "head_width", "hidden", "positions", "outputs"};

static int take_sizes(PyObject *sizes, Network *network) {
    size_t *to[SIZE_COUNT] = {&network->vocabulary, &network->width,      &network->layers, &network->heads,
                              &network->key_heads,  &network->head_width, &network->hidden, &network->positions,
                              &network->outputs};
    if (PySequence_Size(sizes) != SIZE_COUNT) return PyErr_SetString(PyExc_ValueError, "9 sizes are needed"), 0;
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
    self->crew.threads = threads < 1 ? 1 : threads > MOST_THREADS ? MOST_THREADS : (size_t)threads;
    self->network.epsilon = (float)epsilon;
    self->crew.borrowed = PyList_New(0);
    if (self->crew.borrowed && choose_path(path, &self->path) && take_sizes(sizes, &self->network) &&
        take_arrays(arrays, &self->network, &self->crew))
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
    end_team(self->crew.team);
    Py_XDECREF(self->crew.borrowed);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

#include "batch.h"

/* Return the threads for a pass, or NULL for none: it is small, or another pass has them. */
static Team *borrow_team(KernelNetwork *self, const Batch *batch) {
    size_t from = self->network.bytes > CACHE_BYTES ? 1 : THREADS_FROM;
    Team *team = batch->rows < from || self->team_is_taken ? NULL : team_of(&self->crew);
    if (team) self->team_is_taken = 1;
    return team;
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

/* packed(number, start, buffer): copy the blocks of a matrix from byte `start` on, as many as the buffer holds. Return
   how many these are. The embedding is number 0; those of the layers follow in the order of network.h, then the head. */
static PyObject *copy_packed(KernelNetwork *self, PyObject *arguments) {
    Py_ssize_t number, start, last = 1 + MATRICES_A_LAYER * (Py_ssize_t)self->network.layers;
    PyObject *buffer;
    Py_buffer view;
    if (!PyArg_ParseTuple(arguments, "nnO", &number, &start, &buffer)) return NULL;
    if (number < 0 || number > last || start < 0) return refuse("there is no such matrix"), NULL;
    const Matrix *matrix = number == 0 ? &self->network.embed : &self->network.head;
    if (number && number < last) {
        const Layer *layer = &self->network.layer[(number - 1) / MATRICES_A_LAYER];
        const Matrix *matrices[] = {&layer->qkv, &layer->out, &layer->gate_up, &layer->down};
        matrix = matrices[(number - 1) % MATRICES_A_LAYER];
    }
    size_t bytes = matrix->blocks ? matrix_bytes(matrix) : 0, from = (size_t)start < bytes ? (size_t)start : bytes;
    if (PyObject_GetBuffer(buffer, &view, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE)) return NULL;
    size_t count = bytes - from < (size_t)view.len ? bytes - from : (size_t)view.len;
    Py_BEGIN_ALLOW_THREADS;
    if (count) memcpy(view.buf, matrix->blocks + from, count);
    Py_END_ALLOW_THREADS;
    PyBuffer_Release(&view);
    return PyLong_FromSize_t(count);
}

/* adapt(arrays): take an adapter, before the first pass. */
static PyObject *take_new_adapter(KernelNetwork *self, PyObject *arguments) {
    PyObject *arrays;
    if (!PyArg_ParseTuple(arguments, "O", &arrays) || !take_adapter(arrays, &self->network, &self->crew)) return NULL;
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

static PyMethodDef network_methods[] = {
    {"run", (PyCFunction)run_batch, METH_VARARGS, "Run a pass."},
    {"adapt", (PyCFunction)take_new_adapter, METH_VARARGS, "Take an adapter."},
    {"packed", (PyCFunction)copy_packed, METH_VARARGS, "Copy packed blocks of a matrix."},
    {0}};
static PyType_Slot slots[] = {{Py_tp_new, (void *)new_network},
                              {Py_tp_dealloc, (void *)delete_network},
                              {Py_tp_methods, network_methods},
                              {0, NULL}};
static PyType_Spec network_type = {"engine.models.embedded._kernel.Network", sizeof(KernelNetwork), 0,
                                   Py_TPFLAGS_DEFAULT, slots};
static PyMethodDef functions[] = {{"paths", path_names, METH_NOARGS, "The paths of this processor, the fastest first."},
                                  {0}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_kernel", NULL, 0, functions, NULL, NULL, NULL, NULL};

/* glibc keeps up to 64 MB of freed memory, once a large array was freed. These sizes go back to the system. */
static void return_large_arrays(void) {
#ifdef __GLIBC__
    mallopt(M_MMAP_THRESHOLD, 4 << 20);
    mallopt(M_TRIM_THRESHOLD, 4 << 20);
#endif
}

PyMODINIT_FUNC PyInit__kernel(void) {
    return_large_arrays();
    PyObject *module = PyModule_Create(&definition), *type = PyType_FromSpec(&network_type);
    if (module && type && !PyModule_AddObjectRef(module, "Network", type)) return Py_DECREF(type), module;
    Py_XDECREF(type);
    Py_XDECREF(module);
    return NULL;
}
